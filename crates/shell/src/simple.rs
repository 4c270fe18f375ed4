//! Simple commands: assignments, redirections, and which program is run.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::expand::Expander;
use crate::limits::COMMANDS_MAX;
use crate::line::{Command, Dir, Effect, Known, Reason, Span, Word, base_name};
use crate::rows;
use crate::scene::Scene;
use crate::state::{Function, State};
use crate::streams::Redirected;
use crate::tree::{ARRAY, ASSIGNS, ExpansionKind, Id, NONE, Node, RawWord, Tree, number};
use crate::walk::{Status, Stdin, Walk};

/// One `name=value`.
struct Assignment<'a> {
    name: &'a str,
    value: Option<Word<'a>>,
    append: bool,
}

/// Variables through which a program runs another or takes orders.
const RUNNING_VARIABLES: [&str; 53] = [
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

/// Whether a variable makes programs run others.
pub(crate) fn is_running_variable(name: &str) -> bool {
    RUNNING_VARIABLES.binary_search(&name).is_ok() || name.starts_with("GIT_CONFIG_VALUE_")
}

impl<'a> Walk<'a> {
    pub(crate) fn simple(&mut self, tree: &Tree, node: &Node, words: Id, exit: Status) {
        let runs = tree.words_from(words).any(|raw| raw.traits & ASSIGNS == 0);
        // `x=$(cmd)` ends as `cmd` does.
        let inner = if runs { Status::LOST } else { exit };
        self.substituted = None;
        for raw in tree.words_from(words) {
            self.substitutions(tree, raw, inner);
        }
        let span = self.span(node);
        self.shared.work += tree.words_from(words).count() / 8;
        let leading = tree.words_from(words).take_while(|raw| raw.traits & ASSIGNS != 0).count();
        // Words are expanded before the assignments in front of them take effect.
        let mut list = Vec::with_capacity(tree.words_from(words).count());
        let expander = Expander { source: self.source, tree, state: &self.state };
        for raw in tree.words_from(words).skip(leading) {
            if raw.traits & ASSIGNS != 0 {
                list.push(expander.single(raw, raw.start as usize));
            } else {
                expander.words(raw, &mut list);
            }
        }
        let Redirected { effects, stdin, away } = self.redirections(tree, node.redirects);
        if list.is_empty() {
            self.assign_leading(tree, words, leading, span);
            if !effects.is_empty() {
                self.push(Vec::new(), effects, exit, span);
            }
            return;
        }
        let outer = stdin.map(|stdin| core::mem::replace(&mut self.stdin, stdin));
        let shown = self.shown;
        let index = self.commands.len();
        self.shown &= !away;
        if leading == 0 {
            self.run(list, effects, exit, span);
        } else {
            let saved = self.state.saved();
            let names = self.assign_leading(tree, words, leading, span);
            self.run(list, effects, exit, span);
            self.state.restore(&saved, names.into_iter());
        }
        self.remember_written(index);
        self.shown = shown;
        let keep = core::mem::take(&mut self.keep_stdin);
        if let Some(outer) = outer.filter(|_| !keep) {
            self.stdin = outer;
        }
    }

    /// Runs a program with its arguments, and whatever that runs.
    pub(crate) fn run(
        &mut self,
        words: Vec<Word<'a>>,
        effects: Vec<Effect<'a>>,
        exit: Status,
        span: Span,
    ) {
        self.shared.work += 1;
        self.output = None;
        let Some(program) = words.first() else { return };
        match program.known {
            Known::Literal => {}
            Known::Home => {
                let text = program.text.clone();
                let Some(index) = self.push(words, effects, exit, span) else { return };
                self.add_opaque(Reason::ScriptFile, text, Some(index));
                return;
            }
            Known::Glob | Known::Unknown | Known::Repository => {
                let Some(index) = self.push(words, effects, exit, span) else { return };
                self.add_opaque(Reason::UnknownProgram, Cow::Borrowed(""), Some(index));
                return;
            }
        }
        let path = program.text.clone();
        let name = base_name(&path);
        if !self.state.functions.is_empty() && self.call(name, &path, &words, &effects, exit, span)
        {
            return;
        }
        let alias = self.state.aliases.iter().any(|alias| *alias == *path);
        let row = rows::find(name);
        let Some(index) = self.push(words, effects, exit, span) else { return };
        if alias {
            self.add_opaque(Reason::Alias, path.clone(), Some(index));
        }
        if path.len() != name.len() && !is_system_path(&path) {
            self.add_opaque(Reason::ScriptFile, path.clone(), Some(index));
            self.run_made(index, &path, exit, span);
        }
        let Some(row) = row else {
            if let Some(subcommand) = name.strip_prefix("git-") {
                self.run_git(index, subcommand, exit, span);
            }
            if is_odd(name) {
                self.add_opaque(Reason::UnknownProgram, path, Some(index));
            } else if path.len() == name.len() || is_system_path(&path) {
                self.add_opaque(Reason::NoRow, Cow::Borrowed(""), Some(index));
            }
            return;
        };
        let Some(command) = self.commands.get_mut(index) else { return };
        let words = core::mem::take(&mut command.words);
        let mut scene =
            Scene { walk: self, words: &words, index, exit, options: row.options, span };
        (row.act)(&mut scene);
        if let Some(command) = self.commands.get_mut(index) {
            command.words = words;
        }
    }

    /// `git-push` is `git push` under a name of its own.
    fn run_git(&mut self, index: usize, subcommand: &str, exit: Status, span: Span) {
        let Some(command) = self.commands.get(index) else { return };
        let words = command.words.clone();
        let mut git = Vec::from([Word::literal("git"), Word::literal(String::from(subcommand))]);
        git.extend(words.iter().skip(1).cloned());
        let mut scene = Scene { walk: self, words: &words, index, exit, options: "", span };
        scene.run(git, exit);
    }

    /// Adds a command, unless there are as many as we follow.
    pub(crate) fn push(
        &mut self,
        words: Vec<Word<'a>>,
        effects: Vec<Effect<'a>>,
        exit: Status,
        span: Span,
    ) -> Option<usize> {
        let index = self.commands.len();
        if self.number_of(index) as usize >= COMMANDS_MAX {
            self.give_up();
            return None;
        }
        let exit = Status {
            success: exit.success && !self.shared.ended_well,
            failure: exit.failure && !self.shared.ended,
        };
        self.commands.push(Command {
            words,
            effects,
            dir: self.dir(),
            exit: exit.exit(),
            certain: self.shared.perhaps == 0 && !self.shared.ended && !self.state.errexit,
            span,
            parent: self.parent,
        });
        Some(index)
    }

    /// Calls a function of the line. False where a program is run as well.
    fn call(
        &mut self,
        name: &str,
        path: &str,
        words: &[Word<'a>],
        effects: &[Effect<'a>],
        exit: Status,
        span: Span,
    ) -> bool {
        let named: Vec<_> = self
            .state
            .functions
            .iter()
            .filter(|function| &*function.name == path && path.len() == name.len())
            .cloned()
            .collect();
        let Some(sure) = named.last().map(|function| function.sure) else { return false };
        if named.iter().any(|function| self.is_calling(function)) {
            // One round of a recursion is seen, further ones are not.
            let index = self.push(words.to_vec(), effects.to_vec(), Status::LOST, span);
            self.state.forget_variables();
            self.state.dir = Dir::Unknown;
            self.add_opaque(Reason::TooDeep, Cow::Owned(path.into()), index);
            return sure;
        }
        if !effects.is_empty() {
            self.push(Vec::new(), effects.to_vec(), Status::LOST, span);
        }
        let outer = self.state.positional.take();
        self.state.positional = Some(
            words.iter().skip(1).map(|word| word.clone().into_owned()).collect::<Vec<_>>().into(),
        );
        // Which of several definitions is in force may depend on the way here.
        let before = self.state.clone();
        let mut after = if sure { State::unreachable() } else { before.clone() };
        self.shared.perhaps += u32::from(!sure);
        for function in named {
            self.state = before.clone();
            self.shared.uncalled.retain(|other| *other != function);
            let returned = self.shared.returned.take();
            let loops = core::mem::take(&mut self.shared.loops);
            self.shared.calling.push(function.clone());
            self.written_text(&function.body, function.base, span, exit);
            self.shared.calling.pop();
            self.shared.loops = loops;
            if let Some(state) = core::mem::replace(&mut self.shared.returned, returned) {
                self.state = core::mem::take(&mut self.state).join(state);
            }
            let state = core::mem::take(&mut self.state);
            after = after.join(state);
        }
        self.shared.perhaps -= u32::from(!sure);
        self.state = after;
        self.state.positional = outer;
        self.output = None;
        sure
    }

    fn is_calling(&self, function: &Function) -> bool {
        let calling = &self.shared.calling;
        calling.iter().any(|other| other.name == function.name && other.body == function.body)
    }

    /// Walks the functions nobody called: something else may call them.
    pub(crate) fn uncalled(&mut self) {
        self.shared.perhaps += 1;
        while let Some(function) = self.shared.uncalled.pop() {
            let around = self.around;
            self.state.positional = None;
            self.shared.calling.push(function.clone());
            self.written_text(&function.body, function.base, around, Status::LOST);
            self.shared.calling.pop();
        }
    }

    fn assignment(&self, tree: &Tree, raw: &RawWord) -> Assignment<'a> {
        let source: &'a str = self.source;
        let text = source.get(raw.start as usize..raw.end as usize).unwrap_or_default();
        let equals = text.find('=').unwrap_or(text.len());
        let left = text.get(..equals).unwrap_or_default();
        let append = left.ends_with('+');
        let left = left.strip_suffix('+').unwrap_or(left);
        let (name, subscript) =
            left.split_once('[').map_or((left, false), |(name, _)| (name, true));
        let value = (raw.traits & ARRAY == 0 && !subscript).then(|| {
            let expander = Expander { source: self.source, tree, state: &self.state };
            expander.single(raw, raw.start as usize + equals + 1)
        });
        Assignment { name, value, append }
    }

    /// Makes the assignments in front of a command, one after the other.
    fn assign_leading(
        &mut self,
        tree: &Tree,
        words: Id,
        leading: usize,
        span: Span,
    ) -> Vec<&'a str> {
        let mut names = Vec::with_capacity(leading);
        for raw in tree.words_from(words).take(leading) {
            let assignment = self.assignment(tree, raw);
            let value = assignment.value.as_ref();
            let idle = value.and_then(Word::exact).is_some_and(|value| matches!(value, "" | "cat"));
            if is_running_variable(assignment.name) && !idle {
                let text = value.map_or(Cow::Borrowed(""), |value| value.text.clone());
                self.add_opaque(Reason::Environment, text, None);
                if let Some(opaque) = self.opaque.last_mut() {
                    opaque.span = span;
                }
            }
            if let Some(value) = value {
                self.evaluated(Some(&value.text));
            }
            self.assign(assignment.name, value, assignment.append);
            if raw.traits & ARRAY != 0 && !assignment.append {
                self.assign_array(tree, raw, assignment.name);
            }
            names.push(assignment.name);
        }
        names
    }

    /// Makes an assignment of the form `a=(b c)`.
    fn assign_array(&mut self, tree: &Tree, raw: &RawWord, name: &str) {
        let source: &'a str = self.source;
        let text = source.get(raw.start as usize..raw.end as usize).unwrap_or_default();
        let inside = text.strip_suffix(')').and_then(|text| text.split_once("=("));
        let expander = Expander { source: self.source, tree, state: &self.state };
        let words =
            inside.filter(|(left, _)| *left == name).and_then(|(_, text)| expander.array(text));
        if let Some(words) = words {
            self.state.assign_array(name, words);
        }
    }

    pub(crate) fn assign(&mut self, name: &str, value: Option<&Word<'a>>, append: bool) {
        let known = value.filter(|value| value.known == Known::Literal);
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

    /// Text that bash may evaluate later: a subscript with a command in it runs
    /// that command, quotes or not.
    pub(crate) fn evaluated(&mut self, text: Option<&str>) {
        let Some(text) = text else { return };
        if text.contains("[$(") || text.contains("[`") {
            self.add_opaque(Reason::UnknownScript, Cow::Owned(text.into()), None);
        }
    }

    /// Runs what the expansions of a word run.
    pub(crate) fn substitutions(&mut self, tree: &Tree, raw: &RawWord, exit: Status) {
        if raw.expansions == NONE {
            return;
        }
        for expansion in tree.expansions_from(raw.expansions) {
            let (start, end) = (expansion.start as usize, expansion.end as usize);
            match expansion.kind {
                ExpansionKind::Command(body) => {
                    let shown = core::mem::take(&mut self.shown);
                    let errexit = core::mem::take(&mut self.state.errexit);
                    self.subshell(tree, body, exit);
                    self.state.errexit = errexit;
                    self.shown = shown;
                }
                ExpansionKind::Process(body) => {
                    let outer = core::mem::replace(&mut self.stdin, Stdin::Unknown);
                    let shown = core::mem::take(&mut self.shown);
                    let count = self.commands.len();
                    self.output = None;
                    self.subshell(tree, body, Status::LOST);
                    let single = self.commands.len() == count + 1;
                    self.substituted = self.output.take().filter(|_| single);
                    self.shown = shown;
                    self.stdin = outer;
                }
                ExpansionKind::Backtick => {
                    let source: &'a str = self.source;
                    let inside = source.get(start + 1..end.saturating_sub(1)).unwrap_or_default();
                    let before = self.state.clone();
                    let shown = core::mem::take(&mut self.shown);
                    self.text(unescaped(inside), exit);
                    self.shown = shown;
                    self.state = before;
                }
                ExpansionKind::Parameter => {
                    let source: &'a str = self.source;
                    let inside = source.get(start..end).unwrap_or_default();
                    if let Some(name) = inside.strip_suffix("@P}") {
                        let name = name.trim_start_matches("${");
                        let value = self.state.value(name).map(|value| String::from(&**value));
                        let text = value.map_or(Cow::Borrowed(inside), Cow::Owned);
                        self.add_opaque(Reason::UnknownScript, text, None);
                    }
                }
                ExpansionKind::Arithmetic => {}
            }
        }
    }

    pub(crate) fn substitutions_of(&mut self, tree: &Tree, word: Id) {
        if let Some(raw) = tree.word(word) {
            self.substitutions(tree, raw, Status::LOST);
        }
    }

    /// The number of a command of this walk within the line.
    pub(crate) fn number_of(&self, index: usize) -> u32 {
        self.first + number(index)
    }
}

/// No program has such a name: it is made to look like another one's, or another
/// shell reads it in another way.
fn is_odd(name: &str) -> bool {
    let common = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
    name.starts_with('-') || !name.bytes().all(common)
}

/// A program in one of the system's own directories is what its name says.
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

/// The text between backticks as the inner shell reads it.
fn unescaped(text: &str) -> Cow<'_, str> {
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
