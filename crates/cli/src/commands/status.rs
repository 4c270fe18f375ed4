//! `jackline status`: where a session stands.

mod loops;
mod manifest;

use std::path::Path;

use anstyle::AnsiColor;
use jackline_definition::words;
use jackline_engine::definition::{Dimension, LimitKey};
use jackline_engine::definition::{Limit, Per};
use jackline_engine::facts::Markers;
use jackline_engine::models::usd;
use jackline_engine::summary::{
    BudgetSummary, ContextSummary, DirtySummary, PauseCause, ProgressSummary, ReportFile,
    TestsPassing, TurnStatus, TurnSummary,
};
use jackline_engine::verdict::{Constraint, ConstraintKind, ConstraintScope};
use jackline_engine::{Session, SessionPhase, StopCode, Summary};
use jackline_host::clock::now;
use jackline_host::off::off_now;
use jackline_host::{Off, agent_above};
use jackline_journal::{FileStore, Line, Note, Opened, SessionEntry, StoreError, parse_record};
use jackline_runtime::asks::{ask_code, still_asks};
use jackline_runtime::sessions::arranged;
use jackline_runtime::{SAFETY_LOG, Sessions, inspect};
use jackline_supervisor::PREFIX;
use serde_json::json;

pub(super) use self::loops::{Circle, circle_before, circles};
use self::manifest::manifest;
use super::driven::is_driven;
use super::log::describe;
use super::pending::left_behind;
use super::person::{FOR_PERSON, in_words, off_in_words};
use super::select;
use super::trial::Trial;
use crate::args::StatusArgs;
use crate::exit::Exit;
use crate::terminal::{
    ago, bold, dim, duration, fail, open_journal, plain, say, say_json, sessions, styled, table,
};

pub(crate) fn run(args: &StatusArgs) -> Exit {
    let (store, sessions) = match sessions() {
        Ok(found) => found,
        Err(exit) => return exit,
    };
    if args.all {
        return match sessions.list() {
            Ok(all) => list(&store, &all, args.json),
            Err(error) => fail(Exit::Broken, error),
        };
    }
    let found = match select(&sessions, args.session.as_deref()) {
        Ok(found) => found,
        Err(exit) => return exit,
    };
    let looked = inspect(&store, &found).and_then(|session| {
        let trial = Trial::of(&open_journal(&found)?, session.definition())?;
        Ok((found.opened()?, session, trial))
    });
    match looked {
        Ok((opened, session, trial)) if args.json => {
            let mut status = as_json(&found, opened, &session);
            if let Some(status) = status.as_object_mut() {
                status.insert("on_trial".to_owned(), trial.as_json());
                let parts = parts_of(&sessions, opened, &session);
                let parts: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
                if !parts.is_empty() {
                    status.insert("parts".to_owned(), json!(parts));
                }
            }
            say_json(status);
            Exit::Fine
        }
        Ok((opened, session, trial)) => {
            let parent = found.parent().map(|parent| ("part of", plain(parent.as_str(), 80)));
            let parts = parts_of(&sessions, opened, &session);
            let parts = parts.iter().map(|part| ("part", part_in_words(&store, part)));
            let left = is_driven(&found, &session.summary()) == Some(false);
            let left = left.then(|| ("left", left_in_words(&found)));
            show(opened, &session, &trial, left.into_iter().chain(parent).chain(parts));
            say_faults(&found);
            Exit::Fine
        }
        Err(error) => fail(Exit::Broken, format!("{error}; {}", error.remedy())),
    }
}

/// The sessions of servers that the client of a session has, which belong to it.
fn parts_of(
    sessions: &Sessions<FileStore>,
    opened: &Opened,
    session: &Session,
) -> Vec<SessionEntry> {
    sessions.parts_of(&opened.session, session.summary().started).unwrap_or_default()
}

fn part_in_words(store: &FileStore, part: &SessionEntry) -> String {
    let name = plain(&part.name, 80);
    match inspect(store, part) {
        Ok(session) => {
            let summary = session.summary();
            format!("{name} {}, calls {}", phase(&summary), summary.invocations)
        }
        Err(error) => format!("{name} {error}"),
    }
}

/// That nobody drives a run any more, and how it goes on.
fn left_in_words(found: &SessionEntry) -> String {
    let again = format!("`jackline run --resume {}`", plain(&found.name, 60));
    format!("nobody drives it any more; {again} goes on")
}

