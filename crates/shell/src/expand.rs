//! What the words of a command say once quotes and known expansions are gone.
//!
//! Most words have neither, and are a slice of the line. The others are
//! built in the order bash has: braces, tilde, parameters, splitting, patterns.
//! Anything that would need a running shell makes the word unknown.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use crate::braces::{self, Braces};
use crate::limits::ITEMS_MAX;
use crate::line::{Known, Word};
use crate::parse::Parser;
use crate::scan::{Place, is_name};
use crate::state::State;
use crate::transform::transformed;
use crate::tree::{BRACE, EXPANDS, Id, QUOTED, RawWord, Tree};

/// Expands words of one text.
pub(crate) struct Expander<'t, 'a> {
    pub(crate) source: &'a str,
    pub(crate) tree: &'t Tree,
    pub(crate) state: &'t State,
}

/// One word in the making.
#[expect(clippy::struct_excessive_bools, reason = "each is a separate thing to know")]
#[derive(Default)]
struct Build {
    text: String,
    /// Places of quoted characters that would be a pattern without quotes.
    escapes: Vec<usize>,
    glob: bool,
    unknown: bool,
    home: bool,
    /// Something stands here, if only an empty quote.
    present: bool,
}

/// Whether the value is split into several words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Split {
    Yes,
    No,
}

