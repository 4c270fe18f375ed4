//! The interface between a command and its row in the table of programs: the row
//! reads the arguments and reports effects, opaque parts and inner commands.

use alloc::borrow::Cow;
use alloc::format;
use alloc::vec::Vec;

use crate::shell_line::{
    Access, FileEffect, LineSpan, OpaqueReason, ReadExtent, ShellWord, WordKind, WorkingDir,
};
use crate::shell_walk::{ExitProof, ShellWalk, StreamContent};

/// The command that a row analyses, and the walk that collects the results.
pub(crate) struct CommandContext<'w, 'a> {
    pub(crate) walk: &'w mut ShellWalk<'a>,
    /// The program and its arguments.
    pub(crate) words: &'w [ShellWord<'a>],
    /// The index of the command in the walk's list of commands.
    pub(crate) index: usize,
    pub(crate) exit: ExitProof,
    /// The options that take a value, from the program's row.
    pub(crate) options: &'static str,
    pub(crate) span: LineSpan,
}

/// The options of a program that runs another one. They end at the first operand;
/// everything behind it belongs to the command that the program runs.
pub(crate) struct LeadingOptions<'w, 'a> {
    options: Vec<(&'w str, Option<ShellWord<'a>>)>,
    /// Operands that the program skips, such as `A=b` in `sudo A=b cmd`.
    pub(crate) skipped_operands: Vec<usize>,
    /// The index of the first operand.
    pub(crate) first_operand: Option<usize>,
}

impl<'a> LeadingOptions<'_, 'a> {
    /// Whether the command has any of these options.
    pub(crate) fn has_option(&self, names: &[&str]) -> bool {
        self.options.iter().any(|(given, _)| names.iter().any(|name| is_abbreviation(given, name)))
    }

    /// The value of the last of these options.
    pub(crate) fn option_value(&self, names: &[&str]) -> Option<ShellWord<'a>> {
        let given = self.options.iter().filter(|(given, _)| names.contains(given));
        given.filter_map(|(_, value)| value.clone()).next_back()
    }

    /// Whether the command has no other options than these.
    pub(crate) fn has_only_options(&self, names: &[&str]) -> bool {
        self.options.iter().all(|(given, _)| names.contains(given))
    }

    /// Whether every option of the command has a value.
    pub(crate) fn all_have_values(&self) -> bool {
        self.options.iter().all(|(_, value)| value.is_some())
    }
}

/// Whether `given` is the option `name`, or an abbreviation of the long option `name`.
fn is_abbreviation(given: &str, name: &str) -> bool {
    given == name || (given.len() > 1 && name.starts_with(given))
}

/// An argument, as programs that use `getopt` read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommandArg<'w, 'a> {
    /// Not an option; the index of the word.
    Operand(usize),
    /// An option without its dashes, and its value if it takes one.
    Option(&'w str, Option<ShellWord<'a>>),
}

/// Reads arguments from left to right.
#[derive(Clone)]
pub(crate) struct ArgReader<'w, 'a> {
    words: &'w [ShellWord<'a>],
    options: &'static str,
    at: usize,
    /// The rest of a group of short options: the index of the word and the next byte.
    short_options: Option<(usize, usize)>,
    no_more_options: bool,
}

impl<'w, 'a> ArgReader<'w, 'a> {
    pub(crate) fn new(words: &'w [ShellWord<'a>], options: &'static str) -> Self {
        Self { words, options, at: 1, short_options: None, no_more_options: false }
    }

    /// The index of the first word that is not read yet.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Whether an option takes the next word as its value: `options` lists
    /// these options.
    fn takes_value(&self, name: &str) -> bool {
        self.options.split(' ').any(|option| option == name)
    }

    /// Whether a short option takes the rest of its own word as its value: `options`
    /// marks these options with `?`.
    fn takes_attached_value(&self, name: &str) -> bool {
        self.options.split(' ').any(|option| option.strip_suffix('?') == Some(name))
    }

    /// The full name of a long option. An abbreviation is accepted unless it is
    /// itself the name of another option.
    fn full_option_name(&self, given: &'w str) -> &'w str {
        if given.len() < 2 || self.takes_value(given) || self.takes_attached_value(given) {
            return given;
        }
        let mut options = self.options.split(' ').map(|option| option.trim_end_matches('?'));
        options.find(|option| option.starts_with(given)).unwrap_or(given)
    }

    fn read_short_option(&mut self, index: usize, from: usize) -> Option<CommandArg<'w, 'a>> {
        let word = self.words.get(index)?;
        let rest = word.text.get(from..)?;
        let length = rest.chars().next()?.len_utf8();
        let name = rest.get(..length)?;
        let after = from + length;
        self.short_options = None;
        if self.takes_value(name) {
            let value = if after < word.text.len() {
                Some(word_tail(word, after))
            } else {
                self.at += 1;
                self.words.get(self.at - 1).cloned()
            };
            return Some(CommandArg::Option(name, value));
        }
        if self.takes_attached_value(name) {
            let value = (after < word.text.len()).then(|| word_tail(word, after));
            return Some(CommandArg::Option(name, value));
        }
        if after < word.text.len() {
            self.short_options = Some((index, after));
        }
        Some(CommandArg::Option(name, None))
    }
}