fn as_json(found: &SessionEntry, opened: &Opened, session: &Session) -> serde_json::Value {
    let (definition, summary) = (session.definition(), session.summary());
    let mut status = json!({
        "session": opened.session,
        "workspace": opened.place.workspace,
        "definition": {
            "name": definition.name,
            "checksum": session.reloaded().unwrap_or(opened.definition.checksum),
            "mode": definition.mode,
        },
        "modified": found.modified,
        "summary": summary,
    });
    if let Some(fields) = status.as_object_mut() {
        fields.extend(manifest(definition, &summary));
        fields.extend(found.parent().map(|parent| ("parent".to_owned(), json!(parent))));
        fields.extend(is_driven(found, &summary).map(|is| ("driven".to_owned(), json!(is))));
        fields.extend(off_in(opened).map(|off| ("off".to_owned(), json!(off))));
        let log = has_safety_log(opened).then(|| ("safety_log".to_owned(), json!(SAFETY_LOG)));
        fields.extend(log);
    }
    status
}

/// What is switched off where a session works.
fn off_in(opened: &Opened) -> Option<Off> {
    off_now(opened.place.workspace.as_deref().map(Path::new))
}

fn list(store: &FileStore, all: &[SessionEntry], as_lines: bool) -> Exit {
    let mut rows = vec![["session", "last", "phase", "steps", "workspace"].map(bold).to_vec()];
    for (found, is_part) in arranged(all) {
        let below = if is_part { "  " } else { "" };
        let looked = inspect(store, found)
            .and_then(|session| found.opened().map(|opened| (opened, session)));
        let (opened, session) = match looked {
            Ok(looked) => looked,
            Err(error) => {
                if as_lines {
                    say_json(json!({ "session": found.name, "error": error.to_string() }));
                }
                rows.push(vec![format!("{below}{}", plain(&found.name, 40)), error.to_string()]);
                continue;
            }
        };
        if as_lines {
            say_json(as_json(found, opened, &session));
            continue;
        }
        let summary = session.summary();
        let left = is_driven(found, &summary) == Some(false);
        let left = if left { dim(", left") } else { String::new() };
        rows.push(vec![
            format!("{below}{}", plain(&found.name, 40)),
            found.modified.map(ago).unwrap_or_default(),
            format!("{}{left}", phase(&summary)),
            summary.steps.to_string(),
            plain(opened.place.workspace.as_deref().unwrap_or("-"), 60),
        ]);
    }
    match (as_lines, all.is_empty()) {
        (true, _) => {}
        (false, true) => say("no sessions yet"),
        (false, false) => table(&rows),
    }
    Exit::Fine
}

fn phase(summary: &Summary) -> String {
    let text = match &summary.stop {
        Some(stop) => format!("{}: {stop}", summary.phase),
        None => summary.phase.word().to_owned(),
    };
    let colour = match (summary.phase, &summary.stop) {
        (SessionPhase::Running | SessionPhase::New, _) => AnsiColor::Green,
        (_, Some(stop)) if stop.code == StopCode::ObjectiveAchieved => AnsiColor::Green,
        (SessionPhase::Paused, _) => AnsiColor::Yellow,
        _ => AnsiColor::Red,
    };
    styled(colour.on_default(), text)
}

/// What waits for a person, and how they answer it.
fn asked(opened: &Opened, summary: &Summary) -> Vec<(&'static str, String)> {
    if summary.phase == SessionPhase::Ended {
        return left_behind(summary.waiting.len())
            .map(|left| ("asked", left))
            .into_iter()
            .collect();
    }
    let waiting = summary.waiting.iter().rev().filter(|_| still_asks(summary));
    let rows = waiting.map(|waiting| {
        let code = ask_code(&opened.session, waiting.seq);
        let how = match agent_above() {
            None => format!("jackline allow {code}, or jackline refuse {code}"),
            Some(_) => FOR_PERSON.to_owned(),
        };
        [("waits for you", in_words(waiting)), ("", dim(how))]
    });
    rows.flatten().collect()
}

