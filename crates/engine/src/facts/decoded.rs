//! What the decoding layer made of what a model wrote.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::verdict::Mismatch;

/// What became of arguments, a plan or an output. Where they could be used, the
/// event already holds them as they were understood.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecodedFact {
    /// What had to be cleaned up before they could be read, in short words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cleaned: Vec<String>,
    /// Whether nothing but placeholders stands in them.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub placeholders: bool,
    /// Whether the model was cut short in the middle of them.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub cut: bool,
    /// Why they can't be used; none where they can.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Mismatch>,
    /// The least that would do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<Value>,
    /// An output as it was understood: its event keeps the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}
