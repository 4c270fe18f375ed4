//! Runs an agent on a task without a person: `jackline run`.
//!
//! The supervisor has a model, or an agent program, work on a task iteration by iteration. The
//! guards of one session decide on every call. The supervisor waits if a person is needed, asks an
//! advisor if the agent is stuck, changes to a fallback engine if a model does not answer, restarts
//! a conversation that is full, and resumes after it was killed. A run ends with one stop code and
//! with evidence.

mod advisor;
mod conversation;
mod engines;
mod evidence;
mod handover;
mod model_loop;
mod model_question;
mod program_loop;
mod reply_listener;
mod run;
mod run_event;
mod run_front;
mod run_history;
mod run_journal;
mod run_record;
mod run_task;
mod run_task_reader;
mod stop_signals;
mod transcript;
mod undo_recorder;
mod waiting;
mod worker;
mod workspace_stamps;

pub use engines::{EngineKind, EngineSpec, RemoteModel};
pub use evidence::Evidence;
pub use run::{RunError, RunOptions, RunReport, run};
pub use run_event::{RunEvent, WaitReason};
pub use run_record::{RUN_SESSION_PREFIX, RunRecord, is_driven};
pub use run_task::{ActionMode, RunTask};
pub use run_task_reader::load_run_task;