fn show(
    opened: &Opened,
    session: &Session,
    trial: &Trial,
    kin: impl Iterator<Item = (&'static str, String)>,
) {
    let (definition, summary) = (session.definition(), &session.summary());
    say(format!("{} {}", bold(&opened.session), phase(summary)));
    let mut rows = Vec::new();
    let mut row = |name: &str, value: String| rows.push(vec![format!("  {}", dim(name)), value]);
    row(
        "definition",
        format!("{} {}", definition.name, dim(format!("({})", words::mode(definition.mode)))),
    );
    if let Some(workspace) = &opened.place.workspace {
        row("workspace", plain(workspace, 80));
    }
    for (name, value) in kin {
        row(name, value);
    }
    if let Some(off) = off_in(opened) {
        let off = styled(AnsiColor::Red.on_default().bold(), off_in_words(&off));
        row("guard off", off);
        row("", dim("jackline on"));
    }
    // Who left while they were held still is.
    if summary.is_paused()
        || (summary.phase == SessionPhase::Ended && summary.paused_cause.is_some())
    {
        let by = summary.paused_by.as_deref().unwrap_or("a person");
        let why = summary.paused_why.as_deref().unwrap_or("no reason given");
        row("paused by", format!("{}: {}", plain(by, 40), plain(why, 160)));
        row("to go on", way_of_held(opened, summary));
    }
    if summary.phase == SessionPhase::Stopped {
        row("to go on", way_to_reopen(opened).to_owned());
    }
    for report in &summary.reports {
        row("report", report.path().to_owned());
    }
    if has_safety_log(opened) {
        row("safety log", SAFETY_LOG.to_owned());
    }
    for (name, value) in asked(opened, summary) {
        row(name, value);
    }
    for constraint in in_force(summary) {
        row("in force", constraint);
    }
    row("started", format!("{} ({})", ago(summary.started), summary.started));
    row("lasted", duration(summary.elapsed_ms));
    if let Some(deadline) = summary.deadline {
        row("deadline", format!("{} ({deadline})", ago(deadline)));
    }
    let turn = &summary.turn;
    row("turn", turn_in_words(turn));
    row("steps", of(summary.steps, turn.steps, definition.limits.steps));
    let usage = &summary.usage;
    let tokens = usage.total();
    if tokens > 0 || usage.unknown > 0 || definition.limits.total_tokens.is_some() {
        let split = dim(format!("({} in, {} out)", usage.input, usage.output));
        let used = of(tokens, turn.usage.total(), definition.limits.total_tokens);
        row("tokens", format!("{used} {split}"));
    }
    if usage.unknown > 0 {
        row("not counted", uncounted(usage.unknown));
    }
    for budget in summary.budgets.iter().filter(|it| !ABOVE.contains(&it.key.dimension)) {
        let (spent, without) = spent(budget);
        let without = without.map_or_else(String::new, |without| format!(" {}", dim(without)));
        row("limit", format!("{spent}{without}"));
    }
    for context in &summary.context {
        row("context", filled(context));
    }
    row("calls", summary.invocations.to_string());
    if let Some(bits) = dirty_bits(summary.dirty_bits) {
        row("code", bits);
    }
    for circle in circles(&summary.loops) {
        row("loop", plain(&circle.text, 160));
    }
    if summary.progress.iteration_count > 0 {
        row("iterations", iterations(&summary.progress));
    }
    if let Some(model) = &summary.model {
        row("model", plain(model, 80));
    }
    if let Some(advisor) = summary.advisor {
        row("advisor", format!("asked {} of {} times", advisor.used, advisor.budget));
    }
    for (name, value) in trial.rows(definition.mode) {
        row(name, value);
    }
    for (call, tool) in &summary.in_flight {
        let call = call.as_ref().map_or("-", |call| call.as_str());
        row("in flight", format!("{} {}", plain(tool, 40), dim(plain(call, 40))));
    }
    row("epoch", format!("{} {}", summary.epoch, dim("(how often the workspace was changed)")));
    row("records", (summary.seq + 1).to_string());
    table(&rows);
}

/// Which turn, and what became of it.
pub(super) fn turn_in_words(turn: &TurnSummary) -> String {
    let result = turn.result.map_or("not finished", TurnStatus::word);
    let blocks = match turn.blocks {
        0 => String::new(),
        1 => ", blocked once".to_owned(),
        blocks => format!(", blocked {blocks} times"),
    };
    format!("{} {result}{blocks}", turn.number)
}

/// Whether changed code was tested; none where there is nothing to say.
pub(super) fn dirty_bits(bits: DirtySummary) -> Option<String> {
    let tests = match (bits.tests_run, bits.tests_passing) {
        (false, _) if bits.skipped => "not tested, which a person said is good",
        (false, _) => "not tested since",
        (true, TestsPassing::Yes) => "tests pass",
        (true, TestsPassing::No) => "tests fail",
        (true, TestsPassing::Unknown) => "tested, and nobody knows whether the tests pass",
    };
    let docs = if bits.docs_updated { ", documentation changed" } else { "" };
    match (bits.code_modified, bits.tests_run) {
        (true, _) => Some(format!("changed, {tests}{docs}")),
        (false, true) => Some(format!("not changed, {tests}{docs}")),
        (false, false) => {
            bits.docs_updated.then(|| "not changed, documentation changed".to_owned())
        }
    }
}

/// How many iterations there were, and how the latest went.
pub(super) fn iterations(progress: &ProgressSummary) -> String {
    let count = progress.iteration_count;
    let most =
        progress.max_consecutive_failures.map_or(String::new(), |most| format!(" of {most}"));
    match (progress.consecutive_failures, progress.last_failure) {
        (0, _) => count.to_string(),
        (failed, why) => {
            format!("{count}, the last {failed}{most} failed: {}", why.unwrap_or("unknown"))
        }
    }
}

/// How a session that is paused goes on.
fn way_on(opened: &Opened, summary: &Summary) -> &'static str {
    let workspace = opened.place.workspace.as_deref().map(Path::new);
    let held = |workspace: &Path| workspace.join(Markers::PAUSE).symlink_metadata().is_ok();
    match summary.paused_cause {
        _ if workspace.is_some_and(held) => "remove `.jackline/PAUSE`",
        Some(PauseCause::Person) if summary.paused_by_file => {
            "it goes on with the next call: that is gone"
        }
        Some(cause) if cause.is_stuck() => "a message of yours, or `jackline clear`",
        // Somebody has put their word over something else, and each has its own.
        Some(PauseCause::Person | PauseCause::Protected)
            if summary.reports.contains(&ReportFile::Blocker) =>
        {
            "a message of yours, or `jackline resume` for the pause and `jackline clear` for the blocker"
        }
        Some(PauseCause::Person | PauseCause::Protected)
            if summary.reports.contains(&ReportFile::Checkpoint) =>
        {
            "`jackline resume` for the pause and `jackline ack` for the checkpoint"
        }
        Some(PauseCause::Checkpoint) => "`jackline ack`",
        _ => "a message of yours, or `jackline resume`",
    }
}

