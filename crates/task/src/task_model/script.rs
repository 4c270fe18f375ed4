//! A model that plays the answers in a task file.
//!
//! It differs from the scripted model of `jackline-model`: an exhausted script is an error, only
//! the last answer can repeat, and answers cost no tokens.

use std::collections::VecDeque;

use jackline_model::{
    AnswerEnd, AssistantMessage, DeltaReceiver, Model, ModelError, ModelErrorKind, ModelReply,
    ModelRequest,
};

/// The name of a scripted model in traces.
pub(super) const NAME: &str = "scripted";

/// The answers of a scripted model, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskScript {
    /// The answers.
    pub answers: Vec<ScriptedAnswer>,
    /// Whether the last answer repeats without end.
    pub repeats: bool,
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptedAnswer {
    /// The model answers with this text.
    Text(String),
    /// The model does not answer in time. The script player returns the error at once.
    Timeout,
    /// The model's server refuses, with a status such as 529.
    Status(u16),
}

/// Plays a script.
pub(super) struct ScriptPlayer {
    answers: VecDeque<ScriptedAnswer>,
    repeats: bool,
}

impl ScriptPlayer {
    pub(super) fn new(script: &TaskScript) -> Self {
        Self { answers: script.answers.iter().cloned().collect(), repeats: script.repeats }
    }

    fn next(&mut self) -> Option<ScriptedAnswer> {
        if self.repeats && self.answers.len() == 1 {
            return self.answers.front().cloned();
        }
        self.answers.pop_front()
    }
}

impl Model for ScriptPlayer {
    fn name(&self) -> &'static str {
        NAME
    }

    fn ask(
        &mut self,
        _: &ModelRequest,
        _: &mut DeltaReceiver<'_>,
    ) -> Result<ModelReply, ModelError> {
        match self.next() {
            Some(ScriptedAnswer::Text(text)) => {
                let said = AssistantMessage { text, ..AssistantMessage::default() };
                Ok(ModelReply { message: said, end: AnswerEnd::Turn, usage: None, request: None })
            }
            Some(ScriptedAnswer::Timeout) => {
                Err(ModelError::new(ModelErrorKind::Timeout, "the model did not answer"))
            }
            Some(ScriptedAnswer::Status(status)) => Err(refusal(status)),
            None => {
                let message = "the script has no more answers";
                Err(ModelError::new(ModelErrorKind::BadRequest, message))
            }
        }
    }
}

fn refusal(status: u16) -> ModelError {
    let kind = match status {
        401 | 403 => ModelErrorKind::Auth,
        429 => ModelErrorKind::RateLimit,
        408 | 500.. => ModelErrorKind::Overload,
        _ => ModelErrorKind::BadRequest,
    };
    let message =
        format!("the model's server answered with status {status}, as the script demands");
    ModelError { status: Some(status), ..ModelError::new(kind, message) }
}
