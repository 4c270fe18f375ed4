//! Figures of single guards, in the words of `status`. A session without such a
//! guard does not have them, and shows nothing in their place.

use jackline_engine::Summary;
use jackline_engine::summary::{
    ContextSummary, DirtySummary, LoopsSummary, ProgressSummary, TestsPassing,
};
use jackline_engine::verdict::ContextLevel;

use super::super::status::{
    Circle, circle_before, circles, dirty_bits, iterations, spent, uncounted,
};
use super::text::clean;

/// How a figure is to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tone {
    Bad,
    Warning,
    Plain,
    Good,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) name: &'static str,
    pub(super) text: String,
    pub(super) tone: Tone,
}

impl Part {
    fn new(name: &'static str, text: &str, tone: Tone) -> Self {
        Self { name, text: clean(text), tone }
    }
}

/// How many rows a figure may take.
const ROWS_MAX: usize = 6;

/// How many cells the bar of a context has.
const BAR_CELLS: u64 = 20;

/// From when on a budget is worth a colour, in percent.
const SPENT_PCT: u64 = 80;

/// All figures of a summary, in the order in which they matter.
pub(super) fn parts(summary: &Summary) -> Vec<Part> {
    let mut parts = at_most(budgets(summary));
    parts.extend(at_most(summary.context.iter().filter_map(context).collect()));
    parts.extend(at_most(loops(&summary.loops)));
    parts.extend(progress(&summary.progress));
    parts.extend(tested(summary.dirty_bits));
    parts
}

/// The rows that there is room for, the worst before the others.
fn at_most(mut rows: Vec<Part>) -> Vec<Part> {
    rows.sort_by_key(|row| row.tone);
    let more = rows.len().saturating_sub(ROWS_MAX);
    rows.truncate(ROWS_MAX);
    if let Some(last) = rows.last().filter(|_| more > 0) {
        let text = format!("{more} more; `jackline status` shows them");
        rows.push(Part::new(last.name, &text, Tone::Plain));
    }
    rows
}

/// What is spent of what, and what can't be counted.
fn budgets(summary: &Summary) -> Vec<Part> {
    let each = summary.budgets.iter().map(|budget| {
        let (amount, without) = spent(budget);
        let tone = match budget.used.saturating_mul(100) / budget.max.max(1) {
            100.. => Tone::Bad,
            SPENT_PCT.. => Tone::Warning,
            _ if without.is_some() => Tone::Warning,
            _ => Tone::Plain,
        };
        let words: Vec<String> = [Some(amount), without].into_iter().flatten().collect();
        Part::new("budget", &words.join(" "), tone)
    });
    let unknown = summary.usage.unknown;
    let uncounted = (unknown > 0).then(|| Part::new("budget", &uncounted(unknown), Tone::Warning));
    each.chain(uncounted).collect()
}

/// How full the context of an actor is.
fn context(context: &ContextSummary) -> Option<Part> {
    let fill = match (context.pct, context.used) {
        (Some(pct), _) => format!("{} {pct} %", bar(pct)),
        (None, Some(used)) => format!("{used} tokens of a window that nobody knows"),
        (None, None) => return None,
    };
    let (level, tone) = match context.level {
        ContextLevel::Unknown => ("", Tone::Plain),
        ContextLevel::Ok => ("ok", Tone::Good),
        ContextLevel::Warn => ("warn", Tone::Warning),
        ContextLevel::Compact => ("compact", Tone::Warning),
        ContextLevel::Block => ("block", Tone::Bad),
    };
    let guess = if context.estimated { "estimated" } else { "" };
    let actor = if context.actor.is_main() { "" } else { context.actor.as_str() };
    let words = [fill.as_str(), level, guess, actor];
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    Some(Part::new("context", &words.join(", "), tone))
}

fn bar(pct: u64) -> String {
    let full = usize::try_from(pct.min(100) * BAR_CELLS / 100).unwrap_or_default();
    let empty = usize::try_from(BAR_CELLS).unwrap_or_default().saturating_sub(full);
    format!("{}{}", "█".repeat(full), "░".repeat(empty))
}

