//! What an adapter can show instead of the complete output of a tool.

use alloc::string::String;

use serde::{Deserialize, Serialize};

/// A replacement for an output. The adapter has prepared it, and the engine decides whether it is
/// shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputFact {
    /// The length of the complete output.
    pub bytes: u64,
    /// The length of the replacement.
    pub shown: u64,
    /// The lines of the replacement, if it is the beginning of the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<PageLines>,
    /// Why the complete output could not be saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// Whether the output contains workspace paths that can be shown as relative paths.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub relative: bool,
    /// The file that contains the complete output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// The lines of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageLines {
    /// The number of the first line, counted from 1: in the file that was read, or in the output.
    pub first: u64,
    /// How many lines are shown. A line that is shown in part counts.
    pub shown: u64,
    /// How many lines the output has.
    pub total: u64,
    /// How many bytes of the last line are shown, if only a part of it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_offset: Option<u64>,
}

impl PageLines {
    /// The line with which the next page begins.
    pub fn next_line(&self) -> u64 {
        let part = u64::from(self.line_offset.is_some());
        self.first.saturating_add(self.shown).saturating_sub(part)
    }
}