impl<'w, 'a> Iterator for ArgReader<'w, 'a> {
    type Item = CommandArg<'w, 'a>;

    fn next(&mut self) -> Option<CommandArg<'w, 'a>> {
        if let Some((index, from)) = self.short_options {
            return self.read_short_option(index, from);
        }
        let index = self.at;
        let word = self.words.get(index)?;
        self.at += 1;
        let text: &'w str = &word.text;
        if self.no_more_options || !text.starts_with('-') || text == "-" {
            return Some(CommandArg::Operand(index));
        }
        if text == "--" {
            self.no_more_options = true;
            return self.next();
        }
        let Some(long) = text.strip_prefix("--") else { return self.read_short_option(index, 1) };
        if let Some((name, value)) = long.split_once('=') {
            let value = word_tail(word, text.len() - value.len());
            return Some(CommandArg::Option(self.full_option_name(name), Some(value)));
        }
        let long = self.full_option_name(long);
        let value = self.takes_value(long).then(|| {
            self.at += 1;
            self.words.get(self.at - 1).cloned()
        });
        Some(CommandArg::Option(long, value.flatten()))
    }
}

/// The part of a word that starts at a byte.
pub(crate) fn word_tail<'a>(word: &ShellWord<'a>, from: usize) -> ShellWord<'a> {
    let text = match &word.text {
        Cow::Borrowed(text) => Cow::Borrowed(text.get(from..).unwrap_or_default()),
        Cow::Owned(text) => Cow::Owned(text.get(from..).unwrap_or_default().into()),
    };
    let known = if word.kind == WordKind::Home { WordKind::Literal } else { word.kind };
    let home = known == WordKind::Literal && text.starts_with('~');
    ShellWord { text, kind: if home { WordKind::Home } else { known } }
}

/// Whether a word names a device or a standard stream. We report no effects on them.
pub(crate) fn is_device(word: &ShellWord<'_>) -> bool {
    let text = &*word.text;
    word.kind == WordKind::Literal
        && (text == "-"
            || matches!(
                text,
                "/dev/null"
                    | "/dev/stdin"
                    | "/dev/stdout"
                    | "/dev/stderr"
                    | "/dev/tty"
                    | "/dev/zero"
                    | "/dev/urandom"
                    | "/dev/random"
            )
            || text.starts_with("/dev/fd/")
            || text.starts_with("/proc/self/fd/"))
}

impl<'w, 'a> CommandContext<'w, 'a> {
    pub(crate) fn args(&self) -> ArgReader<'w, 'a> {
        ArgReader::new(self.words, self.options)
    }

    pub(crate) fn word(&self, index: usize) -> Option<&'w ShellWord<'a>> {
        self.words.get(index)
    }

