//! `jackline pause`, `resume`, `stop`, `reset`, `ack`, `clear` and similar commands: a person
//! controls a session.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use jackline_engine::summary::PauseCause;
use jackline_engine::verdict::SafetyAction;
use jackline_engine::{ControlAction, SessionId, SessionPhase, SessionSummary, Verdict};
use jackline_journal::FileStore;
use jackline_runtime::{Sessions, load_session};
use jackline_supervisor::{RUN_SESSION_PREFIX, RunRecord};
use serde_json::json;

use super::continue_session::how_to_continue;
use super::person::{
    ControlRequest, check_person_args, check_text_length, describe_violations, require_person,
};
use super::select;
use crate::args::{ClearArgs, ControlArgs, ExpireArgs, ReloadArgs, SkipTestsArgs};
use crate::exit::ExitKind;
use crate::status_label::StatusLabel;
use crate::terminal::{
    confirm, current_directory, dim, fail, load_sessions, print_json_line, print_line, sanitize,
};

pub(crate) fn run(args: &ControlArgs, action: ControlAction) -> ExitKind {
    // Everyone may pause or stop a session, even its agent.
    if !action.only_restricts()
        && let Err(exit) = require_person(command_name(action))
    {
        return exit;
    }
    match select_session(args) {
        Ok((store, session)) => {
            send(&store, ControlRequest::new(session, action, &args.person), args.json)
        }
        Err(exit) => exit,
    }
}

/// `jackline clear`: clears the blocker, or only the count of failures.
pub(crate) fn clear(args: &ClearArgs) -> ExitKind {
    let action =
        if args.failures { ControlAction::ResetFailures } else { ControlAction::ClearBlocker };
    run(&args.control, action)
}

/// What a person has to do to continue a session without a supervisor.
const TELL_AGENT: &str = "tell the agent to continue; it is not notified";

/// `jackline reload`.
pub(crate) fn reload(args: &ReloadArgs) -> ExitKind {
    let action = ControlAction::Reload;
    if let Err(exit) = require_person(command_name(action)) {
        return exit;
    }
    match select_session(&args.control) {
        Ok((store, session)) => {
            let request = ControlRequest::new(session, action, &args.control.person);
            let definition = match &args.definition {
                Some(definition) => Some(definition.clone()),
                None => match run_definition(&store, &request.session) {
                    Ok(definition) => definition,
                    Err(exit) => return exit,
                },
            };
            let request = ControlRequest { definition, ..request };
            send(&store, request, args.control.json)
        }
        Err(exit) => exit,
    }
}

/// The definition that a run was started with, if a person or its task named one. If this can't be
/// read, the command fails instead of using another definition.
fn run_definition(store: &FileStore, session: &SessionId) -> Result<Option<PathBuf>, ExitKind> {
    match RunRecord::load(&store.directory(session)) {
        // Older requests do not record the task's definition, only that of the person.
        Ok(request) => Ok(request.and_then(|it| it.defined_by.or(it.definition))),
        Err(error) => {
            let name = sanitize(session.as_str(), 60);
            let text = format!(
                "can't read how session `{name}` was started, in its file `run.json`: {error}; pass the \
                 definition: `jackline reload {name} -d FILE`"
            );
            Err(fail(ExitKind::Broken, text))
        }
    }
}

/// `jackline constraint expire`.
pub(crate) fn expire(args: &ExpireArgs) -> ExitKind {
    let action = ControlAction::ExpireConstraint;
    if let Err(exit) = require_person(command_name(action)) {
        return exit;
    }
    if let Err(exit) = check_text_length("the id of a constraint", &args.id) {
        return exit;
    }
    match select_session(&args.control) {
        Ok((store, session)) => {
            let request = ControlRequest::new(session, action, &args.control.person);
            let request = ControlRequest { constraint: Some(args.id.clone()), ..request };
            send(&store, request, args.control.json)
        }
        Err(exit) => exit,
    }
}

