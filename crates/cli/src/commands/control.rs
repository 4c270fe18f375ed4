//! `jackline pause`, `resume`, `stop`, `reset`, `ack`, `clear` and their like: a
//! person steers a session.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use jackline_engine::summary::PauseCause;
use jackline_engine::verdict::SafetyAction;
use jackline_engine::{Action, SessionId, SessionPhase, Summary, Verdict};
use jackline_journal::FileStore;
use jackline_runtime::{Sessions, inspect};
use jackline_supervisor::{Kept, PREFIX};
use serde_json::json;

use super::person::{Said, fits, may_open, may_say, objections};
use super::select;
use crate::args::{ClearArgs, ControlArgs, ExpireArgs, ReloadArgs, SkipTestsArgs};
use crate::exit::Exit;
use crate::terminal::{ask, dim, fail, here, plain, say, say_json, sessions};

pub(crate) fn run(args: &ControlArgs, action: Action) -> Exit {
    // Whoever wants to hold an agent may, the agent itself included.
    if !action.closes()
        && let Err(exit) = may_open(command(action))
    {
        return exit;
    }
    match find(args) {
        Ok((store, session)) => send(store, Said::new(session, action, &args.word), args.json),
        Err(exit) => exit,
    }
}

/// `jackline clear`: the blocker, or only the count of failures.
pub(crate) fn clear(args: &ClearArgs) -> Exit {
    let action = if args.failures { Action::ResetFailures } else { Action::ClearBlocker };
    run(&args.control, action)
}

/// What is to be done where an agent works that nobody drives.
const TELL: &str = "tell the agent to go on; it does not know by itself";

/// `jackline reload`.
pub(crate) fn reload(args: &ReloadArgs) -> Exit {
    let action = Action::Reload;
    if let Err(exit) = may_open(command(action)) {
        return exit;
    }
    match find(&args.control) {
        Ok((store, session)) => {
            let said = Said::new(session, action, &args.control.word);
            let definition = match &args.definition {
                Some(definition) => Some(definition.clone()),
                None => match of_run(&store, &said.session) {
                    Ok(definition) => definition,
                    Err(exit) => return exit,
                },
            };
            let said = Said { definition, ..said };
            send(store, said, args.control.json)
        }
        Err(exit) => exit,
    }
}

/// The definition that a run was begun with, where a person or its task has named one. Where
/// that can't be known, no other one is taken for it.
fn of_run(store: &FileStore, session: &SessionId) -> Result<Option<PathBuf>, Exit> {
    match Kept::load(&store.directory(session)) {
        // What was kept before tasks were told has the word of a person alone.
        Ok(kept) => Ok(kept.and_then(|kept| kept.defined_by.or(kept.definition))),
        Err(error) => {
            let name = plain(session.as_str(), 60);
            let text = format!(
                "can't read what session `{name}` was begun with: {error}; name its definition with `-d`"
            );
            Err(fail(Exit::Broken, text))
        }
    }
}

/// `jackline constraint expire`.
pub(crate) fn expire(args: &ExpireArgs) -> Exit {
    let action = Action::ExpireConstraint;
    if let Err(exit) = may_open(command(action)) {
        return exit;
    }
    if let Err(exit) = fits("the id of a constraint", &args.id) {
        return exit;
    }
    match find(&args.control) {
        Ok((store, session)) => {
            let said = Said::new(session, action, &args.control.word);
            let said = Said { constraint: Some(args.id.clone()), ..said };
            send(store, said, args.control.json)
        }
        Err(exit) => exit,
    }
}

/// `jackline skip-tests`: nobody does that by accident, nor without a reason.
pub(crate) fn skip_tests(args: &SkipTestsArgs) -> Exit {
    let action = Action::SkipDirtyBits;
    if let Err(exit) = may_open(command(action)) {
        return exit;
    }
    if args.control.word.why.is_none() {
        let text = "say why with `--why`: what was changed and not tested may be broken";
        return fail(Exit::Usage, text);
    }
    let (store, session) = match find(&args.control) {
        Ok(found) => found,
        Err(exit) => return exit,
    };
    if !args.yes {
        if !std::io::stdin().is_terminal() {
            return fail(Exit::Usage, "nobody can be asked here; say `--yes` if you mean it");
        }
        let name = plain(session.as_str(), 60);
        say(format!("session `{name}` will count as tested, although nothing has tested it"));
        if !ask("Skip the tests?") {
            return fail(Exit::No, "nothing was changed");
        }
    }
    send(store, Said::new(session, action, &args.control.word), args.control.json)
}

/// The session that is meant, where something can be said to it.
fn find(args: &ControlArgs) -> Result<(FileStore, SessionId), Exit> {
    may_say(&args.word)?;
    let (store, all) = sessions()?;
    let found = select(&all, args.session.as_deref())?;
    match found.opened() {
        Ok(opened) => Ok((store, opened.session.clone())),
        Err(error) => Err(fail(Exit::Broken, format!("{error}; {}", error.remedy()))),
    }
}

