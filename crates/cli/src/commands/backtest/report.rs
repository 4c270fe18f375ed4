//! What would have been in the way, for people.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};

use anstyle::AnsiColor;
use jackline_clients::claude::transcript::Passed;
use jackline_engine::{Decision, EventKind, Violation};
use jackline_runtime::{BacktestOutcome, BacktestStep, Undecidable, name_of, redact_text};

use super::files::{File, Found};
use crate::terminal::{bold, dim, duration, plain, say, styled, table};

/// How many calls are shown for a rule.
const EXAMPLES_MAX: usize = 3;

/// How much of a call is shown.
const EXAMPLE_WIDTH: usize = 100;

/// Everything that is counted. It does not grow with the transcripts.
pub(super) struct Report {
    /// What the definition is called.
    source: String,
    pub(super) sessions: u64,
    agents: u64,
    calls: u64,
    denied: Tally,
    asked: Tally,
    by: BTreeMap<String, ByRule>,
    undecidable: BTreeMap<Undecidable, u64>,
    undecidable_calls: u64,
    passed: Passed,
    /// How often the guard itself broke.
    pub(super) faults: u64,
}

/// How many calls, in how many sessions.
#[derive(Default)]
struct Tally {
    calls: u64,
    sessions: u64,
}

impl Tally {
    fn add(&mut self, calls: &[u64]) {
        self.calls += calls.len() as u64;
        self.sessions += u64::from(!calls.is_empty());
    }
}

/// What one rule or guard would have said.
#[derive(Default)]
struct ByRule {
    denied: u64,
    asked: u64,
    examples: Vec<String>,
}

impl Report {
    pub(super) fn new(source: String) -> Self {
        Self {
            source,
            sessions: 0,
            agents: 0,
            calls: 0,
            denied: Tally::default(),
            asked: Tally::default(),
            by: BTreeMap::new(),
            undecidable: BTreeMap::new(),
            undecidable_calls: 0,
            passed: Passed::default(),
            faults: 0,
        }
    }

    /// Counts what would have been said about one event.
    pub(super) fn step(&mut self, session: &str, step: &BacktestStep) {
        for undecidable in &step.undecidable {
            *self.undecidable.entry(undecidable.clone()).or_default() += 1;
        }
        self.undecidable_calls += u64::from(!step.undecidable.is_empty());
        if step.index.is_none() {
            return;
        }
        let against =
            |objection: &&Violation| objection.enforced && objection.decision >= Decision::Ask;
        for objection in step.objections.iter().filter(against) {
            let rule = self.by.entry(name_of(objection)).or_default();
            match objection.decision {
                Decision::Ask => rule.asked += 1,
                _ => rule.denied += 1,
            }
            if rule.examples.len() < EXAMPLES_MAX {
                rule.examples.push(example(session, step, objection));
            }
        }
    }

    /// Counts a run that has come to its end.
    pub(super) fn run(&mut self, file: &File, outcome: &BacktestOutcome) {
        self.sessions += 1;
        self.agents += u64::from(file.agent().is_some());
        self.calls += outcome.calls;
        self.denied.add(&outcome.denied);
        self.asked.add(&outcome.asked);
    }

    pub(super) fn passed(&mut self, passed: Passed) {
        self.passed.torn += passed.torn;
        self.passed.long += passed.long;
        self.passed.odd += passed.odd;
    }

    pub(super) fn show(&self, took_ms: u64) {
        let own = match self.agents {
            0 => String::new(),
            1 => " (1 of a sub-agent)".to_owned(),
            agents => format!(" ({agents} of sub-agents)"),
        };
        say(format!(
            "{} and {} in {} under {}, as if it had been enforced",
            bold(format!("{}{own}", counted(self.sessions, "session"))),
            bold(counted(self.calls, "call")),
            duration(took_ms),
            plain(&self.source, 200),
        ));
        say(dim("nothing was run, and nothing was written"));
        say("");
        let red = AnsiColor::Red.on_default();
        let yellow = AnsiColor::Yellow.on_default();
        let row = |style, what: &str, tally: &Tally| {
            let style = if tally.calls > 0 { style } else { anstyle::Style::new() };
            let share = share(tally.calls, self.calls);
            let within = counted(tally.sessions, "session");
            vec![
                what.to_owned(),
                styled(style, counted(tally.calls, "call")),
                dim(format!("{share}, in {within}")),
            ]
        };
        table(&[
            row(red, "would have been denied", &self.denied),
            row(yellow, "would have waited for you", &self.asked),
        ]);
        self.show_rules();
        self.show_undecidable();
        self.show_passed();
    }

