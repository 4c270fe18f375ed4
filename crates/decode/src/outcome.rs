//! The outcomes of decoding.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::model_request;

/// The outcome of decoding a text.
#[derive(Debug, Clone, PartialEq)]
pub enum DecodeOutcome {
    /// A value that the schema allows.
    Accepted(AcceptedDocument),
    /// No value, or none that the schema allows: ask the model again.
    Invalid(InvalidDocument),
    /// The text ends before the document does, because the model reached a length
    /// limit. The same request would fail in the same way.
    CutOff(CutOffDocument),
}

/// An accepted value and the repairs that it needed.
#[derive(Debug, Clone, PartialEq)]
pub struct AcceptedDocument {
    /// The decoded value.
    pub value: Value,
    /// The kinds of repair, each once, in the order of their first use.
    pub repairs: Vec<TextRepair>,
    /// Whether the model filled in nothing: every text is a placeholder such as
    /// `string`, `<name>` or `...`.
    pub is_placeholder: bool,
}

impl AcceptedDocument {
    /// Whether the text needed a repair.
    pub fn is_repaired(&self) -> bool {
        !self.repairs.is_empty()
    }
}

/// Why a text gives no valid value.
#[derive(Debug, Clone, PartialEq)]
pub struct InvalidDocument {
    /// The kind of the error.
    pub reason: InvalidReason,
    /// The errors and their positions; at most [`crate::ERRORS_MAX`].
    pub errors: Vec<DecodeMismatch>,
    /// How many more errors there are.
    pub errors_omitted: usize,
    /// The smallest value that the schema allows, if we could build one.
    pub example: Option<Value>,
}

impl InvalidDocument {
    /// Renders the message to the model: the errors, an example, and what to do. At most
    /// [`crate::REQUEST_BYTES_MAX`] bytes.
    pub fn render_request(&self) -> String {
        model_request::render_invalid(self)
    }
}

/// How much of a document a cut-off text contains.
#[derive(Debug, Clone, PartialEq)]
pub struct CutOffDocument {
    /// The length of the text in bytes.
    pub bytes: usize,
    /// The JSON pointer of the value at which the text ends.
    pub path: String,
    /// The last characters of the text.
    pub tail: String,
    /// The complete members and items. This is never used as the value of the text.
    pub complete: Option<Value>,
}

impl CutOffDocument {
    /// Renders the message to the model: where the text ends, and to write a shorter one.
    pub fn render_request(&self) -> String {
        model_request::render_cut_off(self)
    }
}

/// One error, readable by programs and by models.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct DecodeMismatch {
    /// The JSON pointer of the value; empty for the whole document.
    pub path: String,
    /// What is expected there.
    pub expected: String,
    /// What is there instead.
    pub got: String,
}

/// The kind of an error in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InvalidReason {
    /// The text contains no JSON.
    NoJson,
    /// The text is not valid JSON, and no repair is clear.
    Broken,
    /// The text can be read in more than one way.
    Ambiguous,
    /// An object has the same key twice.
    DuplicateKey,
    /// A string contains half of a surrogate pair.
    LoneSurrogate,
    /// A number cannot be stored exactly.
    NumberOutOfRange,
    /// The document nests deeper than [`crate::DEPTH_MAX`].
    TooDeep,
    /// The text is longer than [`crate::TEXT_BYTES_MAX`], or contains more than
    /// [`crate::VALUES_MAX`] values.
    TooLong,
    /// The text is JSON, but the schema does not allow it.
    Schema,
    /// The text is JSON, but its validation would take too many steps.
    TooCostly,
}

/// One kind of repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TextRepair {
    /// Removed reasoning before the answer.
    Think,
    /// Removed a code fence.
    Fence,
    /// Removed prose around the document.
    Prose,
    /// Skipped a byte order mark or unusual white space.
    Space,
    /// Removed a comment.
    Comment,
    /// Removed an extra comma.
    ExtraComma,
    /// Inserted a comma between two members.
    MissingComma,
    /// Strings were not in straight double quotes.
    Quotes,
    /// Quotes inside a string were not escaped.
    InnerQuotes,
    /// A line break or another control character in a string was not escaped.
    ControlCharacter,
    /// A backslash did not begin an escape.
    Backslash,
    /// A key had no quotes.
    BareKey,
    /// A literal of another language, such as `True` or `None`.
    Literal,
    /// A number that is not valid JSON: `+1`, `.5`.
    Number,
    /// `=>` or a full-width character in place of a colon or comma.
    Punctuation,
    /// Inserted missing closing brackets.
    MissingClose,
    /// Inserted the missing first brace.
    MissingOpen,
    /// The document was inside a string, or escaped as if it were in one.
    Unwrapped,
}

impl fmt::Display for InvalidReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoJson => "it contains no JSON",
            Self::Broken => "it is not valid JSON",
            Self::Ambiguous => "it can be read in more than one way",
            Self::DuplicateKey => "an object has the same key twice",
            Self::LoneSurrogate => "a string contains half of a surrogate pair",
            Self::NumberOutOfRange => "a number is out of range",
            Self::TooDeep => "it is nested too deeply",
            Self::TooLong => "it is too long",
            Self::Schema => "it does not match the schema",
            Self::TooCostly => "its validation takes too many steps",
        })
    }
}
