//! Checks by command: they run by themselves, and a stop asks how they stand.
//!
//! A run counts for the work it began with. One that passed holds until
//! something was done; one that failed is reported, and begins anew once the
//! agent has acted. An agent whose calls nobody sees has acted once the iteration
//! is over whose stop was refused.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{Checker, Problems, Unsaid};
use crate::definition::Definition;
use crate::event::EventKind;
use crate::facts::{Queries, Query, VerificationFact};
use crate::guards::{Fold, Look, shortened};
use crate::reload::same_as;
use crate::state::State;
use crate::verdict::Completion;

/// How many checks by command a definition may have.
pub const COMMANDS_MAX: usize = 16;

/// How much of what a command said the agent is told.
const TAIL_CHARS_MAX: usize = 1000;

/// The latest runs, one a check.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Runs(Vec<Run>);

/// The latest run of a check.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Run {
    number: u16,
    id: u64,
    /// How much work had been done when it began.
    work: u64,
    /// How many calls there had been when its failure was reported.
    reported: Option<u64>,
}

impl Runs {
    fn find(&self, number: u16) -> Option<Run> {
        self.0.iter().find(|run| run.number == number).copied()
    }
}

/// The run that would begin with this event.
fn next(number: u16, seq: u64) -> u64 {
    ((seq + 1) << 8) | u64::from(number.min(255))
}

/// Whether a run that has come to an end says nothing about the work as it is.
fn is_over(run: Run, fact: &VerificationFact, state: &State) -> bool {
    let worked = run.work != state.work;
    match fact {
        VerificationFact::Running => false,
        VerificationFact::Passed => worked,
        _ => worked || run.reported.is_some_and(|calls| calls != state.invocations.proposed),
    }
}

/// Which run is the one to ask about, and how it stands as far as that is known.
fn current(number: u16, look: Look<'_>) -> (u64, Option<&VerificationFact>) {
    let facts = &look.facts.verifications;
    let fresh = next(number, look.state.seq);
    match look.state.runs.find(number) {
        Some(run) => match facts.get(&run.id) {
            Some(fact) if is_over(run, fact, look.state) => (fresh, facts.get(&fresh)),
            fact => (run.id, fact),
        },
        None => (fresh, facts.get(&fresh)),
    }
}

pub(super) fn ask(
    number: u16,
    line: &str,
    timeout_seconds: u32,
    look: Look<'_>,
    queries: &mut Queries,
) {
    let (run, fact) = current(number, look);
    let begins = run == next(number, look.state.seq);
    // An agent that has left does not wait for a run that would only begin.
    let left = matches!(look.event.kind, EventKind::SessionEnded(_));
    if fact.is_none() && !(begins && left) {
        queries.ask(Query::Verification { run, line: line.to_string(), timeout_seconds });
    }
}

pub(super) fn check(number: u16, line: &str, trusted: bool, look: Look<'_>) -> Problems {
    let line = shortened(line);
    if !trusted {
        let text = format!(
            "The check `{line}` was not run: a person has to say `jackline trust` for this definition first."
        );
        return unsaid(Unsaid::Untrusted, text);
    }
    let said = match current(number, look).1 {
        Some(VerificationFact::Passed) => return Problems::default(),
        Some(VerificationFact::Running) => {
            let text = format!("Verification running: `{line}`. Wait a moment, then stop again.");
            return unsaid(Unsaid::Running, text);
        }
        Some(VerificationFact::Broken { reason }) => {
            let text =
                format!("The guard is broken, not the work: `{line}` can't be run: {reason}.");
            return unsaid(Unsaid::Broken, text);
        }
        None => return unsaid(Unsaid::Broken, format!("The check `{line}` was not run.")),
        Some(VerificationFact::Failed { exit, tail }) => {
            let how = exit.map_or_else(
                || "was ended by a signal".to_string(),
                |exit| format!("failed with exit status {exit}"),
            );
            format!("The check `{line}` {how}.{}", quoted(tail))
        }
        Some(VerificationFact::TimedOut { tail }) => {
            format!("The check `{line}` took too long and was ended.{}", quoted(tail))
        }
    };
    Problems { said: Vec::from([said]), ..Problems::default() }
}

fn unsaid(why: Unsaid, text: String) -> Problems {
    Problems { said: Vec::from([text]), unsaid: Some(why), ..Problems::default() }
}

/// The end of what a command said.
fn quoted(tail: &str) -> String {
    let tail = tail.trim();
    let skipped = tail.chars().count().saturating_sub(TAIL_CHARS_MAX);
    let end: String = tail.chars().skip(skipped).collect();
    if end.is_empty() { String::new() } else { format!(" It ended with:\n{end}") }
}

/// The runs under another definition: those of a command that is still wanted,
/// and may take as long.
pub(crate) fn carry_over(runs: &mut Runs, from: &Definition, to: &Definition) {
    let (old, new) = (commands(from), commands(to));
    let is_same = |(_, old): &(u16, _), (_, new): &(u16, _)| old == new;
    let same = same_as(&old, &new, is_same);
    let carried = new.iter().zip(same).filter_map(|((number, _), at)| {
        let (before, _) = old.get(at?)?;
        Some(Run { number: *number, ..runs.find(*before)? })
    });
    *runs = Runs(carried.collect());
}

/// The commands of a definition, each by its number: its line, and how long it
/// may take.
fn commands(definition: &Definition) -> Vec<(u16, (&str, u32))> {
    fn add<'a>(checker: &'a Checker, found: &mut Vec<(u16, (&'a str, u32))>) {
        match checker {
            Checker::Command { number, line, timeout_seconds, .. } => {
                found.push((*number, (line, *timeout_seconds)));
            }
            Checker::All(parts) | Checker::Any(parts) => {
                parts.iter().for_each(|part| add(part, found));
            }
            Checker::Files(_) | Checker::Custom { .. } | Checker::Clean => {}
        }
    }
    let mut found = Vec::new();
    definition.completion.iter().for_each(|checker| add(checker, &mut found));
    found
}

/// Remembers the runs that this event asked about.
pub(super) fn apply(state: &mut State, fold: Fold<'_>) {
    let record = fold.record;
    // Once a stop was let through nothing more is done, so what was checked holds.
    let is_refused = state.turn.missing.is_some();
    if is_refused && matches!(record.event.kind, EventKind::IterationEnded(_)) {
        state.work += 1;
    }
    let told = matches!(record.verdict.completion, Some(Completion::Incomplete { .. }));
    for (id, fact) in &record.facts.verifications {
        let number = u16::try_from(id & 0xff).unwrap_or(u16::MAX);
        if *id == next(number, record.seq - 1) {
            state.runs.0.retain(|run| run.number != number);
            if state.runs.0.len() < COMMANDS_MAX {
                state.runs.0.push(Run { number, id: *id, work: state.work, reported: None });
            }
        }
        let failed = !matches!(fact, VerificationFact::Running | VerificationFact::Passed);
        let calls = state.invocations.proposed;
        if let Some(run) = state.runs.0.iter_mut().find(|run| run.id == *id)
            && told
            && failed
            && run.reported.is_none()
        {
            run.reported = Some(calls);
        }
    }
}
