//! A regular expression that can't run away.
//!
//! The engine is linear in the text whatever the pattern, so what is left to bound
//! is the size of the compiled pattern.

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use serde_json::json;

use crate::error::{Code, ToolError};
use crate::glob::Case;
use crate::guidance::Guidance;

const PATTERN_BYTES_MAX: usize = 8 << 10;
const COMPILED_BYTES_MAX: usize = 4 << 20;
const CACHE_BYTES_MAX: usize = 8 << 20;
const NESTED_MAX: u32 = 64;

pub(crate) fn compile(pattern: &str, case: Case) -> Result<RegexMatcher, ToolError> {
    let invalid = |why: String| ToolError::new(Code::InvalidPattern, why);
    if pattern.is_empty() {
        return Err(invalid("the pattern is empty, and would match every line".to_owned()));
    }
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(invalid(format!("the pattern is longer than {PATTERN_BYTES_MAX} bytes")));
    }
    let built = RegexMatcherBuilder::new()
        .multi_line(true)
        .line_terminator(Some(b'\n'))
        .case_insensitive(case == Case::Insensitive)
        .size_limit(COMPILED_BYTES_MAX)
        .dfa_size_limit(CACHE_BYTES_MAX)
        .nest_limit(NESTED_MAX)
        .build(pattern);
    built.map_err(|error| {
        let escaped = escape(pattern);
        let mut guidance = Guidance::default();
        if pattern.contains("\\n") || pattern.contains('\n') {
            guidance.say("Lines are searched one at a time; search for a part of one line.");
        } else if escaped != pattern {
            guidance.say("If it is meant as plain text, escape it.");
            guidance.propose("search", json!({ "pattern": escaped }));
        }
        invalid(error.to_string()).with(guidance.finish())
    })
}

/// The pattern that matches this text and nothing else.
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
