//! `jackline log`: lists the events of a session.

use std::collections::VecDeque;

use jackline_engine::event::{
    AdvisorAnswered, AttemptEnded, AttemptStage, AttemptStarted, Control, ModelChanged,
    UsageReported, WorkspaceChanged,
};
use jackline_engine::facts::DefinitionFact;
use jackline_engine::verdict::CompletionResult;
use jackline_engine::{
    Arguments, CallStatus, Decision, EventKind, FaultKind, Payload, PromptSubmitted,
    SessionStarted, StopProposed, ToolFinished, ToolProposed, Verdict,
};
use jackline_journal::{
    EventRecord, JournalLine, JournalNote, JournalView, StoreError, parse_record,
};

use super::status::describe_constraint;
use super::{print_no_session, select_if_any};
use crate::args::LogArgs;
use crate::exit::ExitKind;
use crate::status_label::StatusLabel;
use crate::terminal::{
    bold, decision_style, dim, fail, format_age, format_count, load_sessions, open_journal,
    print_json_line, print_line, print_table, sanitize, styled,
};

/// How many records are listed without `-n`.
const RECORDS_DEFAULT: usize = 50;

pub(crate) fn run(args: &LogArgs) -> ExitKind {
    let sessions = match load_sessions() {
        Ok((_, sessions)) => sessions,
        Err(exit) => return exit,
    };
    let entry = match select_if_any(&sessions, args.session.as_deref()) {
        Ok(Some(entry)) => entry,
        Ok(None) => {
            if !args.json {
                print_no_session(&sessions);
            }
            return ExitKind::Success;
        }
        Err(exit) => return exit,
    };
    let read = open_journal(&entry).and_then(|journal| {
        if args.json { print_raw(&journal, args) } else { print_rows(&journal, args) }
    });
    match read {
        Ok(()) => ExitKind::Success,
        Err(error) => fail(ExitKind::Broken, format!("{error}; {}", error.remedy())),
    }
}

fn print_raw(journal: &JournalView, args: &LogArgs) -> Result<(), StoreError> {
    let count_max = args.last.unwrap_or(usize::MAX);
    let mut lines = VecDeque::new();
    journal.for_each(|line| {
        let wanted = !args.objections
            || matches!(parse_record(line)?, JournalLine::Event(r) if !r.verdict.violations.is_empty());
        if !wanted {
            return Ok(());
        }
        let text = String::from_utf8_lossy(line).into_owned();
        if count_max == usize::MAX {
            print_json_line(text);
        } else {
            lines.push_back(text);
            if lines.len() > count_max {
                lines.pop_front();
            }
        }
        Ok::<(), StoreError>(())
    })?;
    lines.iter().for_each(print_json_line);
    Ok(())
}

fn print_rows(journal: &JournalView, args: &LogArgs) -> Result<(), StoreError> {
    let count_max = args.last.unwrap_or(RECORDS_DEFAULT);
    let mut records: VecDeque<Box<EventRecord>> = VecDeque::new();
    let (mut earlier, mut hidden) = (0, 0);
    journal.for_each(|line| {
        if let JournalLine::Event(record) = parse_record(line)?
            && !(args.objections && record.verdict.violations.is_empty())
        {
            if !args.all && is_bookkeeping(&record) {
                hidden += 1;
                return Ok(());
            }
            records.push_back(record);
            if records.len() > count_max {
                earlier += 1;
                records.pop_front();
            }
        }
        Ok::<(), StoreError>(())
    })?;
    if earlier > 0 {
        print_line(dim(format!(
            "{earlier} earlier records; `-n {}` shows them",
            earlier + records.len()
        )));
    }
    if hidden > 0 {
        let records = format_count(hidden, "bookkeeping record");
        print_line(dim(format!(
            "{records} not listed (token usage, successful results); `--all` lists them"
        )));
    }
    if records.is_empty() {
        print_line("nothing to list");
        return Ok(());
    }
    let mut table_rows = vec![["#", "when", "event", "details", "verdict"].map(bold).to_vec()];
    for record in &records {
        table_rows.push(vec![
            dim(record.seq),
            dim(format_age(record.event.at.unwrap_or(record.facts.now.wall))),
            record.event.kind.name().to_owned(),
            sanitize(&describe_event(&record.event.kind), 40),
            verdict_cell(record),
        ]);
        let about_definition = match &record.facts.definition {
            Some(DefinitionFact::Changed { .. }) => Some(
                "the definition was changed; this applies to new sessions, or after `jackline reload`"
                    .to_owned(),
            ),
            Some(DefinitionFact::Missing) => {
                Some("the definition file is missing; the loaded definition stays in force".to_owned())
            }
            Some(DefinitionFact::Broken { reason }) => {
                let reason = sanitize(reason, 200);
                Some(format!(
                    "the definition no longer loads; the last valid one stays in force: {reason}"
                ))
            }
            Some(DefinitionFact::Same) | None => None,
        };
        let about_off = record.facts.off.as_ref().filter(|_| record.facts.is_off()).map(|off| {
            let by = if off.by.is_empty() { "a person" } else { &off.by };
            format!("the guard was off, by {}: {}", sanitize(by, 40), sanitize(&off.why, 90))
        });
        let about_reload = record.as_record().reloaded_definition().map(|new| {
            let named = journal.definition(&new.lowered.digest());
            let name =
                named.map_or_else(|_| "a definition".to_owned(), |it| sanitize(&it.name, 60));
            format!("from here on, the definition is {name} {}", new.checksum)
        });
        let notes = record.notes.iter().map(describe_note);
        for note in notes.chain(about_definition).chain(about_reload).chain(about_off) {
            table_rows.push(vec![String::new(), String::new(), dim("note"), dim(note)]);
        }
    }
    print_table(&table_rows);
    Ok(())
}