/// Who goes in circles, or is refused the same again; else who did last.
fn loops(loops: &LoopsSummary) -> Vec<Part> {
    let tone = |circle: &Circle| if circle.is_bad { Tone::Bad } else { Tone::Warning };
    let now = circles(loops);
    let mut rows: Vec<Part> =
        now.iter().map(|circle| Part::new("loop", &circle.text, tone(circle))).collect();
    if rows.is_empty() {
        let before = circle_before(loops);
        rows.extend(before.map(|circle| Part::new("loop", &circle.text, Tone::Plain)));
    }
    rows
}

/// How iterations went.
fn progress(progress: &ProgressSummary) -> Option<Part> {
    if progress.iteration_count == 0 {
        return None;
    }
    let tone = match (progress.consecutive_failures, progress.max_consecutive_failures) {
        (0, _) => Tone::Plain,
        (failures, Some(most)) if failures >= most => Tone::Bad,
        _ => Tone::Warning,
    };
    Some(Part::new("iterations", &iterations(progress), tone))
}

/// Whether what was changed was tested.
fn tested(bits: DirtySummary) -> Option<Part> {
    let tone = match (bits.tests_run, bits.tests_passing) {
        (true, TestsPassing::Yes) => Tone::Good,
        (true, TestsPassing::No) => Tone::Bad,
        (true, TestsPassing::Unknown) => Tone::Warning,
        (false, _) if bits.code_modified && !bits.skipped => Tone::Warning,
        (false, _) => Tone::Plain,
    };
    dirty_bits(bits).map(|text| Part::new("code", &text, tone))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::played::{call, played};
    use super::*;

    fn shown(summary: &Summary) -> Vec<String> {
        let one = |part: Part| format!("{} {:?}: {}", part.name, part.tone, part.text);
        parts(summary).into_iter().map(one).collect()
    }

    fn usage(model: &str, input: u64) -> Value {
        json!({ "event": "usage_reported", "request": format!("r{input}"), "model": model,
                "input": input, "output": 0, "window": 200_000 })
    }

    #[test]
    fn what_a_session_does_not_have_takes_no_row() {
        let summary = played("", &[json!({ "event": "session_started" })]);
        assert_eq!(shown(&summary), Vec::<String>::new());
    }

    #[test]
    fn every_budget_has_its_words_and_the_worst_comes_first() {
        let limits = "limits: { steps: 500, total_tokens: { max: 100, per: turn, soft: true }, \
                      input_tokens: { max: 90, soft: true }, cost_usd: 2.50 }";
        let mut cost = usage("claude-sonnet-4-5", 90);
        cost["cost_micros"] = json!(1_250_000);
        let ls = call("c1", "Bash", &json!({ "command": "ls" }), "ok", "a");
        let events = [vec![cost, usage("mystery-9", 5)], ls].concat();
        assert_eq!(
            shown(&played(limits, &events)),
            [
                "budget Bad: 95 of 90 input tokens, soft",
                "budget Warning: at least 1.25 of 2.50 USD (no price for mystery-9)",
                "budget Warning: 95 of 100 total tokens in this turn, soft",
                "budget Plain: 1 of 500 steps",
            ]
        );
        let unknown = json!({ "event": "usage_reported", "unknown": true });
        assert_eq!(
            shown(&played("", &[unknown])),
            ["budget Warning: 1 answer of the model, whose usage can't be read; more was used \
              than is shown"]
        );
    }

    #[test]
    fn more_budgets_than_there_is_room_for_are_counted() {
        let tools: Vec<String> = (0..9).map(|n| format!("t{n}: 5")).collect();
        let limits = format!("limits: {{ tool_calls: {{ {} }} }}", tools.join(", "));
        let summary = played(&limits, &call("c", "t8", &json!({}), "ok", ""));
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
            shown(&played("context: {}", &events)),
            [
                "context Warning: █████████████████░░░ 85 %, compact, scout",
                "context Plain: 7 tokens of a window that nobody knows, lost",
                "context Good: ████████████░░░░░░░░ 62 %, ok",
            ]
        );
    }

    #[test]
    fn a_loop_is_counted_as_it_rises_and_is_remembered_after_it() {
        let read = |n: u32, file: &str| {
            call(&format!("c{n}"), "Read", &json!({ "file_path": file }), "ok", "text")
        };
        let mut events: Vec<Value> = (0..3).flat_map(|n| read(n, "a.txt")).collect();
        let soft = "loop Warning: repeat 3 times, soft: Read(a.txt)";
        assert_eq!(shown(&played("loops: {}", &events)), [soft]);
        let other = [events.clone(), read(9, "b.txt")].concat();
        let before = "loop Plain: before: repeat 3 times, soft: Read(a.txt)";
        assert_eq!(shown(&played("loops: {}", &other)), [before]);
        events.extend((3..5).flat_map(|n| read(n, "a.txt")));
        let hard = "loop Bad: repeat 5 times, hard: Read(a.txt)";
        assert_eq!(shown(&played("loops: {}", &events)), [hard]);
        for event in &mut events {
            event["actor"] = json!("scout");
        }
        assert_eq!(shown(&played("loops: {}", &events)), [format!("{hard} (scout)")]);
    }

    #[test]
    fn calls_that_are_refused_again_have_their_row() {
        let rule = "loops: {}\nrules: [{ name: no, command: deploy, deny: Never., \
                    examples: { deny: [deploy] } }]";
        let denied = |n: u32| {
            json!({ "event": "tool_proposed", "call": format!("c{n}"), "tool": "Bash",
                    "args": { "command": "deploy now" } })
        };
        let one = [denied(1), denied(2)];
        assert_eq!(
            shown(&played(rule, &one)),
            ["loop Warning: refused 2 times for the same reason"]
        );
    }

    #[test]
    fn iterations_and_tests_have_their_words() {
        let definition = "progress: { max_consecutive_failures: 2 }";
        let write =
            call("c1", "Write", &json!({ "file_path": "a.rs", "content": "x" }), "ok", "done");
        let ended = json!({ "event": "iteration_ended", "tests": { "failed": 2 } });
        let tests = |call_id: &str, status: &str, result: &str| {
            call(call_id, "Bash", &json!({ "command": "cargo test" }), status, result)
        };
        let failed =
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out";
        let passed = "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";
        let mut events = write;
        assert_eq!(
            shown(&played(definition, &events)),
            ["code Warning: changed, not tested since"]
        );
        events.extend(tests("c2", "error", failed));
        assert_eq!(shown(&played(definition, &events)), ["code Bad: changed, tests fail"]);
        let good = [events.clone(), tests("c3", "ok", passed)].concat();
        assert_eq!(shown(&played(definition, &good)), ["code Good: changed, tests pass"]);
        let silent = [events.clone(), tests("c3", "ok", "")].concat();
        let rows = shown(&played(definition, &silent));
        assert!(rows.len() == 1 && rows[0].starts_with("code "), "{rows:?}");
        events.push(ended.clone());
        let one = "iterations Warning: 1, the last 1 of 2 failed: tests failed after a change";
        assert_eq!(shown(&played(definition, &events)), [one, "code Bad: changed, tests fail"]);
        events.push(ended);
        let rows = shown(&played(definition, &events));
        assert!(rows[0].starts_with("iterations Bad: 2, the last 2 of 2 failed: "), "{rows:?}");
    }

    /// Names come from outside, and a terminal acts on nothing of them.
    #[test]
    fn a_hostile_name_is_shown_and_does_nothing() {
        let hostile = json!({ "event": "usage_reported", "model": "a\u{1b}[2J\u{202e}b", "input": 5,
                              "output": 0 });
        let rows = shown(&played("limits: { cost_usd: 1 }", &[hostile]));
        assert_eq!(rows, ["budget Warning: at least 0.00 of 1.00 USD (no price for a [2J b)"]);
    }
}