/// How a session goes on that is held, or was when it ended. No run comes back to what has
/// ended; the agent of a client may, and is held as before.
fn way_of_held(opened: &Opened, summary: &Summary) -> String {
    if summary.phase != SessionPhase::Ended {
        return way_on(opened, summary).to_owned();
    }
    let anew = format!("it has ended; {} opens it anew", way_to_reopen(opened));
    if opened.session.as_str().starts_with(PREFIX) {
        return anew;
    }
    format!("{anew}; for an agent that comes back by itself: {}", way_on(opened, summary))
}

/// How a session that is over is opened again.
fn way_to_reopen(opened: &Opened) -> &'static str {
    let workspace = opened.place.workspace.as_deref().map(Path::new);
    let stopped = |workspace: &Path| workspace.join(Markers::STOP).symlink_metadata().is_ok();
    if workspace.is_some_and(stopped) {
        "remove `.jackline/STOP`, then `jackline reset`"
    } else {
        "`jackline reset`"
    }
}

/// Whether people can read what was done about safety where a session works.
fn has_safety_log(opened: &Opened) -> bool {
    let workspace = opened.place.workspace.as_deref().map(Path::new);
    workspace.is_some_and(|workspace| workspace.join(SAFETY_LOG).is_file())
}

/// How many faults are shown.
const FAULTS_MAX: usize = 3;

/// How many of the last records are looked at for them.
const FAULT_RECORDS: u64 = 1000;

/// What the guard could not do lately, as its journal says.
fn say_faults(found: &SessionEntry) {
    let mut lately: Vec<String> = Vec::new();
    let read = open_journal(found).and_then(|journal| {
        journal.for_each_of_last(FAULT_RECORDS, |line| {
            if let Line::Event(record) = parse_record(line)? {
                let when = ago(record.event.at.unwrap_or(record.facts.now.wall));
                let faults = record.notes.iter().filter(|note| matches!(note, Note::Fault { .. }));
                lately.extend(faults.map(|note| format!("{} {}", describe(note), dim(&when))));
            }
            Ok::<(), StoreError>(())
        })
    });
    if read.is_err() || lately.is_empty() {
        return;
    }
    let passed = lately.len().saturating_sub(FAULTS_MAX);
    say(styled(AnsiColor::Yellow.on_default(), "  faults lately"));
    lately.iter().skip(passed).for_each(|fault| say(format!("    {fault}")));
}

