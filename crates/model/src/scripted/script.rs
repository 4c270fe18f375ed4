//! What the model says, step by step.
//!
//! One script serves several conversations at once. A sub-agent asks the same
//! model while the main agent goes on, so each conversation has a part of its
//! own, known by a text in what it begins with.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};

/// What is said when a part is over.
const OVER: &str = "DONE";

/// A piece that is larger than any reader expects.
const HUGE_BYTES: usize = 1 << 20;

/// The steps of every conversation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Script {
    steps: Vec<Step>,
    parts: Vec<(String, Vec<Step>)>,
    repeats: bool,
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
    /// The request fails with this status instead, for which the text is the reason.
    pub status: Option<u16>,
    /// How long it wants to be left alone then.
    pub retry_after: Option<Duration>,
    /// What is wrong with the answer itself.
    pub broken: Option<Broken>,
}

/// What can be wrong with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// The connection ends in the middle.
    Half,
    /// It is a page of HTML.
    Html,
    /// Nothing comes at all.
    Nothing,
    /// Its text is one piece of a megabyte.
    Huge,
    /// It is cut off, as one that got too long.
    Long,
}

/// One call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolUse {
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub input: Value,
    /// The arguments as a text instead, which may be no JSON.
    pub text: Option<String>,
}

impl ToolUse {
    /// The arguments as they are written.
    pub(super) fn arguments(&self) -> String {
        self.text.clone().unwrap_or_else(|| self.input.to_string())
    }
}

/// Tokens of one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// What was read, and was in no cache.
    pub input: u64,
    /// What was written.
    pub output: u64,
    /// What was read from the cache.
    pub cache_read: u64,
    /// What was put there.
    pub cache_creation: u64,
}

impl Usage {
    /// Everything that was read, for providers that count no other way.
    pub(super) fn read(self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_creation)
    }
}

impl Default for Usage {
    fn default() -> Self {
        Self { input: 1000, output: 20, cache_read: 0, cache_creation: 0 }
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

    /// Says how long it wants to be left alone.
    #[must_use]
    pub fn until(mut self, retry_after: Duration) -> Self {
        self.retry_after = Some(retry_after);
        self
    }

    /// Calls one more tool in the same answer.
    #[must_use]
    pub fn and_call(mut self, name: impl Into<String>, input: Value) -> Self {
        self.tools.push(ToolUse { name: name.into(), input, text: None });
        self
    }

    /// Calls one more tool, with arguments as they are written here, valid or not.
    #[must_use]
    pub fn and_call_with(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        let (name, text) = (name.into(), Some(text.into()));
        self.tools.push(ToolUse { name, input: Value::Object(Map::new()), text });
        self
    }

    /// The text that is really said.
    pub(super) fn said(&self) -> Cow<'_, str> {
        match self.broken {
            Some(Broken::Huge) => "x".repeat(HUGE_BYTES).into(),
            _ => self.text.as_str().into(),
        }
    }

    /// Whether it ends because it got too long.
    pub(super) fn is_cut_off(&self) -> bool {
        self.broken == Some(Broken::Long)
    }

    /// Answers, and something is wrong with it.
    #[must_use]
    pub fn broken(mut self, broken: Broken) -> Self {
        self.broken = Some(broken);
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
        Self { steps: steps.into(), ..Self::default() }
    }

    /// Adds a part for the conversation that has `marker` in its system text or its
    /// first message.
    #[must_use]
    pub fn part(mut self, marker: impl Into<String>, steps: impl Into<Vec<Step>>) -> Self {
        self.parts.push((marker.into(), steps.into()));
        self
    }

    /// Begins each part again where it is over.
    #[must_use]
    pub fn repeating(mut self) -> Self {
        self.repeats = true;
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

    /// Leaves out steps of the conversations that have no part of their own.
    pub(super) fn skip(&mut self, steps: usize) {
        let at = self.at.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(next) = at.last_mut() {
            *next += steps;
        }
    }

    /// Takes the next step of the conversation that begins like this.
    pub(super) fn next(&self, opening: &str) -> Turn {
        let found = self.script.parts.iter().position(|(marker, _)| opening.contains(marker));
        let part = found.and_then(|index| self.script.parts.get(index));
        let steps = part.map_or(&self.script.steps, |(_, steps)| steps);
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        let mut number = 0;
        if let Some(next) = at.get_mut(found.unwrap_or(self.script.parts.len())) {
            number = *next;
            *next += 1;
        }
        let index = if self.script.repeats { number % steps.len().max(1) } else { number };
        let step = steps.get(index).cloned().unwrap_or_else(|| Step::say(OVER));
        Turn { part: part.map(|(marker, _)| marker.clone()), number, step }
    }
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
    use super::*;

    #[test]
    fn each_conversation_has_its_own_place_in_the_script() {
        let script = Script::new([Step::say("m0"), Step::say("m1")]).part("SUB", [Step::say("s0")]);
        let player = Player::new(script);
        let (main, sub) = ("you help\ngo", "you help\ngo, SUB");
        let said: Vec<(Option<String>, usize, String)> = [main, sub, main, sub, main]
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
        assert_eq!(said, expected.map(|(part, number, text)| (part, number, text.to_owned())));
    }

    #[test]
    fn a_script_that_repeats_is_never_over() {
        let player = Player::new(Script::new([Step::say("a"), Step::say("b")]).repeating());
        let said: String = (0..5).map(|_| player.next("").step.text).collect();
        assert_eq!(said, "ababa");
        assert_eq!(Player::new(Script::new([]).repeating()).next("").step, Step::say(OVER));
    }
}
