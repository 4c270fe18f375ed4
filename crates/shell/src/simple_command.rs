//! Walks simple commands: assignments, redirections, and the program they run.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::command_context::CommandContext;
use crate::limits::COMMANDS_MAX;
use crate::redirection_effects::RedirectionEffects;
use crate::rows;
use crate::shell_line::{
    FileEffect, LineSpan, OpaqueReason, ShellCommand, ShellWord, WordKind, WorkingDir, base_name,
};
use crate::shell_state::{FunctionCall, ShellFunction, ShellState};
use crate::shell_walk::{ExitProof, ShellWalk, StreamContent};
use crate::syntax_tree::{
    ARRAY, ASSIGNS, ArenaId, ExpansionKind, NONE, RawWord, SyntaxNode, SyntaxTree, to_u32,
};
use crate::word_expansion::Expander;

/// One `name=value`.
struct ShellAssignment<'a> {
    name: &'a str,
    value: Option<ShellWord<'a>>,
    append: bool,
}

/// Variables that make a program run another one or change what it does. Sorted.
const PROGRAM_RUNNING_VARIABLES: [&str; 53] = [
    "BASH_ENV",
    "BROWSER",
    "CURL_HOME",
    "DYLD_INSERT_LIBRARIES",
    "DYLD_LIBRARY_PATH",
    "EDITOR",
    "ENV",
    "FCEDIT",
    "GCONV_PATH",
    "GIT_ASKPASS",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_SYSTEM",
    "GIT_DIR",
    "GIT_EDITOR",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_TEMPLATE_DIR",
    "GIT_WORK_TREE",
    "GNUMAKEFLAGS",
    "LD_AUDIT",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "LESSCLOSE",
    "LESSOPEN",
    "MAKEFILES",
    "MAKEFLAGS",
    "MANPAGER",
    "PAGER",
    "PATH",
    "PERL5DB",
    "PERL5OPT",
    "PROMPT_COMMAND",
    "PS4",
    "PYTHONSTARTUP",
    "RSYNC_CONNECT_PROG",
    "RSYNC_RSH",
    "RUBYOPT",
    "RUSTC_WRAPPER",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "SUDO_EDITOR",
    "SYSTEMD_EDITOR",
    "SYSTEMD_PAGER",
    "TAR_OPTIONS",
    "VISUAL",
    "WGETRC",
];

/// Whether a variable can make programs run other programs.
pub(crate) fn is_program_running_variable(name: &str) -> bool {
    PROGRAM_RUNNING_VARIABLES.binary_search(&name).is_ok() || name.starts_with("GIT_CONFIG_VALUE_")
}

impl<'a> ShellWalk<'a> {
    pub(crate) fn walk_simple(
        &mut self,
        tree: &SyntaxTree,
        node: &SyntaxNode,
        words: ArenaId,
        exit: ExitProof,
    ) {
        let runs = tree.words_from(words).any(|raw| raw.flags & ASSIGNS == 0);
        // `x=$(cmd)` has the exit status of `cmd`.
        let inner = if runs { ExitProof::LOST } else { exit };
        self.substitution_output = None;
        for raw in tree.words_from(words) {
            self.walk_substitutions(tree, raw, inner);
        }
        let span = self.node_span(node);
        self.shared.work_done += tree.words_from(words).count() / 8;
        let leading = tree.words_from(words).take_while(|raw| raw.flags & ASSIGNS != 0).count();
        // bash expands the words before it makes the assignments in front of them.
        let mut list = Vec::with_capacity(tree.words_from(words).count());
        let expander = Expander { source: self.source, tree, state: &self.state };
        for raw in tree.words_from(words).skip(leading) {
            if raw.flags & ASSIGNS != 0 {
                list.push(expander.expand_unsplit(raw, raw.start as usize));
            } else {
                expander.expand_words(raw, &mut list);
            }
        }
        let RedirectionEffects { effects, stdin, hides_output: away } =
            self.walk_redirections(tree, node.redirects);
        if list.is_empty() {
            self.assign_leading(tree, words, leading, span);
            if !effects.is_empty() {
                self.push_command(Vec::new(), effects, exit, span);
            }
            return;
        }
        let outer = stdin.map(|stdin| core::mem::replace(&mut self.stdin, stdin));
        let shown = self.prints_to_line_output;
        let index = self.commands.len();
        self.prints_to_line_output &= !away;
        if leading == 0 {
            self.run_command(list, effects, exit, span);
        } else {
            let saved = self.state.save_variables();
            let names = self.assign_leading(tree, words, leading, span);
            self.run_command(list, effects, exit, span);
            self.state.restore_variables(&saved, names.into_iter());
        }
        self.record_written_text(index);
        self.prints_to_line_output = shown;
        let keep = core::mem::take(&mut self.keep_stdin);
        if let Some(outer) = outer.filter(|_| !keep) {
            self.stdin = outer;
        }
    }

