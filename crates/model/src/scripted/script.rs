//! The answers of the scripted model, step by step.
//!
//! One script serves several conversations at once. A sub-agent uses the same model while the main
//! agent continues, so each conversation can have its own part. A part is identified by a text at
//! the start of its conversation.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};

/// The answer after the last step of a part.
const END_TEXT: &str = "DONE";

/// A text that is larger than any reader expects.
const HUGE_BYTES: usize = 1 << 20;

/// The steps of all conversations.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelScript {
    steps: Vec<ScriptStep>,
    parts: Vec<(String, Vec<ScriptStep>)>,
    repeats: bool,
}

/// The answer to one request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScriptStep {
    /// The text, before the calls; may be empty.
    pub text: String,
    /// The tools to call.
    pub tools: Vec<ScriptedToolCall>,
    /// The reported token counts.
    pub usage: ScriptUsage,
    /// The delay before the answer.
    pub delay: Duration,
    /// If set, the request fails with this status, and the text is the error message.
    pub status: Option<u16>,
    /// The retry delay that the failed request reports.
    pub retry_after: Option<Duration>,
    /// A defect of the answer itself.
    pub broken: Option<AnswerDefect>,
}

/// The possible defects of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerDefect {
    /// The connection closes in the middle of the answer.
    Incomplete,
    /// The answer is an HTML page.
    Html,
    /// No answer is sent.
    Nothing,
    /// The text is one piece of a megabyte.
    Huge,
    /// The answer ends at the length limit.
    LengthLimit,
}

/// A tool call of the script.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptedToolCall {
    /// The name of the tool.
    pub name: String,
    /// The arguments.
    pub input: Value,
    /// The arguments as raw text instead, which may be invalid JSON.
    pub text: Option<String>,
}

impl ScriptedToolCall {
    /// The arguments as text.
    pub(super) fn arguments(&self) -> String {
        self.text.clone().unwrap_or_else(|| self.input.to_string())
    }
}

/// The token counts of one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptUsage {
    /// Input tokens that were not in a cache.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input tokens from the cache.
    pub cache_read: u64,
    /// Input tokens that were written to the cache.
    pub cache_creation: u64,
}

impl ScriptUsage {
    /// All input tokens, for providers that report only the sum.
    pub(super) fn input_sum(self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_creation)
    }
}

impl Default for ScriptUsage {
    fn default() -> Self {
        Self { input: 1000, output: 20, cache_read: 0, cache_creation: 0 }
    }
}

impl ScriptStep {
    /// Answers with a text and no calls, which ends the turn.
    pub fn say(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Calls a tool.
    pub fn call(name: impl Into<String>, input: Value) -> Self {
        Self::default().and_call(name, input)
    }

    /// Fails with a status, such as 529.
    pub fn fail(status: u16) -> Self {
        Self { status: Some(status), ..Self::default() }
    }

    /// Sets the retry delay of a failure.
    #[must_use]
    pub fn with_retry_after(mut self, retry_after: Duration) -> Self {
        self.retry_after = Some(retry_after);
        self
    }

    /// Calls one more tool in the same answer.
    #[must_use]
    pub fn and_call(mut self, name: impl Into<String>, input: Value) -> Self {
        self.tools.push(ScriptedToolCall { name: name.into(), input, text: None });
        self
    }

    /// Calls one more tool with raw arguments, valid or not.
    #[must_use]
    pub fn and_call_with(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        let (name, text) = (name.into(), Some(text.into()));
        self.tools.push(ScriptedToolCall { name, input: Value::Object(Map::new()), text });
        self
    }

    /// The text that is really sent.
    pub(super) fn sent_text(&self) -> Cow<'_, str> {
        match self.broken {
            Some(AnswerDefect::Huge) => "x".repeat(HUGE_BYTES).into(),
            _ => self.text.as_str().into(),
        }
    }

    /// Whether the answer ends at the length limit.
    pub(super) fn is_cut_off(&self) -> bool {
        self.broken == Some(AnswerDefect::LengthLimit)
    }

    /// Answers with a defect.
    #[must_use]
    pub fn broken(mut self, broken: AnswerDefect) -> Self {
        self.broken = Some(broken);
        self
    }

