//! The report for people: which calls would have been denied, asked about or stopped.

use std::collections::BTreeMap;

use anstyle::{AnsiColor, Style};
use jackline_analysis::{BacktestOutcome, BacktestStep, Undecidable, violation_source};
use jackline_clients::transcripts::SkippedLines;
use jackline_engine::verdict::{GuardName, SessionStop};
use jackline_engine::{Decision, Violation};
use jackline_runtime::redact_text;

use crate::status_label::StatusLabel;
use crate::terminal::{
    bold, dim, format_count, format_duration, print_line, print_table, sanitize, styled,
};

/// How many example calls are shown for a rule.
const EXAMPLES_MAX: usize = 3;

/// The speed is shown only from this number of calls on, because fewer calls are not meaningful.
const SPEED_OVER_CALLS: u64 = 1000;

/// The maximum length of a shown call.
const EXAMPLE_WIDTH: usize = 100;

/// How many rules are shown.
const RULES_MAX: usize = 20;

/// The counters of a backtest. Their size does not depend on the size of the input.
#[derive(Default)]
pub(super) struct BacktestReport {
    pub(super) sessions: u64,
    agent_sessions: u64,
    calls: u64,
    denied: CallTally,
    asked: CallTally,
    stopped: u64,
    /// Descriptions of the first stops.
    stops: Vec<String>,
    soft: u64,
    hard: u64,
    rules: BTreeMap<String, RuleCounts>,
    undecidable: BTreeMap<Undecidable, u64>,
    undecidable_calls: u64,
    pub(super) skipped: SkippedLines,
    /// The number of faults of the guard itself.
    pub(super) faults: u64,
}

/// A number of calls, and the number of sessions that contain them.
#[derive(Default)]
struct CallTally {
    calls: u64,
    sessions: u64,
}

impl CallTally {
    fn add(&mut self, calls: &[u64]) {
        self.calls += calls.len() as u64;
        self.sessions += u64::from(!calls.is_empty());
    }

    fn merge(&mut self, other: &Self) {
        self.calls += other.calls;
        self.sessions += other.sessions;
    }
}

/// The counters of one rule or guard.
#[derive(Default)]
struct RuleCounts {
    denied: u64,
    asked: u64,
    /// Sessions in which it was the first to find a loop.
    soft: u64,
    hard: u64,
    examples: Vec<String>,
}

impl RuleCounts {
    fn total(&self) -> u64 {
        self.denied + self.asked + self.soft + self.hard
    }
}

/// The loop levels that were already counted in a run. Only the first loop of each level counts.
#[derive(Default)]
pub(super) struct CountedLoopLevels {
    soft: bool,
    hard: bool,
}

impl BacktestReport {
    /// Counts the decision about one event.
    pub(super) fn count_step(
        &mut self,
        session: &str,
        step: &BacktestStep,
        seen: &mut CountedLoopLevels,
    ) {
        for undecidable in &step.undecidable {
            *self.undecidable.entry(undecidable.clone()).or_default() += 1;
        }
        self.undecidable_calls += u64::from(!step.undecidable.is_empty());
        for found in &step.loops {
            let level = if found.hard { &mut seen.hard } else { &mut seen.soft };
            if std::mem::replace(level, true) {
                continue;
            }
            let rule = self.rules.entry(found.rule.clone()).or_default();
            *if found.hard { &mut rule.hard } else { &mut rule.soft } += 1;
            let violation = step.violations.iter().find(|it| it.guard == GuardName::Loops);
            rule.example(|| describe_call(session, step, violation.map(|it| it.message.as_str())));
        }
        if let Some(stop) = &step.stop
            && self.stops.len() < EXAMPLES_MAX
        {
            self.stops.push(describe_stop(session, step, stop));
        }
        if !step.is_proposed {
            return;
        }
        let blocks =
            |violation: &&Violation| violation.enforced && violation.decision >= Decision::Ask;
        for violation in step.violations.iter().filter(blocks) {
            let rule = self.rules.entry(violation_source(violation)).or_default();
            match violation.decision {
                Decision::Ask => rule.asked += 1,
                _ => rule.denied += 1,
            }
            rule.example(|| describe_call(session, step, violation.location.as_deref()));
        }
    }

