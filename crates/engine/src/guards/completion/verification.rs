//! Completion checks by command: the runtime runs them in the background, and a stop asks for their
//! result.
//!
//! A run checks the work that existed when it started. A passed run stays valid until the agent
//! does more work. A failed run is reported, and the check runs again after the agent has acted. If
//! the client reports no calls, the end of the iteration whose stop was refused counts as an
//! action.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::check_problems::{CheckProblems, UndecidedReason};
use super::{CompletionRequirement, unrunnable};
use crate::definition::Definition;
use crate::event::EventKind;
use crate::facts::{Queries, Query, VerificationFact};
use crate::guards::{FoldInput, GuardInput, shorten_for_message};
use crate::reload::match_unchanged;
use crate::state::SessionState;
use crate::verdict::CompletionResult;

/// How many command checks a definition may have.
pub const COMMANDS_MAX: usize = 16;

/// How many characters of a command's output the agent sees.
const OUTPUT_TAIL_CHARS_MAX: usize = 1000;

/// The latest run of each check.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CheckRuns(Vec<CheckRun>);

/// The latest run of a check.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct CheckRun {
    number: u16,
    id: u64,
    /// The work counter when the run started.
    work: u64,
    /// The number of proposed calls when the failure was reported.
    reported: Option<u64>,
}

impl CheckRuns {
    fn find(&self, number: u16) -> Option<CheckRun> {
        self.0.iter().find(|run| run.number == number).copied()
    }
}

/// Returns the id of the run that this event would start.
fn next_run_id(number: u16, seq: u64) -> u64 {
    ((seq + 1) << 8) | u64::from(number.min(255))
}

/// Returns whether a finished run says nothing about the current work.
fn is_outdated(run: CheckRun, fact: &VerificationFact, state: &SessionState) -> bool {
    let worked = run.work != state.work;
    match fact {
        VerificationFact::Running => false,
        VerificationFact::Passed => worked,
        _ => worked || run.reported.is_some_and(|calls| calls != state.invocations.proposed),
    }
}

/// Returns the current run and its result, if the result is known.
fn current_run(number: u16, input: GuardInput<'_>) -> (u64, Option<&VerificationFact>) {
    let facts = &input.facts.verifications;
    let fresh = next_run_id(number, input.state.seq);
    match input.state.runs.find(number) {
        Some(run) => match facts.get(&run.id) {
            Some(fact) if is_outdated(run, fact, input.state) => (fresh, facts.get(&fresh)),
            fact => (run.id, fact),
        },
        None => (fresh, facts.get(&fresh)),
    }
}

pub(super) fn ask_run(
    number: u16,
    line: &str,
    timeout_seconds: u32,
    input: GuardInput<'_>,
    queries: &mut Queries,
) {
    let (run, fact) = current_run(number, input);
    let starts_now = run == next_run_id(number, input.state.seq);
    // An ended session does not wait for a run that would only start now.
    let has_ended = matches!(input.event.kind, EventKind::SessionEnded(_));
    if fact.is_none() && !(starts_now && has_ended) {
        queries.ask(Query::Verification { run, line: line.to_string(), timeout_seconds });
    }
}

pub(super) fn check_run(
    number: u16,
    line: &str,
    trusted: bool,
    input: GuardInput<'_>,
) -> CheckProblems {
    let line = shorten_for_message(line);
    if !trusted {
        let text = format!(
            "The check `{line}` was not run: a person must first run `jackline trust` for this \
             definition."
        );
        return CheckProblems::undecided(UndecidedReason::Untrusted, text);
    }
    let sentence = match current_run(number, input).1 {
        Some(VerificationFact::Passed) => return CheckProblems::default(),
        Some(VerificationFact::Running) => {
            let text =
                format!("The check `{line}` is still running. Wait a moment, then stop again.");
            return CheckProblems::undecided(UndecidedReason::Running, text);
        }
        Some(VerificationFact::Broken { reason }) => {
            let text =
                format!("The guard is broken, not the work: `{line}` can't be run: {reason}.");
            return CheckProblems::undecided(UndecidedReason::Broken, text);
        }
        None => {
            return CheckProblems::undecided(
                UndecidedReason::Broken,
                format!("The check `{line}` was not run."),
            );
        }
        Some(VerificationFact::Failed { exit, tail }) => {
            let why = exit.and_then(|exit| unrunnable::describe_unrunnable(exit.into(), tail));
            if let Some(why) = why {
                let text = format!("The check `{line}` could not be run: {why}.");
                return CheckProblems::undecided(UndecidedReason::Unrunnable, text);
            }
            let how = exit.map_or_else(
                || "was killed by a signal".to_string(),
                |exit| format!("failed with exit status {exit}"),
            );
            format!("The check `{line}` {how}.{}", format_output_tail(tail))
        }
        Some(VerificationFact::TimedOut { tail }) => {
            format!("The check `{line}` timed out and was killed.{}", format_output_tail(tail))
        }
    };
    CheckProblems::failed(sentence)
}

