//! What an adapter can show instead of what a tool gave back.

use alloc::string::String;

use serde::{Deserialize, Serialize};

/// An output of which something else can be shown. The adapter has made it; whether it
/// is used is decided.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputFact {
    /// How long the output is.
    pub bytes: u64,
    /// How long what can be shown instead is.
    pub shown: u64,
    /// Why it could not be kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// Whether it names paths in the workspace that can be told relative to it.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub relative: bool,
    /// Where all of it lies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}
