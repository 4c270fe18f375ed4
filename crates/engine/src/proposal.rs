//! A proposed call, parsed once for all guards: its tool, the programs it runs, and its effects on
//! files.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::OnceCell;

use jackline_shell::{Access, ExitEvidence, ReadExtent, ShellCommand, ShellLine, understand};
use serde_json::{Map, Value};

use crate::checks;
use crate::definition::{DeclaredTool, Definition, ResolvedTool};
use crate::event::{Arguments, Event, EventKind, Payload, ToolProposed};
use crate::guards::{shorten_for_message, shorten_json};
use crate::json::{parse_strict, value_at};
use crate::session_location::{PathTarget, SessionLocation};
use crate::tool::{NamedPath, PATH_POINTERS, ToolKind};

/// The arguments in which tools commonly take a patch that names its own files.
const PATCH_KEYS: [&str; 4] = ["/input", "/patch", "/patchText", "/diff"];

/// A proposed call.
#[derive(Debug)]
pub(crate) struct Proposal<'a> {
    pub(crate) tool: ResolvedTool<'a>,
    /// The arguments, if they could be parsed.
    pub(crate) args: Option<&'a Value>,
    /// The canonical directory in which it runs.
    pub(crate) cwd: String,
    /// The command line, if it runs one.
    pub(crate) run: ProposedRun<'a>,
    /// Its effects on files, in the order in which it names them.
    pub(crate) touches: Vec<FileTouch>,
    /// The tools that are recognised in its command line.
    pub(crate) recognised: Vec<RecognisedTool<'a>>,
    /// Its checks, computed on first use.
    checks: OnceCell<Vec<checks::LocatedCheck>>,
    /// A description of what it does, computed on first use.
    does: OnceCell<String>,
}

/// What a call runs.
#[derive(Debug)]
pub(crate) enum ProposedRun<'a> {
    /// It does not run a command line.
    Nothing,
    /// A command line.
    Line(ShellLine<'a>),
    /// The command line is missing in the arguments or too long to be parsed.
    Unseen,
}

/// The effect of a call on a file.
#[derive(Debug, Clone)]
pub(crate) struct FileTouch {
    pub(crate) access: Access,
    pub(crate) target: PathTarget,
    /// The path as the model wrote it, if the target is outside of the workspace and the model
    /// wrote it otherwise.
    pub(crate) written: Option<String>,
    pub(crate) recursive: bool,
    /// The number of the simple command that has this effect.
    pub(crate) command: Option<u32>,
}

/// A declared tool that a command line runs under another name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecognisedTool<'a> {
    pub(crate) tool: &'a DeclaredTool,
    /// The number of the simple command.
    pub(crate) command: u32,
    /// Whether the line can only succeed if this command succeeds.
    pub(crate) proven: bool,
}

impl FileTouch {
    /// The effect of an argument that names a file.
    fn of_argument(access: Access, path: &str, place: &SessionLocation, cwd: &str) -> Self {
        let target = PathTarget::At(place.resolve_path(path, cwd));
        let written = written_outside(&target, path);
        Self { access, target, written, recursive: false, command: None }
    }

    /// Whether it can change, create or remove something.
    pub(crate) fn changes(&self) -> bool {
        !matches!(self.access, Access::Read(_))
    }
}

/// The raw content of a proposed call. A [`Proposal`] borrows its texts from here.
#[derive(Debug)]
pub(crate) struct ProposalSource<'a> {
    tool: ResolvedTool<'a>,
    /// The arguments, if they could be parsed.
    args: Option<Cow<'a, Value>>,
    /// A command line that was built from a list of words.
    words: Option<String>,
    /// The requested directory, as it is written.
    cwd: Option<&'a str>,
}