/// Returns the end of a command's output, for a message.
fn format_output_tail(tail: &str) -> String {
    let tail = tail.trim();
    let skipped = tail.chars().count().saturating_sub(OUTPUT_TAIL_CHARS_MAX);
    let end: String = tail.chars().skip(skipped).collect();
    if end.is_empty() { String::new() } else { format!(" Last output:\n{end}") }
}

/// Converts the runs for a reloaded definition. A run is preserved if its command and timeout are
/// unchanged.
pub(crate) fn carry_over(runs: &mut CheckRuns, from: &Definition, to: &Definition) {
    let (old, new) = (verification_commands(from), verification_commands(to));
    let is_same = |(_, old): &(u16, _), (_, new): &(u16, _)| old == new;
    let same = match_unchanged(&old, &new, is_same);
    let carried = new.iter().zip(same).filter_map(|((number, _), at)| {
        let (before, _) = old.get(at?)?;
        Some(CheckRun { number: *number, ..runs.find(*before)? })
    });
    *runs = CheckRuns(carried.collect());
}

/// Returns the commands of a definition by number, each with its timeout.
fn verification_commands(definition: &Definition) -> Vec<(u16, (&str, u32))> {
    fn add<'a>(checker: &'a CompletionRequirement, found: &mut Vec<(u16, (&'a str, u32))>) {
        match checker {
            CompletionRequirement::Command { number, line, timeout_seconds, .. } => {
                found.push((*number, (line, *timeout_seconds)));
            }
            CompletionRequirement::All(parts) | CompletionRequirement::Any(parts) => {
                parts.iter().for_each(|part| add(part, found));
            }
            CompletionRequirement::Files(_)
            | CompletionRequirement::Custom { .. }
            | CompletionRequirement::Clean
            | CompletionRequirement::DocsUpdated => {}
        }
    }
    let mut found = Vec::new();
    definition.completion.iter().for_each(|checker| add(checker, &mut found));
    found
}

/// Records the runs that this event asked about.
pub(super) fn record_runs(state: &mut SessionState, fold: FoldInput<'_>) {
    let record = fold.record;
    // After an allowed stop the turn is over, so the finished checks stay valid.
    let is_refused = state.turn.missing.is_some();
    if is_refused && matches!(record.event.kind, EventKind::IterationEnded(_)) {
        state.work += 1;
    }
    let is_reported =
        matches!(record.verdict.completion, Some(CompletionResult::Incomplete { .. }));
    for (id, fact) in &record.facts.verifications {
        let number = u16::try_from(id & 0xff).unwrap_or(u16::MAX);
        if *id == next_run_id(number, record.seq - 1) {
            state.runs.0.retain(|run| run.number != number);
            if state.runs.0.len() < COMMANDS_MAX {
                state.runs.0.push(CheckRun { number, id: *id, work: state.work, reported: None });
            }
        }
        let failed = !matches!(fact, VerificationFact::Running | VerificationFact::Passed);
        let calls = state.invocations.proposed;
        if let Some(run) = state.runs.0.iter_mut().find(|run| run.id == *id)
            && is_reported
            && failed
            && run.reported.is_none()
        {
            run.reported = Some(calls);
        }
    }
}
