//! Reads strings: finds their end and decodes escapes.
//!
//! The hard question is whether a quote ends its string. It does if the text behind it
//! can follow a string. Otherwise the quote belongs to the text, and such quotes must
//! come in pairs. A string for which this is not clear is refused.

use super::lookahead::is_key_ahead;
use super::{JsonReadFailure, JsonReader};
use crate::outcome::{InvalidReason, TextRepair};

#[derive(Clone, Copy, PartialEq, Eq)]
enum StringRole {
    Key,
    Value,
}

/// The meaning of a quote inside a string.
enum QuoteMeaning {
    End,
    Inner,
    Ambiguous,
}

/// A string that is being read.
#[derive(Default)]
struct StringDraft {
    out: String,
    /// Quotes that belong to the text.
    inner_quotes: usize,
    has_control_character: bool,
    /// The text contains a backslash that starts no escape.
    has_plain_backslash: bool,
    /// The text contains a decoded escape with a letter, such as `\n`.
    has_letter_escape: bool,
}

impl JsonReader<'_> {
    pub(super) fn read_string_key(&mut self) -> Result<String, JsonReadFailure> {
        self.read_string(StringRole::Key)
    }

    pub(super) fn read_string_value(&mut self) -> Result<String, JsonReadFailure> {
        self.read_string(StringRole::Value)
    }

    fn read_string(&mut self, role: StringRole) -> Result<String, JsonReadFailure> {
        let Some(open) = self.peek() else {
            return Err(self.failure(InvalidReason::Broken, "a string"));
        };
        let triple =
            self.is_lenient() && role == StringRole::Value && self.rest().starts_with("\"\"\"");
        if triple {
            self.at += 3;
            return self.read_enclosed("\"\"\"");
        }
        self.at += open.len_utf8();
        match open {
            '"' => {}
            '`' => return self.read_enclosed("`"),
            _ => self.record_repair(TextRepair::Quotes),
        }
        let close = match open {
            '“' => '”',
            '‘' => '’',
            same => same,
        };
        let mut text = StringDraft::default();
        loop {
            let plain = self.rest();
            let length = plain
                .find(|sign: char| {
                    sign == close || sign == '\\' || sign < ' ' || (sign == '"' && close == '”')
                })
                .unwrap_or(plain.len());
            text.out.push_str(plain.get(..length).unwrap_or_default());
            self.at += length;
            match self.peek() {
                None => {
                    return Err(
                        self.failure(InvalidReason::Broken, "the closing quote of a string")
                    );
                }
                Some('\\') => self.read_escape(&mut text)?,
                Some(sign) if sign < ' ' => self.read_control_character(&mut text, sign)?,
                Some(sign) => match self.quote_meaning(role, close, sign, &mut text) {
                    QuoteMeaning::End => {
                        self.at += sign.len_utf8();
                        return self.finish_string(text);
                    }
                    QuoteMeaning::Inner => {
                        text.out.push(sign);
                        self.at += sign.len_utf8();
                    }
                    QuoteMeaning::Ambiguous => {
                        return Err(self.failure(
                            InvalidReason::Ambiguous,
                            "quotes inside a string as `\\\"`",
                        ));
                    }
                },
            }
        }
    }

    /// Reads a string between unambiguous marks. Line breaks inside are allowed.
    fn read_enclosed(&mut self, mark: &str) -> Result<String, JsonReadFailure> {
        self.record_repair(TextRepair::Quotes);
        let mut text = StringDraft::default();
        loop {
            let rest = self.rest();
            match self.peek() {
                None => {
                    return Err(
                        self.failure(InvalidReason::Broken, "the closing quote of a string")
                    );
                }
                Some('\\') => self.read_escape(&mut text)?,
                Some(_) if rest.starts_with(mark) => break,
                Some('$') if mark == "`" && rest.starts_with("${") => {
                    return Err(self.failure(InvalidReason::Ambiguous, "a text without `${…}`"));
                }
                Some(sign) => {
                    text.out.push(sign);
                    self.at += sign.len_utf8();
                }
            }
        }
        self.at += mark.len();
        if !can_follow_value(self.rest()) {
            return Err(self.failure(InvalidReason::Ambiguous, "a comma or a closing bracket"));
        }
        self.finish_string(text)
    }

    fn read_control_character(
        &mut self,
        text: &mut StringDraft,
        sign: char,
    ) -> Result<(), JsonReadFailure> {
        if !self.is_lenient() {
            return Err(self.failure(InvalidReason::Broken, "line breaks in strings as `\\n`"));
        }
        text.has_control_character = true;
        text.out.push(sign);
        self.at += 1;
        Ok(())
    }

    fn quote_meaning(
        &self,
        role: StringRole,
        close: char,
        sign: char,
        text: &mut StringDraft,
    ) -> QuoteMeaning {
        if !self.is_lenient() {
            return QuoteMeaning::End;
        }
        let after = self.rest().get(sign.len_utf8()..).unwrap_or_default();
        if sign != close {
            // A straight quote inside curly quotes is text, unless it could be the end.
            return if can_follow_value(after) || can_follow_key(after) {
                QuoteMeaning::Ambiguous
            } else {
                QuoteMeaning::Inner
            };
        }
        if role == StringRole::Key {
            return if close == '"' || can_follow_key(after) {
                QuoteMeaning::End
            } else {
                apostrophe_meaning(text, after)
            };
        }
        let ends = can_follow_value(after) || is_next_member(after);
        match close {
            '"' => straight_quote_meaning(text, after, ends),
            _ if ends => QuoteMeaning::End,
            _ => apostrophe_meaning(text, after),
        }
    }

    /// Checks a complete string and records its repairs.
    fn finish_string(&mut self, text: StringDraft) -> Result<String, JsonReadFailure> {
        let swallowed = text.inner_quotes > 0 && text.has_control_character;
        if swallowed || (text.has_plain_backslash && text.has_letter_escape) {
            return Err(
                self.failure(InvalidReason::Ambiguous, "quotes and backslashes in strings escaped")
            );
        }
        for (is_repaired, repair) in [
            (text.inner_quotes > 0, TextRepair::InnerQuotes),
            (text.has_control_character, TextRepair::ControlCharacter),
            (text.has_plain_backslash, TextRepair::Backslash),
        ] {
            if is_repaired {
                self.record_repair(repair);
            }
        }
        Ok(text.out)
    }

    fn read_escape(&mut self, text: &mut StringDraft) -> Result<(), JsonReadFailure> {
        let mut rest = self.rest().chars();
        rest.next();
        let Some(sign) = rest.next() else {
            self.at = self.text.len();
            return Err(self.failure(InvalidReason::Broken, "the rest of an escape"));
        };
        let plain = match sign {
            '"' | '\\' | '/' => Some(sign),
            'b' => Some('\u{8}'),
            'f' => Some('\u{c}'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'u' => {
                text.has_letter_escape = true;
                return self.read_unicode_escape(text);
            }
            _ => None,
        };
        if let Some(plain) = plain {
            text.has_letter_escape |= sign.is_ascii_alphabetic();
            text.out.push(plain);
            self.at += 2;
            return Ok(());
        }
        if !self.is_lenient() {
            return Err(self.failure(InvalidReason::Broken, "an escape that JSON allows"));
        }
        match sign {
            '\'' => {
                self.record_repair(TextRepair::Backslash);
                text.out.push('\'');
            }
            // A backslash before any other letter belongs to a path or a pattern. The
            // excluded letters are escapes in other languages.
            letter if letter.is_ascii_alphabetic() && !"xaveUN".contains(letter) => {
                text.has_plain_backslash = true;
                text.out.push('\\');
                text.out.push(letter);
            }
            'U' if !rest.as_str().starts_with(|next: char| next.is_ascii_hexdigit()) => {
                text.has_plain_backslash = true;
                text.out.push_str("\\U");
            }
            _ => {
                return Err(
                    self.failure(InvalidReason::Ambiguous, "a backslash in a string as `\\\\`")
                );
            }
        }
        self.at += 1 + sign.len_utf8();
        Ok(())
    }

    fn read_unicode_escape(&mut self, text: &mut StringDraft) -> Result<(), JsonReadFailure> {
        let Some(unit) = self.utf16_unit(self.at) else {
            return Err(self.failure(InvalidReason::Broken, "four hexadecimal digits after `\\u`"));
        };
        let mut length = 6;
        let mut code = unit;
        if (0xD800..0xDC00).contains(&unit)
            && let Some(low) = self.utf16_unit(self.at + 6)
            && (0xDC00..0xE000).contains(&low)
        {
            code = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
            length = 12;
        }
        let Some(sign) = char::from_u32(code) else {
            return Err(
                self.failure(InvalidReason::LoneSurrogate, "both halves of a surrogate pair")
            );
        };
        text.out.push(sign);
        self.at += length;
        Ok(())
    }

    fn utf16_unit(&self, at: usize) -> Option<u32> {
        let digits = self.text.get(at..at + 6)?.strip_prefix("\\u")?;
        digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(())?;
        u32::from_str_radix(digits, 16).ok()
    }

    /// Reads a key without quotes.
    pub(super) fn read_bare_key(&mut self) -> Result<String, JsonReadFailure> {
        let rest = self.rest();
        let length = rest
            .find(|sign: char| !(sign.is_alphanumeric() || matches!(sign, '_' | '$' | '-')))
            .unwrap_or(rest.len());
        let key = rest.get(..length).unwrap_or_default();
        let number = key.bytes().all(|byte| byte.is_ascii_digit());
        let zero = number && key.len() > 1 && key.starts_with('0');
        let name = key.starts_with(|sign: char| sign.is_alphabetic() || matches!(sign, '_' | '$'));
        let value = matches!(key, "true" | "false" | "null" | "True" | "False" | "None");
        if key.is_empty() || value || zero || !(number || name) {
            return Err(self.failure(InvalidReason::Broken, "a key in double quotes"));
        }
        self.record_repair(TextRepair::BareKey);
        self.at += length;
        Ok(key.to_owned())
    }
}

