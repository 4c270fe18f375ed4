//! Follows a syntax tree the way a shell would run it.
//!
//! Every branch is walked, because any of them may run. What a command leaves
//! behind for the next one is in [`State`]; what the line's exit status says
//! about a command is handed down as a [`Status`].

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::expand::Expander;
use crate::limits::{COMMANDS_MAX, ITEMS_MAX, NAMES_MAX};
use crate::line::{Command, Dir, Exit, Known, Opaque, Reason, Span, Word};
use crate::made::Renamed;
use crate::state::{Function, State};
use crate::tree::{Id, Link, NONE, Node, NodeKind, Tree, number};

/// How much is walked before a line is given up: nodes, and words and bytes at
/// a lower price. Loops and functions are walked again and again, so this is
/// more than a line can hold.
const WORK_MAX: usize = 64 * 1024;

/// The walk over one text, and what it found.
pub(crate) struct Walk<'a> {
    /// The text that spans are places in, and where it stands in the line; none
    /// where it does not stand there as written.
    pub(crate) root: &'a str,
    pub(crate) root_base: Option<u32>,
    /// Where the text as a whole stands in the line.
    pub(crate) around: Span,
    /// The text being walked: the root, or a slice of it.
    pub(crate) source: &'a str,
    pub(crate) commands: Vec<Command<'a>>,
    pub(crate) opaque: Vec<Opaque<'a>>,
    pub(crate) state: State,
    /// How many commands the line has before this walk's first.
    pub(crate) first: u32,
    pub(crate) parent: Option<u32>,
    pub(crate) stdin: Stdin<'a>,
    /// What the command just walked prints, where something is known of it.
    pub(crate) output: Option<Stdin<'a>>,
    /// What the last `<(…)` in the words of this command prints.
    pub(crate) substituted: Option<Stdin<'a>>,
    /// The file whose lines the command just walked passes on, all of them: the
    /// command and its effect.
    pub(crate) passes: Option<(usize, usize)>,
    /// The same of the command before this one in a pipe.
    pub(crate) fed: Option<(usize, usize)>,
    /// What is printed here ends up on the line's output.
    pub(crate) shown: bool,
    /// `exec < f`: the input stays redirected.
    pub(crate) keep_stdin: bool,
    pub(crate) shared: Shared,
}

/// What all walks of one line share.
#[expect(clippy::struct_excessive_bools, reason = "each is a separate thing to know")]
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) texts: u32,
    pub(crate) work: usize,
    pub(crate) gave_up: bool,
    /// How many conditions and loops we are behind.
    pub(crate) perhaps: u32,
    /// Something walked before may have ended the line.
    pub(crate) ended: bool,
    /// And may have ended it with success.
    pub(crate) ended_well: bool,
    /// A trap may change the exit status of everything.
    pub(crate) trapped: bool,
    pub(crate) unrolled: usize,
    /// Functions being called.
    pub(crate) calling: Vec<Function>,
    /// What a `return` in the function being called leaves behind.
    pub(crate) returned: Option<State>,
    /// How many loops of the present function we are in.
    pub(crate) loops: u32,
    /// What a `break` or `continue` in the loop being walked leaves behind.
    pub(crate) broken: Option<State>,
    /// Functions that were defined and not called.
    pub(crate) uncalled: Vec<Function>,
    /// Names that links made by this line give to other files.
    pub(crate) links: Vec<Renamed>,
    /// Files this line has written, and what is in them.
    pub(crate) written: Vec<(String, String)>,
    /// Texts that redirections of this line put on descriptors but the input.
    pub(crate) handed: Vec<String>,
    /// Files that redirections of this line open for reading.
    pub(crate) opened: Vec<Word<'static>>,
}

