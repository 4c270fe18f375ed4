//! The result of decoding what a model wrote.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::verdict::SchemaMismatch;

/// The result of decoding arguments, a plan or an output. If they were usable, the event already
/// contains the decoded value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecodedFact {
    /// What had to be cleaned up before they could be parsed, in short phrases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cleaned: Vec<String>,
    /// Whether they contain only placeholders.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub placeholders: bool,
    /// Whether the model's output was cut off in the middle of them.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub cut: bool,
    /// Why they can't be used; empty if they can.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<SchemaMismatch>,
    /// A minimal valid example.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<Value>,
    /// A decoded output. The event itself keeps the original text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}