impl<'a> ProposalSource<'a> {
    /// Reads the content of a proposed call; `None` for other events.
    pub(crate) fn of(definition: &'a Definition, event: &'a Event) -> Option<Self> {
        let EventKind::ToolProposed(ToolProposed { tool, args, cwd, .. }) = &event.kind else {
            return None;
        };
        let args = match args {
            Arguments::Parsed(value) => Some(Cow::Borrowed(value)),
            Arguments::Text(Payload::Inline(text)) => {
                parse_strict(text.as_bytes()).ok().filter(Value::is_object).map(Cow::Owned)
            }
            Arguments::Text(Payload::Elided { .. }) => None,
        };
        let tool = definition.resolve_tool(tool.as_str());
        let words = args
            .as_deref()
            .filter(|_| tool.kind == ToolKind::Exec)
            .and_then(|args| value_at(args, tool.command_line_pointer(args)))
            .and_then(Value::as_array)
            .and_then(|words| quote_words(words));
        Some(Self { tool, args, words, cwd: cwd.as_deref() })
    }
}

/// A shell command line for a program and its arguments.
fn quote_words(words: &[Value]) -> Option<String> {
    let mut line = String::new();
    for word in words {
        line.push_str(if line.is_empty() { "'" } else { " '" });
        line.push_str(&word.as_str()?.replace('\'', r"'\''"));
        line.push('\'');
    }
    Some(line)
}

impl<'a> Proposal<'a> {
    /// Parses a proposed call.
    pub(crate) fn of(
        definition: &'a Definition,
        place: &SessionLocation,
        source: &'a ProposalSource<'a>,
    ) -> Self {
        let (tool, args) = (source.tool, source.args.as_deref());
        let cwd = source.cwd.map_or_else(|| String::from("."), |cwd| place.resolve_path(cwd, "."));
        let run =
            if tool.kind == ToolKind::Exec { parse_run(source) } else { ProposedRun::Nothing };
        let mut proposal = Self {
            tool,
            args,
            cwd,
            run,
            touches: Vec::new(),
            recognised: Vec::new(),
            checks: OnceCell::new(),
            does: OnceCell::new(),
        };
        proposal.touches = match &proposal.run {
            ProposedRun::Line(line) => line_touches(line, place, &proposal.cwd),
            ProposedRun::Nothing => args
                .map(|args| argument_touches(tool, args, place, &proposal.cwd))
                .unwrap_or_default(),
            ProposedRun::Unseen => Vec::new(),
        };
        proposal.recognised = recognise_tools(definition, proposal.commands());
        proposal
    }

    /// The simple commands of its command line.
    pub(crate) fn commands(&self) -> &[ShellCommand<'a>] {
        match &self.run {
            ProposedRun::Line(line) => &line.commands,
            ProposedRun::Nothing | ProposedRun::Unseen => &[],
        }
    }

    /// The tests, builds and documentation runs in its command line, in the order of the line.
    pub(crate) fn checks(&self, definition: &Definition) -> &[checks::LocatedCheck] {
        self.checks.get_or_init(|| checks::find_checks(definition, self))
    }

    /// A short description in one line: the command line, or the file.
    pub(crate) fn does(&self) -> &str {
        self.does.get_or_init(|| match &self.run {
            ProposedRun::Line(line) => shorten_for_message(line.text),
            ProposedRun::Nothing | ProposedRun::Unseen => {
                let path = self.touches.iter().find_map(|touch| touch.target.path());
                let args = || self.args.map(shorten_json).unwrap_or_default();
                path.map_or_else(args, |path| shorten_for_message(self.shown_path(path)))
            }
        })
    }

    /// A path of this call as texts show it: relative to the workspace, or as the model wrote it
    /// if it is outside.
    pub(crate) fn shown_path<'p>(&'p self, path: &'p str) -> &'p str {
        let touch = self.touches.iter().find(|touch| touch.target.path() == Some(path));
        touch.and_then(|touch| touch.written.as_deref()).unwrap_or(path)
    }

    /// The program of a simple command; empty if there is none.
    pub(crate) fn program(&self, command: Option<u32>) -> &str {
        command
            .and_then(|number| self.commands().get(number as usize))
            .map_or("", ShellCommand::program)
    }

    /// Whether a simple command, or a command that runs it, is recognised as a tool whose
    /// declaration is trusted.
    pub(crate) fn is_recognised(&self, command: Option<u32>) -> bool {
        let mut at = command;
        while let Some(number) = at {
            let trusted = |it: &RecognisedTool<'_>| it.command == number && !it.tool.doubted;
            if self.recognised.iter().any(trusted) {
                return true;
            }
            // INVARIANT: a parent comes before the commands it runs, so this loop ends.
            at = self.commands().get(number as usize).and_then(|command| command.parent);
        }
        false
    }