    /// Walks a program with its arguments, and every command that it runs.
    pub(crate) fn run_command(
        &mut self,
        words: Vec<ShellWord<'a>>,
        effects: Vec<FileEffect<'a>>,
        exit: ExitProof,
        span: LineSpan,
    ) {
        self.shared.work_done += 1;
        self.output = None;
        let Some(program) = words.first() else { return };
        match program.kind {
            WordKind::Literal => {}
            WordKind::Home => {
                let text = program.text.clone();
                let Some(index) = self.push_command(words, effects, exit, span) else { return };
                self.add_opaque(OpaqueReason::ScriptFile, text, Some(index));
                return;
            }
            WordKind::Glob | WordKind::Unknown | WordKind::Repository => {
                let Some(index) = self.push_command(words, effects, exit, span) else { return };
                self.add_opaque(OpaqueReason::UnknownProgram, Cow::Borrowed(""), Some(index));
                return;
            }
        }
        let path = program.text.clone();
        let name = base_name(&path);
        if !self.state.functions.is_empty()
            && self.call_function(name, &path, &words, &effects, exit, span)
        {
            return;
        }
        let alias = self.state.aliases.iter().any(|alias| *alias == *path);
        let row = rows::find_row(name);
        let Some(index) = self.push_command(words, effects, exit, span) else { return };
        if alias {
            self.add_opaque(OpaqueReason::Alias, path.clone(), Some(index));
        }
        if path.len() != name.len() && !is_system_path(&path) {
            self.add_opaque(OpaqueReason::ScriptFile, path.clone(), Some(index));
            self.run_created_program(index, &path, exit, span);
        }
        let Some(row) = row else {
            if let Some(subcommand) = name.strip_prefix("git-") {
                self.run_git_program(index, subcommand, exit, span);
            }
            if is_suspicious_name(name) {
                self.add_opaque(OpaqueReason::UnknownProgram, path, Some(index));
            } else if path.len() == name.len() || is_system_path(&path) {
                self.add_opaque(OpaqueReason::NoRow, Cow::Borrowed(""), Some(index));
            }
            return;
        };
        let Some(command) = self.commands.get_mut(index) else { return };
        let words = core::mem::take(&mut command.words);
        let mut context =
            CommandContext { walk: self, words: &words, index, exit, options: row.options, span };
        (row.analyze)(&mut context);
        if let Some(command) = self.commands.get_mut(index) {
            command.words = words;
        }
    }

    /// `git-push` is another name of `git push`.
    fn run_git_program(&mut self, index: usize, subcommand: &str, exit: ExitProof, span: LineSpan) {
        let Some(command) = self.commands.get(index) else { return };
        let words = command.words.clone();
        let mut git =
            Vec::from([ShellWord::literal("git"), ShellWord::literal(String::from(subcommand))]);
        git.extend(words.iter().skip(1).cloned());
        let mut context =
            CommandContext { walk: self, words: &words, index, exit, options: "", span };
        context.run_words(git, exit);
    }

