//! Walks shell texts inside the line: `bash -c`, `eval`, backticks,
//! here-documents, the bodies of functions.

use alloc::borrow::Cow;
use alloc::string::String;

use crate::continued_lines;
use crate::limits::{LINE_BYTES_MAX, NESTED_TEXTS_MAX};
use crate::shell_line::{LineSpan, OpaqueReason, ShellWord, WordKind};
use crate::shell_parser::{ShellParseError, ShellParser, parse_shell};
use crate::shell_walk::{ExitProof, ShellWalk, StreamContent};
use crate::syntax_tree::{ArenaId, ArenaList, EXPANDS, NONE, RawWord, to_u32};
use crate::word_expansion::Expander;

impl<'a> ShellWalk<'a> {
    /// Walks a text in the current state.
    pub(crate) fn walk_text(&mut self, text: Cow<'a, str>, exit: ExitProof) {
        match text {
            Cow::Borrowed(text) => self.walk_borrowed_text(text, exit),
            Cow::Owned(text) => {
                let around = self.enclosing_span;
                self.walk_owned_text(&text, None, around, exit);
            }
        }
    }

    /// Walks a text that is a slice of the current text.
    pub(crate) fn walk_borrowed_text(&mut self, text: &'a str, exit: ExitProof) {
        if !self.enter_text(text) {
            return;
        }
        match parse_shell(text) {
            Ok((tree, root)) => {
                let outer = core::mem::replace(&mut self.source, text);
                self.walk_node(&tree, root, exit);
                self.source = outer;
            }
            Err(halt) => match continued_lines::join_continued_lines(text)
                .filter(|text| parse_shell(text).is_ok())
            {
                Some(joined) => {
                    let around = self.span_of(text).unwrap_or(self.enclosing_span);
                    self.walk_owned_text(&joined, None, around, exit);
                }
                None => self.add_opaque(opaque_reason(halt), Cow::Borrowed(text), None),
            },
        }
        self.shared.text_depth -= 1;
    }

    /// Walks a text that is not a slice of the line, and adds the results to this walk.
    pub(crate) fn walk_owned_text(
        &mut self,
        text: &str,
        base: Option<u32>,
        around: LineSpan,
        exit: ExitProof,
    ) {
        let mut walk = ShellWalk {
            root: text,
            root_start: base,
            enclosing_span: around,
            source: text,
            commands: alloc::vec::Vec::new(),
            opaque_parts: alloc::vec::Vec::new(),
            state: core::mem::take(&mut self.state),
            first_command_number: self.command_number(self.commands.len()),
            parent: self.parent,
            stdin: match &self.stdin {
                StreamContent::Inherited => StreamContent::Inherited,
                StreamContent::Text(text) => {
                    StreamContent::Text(Cow::Owned(text.clone().into_owned()))
                }
                StreamContent::PartialText(text) => {
                    StreamContent::PartialText(Cow::Owned(text.clone().into_owned()))
                }
                StreamContent::File(word) => StreamContent::File(word.clone().into_owned()),
                StreamContent::FileNames(_) | StreamContent::Unknown => StreamContent::Unknown,
            },
            output: None,
            substitution_output: None,
            passed_file: None,
            piped_file: None,
            prints_to_line_output: self.prints_to_line_output,
            keep_stdin: false,
            shared: core::mem::take(&mut self.shared),
        };
        walk.walk_borrowed_text(text, exit);
        let ShellWalk { commands, opaque_parts: opaque, state, shared, .. } = walk;
        for command in commands {
            self.commands.push(command.into_owned());
        }
        for opaque in opaque {
            self.opaque_parts.push(opaque.into_owned());
        }
        self.state = state;
        self.shared = shared;
    }

    fn enter_text(&mut self, text: &'a str) -> bool {
        let refused = if self.shared.text_depth >= NESTED_TEXTS_MAX {
            OpaqueReason::TooDeep
        } else if text.len() > LINE_BYTES_MAX {
            OpaqueReason::TooLong
        } else if text.as_bytes().contains(&0) {
            OpaqueReason::Nul
        } else {
            self.shared.text_depth += 1;
            self.shared.work_done += text.len() / 64;
            return true;
        };
        self.add_opaque(refused, Cow::Borrowed(text), None);
        false
    }

    /// Walks the commands in the body of a here-document. Returns the expanded text.
    pub(crate) fn walk_here_text(
        &mut self,
        body: &'a str,
        literal: bool,
        strip: bool,
    ) -> StreamContent<'a> {
        self.shared.work_done += body.len() / 64;
        let plain = literal || !body.bytes().any(|byte| matches!(byte, b'$' | b'`' | b'\\'));
        let word = if plain {
            ShellWord::literal(body)
        } else {
            match parse_here_word(body) {
                Ok((parser, id)) => {
                    let tree = parser.tree;
                    let Some(raw) = tree.word(id).copied() else { return StreamContent::Unknown };
                    let outer = core::mem::replace(&mut self.source, body);
                    self.walk_substitutions(&tree, &raw, ExitProof::LOST);
                    let word = Expander { source: body, tree: &tree, state: &self.state }
                        .expand_here_document(&raw);
                    self.source = outer;
                    word
                }
                Err(halt) => {
                    self.add_opaque(opaque_reason(halt), Cow::Borrowed(body), None);
                    return StreamContent::PartialText(Cow::Borrowed(body));
                }
            }
        };
        let text = if strip { strip_leading_tabs(&word.text) } else { word.text };
        match word.kind {
            WordKind::Literal => StreamContent::Text(text),
            _ => StreamContent::PartialText(text),
        }
    }
}

/// Reads the body of a here-document as if it were in double quotes.
fn parse_here_word(body: &str) -> Result<(ShellParser<'_>, ArenaId), ShellParseError> {
    let mut parser = ShellParser::new(body);
    let (mut traits, mut expansions) = (0, ArenaList::EMPTY);
    parser.read_here_text(&mut traits, &mut expansions)?;
    let id = to_u32(parser.tree.words.len());
    parser.tree.words.push(RawWord {
        start: 0,
        end: to_u32(body.len()),
        flags: traits | EXPANDS,
        expansions: expansions.head,
        next: NONE,
    });
    Ok((parser, id))
}

fn strip_leading_tabs(text: &str) -> Cow<'static, str> {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        out.push_str(line.trim_start_matches('\t'));
    }
    Cow::Owned(out)
}

/// The opaque reason for a text that could not be parsed.
pub(crate) fn opaque_reason(halt: ShellParseError) -> OpaqueReason {
    match halt {
        ShellParseError::Syntax(_) | ShellParseError::ContinuedLine(_) => OpaqueReason::Unparsable,
        ShellParseError::TooDeep => OpaqueReason::TooDeep,
        ShellParseError::TooManyWords => OpaqueReason::TooMany,
    }
}