impl<'a> Expander<'_, 'a> {
    /// The words one written word becomes: usually one, none for an empty
    /// variable, several for braces and lists.
    pub(crate) fn words(&self, raw: &RawWord, out: &mut Vec<Word<'a>>) {
        let text = self.slice(raw.start, raw.end);
        if raw.traits == 0 || text == "[" {
            out.push(Word::literal(text));
            return;
        }
        if raw.traits & BRACE != 0 {
            match braces::expand(text) {
                Braces::None => {}
                Braces::TooMany => {
                    out.push(Word::unknown(text));
                    return;
                }
                Braces::Words(_) if self.runs_commands(raw) => {
                    out.push(Word::unknown(text));
                    return;
                }
                Braces::Words(words) => {
                    for word in words {
                        self.written(&word, out);
                    }
                    return;
                }
            }
        }
        if let Some(inner) = simply_quoted(text, raw.traits) {
            out.push(Word::literal(inner));
            return;
        }
        if self.positional_list(text, out) {
            return;
        }
        if let Some(words) = self.array_words(text) {
            out.extend(words.iter().cloned());
            return;
        }
        if let Some(pattern) = self.matched_name(text) {
            out.push(Word::glob(String::from(pattern)));
            return;
        }
        self.build(raw, raw.start as usize, Split::Yes, out);
    }

    /// A word that is never split: the target of a redirection, a value.
    pub(crate) fn single(&self, raw: &RawWord, from: usize) -> Word<'a> {
        let text = self.slice(u32::try_from(from).unwrap_or(raw.end), raw.end);
        if raw.traits & (QUOTED | EXPANDS) == 0 && !text.starts_with('~') {
            return Word::literal(text);
        }
        let mut out = Vec::with_capacity(1);
        self.build(raw, from, Split::No, &mut out);
        out.pop().unwrap_or_else(|| Word::literal(""))
    }

    /// The body of a here-document.
    pub(crate) fn here(&self, raw: &RawWord) -> Word<'a> {
        let mut build = Build::default();
        let mut cursor = raw.expansions;
        let (at, end) = (raw.start as usize, raw.end as usize);
        self.double(at, end, 0, &mut cursor, &mut build);
        let mut out = Vec::with_capacity(1);
        build.finish(Split::No, &mut out);
        out.pop().unwrap_or_else(|| Word::literal(""))
    }

    /// Expands a word that only exists after brace expansion.
    fn written(&self, text: &str, out: &mut Vec<Word<'a>>) {
        let mut parser = Parser::new(text);
        let parsed = parser.word(Place::Argument);
        let at_end = parser.at == text.len();
        match parsed {
            Ok(Some(id)) if at_end => {
                let inner = Expander { source: text, tree: &parser.tree, state: self.state };
                let mut words = Vec::new();
                if let Some(raw) = parser.tree.word(id) {
                    let plain = RawWord { traits: raw.traits & !BRACE, ..*raw };
                    inner.words(&plain, &mut words);
                }
                for word in words {
                    out.push(word.into_owned());
                }
            }
            Ok(None) if text.is_empty() => {}
            _ => out.push(Word::unknown(String::from(text))),
        }
    }

    /// `"$@"` and `$*`, where the parameters are known.
    fn positional_list(&self, text: &str, out: &mut Vec<Word<'a>>) -> bool {
        let Some(parameters) = &self.state.positional else { return false };
        if !matches!(text, "$@" | "\"$@\"" | "$*" | "\"${@}\"" | "${@}") {
            return false;
        }
        out.extend(parameters.iter().cloned());
        true
    }

    /// `"${a[@]}"` and `${a[0]}`, where the words of the array are known.
    fn array_words(&self, text: &str) -> Option<&[Word<'static>]> {
        let quoted = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        let inside = quoted.unwrap_or(text).strip_prefix("${")?.strip_suffix('}')?;
        let (name, subscript) = inside.strip_suffix(']')?.split_once('[')?;
        let words = self.state.array(name)?;
        match subscript {
            "@" | "*" => Some(words),
            number => {
                let number: usize = number.parse().ok()?;
                words.get(number..=number)
            }
        }
    }

    /// The words between the parentheses of `a=(b c)`; none where they have
    /// places of their own.
    pub(crate) fn array(&self, text: &str) -> Option<Vec<Word<'static>>> {
        let mut parser = Parser::new(text);
        let mut words = Vec::new();
        loop {
            parser.skip_blanks();
            parser.skip_newlines();
            let Ok(Some(id)) = parser.word(Place::Argument) else { break };
            let raw = parser.tree.word(id).copied()?;
            let inner = Expander { source: text, tree: &parser.tree, state: self.state };
            let mut found = Vec::new();
            inner.words(&raw, &mut found);
            words.extend(found.into_iter().map(Word::into_owned));
        }
        let plain = parser.at == text.len() && words.len() <= ITEMS_MAX;
        (plain && !text.contains("]=")).then_some(words)
    }

    /// The variable of a loop over the names that a pattern matches, alone.
    fn matched_name(&self, text: &str) -> Option<&str> {
        let parameter = |name: &str| {
            let number = name.parse::<usize>().ok()?.checked_sub(1)?;
            let word = self.state.positional.as_ref()?.get(number)?;
            (word.known == Known::Glob).then_some(&*word.text)
        };
        let quoted = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        let name = quoted.unwrap_or(text).strip_prefix('$')?;
        let braced = name.strip_prefix('{').and_then(|name| name.strip_suffix('}'));
        let name = braced.unwrap_or(name);
        self.state.pattern(name).or_else(|| parameter(name))
    }

    fn runs_commands(&self, raw: &RawWord) -> bool {
        self.tree.expansions_from(raw.expansions).next().is_some()
    }

    fn slice(&self, start: u32, end: u32) -> &'a str {
        self.source.get(start as usize..end as usize).unwrap_or_default()
    }

    fn build(&self, raw: &RawWord, from: usize, split: Split, out: &mut Vec<Word<'a>>) {
        let end = raw.end as usize;
        let mut cursor = raw.expansions;
        let mut build = Build::default();
        let bytes = self.source.as_bytes();
        let text = self.source.get(from..end).unwrap_or_default();
        let last_bracket = text.rfind(']').map_or(0, |found| from + found);
        let mut at = from;
        while at < end {
            match bytes.get(at).copied().unwrap_or(0) {
                b'\\' => {
                    if bytes.get(at + 1) == Some(&b'\n') {
                        at += 2;
                        continue;
                    }
                    let next = self.source.get(at + 1..end).and_then(|rest| rest.chars().next());
                    build.quoted(next.unwrap_or('\\'));
                    at += 1 + next.map_or(0, char::len_utf8);
                }
                b'\'' => {
                    let inner = self.until(at + 1, end, b'\'');
                    build.quoted_text(inner);
                    at += inner.len() + 2;
                }
                b'"' => at = self.double(at + 1, end, b'"', &mut cursor, &mut build),
                b'$' => {
                    at = match bytes.get(at + 1) {
                        Some(b'\'') => build.ansi(self.source, at + 2, end),
                        Some(b'"') => self.double(at + 2, end, b'"', &mut cursor, &mut build),
                        _ => self.dollar(at, end, &mut cursor, &mut build, split, out),
                    };
                }
                b'`' => at = self.skip_expansion(at, end, &mut cursor, &mut build),
                b'<' | b'>' => {
                    // A process substitution: a pipe under a name of the shell's.
                    let past = self.end_of_expansion(at, &mut cursor).unwrap_or(end);
                    build.present = true;
                    build.text.push_str("/dev/fd/63");
                    at = past;
                }
                b'*' | b'?' | b'[' => {
                    // A bracket that nothing closes is itself: the program `[`.
                    build.glob |= bytes.get(at) != Some(&b'[') || at < last_bracket;
                    build.present = true;
                    build.text.push(char::from(bytes.get(at).copied().unwrap_or(b'*')));
                    at += 1;
                }
                b'~' if build.text.is_empty() && at == from => {
                    build.home = true;
                    // `~+` and `~-` are directories the shell was in.
                    build.unknown =
                        self.state.home || matches!(bytes.get(at + 1), Some(b'+' | b'-'));
                    build.text.push('~');
                    at += 1;
                }
                _ => {
                    let run = self.ordinary(at, end);
                    build.text.push_str(run);
                    build.present = true;
                    at += run.len().max(1);
                }
            }
        }
        build.finish(split, out);
    }

    /// The bytes from `at` that mean nothing special.
    fn ordinary(&self, at: usize, end: usize) -> &'a str {
        let rest = self.source.get(at..end).unwrap_or_default();
        let length = rest
            .bytes()
            .skip(1)
            .position(|byte| {
                matches!(
                    byte,
                    b'\\' | b'\'' | b'"' | b'$' | b'`' | b'<' | b'>' | b'*' | b'?' | b'['
                )
            })
            .map_or(rest.len(), |found| found + 1);
        rest.get(..length).unwrap_or(rest)
    }

    fn until(&self, at: usize, end: usize, close: u8) -> &'a str {
        let rest = self.source.get(at..end).unwrap_or_default();
        let length = rest.bytes().position(|byte| byte == close).unwrap_or(rest.len());
        rest.get(..length).unwrap_or(rest)
    }

    /// The inside of `"…"`, or of a here-document, which nothing closes.
    /// Answers the place after the closing quote.
    fn double(
        &self,
        from: usize,
        end: usize,
        close: u8,
        cursor: &mut Id,
        build: &mut Build,
    ) -> usize {
        let bytes = self.source.as_bytes();
        build.present = true;
        let mut at = from;
        while at < end {
            match bytes.get(at).copied().unwrap_or(0) {
                byte if byte == close => return at + 1,
                b'\\' => match bytes.get(at + 1) {
                    Some(b'\n') => at += 2,
                    Some(byte @ (b'$' | b'`' | b'"' | b'\\')) if *byte != b'"' || close != 0 => {
                        build.quoted(char::from(*byte));
                        at += 2;
                    }
                    _ => {
                        build.quoted('\\');
                        at += 1;
                    }
                },
                b'$' => at = self.dollar(at, end, cursor, build, Split::No, &mut Vec::new()),
                b'`' => at = self.skip_expansion(at, end, cursor, build),
                _ => {
                    let rest = self.source.get(at..end).unwrap_or_default();
                    let length = rest
                        .bytes()
                        .position(|byte| byte == close || matches!(byte, b'\\' | b'$' | b'`'))
                        .unwrap_or(rest.len());
                    build.quoted_text(rest.get(..length).unwrap_or_default());
                    at += length.max(1);
                }
            }
        }
        end
    }

    /// A `$` expansion; answers the place after it.
    fn dollar(
        &self,
        at: usize,
        end: usize,
        cursor: &mut Id,
        build: &mut Build,
        split: Split,
        out: &mut Vec<Word<'a>>,
    ) -> usize {
        let bytes = self.source.as_bytes();
        let name_end = match bytes.get(at + 1) {
            Some(b'(' | b'[') => return self.skip_expansion(at, end, cursor, build),
            Some(b'{') => {
                let past = self.end_of_expansion(at, cursor).unwrap_or(end);
                let inner = self.source.get(at + 2..past.saturating_sub(1)).unwrap_or_default();
                self.parameter(inner, at, past, build, split, out);
                return past;
            }
            Some(byte) if byte.is_ascii_alphabetic() || *byte == b'_' => {
                let rest = bytes.get(at + 1..end).unwrap_or_default();
                let name = rest.iter().take_while(|byte| is_name_byte(**byte)).count();
                at + 1 + name
            }
            Some(b'0'..=b'9' | b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!') => at + 2,
            _ => {
                build.text.push('$');
                build.present = true;
                return at + 1;
            }
        };
        let name = self.source.get(at + 1..name_end).unwrap_or_default();
        self.parameter(name, at, name_end, build, split, out);
        name_end
    }

    /// Puts a parameter's value in place, or leaves the expansion as it stands.
    fn parameter(
        &self,
        inner: &str,
        at: usize,
        past: usize,
        build: &mut Build,
        split: Split,
        out: &mut Vec<Word<'a>>,
    ) {
        let name = match inner.split_once(":-").or_else(|| inner.split_once('-')) {
            Some((name, _)) if self.state.value(name).is_some_and(|value| !value.is_empty()) => {
                name
            }
            _ => inner,
        };
        let value = self.parameter_value(name);
        let value = value.or_else(|| transformed(self.state, inner).map(Cow::Owned));
        if let Some(value) = value {
            if split == Split::Yes && self.state.ifs {
                build.leave(self.source.get(at..past).unwrap_or_default());
            } else if split == Split::Yes {
                build.split(&value, out);
            } else {
                build.quoted_text(&value);
            }
        } else if name == "HOME" && build.text.is_empty() && !self.state.home {
            build.home = true;
            build.text.push('~');
        } else {
            build.leave(self.source.get(at..past).unwrap_or_default());
        }
    }

    fn parameter_value(&self, name: &str) -> Option<Cow<'_, str>> {
        if is_name(name.as_bytes()) {
            return self.state.value(name).map(|value| Cow::Borrowed(&**value));
        }
        let number: usize = name.parse().ok()?;
        if number == 0 {
            return self.state.zero.as_deref().map(Cow::Borrowed);
        }
        let word = self.state.positional.as_ref()?.get(number.checked_sub(1)?)?;
        word.exact().map(Cow::Borrowed)
    }

    fn skip_expansion(&self, at: usize, end: usize, cursor: &mut Id, build: &mut Build) -> usize {
        let past = self.end_of_expansion(at, cursor).unwrap_or(end);
        build.leave(self.source.get(at..past).unwrap_or_default());
        past
    }

    /// Where the expansion that starts at `at` ends. Moves forward only.
    fn end_of_expansion(&self, at: usize, cursor: &mut Id) -> Option<usize> {
        while let Some(expansion) = self.tree.expansion(*cursor) {
            if expansion.start as usize >= at {
                let found = expansion.start as usize == at;
                return found.then_some(expansion.end as usize);
            }
            *cursor = expansion.next;
        }
        None
    }
}

