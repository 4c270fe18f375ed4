//! `jackline explain`: shows the decision on a call, the rule behind it, and what is allowed
//! instead.

mod text;

use std::io::{self, Read as _};
use std::path::Path;

use jackline_analysis::{CallInput, Explainer, Explanation, HypotheticalCall, ViolationReason};
use jackline_clients::CLIENTS;
use jackline_engine::call_description::{
    CallDescription, DescribedRun, OpaquePart, PathEffect, SimpleCommand, TouchedPath,
};
use jackline_engine::json::parse_strict;
use jackline_engine::verdict::ViolationType;
use jackline_engine::{ActorId, ToolKind, ToolName, Verdict};
use jackline_host::HostAccess;
use jackline_runtime::definitions::{DefinitionError, find_file};
use jackline_runtime::{AdapterTools, Definitions, RuntimeFault};
use serde_json::{Value, json};

use super::{DEFAULT_DEFINITION, check_definition_file, default_definition, select};
use crate::args::ExplainArgs;
use crate::exit::ExitKind;
use crate::terminal::{
    current_directory, dim, fail, load_sessions, machine_definitions, open_store, print_json_line,
    print_note, print_warning, sanitize,
};

/// The maximum length of a command line from standard input.
const INPUT_BYTES_MAX: u64 = 64 << 20;

/// The maximum length of a shown warning.
const WARNING_MAX: usize = 2000;

pub(crate) fn run(args: &ExplainArgs) -> ExitKind {
    // A backtrace does not help the user; the error describes the failure.
    std::panic::set_hook(Box::new(|_| {}));
    explain(args).unwrap_or_else(|exit| exit)
}

fn explain(args: &ExplainArgs) -> Result<ExitKind, ExitKind> {
    // The user's input is checked first.
    let proposed = parse_proposal(args)?;
    let actor = ActorId::parse(&args.actor)
        .map_err(|error| fail(ExitKind::Usage, format!("--actor {error}")))?;
    let explainer = match &args.session {
        Some(name) => session_explainer(name)?,
        None => workspace_explainer(args)?,
    };
    let explainer = explainer.with_tools(tools_of_clients());
    if let Some(reason) = explainer.broken() {
        let warning = format!(
            "the definition does not load, so the last valid one ({}) stays in force: {reason}; \
             fix it (`jackline check`)",
            explainer.checksum()
        );
        print_warning(sanitize(&warning, WARNING_MAX));
    }
    let tool = tool(args, &explainer, &proposed)?;
    let cwd = cwd(args.cwd.as_deref(), &explainer)?;
    let call = HypotheticalCall { tool, proposed, cwd, actor };
    let explained = explainer.explain(&call).map_err(|fault| {
        let text =
            format!("{fault}; please report this bug, with the command line or the arguments");
        fail(ExitKind::Broken, text)
    })?;
    if args.json {
        print_json_line(as_json(&explainer, &call, &explained));
    } else {
        text::show(&explainer, &explained);
    }
    Ok(exit(&explained.verdict))
}

fn parse_proposal(args: &ExplainArgs) -> Result<CallInput, ExitKind> {
    match (&args.args, args.line.as_deref()) {
        (Some(text), _) => match parse_strict(text.as_bytes()) {
            Ok(value) if value.is_object() => Ok(CallInput::Args(value)),
            Ok(_) => {
                let text = "--args is JSON but not an object; write for example '{\"path\":\"a\"}'";
                Err(fail(ExitKind::Usage, text))
            }
            Err(error) => Err(fail(ExitKind::Usage, format!("--args is not JSON: {error}"))),
        },
        (None, Some("-")) => read_command_line().map(CallInput::CommandLine),
        (None, line) => Ok(CallInput::CommandLine(line.unwrap_or_default().to_owned())),
    }
}

