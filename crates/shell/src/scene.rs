//! What a row of the table sees of a command, and what it may say about it.

use alloc::borrow::Cow;
use alloc::format;
use alloc::vec::Vec;

use crate::line::{Access, Dir, Effect, Known, Lines, Reason, Span, Word};
use crate::walk::{Status, Stdin, Walk};

/// One command on the way through its row.
pub(crate) struct Scene<'w, 'a> {
    pub(crate) walk: &'w mut Walk<'a>,
    /// The program and its arguments.
    pub(crate) words: &'w [Word<'a>],
    /// Its place among the walk's commands.
    pub(crate) index: usize,
    pub(crate) exit: Status,
    /// The options of its row that take a value.
    pub(crate) options: &'static str,
    pub(crate) span: Span,
}

/// The options of a program that runs another: they end at its first operand,
/// and what stands behind that belongs to the command it runs.
pub(crate) struct Leading<'w, 'a> {
    options: Vec<(&'w str, Option<Word<'a>>)>,
    /// Operands that were passed over, such as the `A=b` of `sudo A=b cmd`.
    pub(crate) passed: Vec<usize>,
    /// Where the first operand stands.
    pub(crate) first: Option<usize>,
}

impl<'a> Leading<'_, 'a> {
    /// Whether any of these options is given.
    pub(crate) fn has(&self, names: &[&str]) -> bool {
        self.options.iter().any(|(given, _)| names.iter().any(|name| is_short_for(given, name)))
    }

    /// The value of the last of these options that is given.
    pub(crate) fn value(&self, names: &[&str]) -> Option<Word<'a>> {
        let given = self.options.iter().filter(|(given, _)| names.contains(given));
        given.filter_map(|(_, value)| value.clone()).next_back()
    }

    /// Whether no other options than these are given.
    pub(crate) fn is_plain(&self, names: &[&str]) -> bool {
        self.options.iter().all(|(given, _)| names.contains(given))
    }

    /// Whether every option that is given has a value.
    pub(crate) fn all_have_values(&self) -> bool {
        self.options.iter().all(|(_, value)| value.is_some())
    }
}

/// Whether an option is another one, or a long one that is not written out.
fn is_short_for(given: &str, name: &str) -> bool {
    given == name || (given.len() > 1 && name.starts_with(given))
}

/// An argument, as programs that follow `getopt` read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Arg<'w, 'a> {
    /// Not an option; its place among the words.
    Operand(usize),
    /// An option without its dashes, and its value if it takes one.
    Option(&'w str, Option<Word<'a>>),
}

/// Reads arguments from left to right.
#[derive(Clone)]
pub(crate) struct Args<'w, 'a> {
    words: &'w [Word<'a>],
    options: &'static str,
    at: usize,
    /// The rest of a cluster of short options: the word, and from which byte.
    cluster: Option<(usize, usize)>,
    no_more_options: bool,
}

impl<'w, 'a> Args<'w, 'a> {
    pub(crate) fn new(words: &'w [Word<'a>], options: &'static str) -> Self {
        Self { words, options, at: 1, cluster: None, no_more_options: false }
    }

    /// The first word that was not looked at yet.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Whether an option takes the next word as its value: `options` lists
    /// those that do.
    fn takes_value(&self, name: &str) -> bool {
        self.options.split(' ').any(|option| option == name)
    }

    /// Whether a short option takes the rest of its own word: marked by a `?`.
    fn takes_rest(&self, name: &str) -> bool {
        self.options.split(' ').any(|option| option.strip_suffix('?') == Some(name))
    }

    /// The long option that is meant: any start of its name that is not the
    /// name of another one will do.
    fn meant(&self, given: &'w str) -> &'w str {
        if given.len() < 2 || self.takes_value(given) || self.takes_rest(given) {
            return given;
        }
        let mut options = self.options.split(' ').map(|option| option.trim_end_matches('?'));
        options.find(|option| option.starts_with(given)).unwrap_or(given)
    }

    fn short(&mut self, index: usize, from: usize) -> Option<Arg<'w, 'a>> {
        let word = self.words.get(index)?;
        let rest = word.text.get(from..)?;
        let length = rest.chars().next()?.len_utf8();
        let name = rest.get(..length)?;
        let after = from + length;
        self.cluster = None;
        if self.takes_value(name) {
            let value = if after < word.text.len() {
                Some(tail(word, after))
            } else {
                self.at += 1;
                self.words.get(self.at - 1).cloned()
            };
            return Some(Arg::Option(name, value));
        }
        if self.takes_rest(name) {
            let value = (after < word.text.len()).then(|| tail(word, after));
            return Some(Arg::Option(name, value));
        }
        if after < word.text.len() {
            self.cluster = Some((index, after));
        }
        Some(Arg::Option(name, None))
    }
}

impl<'w, 'a> Iterator for Args<'w, 'a> {
    type Item = Arg<'w, 'a>;

