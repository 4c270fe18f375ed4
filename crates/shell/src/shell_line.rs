//! The result of analysing a command line: the public types of this crate.

use alloc::borrow::Cow;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A command line, analysed as far as that is possible without running it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellLine<'a> {
    /// The line itself.
    pub text: &'a str,
    /// Every simple command the line may run, in the order in which they are
    /// written; a wrapper (`sudo`, `bash -c`) comes before the command it wraps.
    pub commands: Vec<ShellCommand<'a>>,
    /// The parts Jackline cannot see into. Empty means everything was understood.
    pub opaque_parts: Vec<ShellOpaquePart<'a>>,
}

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellCommand<'a> {
    /// The program and its arguments, without quotes and with known expansions
    /// applied. Empty for redirections without a program.
    pub words: Vec<ShellWord<'a>>,
    /// What the command does to files, through its arguments and its redirections.
    pub effects: Vec<FileEffect<'a>>,
    /// The directory the command works in.
    pub dir: WorkingDir,
    /// What the line's exit status proves about this command's exit status.
    pub exit_evidence: ExitEvidence,
    /// The command runs whenever the line runs: it is behind no condition, in no loop,
    /// and no earlier command can end the line. Where this is false, a successful line
    /// proves that the command ran only with [`ExitEvidence::Decides`] or
    /// [`ExitEvidence::Needed`].
    pub always_runs: bool,
    /// Where the command is in the line. A command from a text that is not a literal
    /// part of the line (`bash -c "r""m"`) has the span of that text.
    pub span: LineSpan,
    /// The command that runs this one (`sudo`, `bash -c`, `find -exec`, a function).
    pub parent: Option<u32>,
}

/// A range of bytes of the line, from `start` up to `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LineSpan {
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

/// One argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellWord<'a> {
    /// The text; [`WordKind`] tells how reliable it is.
    pub text: Cow<'a, str>,
    /// How closely the text matches what the program will see.
    pub kind: WordKind,
}

/// How closely the text of a word matches what the program will see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordKind {
    /// Exactly this text.
    Literal,
    /// The text starts with `~`, which means a home directory.
    Home,
    /// The text is a pattern; the program sees the names the pattern matches. `**`
    /// matches any depth (`find src -name x` gives `src/**/x`).
    Glob,
    /// The whole repository the command works in (`git reset --hard`).
    Repository,
    /// The text contains an expansion whose value is not known. The quotes are removed
    /// and the expansion stays in place: `$DIR/config.yaml`.
    Unknown,
}

/// What a command does to one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEffect<'a> {
    /// The kind of access.
    pub access: Access,
    /// The path, relative to the command's directory.
    pub path: ShellWord<'a>,
    /// Whether the access also covers everything below the path.
    pub recursive: bool,
}

/// What is done to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The contents are read, and shown as far as [`ReadExtent`] says.
    Read(ReadExtent),
    /// The contents are replaced, or the file is created.
    Write,
    /// Text is added at the end.
    Append,
    /// The contents are changed in place (`sed -i`, `patch`).
    Edit,
    /// Only the mode, owner or times change, or the file is created empty.
    Touch,
    /// The file is removed or moved away.
    Delete,
}

/// How much of a file a read shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadExtent {
    /// The whole file, on the line's output.
    All,
    /// The lines from one number to another, inclusive.
    Range(u32, u32),
    /// From one line to the end of the file.
    From(u32),
    /// The last lines of the file, this many.
    Last(u32),
    /// A part of the file, or the whole file without showing it.
    Partial,
}

/// The directory a command works in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum WorkingDir {
    /// Where the line started.
    #[default]
    Start,
    /// This one, relative to where the line started, or absolute.
    Path(Arc<str>),
    /// This one, or where the line started: no command checked whether the `cd` worked.
    PathOrStart(Arc<str>),
    /// The directory is not known.
    Unknown,
}

/// What the line's exit status proves about a command's exit status.
///
/// A line that succeeds proves something only about commands that are `Decides`
/// or `Needed`. A line that fails proves something only about commands that are
/// `Decides` or `Enough`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitEvidence {
    /// The line's status is this command's: it ran and ended as the line did: `pytest`.
    Decides,
    /// If the line succeeds, this command ran and succeeded. If the line fails, another
    /// command may have failed: `cd x && pytest`, or all of a pipe under `pipefail`.
    Needed,
    /// If the line fails, this command failed or did not run: `pytest || make`.
    Enough,
    /// Proves nothing: `pytest | tail`, `pytest || true`, `pytest; echo done`, `pytest &`.
    Lost,
}

