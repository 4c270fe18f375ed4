//! `jackline status`: the current state of a session.

mod definition_in_force;
mod loops;
mod manifest;
mod next_commands;

use std::path::Path;

use anstyle::AnsiColor;
use jackline_definition::words;
use jackline_engine::definition::{BudgetLimit, LimitPeriod};
use jackline_engine::definition::{LimitDimension, LimitKey};
use jackline_engine::models::format_usd;
use jackline_engine::summary::{
    BudgetSummary, ContextSummary, DirtySummary, ProgressSummary, TestsPassing, TurnStatus,
    TurnSummary,
};
use jackline_engine::verdict::{Constraint, ConstraintKind, ConstraintScope};
use jackline_engine::{Session, SessionPhase, SessionSummary};
use jackline_host::clock::now;
use jackline_host::off_switch::current_off_period;
use jackline_host::{OffPeriod, check_person};
use jackline_journal::{
    FileStore, JournalLine, JournalNote, OpeningRecord, SessionEntry, StoreError, parse_record,
};
use jackline_runtime::open_questions::{approval_code, is_answerable};
use jackline_runtime::sessions::group_sub_sessions;
use jackline_runtime::{SAFETY_LOG, Sessions, load_session, was_left};
use serde_json::json;

use self::definition_in_force::{
    current_definition, describe_lost_hooks, describe_missing_trust,
    show_definition_without_session,
};
pub(super) use self::loops::{LoopStatus, current_loops, previous_loop};
use self::manifest::manifest;
use self::next_commands::{how_to_reopen, how_to_resume_paused};
use super::log::describe_note;
use super::observed_violations::{EnforcementContext, ObservedViolations};
use super::pending::describe_ended_questions;
use super::person::{CODE_IS_FOR_PERSON, describe_off, describe_question};
use super::supervisor_check::has_supervisor;
use super::trust_demands::untrusted_checks;
use super::{print_no_session, select_if_any};
use crate::args::StatusArgs;
use crate::exit::ExitKind;
use crate::status_label::StatusLabel;
use crate::terminal::{
    bold, dim, fail, format_age, format_duration, load_sessions, open_journal, print_json_line,
    print_line, print_table, sanitize, styled,
};

pub(crate) fn run(args: &StatusArgs) -> ExitKind {
    let (store, sessions) = match load_sessions() {
        Ok(entry) => entry,
        Err(exit) => return exit,
    };
    if args.all {
        return match sessions.list() {
            Ok(all) => list(&store, &all, args.json),
            Err(error) => fail(ExitKind::Broken, error),
        };
    }
    let entry = match select_if_any(&sessions, args.session.as_deref()) {
        Ok(Some(entry)) => entry,
        Ok(None) if args.json => {
            print_json_line(json!({ "session": null }));
            return ExitKind::Success;
        }
        Ok(None) => {
            show_definition_without_session(&store);
            print_no_session(&sessions);
            return ExitKind::Success;
        }
        Err(exit) => return exit,
    };
    let looked = load_session(&store, &entry).and_then(|session| {
        let trial = ObservedViolations::count_in(&open_journal(&entry)?, session.definition())?;
        Ok((entry.opening()?, session, trial))
    });
    match looked {
        Ok((opened, session, trial)) if args.json => {
            let mut status = as_json(&entry, opened, &session);
            if let Some(status) = status.as_object_mut() {
                status.insert("on_trial".to_owned(), trial.as_json());
                let parts = parts_of(&sessions, opened, &session);
                let parts: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
                if !parts.is_empty() {
                    status.insert("parts".to_owned(), json!(parts));
                }
            }
            print_json_line(status);
            ExitKind::Success
        }
        Ok((opened, session, trial)) => {
            let parent = entry.parent().map(|parent| ("part of", sanitize(parent.as_str(), 80)));
            let parts = parts_of(&sessions, opened, &session);
            let parts = parts.iter().map(|part| ("part", describe_part(&store, part)));
            let left = has_supervisor(&entry, &session.summary()) == Some(false);
            let left = left.then(|| ("supervisor", describe_missing_supervisor(&entry)));
            let gone = was_left_by_process(&entry, &session.summary())
                .then(|| ("process", MISSING_PROCESS.to_owned()));
            let workspace = opened.place.workspace.as_deref().map(Path::new);
            let hooks = workspace.and_then(describe_lost_hooks).map(|text| ("hooks", text));
            let kin = hooks.into_iter().chain(left).chain(gone).chain(parent).chain(parts);
            show(&store, opened, &session, &trial, kin);
            print_recent_faults(&entry);
            ExitKind::Success
        }
        Err(error) => fail(ExitKind::Broken, format!("{error}; {}", error.remedy())),
    }
}