/// Whether a record is routine: token usage, or the result of a call that succeeded, without any
/// remark of the guard. `--all` lists such records.
fn is_bookkeeping(record: &EventRecord) -> bool {
    let is_routine = match &record.event.kind {
        EventKind::UsageReported(_) => true,
        EventKind::ToolFinished(ToolFinished { status, exit_code, .. }) => {
            *status == CallStatus::Ok && exit_code.is_none_or(|code| code == 0)
        }
        _ => false,
    };
    let verdict = &record.verdict;
    let definition_is_same = matches!(record.facts.definition, None | Some(DefinitionFact::Same));
    is_routine
        && verdict.decision == Decision::Allow
        && verdict.error.is_none()
        && verdict_remarks(verdict, dim).is_empty()
        && record.notes.is_empty()
        && definition_is_same
}

/// A short description of an event.
pub(super) fn describe_event(kind: &EventKind) -> String {
    match kind {
        EventKind::SessionStarted(SessionStarted { client, .. }) => {
            client.clone().unwrap_or_default()
        }
        EventKind::PromptSubmitted(PromptSubmitted { text, .. }) => {
            text.as_ref().map_or("", Payload::head).to_owned()
        }
        EventKind::ToolProposed(ToolProposed { call, tool, args, .. }) => {
            // Long ids of some clients cannot be told apart at a glance, so they are not shown.
            let call = call.as_ref().filter(|call| call.as_str().len() <= CALL_ID_CHARS_MAX);
            let call = call.map_or_else(String::new, |call| format!(" {call}"));
            format!("{tool}{call} {}", short_arguments(args))
        }
        EventKind::ToolFinished(ToolFinished { call, status, exit_code, .. }) => {
            let call = call.as_ref().map_or("", |call| call.as_str());
            // A command that ran and failed has the status `ok`; people need its exit code.
            let result = match exit_code.filter(|code| *code != 0) {
                Some(code) if *status == CallStatus::Ok => format!("exit code {code}"),
                _ => status.as_str().to_owned(),
            };
            format!("{} {result}", sanitize(call, CALL_ID_CHARS_MAX))
        }
        EventKind::UsageReported(UsageReported { input, output, .. }) => {
            format!("{input} in, {output} out")
        }
        EventKind::WorkspaceChanged(WorkspaceChanged { files, more }) => {
            let more = if *more { ", …" } else { "" };
            format!("{}{more}", files.join(", "))
        }
        EventKind::StopProposed(StopProposed { reason, .. }) => reason.clone().unwrap_or_default(),
        EventKind::AttemptStarted(AttemptStarted { attempt }) => attempt.to_string(),
        EventKind::AttemptStage(AttemptStage { attempt, stage, .. }) => {
            format!("{attempt} {}", stage.as_str())
        }
        EventKind::AttemptEnded(AttemptEnded { attempt, result }) => {
            format!("{attempt} {}", result.as_str())
        }
        EventKind::AdvisorAnswered(AdvisorAnswered { model, instruction, error }) => {
            let text = instruction.as_ref().or(error.as_ref()).map_or("", Payload::head);
            match model {
                Some(model) => format!("{model} {text}"),
                None => text.to_owned(),
            }
        }
        EventKind::ModelChanged(ModelChanged { to, reason, .. }) => format!("{to} {reason}"),
        EventKind::Control(Control { action, by, .. }) => {
            let by = by.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
            format!("{}{by}", action.as_str())
        }
        EventKind::PlanProposed(_)
        | EventKind::OutputProposed(_)
        | EventKind::CompactionFinished(_)
        | EventKind::IterationEnded(_)
        | EventKind::SessionEnded(_) => String::new(),
    }
}