fn send(store: FileStore, said: Said<'_>, as_json: bool) -> Exit {
    let (action, session, kept) = (said.action, said.session.clone(), store.clone());
    let verdict = match said.send(store) {
        Ok(verdict) => verdict,
        Err(problem) => return fail(Exit::Broken, problem),
    };
    let done = verdict.violations.is_empty();
    if as_json {
        say_json(json!({
            "session": session,
            "action": action.word(),
            "done": done,
            "record": verdict.seq,
            "objections": verdict.violations,
        }));
        return if done { Exit::Fine } else { Exit::No };
    }
    let name = plain(session.as_str(), 60);
    let now = standing(&kept, &session);
    if !done {
        let objections = match now.as_ref().and_then(|now| has_ended(now, &session)) {
            // What lets a session go on that is under way leads nowhere here.
            Some((ended, reopens)) => {
                let said: Vec<_> =
                    verdict.violations.iter().map(|it| it.message.as_str()).collect();
                format!("{}; it {ended}: {reopens}", said.join("; "))
            }
            None => objections(&verdict),
        };
        return fail(Exit::No, format!("session `{name}`: {objections}"));
    }
    let (what, next) = outcome(action, &session, &verdict, now.as_ref());
    say(format!("session `{name}` {what}"));
    if is_run(&session) && next == TELL {
        let again = format!("`jackline run --resume {name}`");
        say(dim(format!("a run that waits goes on by itself; one that was left, by {again}")));
    } else {
        say(dim(next));
    }
    Exit::Fine
}

/// Where a session stands after a word; none where that can't be read, which `status` says.
pub(super) fn standing(store: &FileStore, session: &SessionId) -> Option<Summary> {
    let sessions = Sessions::new(store.clone());
    let found = sessions.select(Some(session.as_str()), &here()).ok()?;
    inspect(store, &found).ok().map(|session| session.summary())
}

/// What a person types for it.
fn command(action: Action) -> &'static str {
    match action {
        Action::Acknowledge => "ack",
        Action::ClearBlocker => "clear",
        Action::ResetFailures => "clear --failures",
        Action::SkipDirtyBits => "skip-tests",
        Action::ExpireConstraint => "constraint expire",
        other => other.word(),
    }
}

/// What was done, and what comes next.
pub(super) fn outcome(
    action: Action,
    session: &SessionId,
    verdict: &Verdict,
    now: Option<&Summary>,
) -> (String, String) {
    let (what, next) =
        if verdict.safety.iter().any(|it| it.action_taken == SafetyAction::StillPaused) {
            still_paused(action, now)
        } else {
            in_words(action)
        };
    match now.and_then(|now| has_ended(now, session)) {
        Some((ended, reopens)) => {
            (format!("{ended}; {}", of_ended(action, what, is_run(session))), reopens)
        }
        None => (what.to_owned(), next.to_owned()),
    }
}

fn is_run(session: &SessionId) -> bool {
    session.as_str().starts_with(PREFIX)
}

/// That a session has ended, and how it is opened anew; none where it has not.
fn has_ended(now: &Summary, session: &SessionId) -> Option<(String, String)> {
    let stop = now.stop.as_ref().filter(|_| now.phase == SessionPhase::Ended)?;
    let name = plain(session.as_str(), 60);
    let again = format!(", and then `jackline run --resume {name}` goes on");
    let again = if is_run(session) { again } else { String::new() };
    let reopens = format!("`jackline reset {name}` opens it anew{again}");
    Some((format!("has ended with {stop}"), reopens))
}

/// What was done to a session that has ended: nothing goes on by it. The agent of a client may
/// come back to it by itself; no run does.
fn of_ended(action: Action, what: &str, is_run: bool) -> String {
    let done = match action {
        Action::Pause if is_run => return "nothing runs in it, paused or not".to_owned(),
        Action::Pause => return "an agent that comes back to it is held".to_owned(),
        Action::Resume => "a pause of it is lifted",
        Action::Acknowledge => "its checkpoint is acknowledged",
        Action::ClearBlocker => "its blocker is cleared",
        _ => return format!("it {what}"),
    };
    let whom = if is_run { "" } else { ", for an agent that comes back to it" };
    format!("{done}{whom}")
}

/// The same of a session that is under way.
fn in_words(action: Action) -> (&'static str, &'static str) {
    match action {
        Action::Pause => (
            "is paused",
            "no call runs; your next message to the agent or `jackline resume` goes on",
        ),
        Action::Resume => ("goes on", TELL),
        Action::Acknowledge => ("goes on: its checkpoint is acknowledged", TELL),
        Action::ClearBlocker => ("goes on: its blocker is cleared", TELL),
        Action::ResetFailures => ("counts its failed iterations anew", "nothing else has changed"),
        Action::SkipDirtyBits => (
            "may complete without tests",
            "it is written down who said so; the next change needs tests again",
        ),
        Action::ExpireConstraint => ("has one constraint less", "`jackline status` shows the rest"),
        Action::Reload => (
            "runs under the definition as it is now",
            "from the next call on; `jackline check --effective` shows what is in force",
        ),
        Action::Stop => {
            ("is stopped", "nothing more runs in it; only `jackline reset` opens it again")
        }
        _ => ("is open again", "budgets, policies and what was asked begin anew"),
    }
}

/// The same where something else still holds the session.
fn still_paused(action: Action, now: Option<&Summary>) -> (&'static str, &'static str) {
    match action {
        Action::Resume if now.and_then(|now| now.paused_cause) == Some(PauseCause::Checkpoint) => (
            "is not paused by that any more, and still waits at its checkpoint",
            "read `.jackline/CHECKPOINT.md`; `jackline ack` goes on",
        ),
        Action::Resume => (
            "is not paused by that any more, and is still blocked",
            "read `.jackline/BLOCKER_REPORT.md`; `jackline clear` goes on",
        ),
        Action::ClearBlocker => {
            ("has its blocker cleared, and is still paused", "`jackline resume` goes on")
        }
        _ => (
            "has its checkpoint acknowledged, and is still paused",
            "`jackline status` says by whom, and how it goes on",
        ),
    }
}
