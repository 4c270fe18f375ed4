//! Parses redirections and the bodies of here-documents.

use alloc::borrow::Cow;
use alloc::string::String;

use crate::shell_parser::{ShellParseError, ShellParser};
use crate::syntax_tree::{ArenaList, NONE, QUOTED, Redirect, RedirectOp, to_u32};
use crate::word_scanner::{WordPosition, is_name};

impl ShellParser<'_> {
    /// Reads a redirection if one starts here.
    pub(crate) fn parse_redirect(
        &mut self,
        redirects: &mut ArenaList,
    ) -> Result<bool, ShellParseError> {
        let (skip, descriptor) = match self.current_byte() {
            b'<' | b'>' => (0, None),
            b'&' if self.byte_at(1) == b'>' => (0, None),
            b'0'..=b'9' => self.read_descriptor(),
            b'{' => self.read_named_descriptor(),
            _ => return Ok(false),
        };
        let (first, second, third) =
            (self.byte_at(skip), self.byte_at(skip + 1), self.byte_at(skip + 2));
        let (op, length) = match (first, second, third) {
            (b'<' | b'>', b'(', _) => return Ok(false),
            (b'<', b'<', b'<') => (RedirectOp::HereString, 3),
            (b'<', b'<', b'-') => (RedirectOp::HereDocument, 3),
            (b'<', b'<', _) => (RedirectOp::HereDocument, 2),
            (b'<', b'>', _) => (RedirectOp::ReadWrite, 2),
            (b'>', b'>', _) => (RedirectOp::Append, 2),
            (b'&', b'>', b'>') => (RedirectOp::Append, 3),
            (b'<' | b'>', b'&', _) => (RedirectOp::Duplicate, 2),
            (b'>', b'|', _) | (b'&', b'>', _) => (RedirectOp::Output, 2),
            (b'<', _, _) => (RedirectOp::Input, 1),
            (b'>', _, _) => (RedirectOp::Output, 1),
            _ => return Ok(false),
        };
        let out = first == b'>';
        self.at += skip + length;
        self.skip_blanks();
        let Some(word) = self.read_word(WordPosition::Argument)? else {
            return Err(self.syntax_error());
        };
        let raw = self.tree.word(word).map_or((0, 0, 0), |word| (word.start, word.end, word.flags));
        let op = match op {
            // `>& file` writes a file; `>&2` and `>&-` do not.
            RedirectOp::Duplicate if out && !self.is_descriptor(raw.0, raw.1) => RedirectOp::Output,
            op => op,
        };
        let id = self.tree.link_redirect(
            redirects,
            Redirect {
                op,
                descriptor,
                word,
                body: (0, 0),
                strip_tabs: op == RedirectOp::HereDocument && length == 3,
                literal: raw.2 & QUOTED != 0 && self.is_quoted(raw.0, raw.1),
                next: NONE,
            },
        );
        if op == RedirectOp::HereDocument {
            self.pending_here_documents.push(id);
        }
        Ok(true)
    }

    /// Reads the digits directly before `<` or `>`.
    fn read_descriptor(&self) -> (usize, Option<u32>) {
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

    /// Reads `{name}` directly before `<` or `>`.
    fn read_named_descriptor(&self) -> (usize, Option<u32>) {
        const NOT: (usize, Option<u32>) = (usize::MAX / 2, None);
        let Some(rest) = self.bytes.get(self.at + 1..) else { return NOT };
        let Some(close) = rest.iter().take(64).position(|byte| *byte == b'}') else { return NOT };
        let name = rest.get(..close).unwrap_or_default();
        match rest.get(close + 1) {
            Some(b'<' | b'>') if is_name(name) => (close + 2, Some(u32::MAX)),
            _ => NOT,
        }
    }

    /// Whether a delimiter is quoted. A backslash that only continues the line is not
    /// a quote.
    fn is_quoted(&self, start: u32, end: u32) -> bool {
        let text = self.text.get(start as usize..end as usize).unwrap_or_default();
        text.replace("\\\n", "").bytes().any(|byte| matches!(byte, b'\'' | b'"' | b'\\'))
    }

    fn is_descriptor(&self, start: u32, end: u32) -> bool {
        let text = self.bytes.get(start as usize..end as usize).unwrap_or_default();
        let digits = text.strip_suffix(b"-").unwrap_or(text);
        digits.iter().all(u8::is_ascii_digit) || text.first() == Some(&b'$')
    }

    /// Reads the bodies of all pending here-documents. The first one starts here.
    pub(crate) fn read_here_bodies(&mut self) {
        let pending = core::mem::take(&mut self.pending_here_documents);
        for id in pending {
            let Some(redirect) = self.tree.redirect(id).copied() else { continue };
            let raw = self.tree.word(redirect.word).map_or((0, 0), |word| (word.start, word.end));
            let source = self.text;
            let raw = source.get(raw.0 as usize..raw.1 as usize).unwrap_or_default();
            let delimiter = unquote_delimiter(raw);
            let body = self.read_here_body(&delimiter, redirect);
            if let Some(redirect) = self.tree.redirects.get_mut(id as usize) {
                redirect.body = body;
            }
        }
    }

    fn read_here_body(&mut self, delimiter: &str, redirect: Redirect) -> (u32, u32) {
        let start = self.at;
        let mut continued = false;
        while self.at < self.bytes.len() {
            let line_start = self.at;
            let line_end = self.find_byte(b'\n').unwrap_or(self.bytes.len());
            let mut line = self.text.get(line_start..line_end).unwrap_or_default();
            let whole = line;
            if redirect.strip_tabs {
                line = line.trim_start_matches('\t');
            }
            if !continued {
                if line == delimiter {
                    self.at = (line_end + 1).min(self.bytes.len());
                    return (to_u32(start), to_u32(line_start));
                }
                // `EOF)` ends a here-document inside `$(…)`.
                if self.substitution_depth > 0
                    && let Some(rest) = line.strip_prefix(delimiter)
                    && rest.contains(')')
                {
                    self.at = line_end - rest.len();
                    return (to_u32(start), to_u32(line_start));
                }
            }
            continued = !redirect.literal && is_continued(whole);
            self.at = (line_end + 1).min(self.bytes.len());
        }
        // Without a closing delimiter the rest of the text is the body; bash only warns.
        (to_u32(start), to_u32(self.at))
    }
}

/// Whether a line ends in an odd number of backslashes.
fn is_continued(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// A delimiter without its quotes.
fn unquote_delimiter(raw: &str) -> Cow<'_, str> {
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
