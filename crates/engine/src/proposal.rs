//! A proposed call, understood once for all guards: which tool it is, which
//! programs it runs, and what it does to which files.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::OnceCell;

use jackline_shell::{Access, Command, Exit, Line, Lines, understand};
use serde_json::{Map, Value};

use crate::checks;
use crate::definition::{Definition, Resolved, Tool};
use crate::event::{Arguments, Event, EventKind, Payload, ToolProposed};
use crate::guards::{shortened, shortened_json};
use crate::json::{at, parse_strict};
use crate::place::{Place, Target};
use crate::tool::{Kind, Named, PATH_KEYS};

/// Where tools commonly take a patch that names its files itself.
const PATCH_KEYS: [&str; 4] = ["/input", "/patch", "/patchText", "/diff"];

/// A proposed call.
#[derive(Debug)]
pub(crate) struct Proposal<'a> {
    pub(crate) tool: Resolved<'a>,
    /// The arguments, where they are arguments.
    pub(crate) args: Option<&'a Value>,
    /// The directory it works in, canonical.
    pub(crate) cwd: String,
    /// What it runs, where it runs a command line.
    pub(crate) run: Run<'a>,
    /// What it does to files, in the order in which it names them.
    pub(crate) touches: Vec<Touch>,
    /// Tools that are recognised in its command line.
    pub(crate) recognised: Vec<Recognised<'a>>,
    /// Its checks, once somebody asks.
    checks: OnceCell<Vec<checks::Found>>,
    /// What it does in words, once somebody asks.
    does: OnceCell<String>,
}

/// What a call runs.
#[derive(Debug)]
pub(crate) enum Run<'a> {
    /// Nothing.
    Nothing,
    /// A command line.
    Line(Line<'a>),
    /// A command line that is not among its arguments, or too long to be seen.
    Unseen,
}

/// What a call does to a file.
#[derive(Debug, Clone)]
pub(crate) struct Touch {
    pub(crate) access: Access,
    pub(crate) target: Target,
    pub(crate) recursive: bool,
    /// The simple command that does it, by its number.
    pub(crate) command: Option<u32>,
}

/// A tool that a command line calls by another name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recognised<'a> {
    pub(crate) tool: &'a Tool,
    /// The simple command, by its number.
    pub(crate) command: u32,
    /// Whether the line can only succeed if this command did.
    pub(crate) proven: bool,
}

impl Touch {
    /// Whether it can change, create or remove something.
    pub(crate) fn changes(&self) -> bool {
        !matches!(self.access, Access::Read(_))
    }
}

/// What a proposed call says, before it is understood: the texts that the
/// understanding points into.
#[derive(Debug)]
pub(crate) struct Heard<'a> {
    tool: Resolved<'a>,
    /// The arguments, where they are arguments.
    args: Option<Cow<'a, Value>>,
    /// A command line that had to be put together from its words.
    words: Option<String>,
    /// The directory it is to work in, as it is written.
    cwd: Option<&'a str>,
}

impl<'a> Heard<'a> {
    /// Listens to a proposed call; there is nothing to hear in other events.
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
        let tool = definition.resolve(tool.as_str());
        let words = args
            .as_deref()
            .filter(|_| tool.kind == Kind::Exec)
            .and_then(|args| at(args, tool.line_pointer(args)))
            .and_then(Value::as_array)
            .and_then(|words| quoted(words));
        Some(Self { tool, args, words, cwd: cwd.as_deref() })
    }
}

/// A program and its arguments, as a shell would have to be told.
fn quoted(words: &[Value]) -> Option<String> {
    let mut line = String::new();
    for word in words {
        line.push_str(if line.is_empty() { "'" } else { " '" });
        line.push_str(&word.as_str()?.replace('\'', r"'\''"));
        line.push('\'');
    }
    Some(line)
}

