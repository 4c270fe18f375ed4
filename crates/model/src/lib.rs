//! Models that agents talk to.
//!
//! What is asked and said is the same for every provider ([`Request`], [`Reply`]);
//! [`connect`] gives somebody who answers. The scripted model has no mind of its own: it
//! says what a script tells it, so that an agent can be driven without a key, without a
//! network, and the same way every time.

mod anthropic;
mod ask;
mod chat;
mod draft;
mod error;
mod fields;
mod gemini;
mod heard;
mod http;
mod local;
mod openai;
mod refusal;
mod remote;
mod retry;
mod schema;
pub mod scripted;
mod spec;

pub use ask::{
    Call, Delta, End, Hearer, Kept, Message, Model, OutputSchema, Reply, Request, Said, Tool,
    ToolResult, Usage,
};
pub use error::{ErrorKind, ModelError};
pub use heard::Heard;
pub use http::{UrlError, check_url};
pub use local::{LocalSpec, open_local};
pub use refusal::refusal_kind;
pub use retry::{Patience, Waiter, ask_patiently};
pub use spec::{Key, ModelSpec, Provider, UnknownProvider, connect};