    /// Adds a command, unless the limit [`COMMANDS_MAX`] is reached.
    pub(crate) fn push_command(
        &mut self,
        words: Vec<ShellWord<'a>>,
        effects: Vec<FileEffect<'a>>,
        exit: ExitProof,
        span: LineSpan,
    ) -> Option<usize> {
        let index = self.commands.len();
        if self.command_number(index) as usize >= COMMANDS_MAX {
            self.give_up();
            return None;
        }
        let exit = ExitProof {
            success: exit.success && !self.shared.may_have_succeeded,
            failure: exit.failure && !self.shared.may_have_ended,
        };
        self.commands.push(ShellCommand {
            words,
            effects,
            dir: self.working_dir(),
            exit_evidence: exit.evidence(),
            always_runs: self.shared.condition_depth == 0
                && !self.shared.may_have_ended
                && !self.state.errexit,
            span,
            parent: self.parent,
        });
        Some(index)
    }

    /// Walks a call of a function that the line defines. Returns false where a
    /// program of this name may run as well.
    fn call_function(
        &mut self,
        name: &str,
        path: &str,
        words: &[ShellWord<'a>],
        effects: &[FileEffect<'a>],
        exit: ExitProof,
        span: LineSpan,
    ) -> bool {
        let named: Vec<_> = self
            .state
            .functions
            .iter()
            .filter(|function| &*function.name == path && path.len() == name.len())
            .cloned()
            .collect();
        let Some(sure) = named.last().map(|function| function.is_certain) else { return false };
        if let Some(call) = named.iter().find_map(|function| self.running_call(function)) {
            // We follow a recursive function once, not into further rounds.
            let is_certain = call.condition_depth == self.shared.condition_depth;
            let reason = if is_certain && call.process_depth < self.shared.process_depth {
                OpaqueReason::StartsItself
            } else {
                OpaqueReason::TooDeep
            };
            let index = self.push_command(words.to_vec(), effects.to_vec(), ExitProof::LOST, span);
            self.state.forget_variables();
            self.state.dir = WorkingDir::Unknown;
            self.add_opaque(reason, Cow::Owned(path.into()), index);
            return sure;
        }
        if !effects.is_empty() {
            self.push_command(Vec::new(), effects.to_vec(), ExitProof::LOST, span);
        }
        let outer = self.state.positional.take();
        self.state.positional = Some(
            words.iter().skip(1).map(|word| word.clone().into_owned()).collect::<Vec<_>>().into(),
        );
        // Which of several definitions applies may depend on the branches taken.
        let before = self.state.clone();
        let mut after = if sure { ShellState::unreachable() } else { before.clone() };
        self.shared.condition_depth += u32::from(!sure);
        for function in named {
            self.state = before.clone();
            self.shared.uncalled_functions.retain(|other| *other != function);
            let returned = self.shared.returned_state.take();
            let loops = core::mem::take(&mut self.shared.loop_depth);
            self.enter_function(function.clone());
            self.walk_owned_text(&function.body, function.body_start, span, exit);
            self.shared.call_stack.pop();
            self.shared.loop_depth = loops;
            if let Some(state) = core::mem::replace(&mut self.shared.returned_state, returned) {
                self.state = core::mem::take(&mut self.state).join(state);
            }
            let state = core::mem::take(&mut self.state);
            after = after.join(state);
        }
        self.shared.condition_depth -= u32::from(!sure);
        self.state = after;
        self.state.positional = outer;
        self.output = None;
        sure
    }

    /// Remembers that the body of a function is being walked.
    fn enter_function(&mut self, function: ShellFunction) {
        let (condition_depth, process_depth) =
            (self.shared.condition_depth, self.shared.process_depth);
        self.shared.call_stack.push(FunctionCall { function, condition_depth, process_depth });
    }

    /// The call of a function whose body is being walked.
    fn running_call(&self, function: &ShellFunction) -> Option<&FunctionCall> {
        let is_same = |call: &&FunctionCall| {
            call.function.name == function.name && call.function.body == function.body
        };
        self.shared.call_stack.iter().find(is_same)
    }

    /// Walks the functions the line defines but does not call: a trap or a script
    /// may call them.
    pub(crate) fn walk_uncalled_functions(&mut self) {
        self.shared.condition_depth += 1;
        while let Some(function) = self.shared.uncalled_functions.pop() {
            let around = self.enclosing_span;
            self.state.positional = None;
            self.enter_function(function.clone());
            self.walk_owned_text(&function.body, function.body_start, around, ExitProof::LOST);
            self.shared.call_stack.pop();
        }
    }

    fn read_assignment(&self, tree: &SyntaxTree, raw: &RawWord) -> ShellAssignment<'a> {
        let source: &'a str = self.source;
        let text = source.get(raw.start as usize..raw.end as usize).unwrap_or_default();
        let equals = text.find('=').unwrap_or(text.len());
        let left = text.get(..equals).unwrap_or_default();
        let append = left.ends_with('+');
        let left = left.strip_suffix('+').unwrap_or(left);
        let (name, subscript) =
            left.split_once('[').map_or((left, false), |(name, _)| (name, true));
        let value = (raw.flags & ARRAY == 0 && !subscript).then(|| {
            let expander = Expander { source: self.source, tree, state: &self.state };
            expander.expand_unsplit(raw, raw.start as usize + equals + 1)
        });
        ShellAssignment { name, value, append }
    }

    /// Makes the assignments in front of a command, in order. Returns their names.
    fn assign_leading(
        &mut self,
        tree: &SyntaxTree,
        words: ArenaId,
        leading: usize,
        span: LineSpan,
    ) -> Vec<&'a str> {
        let mut names = Vec::with_capacity(leading);
        for raw in tree.words_from(words).take(leading) {
            let assignment = self.read_assignment(tree, raw);
            let value = assignment.value.as_ref();
            let idle = value
                .and_then(ShellWord::exact_text)
                .is_some_and(|value| matches!(value, "" | "cat"));
            if is_program_running_variable(assignment.name) && !idle {
                let text = value.map_or(Cow::Borrowed(""), |value| value.text.clone());
                self.add_opaque(OpaqueReason::Environment, text, None);
                if let Some(opaque) = self.opaque_parts.last_mut() {
                    opaque.span = span;
                }
            }
            if let Some(value) = value {
                self.check_evaluated_text(Some(&value.text));
            }
            self.assign(assignment.name, value, assignment.append);
            if raw.flags & ARRAY != 0 && !assignment.append {
                self.assign_array(tree, raw, assignment.name);
            }
            names.push(assignment.name);
        }
        names
    }

