//! What the reader sees of the text around it.

use super::{Manner, Reader};

/// How far ahead a key is looked for where a comma is missing.
const AHEAD_BYTES_MAX: usize = 200;

impl<'t> Reader<'t> {
    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// The first characters of what is here, for an error.
    pub(super) fn shown(&self) -> String {
        let rest = self.rest();
        if rest.is_empty() {
            return "the end of the text".to_owned();
        }
        // Quotes stay as they are: this is shown within JSON, which escapes them once more.
        let shown = rest.chars().take(24).map(|c| match c {
            '"' | '\'' | '\\' => c.to_string(),
            c => c.escape_debug().to_string(),
        });
        format!("`{}`", shown.collect::<String>())
    }

    pub(super) fn is_quote(&self, quote: char) -> bool {
        quote == '"' || (self.manner != Manner::Strict && matches!(quote, '\'' | '“' | '‘' | '`'))
    }

    /// The column here, if only white space is before it on its line.
    pub(super) fn column(&self) -> Option<usize> {
        let before = self.text.get(..self.at)?;
        let line = before.trim_end_matches([' ', '\t']);
        line.ends_with('\n').then(|| before.len() - line.len())
    }

    /// Whether the fence or the tag around the document closes here.
    pub(super) fn document_ends(&self) -> bool {
        ["```", "~~~", "</"].iter().any(|mark| self.rest().starts_with(mark))
    }

    /// Whether what follows a value can only be the next member.
    ///
    /// Two strings or numbers side by side in an array may be one that was taken
    /// apart, so there one of the two must be an object or array.
    pub(super) fn comma_is_missing(&self) -> bool {
        let rest = self.rest();
        if self.in_object() {
            return key_ahead(rest) && (rest.starts_with(quote_mark) || self.column().is_some());
        }
        let before = self.text.get(..self.at).unwrap_or_default().trim_end();
        rest.starts_with(['{', '[']) && before.ends_with(['}', ']'])
    }
}

fn quote_mark(sign: char) -> bool {
    matches!(sign, '"' | '\'' | '“' | '‘')
}

/// Whether a key and a colon follow.
pub(super) fn key_ahead(text: &str) -> bool {
    let mut end = text.len().min(AHEAD_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = text.get(..end).unwrap_or_default();
    let Some(first) = text.chars().next() else { return false };
    let rest = match first {
        '"' | '\'' | '“' | '‘' => {
            let closing = match first {
                '“' => '”',
                '‘' => '’',
                same => same,
            };
            let inside = text.get(first.len_utf8()..).unwrap_or_default();
            match inside.split_once(closing) {
                Some((key, rest)) if !key.contains(['\n', '{', '}']) => rest,
                _ => return false,
            }
        }
        letter if letter.is_ascii_alphabetic() || letter == '_' => {
            text.trim_start_matches(|sign: char| sign.is_ascii_alphanumeric() || sign == '_')
        }
        _ => return false,
    };
    rest.trim_start().starts_with([':', '：'])
}
