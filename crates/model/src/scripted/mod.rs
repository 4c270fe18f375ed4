//! A model that plays a script, on the loopback address alone.
//!
//! It speaks the Anthropic Messages wire, and remembers what it was shown: whether
//! a reason reached the model is read from its requests, not guessed.

mod http;
mod messages;
mod requests;
mod script;
mod server;

pub use requests::{Request, RequestKind, ToolResult};
pub use script::{Script, Step, ToolUse, Usage};
pub use server::ScriptedModel;
