//! An agent that works on its own, and somebody who stands beside it.
//!
//! The supervisor has a model, or an agent program, work on a task iteration by iteration.
//! Every call passes the guards of one session. It waits where a person is needed, asks an
//! advisor where the agent goes in circles, changes to another model where one does not
//! answer, begins a conversation anew where it is full, and goes on after it was killed.
//! It ends with one stop code, and with evidence.

mod advisor;
mod asking;
mod conversation;
mod engines;
mod evidence;
mod handover;
mod history;
mod keeping;
mod listening;
mod load;
mod lookout;
mod own;
mod programs;
mod run;
mod run_front;
mod run_journal;
mod spec;
mod told;
mod transcript;
mod undoing;
mod waiting;
mod worker;

pub use engines::{EngineKind, EngineSpec, Reach};
pub use evidence::Evidence;
pub use keeping::{Kept, PREFIX, is_driven};
pub use load::load;
pub use run::{Opening, Report, RunError, not_completed, run};
pub use spec::{Acts, RunTask};
pub use told::{Told, Waits};
