//! What a stream is refused for, and what a schema is.

use thiserror::Error;

/// The first byte that cannot continue to a valid document.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("byte {position} at `{pointer}`: expected {expected}")]
pub struct Refusal {
    /// How many bytes came before it. After the last byte where the document is incomplete.
    pub position: u64,
    /// A JSON pointer to the value that the byte belongs to.
    pub pointer: String,
    /// Which kind of rule it breaks.
    pub kind: RefusalKind,
    /// What could have been there, in words.
    pub expected: String,
}

/// Which kind of rule a byte breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// It is no JSON.
    Syntax,
    /// It is no UTF-8.
    Utf8,
    /// It is JSON, and the schema does not allow it.
    Schema,
    /// The object has this key already.
    DuplicateKey,
    /// Deeper than [`super::DEPTH_MAX`].
    TooDeep,
    /// A number longer than [`super::NUMBER_BYTES_MAX`], or larger than a double can hold.
    Number,
    /// Nothing is wrong, but the document ended.
    Incomplete,
}

/// Why a schema can't be checked against.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SchemaError {
    /// It is no JSON Schema, or refers to what is not there.
    #[error("the schema is invalid at `{pointer}`: {reason}")]
    Invalid {
        /// Where in the schema.
        pointer: String,
        /// What the validator says about it.
        reason: String,
    },
    /// A schema that holds where it holds itself says nothing.
    #[error("the schema refers to itself without looking at a part of the value")]
    Loop,
    /// More schemas, alternatives or nesting than a check can carry.
    #[error("the schema has more than {max} {what}")]
    TooLarge {
        /// Of what.
        what: &'static str,
        /// How many are allowed.
        max: usize,
    },
}
