//! Follows a syntax tree the way a shell would run it.
//!
//! The walk takes every branch, because any of them may run. [`ShellState`] holds
//! what one command changes for the next one. [`ExitProof`] is passed down the tree:
//! it tells what the line's exit status proves about a command.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::created_files::CreatedLink;
use crate::limits::{COMMANDS_MAX, LOOP_ITEMS_MAX, NAMES_MAX};
use crate::shell_line::{
    ExitEvidence, LineSpan, OpaqueReason, ShellCommand, ShellOpaquePart, ShellWord, WordKind,
    WorkingDir,
};
use crate::shell_state::{FunctionCall, ShellFunction, ShellState};
use crate::syntax_tree::{ArenaId, NONE, NodeKind, NodeLink, SyntaxNode, SyntaxTree, to_u32};
use crate::word_expansion::Expander;

/// How much work one line may cost before the walk stops: one unit per node, and
/// fractions per word and byte. Loops and functions are walked several times, so
/// even a short line can reach this limit.
const WORK_MAX: usize = 64 * 1024;

/// The walk over one text, and its results.
pub(crate) struct ShellWalk<'a> {
    /// The text that spans refer to, and its first byte in the line. `None` where the
    /// text is not a literal part of the line.
    pub(crate) root: &'a str,
    pub(crate) root_start: Option<u32>,
    /// The span of the whole text in the line.
    pub(crate) enclosing_span: LineSpan,
    /// The text being walked: the root, or a slice of it.
    pub(crate) source: &'a str,
    pub(crate) commands: Vec<ShellCommand<'a>>,
    pub(crate) opaque_parts: Vec<ShellOpaquePart<'a>>,
    pub(crate) state: ShellState,
    /// How many commands the line has before this walk's first command.
    pub(crate) first_command_number: u32,
    pub(crate) parent: Option<u32>,
    pub(crate) stdin: StreamContent<'a>,
    /// What the last walked command prints, where that is known.
    pub(crate) output: Option<StreamContent<'a>>,
    /// What the last `<(…)` among the words of this command prints.
    pub(crate) substitution_output: Option<StreamContent<'a>>,
    /// The file of which the last walked command prints all lines: the indexes of
    /// the command and of its effect.
    pub(crate) passed_file: Option<(usize, usize)>,
    /// The same for the previous command of a pipe.
    pub(crate) piped_file: Option<(usize, usize)>,
    /// Commands print to the line's own output.
    pub(crate) prints_to_line_output: bool,
    /// `exec < f`: the input stays redirected after this command.
    pub(crate) keep_stdin: bool,
    pub(crate) shared: SharedWalkState,
}

/// State that all walks of one line share.
#[expect(clippy::struct_excessive_bools, reason = "each flag is an independent fact")]
#[derive(Debug, Default)]
pub(crate) struct SharedWalkState {
    pub(crate) text_depth: u32,
    pub(crate) work_done: usize,
    pub(crate) gave_up: bool,
    /// How many conditions and loops decide whether the current command runs.
    pub(crate) condition_depth: u32,
    /// An earlier command may have ended the line.
    pub(crate) may_have_ended: bool,
    /// An earlier command may have ended the line with success.
    pub(crate) may_have_succeeded: bool,
    /// A trap may change the exit status of the line.
    pub(crate) has_trap: bool,
    pub(crate) unrolled_rounds: usize,
    /// The functions whose bodies are being walked, outermost first.
    pub(crate) call_stack: Vec<FunctionCall>,
    /// How many parts of pipes and background commands we are inside: each is a process.
    pub(crate) process_depth: u32,
    /// The state at the `return`s of the current function, joined.
    pub(crate) returned_state: Option<ShellState>,
    /// How many loops of the current function we are inside.
    pub(crate) loop_depth: u32,
    /// The state at the `break`s and `continue`s of the current loop, joined.
    pub(crate) break_state: Option<ShellState>,
    /// Functions that the line defines and has not called yet.
    pub(crate) uncalled_functions: Vec<ShellFunction>,
    /// Links that this line creates.
    pub(crate) links: Vec<CreatedLink>,
    /// Files that this line writes: path and content.
    pub(crate) written_files: Vec<(String, String)>,
    /// Texts that redirections of this line put on descriptors other than the input.
    pub(crate) descriptor_texts: Vec<String>,
    /// Files that redirections of this line open for reading.
    pub(crate) opened_files: Vec<ShellWord<'static>>,
}

