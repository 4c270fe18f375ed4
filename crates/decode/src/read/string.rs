//! Strings: where they end, and what escapes mean.
//!
//! The hard question is whether a quote is the end of its string. It is if what
//! follows can follow a string. If not, it belongs to the text, and such quotes
//! must come in pairs; a string of which that can't be said is refused.

use super::look::key_ahead;
use super::{Reader, Stop};
use crate::decoded::{Reason, Repair};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Key,
    Value,
}

/// What a quote is.
enum Quote {
    End,
    Inner,
    Doubtful,
}

/// A string while it is read.
#[derive(Default)]
struct Text {
    out: String,
    /// Quotes that belong to the text.
    inner: usize,
    control: bool,
    /// A backslash that begins no escape was kept.
    kept: bool,
    /// An escape with a letter was taken for what it says.
    lettered: bool,
}

impl Reader<'_> {
    pub(super) fn string_key(&mut self) -> Result<String, Stop> {
        self.string(Role::Key)
    }

    pub(super) fn string_value(&mut self) -> Result<String, Stop> {
        self.string(Role::Value)
    }

    fn string(&mut self, role: Role) -> Result<String, Stop> {
        let Some(open) = self.peek() else { return Err(self.stop(Reason::Broken, "a string")) };
        let triple = self.lenient() && role == Role::Value && self.rest().starts_with("\"\"\"");
        if triple {
            self.at += 3;
            return self.enclosed("\"\"\"");
        }
        self.at += open.len_utf8();
        match open {
            '"' => {}
            '`' => return self.enclosed("`"),
            _ => self.note(Repair::Quotes),
        }
        let close = match open {
            '“' => '”',
            '‘' => '’',
            same => same,
        };
        let mut text = Text::default();
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
                None => return Err(self.stop(Reason::Broken, "the closing quote of a string")),
                Some('\\') => self.escape(&mut text)?,
                Some(sign) if sign < ' ' => self.control(&mut text, sign)?,
                Some(sign) => match self.quote(role, close, sign, &mut text) {
                    Quote::End => {
                        self.at += sign.len_utf8();
                        return self.finish(text);
                    }
                    Quote::Inner => {
                        text.out.push(sign);
                        self.at += sign.len_utf8();
                    }
                    Quote::Doubtful => {
                        return Err(
                            self.stop(Reason::Ambiguous, "quotes inside a string as `\\\"`")
                        );
                    }
                },
            }
        }
    }

    /// A string between marks that can't be mistaken, with line breaks as they are.
    fn enclosed(&mut self, mark: &str) -> Result<String, Stop> {
        self.note(Repair::Quotes);
        let mut text = Text::default();
        loop {
            let rest = self.rest();
            match self.peek() {
                None => return Err(self.stop(Reason::Broken, "the closing quote of a string")),
                Some('\\') => self.escape(&mut text)?,
                Some(_) if rest.starts_with(mark) => break,
                Some('$') if mark == "`" && rest.starts_with("${") => {
                    return Err(self.stop(Reason::Ambiguous, "a text without `${…}`"));
                }
                Some(sign) => {
                    text.out.push(sign);
                    self.at += sign.len_utf8();
                }
            }
        }
        self.at += mark.len();
        if !ends_value(self.rest()) {
            return Err(self.stop(Reason::Ambiguous, "a comma or a closing bracket"));
        }
        self.finish(text)
    }

    fn control(&mut self, text: &mut Text, sign: char) -> Result<(), Stop> {
        if !self.lenient() {
            return Err(self.stop(Reason::Broken, "line breaks in strings as `\\n`"));
        }
        text.control = true;
        text.out.push(sign);
        self.at += 1;
        Ok(())
    }

    fn quote(&self, role: Role, close: char, sign: char, text: &mut Text) -> Quote {
        if !self.lenient() {
            return Quote::End;
        }
        let after = self.rest().get(sign.len_utf8()..).unwrap_or_default();
        if sign != close {
            // A straight quote inside curly ones: text, unless it could be the end.
            return if ends_value(after) || ends_key(after) {
                Quote::Doubtful
            } else {
                Quote::Inner
            };
        }
        if role == Role::Key {
            return if close == '"' || ends_key(after) {
                Quote::End
            } else {
                apostrophe(text, after)
            };
        }
        let ends = ends_value(after) || next_member(after);
        match close {
            '"' => straight(text, after, ends),
            _ if ends => Quote::End,
            _ => apostrophe(text, after),
        }
    }

    /// Decides on a string as a whole.
    fn finish(&mut self, text: Text) -> Result<String, Stop> {
        let swallowed = text.inner > 0 && text.control;
        if swallowed || (text.kept && text.lettered) {
            return Err(self.stop(Reason::Ambiguous, "quotes and backslashes in strings escaped"));
        }
        for (happened, repair) in [
            (text.inner > 0, Repair::InnerQuotes),
            (text.control, Repair::ControlCharacter),
            (text.kept, Repair::Backslash),
        ] {
            if happened {
                self.note(repair);
            }
        }
        Ok(text.out)
    }

    fn escape(&mut self, text: &mut Text) -> Result<(), Stop> {
        let mut rest = self.rest().chars();
        rest.next();
        let Some(sign) = rest.next() else {
            self.at = self.text.len();
            return Err(self.stop(Reason::Broken, "the rest of an escape"));
        };
        let plain = match sign {
            '"' | '\\' | '/' => Some(sign),
            'b' => Some('\u{8}'),
            'f' => Some('\u{c}'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'u' => {
                text.lettered = true;
                return self.unicode(text);
            }
            _ => None,
        };
        if let Some(plain) = plain {
            text.lettered |= sign.is_ascii_alphabetic();
            text.out.push(plain);
            self.at += 2;
            return Ok(());
        }
        if !self.lenient() {
            return Err(self.stop(Reason::Broken, "an escape that JSON has"));
        }
        match sign {
            '\'' => {
                self.note(Repair::Backslash);
                text.out.push('\'');
            }
            // Nobody escapes a letter in vain: these are paths and patterns. The
            // letters left out are escapes elsewhere.
            letter if letter.is_ascii_alphabetic() && !"xaveUN".contains(letter) => {
                text.kept = true;
                text.out.push('\\');
                text.out.push(letter);
            }
            'U' if !rest.as_str().starts_with(|next: char| next.is_ascii_hexdigit()) => {
                text.kept = true;
                text.out.push_str("\\U");
            }
            _ => return Err(self.stop(Reason::Ambiguous, "a backslash in a string as `\\\\`")),
        }
        self.at += 1 + sign.len_utf8();
        Ok(())
    }

    fn unicode(&mut self, text: &mut Text) -> Result<(), Stop> {
        let Some(unit) = self.unit(self.at) else {
            return Err(self.stop(Reason::Broken, "four hexadecimal digits after `\\u`"));
        };
        let mut length = 6;
        let mut code = unit;
        if (0xD800..0xDC00).contains(&unit)
            && let Some(low) = self.unit(self.at + 6)
            && (0xDC00..0xE000).contains(&low)
        {
            code = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
            length = 12;
        }
        let Some(sign) = char::from_u32(code) else {
            return Err(self.stop(Reason::LoneSurrogate, "both halves of the character"));
        };
        text.out.push(sign);
        self.at += length;
        Ok(())
    }

    fn unit(&self, at: usize) -> Option<u32> {
        let digits = self.text.get(at..at + 6)?.strip_prefix("\\u")?;
        digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(())?;
        u32::from_str_radix(digits, 16).ok()
    }

    /// A key without quotes.
    pub(super) fn bare_key(&mut self) -> Result<String, Stop> {
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
            return Err(self.stop(Reason::Broken, "a key in double quotes"));
        }
        self.note(Repair::BareKey);
        self.at += length;
        Ok(key.to_owned())
    }
}

