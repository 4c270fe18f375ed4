//! Requests to models and their answers, in a form that is the same for every provider.

use core::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::ModelError;

/// A model that answers requests.
pub trait Model: Send {
    /// The name of the model in records, and in the lists of prices and context windows.
    fn name(&self) -> &str;

    /// The size of its context window in tokens, if the model itself knows it.
    fn window(&self) -> Option<u64> {
        None
    }

    /// Sends one request. `hear` is called with each piece of the answer when it arrives, and may
    /// stop the answer; the result is then
    /// [`ModelErrorKind::Cancelled`](crate::ModelErrorKind::Cancelled).
    fn ask(
        &mut self,
        request: &ModelRequest,
        hear: &mut DeltaReceiver<'_>,
    ) -> Result<ModelReply, ModelError>;
}

/// A function that receives the pieces of an answer.
pub type DeltaReceiver<'a> = dyn FnMut(AnswerDelta<'_>) -> ControlFlow<()> + 'a;

/// A request to a model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelRequest {
    /// The system prompt.
    pub system: String,
    /// The conversation, the oldest message first.
    pub messages: Vec<ConversationMessage>,
    /// The tools that the model may call.
    pub tools: Vec<ToolDeclaration>,
    /// The schema of the answer, if it must be a document.
    pub output: Option<OutputSchema>,
    /// The maximum number of output tokens; 0 uses the default of the provider.
    pub output_tokens_max: u32,
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConversationMessage {
    /// Text for the model.
    User(String),
    /// An answer of the model.
    Assistant(AssistantMessage),
    /// The results of all calls of one answer.
    Results(Vec<ToolCallResult>),
}

/// An answer of a model as part of a conversation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AssistantMessage {
    /// The text; empty if there are only calls.
    pub text: String,
    /// The calls that the model requests, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCallRequest>,
    /// Data that the provider needs back unchanged with the next request, such as signatures of
    /// thoughts. Other providers ignore it.
    #[serde(rename = "kept", default, skip_serializing_if = "Option::is_none")]
    pub provider_data: Option<ProviderData>,
}

/// Data that only one provider understands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProviderData {
    /// The provider.
    pub provider: String,
    /// The data.
    pub value: Value,
}

/// A tool call that a model requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCallRequest {
    /// The id that connects the call with its result.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments as the model wrote them, valid or not.
    pub arguments: String,
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCallResult {
    /// The id of the call.
    pub call: String,
    /// The name of the tool.
    pub name: String,
    /// The text for the model.
    pub text: String,
    /// Whether the call failed or was denied.
    pub is_error: bool,
}

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDeclaration {
    /// The name of the tool.
    pub name: String,
    /// A description of what it does.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub schema: Value,
}

/// The required form of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputSchema {
    /// A name for the schema: letters, digits, `_` and `-`.
    pub name: String,
    /// The JSON Schema.
    pub schema: Value,
}

/// A complete answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelReply {
    /// The text and the calls.
    pub message: AssistantMessage,
    /// Why it ended.
    pub end: AnswerEnd,
    /// The token counts, if the provider reports them.
    pub usage: Option<TokenUsage>,
    /// The provider's id of the request.
    pub request: Option<String>,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerEnd {
    /// The model has finished its turn.
    Turn,
    /// The model waits for the results of its calls.
    Calls,
    /// A length limit was reached.
    Length,
    /// The provider refused to answer.
    Refusal,
}

/// The token counts of one answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenUsage {
    /// Input tokens that were not in a cache.
    pub input: u64,
    /// Input tokens that were read from the provider's cache.
    pub cache_read: u64,
    /// Input tokens that were written to the cache.
    pub cache_creation: u64,
    /// Output tokens.
    pub output: u64,
}

/// A piece of an answer, when it arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerDelta<'a> {
    /// More text.
    Text(&'a str),
    /// The start of a call of this tool.
    Call(&'a str),
    /// More of the arguments of the call with this number. The arguments of several calls may be
    /// interleaved.
    Arguments(usize, &'a str),
    /// Nothing has arrived for a moment. This lets the receiver stop the answer while it waits.
    Waiting,
    /// All pieces so far are void: the answer broke off, and the request is sent again.
    Again,
}
