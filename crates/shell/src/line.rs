//! What is known of a command line: the types a caller sees.

use alloc::borrow::Cow;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A command line, understood as far as it can be without running it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line<'a> {
    /// The line itself.
    pub text: &'a str,
    /// Every simple command it may run, in the order in which they are written;
    /// a wrapper (`sudo`, `bash -c`) comes before what it wraps.
    pub commands: Vec<Command<'a>>,
    /// The parts that cannot be seen into. Empty: everything was understood.
    pub opaque: Vec<Opaque<'a>>,
}

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command<'a> {
    /// The program and its arguments, quotes removed and expanded as far as
    /// that is known. Empty for redirections without a program.
    pub words: Vec<Word<'a>>,
    /// What it does to files, by its own arguments and its redirections.
    pub effects: Vec<Effect<'a>>,
    /// The directory it works in.
    pub dir: Dir,
    /// What the line's exit status says about this command's.
    pub exit: Exit,
    /// It runs whenever the line runs: it stands behind no condition, in no loop,
    /// and nothing before it can end the line. Where this is false, only
    /// [`Exit::Decides`] and [`Exit::Needed`] tell from a success that it ran.
    pub certain: bool,
    /// Where it stands in the line. What runs from a text that is not a part of
    /// the line as written (`bash -c "r""m"`) stands where that text stands.
    pub span: Span,
    /// The command that runs it (`sudo`, `bash -c`, `find -exec`, a function).
    pub parent: Option<u32>,
}

/// Bytes of the line, from `start` up to `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

/// One argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word<'a> {
    /// What it says; see [`Known`] for how far to trust it.
    pub text: Cow<'a, str>,
    /// How far the text is what the program will see.
    pub known: Known,
}

/// How far the text of a word is what the program will see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// Exactly this text.
    Literal,
    /// The text starts with `~`, which stands for a home directory.
    Home,
    /// The text is a pattern; the program sees the names it matches. `**`
    /// stands for any depth (`find src -name x` gives `src/**/x`).
    Glob,
    /// The repository the command works in, from its root (`git reset --hard`).
    Repository,
    /// It holds an expansion that is not known. The text has its quotes removed
    /// and the expansion left in place: `$DIR/config.yaml`.
    Unknown,
}

/// What a command does to one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect<'a> {
    /// What it does.
    pub access: Access,
    /// To which path, relative to the command's directory.
    pub path: Word<'a>,
    /// To everything below it as well.
    pub recursive: bool,
}

/// What is done to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Its contents are read, and shown as far as [`Lines`] says.
    Read(Lines),
    /// Its contents are replaced, or it is created.
    Write,
    /// Something is added at its end.
    Append,
    /// Its contents are changed in place (`sed -i`, `patch`).
    Edit,
    /// Only its mode, owner or times change, or it is created empty.
    Touch,
    /// It is removed or moved away.
    Delete,
}

/// How much of a file a read shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lines {
    /// All of it, on the line's output.
    All,
    /// The lines from one number to another, both counted.
    Range(u32, u32),
    /// From one line to the end.
    From(u32),
    /// The last so many.
    Last(u32),
    /// Some part, or all of it but not shown.
    Some,
}

/// The directory a command works in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Dir {
    /// Where the line started.
    #[default]
    Start,
    /// This one, relative to where the line started, or absolute.
    In(Arc<str>),
    /// This one, or where the line started: a `cd` whose success nobody checked.
    Either(Arc<str>),
    /// It cannot be told.
    Unknown,
}

/// What the line's exit status says about a command's.
///
/// A line that succeeds proves something only about commands that are `Decides`
/// or `Needed`; a line that fails only about those that are `Decides` or `Enough`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The line's status is this command's: it ran, and ended as the line did: `pytest`.
    Decides,
    /// If the line succeeds, this command ran and succeeded; if it fails, another
    /// may have: `cd x && pytest`, or all of a pipe under `pipefail`.
    Needed,
    /// If the line fails, this command failed, or did not run: `pytest || make`.
    Enough,
    /// Nothing: `pytest | tail`, `pytest || true`, `pytest; echo done`, `pytest &`.
    Lost,
}

