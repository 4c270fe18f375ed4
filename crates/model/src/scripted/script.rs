//! What the model says, step by step.
//!
//! One script serves several conversations at once. A sub-agent asks the same
//! model while the main agent goes on, so each conversation has a part of its
//! own, known by a text in what it begins with.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

/// What is said when a part is over.
const OVER: &str = "DONE";

/// The steps of every conversation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Script {
    steps: Vec<Step>,
    parts: Vec<(String, Vec<Step>)>,
}

/// What is said to one request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Step {
    /// Text that comes first; none if empty.
    pub text: String,
    /// Tools that are to be called.
    pub tools: Vec<ToolUse>,
    /// What it is said to have cost.
    pub usage: Usage,
    /// How long is waited first.
    pub delay: Duration,
    /// The request fails with this status instead.
    pub status: Option<u16>,
}

/// One call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolUse {
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub input: Value,
}

/// Tokens of one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// What was read.
    pub input: u64,
    /// What was written.
    pub output: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self { input: 1000, output: 20 }
    }
}

impl Step {
    /// Says something and calls nothing, which ends a turn.
    pub fn say(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Calls a tool.
    pub fn call(name: impl Into<String>, input: Value) -> Self {
        Self::default().and_call(name, input)
    }

    /// Refuses to answer, with a status such as 529.
    pub fn fail(status: u16) -> Self {
        Self { status: Some(status), ..Self::default() }
    }

    /// Calls one more tool in the same answer.
    #[must_use]
    pub fn and_call(mut self, name: impl Into<String>, input: Value) -> Self {
        self.tools.push(ToolUse { name: name.into(), input });
        self
    }

    /// Waits first.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Says what it cost.
    #[must_use]
    pub fn costing(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }
}

impl Script {
    /// A script for every conversation that has no part of its own.
    pub fn new(steps: impl Into<Vec<Step>>) -> Self {
        Self { steps: steps.into(), parts: Vec::new() }
    }

    /// Adds a part for the conversation that has `marker` in its system text or its
    /// first message.
    #[must_use]
    pub fn part(mut self, marker: impl Into<String>, steps: impl Into<Vec<Step>>) -> Self {
        self.parts.push((marker.into(), steps.into()));
        self
    }
}

/// A script, and how far each of its parts is.
pub(super) struct Player {
    script: Script,
    /// The next step of the parts, and last of the rest.
    at: Mutex<Vec<usize>>,
}

/// What is said next, and where that is in the script.
pub(super) struct Turn {
    pub(super) part: Option<String>,
    pub(super) number: usize,
    pub(super) step: Step,
}

impl Player {
    pub(super) fn new(script: Script) -> Self {
        let at = vec![0; script.parts.len() + 1];
        Self { script, at: Mutex::new(at) }
    }

    /// Takes the next step of the conversation that a request belongs to.
    pub(super) fn next(&self, body: &Value) -> Turn {
        let opening = opening(body);
        let found = self.script.parts.iter().position(|(marker, _)| opening.contains(marker));
        let part = found.and_then(|index| self.script.parts.get(index));
        let steps = part.map_or(&self.script.steps, |(_, steps)| steps);
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        let mut number = 0;
        if let Some(next) = at.get_mut(found.unwrap_or(self.script.parts.len())) {
            number = *next;
            *next += 1;
        }
        let step = steps.get(number).cloned().unwrap_or_else(|| Step::say(OVER));
        Turn { part: part.map(|(marker, _)| marker.clone()), number, step }
    }
}

/// What a conversation begins with: its system text and its first message.
fn opening(body: &Value) -> String {
    let mut text = String::new();
    let first = body.pointer("/messages/0/content");
    for value in [body.get("system"), first].into_iter().flatten() {
        for_each_text(value, &mut |part| {
            text.push_str(part);
            text.push('\n');
        });
    }
    text
}

/// Every string in a value, in order.
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
    use serde_json::json;

    use super::*;

    fn body(system: &str, first: &str) -> Value {
        json!({
            "system": [{ "type": "text", "text": system }],
            "messages": [{ "role": "user", "content": [{ "type": "text", "text": first }] }],
        })
    }

    #[test]
    fn each_conversation_has_its_own_place_in_the_script() {
        let script = Script::new([Step::say("m0"), Step::say("m1")]).part("SUB", [Step::say("s0")]);
        let player = Player::new(script);
        let (main, sub) = (body("you help", "go"), body("you help", "go, SUB"));
        let said: Vec<(Option<String>, usize, String)> = [&main, &sub, &main, &sub, &main]
            .into_iter()
            .map(|body| player.next(body))
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
        assert_eq!(said, expected.map(|(part, number, text)| (part, number, text.to_owned())));
    }

    #[test]
    fn what_is_said_later_in_a_conversation_does_not_change_whose_it_is() {
        let player = Player::new(Script::new([Step::say("m0")]).part("SUB", [Step::say("s0")]));
        let mut later = body("you help", "go");
        let message = json!({ "role": "user", "content": "the agent SUB is done" });
        later["messages"].as_array_mut().unwrap().push(message);
        assert_eq!(player.next(&later).part, None);
        assert_eq!(player.next(&json!({})).step, Step::say(OVER));
    }
}
