//! Tools for agents that can't flood a context and can't leave the workspace.
//!
//! Every answer is bounded in lines, bytes and entries, and says what it leaves
//! out. Every path is opened beneath one directory that stays open, and what was
//! opened is what is used: there is no moment between a look and a use.

mod arguments;
mod edit;
mod error;
mod find;
mod glob;
mod guidance;
mod hints;
mod jail;
mod limits;
mod list;
mod read;
mod search;
mod seen;
pub mod shell;
mod time;
mod tools;
mod transaction;
pub mod undo;
mod walk;
mod write;

pub use error::{Code, OpenError, ToolError, WorkspaceError};
pub use guidance::{Guidance, Next};
pub use limits::Limits;
pub use seen::Shows;
pub use tools::{EDIT_FILE, SHELL, ToolOutput, ToolSpec, WRITE_FILE, Workspace, tools};
