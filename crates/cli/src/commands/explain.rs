//! `jackline explain`: what would be decided on a call, by which rule, and
//! what passes instead.

mod text;

use std::io::{self, Read as _};
use std::path::Path;

use jackline_analysis::{Explained, Explainer, Proposed, Reason, Supposed};
use jackline_engine::json::parse_strict;
use jackline_engine::understanding::{Hidden, How, Runs, SimpleCommand, Touched, Understanding};
use jackline_engine::verdict::ViolationType;
use jackline_engine::{ActorId, Kind, ToolName, Verdict};
use jackline_runtime::Fault;
use jackline_runtime::definitions::{DefinitionError, find_file};
use serde_json::{Value, json};

use super::select;
use crate::args::ExplainArgs;
use crate::exit::Exit;
use crate::terminal::{definitions, fail, here, plain, say_json, sessions, store, warn};

/// The longest command line that is read from standard input.
const INPUT_BYTES_MAX: u64 = 64 << 20;

/// How much of a warning is shown.
const WARNING_MAX: usize = 2000;

pub(crate) fn run(args: &ExplainArgs) -> Exit {
    // A backtrace is nothing that helps; the error says what broke.
    std::panic::set_hook(Box::new(|_| {}));
    explain(args).unwrap_or_else(|exit| exit)
}

fn explain(args: &ExplainArgs) -> Result<Exit, Exit> {
    // What a person typed is looked at before anything else is.
    let proposed = proposed(args)?;
    let actor = ActorId::parse(&args.actor)
        .map_err(|error| fail(Exit::Usage, format!("--actor {error}")))?;
    let explainer = match &args.session {
        Some(name) => of_session(name)?,
        None => of_workspace(args)?,
    };
    if let Some(reason) = explainer.broken() {
        let warning = format!(
            "the definition does not load, and the last good one ({}) stays in force: {reason}; \
             mend it (`jackline check`)",
            explainer.checksum()
        );
        warn(plain(&warning, WARNING_MAX));
    }
    let tool = tool(args, &explainer, &proposed)?;
    let cwd = cwd(args.cwd.as_deref(), &explainer)?;
    let call = Supposed { tool, proposed, cwd, actor };
    let explained = explainer.explain(&call).map_err(|fault| {
        let text = format!("{fault}; report this with the command line or the arguments");
        fail(Exit::Broken, text)
    })?;
    if args.json {
        say_json(as_json(&explainer, &call, &explained));
    } else {
        text::show(&explainer, &explained);
    }
    Ok(exit(&explained.verdict))
}

fn proposed(args: &ExplainArgs) -> Result<Proposed, Exit> {
    match (&args.args, args.line.as_deref()) {
        (Some(text), _) => match parse_strict(text.as_bytes()) {
            Ok(value) if value.is_object() => Ok(Proposed::Args(value)),
            Ok(_) => {
                let text = "--args is JSON, but no object; arguments are one: '{\"path\":\"a\"}'";
                Err(fail(Exit::Usage, text))
            }
            Err(error) => Err(fail(Exit::Usage, format!("--args is not JSON: {error}"))),
        },
        (None, Some("-")) => from_input().map(Proposed::Line),
        (None, line) => Ok(Proposed::Line(line.unwrap_or_default().to_owned())),
    }
}

/// The command line on standard input, without the newline at its end.
fn from_input() -> Result<String, Exit> {
    let mut bytes = Vec::new();
    if let Err(error) = io::stdin().lock().take(INPUT_BYTES_MAX).read_to_end(&mut bytes) {
        return Err(fail(Exit::Usage, format!("can't read standard input: {error}")));
    }
    let mut line = String::from_utf8(bytes)
        .map_err(|_| fail(Exit::Usage, "standard input is not UTF-8, so it is no command line"))?;
    if line.ends_with('\n') {
        line.pop();
    }
    Ok(line)
}

fn of_session(name: &str) -> Result<Explainer, Exit> {
    let (store, all) = sessions()?;
    let found = select(&all, Some(name))?;
    let definitions = definitions(None, &store);
    Explainer::of_session(definitions, &store, &found).map_err(|fault| broken(&fault))
}

/// The workspace is where the definition was found: whoever asks in a
/// directory below it means an agent that works in all of it.
fn of_workspace(args: &ExplainArgs) -> Result<Explainer, Exit> {
    let store = store()?;
    if let Some(file) = &args.definition
        && !file.is_file()
    {
        let text = format!("no definition `{}`; check the path after -d", file.display());
        return Err(fail(Exit::Usage, text));
    }
    let file = find_file(&here());
    let workspace = file.as_deref().and_then(Path::parent).map_or_else(here, ToOwned::to_owned);
    let definitions = definitions(args.definition.clone(), &store);
    Explainer::of_workspace(definitions, &workspace).map_err(|fault| broken(&fault))
}

fn broken(fault: &Fault) -> Exit {
    match fault {
        Fault::Definition(error @ DefinitionError::NotFound(_)) => fail(Exit::Usage, error),
        Fault::Definition(error) => {
            let text = format!(
                "{}; nothing runs until the definition is mended (`jackline check`)",
                plain(&error.brief(), WARNING_MAX)
            );
            fail(Exit::Broken, text)
        }
        Fault::Store(error) => fail(Exit::Broken, format!("{error}; {}", error.remedy())),
        Fault::Workspace(_) => fail(Exit::Usage, fault),
        Fault::IdReused(_) | Fault::InvalidEvent(_) | Fault::Facts(_) | Fault::Panic(_) => {
            fail(Exit::Broken, fault)
        }
    }
}