/// The sessions of the MCP servers of a session's client. They are parts of the session.
fn parts_of(
    sessions: &Sessions<FileStore>,
    opened: &OpeningRecord,
    session: &Session,
) -> Vec<SessionEntry> {
    sessions.sub_sessions(&opened.session, session.summary().started).unwrap_or_default()
}

fn describe_part(store: &FileStore, part: &SessionEntry) -> String {
    let name = sanitize(&part.name, 80);
    match load_session(store, part) {
        Ok(session) => {
            let summary = session.summary();
            format!("{name} {}, calls {}", phase(&summary), summary.invocations)
        }
        Err(error) => format!("{name} {error}"),
    }
}

/// The message for a run without a supervisor process, with the command that resumes it.
fn describe_missing_supervisor(entry: &SessionEntry) -> String {
    let command = format!("`jackline run --resume {}`", sanitize(&entry.name, 60));
    format!("the supervisor process is gone; resume with {command}")
}

/// The message for a session that did not end, but whose process is gone.
const MISSING_PROCESS: &str = "the process that worked on this session is gone; an answer to its \
questions counts when a process continues the session";

/// Whether the process that worked on a session is gone, although the session did not end.
fn was_left_by_process(entry: &SessionEntry, summary: &SessionSummary) -> bool {
    is_answerable(summary) && was_left(entry, now().wall)
}

fn as_json(entry: &SessionEntry, opened: &OpeningRecord, session: &Session) -> serde_json::Value {
    let (definition, summary) = (session.definition(), session.summary());
    let mut status = json!({
        "session": opened.session,
        "workspace": opened.place.workspace,
        "definition": {
            "name": definition.name,
            "checksum": session.reloaded_checksum().unwrap_or(opened.definition.checksum),
            "mode": definition.mode,
        },
        "modified": entry.modified,
        "summary": summary,
    });
    if let Some(fields) = status.as_object_mut() {
        fields.extend(manifest(session));
        fields.extend(entry.parent().map(|parent| ("parent".to_owned(), json!(parent))));
        fields.extend(has_supervisor(entry, &summary).map(|is| ("driven".to_owned(), json!(is))));
        if was_left_by_process(entry, &summary) {
            fields.insert("left".to_owned(), json!(true));
        }
        fields.extend(off_in_workspace(opened).map(|off| ("off".to_owned(), json!(off))));
        let untrusted = untrusted_checks(definition);
        let untrusted = (!untrusted.is_empty()).then(|| json!(untrusted));
        fields.extend(untrusted.map(|commands| ("needs_trust".to_owned(), commands)));
        let log = has_safety_log(opened).then(|| ("safety_log".to_owned(), json!(SAFETY_LOG)));
        fields.extend(log);
    }
    status
}

/// The period in which the guard is off in the workspace of a session, if any.
fn off_in_workspace(opened: &OpeningRecord) -> Option<OffPeriod> {
    current_off_period(opened.place.workspace.as_deref().map(Path::new))
}

fn list(store: &FileStore, all: &[SessionEntry], as_lines: bool) -> ExitKind {
    let mut rows = vec![["session", "last", "status", "steps", "workspace"].map(bold).to_vec()];
    for (entry, is_part) in group_sub_sessions(all) {
        let indent = if is_part { "  " } else { "" };
        let looked = load_session(store, entry)
            .and_then(|session| entry.opening().map(|opened| (opened, session)));
        let (opened, session) = match looked {
            Ok(looked) => looked,
            Err(error) => {
                if as_lines {
                    print_json_line(json!({ "session": entry.name, "error": error.to_string() }));
                }
                rows.push(vec![
                    format!("{indent}{}", sanitize(&entry.name, 40)),
                    error.to_string(),
                ]);
                continue;
            }
        };
        if as_lines {
            print_json_line(as_json(entry, opened, &session));
            continue;
        }
        let summary = session.summary();
        let left = has_supervisor(entry, &summary) == Some(false);
        let left = match (left, was_left_by_process(entry, &summary)) {
            (true, _) => ", supervisor gone",
            (false, true) => ", process gone",
            (false, false) => "",
        };
        rows.push(vec![
            format!("{indent}{}", sanitize(&entry.name, 40)),
            entry.modified.map(format_age).unwrap_or_default(),
            format!("{}{left}", phase(&summary)),
            summary.steps.to_string(),
            sanitize(opened.place.workspace.as_deref().unwrap_or("-"), 60),
        ]);
    }
    match (as_lines, all.is_empty()) {
        (true, _) => {}
        (false, true) => print_line("no sessions yet"),
        (false, false) => print_table(&rows),
    }
    ExitKind::Success
}

