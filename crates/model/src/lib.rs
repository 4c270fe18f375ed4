//! Connections to models.
//!
//! Requests and answers are the same for every provider ([`ModelRequest`], [`ModelReply`]);
//! [`connect`] creates the connection. The scripted model answers from a script, so that an agent
//! can be tested without a key, without a network, and the same way every time.

mod answer_draft;
mod anthropic;
mod chat_completions;
mod conversation;
mod error;
mod fields;
mod gemini;
mod http_exchange;
mod http_model;
mod local;
mod model_spec;
mod openai;
mod partial_answer;
mod provider_error;
mod provider_schema;
mod retry;
pub mod scripted;

pub use conversation::{
    AnswerDelta, AnswerEnd, AssistantMessage, ConversationMessage, DeltaReceiver, Model,
    ModelReply, ModelRequest, OutputSchema, ProviderData, TokenUsage, ToolCallRequest,
    ToolCallResult, ToolDeclaration,
};
pub use error::{ModelError, ModelErrorKind};
pub use http_exchange::{ModelUrlError, check_url};
pub use local::{LocalModelSpec, open_local_model};
pub use model_spec::{ApiKey, Provider, RemoteModelSpec, UnknownProvider, connect};
pub use partial_answer::PartialAnswer;
pub use provider_error::provider_error_kind;
pub use retry::{PauseWaiter, RetryPolicy, ask_with_retries};