fn verdict_cell(record: &EventRecord) -> String {
    let verdict = &record.verdict;
    let mut parts = vec![styled(decision_style(verdict.decision), decision_text(verdict))];
    parts.extend(verdict_remarks(verdict, dim));
    parts.join("  ")
}

/// The decision, or what it would be if it were enforced.
pub(super) fn decision_text(verdict: &Verdict) -> String {
    let would = if verdict.enforced == Some(false) { "would " } else { "" };
    format!("{would}{}", verdict.decision.as_str())
}

/// The remarks of a verdict. `mark` styles violations that were only observed.
pub(super) fn verdict_remarks(verdict: &Verdict, mark: impl Fn(String) -> String) -> Vec<String> {
    let completion = match &verdict.completion {
        None | Some(CompletionResult::Incomplete { .. }) => None,
        Some(CompletionResult::Complete) => Some("complete".to_owned()),
        Some(CompletionResult::Bypassed { .. }) => {
            Some("not done: the completion check was skipped".to_owned())
        }
        Some(CompletionResult::Capped { rounds, .. }) => {
            Some(format!("not done: blocked {rounds} times, then let go"))
        }
        Some(CompletionResult::Unverified { reason }) => Some(format!("not verified: {reason}")),
    };
    let reasons = verdict.violations.iter().map(|violation| {
        // A violation that is only observed, next to others that are enforced.
        let is_observed = !violation.enforced && verdict.enforced == Some(true);
        let would = format!("would {}: ", violation.decision.as_str());
        let would = if is_observed { mark(would) } else { String::new() };
        format!("{would}{}", sanitize(&violation.message, 90))
    });
    let stop = verdict.stop.iter().map(|stop| StatusLabel::of_stop(stop).to_string());
    let constraints = verdict.constraints.iter().map(|it| {
        let observed = if it.enforced { "" } else { " (only observed)" };
        format!("{} {}{observed}", it.id, describe_constraint(it))
    });
    let feedback = verdict.feedback.iter().map(|feedback| sanitize(&feedback.summary, 90));
    stop.chain(completion).chain(constraints).chain(reasons).chain(feedback).collect()
}

/// Call ids that are longer than this are not shown.
const CALL_ID_CHARS_MAX: usize = 16;

/// The most important argument of a call: its command line, else its file, else all arguments.
fn short_arguments(args: &Arguments) -> String {
    let args = match args {
        Arguments::Parsed(args) => args,
        Arguments::Text(text) => return text.head().to_owned(),
    };
    let main = ["command", "file_path", "path"].iter().find_map(|key| args.get(key)?.as_str());
    main.map_or_else(|| args.to_string(), ToOwned::to_owned)
}

/// A short description of a note.
pub(super) fn describe_note(note: &JournalNote) -> String {
    match note {
        JournalNote::Repaired { bytes } => {
            format!("an incomplete record of {bytes} bytes was removed from the end")
        }
        // In these cases the guard still answered, so the reason alone is shown.
        JournalNote::Fault { kind: FaultKind::Notify | FaultKind::Definition, reason } => {
            sanitize(reason, 300)
        }
        JournalNote::Fault { reason, .. } => {
            format!("the guard could not answer: {}", sanitize(reason, 90))
        }
        JournalNote::Malformed { line, reason } => format!("line {line}: {}", sanitize(reason, 90)),
        JournalNote::GivenBack { path, kept } => {
            let saved = kept.map_or_else(String::new, |blob| {
                format!("; the changed contents are saved as blob {blob}")
            });
            format!("`{}` was restored{saved}", sanitize(path, 90))
        }
        JournalNote::ToolsChanged { tools } => {
            format!("tool descriptions changed: {}", sanitize(&tools.join(", "), 90))
        }
        JournalNote::Dropped { count } => format!("and {count} more"),
    }
}