impl<'a> Proposal<'a> {
    /// Understands a proposed call.
    pub(crate) fn of(definition: &'a Definition, place: &Place, heard: &'a Heard<'a>) -> Self {
        let (tool, args) = (heard.tool, heard.args.as_deref());
        let cwd = heard.cwd.map_or_else(|| String::from("."), |cwd| place.locate(cwd, "."));
        let run = if tool.kind == Kind::Exec { run(heard) } else { Run::Nothing };
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
            Run::Line(line) => line_touches(line, place, &proposal.cwd),
            Run::Nothing => args
                .map(|args| argument_touches(tool, args, place, &proposal.cwd))
                .unwrap_or_default(),
            Run::Unseen => Vec::new(),
        };
        proposal.recognised = recognised(definition, proposal.commands());
        proposal
    }

    /// The simple commands of its line.
    pub(crate) fn commands(&self) -> &[Command<'a>] {
        match &self.run {
            Run::Line(line) => &line.commands,
            Run::Nothing | Run::Unseen => &[],
        }
    }

    /// What it tests, builds and documents, in the order in which it is written.
    pub(crate) fn checks(&self, definition: &Definition) -> &[checks::Found] {
        self.checks.get_or_init(|| checks::found(definition, self))
    }

    /// What it does, in one short line: the command line, or the file.
    pub(crate) fn does(&self) -> &str {
        self.does.get_or_init(|| match &self.run {
            Run::Line(line) => shortened(line.text),
            Run::Nothing | Run::Unseen => {
                let path = self.touches.iter().find_map(|touch| touch.target.path());
                let args = || self.args.map(shortened_json).unwrap_or_default();
                path.map_or_else(args, shortened)
            }
        })
    }

    /// The program of a simple command; empty where there is none.
    pub(crate) fn program(&self, command: Option<u32>) -> &str {
        command.and_then(|number| self.commands().get(number as usize)).map_or("", Command::program)
    }

    /// Whether a simple command, or one that runs it, is a tool of its own that is
    /// taken at its word.
    pub(crate) fn is_recognised(&self, command: Option<u32>) -> bool {
        let mut at = command;
        while let Some(number) = at {
            let known = |it: &Recognised<'_>| it.command == number && !it.tool.doubted;
            if self.recognised.iter().any(known) {
                return true;
            }
            // INVARIANT: a parent comes before what it runs, so this ends.
            at = self.commands().get(number as usize).and_then(|command| command.parent);
        }
        false
    }

    /// The tools it is: its own, then those recognised in its line.
    pub(crate) fn tools(&self) -> impl Iterator<Item = Resolved<'a>> {
        let own = self.tool;
        let seen = self.recognised.iter().map(|known| Resolved::declared(known.tool));
        core::iter::once(own).chain(seen)
    }
}

fn run<'a>(heard: &'a Heard<'a>) -> Run<'a> {
    let tool = heard.tool;
    if let Some(words) = &heard.words {
        return Run::Line(understand(words));
    }
    let Some(args) = heard.args.as_deref() else { return Run::Unseen };
    match at(args, tool.line_pointer(args)) {
        Some(Value::String(line)) => Run::Line(understand(line)),
        // Who declares a tool of this kind that takes no line has said so.
        None if tool.declared.is_some() || args.as_object().is_some_and(Map::is_empty) => {
            Run::Nothing
        }
        _ => Run::Unseen,
    }
}

fn line_touches(line: &Line<'_>, place: &Place, cwd: &str) -> Vec<Touch> {
    let mut touches = Vec::new();
    for (number, command) in (0..).zip(&line.commands) {
        if command.effects.is_empty() {
            continue;
        }
        let base = place.directory(&command.dir, cwd);
        for effect in &command.effects {
            touches.push(Touch {
                access: effect.access,
                target: place.target(&effect.path, base.as_deref()),
                recursive: effect.recursive,
                command: Some(number),
            });
        }
    }
    touches
}

