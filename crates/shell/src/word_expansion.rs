//! Expands the words of a command: removes quotes and replaces known expansions.
//!
//! Most words have neither and are a slice of the line. The others are built in
//! bash's order: braces, tilde, parameters, splitting, patterns. An expansion that
//! only a running shell could compute makes the word unknown.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use crate::braces::{self, BraceExpansion};
use crate::limits::LOOP_ITEMS_MAX;
use crate::parameter_operators::apply_parameter_operator;
use crate::shell_line::{ShellWord, WordKind};
use crate::shell_parser::ShellParser;
use crate::shell_state::ShellState;
use crate::syntax_tree::{ArenaId, BRACE, EXPANDS, QUOTED, RawWord, SyntaxTree};
use crate::word_scanner::{WordPosition, is_name};

/// Expands words of one text.
pub(crate) struct Expander<'t, 'a> {
    pub(crate) source: &'a str,
    pub(crate) tree: &'t SyntaxTree,
    pub(crate) state: &'t ShellState,
}

/// One word under construction.
#[expect(clippy::struct_excessive_bools, reason = "each flag is an independent fact")]
#[derive(Default)]
struct WordBuilder {
    text: String,
    /// Positions of quoted characters that would be pattern signs without quotes.
    escape_positions: Vec<usize>,
    has_glob: bool,
    has_unknown: bool,
    starts_at_home: bool,
    /// The word exists, even if only as an empty pair of quotes.
    has_content: bool,
}

/// Whether the value of an expansion is split into several words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WordSplitting {
    Yes,
    No,
}

