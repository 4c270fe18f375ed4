//! Programs that models write, run where they can do nothing but ask.
//!
//! A program is Python. It is looked at and run by a worker, a process of its own without
//! files, network or environment, which pauses at every call and asks. The answers are
//! those of a [`Host`], so each call of a program passes the gate that the host has.
//! Nothing here links an interpreter: the worker is the program `jackline-sandbox`, and
//! whatever a program does to it, the host goes on.

mod checker;
mod ending;
mod host;
mod limits;
mod program;
pub mod protocol;
mod ran;
mod runner;
mod worker;
mod workers;

pub use checker::Checker;
pub use ending::Ending;
pub use host::{CallError, Forged, Host};
pub use limits::Limits;
pub use program::{Program, programs};
pub use protocol::{Known, Named};
pub use ran::Ran;
pub use runner::Runner;
pub use workers::{Sandbox, WorkerError, Workers};