/// Where a command's input comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Stdin<'a> {
    /// From whoever runs the line.
    #[default]
    Inherited,
    /// Exactly this.
    Text(Cow<'a, str>),
    /// This with unknown expansions in it.
    Partly(Cow<'a, str>),
    /// A file.
    File(Word<'a>),
    /// The names of files: those of `find`.
    Names(Vec<Word<'a>>),
    /// Something that another program writes.
    Unknown,
}

/// What the line's outcome says about a node's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Status {
    /// If the line succeeds, so did this.
    pub(crate) success: bool,
    /// If the line fails, so did this.
    pub(crate) failure: bool,
}

impl Status {
    pub(crate) const LINE: Self = Self { success: true, failure: true };
    pub(crate) const LOST: Self = Self { success: false, failure: false };

    pub(crate) fn exit(self) -> Exit {
        match (self.success, self.failure) {
            (true, true) => Exit::Decides,
            (true, false) => Exit::Needed,
            (false, true) => Exit::Enough,
            (false, false) => Exit::Lost,
        }
    }

    fn and(self, success: bool, failure: bool) -> Self {
        Self { success: self.success && success, failure: self.failure && failure }
    }
}

impl<'a> Walk<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            root: text,
            root_base: Some(0),
            around: Span { start: 0, end: number(text.len()) },
            source: text,
            commands: Vec::new(),
            opaque: Vec::new(),
            state: State::default(),
            first: 0,
            parent: None,
            stdin: Stdin::Inherited,
            output: None,
            substituted: None,
            passes: None,
            fed: None,
            shown: true,
            keep_stdin: false,
            shared: Shared::default(),
        }
    }

    /// Walks a node and everything below it.
    pub(crate) fn node(&mut self, tree: &Tree, id: Id, exit: Status) {
        let Some(node) = tree.node(id) else { return };
        self.shared.work += 1;
        let commands = self.number_of(self.commands.len()) as usize;
        if self.shared.work > WORK_MAX || commands >= COMMANDS_MAX {
            self.give_up();
            return;
        }
        if let NodeKind::Simple { words } = node.kind {
            self.simple(tree, node, words, exit);
            return;
        }
        let shown = self.shown;
        let outer = self.compound_redirects(tree, node);
        self.compound(tree, node, exit);
        self.shown = shown;
        if let Some(stdin) = outer {
            self.stdin = stdin;
        }
    }

    /// Says once that there is more than was looked at.
    pub(crate) fn give_up(&mut self) {
        if !self.shared.gave_up {
            self.shared.gave_up = true;
            self.add_opaque(Reason::TooMany, Cow::Borrowed(self.source), None);
        }
    }

    fn compound(&mut self, tree: &Tree, node: &Node, exit: Status) {
        match node.kind {
            NodeKind::Simple { .. } | NodeKind::Branch { .. } | NodeKind::Arm { .. } => {}
            NodeKind::List { first } => self.list(tree, first, exit),
            NodeKind::Chain { first } => {
                let (yes, no) = self.chain(tree, first, exit);
                self.state = yes.join(no);
            }
            NodeKind::Pipe { first } => self.pipe(tree, first, exit),
            NodeKind::Background { body } | NodeKind::Coproc { body } => {
                self.subshell(tree, body, Status::LOST);
            }
            NodeKind::Not { body } => {
                let (then, otherwise) = self.unchecked(tree, body, Status::LOST);
                self.state = then.join(otherwise);
            }
            NodeKind::Subshell { body } => self.subshell(tree, body, exit),
            NodeKind::Group { body } => self.node(tree, body, exit),
            NodeKind::If { first } => self.branches(tree, first),
            NodeKind::While { condition, body } => self.repeat(|walk| {
                let (yes, no) = walk.unchecked(tree, condition, Status::LOST);
                walk.state = yes.join(no);
                walk.perhaps(tree, body);
            }),
            NodeKind::For { name, items, given, body } => {
                self.for_loop(tree, name, items, given, body);
            }
            NodeKind::ArithmeticFor { word, body } => {
                self.substitutions_of(tree, word);
                self.repeat(|walk| walk.perhaps(tree, body));
            }
            NodeKind::Case { word, first } => self.case(tree, word, first),
            NodeKind::Function { name, body } => self.define(tree, name, body),
            NodeKind::Test { words } => {
                for raw in tree.words_from(words) {
                    self.substitutions(tree, raw, Status::LOST);
                    self.evaluated(self.source.get(raw.start as usize..raw.end as usize));
                }
            }
        }
    }

    /// Commands after each other: only the last one's status comes out, unless
    /// `set -e` ends the line at the first failure.
    fn list(&mut self, tree: &Tree, first: Id, exit: Status) {
        let mut strict = false;
        for (id, node) in tree.siblings(first) {
            let errexit = self.state.errexit;
            strict |= errexit;
            let status =
                if node.next == NONE { exit.and(true, !strict) } else { exit.and(errexit, false) };
            self.node(tree, id, status);
            self.state.settle();
        }
    }

    /// `a && b || c`: the state after success, and after failure.
    fn chain(&mut self, tree: &Tree, first: Id, exit: Status) -> (State, State) {
        let mut yes = self.state.clone();
        let mut no = State::unreachable();
        for (id, node) in tree.siblings(first) {
            let from_left = node.link == Link::Plain;
            let mut ands = true;
            let mut ors = true;
            for (later, after) in tree.siblings(node.next) {
                match after.link {
                    Link::Or => ands &= self.surely_fails(tree, later),
                    Link::And | Link::Plain => ors = false,
                }
            }
            let status = exit.and(
                ands && (from_left || node.link == Link::And),
                ors && (from_left || node.link == Link::Or),
            );
            let alone = from_left || node.link == Link::And;
            self.state = if alone { yes.clone() } else { no.clone() };
            self.state.dead = false;
            self.shared.perhaps += u32::from(!from_left);
            let (then, otherwise) = if node.next == NONE {
                self.outcomes(tree, id, status)
            } else {
                self.unchecked(tree, id, status)
            };
            self.shared.perhaps -= u32::from(!from_left);
            if alone {
                yes = then;
                no = no.join(otherwise);
            } else {
                yes = yes.join(then);
                no = otherwise;
            }
        }
        (yes, no)
    }

    /// Walks what is followed by `&&`, `||` or `then`: `set -e` does not end it.
    fn unchecked(&mut self, tree: &Tree, id: Id, exit: Status) -> (State, State) {
        let errexit = core::mem::take(&mut self.state.errexit);
        let (mut then, mut otherwise) = self.outcomes(tree, id, exit);
        then.errexit |= errexit;
        otherwise.errexit |= errexit;
        (then, otherwise)
    }

    /// Walks a node and tells success from failure.
    fn outcomes(&mut self, tree: &Tree, id: Id, exit: Status) -> (State, State) {
        match tree.node(id).map(|node| node.kind) {
            Some(NodeKind::Chain { first }) => return self.chain(tree, first, exit),
            Some(NodeKind::Not { body }) => {
                let (then, otherwise) = self.outcomes(tree, body, Status::LOST);
                return (otherwise, then);
            }
            _ => {}
        }
        self.node(tree, id, exit);
        let state = core::mem::take(&mut self.state);
        (state.clone().succeeded(), state.failed())
    }

    /// `exit 1`, `false`, or a group that ends in one.
    fn surely_fails(&self, tree: &Tree, id: Id) -> bool {
        let mut id = id;
        loop {
            let Some(node) = tree.node(id) else { return false };
            match node.kind {
                NodeKind::Group { body } | NodeKind::Subshell { body } => id = body,
                NodeKind::List { first } => {
                    let Some((last, _)) = tree.siblings(first).last() else { return false };
                    id = last;
                }
                NodeKind::Simple { words } => {
                    let mut said = tree.words_from(words).map(|raw| {
                        self.source.get(raw.start as usize..raw.end as usize).unwrap_or_default()
                    });
                    return match said.next() {
                        Some("false") => true,
                        Some("exit" | "return") => {
                            said.next().is_none_or(|code| code.parse().is_ok_and(|n: u8| n != 0))
                        }
                        _ => false,
                    };
                }
                _ => return false,
            }
        }
    }

    fn pipe(&mut self, tree: &Tree, first: Id, exit: Status) {
        let before = self.state.clone();
        let outer = core::mem::take(&mut self.stdin);
        self.stdin = outer.clone();
        self.passes = None;
        let shown = self.shown;
        for (id, node) in tree.siblings(first) {
            let status = match (node.next == NONE, before.pipefail) {
                (true, false) => exit,
                (true | false, true) => exit.and(true, false),
                (false, false) => Status::LOST,
            };
            let count = self.commands.len();
            self.output = None;
            self.fed = self.passes.take();
            self.shown = shown && node.next == NONE;
            self.node(tree, id, status);
            if self.commands.len() != count + 1 {
                self.passes = None;
            }
            // Only a single simple command prints just what we think it prints.
            let single = self.commands.len() == count + 1;
            self.stdin = self.output.take().filter(|_| single).unwrap_or(Stdin::Unknown);
            self.state = before.clone();
        }
        (self.passes, self.fed) = (None, None);
        self.shown = shown;
        self.stdin = outer;
    }

    pub(crate) fn subshell(&mut self, tree: &Tree, body: Id, exit: Status) {
        let before = self.state.clone();
        self.node(tree, body, exit);
        self.state = before;
    }

    /// Walks what may run or not.
    fn perhaps(&mut self, tree: &Tree, body: Id) {
        self.shared.perhaps += 1;
        self.node(tree, body, Status::LOST);
        self.shared.perhaps -= 1;
    }

    fn branches(&mut self, tree: &Tree, first: Id) {
        let mut after = State::unreachable();
        let mut has_else = false;
        let outside = self.shared.perhaps;
        for (_, node) in tree.siblings(first) {
            let NodeKind::Branch { condition, body } = node.kind else { continue };
            has_else = condition == NONE;
            let otherwise = if has_else {
                None
            } else {
                let (yes, no) = self.unchecked(tree, condition, Status::LOST);
                self.state = yes;
                Some(no)
            };
            // Only the first condition is sure to be looked at.
            self.shared.perhaps = outside + 1;
            self.node(tree, body, Status::LOST);
            after = after.join(core::mem::take(&mut self.state));
            self.state = otherwise.unwrap_or_default();
        }
        self.shared.perhaps = outside;
        self.state = if has_else { after } else { after.join(core::mem::take(&mut self.state)) };
    }

    /// Walks what may run any number of times.
    ///
    /// Whatever one round leaves behind the next may start with, so a variable
    /// that changes is unknown from the start.
    fn repeat(&mut self, mut round: impl FnMut(&mut Self)) {
        let mut before = self.state.clone();
        let (commands, opaque) = (self.commands.len(), self.opaque.len());
        let broken = self.shared.broken.take();
        self.shared.loops += 1;
        round(self);
        self.meet_broken();
        self.state.settle();
        if self.state != before {
            self.commands.truncate(commands);
            self.opaque.truncate(opaque);
            before.forget_changed(&self.state);
            self.state = before.clone();
            round(self);
            self.meet_broken();
        }
        self.shared.loops -= 1;
        self.shared.broken = broken;
        let after = core::mem::take(&mut self.state);
        self.state = before.join(after);
    }

    /// Joins what `break` and `continue` left with what came to the end.
    fn meet_broken(&mut self) {
        if let Some(broken) = self.shared.broken.take() {
            let state = core::mem::take(&mut self.state);
            self.state = state.join(broken);
        }
    }

    fn for_loop(&mut self, tree: &Tree, name: Id, items: Id, given: bool, body: Id) {
        for raw in tree.words_from(items) {
            self.shared.work += 1;
            self.substitutions(tree, raw, Status::LOST);
        }
        let mut values = Vec::new();
        let expander = Expander { source: self.source, tree, state: &self.state };
        for raw in tree.words_from(items) {
            expander.words(raw, &mut values);
        }
        let variable = tree.word(name).and_then(|raw| {
            let source: &'a str = self.source;
            source.get(raw.start as usize..raw.end as usize)
        });
        let variable = variable.unwrap_or_default();
        let exact = values.iter().all(|value| matches!(value.known, Known::Literal | Known::Glob));
        let rounds = self.shared.unrolled.max(1) * values.len();
        if given && exact && rounds <= ITEMS_MAX {
            let outer = core::mem::replace(&mut self.shared.unrolled, rounds);
            let before = self.state.clone();
            let broken = self.shared.broken.take();
            self.shared.loops += 1;
            for value in &values {
                if value.known == Known::Glob {
                    self.repeat(|walk| {
                        walk.state.assign_matching(variable, &value.text);
                        walk.perhaps(tree, body);
                    });
                    continue;
                }
                self.state.assign(variable, Some(Arc::from(&*value.text)));
                self.perhaps(tree, body);
                self.meet_broken();
                self.state.settle();
            }
            self.shared.loops -= 1;
            self.shared.broken = broken;
            self.shared.unrolled = outer;
            if values.is_empty() {
                self.state = before;
            }
            return;
        }
        self.repeat(|walk| {
            walk.state.assign(variable, None);
            walk.perhaps(tree, body);
        });
    }

    fn case(&mut self, tree: &Tree, word: Id, first: Id) {
        self.substitutions_of(tree, word);
        let before = self.state.clone();
        let mut after = before.clone();
        for (_, node) in tree.siblings(first) {
            let NodeKind::Arm { patterns, body } = node.kind else { continue };
            for raw in tree.words_from(patterns) {
                self.substitutions(tree, raw, Status::LOST);
            }
            // An arm may also be reached from the one before it, by `;&`.
            self.state = after.clone();
            self.perhaps(tree, body);
            after = after.join(core::mem::take(&mut self.state));
        }
        self.state = after;
    }

    fn define(&mut self, tree: &Tree, name: Id, body: Id) {
        let (Some(name), Some(body)) = (tree.word(name), tree.node(body)) else { return };
        let mut names = Vec::new();
        Expander { source: self.source, tree, state: &self.state }.words(name, &mut names);
        let name = names.first().map_or("", |word| &*word.text);
        let end = tree
            .redirects_from(body.redirects)
            .filter_map(|redirect| tree.word(redirect.word))
            .map(|word| word.end)
            .fold(body.end, u32::max);
        let text = self.source.get(body.start as usize..end as usize).unwrap_or_default();
        let function = Function {
            name: Arc::from(name),
            body: Arc::from(text),
            base: self.span_of(text).map(|span| span.start),
            sure: true,
        };
        if self.state.functions.len() >= NAMES_MAX {
            self.give_up();
            return;
        }
        self.state.functions.retain(|other| other.name != function.name);
        self.shared.uncalled.push(function.clone());
        self.state.functions.push(function);
    }

    /// Where a slice of the text stands in the line.
    pub(crate) fn span_of(&self, slice: &str) -> Option<Span> {
        let offset = (slice.as_ptr() as usize).checked_sub(self.root.as_ptr() as usize)?;
        let start = self.root_base?.checked_add(number(offset))?;
        (offset + slice.len() <= self.root.len())
            .then(|| Span { start, end: start + number(slice.len()) })
    }

    /// Where a node stands in the line.
    pub(crate) fn span(&self, node: &Node) -> Span {
        let slice = self.source.get(node.start as usize..node.end as usize).unwrap_or_default();
        self.span_of(slice).unwrap_or(self.around)
    }

    pub(crate) fn add_opaque(
        &mut self,
        reason: Reason,
        text: Cow<'a, str>,
        command: Option<usize>,
    ) {
        let span = command
            .and_then(|index| self.commands.get(index))
            .map_or(self.around, |command| command.span);
        let command = command.map(|index| self.first + number(index));
        self.opaque.push(Opaque { reason, text, command, span });
    }

    /// The directory commands work in now.
    pub(crate) fn dir(&self) -> Dir {
        self.state.dir.clone()
    }
}