fn argument_touches(tool: Resolved<'_>, args: &Value, place: &Place, cwd: &str) -> Vec<Touch> {
    let mut touches = Vec::new();
    let mut touch = |access: Access, path: &str| {
        let target = Target::At(place.locate(path, cwd));
        touches.push(Touch { access, target, recursive: false, command: None });
    };
    let (read, write) = tool.declared.map_or((&[][..], &[][..]), |tool| {
        (tool.paths.read.as_slice(), tool.paths.write.as_slice())
    });
    let lines = lines(tool, args);
    for path in read.iter().flat_map(|pointer| texts(args, pointer)) {
        touch(Access::Read(lines), path);
    }
    let access = match tool.kind {
        Kind::Write => Access::Write,
        Kind::Delete => Access::Delete,
        _ => Access::Edit,
    };
    for path in write.iter().flat_map(|pointer| texts(args, pointer)) {
        touch(access, path);
    }
    if !read.is_empty() || !write.is_empty() {
        return touches;
    }
    if let Some(named) = tool.kind.named_by(tool.name) {
        for Named { pointer, access, recursive } in named {
            touches.extend(texts(args, pointer).map(|path| Touch {
                access: *access,
                target: Target::At(place.locate(path, cwd)),
                recursive: *recursive,
                command: None,
            }));
        }
        return touches;
    }
    if tool.kind == Kind::Search {
        let path = texts(args, "/path").next().unwrap_or(".");
        let target = Target::At(place.locate(path, cwd));
        let access = Access::Read(Lines::Some);
        touches.push(Touch { access, target, recursive: true, command: None });
        return touches;
    }
    let access = match tool.kind {
        Kind::Read => Access::Read(lines),
        Kind::Write | Kind::Edit | Kind::Delete => access,
        _ => return touches,
    };
    for path in PATH_KEYS.iter().flat_map(|pointer| texts(args, pointer)) {
        touch(access, path);
    }
    if tool.kind == Kind::Edit {
        for patch in PATCH_KEYS.iter().flat_map(|pointer| texts(args, pointer)) {
            patch.lines().filter_map(patched).for_each(|(access, path)| touch(access, path));
        }
    }
    touches
}

/// The text at a pointer, or the texts of the list there.
fn texts<'v>(args: &'v Value, pointer: &str) -> impl Iterator<Item = &'v str> {
    let found = at(args, pointer);
    let list = found.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    found.and_then(Value::as_str).into_iter().chain(list.iter().filter_map(Value::as_str))
}

/// The file that a line of a patch names.
fn patched(line: &str) -> Option<(Access, &str)> {
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

/// Which lines a call of a reading tool asks for.
fn lines(tool: Resolved<'_>, args: &Value) -> Lines {
    let declared = tool.declared;
    let offset = declared.and_then(|tool| tool.offset.as_deref()).unwrap_or("/offset");
    let limit = declared.and_then(|tool| tool.limit.as_deref()).unwrap_or("/limit");
    let number = |pointer| {
        let given = at(args, pointer).filter(|value| !value.is_null());
        given.map(|value| value.as_u64().and_then(|number| u32::try_from(number).ok()))
    };
    // What is declared to be something else is no end of the file.
    let end = |pointer| number(pointer).filter(|_| pointer != offset && pointer != limit);
    match (number(offset), number(limit), end("/head"), end("/tail")) {
        (None, None, None, None) => Lines::All,
        (from @ (None | Some(Some(_))), Some(Some(limit)), None, None) => {
            let from = from.flatten().unwrap_or(1).max(1);
            Lines::Range(from, from.saturating_add(limit).saturating_sub(1))
        }
        (Some(Some(offset)), None, None, None) => Lines::From(offset.max(1)),
        (None, None, Some(Some(count @ 1..)), None) => Lines::Range(1, count),
        // Some count what is behind the last newline as a line.
        (None, None, None, Some(Some(count @ 2..))) => Lines::Last(count - 1),
        _ => Lines::Some,
    }
}

fn recognised<'a>(definition: &'a Definition, commands: &[Command<'_>]) -> Vec<Recognised<'a>> {
    let mut found = Vec::new();
    for tool in definition.tools.iter().filter(|tool| !tool.commands.is_empty()) {
        for (number, command) in (0..).zip(commands) {
            if tool.commands.iter().any(|pattern| command.is(pattern)) {
                let proven = matches!(command.exit, Exit::Decides | Exit::Needed);
                found.push(Recognised { tool, command: number, proven });
            }
        }
    }
    found
}
