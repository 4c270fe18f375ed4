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
