//! Rows with the numbers of single guards, in the same words as `status`. A guard that a session
//! does
//! not use has no row.

use jackline_engine::SessionSummary;
use jackline_engine::summary::{
    ContextSummary, DirtySummary, LoopsSummary, ProgressSummary, TestsPassing,
};
use jackline_engine::verdict::ContextLevel;

use super::super::status::{
    LoopStatus, current_loops, describe_budget, describe_iterations, describe_tests,
    describe_unknown_usage, previous_loop,
};
use super::text::clean;

/// How much attention a row needs. The order is the order of display.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RowTone {
    Bad,
    Warning,
    Plain,
    Good,
}

/// A row of the chosen session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StatusRow {
    pub(super) name: &'static str,
    pub(super) text: String,
    pub(super) tone: RowTone,
}

impl StatusRow {
    fn new(name: &'static str, text: &str, tone: RowTone) -> Self {
        Self { name, text: clean(text), tone }
    }
}

/// The maximum number of rows of one kind.
const ROWS_MAX: usize = 6;

/// The width of the bar of a context.
const BAR_CELLS: u64 = 20;

/// From this percentage on, a budget is shown as a warning.
const SPENT_PCT: u64 = 80;

/// All rows of a summary, in the order of importance.
pub(super) fn status_rows(summary: &SessionSummary) -> Vec<StatusRow> {
    let mut parts = at_most(budgets(summary));
    parts.extend(at_most(summary.context.iter().filter_map(context).collect()));
    parts.extend(at_most(loops(&summary.loops)));
    parts.extend(progress(&summary.progress));
    parts.extend(tested(summary.dirty_bits));
    parts
}

/// The first rows, the worst ones first, and a row that counts the others.
fn at_most(mut rows: Vec<StatusRow>) -> Vec<StatusRow> {
    rows.sort_by_key(|row| row.tone);
    let more = rows.len().saturating_sub(ROWS_MAX);
    rows.truncate(ROWS_MAX);
    if let Some(last) = rows.last().filter(|_| more > 0) {
        let text = format!("{more} more; `jackline status` shows them");
        rows.push(StatusRow::new(last.name, &text, RowTone::Plain));
    }
    rows
}

/// The used budgets, and usage that is unknown.
fn budgets(summary: &SessionSummary) -> Vec<StatusRow> {
    let each = summary.budgets.iter().map(|budget| {
        let (amount, remark) = describe_budget(budget);
        let tone = match budget.used.saturating_mul(100) / budget.max.max(1) {
            100.. => RowTone::Bad,
            SPENT_PCT.. => RowTone::Warning,
            _ if remark.is_some() => RowTone::Warning,
            _ => RowTone::Plain,
        };
        let texts: Vec<String> = [Some(amount), remark].into_iter().flatten().collect();
        StatusRow::new("budget", &texts.join(" "), tone)
    });
    let unknown = summary.usage.unknown;
    let uncounted = (unknown > 0)
        .then(|| StatusRow::new("budget", &describe_unknown_usage(unknown), RowTone::Warning));
    each.chain(uncounted).collect()
}

/// How full the context window of an actor is.
fn context(context: &ContextSummary) -> Option<StatusRow> {
    let fill = match (context.pct, context.used) {
        (Some(pct), _) => format!("{} {pct} %", bar(pct)),
        (None, Some(used)) => format!("{used} tokens, window size unknown"),
        (None, None) => return None,
    };
    let (level, tone) = match context.level {
        ContextLevel::Unknown => ("", RowTone::Plain),
        ContextLevel::Ok => ("ok", RowTone::Good),
        ContextLevel::Warn => ("filling up", RowTone::Warning),
        ContextLevel::Compact => ("needs compaction", RowTone::Warning),
        ContextLevel::Block => ("full", RowTone::Bad),
    };
    let estimate = if context.estimated { "estimated" } else { "" };
    let actor = if context.actor.is_main() { "" } else { context.actor.as_str() };
    let texts = [fill.as_str(), level, estimate, actor];
    let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    Some(StatusRow::new("context", &texts.join(", "), tone))
}

fn bar(pct: u64) -> String {
    let full = usize::try_from(pct.min(100) * BAR_CELLS / 100).unwrap_or_default();
    let empty = usize::try_from(BAR_CELLS).unwrap_or_default().saturating_sub(full);
    format!("{}{}", "█".repeat(full), "░".repeat(empty))
}

