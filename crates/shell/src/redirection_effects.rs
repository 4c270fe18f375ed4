//! Walks redirections: the files they open, and where input and output go.

use alloc::vec::Vec;

use crate::command_context::is_device;
use crate::limits::NAMES_MAX;
use crate::shell_line::{Access, FileEffect, ReadExtent, ShellWord, WordKind};
use crate::shell_walk::{ExitProof, ShellWalk, StreamContent};
use crate::syntax_tree::{ArenaId, NONE, Redirect, RedirectOp, SyntaxNode, SyntaxTree};
use crate::word_expansion::Expander;

/// The result of the redirections of one command.
#[derive(Default)]
pub(crate) struct RedirectionEffects<'a> {
    pub(crate) effects: Vec<FileEffect<'a>>,
    pub(crate) stdin: Option<StreamContent<'a>>,
    /// The command does not print to the line's output.
    pub(crate) hides_output: bool,
}

impl<'a> ShellWalk<'a> {
    /// Walks redirections. Returns their effects on files and the new input.
    pub(crate) fn walk_redirections(
        &mut self,
        tree: &SyntaxTree,
        first: ArenaId,
    ) -> RedirectionEffects<'a> {
        let mut found = RedirectionEffects::default();
        for redirect in tree.redirects_from(first) {
            let input = redirect.descriptor.unwrap_or(0) == 0;
            if redirect.op == RedirectOp::HereDocument {
                let text = self.walk_here_document(redirect);
                self.put_on_descriptor(input, text, &mut found);
                continue;
            }
            for word in self.redirection_targets(tree, redirect) {
                self.apply_redirection(redirect, word, &mut found);
            }
        }
        found
    }

    /// Adds one redirection to the result.
    fn apply_redirection(
        &mut self,
        redirect: &Redirect,
        word: ShellWord<'a>,
        found: &mut RedirectionEffects<'a>,
    ) {
        let input = redirect.descriptor.unwrap_or(0) == 0;
        let access = match redirect.op {
            RedirectOp::HereString => {
                let text = match word.kind {
                    WordKind::Literal => StreamContent::Text(word.text),
                    _ => StreamContent::PartialText(word.text),
                };
                self.put_on_descriptor(input, text, found);
                return;
            }
            RedirectOp::Duplicate => {
                if redirect.descriptor == Some(0) {
                    found.stdin = Some(StreamContent::Unknown);
                }
                return;
            }
            RedirectOp::HereDocument | RedirectOp::Input => Access::Read(ReadExtent::Partial),
            RedirectOp::Output => Access::Write,
            RedirectOp::Append => Access::Append,
            RedirectOp::ReadWrite => Access::Edit,
        };
        match redirect.op {
            RedirectOp::Input | RedirectOp::ReadWrite if input && is_device(&word) => {
                found.stdin = Some(StreamContent::Unknown);
            }
            RedirectOp::Input | RedirectOp::ReadWrite if input => {
                found.stdin = Some(StreamContent::File(word.clone()));
            }
            RedirectOp::Output | RedirectOp::Append => {
                found.hides_output |= redirect.descriptor.unwrap_or(1) == 1;
            }
            _ => {}
        }
        if !is_device(&word) {
            if redirect.op == RedirectOp::Input && self.shared.opened_files.len() < NAMES_MAX {
                self.shared.opened_files.push(word.clone().into_owned());
            }
            found.effects.push(FileEffect { access, path: word, recursive: false });
        } else if !matches!(access, Access::Read(_)) {
            found.effects.extend(self.reopened_files(&word, access));
        }
    }

    /// Puts a text on a descriptor.
    fn put_on_descriptor(
        &mut self,
        input: bool,
        text: StreamContent<'a>,
        found: &mut RedirectionEffects<'a>,
    ) {
        if input {
            found.stdin = Some(text);
        } else if let StreamContent::Text(text) | StreamContent::PartialText(text) = text
            && self.shared.descriptor_texts.len() < NAMES_MAX
        {
            self.shared.descriptor_texts.push(text.into_owned());
        }
    }

    /// The words that a redirection names. bash refuses more than one word; another
    /// shell writes them all.
    fn redirection_targets(
        &mut self,
        tree: &SyntaxTree,
        redirect: &Redirect,
    ) -> Vec<ShellWord<'a>> {
        let Some(raw) = tree.word(redirect.word) else { return Vec::new() };
        self.walk_substitutions(tree, raw, ExitProof::LOST);
        let expander = Expander { source: self.source, tree, state: &self.state };
        let mut targets = Vec::with_capacity(1);
        if redirect.op == RedirectOp::HereString {
            targets.push(expander.expand_unsplit(raw, raw.start as usize));
            return targets;
        }
        expander.expand_words(raw, &mut targets);
        if targets.is_empty() {
            let source: &'a str = self.source;
            let text = source.get(raw.start as usize..raw.end as usize);
            targets.extend(text.map(ShellWord::unknown));
        }
        targets
    }

    /// The files that a write to `/dev/fd/N` changes: the system opens the file behind
    /// the descriptor again, even if it was open only for reading.
    pub(crate) fn reopened_files(
        &self,
        device: &ShellWord<'_>,
        access: Access,
    ) -> Vec<FileEffect<'a>> {
        let is_descriptor = match &*device.text {
            "/dev/stdin" => true,
            "/dev/fd/1" | "/dev/fd/2" | "/proc/self/fd/1" | "/proc/self/fd/2" => false,
            text => text.starts_with("/dev/fd/") || text.starts_with("/proc/self/fd/"),
        };
        let opened = self.shared.opened_files.iter().filter(|_| is_descriptor);
        opened.map(|path| FileEffect { access, path: path.clone(), recursive: false }).collect()
    }

    /// Walks the redirections of a compound command. Returns the input that the
    /// caller must restore afterwards.
    pub(crate) fn walk_compound_redirects(
        &mut self,
        tree: &SyntaxTree,
        node: &SyntaxNode,
    ) -> Option<StreamContent<'a>> {
        if node.redirects == NONE {
            return None;
        }
        let RedirectionEffects { effects, stdin, hides_output: away } =
            self.walk_redirections(tree, node.redirects);
        self.prints_to_line_output &= !away;
        if !effects.is_empty() {
            let span = self.node_span(node);
            self.push_command(Vec::new(), effects, ExitProof::LOST, span);
        }
        stdin.map(|stdin| core::mem::replace(&mut self.stdin, stdin))
    }

    fn walk_here_document(&mut self, redirect: &Redirect) -> StreamContent<'a> {
        let source: &'a str = self.source;
        let (start, end) = (redirect.body.0 as usize, redirect.body.1 as usize);
        // A body never starts at byte 0: here that means "no body".
        if start == 0 {
            return StreamContent::Unknown;
        }
        let body = source.get(start..end).unwrap_or_default();
        self.walk_here_text(body, redirect.literal, redirect.strip_tabs)
    }
}