impl Build {
    fn quoted(&mut self, char: char) {
        self.present = true;
        if matches!(char, '*' | '?' | '[' | '\\') {
            self.escapes.push(self.text.len());
        }
        self.text.push(char);
    }

    fn quoted_text(&mut self, text: &str) {
        self.present = true;
        if text.bytes().any(|byte| matches!(byte, b'*' | b'?' | b'[' | b'\\')) {
            text.chars().for_each(|char| self.quoted(char));
        } else {
            self.text.push_str(text);
        }
    }

    /// Leaves an expansion in the text as it was written.
    fn leave(&mut self, text: &str) {
        self.unknown = true;
        self.present = true;
        self.text.push_str(text);
    }

    /// Adds an unquoted value, which falls apart at blanks.
    fn split(&mut self, value: &str, out: &mut Vec<Word<'_>>) {
        let blank = |char: char| matches!(char, ' ' | '\t' | '\n');
        let mut parts = value.split(blank).filter(|part| !part.is_empty()).peekable();
        if value.starts_with(blank) {
            core::mem::take(self).finish(Split::Yes, out);
        }
        while let Some(part) = parts.next() {
            self.present = true;
            self.glob |= part.contains(['*', '?']) || (part.contains('[') && part.contains(']'));
            self.text.push_str(part);
            if parts.peek().is_some() || value.ends_with(blank) {
                core::mem::take(self).finish(Split::Yes, out);
            }
        }
    }