/// What is known about the content of a command's input or output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum StreamContent<'a> {
    /// The input of the line itself.
    #[default]
    Inherited,
    /// Exactly this text.
    Text(Cow<'a, str>),
    /// A text that contains expansions with unknown values.
    PartialText(Cow<'a, str>),
    /// The content of a file.
    File(ShellWord<'a>),
    /// File names, such as the output of `find`.
    FileNames(Vec<ShellWord<'a>>),
    /// The output of another program, which we do not know.
    Unknown,
}

/// What the line's exit status proves about the exit status of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExitProof {
    /// If the line succeeds, the node succeeded.
    pub(crate) success: bool,
    /// If the line fails, the node failed.
    pub(crate) failure: bool,
}

impl ExitProof {
    pub(crate) const LINE: Self = Self { success: true, failure: true };
    pub(crate) const LOST: Self = Self { success: false, failure: false };

    pub(crate) fn evidence(self) -> ExitEvidence {
        match (self.success, self.failure) {
            (true, true) => ExitEvidence::Decides,
            (true, false) => ExitEvidence::Needed,
            (false, true) => ExitEvidence::Enough,
            (false, false) => ExitEvidence::Lost,
        }
    }

    fn and(self, success: bool, failure: bool) -> Self {
        Self { success: self.success && success, failure: self.failure && failure }
    }
}

impl<'a> ShellWalk<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            root: text,
            root_start: Some(0),
            enclosing_span: LineSpan { start: 0, end: to_u32(text.len()) },
            source: text,
            commands: Vec::new(),
            opaque_parts: Vec::new(),
            state: ShellState::default(),
            first_command_number: 0,
            parent: None,
            stdin: StreamContent::Inherited,
            output: None,
            substitution_output: None,
            passed_file: None,
            piped_file: None,
            prints_to_line_output: true,
            keep_stdin: false,
            shared: SharedWalkState::default(),
        }
    }

    /// Walks a node and everything below it.
    pub(crate) fn walk_node(&mut self, tree: &SyntaxTree, id: ArenaId, exit: ExitProof) {
        let Some(node) = tree.node(id) else { return };
        self.shared.work_done += 1;
        let commands = self.command_number(self.commands.len()) as usize;
        if self.shared.work_done > WORK_MAX || commands >= COMMANDS_MAX {
            self.give_up();
            return;
        }
        if let NodeKind::Simple { words } = node.kind {
            self.walk_simple(tree, node, words, exit);
            return;
        }
        let shown = self.prints_to_line_output;
        let outer = self.walk_compound_redirects(tree, node);
        self.walk_compound(tree, node, exit);
        self.prints_to_line_output = shown;
        if let Some(stdin) = outer {
            self.stdin = stdin;
        }
    }

    /// Reports, once per line, that a limit was reached and a part was not walked.
    pub(crate) fn give_up(&mut self) {
        if !self.shared.gave_up {
            self.shared.gave_up = true;
            self.add_opaque(OpaqueReason::TooMany, Cow::Borrowed(self.source), None);
        }
    }

    fn walk_compound(&mut self, tree: &SyntaxTree, node: &SyntaxNode, exit: ExitProof) {
        match node.kind {
            NodeKind::Simple { .. } | NodeKind::Branch { .. } | NodeKind::Arm { .. } => {}
            NodeKind::List { first } => self.walk_list(tree, first, exit),
            NodeKind::AndOrList { first } => {
                let (yes, no) = self.walk_and_or(tree, first, exit);
                self.state = yes.join(no);
            }
            NodeKind::Pipe { first } => self.walk_pipe(tree, first, exit),
            NodeKind::Background { body } | NodeKind::Coproc { body } => {
                self.shared.process_depth += 1;
                self.walk_subshell(tree, body, ExitProof::LOST);
                self.shared.process_depth -= 1;
            }
            NodeKind::Not { body } => {
                let (then, otherwise) = self.walk_condition(tree, body, ExitProof::LOST);
                self.state = then.join(otherwise);
            }
            NodeKind::Subshell { body } => self.walk_subshell(tree, body, exit),
            NodeKind::Group { body } => self.walk_node(tree, body, exit),
            NodeKind::If { first } => self.walk_branches(tree, first),
            NodeKind::While { condition, body } => self.walk_repeatedly(|walk| {
                let (yes, no) = walk.walk_condition(tree, condition, ExitProof::LOST);
                walk.state = yes.join(no);
                walk.walk_conditionally(tree, body);
            }),
            NodeKind::For { name, items, given, body } => {
                self.walk_for_loop(tree, name, items, given, body);
            }
            NodeKind::ArithmeticFor { word, body } => {
                self.walk_word_substitutions(tree, word);
                self.walk_repeatedly(|walk| walk.walk_conditionally(tree, body));
            }
            NodeKind::Case { word, first } => self.walk_case(tree, word, first),
            NodeKind::Function { name, body } => self.define_function(tree, name, body),
            NodeKind::Test { words } => {
                for raw in tree.words_from(words) {
                    self.walk_substitutions(tree, raw, ExitProof::LOST);
                    self.check_evaluated_text(
                        self.source.get(raw.start as usize..raw.end as usize),
                    );
                }
            }
        }
    }

    /// Walks commands in sequence. The list has the status of the last one, unless
    /// `set -e` ends the line at the first failure.
    fn walk_list(&mut self, tree: &SyntaxTree, first: ArenaId, exit: ExitProof) {
        let mut strict = false;
        for (id, node) in tree.siblings(first) {
            let errexit = self.state.errexit;
            strict |= errexit;
            let status =
                if node.next == NONE { exit.and(true, !strict) } else { exit.and(errexit, false) };
            self.walk_node(tree, id, status);
            self.state.merge_dir_outcomes();
        }
    }

    /// Walks `a && b || c`. Returns the state after success and after failure.
    fn walk_and_or(
        &mut self,
        tree: &SyntaxTree,
        first: ArenaId,
        exit: ExitProof,
    ) -> (ShellState, ShellState) {
        let mut yes = self.state.clone();
        let mut no = ShellState::unreachable();
        for (id, node) in tree.siblings(first) {
            let from_left = node.link == NodeLink::Plain;
            let mut ands = true;
            let mut ors = true;
            for (later, after) in tree.siblings(node.next) {
                match after.link {
                    NodeLink::Or => ands &= self.is_certain_to_fail(tree, later),
                    NodeLink::And | NodeLink::Plain => ors = false,
                }
            }
            let status = exit.and(
                ands && (from_left || node.link == NodeLink::And),
                ors && (from_left || node.link == NodeLink::Or),
            );
            let alone = from_left || node.link == NodeLink::And;
            self.state = if alone { yes.clone() } else { no.clone() };
            self.state.is_unreachable = false;
            self.shared.condition_depth += u32::from(!from_left);
            let (then, otherwise) = if node.next == NONE {
                self.walk_outcomes(tree, id, status)
            } else {
                self.walk_condition(tree, id, status)
            };
            self.shared.condition_depth -= u32::from(!from_left);
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

    /// Walks a command in front of `&&`, `||` or `then`: `set -e` does not apply to it.
    fn walk_condition(
        &mut self,
        tree: &SyntaxTree,
        id: ArenaId,
        exit: ExitProof,
    ) -> (ShellState, ShellState) {
        let errexit = core::mem::take(&mut self.state.errexit);
        let (mut then, mut otherwise) = self.walk_outcomes(tree, id, exit);
        then.errexit |= errexit;
        otherwise.errexit |= errexit;
        (then, otherwise)
    }

    /// Walks a node. Returns the state after success and after failure.
    fn walk_outcomes(
        &mut self,
        tree: &SyntaxTree,
        id: ArenaId,
        exit: ExitProof,
    ) -> (ShellState, ShellState) {
        match tree.node(id).map(|node| node.kind) {
            Some(NodeKind::AndOrList { first }) => return self.walk_and_or(tree, first, exit),
            Some(NodeKind::Not { body }) => {
                let (then, otherwise) = self.walk_outcomes(tree, body, ExitProof::LOST);
                return (otherwise, then);
            }
            _ => {}
        }
        self.walk_node(tree, id, exit);
        let state = core::mem::take(&mut self.state);
        (state.clone().after_success(), state.after_failure())
    }

    /// Whether a node always fails: `exit 1`, `false`, or a group that ends with one.
    fn is_certain_to_fail(&self, tree: &SyntaxTree, id: ArenaId) -> bool {
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
                    let mut texts = tree.words_from(words).map(|raw| {
                        self.source.get(raw.start as usize..raw.end as usize).unwrap_or_default()
                    });
                    return match texts.next() {
                        Some("false") => true,
                        Some("exit" | "return") => {
                            texts.next().is_none_or(|code| code.parse().is_ok_and(|n: u8| n != 0))
                        }
                        _ => false,
                    };
                }
                _ => return false,
            }
        }
    }

    fn walk_pipe(&mut self, tree: &SyntaxTree, first: ArenaId, exit: ExitProof) {
        let before = self.state.clone();
        let outer = core::mem::take(&mut self.stdin);
        self.stdin = outer.clone();
        self.passed_file = None;
        let shown = self.prints_to_line_output;
        self.shared.process_depth += 1;
        for (id, node) in tree.siblings(first) {
            let status = match (node.next == NONE, before.pipefail) {
                (true, false) => exit,
                (true | false, true) => exit.and(true, false),
                (false, false) => ExitProof::LOST,
            };
            let count = self.commands.len();
            self.output = None;
            self.piped_file = self.passed_file.take();
            self.prints_to_line_output = shown && node.next == NONE;
            self.walk_node(tree, id, status);
            if self.commands.len() != count + 1 {
                self.passed_file = None;
            }
            // The known output is complete only where a single simple command prints.
            let single = self.commands.len() == count + 1;
            self.stdin = self.output.take().filter(|_| single).unwrap_or(StreamContent::Unknown);
            self.state = before.clone();
        }
        self.shared.process_depth -= 1;
        (self.passed_file, self.piped_file) = (None, None);
        self.prints_to_line_output = shown;
        self.stdin = outer;
    }

    pub(crate) fn walk_subshell(&mut self, tree: &SyntaxTree, body: ArenaId, exit: ExitProof) {
        let before = self.state.clone();
        self.walk_node(tree, body, exit);
        self.state = before;
    }

    /// Walks a node that may or may not run.
    fn walk_conditionally(&mut self, tree: &SyntaxTree, body: ArenaId) {
        self.shared.condition_depth += 1;
        self.walk_node(tree, body, ExitProof::LOST);
        self.shared.condition_depth -= 1;
    }

    fn walk_branches(&mut self, tree: &SyntaxTree, first: ArenaId) {
        let mut after = ShellState::unreachable();
        let mut has_else = false;
        let outside = self.shared.condition_depth;
        for (_, node) in tree.siblings(first) {
            let NodeKind::Branch { condition, body } = node.kind else { continue };
            has_else = condition == NONE;
            let otherwise = if has_else {
                None
            } else {
                let (yes, no) = self.walk_condition(tree, condition, ExitProof::LOST);
                self.state = yes;
                Some(no)
            };
            // Only the first condition always runs.
            self.shared.condition_depth = outside + 1;
            self.walk_node(tree, body, ExitProof::LOST);
            after = after.join(core::mem::take(&mut self.state));
            self.state = otherwise.unwrap_or_default();
        }
        self.shared.condition_depth = outside;
        self.state = if has_else { after } else { after.join(core::mem::take(&mut self.state)) };
    }

    /// Walks a part that may run any number of times.
    ///
    /// A round may start with the state that an earlier round left, so a variable
    /// that changes in a round is unknown from the start.
    fn walk_repeatedly(&mut self, mut round: impl FnMut(&mut Self)) {
        let mut before = self.state.clone();
        let (commands, opaque) = (self.commands.len(), self.opaque_parts.len());
        let broken = self.shared.break_state.take();
        self.shared.loop_depth += 1;
        round(self);
        self.join_break_state();
        self.state.merge_dir_outcomes();
        if self.state != before {
            self.commands.truncate(commands);
            self.opaque_parts.truncate(opaque);
            before.forget_changed(&self.state);
            self.state = before.clone();
            round(self);
            self.join_break_state();
        }
        self.shared.loop_depth -= 1;
        self.shared.break_state = broken;
        let after = core::mem::take(&mut self.state);
        self.state = before.join(after);
    }

    /// Joins the states at `break` and `continue` with the state at the end of a round.
    fn join_break_state(&mut self) {
        if let Some(broken) = self.shared.break_state.take() {
            let state = core::mem::take(&mut self.state);
            self.state = state.join(broken);
        }
    }

    fn walk_for_loop(
        &mut self,
        tree: &SyntaxTree,
        name: ArenaId,
        items: ArenaId,
        given: bool,
        body: ArenaId,
    ) {
        for raw in tree.words_from(items) {
            self.shared.work_done += 1;
            self.walk_substitutions(tree, raw, ExitProof::LOST);
        }
        let mut values = Vec::new();
        let expander = Expander { source: self.source, tree, state: &self.state };
        for raw in tree.words_from(items) {
            expander.expand_words(raw, &mut values);
        }
        let variable = tree.word(name).and_then(|raw| {
            let source: &'a str = self.source;
            source.get(raw.start as usize..raw.end as usize)
        });
        let variable = variable.unwrap_or_default();
        let exact =
            values.iter().all(|value| matches!(value.kind, WordKind::Literal | WordKind::Glob));
        let rounds = self.shared.unrolled_rounds.max(1) * values.len();
        if given && exact && rounds <= LOOP_ITEMS_MAX {
            let outer = core::mem::replace(&mut self.shared.unrolled_rounds, rounds);
            let before = self.state.clone();
            let broken = self.shared.break_state.take();
            self.shared.loop_depth += 1;
            for value in &values {
                if value.kind == WordKind::Glob {
                    self.walk_repeatedly(|walk| {
                        walk.state.assign_pattern(variable, &value.text);
                        walk.walk_conditionally(tree, body);
                    });
                    continue;
                }
                self.state.assign(variable, Some(Arc::from(&*value.text)));
                self.walk_conditionally(tree, body);
                self.join_break_state();
                self.state.merge_dir_outcomes();
            }
            self.shared.loop_depth -= 1;
            self.shared.break_state = broken;
            self.shared.unrolled_rounds = outer;
            if values.is_empty() {
                self.state = before;
            }
            return;
        }
        self.walk_repeatedly(|walk| {
            walk.state.assign(variable, None);
            walk.walk_conditionally(tree, body);
        });
    }

    fn walk_case(&mut self, tree: &SyntaxTree, word: ArenaId, first: ArenaId) {
        self.walk_word_substitutions(tree, word);
        let before = self.state.clone();
        let mut after = before.clone();
        for (_, node) in tree.siblings(first) {
            let NodeKind::Arm { patterns, body } = node.kind else { continue };
            for raw in tree.words_from(patterns) {
                self.walk_substitutions(tree, raw, ExitProof::LOST);
            }
            // With `;&` an arm may also run after the previous arm.
            self.state = after.clone();
            self.walk_conditionally(tree, body);
            after = after.join(core::mem::take(&mut self.state));
        }
        self.state = after;
    }

    fn define_function(&mut self, tree: &SyntaxTree, name: ArenaId, body: ArenaId) {
        let (Some(name), Some(body)) = (tree.word(name), tree.node(body)) else { return };
        let mut names = Vec::new();
        Expander { source: self.source, tree, state: &self.state }.expand_words(name, &mut names);
        let name = names.first().map_or("", |word| &*word.text);
        let end = tree
            .redirects_from(body.redirects)
            .filter_map(|redirect| tree.word(redirect.word))
            .map(|word| word.end)
            .fold(body.end, u32::max);
        let text = self.source.get(body.start as usize..end as usize).unwrap_or_default();
        let function = ShellFunction {
            name: Arc::from(name),
            body: Arc::from(text),
            body_start: self.span_of(text).map(|span| span.start),
            is_certain: true,
        };
        if self.state.functions.len() >= NAMES_MAX {
            self.give_up();
            return;
        }
        self.state.functions.retain(|other| other.name != function.name);
        self.shared.uncalled_functions.push(function.clone());
        self.state.functions.push(function);
    }

    /// The span of a slice of the text in the line.
    pub(crate) fn span_of(&self, slice: &str) -> Option<LineSpan> {
        let offset = (slice.as_ptr() as usize).checked_sub(self.root.as_ptr() as usize)?;
        let start = self.root_start?.checked_add(to_u32(offset))?;
        (offset + slice.len() <= self.root.len())
            .then(|| LineSpan { start, end: start + to_u32(slice.len()) })
    }

    /// The span of a node in the line.
    pub(crate) fn node_span(&self, node: &SyntaxNode) -> LineSpan {
        let slice = self.source.get(node.start as usize..node.end as usize).unwrap_or_default();
        self.span_of(slice).unwrap_or(self.enclosing_span)
    }

    pub(crate) fn add_opaque(
        &mut self,
        reason: OpaqueReason,
        text: Cow<'a, str>,
        command: Option<usize>,
    ) {
        let span = command
            .and_then(|index| self.commands.get(index))
            .map_or(self.enclosing_span, |command| command.span);
        let command = command.map(|index| self.first_command_number + to_u32(index));
        self.opaque_parts.push(ShellOpaquePart { reason, text, command, span });
    }

    /// The directory in which the next command works.
    pub(crate) fn working_dir(&self) -> WorkingDir {
        self.state.dir.clone()
    }
}
