//! Which calls the tools of the workspace can express, and which results they can give.
//!
//! A scenario decides about the output and the exit status of a command. The other tools really
//! run, so a scenario can only expect what they really do.

use std::collections::{BTreeMap, BTreeSet};

use jackline_decode::Schema;
use jackline_engine::{
    Arguments, CallStatus, Event, EventKind, SessionId, ToolFinished, ToolProposed,
};
use jackline_runtime::surfaces::SurfaceCapability as Capability;
use jackline_workspace::SHELL;
use serde_json::Value;

use crate::event_sender::parse_client_event;
use crate::scenario::{Scenario, ScenarioAction};
use crate::scripted_peers::is_refusal;
use crate::unplayable::Unplayable;

/// Whether a call runs a command, or returns at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnCall {
    /// A command, whose result the scenario decides.
    Command,
    /// A tool that really runs.
    RealTool,
}

impl OwnCall {
    pub(crate) fn of(tool: &str) -> Self {
        if tool == SHELL { Self::Command } else { Self::RealTool }
    }
}

/// A call that waits for its result in the scenario.
#[derive(Debug)]
struct WaitingCall {
    call: OwnCall,
    tool: String,
    path: Option<String>,
}

/// Checks that the tools of the workspace can make the calls of a scenario, with the results that
/// the scenario expects.
pub(crate) fn check_calls(scenario: &Scenario) -> Result<(), Unplayable> {
    let mut waiting: BTreeMap<(SessionId, String), WaitingCall> = BTreeMap::new();
    let mut files: BTreeSet<String> = scenario.files.keys().cloned().collect();
    let mut returns_next: Option<(SessionId, String)> = None;
    for step in &scenario.steps {
        let (line, expect) = match &step.act {
            ScenarioAction::Send { line, expect } => (line, expect),
            ScenarioAction::Restart => {
                waiting.clear();
                continue;
            }
            act => {
                if returns_next.is_some() {
                    return Err(Capability::AnyResult.into());
                }
                match act {
                    ScenarioAction::Write(written) => files.extend(written.keys().cloned()),
                    ScenarioAction::Remove(removed) => {
                        files.retain(|path| !removed.contains(path));
                    }
                    _ => {}
                }
                continue;
            }
        };
        let event = parse_client_event(line)?;
        if let Some(next) = returns_next.take()
            && finished_call(&event).as_ref() != Some(&next)
        {
            return Err(Capability::AnyResult.into());
        }
        match &event.kind {
            EventKind::ToolProposed(proposed) => {
                let Some(call) = &proposed.call else { continue };
                let opened = propose(proposed)?;
                if is_refusal(expect) {
                    continue;
                }
                let key = (event.session.clone(), call.as_str().to_owned());
                match opened.call {
                    OwnCall::RealTool => returns_next = Some(key.clone()),
                    // Two commands at once could get each other's result.
                    OwnCall::Command if !waiting.is_empty() => {
                        return Err(Capability::AnyResult.into());
                    }
                    OwnCall::Command => {}
                }
                waiting.insert(key, opened);
            }
            EventKind::ToolFinished(finished) => {
                let key = finished_call(&event).ok_or(Capability::CallsWithoutIds)?;
                let opened = waiting.remove(&key).ok_or(Capability::StrayResults)?;
                if expect.get("page").is_some_and(|page| !page.is_null()) {
                    return Err(Capability::PageResult.into());
                }
                if !can_return(&opened, finished, &mut files) {
                    return Err(Capability::AnyResult.into());
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn finished_call(event: &Event) -> Option<(SessionId, String)> {
    let EventKind::ToolFinished(ToolFinished { call: Some(call), .. }) = &event.kind else {
        return None;
    };
    Some((event.session.clone(), call.as_str().to_owned()))
}

/// Checks that a tool of the workspace takes the arguments.
fn propose(proposed: &ToolProposed) -> Result<WaitingCall, Unplayable> {
    let tool = proposed.tool.as_str();
    let spec = jackline_workspace::tools().iter().find(|spec| spec.name == tool);
    let spec = spec.ok_or(Capability::AnyTool)?;
    let path = match &proposed.args {
        Arguments::Parsed(args) => {
            let schema = jackline_workspace::argument_schemas([spec]);
            let schema = schema
                .get(spec.name)
                .and_then(|text| Schema::compile(&serde_json::from_str(&text.0).ok()?).ok());
            if !schema.is_some_and(|schema| schema.allows(args)) {
                return Err(Capability::AnyTool.into());
            }
            args.get("path").and_then(Value::as_str).map(ToOwned::to_owned)
        }
        // The guards decide about arguments that are no JSON object.
        Arguments::Text(_) => None,
    };
    Ok(WaitingCall { call: OwnCall::of(tool), tool: tool.to_owned(), path })
}

/// Whether a call can have the result of the scenario.
fn can_return(opened: &WaitingCall, finished: &ToolFinished, files: &mut BTreeSet<String>) -> bool {
    let ToolFinished { status, result, exit_code, seen, background, .. } = finished;
    if *background || !seen.is_empty() {
        return false;
    }
    match opened.call {
        OwnCall::Command => exit_status(finished).is_some(),
        OwnCall::RealTool => {
            let succeeds = match (opened.tool.as_str(), &opened.path) {
                ("read_file", Some(path)) => files.contains(path),
                ("write_file", Some(path)) => {
                    files.insert(path.clone());
                    true
                }
                (tool, _) => matches!(tool, "search" | "find_files" | "list_dir"),
            };
            succeeds && *status == CallStatus::Ok && result.is_none() && exit_code.is_none()
        }
    }
}

/// The exit status of a command with this result, if a command can have it.
pub(crate) fn exit_status(finished: &ToolFinished) -> Option<i64> {
    match (finished.status, finished.exit_code) {
        (CallStatus::Ok, None | Some(0)) => Some(0),
        (CallStatus::Error, None) => Some(1),
        (CallStatus::Error, Some(code)) if (1..=255).contains(&code) => Some(code),
        _ => None,
    }
}