/// Decides the meaning of a straight double quote in a value. Quotes that belong to the
/// text come in pairs, and each one touches the text that it quotes.
fn straight_quote_meaning(text: &mut StringDraft, after: &str, ends: bool) -> QuoteMeaning {
    let opens = text.inner_quotes.is_multiple_of(2);
    if ends {
        return if opens { QuoteMeaning::End } else { QuoteMeaning::Ambiguous };
    }
    let hugs = if opens {
        let apart = |last: char| last.is_whitespace() || "([=>'/".contains(last);
        text.out.ends_with(apart) && !after.starts_with(char::is_whitespace)
    } else {
        let apart = |next: char| next.is_whitespace() || ".;!?)]<>'/|&-\"".contains(next);
        let inside = !text.out.ends_with(|last: char| last.is_whitespace() || last == '"');
        // A comma before the quote may belong to the sentence or to the document.
        let comma = text.out.ends_with(',') && !after.starts_with(char::is_whitespace);
        inside && !comma && after.starts_with(apart)
    };
    // With a colon behind it, the quoted text may be the next key of the document.
    if !hugs || after.trim_start().starts_with(':') {
        return QuoteMeaning::Ambiguous;
    }
    text.inner_quotes += 1;
    QuoteMeaning::Inner
}

/// Decides the meaning of a single quote that does not end the string. Between two
/// letters it is an apostrophe.
fn apostrophe_meaning(text: &StringDraft, after: &str) -> QuoteMeaning {
    let before = text.out.ends_with(char::is_alphanumeric);
    if before && after.starts_with(char::is_alphanumeric) {
        QuoteMeaning::Inner
    } else {
        QuoteMeaning::Ambiguous
    }
}

/// Whether the text behind a quote can follow a value.
fn can_follow_value(after: &str) -> bool {
    let next = after.trim_start();
    let spaced = next.len() < after.len();
    next.is_empty()
        || next.starts_with([',', '}', ']', '，'])
        || (spaced && (next.starts_with("//") || next.starts_with("/*") || next.starts_with('#')))
}

fn can_follow_key(after: &str) -> bool {
    let next = after.trim_start();
    next.starts_with([':', '：']) || next.starts_with("=>")
}

/// Whether the next member follows and only the comma is missing.
fn is_next_member(after: &str) -> bool {
    let next = after.trim_start();
    let space = after.get(..after.len() - next.len()).unwrap_or_default();
    let quoted = next.starts_with(['"', '\'', '“', '‘']);
    !space.is_empty() && (quoted || space.contains('\n')) && is_key_ahead(next)
}
