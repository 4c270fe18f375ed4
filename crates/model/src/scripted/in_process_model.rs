//! The scripted model without a server, for runs without a key and without a network.

use core::ops::ControlFlow;
use std::time::Duration;

use serde_json::json;

use super::script::{AnswerDefect, ModelScript, ModelScriptPlayer, ScriptStep, for_each_text};
use crate::conversation::{
    AnswerDelta, AnswerEnd, AssistantMessage, ConversationMessage, DeltaReceiver, Model,
    ModelReply, ModelRequest, TokenUsage, ToolCallRequest,
};
use crate::error::{ModelError, ModelErrorKind};
use crate::provider_error::ProviderErrorBody;

/// How often a waiting caller can cancel.
const CANCEL_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// A model that plays a script in this process.
pub struct InProcessModel {
    player: ModelScriptPlayer,
    /// The number of requests over all parts; it makes the ids of calls unique.
    request_count: usize,
}

impl InProcessModel {
    /// Plays a script from its start.
    pub fn new(script: ModelScript) -> Self {
        Self { player: ModelScriptPlayer::new(script), request_count: 0 }
    }

    /// Skips steps of the script that were played before a restart. The parts start again from
    /// their first step.
    #[must_use]
    pub fn after(mut self, steps: usize) -> Self {
        self.player.skip(steps);
        self.request_count = steps;
        self
    }

    fn play(
        &self,
        step: &ScriptStep,
        hear: &mut DeltaReceiver<'_>,
    ) -> Result<ModelReply, ModelError> {
        wait_cancellable(step.delay, hear)?;
        if let Some(status) = step.status {
            let error = status_error(status, &step.text);
            return Err(ModelError { retry_after: step.retry_after, ..error });
        }
        let bad = |message: &str| Err(ModelError::new(ModelErrorKind::BadAnswer, message));
        match step.broken {
            Some(AnswerDefect::Nothing) => {
                return Err(ModelError::new(ModelErrorKind::Timeout, "the script gives no answer"));
            }
            Some(AnswerDefect::Html) => return bad("the script answers with HTML"),
            _ => {}
        }
        let text = step.sent_text();
        if step.broken == Some(AnswerDefect::Incomplete) {
            let half = text.get(..text.floor_char_boundary(text.len() / 2)).unwrap_or_default();
            pass_on(hear, AnswerDelta::Text(half))?;
            return bad("the script gives an incomplete answer");
        }
        if !text.is_empty() {
            pass_on(hear, AnswerDelta::Text(&text))?;
        }
        let mut calls = Vec::new();
        for (n, tool) in step.tools.iter().enumerate() {
            let arguments = tool.arguments();
            pass_on(hear, AnswerDelta::Call(&tool.name))?;
            pass_on(hear, AnswerDelta::Arguments(n, &arguments))?;
            let id = format!("call_{}_{n}", self.request_count);
            calls.push(ToolCallRequest { id, name: tool.name.clone(), arguments });
        }
        let usage = TokenUsage {
            input: step.usage.input,
            cache_read: step.usage.cache_read,
            cache_creation: step.usage.cache_creation,
            output: step.usage.output,
        };
        let end_if_complete = if calls.is_empty() { AnswerEnd::Turn } else { AnswerEnd::Calls };
        let end = if step.is_cut_off() { AnswerEnd::Length } else { end_if_complete };
        let said = AssistantMessage { text: text.into_owned(), calls, provider_data: None };
        Ok(ModelReply { message: said, end, usage: Some(usage), request: None })
    }
}

impl Model for InProcessModel {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn ask(
        &mut self,
        request: &ModelRequest,
        hear: &mut DeltaReceiver<'_>,
    ) -> Result<ModelReply, ModelError> {
        let step = self.player.next(&opening(request)).step;
        self.request_count += 1;
        self.play(&step, hear)
    }
}

/// The start of a conversation: its system prompt and its first message.
fn opening(request: &ModelRequest) -> String {
    let mut text = format!("{}\n", request.system);
    match request.messages.first() {
        Some(ConversationMessage::User(first)) => text.push_str(first),
        Some(other) => for_each_text(&json!(other), &mut |part| text.push_str(part)),
        None => {}
    }
    text
}

/// The error for a status in the script.
fn status_error(status: u16, text: &str) -> ModelError {
    let message_text = if text.is_empty() { "the script fails here" } else { text };
    let kind = ProviderErrorBody::from_json(&json!({ "error": { "message": message_text } }))
        .kind(Some(status));
    let message = format!("the script answered with status {status}: {message_text}");
    ModelError { status: Some(status), ..ModelError::new(kind, message) }
}

/// Waits in short intervals, so that the caller can cancel.
fn wait_cancellable(
    mut remaining: Duration,
    hear: &mut DeltaReceiver<'_>,
) -> Result<(), ModelError> {
    while !remaining.is_zero() {
        let tick = remaining.min(CANCEL_CHECK_INTERVAL);
        std::thread::sleep(tick);
        remaining = remaining.saturating_sub(tick);
        pass_on(hear, AnswerDelta::Waiting)?;
    }
    Ok(())
}

fn pass_on(hear: &mut DeltaReceiver<'_>, delta: AnswerDelta<'_>) -> Result<(), ModelError> {
    match hear(delta) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(ModelError::cancelled()),
    }
}