    /// Delays the answer.
    #[must_use]
    pub fn with_delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Sets the token counts.
    #[must_use]
    pub fn with_usage(mut self, usage: ScriptUsage) -> Self {
        self.usage = usage;
        self
    }
}

impl ModelScript {
    /// A script for all conversations without a part.
    pub fn new(steps: impl Into<Vec<ScriptStep>>) -> Self {
        Self { steps: steps.into(), ..Self::default() }
    }

    /// Adds a part for the conversation with `marker` in its system prompt or first message.
    #[must_use]
    pub fn part(mut self, marker: impl Into<String>, steps: impl Into<Vec<ScriptStep>>) -> Self {
        self.parts.push((marker.into(), steps.into()));
        self
    }

    /// Repeats each part after its last step.
    #[must_use]
    pub fn repeating(mut self) -> Self {
        self.repeats = true;
        self
    }
}

/// A script, with the position in each of its parts.
pub(super) struct ModelScriptPlayer {
    script: ModelScript,
    /// The next step of each part; the last entry is for conversations without a part.
    positions: Mutex<Vec<usize>>,
}

/// The next step, with its position in the script.
pub(super) struct ScriptTurn {
    pub(super) part: Option<String>,
    pub(super) number: usize,
    pub(super) step: ScriptStep,
}

impl ModelScriptPlayer {
    pub(super) fn new(script: ModelScript) -> Self {
        let at = vec![0; script.parts.len() + 1];
        Self { script, positions: Mutex::new(at) }
    }

    /// Skips steps of the conversations without a part.
    pub(super) fn skip(&mut self, steps: usize) {
        let at = self.positions.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(next) = at.last_mut() {
            *next += steps;
        }
    }

    /// Takes the next step of the conversation with this start.
    pub(super) fn next(&self, opening: &str) -> ScriptTurn {
        let part_index = self.script.parts.iter().position(|(marker, _)| opening.contains(marker));
        let part = part_index.and_then(|index| self.script.parts.get(index));
        let steps = part.map_or(&self.script.steps, |(_, steps)| steps);
        let mut at = self.positions.lock().unwrap_or_else(PoisonError::into_inner);
        let mut number = 0;
        if let Some(next) = at.get_mut(part_index.unwrap_or(self.script.parts.len())) {
            number = *next;
            *next += 1;
        }
        let index = if self.script.repeats { number % steps.len().max(1) } else { number };
        let step = steps.get(index).cloned().unwrap_or_else(|| ScriptStep::say(END_TEXT));
        ScriptTurn { part: part.map(|(marker, _)| marker.clone()), number, step }
    }
}

/// Calls `see` with every string in a value, in order.
pub(super) fn for_each_text(value: &Value, see: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => see(text),
        Value::Array(values) => values.iter().for_each(|value| for_each_text(value, see)),
        Value::Object(fields) => fields.values().for_each(|value| for_each_text(value, see)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_conversation_has_its_own_position_in_the_script() {
        let script = ModelScript::new([ScriptStep::say("m0"), ScriptStep::say("m1")])
            .part("SUB", [ScriptStep::say("s0")]);
        let player = ModelScriptPlayer::new(script);
        let (main, sub) = ("you help\ngo", "you help\ngo, SUB");
        let answers: Vec<(Option<String>, usize, String)> = [main, sub, main, sub, main]
            .into_iter()
            .map(|opening| player.next(opening))
            .map(|turn| (turn.part, turn.number, turn.step.text))
            .collect();
        let part = Some("SUB".to_owned());
        let expected = [
            (None, 0, "m0"),
            (part.clone(), 0, "s0"),
            (None, 1, "m1"),
            (part, 1, "DONE"),
            (None, 2, "DONE"),
        ];
        assert_eq!(answers, expected.map(|(part, number, text)| (part, number, text.to_owned())));
    }

    #[test]
    fn a_repeating_script_never_ends() {
        let player = ModelScriptPlayer::new(
            ModelScript::new([ScriptStep::say("a"), ScriptStep::say("b")]).repeating(),
        );
        let answers: String = (0..5).map(|_| player.next("").step.text).collect();
        assert_eq!(answers, "ababa");
        assert_eq!(
            ModelScriptPlayer::new(ModelScript::new([]).repeating()).next("").step,
            ScriptStep::say(END_TEXT)
        );
    }
}
