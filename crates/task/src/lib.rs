//! A task that a model does in attempts.
//!
//! The model writes a program or a plan. It is looked at before it runs, each of its calls
//! passes the guards of one session, and everything that it changes (files, what it
//! remembers, tools that it forges, what policies know) is undone where it fails. Then the
//! model is told why, and asked again, within budgets. Whoever asked gets a public outcome;
//! everything else is in the journal of the session and in its trace.

mod author;
mod call;
mod calls;
mod context;
mod extract;
mod held;
mod load;
mod model;
mod prompt;
mod recover;
pub mod registry;
mod session;
mod shared;
mod spec;
mod task_file;
mod task_front;
mod told;
mod trace;

pub use author::{ArtifactRequest, Author, SharedAuthor};
pub use calls::{Called, Calls, Ground};
pub use context::Contexts;
pub use held::{Held, hold};
pub use load::load;
pub use model::{Answer, Chat, ModelSpec, Script};
pub use recover::{Recovered, Recovery, recover};
pub use session::{Opening, Report, TaskError, new_session_name, run};
pub use spec::{ArtifactKind, Delegate, TASK_FILE, Task};
pub use task_file::{LoadError, TaskFile};
pub use told::{Told, What};
pub use trace::TRACE_FILE;
