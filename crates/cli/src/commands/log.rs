//! `jackline log`: what happened.

use std::collections::VecDeque;

use jackline_engine::event::{
    AdvisorAnswered, AttemptEnded, AttemptStage, AttemptStarted, Control, ModelChanged,
    UsageReported,
};
use jackline_engine::facts::DefinitionFact;
use jackline_engine::verdict::Completion;
use jackline_engine::{
    Arguments, EventKind, FaultKind, Payload, PromptSubmitted, SessionStarted, Status,
    StopProposed, ToolFinished, ToolProposed, Verdict,
};
use jackline_journal::{EventRecord, JournalView, Line, Note, StoreError, parse_record};

use super::select;
use super::status::effect;
use crate::args::LogArgs;
use crate::exit::Exit;
use crate::terminal::{
    ago, bold, dim, fail, open_journal, plain, say, say_json, sessions, style_of, styled, table,
};

/// How many records are listed unless told otherwise.
const LAST: usize = 50;

pub(crate) fn run(args: &LogArgs) -> Exit {
    let found = match sessions().and_then(|(_, s)| select(&s, args.session.as_deref())) {
        Ok(found) => found,
        Err(exit) => return exit,
    };
    let read = open_journal(&found)
        .and_then(|journal| if args.json { raw(&journal, args) } else { rows(&journal, args) });
    match read {
        Ok(()) => Exit::Fine,
        Err(error) => fail(Exit::Broken, format!("{error}; {}", error.remedy())),
    }
}

fn raw(journal: &JournalView, args: &LogArgs) -> Result<(), StoreError> {
    let keep = args.last.unwrap_or(usize::MAX);
    let mut lines = VecDeque::new();
    journal.for_each(|line| {
        let wanted = !args.objections
            || matches!(parse_record(line)?, Line::Event(r) if !r.verdict.violations.is_empty());
        if !wanted {
            return Ok(());
        }
        let text = String::from_utf8_lossy(line).into_owned();
        if keep == usize::MAX {
            say_json(text);
        } else {
            lines.push_back(text);
            if lines.len() > keep {
                lines.pop_front();
            }
        }
        Ok::<(), StoreError>(())
    })?;
    lines.iter().for_each(say_json);
    Ok(())
}

fn rows(journal: &JournalView, args: &LogArgs) -> Result<(), StoreError> {
    let keep = args.last.unwrap_or(LAST);
    let mut records: VecDeque<Box<EventRecord>> = VecDeque::new();
    let mut passed = 0;
    journal.for_each(|line| {
        if let Line::Event(record) = parse_record(line)?
            && !(args.objections && record.verdict.violations.is_empty())
        {
            records.push_back(record);
            if records.len() > keep {
                passed += 1;
                records.pop_front();
            }
        }
        Ok::<(), StoreError>(())
    })?;
    if passed > 0 {
        say(dim(format!("{passed} earlier records; `-n {}` shows them", passed + records.len())));
    }
    if records.is_empty() {
        say("nothing to list");
        return Ok(());
    }
    let mut table_rows = vec![["#", "when", "event", "what", "verdict"].map(bold).to_vec()];
    for record in &records {
        table_rows.push(vec![
            dim(record.seq),
            dim(ago(record.event.at.unwrap_or(record.facts.now.wall))),
            record.event.kind.name().to_owned(),
            plain(&what(&record.event.kind), 40),
            verdict(record),
        ]);
        let about_definition = match &record.facts.definition {
            Some(DefinitionFact::Changed { .. }) => Some(
                "the definition was changed; that applies to the next session, or by `jackline reload`"
                    .to_owned(),
            ),
            Some(DefinitionFact::Missing) => {
                Some("the definition file is gone; what was loaded stays in force".to_owned())
            }
            Some(DefinitionFact::Broken { reason }) => {
                let reason = plain(reason, 200);
                Some(format!(
                    "the definition no longer loads, the last good one is in force: {reason}"
                ))
            }
            Some(DefinitionFact::Same) | None => None,
        };
        let about_off = record.facts.off.as_ref().filter(|_| record.facts.is_off()).map(|off| {
            let who = if off.by.is_empty() { "a person" } else { &off.by };
            format!("the guard was off, by {}: {}", plain(who, 40), plain(&off.why, 90))
        });
        let about_reload = record.as_record().reloads().map(|new| {
            let named = journal.definition(&new.lowered.digest());
            let name = named.map_or_else(|_| "a definition".to_owned(), |it| plain(&it.name, 60));
            format!("from here on under {name} {}", new.checksum)
        });
        let notes = record.notes.iter().map(describe);
        for note in notes.chain(about_definition).chain(about_reload).chain(about_off) {
            table_rows.push(vec![String::new(), String::new(), dim("note"), dim(note)]);
        }
    }
    table(&table_rows);
    Ok(())
}

