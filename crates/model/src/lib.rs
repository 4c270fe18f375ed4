//! Models that agents talk to.
//!
//! What is asked and said is the same for every provider ([`Request`], [`Reply`]). The
//! scripted model has no mind of its own: it says what a script tells it, so that an agent
//! can be driven without a key, without a network, and the same way every time.

mod ask;
mod error;
pub mod scripted;

pub use ask::{
    Call, Delta, End, Hearer, Kept, Message, Model, OutputSchema, Reply, Request, Said, Tool,
    ToolResult, Usage,
};
pub use error::{ErrorKind, ModelError};