fn tool(args: &ExplainArgs, explainer: &Explainer, proposed: &Proposed) -> Result<ToolName, Exit> {
    let name = args.tool.as_deref().unwrap_or_else(|| explainer.shell());
    let tool = ToolName::parse(name)
        .map_err(|error| fail(Exit::Usage, format!("the name of a tool {error}")))?;
    if matches!(proposed, Proposed::Line(_)) && !explainer.takes_line(name) {
        let text = format!(
            "`{tool}` takes no command line; say what it is given with --args, as a JSON object"
        );
        return Err(fail(Exit::Usage, text));
    }
    Ok(tool)
}

/// The directory of the call: the one that is named, else this one where it
/// lies in the workspace.
fn cwd(named: Option<&Path>, explainer: &Explainer) -> Result<Option<String>, Exit> {
    let directory = match named {
        Some(named) => match here().join(named).canonicalize() {
            Ok(directory) if directory.is_dir() => directory,
            _ => {
                let text =
                    format!("--cwd: no directory `{}`; name one that is there", named.display());
                return Err(fail(Exit::Usage, text));
            }
        },
        None => match &explainer.place().workspace {
            Some(workspace) if here().starts_with(workspace) => here(),
            _ => return Ok(None),
        },
    };
    directory.to_str().map(|directory| Some(directory.to_owned())).ok_or_else(|| {
        fail(Exit::Usage, format!("the directory `{}` is not UTF-8", directory.display()))
    })
}

fn exit(verdict: &Verdict) -> Exit {
    if verdict.lets_run() {
        return Exit::Fine;
    }
    let at_fault = |kind: &ViolationType| {
        matches!(kind, ViolationType::RuleBroken | ViolationType::GuardFault)
    };
    let mut against =
        verdict.violations.iter().filter(|v| v.enforced && v.decision == verdict.decision);
    if against.all(|violation| at_fault(&violation.kind)) { Exit::Broken } else { Exit::No }
}

fn as_json(explainer: &Explainer, call: &Supposed, explained: &Explained) -> Value {
    let verdict = &explained.verdict;
    let understood = explained.understanding.as_ref();
    let (commands, hidden) = match understood.map(|understood| &understood.runs) {
        Some(Runs::Line { commands, hidden }) => (commands.as_slice(), hidden.as_slice()),
        _ => (&[][..], &[][..]),
    };
    let place = explainer.place();
    json!({
        "decision": verdict.decision,
        "enforced": verdict.enforced,
        "may_run": verdict.lets_run(),
        "violations": explained.reasons.iter().map(reason_json).collect::<Vec<_>>(),
        "call": understood.map(|understood| call_json(call, understood)),
        "commands": commands.iter().map(command_json).collect::<Vec<_>>(),
        "opaque": hidden.iter().map(hidden_json).collect::<Vec<_>>(),
        "facts": explained.facts,
        "definition": {
            "name": explainer.definition().name,
            "mode": explainer.definition().mode,
            "checksum": explainer.checksum(),
            "files": place.definition,
        },
        "workspace": place.workspace,
        "after_record": explainer.seq(),
    })
}

fn reason_json(reason: &Reason) -> Value {
    let mut shown = json!(reason.violation);
    let rule = reason
        .rule
        .as_ref()
        .map(|rule| json!({ "name": rule.name, "origin": rule.origin, "message": rule.message }));
    let instead = reason.instead.as_ref().map(|instead| {
        let verdict = instead.verdict.as_ref();
        json!({
            "text": instead.text,
            "decision": verdict.map(|verdict| verdict.decision),
            "passes": verdict.map(Verdict::lets_run),
        })
    });
    if let Some(fields) = shown.as_object_mut() {
        // A number in a session that was thrown away.
        fields.remove("id");
        fields.insert("rule".to_owned(), json!(rule));
        fields.insert("instead".to_owned(), json!(instead));
    }
    shown
}

fn call_json(call: &Supposed, understood: &Understanding) -> Value {
    json!({
        "tool": understood.tool,
        "kind": kind_name(understood.kind),
        "actor": call.actor,
        "cwd": understood.cwd,
        "reads": paths(&understood.touches, How::Reads),
        "writes": paths(&understood.touches, How::Writes),
        "deletes": paths(&understood.touches, How::Deletes),
    })
}

/// A command under the names that conditions of rules have for its parts.
fn command_json(command: &SimpleCommand) -> Value {
    let argv = command.words.iter().skip(1).map(|word| &word.text);
    json!({
        "program": command.program,
        "argv": argv.collect::<Vec<_>>(),
        "dir": command.dir,
        "dir_certain": command.dir_certain,
        "reads": paths(&command.touches, How::Reads),
        "writes": paths(&command.touches, How::Writes),
        "deletes": paths(&command.touches, How::Deletes),
        "exit": command.exit,
        "certain": command.certain,
        "parent": command.parent,
        "tools": command.tools,
    })
}

fn hidden_json(hidden: &Hidden) -> Value {
    json!({
        "reason": hidden.reason,
        "why": hidden.why,
        "text": hidden.text,
        "command": hidden.command,
    })
}

fn paths(touches: &[Touched], how: How) -> Vec<&str> {
    touches.iter().filter(|touch| touch.how == how).map(|touch| touch.path.as_str()).collect()
}

fn kind_name(kind: Kind) -> &'static str {
    Kind::ALL.iter().find(|(_, known)| *known == kind).map_or("other", |(name, _)| name)
}