    /// Counts a finished run.
    pub(super) fn count_run(&mut self, of_agent: bool, outcome: &BacktestOutcome) {
        self.sessions += 1;
        self.agent_sessions += u64::from(of_agent);
        self.calls += outcome.calls;
        self.denied.add(&outcome.denied);
        self.asked.add(&outcome.asked);
        self.stopped += u64::from(outcome.stop.is_some());
        self.soft += u64::from(outcome.soft.is_some());
        self.hard += u64::from(outcome.hard.is_some());
    }

    /// Adds the counters of a later part.
    pub(super) fn merge(&mut self, other: Self) {
        self.sessions += other.sessions;
        self.agent_sessions += other.agent_sessions;
        self.calls += other.calls;
        self.denied.merge(&other.denied);
        self.asked.merge(&other.asked);
        self.stopped += other.stopped;
        let room = EXAMPLES_MAX.saturating_sub(self.stops.len());
        self.stops.extend(other.stops.into_iter().take(room));
        self.soft += other.soft;
        self.hard += other.hard;
        for (name, theirs) in other.rules {
            let ours = self.rules.entry(name).or_default();
            ours.denied += theirs.denied;
            ours.asked += theirs.asked;
            ours.soft += theirs.soft;
            ours.hard += theirs.hard;
            let room = EXAMPLES_MAX.saturating_sub(ours.examples.len());
            ours.examples.extend(theirs.examples.into_iter().take(room));
        }
        for (undecidable, count) in other.undecidable {
            *self.undecidable.entry(undecidable).or_default() += count;
        }
        self.undecidable_calls += other.undecidable_calls;
        self.skipped.add(other.skipped);
        self.faults += other.faults;
    }

    /// Prints the report; `source` is the display name of the definition.
    pub(super) fn show(&self, source: &str, took_ms: u64) {
        let own = match self.agent_sessions {
            0 => String::new(),
            1 => " (1 of a sub-agent)".to_owned(),
            agents => format!(" ({agents} of sub-agents)"),
        };
        print_line(format!(
            "decided on {} with {} in {} under {}, as if enforced",
            bold(format!("{}{own}", format_count(self.sessions, "session"))),
            bold(format_count(self.calls, "call")),
            format_duration(took_ms),
            sanitize(source, 200),
        ));
        let speed = match self.calls.saturating_mul(1000).checked_div(took_ms) {
            Some(speed) if self.calls >= SPEED_OVER_CALLS => format!("; {speed} calls a second"),
            _ => String::new(),
        };
        print_line(dim(format!("nothing was run or written{speed}")));
        print_line("");
        let red = AnsiColor::Red.on_default();
        let yellow = AnsiColor::Yellow.on_default();
        let row = |style, what: &str, (count, unit), more: String| {
            let style = if count > 0 { style } else { Style::new() };
            vec![what.to_owned(), styled(style, format_count(count, unit)), dim(more)]
        };
        let calls = |style, what, tally: &CallTally| {
            let share = share(tally.calls, self.calls);
            let within = format_count(tally.sessions, "session");
            row(style, what, (tally.calls, "call"), format!("{share}, in {within}"))
        };
        let sessions = |style, what, count: u64| {
            row(style, what, (count, "session"), share(count, self.sessions))
        };
        print_table(&[
            calls(red, "would have been denied", &self.denied),
            calls(yellow, "would have waited for you", &self.asked),
            sessions(red, "would have been stopped", self.stopped),
            sessions(yellow, "would have been warned of a loop", self.soft),
            sessions(red, "would have been paused in a loop", self.hard),
        ]);
        self.show_stops();
        self.show_rules();
        self.show_undecidable();
        self.show_skipped();
    }