/// A part of the line Jackline cannot see into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellOpaquePart<'a> {
    /// Why Jackline cannot see into it.
    pub reason: OpaqueReason,
    /// The text a caller can search: an inline script, an unparsable text, the name
    /// of a script file. Empty where there is none.
    pub text: Cow<'a, str>,
    /// The command the part belongs to; `None` for the line as a whole.
    pub command: Option<u32>,
    /// Where the part is in the line.
    pub span: LineSpan,
}

/// Why a part is opaque.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OpaqueReason {
    /// bash would refuse the text, or our parser cannot read it.
    Unparsable,
    /// The text contains a NUL byte, which no program can receive as an argument.
    Nul,
    /// Longer than [`crate::LINE_BYTES_MAX`].
    TooLong,
    /// The text nests deeper than we follow.
    TooDeep,
    /// More words or commands than we follow.
    TooMany,
    /// A function that starts itself again in a further process, under no condition.
    StartsItself,
    /// The program name is an expansion or a pattern.
    UnknownProgram,
    /// An argument with an unknown value could be an option that changes what the
    /// program does: `sed $x f`, `find . $y`.
    UnknownArguments,
    /// No row of our table of programs describes the program.
    NoRow,
    /// A program that runs others as its project files tell it: `make`, `npm`, `pytest`.
    Runner,
    /// A script in a file: `./x.sh`, `python x.py`, `source x`.
    ScriptFile,
    /// A script inside the line, in a language we do not read: `python -c`, `awk`.
    InlineScript,
    /// Shell text with an unknown value: `eval "$x"`, `curl … | sh`.
    UnknownScript,
    /// A name to which an alias may give another meaning.
    Alias,
    /// The command runs on another machine or in a container.
    Elsewhere,
    /// A variable that makes programs run other programs: `LD_PRELOAD`, `PATH`.
    Environment,
    /// The contents of an archive, patch or download name the files it writes.
    Contents,
}

impl<'a> ShellWord<'a> {
    /// A word with exactly this text.
    pub fn literal(text: impl Into<Cow<'a, str>>) -> Self {
        Self { text: text.into(), kind: WordKind::Literal }
    }

    pub(crate) fn unknown(text: impl Into<Cow<'a, str>>) -> Self {
        Self { text: text.into(), kind: WordKind::Unknown }
    }

    pub(crate) fn glob(text: impl Into<Cow<'a, str>>) -> Self {
        Self { text: text.into(), kind: WordKind::Glob }
    }

    /// The text, if it is exactly what the program sees.
    pub fn exact_text(&self) -> Option<&str> {
        (self.kind == WordKind::Literal).then_some(&*self.text)
    }

    pub(crate) fn into_owned(self) -> ShellWord<'static> {
        ShellWord { text: Cow::Owned(self.text.into_owned()), kind: self.kind }
    }
}

impl<'a> ShellCommand<'a> {
    /// The base name of the program: `rm` for `/bin/rm`. Empty where the command has
    /// no program or its name is not known.
    pub fn program(&self) -> &str {
        self.words.first().and_then(ShellWord::exact_text).map_or("", base_name)
    }

    /// The words after the program.
    pub fn arguments(&self) -> &[ShellWord<'a>] {
        self.words.get(1..).unwrap_or_default()
    }

    /// Whether the command is the program and subcommand of `pattern`, such as
    /// `git push` or `npm run build`. Options before a subcommand are skipped,
    /// and `npm run test*` matches every subcommand with that prefix.
    pub fn matches_pattern(&self, pattern: &str) -> bool {
        crate::command_pattern::matches_pattern(&self.words, pattern)
    }

    pub(crate) fn into_owned(self) -> ShellCommand<'static> {
        ShellCommand {
            words: self.words.into_iter().map(ShellWord::into_owned).collect(),
            effects: self
                .effects
                .into_iter()
                .map(|effect| FileEffect {
                    access: effect.access,
                    path: effect.path.into_owned(),
                    recursive: effect.recursive,
                })
                .collect(),
            dir: self.dir,
            exit_evidence: self.exit_evidence,
            always_runs: self.always_runs,
            span: self.span,
            parent: self.parent,
        }
    }
}

impl ShellOpaquePart<'_> {
    pub(crate) fn into_owned(self) -> ShellOpaquePart<'static> {
        ShellOpaquePart {
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