/// An event in a few words.
pub(super) fn what(kind: &EventKind) -> String {
    match kind {
        EventKind::SessionStarted(SessionStarted { client, .. }) => {
            client.clone().unwrap_or_default()
        }
        EventKind::PromptSubmitted(PromptSubmitted { text, .. }) => {
            text.as_ref().map_or("", Payload::head).to_owned()
        }
        EventKind::ToolProposed(ToolProposed { call, tool, args, .. }) => {
            // Some clients give ids that nobody can tell apart at a glance.
            let call = call.as_ref().filter(|call| call.as_str().len() <= ID_SHOWN_MAX);
            let call = call.map_or_else(String::new, |call| format!(" {call}"));
            format!("{tool}{call} {}", in_short(args))
        }
        EventKind::ToolFinished(ToolFinished { call, status, exit_code, .. }) => {
            let call = call.as_ref().map_or("", |call| call.as_str());
            // A command that came back and failed is not `ok` to anybody who reads.
            let ended = match exit_code.filter(|code| *code != 0) {
                Some(code) if *status == Status::Ok => format!("exit code {code}"),
                _ => status.word().to_owned(),
            };
            format!("{} {ended}", plain(call, ID_SHOWN_MAX))
        }
        EventKind::UsageReported(UsageReported { input, output, .. }) => {
            format!("{input} in, {output} out")
        }
        EventKind::StopProposed(StopProposed { reason, .. }) => reason.clone().unwrap_or_default(),
        EventKind::AttemptStarted(AttemptStarted { attempt })
        | EventKind::AttemptStage(AttemptStage { attempt, .. }) => attempt.to_string(),
        EventKind::AttemptEnded(AttemptEnded { attempt, result }) => {
            format!("{attempt} {}", result.word())
        }
        EventKind::AdvisorAnswered(AdvisorAnswered { model, instruction, error }) => {
            let said = instruction.as_ref().or(error.as_ref()).map_or("", Payload::head);
            match model {
                Some(model) => format!("{model} {said}"),
                None => said.to_owned(),
            }
        }
        EventKind::ModelChanged(ModelChanged { to, reason, .. }) => format!("{to} {reason}"),
        EventKind::Control(Control { action, by, .. }) => {
            let by = by.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
            format!("{}{by}", action.word())
        }
        EventKind::PlanProposed(_)
        | EventKind::OutputProposed(_)
        | EventKind::CompactionFinished(_)
        | EventKind::IterationEnded(_)
        | EventKind::SessionEnded(_) => String::new(),
    }
}

fn verdict(record: &EventRecord) -> String {
    let verdict = &record.verdict;
    let mut parts = vec![styled(style_of(verdict.decision), decided(verdict))];
    parts.extend(remarks(verdict, dim));
    parts.join("  ")
}

/// What was decided, or would have been.
pub(super) fn decided(verdict: &Verdict) -> String {
    let would = if verdict.enforced == Some(false) { "would " } else { "" };
    format!("{would}{}", verdict.decision.word())
}

/// What else a verdict says. `mark` is how what is only on trial looks.
pub(super) fn remarks(verdict: &Verdict, mark: impl Fn(String) -> String) -> Vec<String> {
    let completion = match &verdict.completion {
        None | Some(Completion::Incomplete { .. }) => None,
        Some(Completion::Complete) => Some("complete".to_owned()),
        Some(Completion::Bypassed { .. }) => Some("bypassed, not done".to_owned()),
        Some(Completion::Capped { rounds, .. }) => {
            Some(format!("capped after {rounds} blocks, not done"))
        }
        Some(Completion::Unverified { reason }) => Some(format!("unverified: {reason}")),
    };
    let reasons = verdict.violations.iter().map(|violation| {
        // One that is only observed, beside others that hold.
        let on_trial = !violation.enforced && verdict.enforced == Some(true);
        let would = format!("would {}: ", violation.decision.word());
        let would = if on_trial { mark(would) } else { String::new() };
        format!("{would}{}", plain(&violation.message, 90))
    });
    let stop = verdict.stop.iter().map(ToString::to_string);
    let said = verdict.constraints.iter().map(|it| {
        let observed = if it.enforced { "" } else { " (only observed)" };
        format!("{} {}{observed}", it.id, effect(it))
    });
    let feedback = verdict.feedback.iter().map(|said| plain(&said.summary, 90));
    stop.chain(completion).chain(said).chain(reasons).chain(feedback).collect()
}

/// How long the id of a call may be to be shown.
const ID_SHOWN_MAX: usize = 16;

/// The arguments of a call: its command line, its file, or all of them.
fn in_short(args: &Arguments) -> String {
    let args = match args {
        Arguments::Parsed(args) => args,
        Arguments::Text(text) => return text.head().to_owned(),
    };
    let telling = ["command", "file_path", "path"].iter().find_map(|key| args.get(key)?.as_str());
    telling.map_or_else(|| args.to_string(), ToOwned::to_owned)
}

/// A note in a few words.
pub(super) fn describe(note: &Note) -> String {
    match note {
        Note::Repaired { bytes } => format!("a torn tail of {bytes} bytes was removed"),
        // The guard answered: the person does not know, or the last good file held.
        Note::Fault { kind: FaultKind::Notify | FaultKind::Definition, reason } => {
            plain(reason, 300)
        }
        Note::Fault { reason, .. } => format!("the guard could not answer: {}", plain(reason, 90)),
        Note::Malformed { line, reason } => format!("line {line}: {}", plain(reason, 90)),
        Note::GivenBack { path, kept } => {
            let kept = kept.map_or_else(String::new, |kept| {
                format!("; what was there is kept as blob {kept}")
            });
            format!("`{}` was given back as it was{kept}", plain(path, 90))
        }
        Note::ToolsChanged { tools } => {
            format!("tools are described otherwise than before: {}", plain(&tools.join(", "), 90))
        }
        Note::Dropped { count } => format!("and {count} more"),
    }
}