    /// Makes an array assignment such as `a=(b c)`.
    fn assign_array(&mut self, tree: &SyntaxTree, raw: &RawWord, name: &str) {
        let source: &'a str = self.source;
        let text = source.get(raw.start as usize..raw.end as usize).unwrap_or_default();
        let inside = text.strip_suffix(')').and_then(|text| text.split_once("=("));
        let expander = Expander { source: self.source, tree, state: &self.state };
        let words = inside
            .filter(|(left, _)| *left == name)
            .and_then(|(_, text)| expander.array_elements(text));
        if let Some(words) = words {
            self.state.assign_array(name, words);
        }
    }

    pub(crate) fn assign(&mut self, name: &str, value: Option<&ShellWord<'a>>, append: bool) {
        let known = value.filter(|value| value.kind == WordKind::Literal);
        let value = match (known, append) {
            (Some(value), false) => Some(Arc::from(&*value.text)),
            (Some(value), true) => self.state.value(name).map(|old| {
                let mut joined = String::from(&**old);
                joined.push_str(&value.text);
                Arc::from(joined)
            }),
            (None, _) => None,
        };
        self.state.assign(name, value);
    }

    /// Checks a text that bash may evaluate later: a subscript that contains a
    /// command runs that command, whether it is quoted or not.
    pub(crate) fn check_evaluated_text(&mut self, text: Option<&str>) {
        let Some(text) = text else { return };
        if text.contains("[$(") || text.contains("[`") {
            self.add_opaque(OpaqueReason::UnknownScript, Cow::Owned(text.into()), None);
        }
    }

