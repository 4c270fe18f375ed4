//! What redirections do: files opened, and where input and output go.

use alloc::vec::Vec;

use crate::expand::Expander;
use crate::limits::NAMES_MAX;
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
                self.hand(input, text, &mut found);
                continue;
            }
            for word in self.redirect_words(tree, redirect) {
                self.redirected(redirect, word, &mut found);
            }
        }
        found
    }

    /// What one redirection does.
    fn redirected(&mut self, redirect: &Redirect, word: Word<'a>, found: &mut Redirected<'a>) {
        let input = redirect.descriptor.unwrap_or(0) == 0;
        let access = match redirect.op {
            RedirectOp::HereString => {
                let text = match word.known {
                    Known::Literal => Stdin::Text(word.text),
                    _ => Stdin::Partly(word.text),
                };
                self.hand(input, text, found);
                return;
            }
            RedirectOp::Duplicate => {
                if redirect.descriptor == Some(0) {
                    found.stdin = Some(Stdin::Unknown);
                }
                return;
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
            if redirect.op == RedirectOp::In && self.shared.opened.len() < NAMES_MAX {
                self.shared.opened.push(word.clone().into_owned());
            }
            found.effects.push(Effect { access, path: word, recursive: false });
        } else if !matches!(access, Access::Read(_)) {
            found.effects.extend(self.reopened(&word, access));
        }
    }

    /// Puts a text on a descriptor.
    fn hand(&mut self, input: bool, text: Stdin<'a>, found: &mut Redirected<'a>) {
        if input {
            found.stdin = Some(text);
        } else if let Stdin::Text(text) | Stdin::Partly(text) = text
            && self.shared.handed.len() < NAMES_MAX
        {
            self.shared.handed.push(text.into_owned());
        }
    }

    /// What a redirection names. Where that is more than one word, bash refuses
    /// it, and another shell writes them all.
    fn redirect_words(&mut self, tree: &Tree, redirect: &Redirect) -> Vec<Word<'a>> {
        let Some(raw) = tree.word(redirect.word) else { return Vec::new() };
        self.substitutions(tree, raw, Status::LOST);
        let expander = Expander { source: self.source, tree, state: &self.state };
        let mut targets = Vec::with_capacity(1);
        if redirect.op == RedirectOp::HereString {
            targets.push(expander.single(raw, raw.start as usize));
            return targets;
        }
        expander.words(raw, &mut targets);
        if targets.is_empty() {
            let source: &'a str = self.source;
            let text = source.get(raw.start as usize..raw.end as usize);
            targets.extend(text.map(Word::unknown));
        }
        targets
    }

    /// What is written by way of a descriptor: the system opens the file behind
    /// it anew, even if it was only open for reading.
    pub(crate) fn reopened(&self, device: &Word<'_>, access: Access) -> Vec<Effect<'a>> {
        let is_descriptor = match &*device.text {
            "/dev/stdin" => true,
            "/dev/fd/1" | "/dev/fd/2" | "/proc/self/fd/1" | "/proc/self/fd/2" => false,
            text => text.starts_with("/dev/fd/") || text.starts_with("/proc/self/fd/"),
        };
        let opened = self.shared.opened.iter().filter(|_| is_descriptor);
        opened.map(|path| Effect { access, path: path.clone(), recursive: false }).collect()
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
