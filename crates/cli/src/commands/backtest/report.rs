//! What would have been in the way, for people.

use std::collections::BTreeMap;

use anstyle::{AnsiColor, Style};
use jackline_analysis::{BacktestOutcome, BacktestStep, Undecidable, name_of};
use jackline_clients::transcripts::SkippedLines;
use jackline_engine::verdict::{GuardName, Stop};
use jackline_engine::{Decision, Violation};
use jackline_runtime::redact_text;

use crate::terminal::{bold, counted, dim, duration, plain, say, styled, table};

/// How many calls are shown for a rule.
const EXAMPLES_MAX: usize = 3;

/// A speed that was measured on fewer calls says nothing.
const SPEED_OVER_CALLS: u64 = 1000;

/// How much of a call is shown.
const EXAMPLE_WIDTH: usize = 100;

/// How many rules are shown.
const RULES_MAX: usize = 20;

/// Everything that is counted. It does not grow with what is read.
#[derive(Default)]
pub(super) struct Report {
    pub(super) sessions: u64,
    agents: u64,
    calls: u64,
    denied: Tally,
    asked: Tally,
    stopped: u64,
    /// The first calls at which that would have been.
    stops: Vec<String>,
    soft: u64,
    hard: u64,
    by: BTreeMap<String, ByRule>,
    undecidable: BTreeMap<Undecidable, u64>,
    undecidable_calls: u64,
    pub(super) skipped: SkippedLines,
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

    fn merge(&mut self, other: &Self) {
        self.calls += other.calls;
        self.sessions += other.sessions;
    }
}

/// What one rule or guard would have said.
#[derive(Default)]
struct ByRule {
    denied: u64,
    asked: u64,
    /// Sessions that it found to loop first.
    soft: u64,
    hard: u64,
    examples: Vec<String>,
}

impl ByRule {
    fn total(&self) -> u64 {
        self.denied + self.asked + self.soft + self.hard
    }
}

/// Which loops were found in a run already: the first of each level counts.
#[derive(Default)]
pub(super) struct Seen {
    soft: bool,
    hard: bool,
}

impl Report {
    /// Counts what would have been said about one event.
    pub(super) fn step(&mut self, session: &str, step: &BacktestStep, seen: &mut Seen) {
        for undecidable in &step.undecidable {
            *self.undecidable.entry(undecidable.clone()).or_default() += 1;
        }
        self.undecidable_calls += u64::from(!step.undecidable.is_empty());
        for found in &step.loops {
            let level = if found.hard { &mut seen.hard } else { &mut seen.soft };
            if std::mem::replace(level, true) {
                continue;
            }
            let rule = self.by.entry(found.rule.clone()).or_default();
            *if found.hard { &mut rule.hard } else { &mut rule.soft } += 1;
            let said = step.objections.iter().find(|objection| objection.guard == GuardName::Loops);
            rule.example(|| example(session, step, said.map(|said| said.message.as_str())));
        }
        if let Some(stop) = &step.stop
            && self.stops.len() < EXAMPLES_MAX
        {
            self.stops.push(stopped(session, step, stop));
        }
        if !step.is_proposed {
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
            rule.example(|| example(session, step, objection.location.as_deref()));
        }
    }

    /// Counts a run that has come to its end.
    pub(super) fn run(&mut self, of_agent: bool, outcome: &BacktestOutcome) {
        self.sessions += 1;
        self.agents += u64::from(of_agent);
        self.calls += outcome.calls;
        self.denied.add(&outcome.denied);
        self.asked.add(&outcome.asked);
        self.stopped += u64::from(outcome.stop.is_some());
        self.soft += u64::from(outcome.soft.is_some());
        self.hard += u64::from(outcome.hard.is_some());
    }

    /// Adds what was counted after this.
    pub(super) fn merge(&mut self, other: Self) {
        self.sessions += other.sessions;
        self.agents += other.agents;
        self.calls += other.calls;
        self.denied.merge(&other.denied);
        self.asked.merge(&other.asked);
        self.stopped += other.stopped;
        let room = EXAMPLES_MAX.saturating_sub(self.stops.len());
        self.stops.extend(other.stops.into_iter().take(room));
        self.soft += other.soft;
        self.hard += other.hard;
        for (name, theirs) in other.by {
            let ours = self.by.entry(name).or_default();
            ours.denied += theirs.denied;
            ours.asked += theirs.asked;
            ours.soft += theirs.soft;
            ours.hard += theirs.hard;
            let room = EXAMPLES_MAX.saturating_sub(ours.examples.len());
            ours.examples.extend(theirs.examples.into_iter().take(room));
        }
        for (what, count) in other.undecidable {
            *self.undecidable.entry(what).or_default() += count;
        }
        self.undecidable_calls += other.undecidable_calls;
        self.skipped.add(other.skipped);
        self.faults += other.faults;
    }

