//! Runs programs that models write, in a worker process that can only ask its host.
//!
//! A program is Python. A worker checks and runs it: a process without files, network or
//! environment, which stops at every call and asks the host. A [`ProgramHost`] gives the
//! answers, so each call of a program passes the gate of that host. This crate links no
//! interpreter: the worker is the program `jackline-sandbox`. If a program breaks the worker, the
//! host continues.

mod internal_texts;
mod program_cancel;
mod program_checker;
mod program_host;
mod program_limits;
mod program_run;
mod program_runner;
pub mod protocol;
mod python_program;
mod sandbox_worker;
mod worker_pool;

pub use program_cancel::ProgramCancel;
pub use program_checker::ProgramChecker;
pub use program_host::{CallError, GeneratedTool, ProgramHost};
pub use program_limits::ProgramLimits;
pub use program_run::ProgramRun;
pub use program_runner::ProgramRunner;
pub use protocol::{CallableSpec, Callables};
pub use python_program::{PythonProgram, checker_and_runner};
pub use worker_pool::{Sandbox, WorkerError, WorkerPool};