    fn show_stops(&self) {
        if !self.stops.is_empty() {
            print_line("");
            print_line(bold("stopped"));
            self.stops.iter().for_each(|stop| print_line(format!("  {stop}")));
        }
    }

    fn show_rules(&self) {
        let mut rules: Vec<(&String, &RuleCounts)> = self.rules.iter().collect();
        rules.sort_by_key(|(name, by)| (std::cmp::Reverse(by.total()), *name));
        let more = rules.len().saturating_sub(RULES_MAX);
        for (name, by) in rules.into_iter().take(RULES_MAX) {
            let parts = [
                (by.denied, "denied"),
                (by.asked, "asked"),
                (by.soft, "warned of a loop"),
                (by.hard, "paused in a loop"),
            ];
            let parts: Vec<String> = parts
                .iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, what)| format!("{count} {what}"))
                .collect();
            print_line("");
            print_line(format!("{}  {}", bold(sanitize(name, 80)), parts.join(", ")));
            by.examples.iter().for_each(|example| print_line(format!("  {example}")));
        }
        if more > 0 {
            print_line("");
            print_line(dim(format!(
                "{more} more rules had fewer violations; --json shows the decisions of all runs"
            )));
        }
    }

    fn show_undecidable(&self) {
        if self.undecidable.is_empty() {
            return;
        }
        print_line("");
        print_line(format!(
            "{} {}",
            bold("undecidable from the recording"),
            dim(format!("({}; not counted above)", format_count(self.undecidable_calls, "event")))
        ));
        let rows: Vec<Vec<String>> = self
            .undecidable
            .iter()
            .map(|(one, count)| {
                let why = format!("unknown: {}", one.missing.describe());
                vec![format!("  {}", sanitize(&one.guard, 60)), count.to_string(), dim(why)]
            })
            .collect();
        print_table(&rows);
    }

    fn show_skipped(&self) {
        let SkippedLines { invalid: torn, too_long: long, unexpected: odd } = self.skipped;
        let parts = [(torn, "not JSON"), (long, "too long"), (odd, "in another format")];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        if !parts.is_empty() {
            print_line("");
            print_line(dim(format!("lines skipped: {}", parts.join(", "))));
        }
    }
}

impl RuleCounts {
    fn example(&mut self, of: impl FnOnce() -> String) {
        if self.examples.len() < EXAMPLES_MAX {
            self.examples.push(of());
        }
    }
}

/// One call, short and without secrets; `part` is the relevant part of it.
fn describe_call(session: &str, step: &BacktestStep, part: Option<&str>) -> String {
    let Some(call) = &step.call else { return String::new() };
    let number = || format!("call {}", call.index);
    let part =
        part.map_or_else(number, |part| redact_text(part).unwrap_or_else(|| part.to_owned()));
    let tool = sanitize(call.tool.as_str(), 30);
    format!("{}  {tool}: {}", session_label(session, step), sanitize(&part, EXAMPLE_WIDTH))
}

/// The call at which a session would have been stopped, and the reason.
fn describe_stop(session: &str, step: &BacktestStep, stop: &SessionStop) -> String {
    let (who, label) = (session_label(session, step), StatusLabel::of_stop(stop));
    match &step.call {
        Some(call) => {
            format!("{who}  {}: call {}, {label}", sanitize(call.tool.as_str(), 30), call.index)
        }
        None => format!("{who}  {label}"),
    }
}

/// The date and the session of a call.
fn session_label(session: &str, step: &BacktestStep) -> String {
    let day: String = step.at.map(|at| at.to_string()).unwrap_or_default();
    let day: String = day.chars().take(10).collect();
    let session = redact_text(session).unwrap_or_else(|| session.to_owned());
    let short: String = session.chars().take(if day.is_empty() { 40 } else { 8 }).collect();
    let who = format!("{day} {}", sanitize(&short, 40));
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