/// The command line on standard input, without the newline at its end.
fn read_command_line() -> Result<String, ExitKind> {
    let mut bytes = Vec::new();
    if let Err(error) = io::stdin().lock().take(INPUT_BYTES_MAX).read_to_end(&mut bytes) {
        return Err(fail(ExitKind::Usage, format!("can't read standard input: {error}")));
    }
    let mut line = String::from_utf8(bytes).map_err(|_| {
        fail(ExitKind::Usage, "standard input is not UTF-8, so it is not a command line")
    })?;
    if line.ends_with('\n') {
        line.pop();
    }
    Ok(line)
}

fn session_explainer(name: &str) -> Result<Explainer, ExitKind> {
    let (store, all) = load_sessions()?;
    let entry = select(&all, Some(name))?;
    let definitions = machine_definitions(None, &store);
    Explainer::of_session(definitions, &store, &entry).map_err(|fault| explain_failure(&fault))
}

/// The tools of all clients, because any of them may make the call.
fn tools_of_clients() -> AdapterTools {
    let tools = || CLIENTS.iter().map(|client| client.dialect.tools());
    let names = tools().flat_map(|tools| tools.names).map(|name| (*name).to_owned());
    let prefixes = tools().flat_map(|tools| tools.prefixes).copied();
    AdapterTools::partial(names).with_prefixes(prefixes)
}

/// The explainer for the workspace. The workspace is the directory of the definition, because the
/// user may be in one of its subdirectories.
fn workspace_explainer(args: &ExplainArgs) -> Result<Explainer, ExitKind> {
    let store = open_store()?;
    check_definition_file(args.definition.as_deref())
        .map_err(|text| fail(ExitKind::Usage, text))?;
    let file = find_file(&current_directory());
    let workspace =
        file.as_deref().and_then(Path::parent).map_or_else(current_directory, ToOwned::to_owned);
    let definitions = machine_definitions(args.definition.clone(), &store);
    match Explainer::of_workspace(definitions, &workspace) {
        Err(RuntimeFault::Definition(DefinitionError::NotFound(_))) => {
            print_note(dim(format!(
                "there is no `jackline.yaml` here or above, so this is the decision of {DEFAULT_DEFINITION}"
            )));
            let host = HostAccess::of_machine(Some(store.home()));
            let definitions = Definitions::made(default_definition()?, host)
                .map_err(|error| fail(ExitKind::Broken, error))?;
            Explainer::of_workspace(definitions, &workspace)
                .map_err(|fault| explain_failure(&fault))
        }
        result => result.map_err(|fault| explain_failure(&fault)),
    }
}

fn explain_failure(fault: &RuntimeFault) -> ExitKind {
    match fault {
        RuntimeFault::Definition(error @ DefinitionError::NotFound(_)) => {
            fail(ExitKind::Usage, error)
        }
        RuntimeFault::Definition(error) => {
            let text = format!(
                "{}; no call runs until the definition is fixed (`jackline check`)",
                sanitize(&error.brief(), WARNING_MAX)
            );
            fail(ExitKind::Broken, text)
        }
        RuntimeFault::Store(error) => {
            fail(ExitKind::Broken, format!("{error}; {}", error.remedy()))
        }
        RuntimeFault::Workspace(_) => fail(ExitKind::Usage, fault),
        RuntimeFault::IdReused(_)
        | RuntimeFault::InvalidEvent(_)
        | RuntimeFault::Facts(_)
        | RuntimeFault::Panic(_) => fail(ExitKind::Broken, fault),
    }
}

fn tool(
    args: &ExplainArgs,
    explainer: &Explainer,
    proposed: &CallInput,
) -> Result<ToolName, ExitKind> {
    let name = args.tool.as_deref().unwrap_or_else(|| explainer.shell());
    let tool = ToolName::parse(name)
        .map_err(|error| fail(ExitKind::Usage, format!("the tool name {error}")))?;
    if matches!(proposed, CallInput::CommandLine(_)) && !explainer.takes_command_line(name) {
        let text = format!(
            "`{tool}` takes no command line; pass its arguments with --args, as a JSON object"
        );
        return Err(fail(ExitKind::Usage, text));
    }
    Ok(tool)
}