    /// The text of a word, if it is exactly what the program sees.
    pub(crate) fn exact_text(&self, index: usize) -> Option<&'w str> {
        self.words.get(index).and_then(ShellWord::exact_text)
    }

    /// The operands: arguments that are not options.
    pub(crate) fn operands(&self) -> Vec<ShellWord<'a>> {
        self.args()
            .filter_map(|arg| match arg {
                CommandArg::Operand(index) => self.words.get(index).cloned(),
                CommandArg::Option(..) => None,
            })
            .collect()
    }

    /// The options of a program that runs another one, and where the inner command starts.
    pub(crate) fn leading_options(&self) -> LeadingOptions<'w, 'a> {
        self.leading_options_skipping(|_| false)
    }

    /// Like [`Self::leading_options`], for a program that skips some operands.
    pub(crate) fn leading_options_skipping(
        &self,
        passes: fn(&ShellWord<'a>) -> bool,
    ) -> LeadingOptions<'w, 'a> {
        let mut leading = LeadingOptions {
            options: Vec::new(),
            skipped_operands: Vec::new(),
            first_operand: None,
        };
        for arg in self.args() {
            match arg {
                CommandArg::Option(name, value) => leading.options.push((name, value)),
                CommandArg::Operand(index) if self.word(index).is_some_and(passes) => {
                    leading.skipped_operands.push(index);
                }
                CommandArg::Operand(index) => {
                    leading.first_operand = Some(index);
                    break;
                }
            }
        }
        leading
    }

    /// Whether the command has any of these options.
    pub(crate) fn has_option(&self, names: &[&str]) -> bool {
        let mut args = self.args();
        let own = args.clone();
        args.any(|arg| match arg {
            CommandArg::Option(given, _) if own.takes_value(given) => names.contains(&given),
            CommandArg::Option(given, _) => names.iter().any(|name| is_abbreviation(given, name)),
            CommandArg::Operand(_) => false,
        })
    }

    /// The value of the last of these options.
    pub(crate) fn option_value(&self, names: &[&str]) -> Option<ShellWord<'a>> {
        self.args()
            .filter_map(|arg| match arg {
                CommandArg::Option(name, value) if names.contains(&name) => value,
                _ => None,
            })
            .last()
    }

    pub(crate) fn add_effect(&mut self, access: Access, path: ShellWord<'a>, recursive: bool) {
        if path.text.is_empty() && path.kind == WordKind::Literal {
            return;
        }
        if is_device(&path) {
            let reads = matches!(access, Access::Read(_));
            let opened = if reads { Vec::new() } else { self.walk.reopened_files(&path, access) };
            if let Some(command) = self.walk.commands.get_mut(self.index) {
                command.effects.extend(opened);
            }
            return;
        }
        if let Some(command) = self.walk.commands.get_mut(self.index) {
            command.effects.push(FileEffect { access, path, recursive });
        }
    }

    pub(crate) fn add_read(&mut self, path: ShellWord<'a>, lines: ReadExtent) {
        let lines = if self.walk.prints_to_line_output { lines } else { ReadExtent::Partial };
        self.add_effect(Access::Read(lines), path, false);
    }

    /// Records that the command prints all lines of the only file it reads.
    pub(crate) fn mark_lines_passed_on(&mut self) {
        let effects = self.walk.commands.get(self.index).map_or(0, |command| command.effects.len());
        self.walk.passed_file = effects.checked_sub(1).map(|effect| (self.index, effect));
    }

    /// Records how much of its piped input the command shows: `nl f | sed -n 1,80p`.
    pub(crate) fn set_piped_extent(&mut self, lines: ReadExtent) {
        // Only the first reader of the pipe gets the lines starting with line 1.
        if let Some((command, effect)) = self.walk.piped_file
            && self.index == command + 1
            && self.walk.prints_to_line_output
            && let Some(command) = self.walk.commands.get_mut(command)
            && let Some(effect) = command.effects.get_mut(effect)
        {
            effect.access = Access::Read(lines);
        }
    }

    pub(crate) fn add_write(&mut self, path: ShellWord<'a>) {
        self.add_effect(Access::Write, path, false);
    }

    pub(crate) fn add_delete(&mut self, path: ShellWord<'a>, recursive: bool) {
        self.add_effect(Access::Delete, path, recursive);
    }

    pub(crate) fn add_opaque(&mut self, reason: OpaqueReason, text: impl Into<Cow<'a, str>>) {
        self.walk.add_opaque(reason, text.into(), Some(self.index));
    }

    /// Records that the program changes the directory before it works (`git -C dir`).
    pub(crate) fn set_working_dir(&mut self, dir: WorkingDir) {
        let Some(command) = self.walk.commands.get_mut(self.index) else { return };
        let here = core::mem::replace(&mut command.dir, dir);
        // The shell made the redirections in its own directory.
        let redirected = core::mem::take(&mut command.effects);
        if !redirected.is_empty() {
            let index = self.walk.push_command(Vec::new(), redirected, ExitProof::LOST, self.span);
            if let Some(command) = index.and_then(|index| self.walk.commands.get_mut(index)) {
                command.dir = here;
            }
        }
    }

    /// Walks the words that start at `from` as a command that this one runs.
    pub(crate) fn run_from(&mut self, from: usize, exit: ExitProof) {
        let words = self.words.get(from..).unwrap_or_default().to_vec();
        self.run_words(words, exit);
    }

    /// Walks words as a command that this one runs any number of times.
    pub(crate) fn run_repeatedly(&mut self, words: Vec<ShellWord<'a>>) {
        self.walk.shared.condition_depth += 1;
        self.run_words(words, ExitProof::LOST);
        self.walk.shared.condition_depth -= 1;
    }

    /// Walks words as a command that this one runs.
    pub(crate) fn run_words(&mut self, words: Vec<ShellWord<'a>>, exit: ExitProof) {
        if words.is_empty() {
            return;
        }
        if self.walk.shared.text_depth >= crate::limits::NESTED_TEXTS_MAX {
            self.add_opaque(OpaqueReason::TooDeep, "");
            return;
        }
        self.walk.shared.text_depth += 1;
        let parent = self.walk.parent.replace(self.walk.command_number(self.index));
        // A program can run only programs: functions and aliases belong to the shell.
        let functions = core::mem::take(&mut self.walk.state.functions);
        let aliases = core::mem::take(&mut self.walk.state.aliases);
        self.walk.run_command(words, Vec::new(), exit, self.span);
        if !functions.is_empty() {
            self.walk.state.functions = functions;
        }
        if !aliases.is_empty() {
            self.walk.state.aliases = aliases;
        }
        self.walk.parent = parent;
        self.walk.shared.text_depth -= 1;
    }

    /// Walks a word as shell text that runs in a child shell.
    pub(crate) fn run_child_text(
        &mut self,
        text: &ShellWord<'a>,
        parameters: Option<&[ShellWord<'a>]>,
    ) {
        let outer = self.walk.state.clone();
        self.walk.state = outer.child_state();
        self.walk.state.positional = parameters.map(|words| {
            words.iter().map(|word| word.clone().into_owned()).collect::<Vec<_>>().into()
        });
        self.run_text(text, self.exit);
        self.walk.state = outer;
    }

    /// Walks a word as shell text that runs in this shell.
    pub(crate) fn run_text(&mut self, text: &ShellWord<'a>, exit: ExitProof) {
        if text.kind != WordKind::Literal {
            self.add_opaque(OpaqueReason::UnknownScript, text.text.clone());
        }
        let parent = self.walk.parent.replace(self.walk.command_number(self.index));
        let around = core::mem::replace(&mut self.walk.enclosing_span, self.span);
        self.walk.walk_text(text.text.clone(), exit);
        self.walk.enclosing_span = around;
        self.walk.parent = parent;
    }

    /// The standard input of the command, which some programs read as a script.
    pub(crate) fn stdin_content(&self) -> StreamContent<'a> {
        self.walk.stdin.clone()
    }

    /// Reports a word with an unknown value: it may be an option that changes what
    /// the program does.
    pub(crate) fn report_unknown_options(&mut self) {
        let unknown = self
            .words
            .iter()
            .skip(1)
            .find(|word| word.kind == WordKind::Unknown && word.text.starts_with(['$', '`']));
        if let Some(word) = unknown {
            self.add_opaque(OpaqueReason::UnknownArguments, word.text.clone());
        }
    }

    /// The path of a file when it is placed inside a directory.
    pub(crate) fn path_inside(dir: &ShellWord<'a>, name: &ShellWord<'a>) -> ShellWord<'a> {
        let base = crate::shell_line::base_name(name.text.trim_end_matches('/'));
        let known = match (dir.kind, name.kind) {
            (WordKind::Unknown, _) | (_, WordKind::Unknown) => WordKind::Unknown,
            (WordKind::Glob, _) | (_, WordKind::Glob) => WordKind::Glob,
            (dir, _) => dir,
        };
        let base = if base.is_empty() || base == "." || base == ".." { "." } else { base };
        ShellWord {
            text: Cow::Owned(format!("{}/{base}", dir.text.trim_end_matches('/'))),
            kind: known,
        }
    }
}