    /// The tools of the call: its own, then those recognised in its command line.
    pub(crate) fn tools(&self) -> impl Iterator<Item = ResolvedTool<'a>> {
        let own = self.tool;
        let recognised = self.recognised.iter().map(|it| ResolvedTool::declared(it.tool));
        core::iter::once(own).chain(recognised)
    }
}

fn parse_run<'a>(source: &'a ProposalSource<'a>) -> ProposedRun<'a> {
    let tool = source.tool;
    if let Some(words) = &source.words {
        return ProposedRun::Line(understand(words));
    }
    let Some(args) = source.args.as_deref() else { return ProposedRun::Unseen };
    match value_at(args, tool.command_line_pointer(args)) {
        Some(Value::String(line)) => ProposedRun::Line(understand(line)),
        // A definition may declare a tool of this kind that takes no command line.
        None if tool.declared.is_some() || args.as_object().is_some_and(Map::is_empty) => {
            ProposedRun::Nothing
        }
        _ => ProposedRun::Unseen,
    }
}

fn line_touches(line: &ShellLine<'_>, place: &SessionLocation, cwd: &str) -> Vec<FileTouch> {
    let mut touches = Vec::new();
    for (number, command) in (0..).zip(&line.commands) {
        if command.effects.is_empty() {
            continue;
        }
        let base = place.command_directory(&command.dir, cwd);
        for effect in &command.effects {
            let target = place.resolve_word(&effect.path, base.as_deref());
            touches.push(FileTouch {
                access: effect.access,
                written: written_outside(&target, &effect.path.text),
                target,
                recursive: effect.recursive,
                command: Some(number),
            });
        }
    }
    touches
}

fn argument_touches(
    tool: ResolvedTool<'_>,
    args: &Value,
    place: &SessionLocation,
    cwd: &str,
) -> Vec<FileTouch> {
    let mut touches = Vec::new();
    let mut touch = |access: Access, path: &str| {
        touches.push(FileTouch::of_argument(access, path, place, cwd));
    };
    let (read, write) = tool.declared.map_or((&[][..], &[][..]), |tool| {
        (tool.paths.read.as_slice(), tool.paths.write.as_slice())
    });
    let lines = requested_lines(tool, args);
    for path in read.iter().flat_map(|pointer| texts_at(args, pointer)) {
        touch(Access::Read(lines), path);
    }
    let access = match tool.kind {
        ToolKind::Write => Access::Write,
        ToolKind::Delete => Access::Delete,
        _ => Access::Edit,
    };
    for path in write.iter().flat_map(|pointer| texts_at(args, pointer)) {
        touch(access, path);
    }
    if !read.is_empty() || !write.is_empty() {
        return touches;
    }
    if let Some(named) = tool.kind.named_paths_of(tool.name) {
        for NamedPath { pointer, access, recursive } in named {
            touches.extend(texts_at(args, pointer).map(|path| FileTouch {
                recursive: *recursive,
                ..FileTouch::of_argument(*access, path, place, cwd)
            }));
        }
        return touches;
    }
    if tool.kind == ToolKind::Search {
        let path = texts_at(args, "/path").next().unwrap_or(".");
        let access = Access::Read(ReadExtent::Partial);
        let directory = FileTouch::of_argument(access, path, place, cwd);
        touches.push(FileTouch { recursive: true, ..directory });
        return touches;
    }
    let access = match tool.kind {
        ToolKind::Read => Access::Read(lines),
        ToolKind::Write | ToolKind::Edit | ToolKind::Delete => access,
        _ => return touches,
    };
    for path in PATH_POINTERS.iter().flat_map(|pointer| texts_at(args, pointer)) {
        touch(access, path);
    }
    if tool.kind == ToolKind::Edit {
        for patch in PATCH_KEYS.iter().flat_map(|pointer| texts_at(args, pointer)) {
            patch.lines().filter_map(patched_file).for_each(|(access, path)| touch(access, path));
        }
    }
    touches
}