    fn next(&mut self) -> Option<Arg<'w, 'a>> {
        if let Some((index, from)) = self.cluster {
            return self.short(index, from);
        }
        let index = self.at;
        let word = self.words.get(index)?;
        self.at += 1;
        let text: &'w str = &word.text;
        if self.no_more_options || !text.starts_with('-') || text == "-" {
            return Some(Arg::Operand(index));
        }
        if text == "--" {
            self.no_more_options = true;
            return self.next();
        }
        let Some(long) = text.strip_prefix("--") else { return self.short(index, 1) };
        if let Some((name, value)) = long.split_once('=') {
            let value = tail(word, text.len() - value.len());
            return Some(Arg::Option(self.meant(name), Some(value)));
        }
        let long = self.meant(long);
        let value = self.takes_value(long).then(|| {
            self.at += 1;
            self.words.get(self.at - 1).cloned()
        });
        Some(Arg::Option(long, value.flatten()))
    }
}

/// The part of a word from a byte on.
pub(crate) fn tail<'a>(word: &Word<'a>, from: usize) -> Word<'a> {
    let text = match &word.text {
        Cow::Borrowed(text) => Cow::Borrowed(text.get(from..).unwrap_or_default()),
        Cow::Owned(text) => Cow::Owned(text.get(from..).unwrap_or_default().into()),
    };
    let known = if word.known == Known::Home { Known::Literal } else { word.known };
    let home = known == Known::Literal && text.starts_with('~');
    Word { text, known: if home { Known::Home } else { known } }
}

