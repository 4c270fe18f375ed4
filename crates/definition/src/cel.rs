//! Conditions of rules: from the text to what the engine evaluates.
//!
//! The language is the part of CEL that rules need, with the same meaning. What
//! is left out is refused with a hint, never read differently: floats, bytes,
//! times, patterns that are not written out.

mod operand;
mod parse;
mod pattern;
mod token;

use jackline_engine::expr::Expr;

/// How long a condition may be.
pub const TEXT_BYTES_MAX: usize = 4_096;

/// How deep a condition may be nested.
pub const NESTING_MAX: u16 = 32;

/// What is wrong with a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// The byte of the text where it is wrong.
    pub at: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Wrong {
    fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into(), hint: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Reads a condition, or says what is wrong with it.
pub fn lower(text: &str) -> Result<Expr, Wrong> {
    if text.len() > TEXT_BYTES_MAX {
        let message = format!("the condition is longer than {TEXT_BYTES_MAX} bytes");
        return Err(Wrong::new(TEXT_BYTES_MAX, message).hint("make it several rules"));
    }
    parse::parse(token::tokens(text)?)
}