fn phase(summary: &SessionSummary) -> String {
    let label = StatusLabel::of_session(summary);
    styled(label.style(), label)
}

/// The rows for the questions that wait for a person, with the commands that answer them.
fn question_rows(opened: &OpeningRecord, summary: &SessionSummary) -> Vec<(&'static str, String)> {
    if summary.phase == SessionPhase::Ended {
        return describe_ended_questions(summary.waiting.len())
            .map(|left| ("asked", left))
            .into_iter()
            .collect();
    }
    let waiting = summary.waiting.iter().rev().filter(|_| is_answerable(summary));
    let rows = waiting.map(|waiting| {
        let code = approval_code(&opened.session, waiting.seq);
        let how = match check_person() {
            Ok(()) => format!("jackline allow {code}, or jackline refuse {code}"),
            Err(_) => CODE_IS_FOR_PERSON.to_owned(),
        };
        [("waits for you", describe_question(waiting)), ("", dim(how))]
    });
    rows.flatten().collect()
}

fn show(
    store: &FileStore,
    opened: &OpeningRecord,
    session: &Session,
    trial: &ObservedViolations,
    kin: impl Iterator<Item = (&'static str, String)>,
) {
    let (definition, summary) = (session.definition(), &session.summary());
    print_line(format!("{} {}", bold(&opened.session), phase(summary)));
    let mut rows = Vec::new();
    let mut row = |name: &str, value: String| rows.push(vec![format!("  {}", dim(name)), value]);
    row(
        "definition",
        format!("{} {}", definition.name, dim(format!("({})", words::mode(definition.mode)))),
    );
    if let Some(trust) = describe_missing_trust(opened, definition) {
        row("needs trust", trust);
    }
    if let Some(workspace) = &opened.place.workspace {
        row("workspace", sanitize(workspace, 80));
    }
    for (name, value) in kin {
        row(name, value);
    }
    if let Some(off) = off_in_workspace(opened) {
        let off = styled(AnsiColor::Red.on_default().bold(), describe_off(&off));
        row("guard off", off);
        row("", dim("jackline on"));
    }
    // A session that ended while it was paused is still paused if its agent comes back.
    if summary.is_paused()
        || (summary.phase == SessionPhase::Ended && summary.paused_cause.is_some())
    {
        let by = summary.paused_by.as_deref().unwrap_or("a person");
        let why = summary.paused_why.as_deref().unwrap_or("no reason given");
        row("paused by", format!("{}: {}", sanitize(by, 40), sanitize(why, 160)));
        row("to continue", how_to_resume_paused(opened, summary));
    }
    if summary.phase == SessionPhase::Stopped {
        row("to continue", how_to_reopen(opened).to_owned());
    }
    for report in &summary.reports {
        row("report", report.path().to_owned());
    }
    if has_safety_log(opened) {
        row("safety log", SAFETY_LOG.to_owned());
    }
    for (name, value) in question_rows(opened, summary) {
        row(name, value);
    }
    for constraint in active_constraints(summary) {
        row("in force", constraint);
    }
    row("started", format!("{} ({})", format_age(summary.started), summary.started));
    row("lasted", format_duration(summary.elapsed_ms));
    if let Some(deadline) = summary.deadline {
        row("deadline", format!("{} ({deadline})", format_age(deadline)));
    }
    let turn = &summary.turn;
    row("turn", describe_turn(turn));
    row("steps", used_of_limit(summary.steps, turn.steps, definition.limits.steps));
    let usage = &summary.usage;
    let tokens = usage.total();
    if tokens > 0 || usage.unknown > 0 || definition.limits.total_tokens.is_some() {
        let split = dim(format!("({} in, {} out)", usage.input, usage.output));
        let used = used_of_limit(tokens, turn.usage.total(), definition.limits.total_tokens);
        row("tokens", format!("{used} {split}"));
    }
    if usage.unknown > 0 {
        row("not counted", describe_unknown_usage(usage.unknown));
    }
    for budget in
        summary.budgets.iter().filter(|it| !OWN_ROW_DIMENSIONS.contains(&it.key.dimension))
    {
        let (used, remark) = describe_budget(budget);
        let remark = remark.map_or_else(String::new, |remark| format!(" {}", dim(remark)));
        row("limit", format!("{used}{remark}"));
    }
    for context in &summary.context {
        row("context", describe_context(context));
    }
    row("calls", summary.invocations.to_string());
    if let Some(bits) = describe_tests(summary.dirty_bits) {
        row("code", bits);
    }
    for circle in current_loops(&summary.loops) {
        row("loop", sanitize(&circle.text, 160));
    }
    if summary.progress.iteration_count > 0 {
        row("iterations", describe_iterations(&summary.progress));
    }
    if let Some(model) = &summary.model {
        row("model", sanitize(model, 80));
    }
    if let Some(advisor) = summary.advisor {
        row("advisor", format!("asked {} of {} times", advisor.used, advisor.budget));
    }
    for (name, value) in observed_rows(store, opened, session, trial) {
        row(name, value);
    }
    for (call, tool) in &summary.in_flight {
        let call = call.as_ref().map_or("-", |call| call.as_str());
        row("in flight", format!("{} {}", sanitize(tool, 40), dim(sanitize(call, 40))));
    }
    row("epoch", format!("{} {}", summary.epoch, dim("(number of changes of the workspace)")));
    row("records", (summary.seq + 1).to_string());
    print_table(&rows);
}

/// The rows for violations that were only observed.
fn observed_rows(
    store: &FileStore,
    opened: &OpeningRecord,
    session: &Session,
    trial: &ObservedViolations,
) -> Vec<(&'static str, String)> {
    trial.rows(&EnforcementContext {
        session: opened.session.as_str(),
        definition: session.definition(),
        current: current_definition(store, session).as_ref(),
        is_off: off_in_workspace(opened).is_some(),
    })
}

/// The number of the turn and its result.
pub(super) fn describe_turn(turn: &TurnSummary) -> String {
    let result = turn.result.map_or("not finished", TurnStatus::as_str);
    let blocks = match turn.blocks {
        0 => String::new(),
        1 => ", blocked once".to_owned(),
        blocks => format!(", blocked {blocks} times"),
    };
    format!("{} {result}{blocks}", turn.number)
}

/// Whether changed code was tested; `None` if nothing was changed or tested.
pub(super) fn describe_tests(bits: DirtySummary) -> Option<String> {
    let tests = match (bits.tests_run, bits.tests_passing) {
        (false, _) if bits.skipped => "tests skipped by a person",
        (false, _) => "not tested since",
        (true, TestsPassing::Yes) => "tests pass",
        (true, TestsPassing::No) => "tests fail",
        (true, TestsPassing::Unknown) => "tested with unknown result",
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

/// The number of iterations, and how many of the latest failed.
pub(super) fn describe_iterations(progress: &ProgressSummary) -> String {
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

/// Whether the workspace of a session has a safety log.
fn has_safety_log(opened: &OpeningRecord) -> bool {
    let workspace = opened.place.workspace.as_deref().map(Path::new);
    workspace.is_some_and(|workspace| workspace.join(SAFETY_LOG).is_file())
}

/// How many faults are shown.
const FAULTS_MAX: usize = 3;

/// How many of the last records are searched for faults.
const FAULT_RECORDS: u64 = 1000;

/// Prints the latest faults of the guard from the journal.
fn print_recent_faults(entry: &SessionEntry) {
    let mut recent: Vec<String> = Vec::new();
    let read = open_journal(entry).and_then(|journal| {
        journal.for_each_of_last(FAULT_RECORDS, |line| {
            if let JournalLine::Event(record) = parse_record(line)? {
                let when = format_age(record.event.at.unwrap_or(record.facts.now.wall));
                let faults =
                    record.notes.iter().filter(|note| matches!(note, JournalNote::Fault { .. }));
                recent.extend(faults.map(|note| format!("{} {}", describe_note(note), dim(&when))));
            }
            Ok::<(), StoreError>(())
        })
    });
    if read.is_err() || recent.is_empty() {
        return;
    }
    let older = recent.len().saturating_sub(FAULTS_MAX);
    print_line(styled(AnsiColor::Yellow.on_default(), "  recent faults"));
    recent.iter().skip(older).for_each(|fault| print_line(format!("    {fault}")));
}

/// The active constraints, and how long each stays active.
fn active_constraints(summary: &SessionSummary) -> impl Iterator<Item = String> {
    let now = now().wall;
    let is_active = move |it: &&Constraint| it.expires_at.is_none_or(|expiry| now < expiry);
    summary.constraints.iter().filter(is_active).map(|it| {
        let until = match it.expires_at {
            Some(expiry) => format!("ends {} ({expiry})", format_age(expiry)),
            None if it.scope == ConstraintScope::Once => "once".to_owned(),
            None if it.scope == ConstraintScope::Turn => "until a person's next message".to_owned(),
            None => "for this session".to_owned(),
        };
        format!("{} {} {}", it.id, describe_constraint(it), dim(format!("({until})")))
    })
}

/// A description of what a constraint does.
pub(super) fn describe_constraint(constraint: &Constraint) -> String {
    let what = match constraint.kind {
        ConstraintKind::PermitSignature => "one call is allowed",
        ConstraintKind::ForbidSignature => "one call is refused",
        ConstraintKind::ForceAction => "one action is required first",
        ConstraintKind::ToolBudget => "the number of calls is limited",
        ConstraintKind::WidenRetrieval => "the next search must be different",
    };
    format!("{what}: {}", sanitize(&constraint.reason, 120))
}

/// Limits that have their own rows.
const OWN_ROW_DIMENSIONS: [LimitDimension; 2] =
    [LimitDimension::Steps, LimitDimension::TotalTokens];

/// How much of a limit was used, and a remark if some cost is not included.
pub(super) fn describe_budget(budget: &BudgetSummary) -> (String, Option<String>) {
    let BudgetSummary { key: LimitKey { dimension, tool }, used, max, per, soft, unpriced } =
        budget;
    let per = match per {
        LimitPeriod::Session => "",
        LimitPeriod::Turn => " in this turn",
    };
    let soft = if *soft { ", soft" } else { "" };
    if let Some(tool) = tool {
        return (format!("{used} of {max} calls of {}{per}{soft}", sanitize(tool, 80)), None);
    }
    if *dimension != LimitDimension::CostUsd {
        let dimension = dimension.in_words();
        return (format!("{used} of {max} {dimension}{per}{soft}"), None);
    }
    let amount = format!("{} of {} USD{per}{soft}", format_usd(*used), format_usd(*max));
    if unpriced.is_empty() {
        return (amount, None);
    }
    let names: Vec<String> = unpriced.iter().map(|name| sanitize(name, 64)).collect();
    (format!("at least {amount}"), Some(format!("(no price for {})", names.join(", "))))
}

/// The message about model answers without readable usage.
pub(super) fn describe_unknown_usage(unknown: u64) -> String {
    let answers = if unknown == 1 { "1 answer".to_owned() } else { format!("{unknown} answers") };
    format!("{answers} of the model with unknown usage; more was used than is shown")
}

/// How full the context window of an actor is.
fn describe_context(context: &ContextSummary) -> String {
    let actor = if context.actor.is_main() {
        String::new()
    } else {
        format!(" {}", dim(sanitize(context.actor.as_str(), 40)))
    };
    let ineffective = match context.ineffective {
        0 => String::new(),
        1 => ", the last compaction freed almost nothing".to_owned(),
        times => format!(", {times} compactions freed almost nothing"),
    };
    let fill = match (context.pct, context.used, context.window) {
        (Some(pct), Some(used), Some(window)) => format!("{pct} % ({used} of {window} tokens)"),
        (_, Some(used), _) => format!("{used} tokens, window size unknown"),
        (pct, None, _) => format!("about {} %, estimated", pct.unwrap_or(0)),
    };
    format!("{fill}{ineffective}{actor}")
}

/// The used amount with its limit.
pub(super) fn used_of_limit(in_session: u64, in_turn: u64, limit: Option<BudgetLimit>) -> String {
    match limit {
        Some(BudgetLimit { max, per: LimitPeriod::Session, .. }) => {
            format!("{in_session} of {max}")
        }
        Some(BudgetLimit { max, per: LimitPeriod::Turn, .. }) => {
            format!("{in_session}, {in_turn} of {max} in this turn")
        }
        None => in_session.to_string(),
    }
}