    /// Decodes `$'…'` from `at`; answers the place after the closing quote.
    fn ansi(&mut self, source: &str, at: usize, end: usize) -> usize {
        let (text, length) = crate::ansi::decode(source.get(at..end).unwrap_or_default());
        self.quoted_text(&text);
        self.present = true;
        at + length
    }

    fn finish(self, split: Split, out: &mut Vec<Word<'_>>) {
        if !self.present && self.text.is_empty() && !self.unknown {
            if split == Split::No {
                out.push(Word::literal(""));
            }
            return;
        }
        let known = if self.unknown {
            Known::Unknown
        } else if self.glob && split == Split::Yes {
            Known::Glob
        } else if self.home {
            Known::Home
        } else {
            Known::Literal
        };
        let mut text = self.text;
        if known == Known::Glob {
            for place in self.escapes.into_iter().rev() {
                text.insert(place, '\\');
            }
        }
        out.push(Word { text: Cow::Owned(text), known });
    }
}

/// The inside of a word that is one pair of quotes and nothing else.
fn simply_quoted(text: &str, traits: u8) -> Option<&str> {
    if traits & (EXPANDS | QUOTED) != QUOTED {
        return None;
    }
    let quote = text.bytes().next().filter(|byte| matches!(byte, b'\'' | b'"'))?;
    let inner = text.get(1..text.len().checked_sub(1)?)?;
    let plain = |byte: u8| byte != quote && (quote == b'\'' || byte != b'\\');
    (text.len() > 1 && text.as_bytes().last() == Some(&quote) && inner.bytes().all(plain))
        .then_some(inner)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