/// `jackline skip-tests`: needs a reason and a confirmation.
pub(crate) fn skip_tests(args: &SkipTestsArgs) -> ExitKind {
    let action = ControlAction::SkipDirtyBits;
    if let Err(exit) = require_person(command_name(action)) {
        return exit;
    }
    if args.control.person.why.is_none() {
        let text = "give a reason with `--why`: untested changes may be broken";
        return fail(ExitKind::Usage, text);
    }
    let (store, session) = match select_session(&args.control) {
        Ok(entry) => entry,
        Err(exit) => return exit,
    };
    if !args.yes {
        if !std::io::stdin().is_terminal() {
            return fail(ExitKind::Usage, "no terminal to confirm in; pass --yes to confirm");
        }
        let name = sanitize(session.as_str(), 60);
        print_line(format!(
            "session `{name}` will count as tested, although its changes were not tested"
        ));
        if !confirm("Skip the tests?") {
            return fail(ExitKind::No, "nothing was changed");
        }
    }
    send(&store, ControlRequest::new(session, action, &args.control.person), args.control.json)
}

/// Selects the session for a control, after checking the arguments.
fn select_session(args: &ControlArgs) -> Result<(FileStore, SessionId), ExitKind> {
    check_person_args(&args.person)?;
    let (store, all) = load_sessions()?;
    let entry = select(&all, args.session.as_deref())?;
    match entry.opening() {
        Ok(opened) => Ok((store, opened.session.clone())),
        Err(error) => Err(fail(ExitKind::Broken, format!("{error}; {}", error.remedy()))),
    }
}

fn send(store: &FileStore, request: ControlRequest<'_>, as_json: bool) -> ExitKind {
    let (action, session) = (request.action, request.session.clone());
    let verdict = match request.send(store.clone()) {
        Ok(verdict) => verdict,
        Err(problem) => return fail(ExitKind::Broken, problem),
    };
    let done = verdict.violations.is_empty();
    if as_json {
        print_json_line(json!({
            "session": session,
            "action": action.as_str(),
            "done": done,
            "record": verdict.seq,
            "objections": verdict.violations,
        }));
        return if done { ExitKind::Success } else { ExitKind::No };
    }
    let name = sanitize(session.as_str(), 60);
    let now = controlled_session(store, &session);
    if !done {
        let problems = match now.as_ref().and_then(|now| describe_end(action, now, &session)) {
            // The corrections are for running sessions, so they do not help here.
            Some((ended, reopen)) => {
                let messages: Vec<_> =
                    verdict.violations.iter().map(|it| it.message.as_str()).collect();
                format!("{}; it {ended}; {reopen}", messages.join("; "))
            }
            None => describe_violations(&verdict),
        };
        return fail(ExitKind::No, format!("session `{name}`: {problems}"));
    }
    let (result, next) = describe_outcome(action, &session, &verdict, now.as_ref());
    print_line(format!("session `{name}` {result}"));
    if is_run(&session) && next == TELL_AGENT {
        let command = format!("`jackline run --resume {name}`");
        print_line(dim(format!(
            "a waiting run continues now; resume an interrupted one with {command}"
        )));
    } else {
        print_line(dim(next));
    }
    ExitKind::Success
}

/// A session after a control.
pub(super) struct ControlledSession {
    summary: SessionSummary,
    client: Option<String>,
}

/// The state of a session after a control; `None` if it can't be read. `status` shows that error.
pub(super) fn controlled_session(
    store: &FileStore,
    session: &SessionId,
) -> Option<ControlledSession> {
    let sessions = Sessions::new(store.clone());
    let entry = sessions.select(Some(session.as_str()), &current_directory()).ok()?;
    let summary = load_session(store, &entry).ok()?.summary();
    Some(ControlledSession { summary, client: entry.client().map(ToOwned::to_owned) })
}

/// The name of the command for an action.
fn command_name(action: ControlAction) -> &'static str {
    match action {
        ControlAction::Acknowledge => "ack",
        ControlAction::ClearBlocker => "clear",
        ControlAction::ResetFailures => "clear --failures",
        ControlAction::SkipDirtyBits => "skip-tests",
        ControlAction::ExpireConstraint => "constraint expire",
        other => other.as_str(),
    }
}

/// The result of a control, and the next step.
pub(super) fn describe_outcome(
    action: ControlAction,
    session: &SessionId,
    verdict: &Verdict,
    now: Option<&ControlledSession>,
) -> (String, String) {
    let (result, next) =
        if verdict.safety.iter().any(|it| it.action_taken == SafetyAction::StillPaused) {
            still_paused_texts(action, now.map(|now| &now.summary))
        } else {
            action_texts(action)
        };
    match now.and_then(|now| describe_end(action, now, session)) {
        Some((ended, reopen)) => {
            (format!("{ended}; {}", ended_action_text(action, result, is_run(session))), reopen)
        }
        None => (result.to_owned(), next.to_owned()),
    }
}

