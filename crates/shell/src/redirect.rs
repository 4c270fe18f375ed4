//! Redirections, and the bodies of here-documents.

use alloc::borrow::Cow;
use alloc::string::String;

use crate::parse::{Halt, Parser};
use crate::scan::{Place, is_name};
use crate::tree::{Chain, NONE, QUOTED, Redirect, RedirectOp, number};

impl Parser<'_> {
    /// Reads a redirection if one starts here.
    pub(crate) fn redirect(&mut self, redirects: &mut Chain) -> Result<bool, Halt> {
        let (skip, descriptor) = match self.byte() {
            b'<' | b'>' => (0, None),
            b'&' if self.byte_at(1) == b'>' => (0, None),
            b'0'..=b'9' => self.descriptor(),
            b'{' => self.named_descriptor(),
            _ => return Ok(false),
        };
        let (first, second, third) =
            (self.byte_at(skip), self.byte_at(skip + 1), self.byte_at(skip + 2));
        let (op, length) = match (first, second, third) {
            (b'<' | b'>', b'(', _) => return Ok(false),
            (b'<', b'<', b'<') => (RedirectOp::HereString, 3),
            (b'<', b'<', b'-') => (RedirectOp::Here, 3),
            (b'<', b'<', _) => (RedirectOp::Here, 2),
            (b'<', b'>', _) => (RedirectOp::Both, 2),
            (b'>', b'>', _) => (RedirectOp::Append, 2),
            (b'&', b'>', b'>') => (RedirectOp::Append, 3),
            (b'<' | b'>', b'&', _) => (RedirectOp::Duplicate, 2),
            (b'>', b'|', _) | (b'&', b'>', _) => (RedirectOp::Out, 2),
            (b'<', _, _) => (RedirectOp::In, 1),
            (b'>', _, _) => (RedirectOp::Out, 1),
            _ => return Ok(false),
        };
        let out = first == b'>';
        self.at += skip + length;
        self.skip_blanks();
        let Some(word) = self.word(Place::Argument)? else { return Err(self.syntax()) };
        let raw =
            self.tree.word(word).map_or((0, 0, 0), |word| (word.start, word.end, word.traits));
        let op = match op {
            // `>& file` writes a file, `>&2` and `>&-` do not.
            RedirectOp::Duplicate if out && !self.is_descriptor(raw.0, raw.1) => RedirectOp::Out,
            op => op,
        };
        let id = self.tree.link_redirect(
            redirects,
            Redirect {
                op,
                descriptor,
                word,
                body: (0, 0),
                strip_tabs: op == RedirectOp::Here && length == 3,
                literal: raw.2 & QUOTED != 0 && self.is_quoted(raw.0, raw.1),
                next: NONE,
            },
        );
        if op == RedirectOp::Here {
            self.pending.push(id);
        }
        Ok(true)
    }

    /// Digits directly before `<` or `>`.
    fn descriptor(&self) -> (usize, Option<u32>) {
        let mut length = 0;
        let mut value = 0_u32;
        while let digit @ b'0'..=b'9' = self.byte_at(length) {
            value = value.saturating_mul(10).saturating_add(u32::from(digit - b'0'));
            length += 1;
        }
        match self.byte_at(length) {
            b'<' | b'>' => (length, Some(value)),
            _ => (usize::MAX / 2, None),
        }
    }

    /// `{name}` directly before `<` or `>`.
    fn named_descriptor(&self) -> (usize, Option<u32>) {
        const NOT: (usize, Option<u32>) = (usize::MAX / 2, None);
        let Some(rest) = self.bytes.get(self.at + 1..) else { return NOT };
        let Some(close) = rest.iter().take(64).position(|byte| *byte == b'}') else { return NOT };
        let name = rest.get(..close).unwrap_or_default();
        match rest.get(close + 1) {
            Some(b'<' | b'>') if is_name(name) => (close + 2, Some(u32::MAX)),
            _ => NOT,
        }
    }

    /// Whether a delimiter is quoted: a continued line in it is no quote.
    fn is_quoted(&self, start: u32, end: u32) -> bool {
        let text = self.text.get(start as usize..end as usize).unwrap_or_default();
        text.replace("\\\n", "").bytes().any(|byte| matches!(byte, b'\'' | b'"' | b'\\'))
    }

    fn is_descriptor(&self, start: u32, end: u32) -> bool {
        let text = self.bytes.get(start as usize..end as usize).unwrap_or_default();
        let digits = text.strip_suffix(b"-").unwrap_or(text);
        digits.iter().all(u8::is_ascii_digit) || text.first() == Some(&b'$')
    }

    /// Reads the bodies of all pending here-documents, which start here.
    pub(crate) fn here_bodies(&mut self) {
        let pending = core::mem::take(&mut self.pending);
        for id in pending {
            let Some(redirect) = self.tree.redirect(id).copied() else { continue };
            let raw = self.tree.word(redirect.word).map_or((0, 0), |word| (word.start, word.end));
            let source = self.text;
            let raw = source.get(raw.0 as usize..raw.1 as usize).unwrap_or_default();
            let delimiter = unquoted(raw);
            let body = self.here_body(&delimiter, redirect);
            if let Some(redirect) = self.tree.redirects.get_mut(id as usize) {
                redirect.body = body;
            }
        }
    }

    fn here_body(&mut self, delimiter: &str, redirect: Redirect) -> (u32, u32) {
        let start = self.at;
        let mut continued = false;
        while self.at < self.bytes.len() {
            let line_start = self.at;
            let line_end = self.find(b'\n').unwrap_or(self.bytes.len());
            let mut line = self.text.get(line_start..line_end).unwrap_or_default();
            let whole = line;
            if redirect.strip_tabs {
                line = line.trim_start_matches('\t');
            }
            if !continued {
                if line == delimiter {
                    self.at = (line_end + 1).min(self.bytes.len());
                    return (number(start), number(line_start));
                }
                // `EOF)` ends a here-document inside `$(…)`.
                if self.substitutions > 0
                    && let Some(rest) = line.strip_prefix(delimiter)
                    && rest.contains(')')
                {
                    self.at = line_end - rest.len();
                    return (number(start), number(line_start));
                }
            }
            continued = !redirect.literal && ends_continued(whole);
            self.at = (line_end + 1).min(self.bytes.len());
        }
        // Without a delimiter the rest is the body; bash only warns.
        (number(start), number(self.at))
    }
}

/// Whether a line ends in an odd number of backslashes.
fn ends_continued(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// A delimiter with its quotes taken off.
fn unquoted(raw: &str) -> Cow<'_, str> {
    if !raw.bytes().any(|byte| matches!(byte, b'\'' | b'"' | b'\\')) {
        return Cow::Borrowed(raw);
    }
    let mut plain = String::with_capacity(raw.len());
    let mut quote = None;
    let mut chars = raw.chars().peekable();
    if raw.starts_with("$'") || raw.starts_with("$\"") {
        chars.next();
    }
    while let Some(char) = chars.next() {
        match (quote, char) {
            (None, '\'' | '"') => quote = Some(char),
            (Some(open), _) if open == char => quote = None,
            (None | Some('"'), '\\') => plain.extend(chars.next().filter(|next| *next != '\n')),
            _ => plain.push(char),
        }
    }
    Cow::Owned(plain)
}
