//! What comes out of the ladder.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::request;

/// What became of a text.
#[derive(Debug, Clone, PartialEq)]
pub enum Decoded {
    /// A value that the schema allows.
    Accepted(Accepted),
    /// No value, or none that the schema allows: the model is asked again.
    Invalid(Invalid),
    /// The text ends before the document does, because its writer ran into a
    /// limit of length. To ask for the same again would end the same way.
    CutOff(CutOff),
}

/// A value, and how it was come by.
#[derive(Debug, Clone, PartialEq)]
pub struct Accepted {
    /// What the text says.
    pub value: Value,
    /// What had to be mended, each kind once, in the order of their first use.
    pub repairs: Vec<Repair>,
    /// Whether nothing in the value is of the writer's own making: every text is
    /// one like `string`, `<name>` or `...`.
    pub placeholders: bool,
}

impl Accepted {
    /// Whether the text was not JSON as it came.
    pub fn after_repair(&self) -> bool {
        !self.repairs.is_empty()
    }
}

/// Why there is no value.
#[derive(Debug, Clone, PartialEq)]
pub struct Invalid {
    /// What kind of thing is wrong.
    pub reason: Reason,
    /// What is wrong where; at most [`crate::ERRORS_MAX`].
    pub errors: Vec<Mismatch>,
    /// How many errors more there are.
    pub more: usize,
    /// The smallest value that the schema allows, as far as one could be made.
    pub example: Option<Value>,
}

impl Invalid {
    /// What to tell the model: the errors, an example, and what to do. At most
    /// [`crate::REQUEST_BYTES_MAX`] bytes.
    pub fn render_request(&self) -> String {
        request::render_invalid(self)
    }
}

/// How far a text came that was cut off.
#[derive(Debug, Clone, PartialEq)]
pub struct CutOff {
    /// How many bytes there are.
    pub bytes: usize,
    /// The JSON pointer of what was being written.
    pub path: String,
    /// The last characters of the text.
    pub tail: String,
    /// What was complete: members and items whose end was seen. Never taken for
    /// the value that was meant.
    pub complete: Option<Value>,
}

impl CutOff {
    /// What to tell the model: where it broke off, and to be shorter or to go on.
    pub fn render_request(&self) -> String {
        request::render_cut_off(self)
    }
}

/// One thing that is wrong, for a machine and for a model alike.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Mismatch {
    /// The JSON pointer of the value; empty for the whole.
    pub path: String,
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub got: String,
}

/// What kind of thing is wrong with a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It holds no JSON at all.
    NoJson,
    /// It is broken in a way that leaves open what was meant.
    Broken,
    /// It can be read in more than one way.
    Ambiguous,
    /// A key is there twice.
    DuplicateKey,
    /// A string holds half of a character.
    LoneSurrogate,
    /// A number that can't be kept as it is written.
    NumberOutOfRange,
    /// It nests deeper than [`crate::DEPTH_MAX`].
    TooDeep,
    /// It is longer than [`crate::TEXT_BYTES_MAX`], or holds more than
    /// [`crate::VALUES_MAX`] values.
    TooLong,
    /// It is JSON, and the schema does not allow it.
    Schema,
    /// It is JSON, and to validate it would take too many steps.
    TooCostly,
}

/// One kind of slip that was mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Repair {
    /// Thoughts before the answer were left out.
    Think,
    /// A code fence was taken off.
    Fence,
    /// Words around the document were left out.
    Prose,
    /// A byte order mark or unusual white space was passed over.
    Space,
    /// A comment was left out.
    Comment,
    /// A comma too many was left out.
    ExtraComma,
    /// A comma was put between two members.
    MissingComma,
    /// Strings were not in straight double quotes.
    Quotes,
    /// Quotes inside a string were not escaped.
    InnerQuotes,
    /// A line break or other control character stood bare in a string.
    ControlCharacter,
    /// A backslash did not begin an escape.
    Backslash,
    /// A key had no quotes.
    BareKey,
    /// `True`, `None` and the like.
    Literal,
    /// A number as JSON does not write it: `+1`, `.5`.
    Number,
    /// `=>` or a full-width sign for a colon or a comma.
    Punctuation,
    /// Brackets that were opened were not closed.
    MissingClose,
    /// The first brace was missing.
    MissingOpen,
    /// The document was inside a string, or escaped as if it were.
    Unwrapped,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoJson => "there is no JSON in it",
            Self::Broken => "it is not valid JSON",
            Self::Ambiguous => "it can be read in more than one way",
            Self::DuplicateKey => "a key is there twice",
            Self::LoneSurrogate => "a string holds half of a character",
            Self::NumberOutOfRange => "a number is out of range",
            Self::TooDeep => "it is nested too deep",
            Self::TooLong => "it is too long",
            Self::Schema => "it does not match the schema",
            Self::TooCostly => "it takes too many steps to validate",
        })
    }
}