    /// Walks the commands inside the expansions of a word.
    pub(crate) fn walk_substitutions(&mut self, tree: &SyntaxTree, raw: &RawWord, exit: ExitProof) {
        if raw.expansions == NONE {
            return;
        }
        for expansion in tree.expansions_from(raw.expansions) {
            let (start, end) = (expansion.start as usize, expansion.end as usize);
            match expansion.kind {
                ExpansionKind::Command(body) => {
                    let shown = core::mem::take(&mut self.prints_to_line_output);
                    let errexit = core::mem::take(&mut self.state.errexit);
                    self.walk_subshell(tree, body, exit);
                    self.state.errexit = errexit;
                    self.prints_to_line_output = shown;
                }
                ExpansionKind::Process(body) => {
                    let outer = core::mem::replace(&mut self.stdin, StreamContent::Unknown);
                    let shown = core::mem::take(&mut self.prints_to_line_output);
                    let count = self.commands.len();
                    self.output = None;
                    self.walk_subshell(tree, body, ExitProof::LOST);
                    let single = self.commands.len() == count + 1;
                    self.substitution_output = self.output.take().filter(|_| single);
                    self.prints_to_line_output = shown;
                    self.stdin = outer;
                }
                ExpansionKind::Backtick => {
                    let source: &'a str = self.source;
                    let inside = source.get(start + 1..end.saturating_sub(1)).unwrap_or_default();
                    let before = self.state.clone();
                    let shown = core::mem::take(&mut self.prints_to_line_output);
                    self.walk_text(unescape_backticks(inside), exit);
                    self.prints_to_line_output = shown;
                    self.state = before;
                }
                ExpansionKind::Parameter => {
                    let source: &'a str = self.source;
                    let inside = source.get(start..end).unwrap_or_default();
                    if let Some(name) = inside.strip_suffix("@P}") {
                        let name = name.trim_start_matches("${");
                        let value = self.state.value(name).map(|value| String::from(&**value));
                        let text = value.map_or(Cow::Borrowed(inside), Cow::Owned);
                        self.add_opaque(OpaqueReason::UnknownScript, text, None);
                    }
                }
                ExpansionKind::Arithmetic => {}
            }
        }
    }

    pub(crate) fn walk_word_substitutions(&mut self, tree: &SyntaxTree, word: ArenaId) {
        if let Some(raw) = tree.word(word) {
            self.walk_substitutions(tree, raw, ExitProof::LOST);
        }
    }

    /// The number, within the whole line, of a command of this walk.
    pub(crate) fn command_number(&self, index: usize) -> u32 {
        self.first_command_number + to_u32(index)
    }
}

/// Whether a name is suspicious: no program is called like this. It imitates the
/// name of a program, or another shell reads it differently.
fn is_suspicious_name(name: &str) -> bool {
    let common = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
    name.starts_with('-') || !name.bytes().all(common)
}

/// Whether a path is directly in a system directory, so that the name identifies
/// the program.
fn is_system_path(path: &str) -> bool {
    [
        "/bin/",
        "/usr/bin/",
        "/usr/local/bin/",
        "/sbin/",
        "/usr/sbin/",
        "/usr/local/sbin/",
        "/opt/homebrew/bin/",
    ]
    .iter()
    .any(|dir| path.strip_prefix(dir).is_some_and(|rest| !rest.contains('/')))
}

/// Removes the backslashes from a text between backticks, as the inner shell does.
fn unescape_backticks(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match (char, chars.peek()) {
            ('\\', Some('`' | '\\' | '$')) => out.extend(chars.next()),
            _ => out.push(char),
        }
    }
    Cow::Owned(out)
}
