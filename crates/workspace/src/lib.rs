//! Workspace tools for agents, with bounded output and no access outside of the workspace.
//!
//! Every answer is limited in lines, bytes and entries, and states what it leaves out. Every path
//! is opened beneath one directory that stays open, and the opened file is the one that is used.
//! So no other process can swap a file between a check and its use.

mod argument_schemas;
mod edit;
mod error;
mod find;
mod glob;
mod guidance;
mod jail;
mod limits;
mod list;
mod read;
mod search;
pub mod shell;
mod shown_lines;
mod suggestions;
mod time;
mod tool_arguments;
mod tools;
mod transaction;
pub mod undo;
mod walk;
mod write;

pub use argument_schemas::argument_schemas;
pub use error::{OpenError, ToolError, ToolErrorCode, WorkspaceError};
pub use guidance::{Guidance, SuggestedCall};
pub use limits::WorkspaceLimits;
pub use shown_lines::ShownContent;
pub use tools::{EDIT_FILE, SHELL, ToolAnswer, ToolSpec, WRITE_FILE, Workspace, tools};
