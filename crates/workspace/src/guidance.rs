//! What to try next, where an answer is empty or a call failed.

use serde::Serialize;
use serde_json::Value;

/// How many of a kind are named.
pub(crate) const NAMED_MAX: usize = 3;

/// Ways on, each found out and none guessed.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Guidance {
    /// All of it in words.
    pub text: String,
    /// Names that are close to the one asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<String>,
    /// Where it is, in another case.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_case: Vec<String>,
    /// Where the pattern is, taken as plain text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub literal: Vec<String>,
    /// Ignored or hidden places that were skipped, and have it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
    /// Where it is without the filters of the call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<String>,
    /// A call that makes sense now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Next>,
}

/// A call to make.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Next {
    /// The tool.
    pub tool: &'static str,
    /// Its arguments.
    pub args: Value,
}

impl Guidance {
    /// Adds a sentence.
    pub(crate) fn say(&mut self, sentence: &str) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(sentence);
    }

    /// Proposes a call, unless there is a better one already.
    pub(crate) fn propose(&mut self, tool: &'static str, args: Value) {
        if self.next.is_none() {
            self.next = Some(Next { tool, args });
        }
    }

    /// Says the proposed call, as the last sentence.
    pub(crate) fn finish(mut self) -> Guidance {
        if let Some(Next { tool, args }) = &self.next {
            let sentence = format!("Next: `{tool}` with {args}.");
            self.say(&sentence);
        }
        self
    }
}

/// Names in a sentence: `a`, `b`, `c`.
pub(crate) fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
