//! What a model is asked, and what it says: the same for every provider.

use core::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::ModelError;

/// Somebody who answers.
pub trait Model: Send {
    /// What it is called in records: the name that prices and windows are known by.
    fn name(&self) -> &str;

    /// How many tokens its context holds, where it knows that itself.
    fn window(&self) -> Option<u64> {
        None
    }

    /// Asks once. `hear` is told what arrives while it arrives, and may break the answer
    /// off; that is [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled) then.
    fn ask(&mut self, request: &Request, hear: &mut Hearer<'_>) -> Result<Reply, ModelError>;
}

/// Whoever is told what arrives.
pub type Hearer<'a> = dyn FnMut(Delta<'_>) -> ControlFlow<()> + 'a;

/// What a model is asked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// What holds for the whole conversation.
    pub system: String,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    /// What may be called.
    pub tools: Vec<Tool>,
    /// What the answer has to look like, where it is no free text.
    pub output: Option<OutputSchema>,
    /// How much may be written; zero is what the provider takes it for.
    pub output_tokens_max: u32,
}

/// A part of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// What the model is told.
    User(String),
    /// What it said.
    Assistant(Said),
    /// What its calls brought, all those of one answer together.
    Results(Vec<ToolResult>),
}

/// What a model said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Said {
    /// In words; empty where it only calls.
    pub text: String,
    /// What it wants called, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Call>,
    /// What its provider wants back with the next question, as it came: signatures of
    /// thoughts and the like. Another provider leaves it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Kept>,
}

/// Something that only one provider understands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// Whose it is.
    pub provider: String,
    /// What it is.
    pub value: Value,
}

/// A call that a model wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// How its result is told apart from others.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments as the model wrote them, valid or not.
    pub arguments: String,
}

/// What a call brought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call.
    pub call: String,
    /// The tool.
    pub name: String,
    /// What the model is shown.
    pub text: String,
    /// Whether it failed, or was not allowed.
    pub is_error: bool,
}

/// A tool that may be called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What it does, in words.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub schema: Value,
}

/// What an answer has to look like.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputSchema {
    /// A name for it: letters, digits, `_` and `-`.
    pub name: String,
    /// The JSON Schema.
    pub schema: Value,
}

/// A whole answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// What was said.
    pub said: Said,
    /// How it ended.
    pub end: End,
    /// What it cost, where the provider says so.
    pub usage: Option<Usage>,
    /// What the provider calls the request.
    pub request: Option<String>,
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Nothing more is to be said or called.
    Turn,
    /// Calls are to be made.
    Calls,
    /// It ran into a limit of length.
    Length,
    /// The provider did not want to answer.
    Refusal,
}

/// Tokens of one answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// What was read, and was in no cache.
    pub input: u64,
    /// What was read from the provider's cache.
    pub cache_read: u64,
    /// What was put there.
    pub cache_creation: u64,
    /// What was written.
    pub output: u64,
}

/// A piece of an answer that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delta<'a> {
    /// More of the text.
    Text(&'a str),
    /// A call of this tool begins.
    Call(&'a str),
    /// More of the arguments of a call, by its number in this answer: those of several calls
    /// may come by turns.
    Arguments(usize, &'a str),
    /// Nothing that could be shown has come for a moment. It is told so that whoever
    /// listens can break off while nobody speaks.
    Waiting,
    /// What was heard so far is void: the answer broke, and is asked for again.
    Again,
}
