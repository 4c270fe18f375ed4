//! Skips white space and, in lenient mode, comments.

use super::{JsonReadFailure, JsonReadMode, JsonReader};
use crate::outcome::{InvalidReason, TextRepair};

/// Words in a comment that show that the model omitted a part of the document.
const OMISSION_WORDS: [&str; 9] =
    ["...", "…", "omitted", "existing", "rest of", "unchanged", "remaining", "same as", "etc"];

impl JsonReader<'_> {
    pub(super) fn skip_space(&mut self) -> Result<(), JsonReadFailure> {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches([' ', '\t', '\n', '\r']);
            self.at += rest.len() - trimmed.len();
            if self.mode == JsonReadMode::Strict {
                return Ok(());
            }
            match trimmed.chars().next() {
                Some('/' | '#') if !self.frames.is_empty() => {
                    if !self.skip_comment(trimmed)? {
                        return Ok(());
                    }
                }
                Some(odd) if odd.is_whitespace() || matches!(odd, '\u{feff}' | '\u{200b}') => {
                    self.record_repair(TextRepair::Space);
                    self.at += odd.len_utf8();
                }
                _ => return Ok(()),
            }
        }
    }

    fn skip_comment(&mut self, rest: &str) -> Result<bool, JsonReadFailure> {
        let length = if rest.starts_with("//") || rest.starts_with('#') {
            let length = rest.find('\n');
            self.ends_in_comment = length.is_none();
            length.unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            match rest.get(2..).and_then(|rest| rest.find("*/")) {
                Some(length) => length + 4,
                // Fail for the whole text, so that this search runs only once.
                None => {
                    let stop = self.failure(InvalidReason::Broken, "the end of the comment");
                    return Err(JsonReadFailure { is_document: true, ..stop });
                }
            }
        } else {
            return Ok(false);
        };
        let comment = rest.get(..length).unwrap_or_default().to_ascii_lowercase();
        // With an odd number of quotes, this may be a string without its first quote.
        let escaped = comment.contains("\\\"");
        let bare = comment.starts_with('#') && !comment.starts_with("# ");
        if comment.matches('"').count() % 2 == 1 || escaped || (bare && comment.contains('"')) {
            return Err(self.failure(InvalidReason::Ambiguous, "a value or a comment"));
        }
        if OMISSION_WORDS.iter().any(|word| comment.contains(word)) {
            return Err(
                self.failure(InvalidReason::Ambiguous, "the content that the comment omits")
            );
        }
        self.record_repair(TextRepair::Comment);
        self.at += length;
        Ok(true)
    }
}
