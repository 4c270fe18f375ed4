//! Compiles a regular expression with bounded cost.
//!
//! The regex library always runs in linear time, so only the size of the compiled pattern must be
//! limited.

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use serde_json::json;

use crate::error::{ToolError, ToolErrorCode};
use crate::glob::CaseSensitivity;
use crate::guidance::Guidance;

const PATTERN_BYTES_MAX: usize = 8 << 10;
const COMPILED_BYTES_MAX: usize = 4 << 20;
const DFA_CACHE_BYTES_MAX: usize = 8 << 20;
const NESTING_MAX: u32 = 64;

pub(crate) fn compile(pattern: &str, case: CaseSensitivity) -> Result<RegexMatcher, ToolError> {
    let invalid = |why: String| ToolError::new(ToolErrorCode::InvalidPattern, why);
    if pattern.is_empty() {
        return Err(invalid("the pattern is empty and would match every line".to_owned()));
    }
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(invalid(format!("the pattern is longer than {PATTERN_BYTES_MAX} bytes")));
    }
    let built = RegexMatcherBuilder::new()
        .multi_line(true)
        .line_terminator(Some(b'\n'))
        .case_insensitive(case == CaseSensitivity::Insensitive)
        .size_limit(COMPILED_BYTES_MAX)
        .dfa_size_limit(DFA_CACHE_BYTES_MAX)
        .nest_limit(NESTING_MAX)
        .build(pattern);
    built.map_err(|error| {
        let escaped = escape(pattern);
        let mut guidance = Guidance::default();
        if pattern.contains("\\n") || pattern.contains('\n') {
            guidance.add_sentence(
                "Lines are searched one at a time; use a pattern that matches within a line.",
            );
        } else if escaped != pattern {
            guidance.add_sentence("To search for it as plain text, escape it.");
            guidance.suggest_call("search", json!({ "pattern": escaped }));
        }
        invalid(error.to_string()).with_guidance(guidance.finish_with_call())
    })
}

/// A pattern that matches exactly this text.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        if r"\.+*?()|[]{}^$".contains(letter) {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}