/// A straight double quote in a value. Those that belong to the text come in pairs, and
/// each is next to what it quotes.
fn straight(text: &mut Text, after: &str, ends: bool) -> Quote {
    let opens = text.inner.is_multiple_of(2);
    if ends {
        return if opens { Quote::End } else { Quote::Doubtful };
    }
    let hugs = if opens {
        let apart = |last: char| last.is_whitespace() || "([=>'/".contains(last);
        text.out.ends_with(apart) && !after.starts_with(char::is_whitespace)
    } else {
        let apart = |next: char| next.is_whitespace() || ".;!?)]<>'/|&-\"".contains(next);
        let inside = !text.out.ends_with(|last: char| last.is_whitespace() || last == '"');
        // A comma before it is a sentence that goes on, or one of the document.
        let comma = text.out.ends_with(',') && !after.starts_with(char::is_whitespace);
        inside && !comma && after.starts_with(apart)
    };
    // With a colon it may be a key of the document that was swallowed.
    if !hugs || after.trim_start().starts_with(':') {
        return Quote::Doubtful;
    }
    text.inner += 1;
    Quote::Inner
}

/// A single quote that ends nothing: between two letters it is an apostrophe.
fn apostrophe(text: &Text, after: &str) -> Quote {
    let before = text.out.ends_with(char::is_alphanumeric);
    if before && after.starts_with(char::is_alphanumeric) { Quote::Inner } else { Quote::Doubtful }
}

/// Whether what follows can follow a value.
fn ends_value(after: &str) -> bool {
    let next = after.trim_start();
    let spaced = next.len() < after.len();
    next.is_empty()
        || next.starts_with([',', '}', ']', '，'])
        || (spaced && (next.starts_with("//") || next.starts_with("/*") || next.starts_with('#')))
}

fn ends_key(after: &str) -> bool {
    let next = after.trim_start();
    next.starts_with([':', '：']) || next.starts_with("=>")
}

/// Whether a member follows, and only its comma is missing.
fn next_member(after: &str) -> bool {
    let next = after.trim_start();
    let space = after.get(..after.len() - next.len()).unwrap_or_default();
    let quoted = next.starts_with(['"', '\'', '“', '‘']);
    !space.is_empty() && (quoted || space.contains('\n')) && key_ahead(next)
}