/// Devices and standard streams, which are no files anybody minds.
pub(crate) fn is_device(word: &Word<'_>) -> bool {
    let text = &*word.text;
    word.known == Known::Literal
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

impl<'w, 'a> Scene<'w, 'a> {
    pub(crate) fn args(&self) -> Args<'w, 'a> {
        Args::new(self.words, self.options)
    }

    pub(crate) fn word(&self, index: usize) -> Option<&'w Word<'a>> {
        self.words.get(index)
    }

    /// What a word says, if that is certain.
    pub(crate) fn exact(&self, index: usize) -> Option<&'w str> {
        self.words.get(index).and_then(Word::exact)
    }

    /// The operands: arguments that are no options.
    pub(crate) fn operands(&self) -> Vec<Word<'a>> {
        self.args()
            .filter_map(|arg| match arg {
                Arg::Operand(index) => self.words.get(index).cloned(),
                Arg::Option(..) => None,
            })
            .collect()
    }

    /// The options of a program that runs another, and where its command starts.
    pub(crate) fn leading(&self) -> Leading<'w, 'a> {
        self.leading_past(|_| false)
    }

    /// The same for a program that passes over some operands.
    pub(crate) fn leading_past(&self, passes: fn(&Word<'a>) -> bool) -> Leading<'w, 'a> {
        let mut leading = Leading { options: Vec::new(), passed: Vec::new(), first: None };
        for arg in self.args() {
            match arg {
                Arg::Option(name, value) => leading.options.push((name, value)),
                Arg::Operand(index) if self.word(index).is_some_and(passes) => {
                    leading.passed.push(index);
                }
                Arg::Operand(index) => {
                    leading.first = Some(index);
                    break;
                }
            }
        }
        leading
    }

    /// Whether any of these options is given.
    pub(crate) fn has(&self, names: &[&str]) -> bool {
        let mut args = self.args();
        let own = args.clone();
        args.any(|arg| match arg {
            Arg::Option(given, _) if own.takes_value(given) => names.contains(&given),
            Arg::Option(given, _) => names.iter().any(|name| is_short_for(given, name)),
            Arg::Operand(_) => false,
        })
    }

    /// The value of the last of these options that is given.
    pub(crate) fn value(&self, names: &[&str]) -> Option<Word<'a>> {
        self.args()
            .filter_map(|arg| match arg {
                Arg::Option(name, value) if names.contains(&name) => value,
                _ => None,
            })
            .last()
    }

    pub(crate) fn effect(&mut self, access: Access, path: Word<'a>, recursive: bool) {
        if path.text.is_empty() && path.known == Known::Literal {
            return;
        }
        if is_device(&path) {
            let reads = matches!(access, Access::Read(_));
            let opened = if reads { Vec::new() } else { self.walk.reopened(&path, access) };
            if let Some(command) = self.walk.commands.get_mut(self.index) {
                command.effects.extend(opened);
            }
            return;
        }
        if let Some(command) = self.walk.commands.get_mut(self.index) {
            command.effects.push(Effect { access, path, recursive });
        }
    }

    pub(crate) fn read(&mut self, path: Word<'a>, lines: Lines) {
        let lines = if self.walk.shown { lines } else { Lines::Some };
        self.effect(Access::Read(lines), path, false);
    }

    /// Passes on the lines of the only file it reads, all of them.
    pub(crate) fn passes_lines(&mut self) {
        let effects = self.walk.commands.get(self.index).map_or(0, |command| command.effects.len());
        self.walk.passes = effects.checked_sub(1).map(|effect| (self.index, effect));
    }

    /// Shows so much of what it is fed: `nl f | sed -n 1,80p`.
    pub(crate) fn shows_fed(&mut self, lines: Lines) {
        // Only the first reader of the pipe gets the lines from the first on.
        if let Some((command, effect)) = self.walk.fed
            && self.index == command + 1
            && self.walk.shown
            && let Some(command) = self.walk.commands.get_mut(command)
            && let Some(effect) = command.effects.get_mut(effect)
        {
            effect.access = Access::Read(lines);
        }
    }

    pub(crate) fn write(&mut self, path: Word<'a>) {
        self.effect(Access::Write, path, false);
    }

    pub(crate) fn delete(&mut self, path: Word<'a>, recursive: bool) {
        self.effect(Access::Delete, path, recursive);
    }

    pub(crate) fn opaque(&mut self, reason: Reason, text: impl Into<Cow<'a, str>>) {
        self.walk.add_opaque(reason, text.into(), Some(self.index));
    }

    /// The program goes to another directory before it works (`git -C dir`).
    pub(crate) fn works_in(&mut self, dir: Dir) {
        let Some(command) = self.walk.commands.get_mut(self.index) else { return };
        let here = core::mem::replace(&mut command.dir, dir);
        // Its redirections were made where the shell is.
        let redirected = core::mem::take(&mut command.effects);
        if !redirected.is_empty() {
            let index = self.walk.push(Vec::new(), redirected, Status::LOST, self.span);
            if let Some(command) = index.and_then(|index| self.walk.commands.get_mut(index)) {
                command.dir = here;
            }
        }
    }

    /// Runs the words from here on as a command of their own.
    pub(crate) fn run_from(&mut self, from: usize, exit: Status) {
        let words = self.words.get(from..).unwrap_or_default().to_vec();
        self.run(words, exit);
    }

    /// Runs words as a command of this one, any number of times.
    pub(crate) fn run_each(&mut self, words: Vec<Word<'a>>) {
        self.walk.shared.perhaps += 1;
        self.run(words, Status::LOST);
        self.walk.shared.perhaps -= 1;
    }

    /// Runs words as a command of this one.
    pub(crate) fn run(&mut self, words: Vec<Word<'a>>, exit: Status) {
        if words.is_empty() {
            return;
        }
        if self.walk.shared.texts >= crate::limits::TEXTS_MAX {
            self.opaque(Reason::TooDeep, "");
            return;
        }
        self.walk.shared.texts += 1;
        let parent = self.walk.parent.replace(self.walk.number_of(self.index));
        // What a program runs is a program: functions and aliases are the shell's.
        let functions = core::mem::take(&mut self.walk.state.functions);
        let aliases = core::mem::take(&mut self.walk.state.aliases);
        self.walk.run(words, Vec::new(), exit, self.span);
        if !functions.is_empty() {
            self.walk.state.functions = functions;
        }
        if !aliases.is_empty() {
            self.walk.state.aliases = aliases;
        }
        self.walk.parent = parent;
        self.walk.shared.texts -= 1;
    }

    /// Runs a word as shell text, in a shell of its own.
    pub(crate) fn child_text(&mut self, text: &Word<'a>, parameters: Option<&[Word<'a>]>) {
        let outer = self.walk.state.clone();
        self.walk.state = outer.child();
        self.walk.state.positional = parameters.map(|words| {
            words.iter().map(|word| word.clone().into_owned()).collect::<Vec<_>>().into()
        });
        self.text(text, self.exit);
        self.walk.state = outer;
    }

    /// Runs a word as shell text, in this shell.
    pub(crate) fn text(&mut self, text: &Word<'a>, exit: Status) {
        if text.known != Known::Literal {
            self.opaque(Reason::UnknownScript, text.text.clone());
        }
        let parent = self.walk.parent.replace(self.walk.number_of(self.index));
        let around = core::mem::replace(&mut self.walk.around, self.span);
        self.walk.text(text.text.clone(), exit);
        self.walk.around = around;
        self.walk.parent = parent;
    }

    /// What a program that reads its input as a script is given.
    pub(crate) fn stdin_script(&self) -> Stdin<'a> {
        self.walk.stdin.clone()
    }

    /// An unknown word may be an option that changes what the program does.
    pub(crate) fn unknown_options(&mut self) {
        let unknown = self
            .words
            .iter()
            .skip(1)
            .find(|word| word.known == Known::Unknown && word.text.starts_with(['$', '`']));
        if let Some(word) = unknown {
            self.opaque(Reason::UnknownArguments, word.text.clone());
        }
    }

    /// A path inside a directory.
    pub(crate) fn inside(dir: &Word<'a>, name: &Word<'a>) -> Word<'a> {
        let base = crate::line::base_name(name.text.trim_end_matches('/'));
        let known = match (dir.known, name.known) {
            (Known::Unknown, _) | (_, Known::Unknown) => Known::Unknown,
            (Known::Glob, _) | (_, Known::Glob) => Known::Glob,
            (dir, _) => dir,
        };
        let base = if base.is_empty() || base == "." || base == ".." { "." } else { base };
        Word { text: Cow::Owned(format!("{}/{base}", dir.text.trim_end_matches('/'))), known }
    }
}
