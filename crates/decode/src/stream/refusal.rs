//! The errors of the streaming check: refused documents and invalid schemas.

use thiserror::Error;

/// The first byte that cannot continue to a valid document.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("byte {position} at `{pointer}`: expected {expected}")]
pub struct Refusal {
    /// The number of bytes before it. For an incomplete document, the length of the document.
    pub position: u64,
    /// A JSON pointer to the value that the byte belongs to.
    pub pointer: String,
    /// The kind of rule that it breaks.
    pub kind: RefusalKind,
    /// A description of what would be valid there.
    pub expected: String,
}

/// The kind of rule that a byte breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// The text is not JSON.
    Syntax,
    /// The text is not UTF-8.
    Utf8,
    /// The text is JSON, but the schema does not allow it.
    Schema,
    /// The object already has this key.
    DuplicateKey,
    /// The document nests deeper than [`super::DEPTH_MAX`].
    TooDeep,
    /// A number is longer than [`super::NUMBER_BYTES_MAX`], or too large for a double.
    Number,
    /// The document ended too early, but is valid so far.
    Incomplete,
}

/// Why a schema cannot be used for the streaming check.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StreamSchemaError {
    /// The value is not a JSON Schema, or a reference in it leads nowhere.
    #[error("the schema is invalid at `{pointer}`: {reason}")]
    Invalid {
        /// The JSON pointer in the schema.
        pointer: String,
        /// The message of the validator.
        reason: String,
    },
    /// The schema applies itself to the same value again, so it never ends.
    #[error("the schema refers to itself for the same value without end")]
    SelfReference,
    /// The schema has too many subschemas, alternatives or levels.
    #[error("the schema has more than {max} {what}")]
    TooLarge {
        /// What it has too many of.
        what: &'static str,
        /// The limit.
        max: usize,
    },
}