    /// Says it all; `source` is what the definition is called.
    pub(super) fn show(&self, source: &str, took_ms: u64) {
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
            plain(source, 200),
        ));
        let speed = match self.calls.saturating_mul(1000).checked_div(took_ms) {
            Some(speed) if self.calls >= SPEED_OVER_CALLS => format!("; {speed} calls a second"),
            _ => String::new(),
        };
        say(dim(format!("nothing was run, and nothing was written{speed}")));
        say("");
        let red = AnsiColor::Red.on_default();
        let yellow = AnsiColor::Yellow.on_default();
        let row = |style, what: &str, (count, unit), more: String| {
            let style = if count > 0 { style } else { Style::new() };
            vec![what.to_owned(), styled(style, counted(count, unit)), dim(more)]
        };
        let calls = |style, what, tally: &Tally| {
            let share = share(tally.calls, self.calls);
            let within = counted(tally.sessions, "session");
            row(style, what, (tally.calls, "call"), format!("{share}, in {within}"))
        };
        let sessions = |style, what, count: u64| {
            row(style, what, (count, "session"), share(count, self.sessions))
        };
        table(&[
            calls(red, "would have been denied", &self.denied),
            calls(yellow, "would have waited for you", &self.asked),
            sessions(red, "would have been stopped", self.stopped),
            sessions(yellow, "would have been told of a loop", self.soft),
            sessions(red, "would have been held in a loop", self.hard),
        ]);
        self.show_stops();
        self.show_rules();
        self.show_undecidable();
        self.show_skipped();
    }

    fn show_stops(&self) {
        if !self.stops.is_empty() {
            say("");
            say(bold("stopped"));
            self.stops.iter().for_each(|stop| say(format!("  {stop}")));
        }
    }

    fn show_rules(&self) {
        let mut rules: Vec<(&String, &ByRule)> = self.by.iter().collect();
        rules.sort_by_key(|(name, by)| (std::cmp::Reverse(by.total()), *name));
        let more = rules.len().saturating_sub(RULES_MAX);
        for (name, by) in rules.into_iter().take(RULES_MAX) {
            let parts = [
                (by.denied, "denied"),
                (by.asked, "asked"),
                (by.soft, "told of a loop"),
                (by.hard, "held in a loop"),
            ];
            let parts: Vec<String> = parts
                .iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, what)| format!("{count} {what}"))
                .collect();
            say("");
            say(format!("{}  {}", bold(plain(name, 80)), parts.join(", ")));
            by.examples.iter().for_each(|example| say(format!("  {example}")));
        }
        if more > 0 {
            say("");
            say(dim(format!("{more} more spoke less often; --json tells them all")));
        }
    }

    fn show_undecidable(&self) {
        if self.undecidable.is_empty() {
            return;
        }
        say("");
        say(format!(
            "{} {}",
            bold("can't be told afterwards"),
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

    fn show_skipped(&self) {
        let SkippedLines { torn, long, odd } = self.skipped;
        let parts = [(torn, "not JSON"), (long, "too long"), (odd, "of another shape")];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        if !parts.is_empty() {
            say("");
            say(dim(format!("lines skipped: {}", parts.join(", "))));
        }
    }
}

impl ByRule {
    fn example(&mut self, of: impl FnOnce() -> String) {
        if self.examples.len() < EXAMPLES_MAX {
            self.examples.push(of());
        }
    }
}

/// One call, short and without secrets; `part` is what matters of it.
fn example(session: &str, step: &BacktestStep, part: Option<&str>) -> String {
    let Some(call) = &step.call else { return String::new() };
    let number = || format!("call {}", call.index);
    let part =
        part.map_or_else(number, |part| redact_text(part).unwrap_or_else(|| part.to_owned()));
    let tool = plain(call.tool.as_str(), 30);
    format!("{}  {tool}: {}", who(session, step), plain(&part, EXAMPLE_WIDTH))
}

/// Where a session would have been stopped.
fn stopped(session: &str, step: &BacktestStep, stop: &Stop) -> String {
    let who = who(session, step);
    match &step.call {
        Some(call) => {
            format!("{who}  {}: call {}, {stop}", plain(call.tool.as_str(), 30), call.index)
        }
        None => format!("{who}  {stop}"),
    }
}

/// When it was, and which session.
fn who(session: &str, step: &BacktestStep) -> String {
    let day: String = step.at.map(|at| at.to_string()).unwrap_or_default();
    let day: String = day.chars().take(10).collect();
    let session = redact_text(session).unwrap_or_else(|| session.to_owned());
    let short: String = session.chars().take(if day.is_empty() { 40 } else { 8 }).collect();
    let who = format!("{day} {}", plain(&short, 40));
    dim(who.trim_start())
}

/// "0.12 %", without floats.
fn share(part: u64, of: u64) -> String {
    let hundredths = part.saturating_mul(10_000).checked_div(of).unwrap_or(0);
    format!("{}.{:02} %", hundredths / 100, hundredths % 100)
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