    fn show_rules(&self) {
        let mut rules: Vec<(&String, &ByRule)> = self.by.iter().collect();
        rules.sort_by_key(|(name, by)| (std::cmp::Reverse(by.denied + by.asked), *name));
        for (name, by) in rules {
            let parts = [(by.denied, "denied"), (by.asked, "asked")];
            let parts: Vec<String> = parts
                .iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, what)| format!("{count} {what}"))
                .collect();
            say("");
            say(format!("{}  {}", bold(plain(name, 80)), parts.join(", ")));
            by.examples.iter().for_each(|example| say(format!("  {example}")));
        }
    }

    fn show_undecidable(&self) {
        if self.undecidable.is_empty() {
            return;
        }
        say("");
        say(format!(
            "{} {}",
            bold("can't be told from a transcript"),
            dim(format!(
                "(of {}; such guards are not counted above)",
                counted(self.undecidable_calls, "event")
            ))
        ));
        let rows: Vec<Vec<String>> = self
            .undecidable
            .iter()
            .map(|(one, count)| {
                let why = format!("not known: {}", one.lacks.describe());
                vec![format!("  {}", plain(&one.guard, 60)), count.to_string(), dim(why)]
            })
            .collect();
        table(&rows);
    }

    fn show_passed(&self) {
        let Passed { torn, long, odd } = self.passed;
        let parts = [(torn, "no JSON"), (long, "too long"), (odd, "of another shape")];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        if !parts.is_empty() {
            say("");
            say(dim(format!("lines passed over: {}", parts.join(", "))));
        }
    }
}

/// One call, short and without secrets.
fn example(session: &str, step: &BacktestStep, objection: &Violation) -> String {
    let EventKind::ToolProposed { tool, .. } = &step.event.kind else { return String::new() };
    let part = objection.location.as_deref().unwrap_or_default();
    let part = redact_text(part).unwrap_or_else(|| part.to_owned());
    let day: String = step.event.at.map(|at| at.to_string()).unwrap_or_default();
    let day: String = day.chars().take(10).collect();
    let session: String = session.chars().take(8).collect();
    let who = dim(format!("{day} {}", plain(&session, 8)));
    format!("{who}  {}: {}", plain(tool.as_str(), 30), plain(&part, EXAMPLE_WIDTH))
}

/// "1 call", "2 calls".
fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// "0.12 %", without floats.
fn share(part: u64, of: u64) -> String {
    let hundredths = part.saturating_mul(10_000).checked_div(of).unwrap_or(0);
    format!("{}.{:02} %", hundredths / 100, hundredths % 100)
}

/// How far it is, on a terminal.
pub(super) struct Progress {
    shown: bool,
    done: u64,
    total: u64,
    /// What was last shown, so that it is only shown when it changes.
    last: Option<u64>,
}

impl Progress {
    pub(super) fn new(found: &Found, as_json: bool) -> Self {
        let total = found.files.iter().map(|file| file.bytes).sum();
        let shown = !as_json && std::io::stderr().is_terminal();
        Self { shown, done: 0, total, last: None }
    }

    /// So many bytes of a file were read.
    pub(super) fn at(&mut self, file: &File, bytes: u64) {
        if !self.shown {
            return;
        }
        let done = self.done + bytes.min(file.bytes);
        let percent = done.saturating_mul(100).checked_div(self.total).unwrap_or(100);
        if self.last != Some(percent) {
            self.last = Some(percent);
            let _ = write!(std::io::stderr(), "\r{percent:3} % of {} MB ", self.total >> 20);
        }
    }

    pub(super) fn done(&mut self, file: &File) {
        self.done += file.bytes;
    }

    pub(super) fn clear(&self) {
        if self.last.is_some() {
            let _ = write!(std::io::stderr(), "\r{:30}\r", "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_down_to_hundredths() {
        let shown =
            [(1, 3), (0, 9), (0, 0), (9, 9), (1, 100_000)].map(|(part, of)| share(part, of));
        assert_eq!(shown, ["33.33 %", "0.00 %", "0.00 %", "100.00 %", "0.00 %"]);
    }
}
