//! Conditions in CEL, lowered to what the engine evaluates.

use jackline_engine::expr::Expr;

/// What is wrong with a condition.
pub(crate) struct Wrong {
    /// Where, in bytes from its beginning.
    pub(crate) at: usize,
    /// What.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) hint: Option<String>,
}

/// Lowers a condition.
pub(crate) fn lower(text: &str) -> Result<Expr, Wrong> {
    // Stands in for the parser: the letter is no part of the language.
    match text.find('@') {
        Some(at) => Err(Wrong { at, message: "unexpected `@`".to_owned(), hint: None }),
        None => Ok(Expr::Bool(text.trim() != "false")),
    }
}
