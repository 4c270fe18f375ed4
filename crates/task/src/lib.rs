//! Runs a task that a model does in attempts.
//!
//! The model writes a program or a plan. It is checked before it runs, and each of its calls passes
//! the guards of one session. If it fails, all of its changes are undone: files, context, generated
//! tools and the state of policies. Then the model gets the reason and is asked again, within
//! budgets. The caller gets a public outcome. All details are in the journal of the session and in
//! its trace.

mod attempt_event;
mod attempt_lock;
mod attempt_recovery;
mod author;
mod broken_guard;
mod call_tree_state;
mod extract;
mod program_contexts;
mod prompt;
pub mod registry;
mod running_call;
mod task_calls;
mod task_file;
mod task_file_reader;
mod task_front;
mod task_model;
mod task_run;
mod task_spec;
mod trace_entry;

pub use attempt_event::{AttemptEvent, AttemptEventKind};
pub use attempt_lock::{AttemptLock, lock_attempts};
pub use attempt_recovery::{AttemptRecovery, RecoveredAttempt, recover_attempts};
pub use author::{ArtifactRequest, Author, SharedAuthor};
pub use broken_guard::{BrokenGuard, ChangedJournal};
pub use program_contexts::ProgramContexts;
pub use task_calls::{CallEnvironment, CallReport, TaskCalls};
pub use task_file::{LoadError, TaskFile};
pub use task_file_reader::load_task;
pub use task_model::{ChatSpec, ScriptedAnswer, TaskModel, TaskScript};
pub use task_run::{TaskError, TaskOptions, TaskReport, new_session_name, run_task};
pub use task_spec::{ArtifactKind, Delegate, TASK_FILE, Task};
pub use trace_entry::{RetryCounts, TRACE_FILE, append_run_outcome};