/// The current loops and repeated refusals, else the latest loop.
fn loops(loops: &LoopsSummary) -> Vec<StatusRow> {
    let tone = |circle: &LoopStatus| if circle.is_bad { RowTone::Bad } else { RowTone::Warning };
    let now = current_loops(loops);
    let mut rows: Vec<StatusRow> =
        now.iter().map(|circle| StatusRow::new("loop", &circle.text, tone(circle))).collect();
    if rows.is_empty() {
        let before = previous_loop(loops);
        rows.extend(before.map(|circle| StatusRow::new("loop", &circle.text, RowTone::Plain)));
    }
    rows
}

/// The iterations and their failures.
fn progress(progress: &ProgressSummary) -> Option<StatusRow> {
    if progress.iteration_count == 0 {
        return None;
    }
    let tone = match (progress.consecutive_failures, progress.max_consecutive_failures) {
        (0, _) => RowTone::Plain,
        (failures, Some(most)) if failures >= most => RowTone::Bad,
        _ => RowTone::Warning,
    };
    Some(StatusRow::new("iterations", &describe_iterations(progress), tone))
}

/// Whether changed code was tested.
fn tested(bits: DirtySummary) -> Option<StatusRow> {
    let tone = match (bits.tests_run, bits.tests_passing) {
        (true, TestsPassing::Yes) => RowTone::Good,
        (true, TestsPassing::No) => RowTone::Bad,
        (true, TestsPassing::Unknown) => RowTone::Warning,
        (false, _) if bits.code_modified && !bits.skipped => RowTone::Warning,
        (false, _) => RowTone::Plain,
    };
    describe_tests(bits).map(|text| StatusRow::new("code", &text, tone))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::test_sessions::{call_events, play_events};
    use super::*;

    fn shown(summary: &SessionSummary) -> Vec<String> {
        let one = |part: StatusRow| format!("{} {:?}: {}", part.name, part.tone, part.text);
        status_rows(summary).into_iter().map(one).collect()
    }

    fn usage(model: &str, input: u64) -> Value {
        json!({ "event": "usage_reported", "request": format!("r{input}"), "model": model,
                "input": input, "output": 0, "window": 200_000 })
    }

    #[test]
    fn an_unused_guard_has_no_row() {
        let summary = play_events("", &[json!({ "event": "session_started" })]);
        assert_eq!(shown(&summary), Vec::<String>::new());
    }

    #[test]
    fn every_budget_has_a_row_and_the_worst_is_first() {
        let limits = "limits: { steps: 500, total_tokens: { max: 100, per: turn, soft: true }, \
                      input_tokens: { max: 90, soft: true }, cost_usd: 2.50 }";
        let mut cost = usage("claude-sonnet-4-5", 90);
        cost["cost_micros"] = json!(1_250_000);
        let ls = call_events("c1", "Bash", &json!({ "command": "ls" }), "ok", "a");
        let events = [vec![cost, usage("mystery-9", 5)], ls].concat();
        assert_eq!(
            shown(&play_events(limits, &events)),
            [
                "budget Bad: 95 of 90 input tokens, soft",
                "budget Warning: at least 1.25 of 2.50 USD (no price for mystery-9)",
                "budget Warning: 95 of 100 total tokens in this turn, soft",
                "budget Plain: 1 of 500 steps",
            ]
        );
        let unknown = json!({ "event": "usage_reported", "unknown": true });
        assert_eq!(
            shown(&play_events("", &[unknown])),
            [
                "budget Warning: 1 answer of the model with unknown usage; more was used than is shown"
            ]
        );
    }

    #[test]
    fn budgets_that_do_not_fit_are_counted() {
        let tools: Vec<String> = (0..9).map(|n| format!("t{n}: 5")).collect();
        let limits = format!("limits: {{ tool_calls: {{ {} }} }}", tools.join(", "));
        let summary = play_events(&limits, &call_events("c", "t8", &json!({}), "ok", ""));
        let rows = shown(&summary);
        assert_eq!(rows.len(), ROWS_MAX + 1, "{rows:#?}");
        assert_eq!(rows[ROWS_MAX], "budget Plain: 3 more; `jackline status` shows them");
    }

    #[test]
    fn every_context_has_its_level() {
        let of = |actor: &str, request: &str, input: u64, window: Option<u64>| {
            json!({ "event": "usage_reported", "actor": actor, "request": request, "input": input,
                    "output": 0, "window": window })
        };
        let events = [
            of("main", "r1", 62_000, Some(100_000)),
            of("scout", "r2", 85_000, Some(100_000)),
            of("lost", "r3", 7, None),
        ];
        assert_eq!(
            shown(&play_events("context: {}", &events)),
            [
                "context Warning: █████████████████░░░ 85 %, needs compaction, scout",
                "context Plain: 7 tokens, window size unknown, lost",
                "context Good: ████████████░░░░░░░░ 62 %, ok",
            ]
        );
    }

    #[test]
    fn a_loop_is_counted_and_remembered_after_its_end() {
        let read = |n: u32, file: &str| {
            call_events(&format!("c{n}"), "Read", &json!({ "file_path": file }), "ok", "text")
        };
        let mut events: Vec<Value> = (0..3).flat_map(|n| read(n, "a.txt")).collect();
        let soft = "loop Warning: repeat 3 times, soft: Read(a.txt)";
        assert_eq!(shown(&play_events("loops: {}", &events)), [soft]);
        let other = [events.clone(), read(9, "b.txt")].concat();
        let before = "loop Plain: before: repeat 3 times, soft: Read(a.txt)";
        assert_eq!(shown(&play_events("loops: {}", &other)), [before]);
        events.extend((3..5).flat_map(|n| read(n, "a.txt")));
        let hard = "loop Bad: repeat 5 times, hard: Read(a.txt)";
        assert_eq!(shown(&play_events("loops: {}", &events)), [hard]);
        for event in &mut events {
            event["actor"] = json!("scout");
        }
        assert_eq!(shown(&play_events("loops: {}", &events)), [format!("{hard} (scout)")]);
    }

    #[test]
    fn repeated_refusals_have_a_row() {
        let rule = "loops: {}\nrules: [{ name: no, command: deploy, deny: Never., \
                    examples: { deny: [deploy] } }]";
        let denied = |n: u32| {
            json!({ "event": "tool_proposed", "call": format!("c{n}"), "tool": "Bash",
                    "args": { "command": "deploy now" } })
        };
        let one = [denied(1), denied(2)];
        assert_eq!(
            shown(&play_events(rule, &one)),
            ["loop Warning: refused 2 times for the same reason"]
        );
    }

    #[test]
    fn iterations_and_tests_have_rows() {
        let definition = "progress: { max_consecutive_failures: 2 }";
        let write = call_events(
            "c1",
            "Write",
            &json!({ "file_path": "a.rs", "content": "x" }),
            "ok",
            "done",
        );
        let ended = json!({ "event": "iteration_ended", "tests": { "failed": 2 } });
        let tests = |call_id: &str, status: &str, result: &str| {
            call_events(call_id, "Bash", &json!({ "command": "cargo test" }), status, result)
        };
        let failed =
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out";
        let passed = "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";
        let mut events = write;
        assert_eq!(
            shown(&play_events(definition, &events)),
            ["code Warning: changed, not tested since"]
        );
        events.extend(tests("c2", "error", failed));
        assert_eq!(shown(&play_events(definition, &events)), ["code Bad: changed, tests fail"]);
        let good = [events.clone(), tests("c3", "ok", passed)].concat();
        assert_eq!(shown(&play_events(definition, &good)), ["code Good: changed, tests pass"]);
        let silent = [events.clone(), tests("c3", "ok", "")].concat();
        let rows = shown(&play_events(definition, &silent));
        assert!(rows.len() == 1 && rows[0].starts_with("code "), "{rows:?}");
        events.push(ended.clone());
        let one = "iterations Warning: 1, the last 1 of 2 failed: tests failed after a change";
        assert_eq!(
            shown(&play_events(definition, &events)),
            [one, "code Bad: changed, tests fail"]
        );
        events.push(ended);
        let rows = shown(&play_events(definition, &events));
        assert!(rows[0].starts_with("iterations Bad: 2, the last 2 of 2 failed: "), "{rows:?}");
    }

    /// Names are untrusted, so they must not contain escape sequences.
    #[test]
    fn a_hostile_name_has_no_effect_on_the_terminal() {
        let hostile = json!({ "event": "usage_reported", "model": "a\u{1b}[2J\u{202e}b", "input": 5,
                              "output": 0 });
        let rows = shown(&play_events("limits: { cost_usd: 1 }", &[hostile]));
        assert_eq!(rows, ["budget Warning: at least 0.00 of 1.00 USD (no price for a [2J b)"]);
    }
}
