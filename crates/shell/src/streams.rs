//! What redirections do: files opened, and where input and output go.

use alloc::vec::Vec;

use crate::expand::Expander;
use crate::line::{Access, Effect, Known, Lines, Word};
use crate::scene::is_device;
use crate::tree::{Id, NONE, Node, Redirect, RedirectOp, Tree};
use crate::walk::{Status, Stdin, Walk};

/// What redirections say.
#[derive(Default)]
pub(crate) struct Redirected<'a> {
    pub(crate) effects: Vec<Effect<'a>>,
    pub(crate) stdin: Option<Stdin<'a>>,
    /// What is printed goes somewhere else than the line's output.
    pub(crate) away: bool,
}

impl<'a> Walk<'a> {
    /// What redirections do to files, and where the input comes from.
    pub(crate) fn redirections(&mut self, tree: &Tree, first: Id) -> Redirected<'a> {
        let mut found = Redirected::default();
        for redirect in tree.redirects_from(first) {
            let input = redirect.descriptor.unwrap_or(0) == 0;
            if redirect.op == RedirectOp::Here {
                let text = self.here_document(redirect);
                if input {
                    found.stdin = Some(text);
                }
                continue;
            }
            let Some(word) = self.redirect_word(tree, redirect) else { continue };
            let access = match redirect.op {
                RedirectOp::HereString => {
                    let text = match word.known {
                        Known::Literal => Stdin::Text(word.text),
                        _ => Stdin::Partly(word.text),
                    };
                    if input {
                        found.stdin = Some(text);
                    }
                    continue;
                }
                RedirectOp::Duplicate => {
                    if redirect.descriptor == Some(0) {
                        found.stdin = Some(Stdin::Unknown);
                    }
                    continue;
                }
                RedirectOp::Here | RedirectOp::In => Access::Read(Lines::Some),
                RedirectOp::Out => Access::Write,
                RedirectOp::Append => Access::Append,
                RedirectOp::Both => Access::Edit,
            };
            match redirect.op {
                RedirectOp::In | RedirectOp::Both if input && is_device(&word) => {
                    found.stdin = Some(Stdin::Unknown);
                }
                RedirectOp::In | RedirectOp::Both if input => {
                    found.stdin = Some(Stdin::File(word.clone()));
                }
                RedirectOp::Out | RedirectOp::Append => {
                    found.away |= redirect.descriptor.unwrap_or(1) == 1;
                }
                _ => {}
            }
            if !is_device(&word) {
                found.effects.push(Effect { access, path: word, recursive: false });
            }
        }
        found
    }

    /// What a redirection names.
    fn redirect_word(&mut self, tree: &Tree, redirect: &Redirect) -> Option<Word<'a>> {
        let raw = tree.word(redirect.word)?;
        self.substitutions(tree, raw, Status::LOST);
        let expander = Expander { source: self.source, tree, state: &self.state };
        if redirect.op == RedirectOp::HereString {
            return Some(expander.single(raw, raw.start as usize));
        }
        let mut targets = Vec::with_capacity(1);
        expander.words(raw, &mut targets);
        match (targets.pop(), targets.is_empty()) {
            (Some(word), true) => Some(word),
            _ => {
                let source: &'a str = self.source;
                source.get(raw.start as usize..raw.end as usize).map(Word::unknown)
            }
        }
    }

    /// The redirections of a compound command. Answers the input to go back to.
    pub(crate) fn compound_redirects(&mut self, tree: &Tree, node: &Node) -> Option<Stdin<'a>> {
        if node.redirects == NONE {
            return None;
        }
        let Redirected { effects, stdin, away } = self.redirections(tree, node.redirects);
        self.shown &= !away;
        if !effects.is_empty() {
            let span = self.span(node);
            self.push(Vec::new(), effects, Status::LOST, span);
        }
        stdin.map(|stdin| core::mem::replace(&mut self.stdin, stdin))
    }

    fn here_document(&mut self, redirect: &Redirect) -> Stdin<'a> {
        let source: &'a str = self.source;
        let (start, end) = (redirect.body.0 as usize, redirect.body.1 as usize);
        // A body never starts at the first byte: then it was not there.
        if start == 0 {
            return Stdin::Unknown;
        }
        let body = source.get(start..end).unwrap_or_default();
        self.here_text(body, redirect.literal, redirect.strip_tabs)
    }
}