/// A part that cannot be seen into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opaque<'a> {
    /// Why not.
    pub reason: Reason,
    /// What there is to search: an inline script, an unparsable text, the name
    /// of a script file. Empty where there is nothing.
    pub text: Cow<'a, str>,
    /// The command it belongs to; none for the line as a whole.
    pub command: Option<u32>,
    /// Where it stands in the line.
    pub span: Span,
}

/// Why a part is opaque.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// bash would refuse the text, or we cannot read it.
    Unparsable,
    /// It holds a NUL, which no program can be given.
    Nul,
    /// Longer than [`crate::LINE_BYTES_MAX`].
    TooLong,
    /// Nested deeper than we follow.
    TooDeep,
    /// More words or commands than we follow.
    TooMany,
    /// The program is named by an expansion or a pattern.
    UnknownProgram,
    /// An argument that is not known may be an option that changes what the
    /// program does: `sed $x f`, `find . $y`.
    UnknownArguments,
    /// No row of our table describes the program.
    NoRow,
    /// A program that runs others as its own files say: `make`, `npm`, `pytest`.
    Runner,
    /// A script in a file: `./x.sh`, `python x.py`, `source x`.
    ScriptFile,
    /// A script in the line in a language we do not read: `python -c`, `awk`.
    InlineScript,
    /// A shell text that is not known: `eval "$x"`, `curl … | sh`.
    UnknownScript,
    /// A name that an alias may have given another meaning.
    Alias,
    /// It runs on another machine or in a container.
    Elsewhere,
    /// A variable that makes programs run other programs: `LD_PRELOAD`, `PATH`.
    Environment,
    /// A step of an editor or archive that may write anywhere below a directory.
    Contents,
}

impl<'a> Word<'a> {
    /// A word that says exactly this.
    pub fn literal(text: impl Into<Cow<'a, str>>) -> Self {
        Self { text: text.into(), known: Known::Literal }
    }

    pub(crate) fn unknown(text: impl Into<Cow<'a, str>>) -> Self {
        Self { text: text.into(), known: Known::Unknown }
    }

    pub(crate) fn glob(text: impl Into<Cow<'a, str>>) -> Self {
        Self { text: text.into(), known: Known::Glob }
    }

    /// The text, where it is exactly what the program sees.
    pub fn exact(&self) -> Option<&str> {
        (self.known == Known::Literal).then_some(&*self.text)
    }

    pub(crate) fn into_owned(self) -> Word<'static> {
        Word { text: Cow::Owned(self.text.into_owned()), known: self.known }
    }
}

impl<'a> Command<'a> {
    /// The base name of the program: `rm` for `/bin/rm`. Empty where there is no
    /// program or it is not known.
    pub fn program(&self) -> &str {
        self.words.first().and_then(Word::exact).map_or("", base_name)
    }

    /// The words after the program.
    pub fn arguments(&self) -> &[Word<'a>] {
        self.words.get(1..).unwrap_or_default()
    }

    /// Whether it is the program and subcommand words of `pattern`, such as
    /// `git push` or `npm run build`. Options before a subcommand are skipped,
    /// and `npm run test*` is every subcommand that begins so.
    pub fn is(&self, pattern: &str) -> bool {
        crate::matching::matches(&self.words, pattern)
    }

    pub(crate) fn into_owned(self) -> Command<'static> {
        Command {
            words: self.words.into_iter().map(Word::into_owned).collect(),
            effects: self
                .effects
                .into_iter()
                .map(|effect| Effect {
                    access: effect.access,
                    path: effect.path.into_owned(),
                    recursive: effect.recursive,
                })
                .collect(),
            dir: self.dir,
            exit: self.exit,
            certain: self.certain,
            span: self.span,
            parent: self.parent,
        }
    }
}

impl Opaque<'_> {
    pub(crate) fn into_owned(self) -> Opaque<'static> {
        Opaque {
            reason: self.reason,
            text: Cow::Owned(self.text.into_owned()),
            command: self.command,
            span: self.span,
        }
    }
}

/// The part of a path after its last slash.
pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}
