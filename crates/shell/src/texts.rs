//! Texts inside the line that are shell again: `bash -c`, `eval`, backticks,
//! here-documents, the bodies of functions.

use alloc::borrow::Cow;
use alloc::string::String;

use crate::continued;
use crate::expand::Expander;
use crate::limits::{LINE_BYTES_MAX, TEXTS_MAX};
use crate::line::{Known, Reason, Span, Word};
use crate::parse::{Halt, Parser, parse};
use crate::tree::{Chain, EXPANDS, Id, NONE, RawWord, number};
use crate::walk::{Status, Stdin, Walk};

impl<'a> Walk<'a> {
    /// Walks a text in the present state.
    pub(crate) fn text(&mut self, text: Cow<'a, str>, exit: Status) {
        match text {
            Cow::Borrowed(text) => self.borrowed(text, exit),
            Cow::Owned(text) => {
                let around = self.around;
                self.written_text(&text, None, around, exit);
            }
        }
    }

    /// Walks a text that is a slice of the one we are in.
    pub(crate) fn borrowed(&mut self, text: &'a str, exit: Status) {
        if !self.enter_text(text) {
            return;
        }
        match parse(text) {
            Ok((tree, root)) => {
                let outer = core::mem::replace(&mut self.source, text);
                self.node(&tree, root, exit);
                self.source = outer;
            }
            Err(halt) => match continued::joined(text).filter(|text| parse(text).is_ok()) {
                Some(joined) => {
                    let around = self.span_of(text).unwrap_or(self.around);
                    self.written_text(&joined, None, around, exit);
                }
                None => self.add_opaque(reason(halt), Cow::Borrowed(text), None),
            },
        }
        self.shared.texts -= 1;
    }

    /// Walks a text that was put together, and keeps what was found.
    pub(crate) fn written_text(
        &mut self,
        text: &str,
        base: Option<u32>,
        around: Span,
        exit: Status,
    ) {
        let mut walk = Walk {
            root: text,
            root_base: base,
            around,
            source: text,
            commands: alloc::vec::Vec::new(),
            opaque: alloc::vec::Vec::new(),
            state: core::mem::take(&mut self.state),
            first: self.number_of(self.commands.len()),
            parent: self.parent,
            stdin: match &self.stdin {
                Stdin::Inherited => Stdin::Inherited,
                Stdin::Text(text) => Stdin::Text(Cow::Owned(text.clone().into_owned())),
                Stdin::Partly(text) => Stdin::Partly(Cow::Owned(text.clone().into_owned())),
                Stdin::File(word) => Stdin::File(word.clone().into_owned()),
                Stdin::Names(_) | Stdin::Unknown => Stdin::Unknown,
            },
            output: None,
            substituted: None,
            passes: None,
            fed: None,
            shown: self.shown,
            keep_stdin: false,
            shared: core::mem::take(&mut self.shared),
        };
        walk.borrowed(text, exit);
        let Walk { commands, opaque, state, shared, .. } = walk;
        for command in commands {
            self.commands.push(command.into_owned());
        }
        for opaque in opaque {
            self.opaque.push(opaque.into_owned());
        }
        self.state = state;
        self.shared = shared;
    }

    fn enter_text(&mut self, text: &'a str) -> bool {
        let refused = if self.shared.texts >= TEXTS_MAX {
            Reason::TooDeep
        } else if text.len() > LINE_BYTES_MAX {
            Reason::TooLong
        } else if text.as_bytes().contains(&0) {
            Reason::Nul
        } else {
            self.shared.texts += 1;
            self.shared.work += text.len() / 64;
            return true;
        };
        self.add_opaque(refused, Cow::Borrowed(text), None);
        false
    }

    /// Runs what the body of a here-document runs; answers what it says.
    pub(crate) fn here_text(&mut self, body: &'a str, literal: bool, strip: bool) -> Stdin<'a> {
        self.shared.work += body.len() / 64;
        let plain = literal || !body.bytes().any(|byte| matches!(byte, b'$' | b'`' | b'\\'));
        let word = if plain {
            Word::literal(body)
        } else {
            match here_word(body) {
                Ok((parser, id)) => {
                    let tree = parser.tree;
                    let Some(raw) = tree.word(id).copied() else { return Stdin::Unknown };
                    let outer = core::mem::replace(&mut self.source, body);
                    self.substitutions(&tree, &raw, Status::LOST);
                    let word =
                        Expander { source: body, tree: &tree, state: &self.state }.here(&raw);
                    self.source = outer;
                    word
                }
                Err(halt) => {
                    self.add_opaque(reason(halt), Cow::Borrowed(body), None);
                    return Stdin::Partly(Cow::Borrowed(body));
                }
            }
        };
        let text = if strip { without_tabs(&word.text) } else { word.text };
        match word.known {
            Known::Literal => Stdin::Text(text),
            _ => Stdin::Partly(text),
        }
    }
}

/// Reads the body of a here-document as if it stood in double quotes.
fn here_word(body: &str) -> Result<(Parser<'_>, Id), Halt> {
    let mut parser = Parser::new(body);
    let (mut traits, mut expansions) = (0, Chain::EMPTY);
    parser.here_text(&mut traits, &mut expansions)?;
    let id = number(parser.tree.words.len());
    parser.tree.words.push(RawWord {
        start: 0,
        end: number(body.len()),
        traits: traits | EXPANDS,
        expansions: expansions.head,
        next: NONE,
    });
    Ok((parser, id))
}

fn without_tabs(text: &str) -> Cow<'static, str> {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        out.push_str(line.trim_start_matches('\t'));
    }
    Cow::Owned(out)
}

/// Why a text that was not parsed is opaque.
pub(crate) fn reason(halt: Halt) -> Reason {
    match halt {
        Halt::Syntax(_) | Halt::Continued(_) => Reason::Unparsable,
        Halt::Deep => Reason::TooDeep,
        Halt::Many => Reason::TooMany,
    }
}