impl<'a> Expander<'_, 'a> {
    /// Expands one written word: usually to one word, to none for an empty
    /// variable, to several for braces and lists.
    pub(crate) fn expand_words(&self, raw: &RawWord, out: &mut Vec<ShellWord<'a>>) {
        let text = self.slice(raw.start, raw.end);
        if raw.flags == 0 || text == "[" {
            out.push(ShellWord::literal(text));
            return;
        }
        if raw.flags & BRACE != 0 {
            match braces::expand_braces(text) {
                BraceExpansion::None => {}
                BraceExpansion::TooMany => {
                    out.push(ShellWord::unknown(text));
                    return;
                }
                BraceExpansion::Words(_) if self.has_expansions(raw) => {
                    out.push(ShellWord::unknown(text));
                    return;
                }
                BraceExpansion::Words(words) => {
                    for word in words {
                        self.expand_brace_word(&word, out);
                    }
                    return;
                }
            }
        }
        if let Some(inner) = simply_quoted(text, raw.flags) {
            out.push(ShellWord::literal(inner));
            return;
        }
        if self.push_positional_list(text, out) {
            return;
        }
        if let Some(words) = self.array_words(text) {
            out.extend(words.iter().cloned());
            return;
        }
        if let Some(pattern) = self.pattern_of_loop_variable(text) {
            out.push(ShellWord::glob(String::from(pattern)));
            return;
        }
        self.build_word(raw, raw.start as usize, WordSplitting::Yes, out);
    }

    /// Expands a word that is never split: the target of a redirection, a value.
    pub(crate) fn expand_unsplit(&self, raw: &RawWord, from: usize) -> ShellWord<'a> {
        let text = self.slice(u32::try_from(from).unwrap_or(raw.end), raw.end);
        if raw.flags & (QUOTED | EXPANDS) == 0 && !text.starts_with('~') {
            return ShellWord::literal(text);
        }
        let mut out = Vec::with_capacity(1);
        self.build_word(raw, from, WordSplitting::No, &mut out);
        out.pop().unwrap_or_else(|| ShellWord::literal(""))
    }

    /// Expands the body of a here-document.
    pub(crate) fn expand_here_document(&self, raw: &RawWord) -> ShellWord<'a> {
        let mut build = WordBuilder::default();
        let mut cursor = raw.expansions;
        let (at, end) = (raw.start as usize, raw.end as usize);
        self.read_double_quoted(at, end, 0, &mut cursor, &mut build);
        let mut out = Vec::with_capacity(1);
        build.finish(WordSplitting::No, &mut out);
        out.pop().unwrap_or_else(|| ShellWord::literal(""))
    }

    /// Expands a word that brace expansion has produced.
    fn expand_brace_word(&self, text: &str, out: &mut Vec<ShellWord<'a>>) {
        let mut parser = ShellParser::new(text);
        let parsed = parser.read_word(WordPosition::Argument);
        let at_end = parser.at == text.len();
        match parsed {
            Ok(Some(id)) if at_end => {
                let inner = Expander { source: text, tree: &parser.tree, state: self.state };
                let mut words = Vec::new();
                if let Some(raw) = parser.tree.word(id) {
                    let plain = RawWord { flags: raw.flags & !BRACE, ..*raw };
                    inner.expand_words(&plain, &mut words);
                }
                for word in words {
                    out.push(word.into_owned());
                }
            }
            Ok(None) if text.is_empty() => {}
            _ => out.push(ShellWord::unknown(String::from(text))),
        }
    }

    /// Expands `"$@"` and `$*`. Returns false where the parameters are not known.
    fn push_positional_list(&self, text: &str, out: &mut Vec<ShellWord<'a>>) -> bool {
        let Some(parameters) = &self.state.positional else { return false };
        if !matches!(text, "$@" | "\"$@\"" | "$*" | "\"${@}\"" | "${@}") {
            return false;
        }
        out.extend(parameters.iter().cloned());
        true
    }

    /// The words for `"${a[@]}"` and `${a[0]}`, where the array is known.
    fn array_words(&self, text: &str) -> Option<&[ShellWord<'static>]> {
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

    /// The words between the parentheses of `a=(b c)`. `None` where an element has
    /// an explicit index (`[2]=b`).
    pub(crate) fn array_elements(&self, text: &str) -> Option<Vec<ShellWord<'static>>> {
        let mut parser = ShellParser::new(text);
        let mut words = Vec::new();
        loop {
            parser.skip_blanks();
            parser.skip_newlines();
            let Ok(Some(id)) = parser.read_word(WordPosition::Argument) else { break };
            let raw = parser.tree.word(id).copied()?;
            let inner = Expander { source: text, tree: &parser.tree, state: self.state };
            let mut found = Vec::new();
            inner.expand_words(&raw, &mut found);
            words.extend(found.into_iter().map(ShellWord::into_owned));
        }
        let plain = parser.at == text.len() && words.len() <= LOOP_ITEMS_MAX;
        (plain && !text.contains("]=")).then_some(words)
    }

    /// The pattern behind a word that is only a loop variable, where the loop runs
    /// over the names that a pattern matches.
    fn pattern_of_loop_variable(&self, text: &str) -> Option<&str> {
        let parameter = |name: &str| {
            let number = name.parse::<usize>().ok()?.checked_sub(1)?;
            let word = self.state.positional.as_ref()?.get(number)?;
            (word.kind == WordKind::Glob).then_some(&*word.text)
        };
        let quoted = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        let name = quoted.unwrap_or(text).strip_prefix('$')?;
        let braced = name.strip_prefix('{').and_then(|name| name.strip_suffix('}'));
        let name = braced.unwrap_or(name);
        self.state.pattern(name).or_else(|| parameter(name))
    }

    fn has_expansions(&self, raw: &RawWord) -> bool {
        self.tree.expansions_from(raw.expansions).next().is_some()
    }

    fn slice(&self, start: u32, end: u32) -> &'a str {
        self.source.get(start as usize..end as usize).unwrap_or_default()
    }

    fn build_word(
        &self,
        raw: &RawWord,
        from: usize,
        split: WordSplitting,
        out: &mut Vec<ShellWord<'a>>,
    ) {
        let end = raw.end as usize;
        let mut cursor = raw.expansions;
        let mut build = WordBuilder::default();
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
                    build.push_quoted_char(next.unwrap_or('\\'));
                    at += 1 + next.map_or(0, char::len_utf8);
                }
                b'\'' => {
                    let inner = self.text_until(at + 1, end, b'\'');
                    build.push_quoted_text(inner);
                    at += inner.len() + 2;
                }
                b'"' => at = self.read_double_quoted(at + 1, end, b'"', &mut cursor, &mut build),
                b'$' => {
                    at = match bytes.get(at + 1) {
                        Some(b'\'') => build.push_ansi_quoted(self.source, at + 2, end),
                        Some(b'"') => {
                            self.read_double_quoted(at + 2, end, b'"', &mut cursor, &mut build)
                        }
                        _ => self.read_dollar(at, end, &mut cursor, &mut build, split, out),
                    };
                }
                b'`' => at = self.skip_expansion(at, end, &mut cursor, &mut build),
                b'<' | b'>' => {
                    // A process substitution: the shell passes a pipe as a file name.
                    let past = self.end_of_expansion(at, &mut cursor).unwrap_or(end);
                    build.has_content = true;
                    build.text.push_str("/dev/fd/63");
                    at = past;
                }
                b'*' | b'?' | b'[' => {
                    // An unclosed bracket is an ordinary character: the program `[`.
                    build.has_glob |= bytes.get(at) != Some(&b'[') || at < last_bracket;
                    build.has_content = true;
                    build.text.push(char::from(bytes.get(at).copied().unwrap_or(b'*')));
                    at += 1;
                }
                b'~' if build.text.is_empty() && at == from => {
                    build.starts_at_home = true;
                    // `~+` and `~-` are the current and the previous directory.
                    build.has_unknown =
                        self.state.home_changed || matches!(bytes.get(at + 1), Some(b'+' | b'-'));
                    build.text.push('~');
                    at += 1;
                }
                _ => {
                    let run = self.ordinary_run(at, end);
                    build.text.push_str(run);
                    build.has_content = true;
                    at += run.len().max(1);
                }
            }
        }
        build.finish(split, out);
    }

    /// The bytes from `at` up to the next special character.
    fn ordinary_run(&self, at: usize, end: usize) -> &'a str {
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

    fn text_until(&self, at: usize, end: usize, close: u8) -> &'a str {
        let rest = self.source.get(at..end).unwrap_or_default();
        let length = rest.bytes().position(|byte| byte == close).unwrap_or(rest.len());
        rest.get(..length).unwrap_or(rest)
    }

    /// Reads the text of `"…"`, or of a here-document, which has no closing quote.
    /// Returns the position after the closing quote.
    fn read_double_quoted(
        &self,
        from: usize,
        end: usize,
        close: u8,
        cursor: &mut ArenaId,
        build: &mut WordBuilder,
    ) -> usize {
        let bytes = self.source.as_bytes();
        build.has_content = true;
        let mut at = from;
        while at < end {
            match bytes.get(at).copied().unwrap_or(0) {
                byte if byte == close => return at + 1,
                b'\\' => match bytes.get(at + 1) {
                    Some(b'\n') => at += 2,
                    Some(byte @ (b'$' | b'`' | b'"' | b'\\')) if *byte != b'"' || close != 0 => {
                        build.push_quoted_char(char::from(*byte));
                        at += 2;
                    }
                    _ => {
                        build.push_quoted_char('\\');
                        at += 1;
                    }
                },
                b'$' => {
                    at = self.read_dollar(
                        at,
                        end,
                        cursor,
                        build,
                        WordSplitting::No,
                        &mut Vec::new(),
                    );
                }
                b'`' => at = self.skip_expansion(at, end, cursor, build),
                _ => {
                    let rest = self.source.get(at..end).unwrap_or_default();
                    let length = rest
                        .bytes()
                        .position(|byte| byte == close || matches!(byte, b'\\' | b'$' | b'`'))
                        .unwrap_or(rest.len());
                    build.push_quoted_text(rest.get(..length).unwrap_or_default());
                    at += length.max(1);
                }
            }
        }
        end
    }

    /// Reads a `$` expansion. Returns the position after it.
    fn read_dollar(
        &self,
        at: usize,
        end: usize,
        cursor: &mut ArenaId,
        build: &mut WordBuilder,
        split: WordSplitting,
        out: &mut Vec<ShellWord<'a>>,
    ) -> usize {
        let bytes = self.source.as_bytes();
        let name_end = match bytes.get(at + 1) {
            Some(b'(' | b'[') => return self.skip_expansion(at, end, cursor, build),
            Some(b'{') => {
                let past = self.end_of_expansion(at, cursor).unwrap_or(end);
                let inner = self.source.get(at + 2..past.saturating_sub(1)).unwrap_or_default();
                self.expand_parameter(inner, at, past, build, split, out);
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
                build.has_content = true;
                return at + 1;
            }
        };
        let name = self.source.get(at + 1..name_end).unwrap_or_default();
        self.expand_parameter(name, at, name_end, build, split, out);
        name_end
    }

    /// Adds the value of a parameter, or the unexpanded text if the value is not known.
    fn expand_parameter(
        &self,
        inner: &str,
        at: usize,
        past: usize,
        build: &mut WordBuilder,
        split: WordSplitting,
        out: &mut Vec<ShellWord<'a>>,
    ) {
        let name = match inner.split_once(":-").or_else(|| inner.split_once('-')) {
            Some((name, _)) if self.state.value(name).is_some_and(|value| !value.is_empty()) => {
                name
            }
            _ => inner,
        };
        let value = self.parameter_value(name);
        let value = value.or_else(|| apply_parameter_operator(self.state, inner).map(Cow::Owned));
        if let Some(value) = value {
            if split == WordSplitting::Yes && self.state.ifs_changed {
                build.push_unexpanded(self.source.get(at..past).unwrap_or_default());
            } else if split == WordSplitting::Yes {
                build.push_split_value(&value, out);
            } else {
                build.push_quoted_text(&value);
            }
        } else if name == "HOME" && build.text.is_empty() && !self.state.home_changed {
            build.starts_at_home = true;
            build.text.push('~');
        } else {
            build.push_unexpanded(self.source.get(at..past).unwrap_or_default());
        }
    }

    fn parameter_value(&self, name: &str) -> Option<Cow<'_, str>> {
        if is_name(name.as_bytes()) {
            return self.state.value(name).map(|value| Cow::Borrowed(&**value));
        }
        let number: usize = name.parse().ok()?;
        if number == 0 {
            return self.state.script_name.as_deref().map(Cow::Borrowed);
        }
        let word = self.state.positional.as_ref()?.get(number.checked_sub(1)?)?;
        word.exact_text().map(Cow::Borrowed)
    }

    fn skip_expansion(
        &self,
        at: usize,
        end: usize,
        cursor: &mut ArenaId,
        build: &mut WordBuilder,
    ) -> usize {
        let past = self.end_of_expansion(at, cursor).unwrap_or(end);
        build.push_unexpanded(self.source.get(at..past).unwrap_or_default());
        past
    }

    /// The end of the expansion that starts at `at`. The cursor only moves forward.
    fn end_of_expansion(&self, at: usize, cursor: &mut ArenaId) -> Option<usize> {
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

impl WordBuilder {
    fn push_quoted_char(&mut self, char: char) {
        self.has_content = true;
        if matches!(char, '*' | '?' | '[' | '\\') {
            self.escape_positions.push(self.text.len());
        }
        self.text.push(char);
    }

    fn push_quoted_text(&mut self, text: &str) {
        self.has_content = true;
        if text.bytes().any(|byte| matches!(byte, b'*' | b'?' | b'[' | b'\\')) {
            text.chars().for_each(|char| self.push_quoted_char(char));
        } else {
            self.text.push_str(text);
        }
    }

    /// Adds an expansion unexpanded, as it is written in the line.
    fn push_unexpanded(&mut self, text: &str) {
        self.has_unknown = true;
        self.has_content = true;
        self.text.push_str(text);
    }

    /// Adds an unquoted value, which bash splits at blanks.
    fn push_split_value(&mut self, value: &str, out: &mut Vec<ShellWord<'_>>) {
        let blank = |char: char| matches!(char, ' ' | '\t' | '\n');
        let mut parts = value.split(blank).filter(|part| !part.is_empty()).peekable();
        if value.starts_with(blank) {
            core::mem::take(self).finish(WordSplitting::Yes, out);
        }
        while let Some(part) = parts.next() {
            self.has_content = true;
            self.has_glob |=
                part.contains(['*', '?']) || (part.contains('[') && part.contains(']'));
            self.text.push_str(part);
            if parts.peek().is_some() || value.ends_with(blank) {
                core::mem::take(self).finish(WordSplitting::Yes, out);
            }
        }
    }

    /// Decodes `$'…'` from `at`. Returns the position after the closing quote.
    fn push_ansi_quoted(&mut self, source: &str, at: usize, end: usize) -> usize {
        let (text, length) =
            crate::ansi_quotes::decode_ansi_quotes(source.get(at..end).unwrap_or_default());
        self.push_quoted_text(&text);
        self.has_content = true;
        at + length
    }

    fn finish(self, split: WordSplitting, out: &mut Vec<ShellWord<'_>>) {
        if !self.has_content && self.text.is_empty() && !self.has_unknown {
            if split == WordSplitting::No {
                out.push(ShellWord::literal(""));
            }
            return;
        }
        let known = if self.has_unknown {
            WordKind::Unknown
        } else if self.has_glob && split == WordSplitting::Yes {
            WordKind::Glob
        } else if self.starts_at_home {
            WordKind::Home
        } else {
            WordKind::Literal
        };
        let mut text = self.text;
        if known == WordKind::Glob {
            for position in self.escape_positions.into_iter().rev() {
                text.insert(position, '\\');
            }
        }
        out.push(ShellWord { text: Cow::Owned(text), kind: known });
    }
}

/// The text inside a word that is one pair of quotes and nothing else.
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
