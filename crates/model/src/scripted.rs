//! A model that plays a script, on the loopback address alone or without any.
//!
//! Over HTTP it speaks the wire of each provider, and remembers what it was shown: whether
//! a reason reached the model is read from its requests, not guessed.

mod http;
mod in_process;
mod parse;
mod requests;
mod script;
mod server;
mod wires;

pub use in_process::InProcess;
pub use parse::ScriptError;
pub use requests::{Request, RequestKind, ToolResult};
pub use script::{Broken, Script, Step, ToolUse, Usage};
pub use server::ScriptedModel;