/// The path as the model wrote it, if its target is outside of the workspace and looks otherwise.
fn written_outside(target: &PathTarget, written: &str) -> Option<String> {
    let is_other = |path: &str| path.starts_with('/') && path != written;
    target.path().is_some_and(is_other).then(|| String::from(written))
}

/// The text at a pointer, or the texts in the list at the pointer.
fn texts_at<'v>(args: &'v Value, pointer: &str) -> impl Iterator<Item = &'v str> {
    let found = value_at(args, pointer);
    let list = found.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    found.and_then(Value::as_str).into_iter().chain(list.iter().filter_map(Value::as_str))
}

/// The file that a line of a patch names.
fn patched_file(line: &str) -> Option<(Access, &str)> {
    for (mark, access) in [
        ("*** Update File: ", Access::Edit),
        ("*** Add File: ", Access::Write),
        ("*** Delete File: ", Access::Delete),
        ("*** Move to: ", Access::Write),
        ("+++ ", Access::Edit),
        ("--- ", Access::Edit),
    ] {
        if let Some(path) = line.strip_prefix(mark) {
            let path = path.split('\t').next().unwrap_or_default().trim();
            let plain = path.strip_prefix("a/").or_else(|| path.strip_prefix("b/"));
            let path = if mark.starts_with('*') { path } else { plain.unwrap_or(path) };
            return (path != "/dev/null" && !path.is_empty()).then_some((access, path));
        }
    }
    None
}

impl Proposal<'_> {
    /// The first line that it shows, if it is a tool that reads one file.
    pub(crate) fn first_line_read(&self) -> Option<u32> {
        let [FileTouch { access: Access::Read(extent), .. }] = self.touches.as_slice() else {
            return None;
        };
        match extent {
            _ if self.tool.kind != ToolKind::Read => None,
            ReadExtent::All => Some(1),
            ReadExtent::Range(from, _) | ReadExtent::From(from) => Some(*from),
            ReadExtent::Last(_) | ReadExtent::Partial => None,
        }
    }
}

/// The lines that a call of a reading tool requests.
fn requested_lines(tool: ResolvedTool<'_>, args: &Value) -> ReadExtent {
    let declared = tool.declared;
    let offset = declared.and_then(|tool| tool.offset.as_deref()).unwrap_or("/offset");
    let limit = declared.and_then(|tool| tool.limit.as_deref()).unwrap_or("/limit");
    let number = |pointer| {
        let given = value_at(args, pointer).filter(|value| !value.is_null());
        given.map(|value| value.as_u64().and_then(|number| u32::try_from(number).ok()))
    };
    // An argument that is declared as the offset or limit is not `head` or `tail`.
    let end = |pointer| number(pointer).filter(|_| pointer != offset && pointer != limit);
    match (number(offset), number(limit), end("/head"), end("/tail")) {
        (None, None, None, None) => ReadExtent::All,
        (from @ (None | Some(Some(_))), Some(Some(limit)), None, None) => {
            let from = from.flatten().unwrap_or(1).max(1);
            ReadExtent::Range(from, from.saturating_add(limit).saturating_sub(1))
        }
        (Some(Some(offset)), None, None, None) => ReadExtent::From(offset.max(1)),
        (None, None, Some(Some(count @ 1..)), None) => ReadExtent::Range(1, count),
        // Some tools count the empty text after the last newline as a line.
        (None, None, None, Some(Some(count @ 2..))) => ReadExtent::Last(count - 1),
        _ => ReadExtent::Partial,
    }
}

fn recognise_tools<'a>(
    definition: &'a Definition,
    commands: &[ShellCommand<'_>],
) -> Vec<RecognisedTool<'a>> {
    let mut found = Vec::new();
    for tool in definition.tools.iter().filter(|tool| !tool.commands.is_empty()) {
        for (number, command) in (0..).zip(commands) {
            if tool.commands.iter().any(|pattern| command.matches_pattern(pattern)) {
                let proven =
                    matches!(command.exit_evidence, ExitEvidence::Decides | ExitEvidence::Needed);
                found.push(RecognisedTool { tool, command: number, proven });
            }
        }
    }
    found
}