/// The working directory of the call: the named one, else the current one if it is in the
/// workspace.
fn cwd(named: Option<&Path>, explainer: &Explainer) -> Result<Option<String>, ExitKind> {
    let directory = match named {
        Some(named) => match current_directory().join(named).canonicalize() {
            Ok(directory) if directory.is_dir() => directory,
            _ => {
                let text = format!("--cwd: `{}` is not an existing directory", named.display());
                return Err(fail(ExitKind::Usage, text));
            }
        },
        None => match &explainer.place().workspace {
            Some(workspace) if current_directory().starts_with(workspace) => current_directory(),
            _ => return Ok(None),
        },
    };
    directory.to_str().map(|directory| Some(directory.to_owned())).ok_or_else(|| {
        fail(ExitKind::Usage, format!("the directory `{}` is not UTF-8", directory.display()))
    })
}

fn exit(verdict: &Verdict) -> ExitKind {
    if verdict.allows_run() {
        return ExitKind::Success;
    }
    let is_fault = |kind: &ViolationType| {
        matches!(kind, ViolationType::RuleBroken | ViolationType::GuardFault)
    };
    let mut deciding =
        verdict.violations.iter().filter(|v| v.enforced && v.decision == verdict.decision);
    if deciding.all(|violation| is_fault(&violation.kind)) {
        ExitKind::Broken
    } else {
        ExitKind::No
    }
}

fn as_json(explainer: &Explainer, call: &HypotheticalCall, explained: &Explanation) -> Value {
    let verdict = &explained.verdict;
    let understood = explained.understanding.as_ref();
    let (commands, hidden) = match understood.map(|understood| &understood.runs) {
        Some(DescribedRun::Line { commands, hidden }) => (commands.as_slice(), hidden.as_slice()),
        _ => (&[][..], &[][..]),
    };
    let place = explainer.place();
    json!({
        "decision": verdict.decision,
        "enforced": verdict.enforced,
        "may_run": verdict.allows_run(),
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

fn reason_json(reason: &ViolationReason) -> Value {
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
            "passes": verdict.map(Verdict::allows_run),
        })
    });
    if let Some(fields) = shown.as_object_mut() {
        // The id belongs to a temporary session, so it is not shown.
        fields.remove("id");
        fields.insert("rule".to_owned(), json!(rule));
        fields.insert("instead".to_owned(), json!(instead));
    }
    shown
}

fn call_json(call: &HypotheticalCall, understood: &CallDescription) -> Value {
    json!({
        "tool": understood.tool,
        "kind": kind_name(understood.kind),
        "actor": call.actor,
        "cwd": understood.cwd,
        "reads": paths(&understood.touches, PathEffect::Reads),
        "writes": paths(&understood.touches, PathEffect::Writes),
        "deletes": paths(&understood.touches, PathEffect::Deletes),
    })
}

/// A command as JSON, with the same names as in rule conditions.
fn command_json(command: &SimpleCommand) -> Value {
    let argv = command.words.iter().skip(1).map(|word| &word.text);
    json!({
        "program": command.program,
        "argv": argv.collect::<Vec<_>>(),
        "dir": command.dir,
        "dir_certain": command.dir_certain,
        "reads": paths(&command.touches, PathEffect::Reads),
        "writes": paths(&command.touches, PathEffect::Writes),
        "deletes": paths(&command.touches, PathEffect::Deletes),
        "exit": command.exit,
        "certain": command.certain,
        "parent": command.parent,
        "tools": command.tools,
    })
}

fn hidden_json(hidden: &OpaquePart) -> Value {
    json!({
        "reason": hidden.reason,
        "why": hidden.why,
        "text": hidden.text,
        "command": hidden.command,
    })
}

fn paths(touches: &[TouchedPath], how: PathEffect) -> Vec<&str> {
    touches.iter().filter(|touch| touch.effect == how).map(|touch| touch.path.as_str()).collect()
}

fn kind_name(kind: ToolKind) -> &'static str {
    ToolKind::ALL.iter().find(|(_, known)| *known == kind).map_or("other", |(name, _)| name)
}
