//! How the reader looks at the text around its position.

use super::{JsonReadMode, JsonReader};

/// How far ahead the reader looks for a key where a comma is missing.
const KEY_LOOKAHEAD_BYTES_MAX: usize = 200;

impl<'t> JsonReader<'t> {
    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// The next characters, for an error.
    pub(super) fn next_characters(&self) -> String {
        let rest = self.rest();
        if rest.is_empty() {
            return "the end of the text".to_owned();
        }
        // Quotes stay unescaped: this text becomes part of JSON, which escapes them itself.
        let shown = rest.chars().take(24).map(|c| match c {
            '"' | '\'' | '\\' => c.to_string(),
            c => c.escape_debug().to_string(),
        });
        format!("`{}`", shown.collect::<String>())
    }

    pub(super) fn is_quote(&self, quote: char) -> bool {
        quote == '"'
            || (self.mode != JsonReadMode::Strict && matches!(quote, '\'' | '“' | '‘' | '`'))
    }

    /// The current column, if only white space is before it on the line.
    pub(super) fn column(&self) -> Option<usize> {
        let before = self.text.get(..self.at)?;
        let line = before.trim_end_matches([' ', '\t']);
        line.ends_with('\n').then(|| before.len() - line.len())
    }

    /// Whether the fence or tag around the document closes here.
    pub(super) fn is_at_document_end(&self) -> bool {
        ["```", "~~~", "</"].iter().any(|mark| self.rest().starts_with(mark))
    }

    /// Whether only the next member can follow here, so that its comma is missing.
    ///
    /// Two adjacent strings or numbers in an array may be two parts of one value. So in
    /// an array both neighbours must be objects or arrays.
    pub(super) fn is_comma_missing(&self) -> bool {
        let rest = self.rest();
        if self.is_in_object() {
            return is_key_ahead(rest)
                && (rest.starts_with(is_quote_mark) || self.column().is_some());
        }
        let before = self.text.get(..self.at).unwrap_or_default().trim_end();
        rest.starts_with(['{', '[']) && before.ends_with(['}', ']'])
    }
}

fn is_quote_mark(sign: char) -> bool {
    matches!(sign, '"' | '\'' | '“' | '‘')
}

/// Whether a key and a colon follow.
pub(super) fn is_key_ahead(text: &str) -> bool {
    let mut end = text.len().min(KEY_LOOKAHEAD_BYTES_MAX);
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