/// What a person's word has put in force, and for how long.
fn in_force(summary: &Summary) -> impl Iterator<Item = String> {
    let now = now().wall;
    let holds = move |it: &&Constraint| it.expires_at.is_none_or(|expiry| now < expiry);
    summary.constraints.iter().filter(holds).map(|it| {
        let until = match it.expires_at {
            Some(expiry) => format!("ends {} ({expiry})", ago(expiry)),
            None if it.scope == ConstraintScope::Once => "once".to_owned(),
            None if it.scope == ConstraintScope::Turn => "until a person speaks".to_owned(),
            None => "for this session".to_owned(),
        };
        format!("{} {} {}", it.id, effect(it), dim(format!("({until})")))
    })
}

/// What a constraint does, in words.
pub(super) fn effect(constraint: &Constraint) -> String {
    let what = match constraint.kind {
        ConstraintKind::PermitSignature => "one call may pass",
        ConstraintKind::ForbidSignature => "one call is refused",
        ConstraintKind::ForceAction => "nothing else passes first",
        ConstraintKind::ToolBudget => "so many calls, and no more",
        ConstraintKind::WidenRetrieval => "the next search has to be another",
    };
    format!("{what}: {}", plain(&constraint.reason, 120))
}

/// Limits that have lines of their own.
const ABOVE: [Dimension; 2] = [Dimension::Steps, Dimension::TotalTokens];

/// What was used of a limit, and what is not in it.
pub(super) fn spent(budget: &BudgetSummary) -> (String, Option<String>) {
    let BudgetSummary { key: LimitKey { dimension, tool }, used, max, per, soft, unpriced } =
        budget;
    let per = match per {
        Per::Session => "",
        Per::Turn => " in this turn",
    };
    let soft = if *soft { ", soft" } else { "" };
    if let Some(tool) = tool {
        return (format!("{used} of {max} calls of {}{per}{soft}", plain(tool, 80)), None);
    }
    if *dimension != Dimension::CostUsd {
        let dimension = dimension.in_words();
        return (format!("{used} of {max} {dimension}{per}{soft}"), None);
    }
    let amount = format!("{} of {} USD{per}{soft}", usd(*used), usd(*max));
    if unpriced.is_empty() {
        return (amount, None);
    }
    let names: Vec<String> = unpriced.iter().map(|name| plain(name, 64)).collect();
    (format!("at least {amount}"), Some(format!("(no price for {})", names.join(", "))))
}

/// That answers of the model used what nobody could read.
pub(super) fn uncounted(unknown: u64) -> String {
    let answers = if unknown == 1 { "1 answer".to_owned() } else { format!("{unknown} answers") };
    format!("{answers} of the model, whose usage can't be read; more was used than is shown")
}

/// How full a context is.
fn filled(context: &ContextSummary) -> String {
    let who = if context.actor.is_main() {
        String::new()
    } else {
        format!(" {}", dim(plain(context.actor.as_str(), 40)))
    };
    let ineffective = match context.ineffective {
        0 => String::new(),
        1 => ", the last compaction freed next to nothing".to_owned(),
        times => format!(", {times} compactions freed next to nothing"),
    };
    let fill = match (context.pct, context.used, context.window) {
        (Some(pct), Some(used), Some(window)) => format!("{pct} % ({used} of {window} tokens)"),
        (_, Some(used), _) => format!("{used} tokens of a window that nobody knows"),
        (pct, None, _) => format!("about {} %, estimated", pct.unwrap_or(0)),
    };
    format!("{fill}{ineffective}{who}")
}

/// What was used, beside its limit.
pub(super) fn of(in_session: u64, in_turn: u64, limit: Option<Limit>) -> String {
    match limit {
        Some(Limit { max, per: Per::Session, .. }) => format!("{in_session} of {max}"),
        Some(Limit { max, per: Per::Turn, .. }) => {
            format!("{in_session}, {in_turn} of {max} in this turn")
        }
        None => in_session.to_string(),
    }
}
