//! Parses the conditions of rules into expressions that the engine evaluates.
//!
//! The language is the part of CEL that rules need, with the same meaning. The parser refuses
//! every other part of CEL with a hint and never gives it another meaning: floats, bytes, times,
//! and patterns that are not literals.

mod operand;
mod parse;
mod pattern;
mod token;

use jackline_engine::expr::Expr;

/// The maximum length of a condition in bytes.
pub const CONDITION_BYTES_MAX: usize = 4_096;

/// The maximum nesting depth of a condition.
pub const NESTING_MAX: u16 = 32;

/// An error in a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionError {
    /// The offset in bytes of the error in the text.
    pub offset: usize,
    /// The problem.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
}

impl ConditionError {
    fn new(at: usize, message: impl Into<String>) -> Self {
        Self { offset: at, message: message.into(), hint: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Parses a condition, or returns its first error.
pub fn parse_condition(text: &str) -> Result<Expr, ConditionError> {
    if text.len() > CONDITION_BYTES_MAX {
        let message = format!("the condition is longer than {CONDITION_BYTES_MAX} bytes");
        return Err(
            ConditionError::new(CONDITION_BYTES_MAX, message).hint("split it into several rules")
        );
    }
    parse::parse(token::tokenize(text)?)
}
