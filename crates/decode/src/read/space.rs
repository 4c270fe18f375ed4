//! White space, and comments where they are let pass.

use super::{Manner, Reader, Stop};
use crate::decoded::{Reason, Repair};

/// Words by which a comment says that something was left out of the document.
const OMITTED: [&str; 9] =
    ["...", "…", "omitted", "existing", "rest of", "unchanged", "remaining", "same as", "etc"];

impl Reader<'_> {
    pub(super) fn skip_space(&mut self) -> Result<(), Stop> {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches([' ', '\t', '\n', '\r']);
            self.at += rest.len() - trimmed.len();
            if self.manner == Manner::Strict {
                return Ok(());
            }
            match trimmed.chars().next() {
                Some('/' | '#') if !self.frames.is_empty() => {
                    if !self.skip_comment(trimmed)? {
                        return Ok(());
                    }
                }
                Some(odd) if odd.is_whitespace() || matches!(odd, '\u{feff}' | '\u{200b}') => {
                    self.note(Repair::Space);
                    self.at += odd.len_utf8();
                }
                _ => return Ok(()),
            }
        }
    }

    fn skip_comment(&mut self, rest: &str) -> Result<bool, Stop> {
        let length = if rest.starts_with("//") || rest.starts_with('#') {
            let length = rest.find('\n');
            self.comment_ends = length.is_none();
            length.unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            match rest.get(2..).and_then(|rest| rest.find("*/")) {
                Some(length) => length + 4,
                // Looked for once: no bracket after this is the beginning of anything.
                None => {
                    let stop = self.stop(Reason::Broken, "the end of the comment");
                    return Err(Stop { committed: true, ..stop });
                }
            }
        } else {
            return Ok(false);
        };
        let comment = rest.get(..length).unwrap_or_default().to_ascii_lowercase();
        // An odd number of quotes: the first may be missing, and this a string.
        let escaped = comment.contains("\\\"");
        let bare = comment.starts_with('#') && !comment.starts_with("# ");
        if comment.matches('"').count() % 2 == 1 || escaped || (bare && comment.contains('"')) {
            return Err(self.stop(Reason::Ambiguous, "a value or a comment"));
        }
        if OMITTED.iter().any(|word| comment.contains(word)) {
            return Err(self.stop(Reason::Ambiguous, "what the comment says was left out"));
        }
        self.note(Repair::Comment);
        self.at += length;
        Ok(true)
    }
}
