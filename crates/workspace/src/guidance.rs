//! Suggestions for the next call, after an empty answer or an error.

use serde::Serialize;
use serde_json::Value;

/// How many names of each kind a suggestion lists.
pub(crate) const NAMED_MAX: usize = 3;

/// Suggestions for the caller. Each was verified in the workspace; none is a guess.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Guidance {
    /// The suggestions as sentences.
    pub text: String,
    /// Existing names that are similar to the requested one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<String>,
    /// Matches if letter case is ignored.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_case: Vec<String>,
    /// Matches if the pattern is taken as plain text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub literal: Vec<String>,
    /// Ignored or hidden paths that were skipped but contain matches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
    /// Matches outside of the path or glob of the call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<String>,
    /// The call that is most likely useful now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<SuggestedCall>,
}

/// A tool call that the caller should make next.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SuggestedCall {
    /// The name of the tool.
    pub tool: &'static str,
    /// Its arguments.
    pub args: Value,
}

impl Guidance {
    /// Adds a sentence.
    pub(crate) fn add_sentence(&mut self, sentence: &str) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(sentence);
    }

    /// Suggests a call, unless a better one is already set.
    pub(crate) fn suggest_call(&mut self, tool: &'static str, args: Value) {
        if self.next.is_none() {
            self.next = Some(SuggestedCall { tool, args });
        }
    }

    /// Adds the suggested call as the last sentence.
    pub(crate) fn finish_with_call(mut self) -> Guidance {
        if let Some(SuggestedCall { tool, args }) = &self.next {
            let sentence = format!("Next: `{tool}` with {args}.");
            self.add_sentence(&sentence);
        }
        self
    }
}

/// Formats names for a sentence: `a`, `b`, `c`.
pub(crate) fn join_names(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