fn is_run(session: &SessionId) -> bool {
    session.as_str().starts_with(RUN_SESSION_PREFIX)
}

/// The message that a session has ended, and the next step; `None` if it has not ended.
fn describe_end(
    action: ControlAction,
    now: &ControlledSession,
    session: &SessionId,
) -> Option<(String, String)> {
    let summary = &now.summary;
    let stop = summary.stop.as_ref().filter(|_| summary.phase == SessionPhase::Ended)?;
    let ended = format!("has ended ({})", StatusLabel::of_stop(stop));
    // A reload needs no other control: the definition waits until the session continues.
    if action == ControlAction::Reload && !is_run(session) {
        let how = how_to_continue(now.client.as_deref(), session);
        return Some((ended, format!("continue it with {how}")));
    }
    let name = sanitize(session.as_str(), 60);
    let resume = format!(", then resume it with `jackline run --resume {name}`");
    let resume = if is_run(session) { resume } else { String::new() };
    Some((ended, format!("reopen it with `jackline reset {name}`{resume}")))
}

/// The result of a control for a session that has ended. The control does not continue it, but the
/// agent of a client can come back to the session. A run cannot.
fn ended_action_text(action: ControlAction, result: &str, is_run: bool) -> String {
    let done = match action {
        ControlAction::Pause if is_run => return "a pause has no effect on it".to_owned(),
        ControlAction::Pause => return "if its agent comes back, it is paused".to_owned(),
        ControlAction::Resume => "its pause is removed",
        ControlAction::Acknowledge => "its checkpoint is acknowledged",
        ControlAction::ClearBlocker => "its blocker is cleared",
        _ => return format!("it {result}"),
    };
    let scope = if is_run { "" } else { ", in case its agent comes back" };
    format!("{done}{scope}")
}

/// The result and the next step for a session that has not ended.
fn action_texts(action: ControlAction) -> (&'static str, &'static str) {
    match action {
        ControlAction::Pause => (
            "is paused",
            "no call runs; send the agent a message or run `jackline resume` to continue",
        ),
        ControlAction::Resume => ("continues", TELL_AGENT),
        ControlAction::Acknowledge => ("continues: its checkpoint is acknowledged", TELL_AGENT),
        ControlAction::ClearBlocker => ("continues: its blocker is cleared", TELL_AGENT),
        ControlAction::ResetFailures => {
            ("counts its failed iterations from zero again", "nothing else has changed")
        }
        ControlAction::SkipDirtyBits => (
            "may complete without tests",
            "your decision is recorded in the journal; the next change needs tests again",
        ),
        ControlAction::ExpireConstraint => {
            ("has one constraint less", "`jackline status` shows the others")
        }
        ControlAction::Reload => (
            "uses the current definition",
            "from the next call on; `jackline check --effective` shows what is in force",
        ),
        ControlAction::Stop => {
            ("is stopped", "no more calls run; only `jackline reset` reopens it")
        }
        _ => ("is open again", "budgets, policies and approvals start from zero"),
    }
}

/// The result and the next step if another reason still blocks the session.
fn still_paused_texts(
    action: ControlAction,
    now: Option<&SessionSummary>,
) -> (&'static str, &'static str) {
    match action {
        ControlAction::Resume
            if now.and_then(|now| now.paused_cause) == Some(PauseCause::Checkpoint) =>
        {
            (
                "is no longer paused by a person, but still waits at its checkpoint",
                "read `.jackline/CHECKPOINT.md`, then continue with `jackline ack`",
            )
        }
        ControlAction::Resume => (
            "is no longer paused by a person, but is still blocked",
            "read `.jackline/BLOCKER_REPORT.md`, then continue with `jackline clear`",
        ),
        ControlAction::ClearBlocker => {
            ("has no blocker now, but is still paused", "continue with `jackline resume`")
        }
        _ => (
            "has passed its checkpoint, but is still paused",
            "`jackline status` shows who paused it and how to continue",
        ),
    }
}
