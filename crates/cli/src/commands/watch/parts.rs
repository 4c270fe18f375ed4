//! Figures of single guards, as `status --json` names them. A session without
//! such a guard does not have them, and shows nothing in their place.

use serde_json::Value;

use super::text::clean;

/// How a figure is to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Good,
    Warning,
    Bad,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) name: &'static str,
    pub(super) text: String,
    pub(super) tone: Tone,
}

/// How many rows a figure may take.
const ROWS_MAX: usize = 6;

/// How many cells the bar of a context has.
const BAR_CELLS: u64 = 20;

/// From when on a budget is worth a colour, in percent.
const SPENT_PCT: u64 = 80;

/// All figures of a summary, in the order in which they matter.
pub(super) fn parts(summary: &Value) -> Vec<Part> {
    let of = |name| summary.get(name).filter(|value| !value.is_null());
    let mut parts = budgets(of("budgets"));
    parts.extend(context(of("context")));
    parts.extend(loops(of("loops")));
    parts.extend(progress(of("progress")));
    parts.extend(dirty_bits(of("dirty_bits")));
    parts
}

/// What is spent of what: `{dimension, used, max, per, soft}` each.
fn budgets(value: Option<&Value>) -> Vec<Part> {
    let each = entries(value, "dimension").filter_map(|(dimension, budget)| {
        let used = number(budget, "used")?;
        let per = match budget.get("per").and_then(Value::as_str) {
            None | Some("session") => String::new(),
            Some(per) => format!(" in this {}", clean(per)),
        };
        let soft = budget.get("soft").and_then(Value::as_bool) == Some(true);
        let soft = if soft { ", soft" } else { "" };
        let max = number(budget, "max");
        let of = max.map_or_else(String::new, |max| format!(" of {max}"));
        let tone = match max.map(|max| used.saturating_mul(100) / max.max(1)) {
            Some(100..) => Tone::Bad,
            Some(SPENT_PCT..) => Tone::Warning,
            _ => Tone::Plain,
        };
        let dimension = words(&dimension);
        Some(Part { name: "budget", text: format!("{dimension} {used}{of}{per}{soft}"), tone })
    });
    each.take(ROWS_MAX).collect()
}

/// How full the context of each actor is: `{actor, pct, level, estimated}`.
fn context(value: Option<&Value>) -> Vec<Part> {
    let each = entries(value, "actor").filter_map(|(actor, context)| {
        let level = context.get("level").and_then(Value::as_str).unwrap_or("unknown");
        let pct = number(context, "pct");
        if pct.is_none() && level == "unknown" {
            return None;
        }
        let estimated = context.get("estimated").and_then(Value::as_bool) == Some(true);
        let tone = match level {
            "unknown" => Tone::Plain,
            "ok" => Tone::Good,
            "block" => Tone::Bad,
            _ => Tone::Warning,
        };
        let mut text = pct.map_or_else(String::new, |pct| format!("{} {pct} %, ", bar(pct)));
        text.push_str(&clean(level));
        let guess = if estimated { "estimated" } else { "" };
        let actor = if actor == "main" { String::new() } else { words(&actor) };
        for word in [guess, &actor].into_iter().filter(|word| !word.is_empty()) {
            text.push_str(", ");
            text.push_str(word);
        }
        Some(Part { name: "context", text, tone })
    });
    each.take(ROWS_MAX).collect()
}

fn bar(pct: u64) -> String {
    let full = usize::try_from(pct.min(100) * BAR_CELLS / 100).unwrap_or_default();
    let empty = usize::try_from(BAR_CELLS).unwrap_or_default().saturating_sub(full);
    format!("{}{}", "█".repeat(full), "░".repeat(empty))
}

/// What goes in circles: `{actor, level, rule, count, signature}` each.
fn loops(value: Option<&Value>) -> Vec<Part> {
    let each = entries(value, "actor").filter_map(|(actor, circle)| {
        let count = number(circle, "count")?;
        let said = |key| circle.get(key).and_then(text_of).filter(|text| !text.is_empty());
        let rule = said("rule").unwrap_or_else(|| "repetition".to_owned());
        let mut text = format!("{} {count} times", words(&rule));
        let level = said("level").map(|level| format!(", level {}", clean(&level)));
        let signature = said("signature").map(|signature| format!(": {}", clean(&signature)));
        let other = !actor.is_empty() && actor != "main";
        let actor = other.then(|| format!(" ({})", clean(&actor)));
        text.extend([level, signature, actor].into_iter().flatten());
        let calm = matches!(said("level").as_deref(), None | Some("0" | "none"));
        let tone = if calm { Tone::Plain } else { Tone::Warning };
        Some(Part { name: "loop", text, tone })
    });
    each.take(ROWS_MAX).collect()
}

/// Rounds and failures: `{iteration_count, consecutive_failures, max_consecutive_failures}`.
fn progress(value: Option<&Value>) -> Option<Part> {
    let value = value?;
    let rounds = number(value, "iteration_count");
    let failures = number(value, "consecutive_failures");
    if rounds.is_none() && failures.is_none() {
        return None;
    }
    let max = number(value, "max_consecutive_failures");
    let rounds = rounds.map(|rounds| count(rounds, "round"));
    let of = max.map_or_else(String::new, |max| format!(" of {max}"));
    let failed = failures.map(|failures| format!("{} in a row{of}", count(failures, "failure")));
    let tone = match (failures.unwrap_or(0), max) {
        (0, _) => Tone::Plain,
        (failures, Some(max)) if failures >= max => Tone::Bad,
        _ => Tone::Warning,
    };
    let text: Vec<String> = rounds.into_iter().chain(failed).collect();
    Some(Part { name: "progress", text: text.join(", "), tone })
}

/// What is left to do for the work at hand: `{code_modified, tests_run,
/// tests_passing, docs_updated}`.
fn dirty_bits(value: Option<&Value>) -> Option<Part> {
    let value = value?;
    let bit = |key| value.get(key).and_then(Value::as_bool);
    let changed = bit("code_modified")?;
    if !changed {
        return Some(Part { name: "work", text: "no code changed".to_owned(), tone: Tone::Plain });
    }
    let tests = match (bit("tests_run"), bit("tests_passing")) {
        (Some(true), Some(true)) => Some(("tests pass", Tone::Good)),
        (Some(true), Some(false)) => Some(("tests fail", Tone::Bad)),
        (Some(true), None) => Some(("tests were run", Tone::Plain)),
        (Some(false), _) => Some(("tests not run since", Tone::Warning)),
        (None, _) => None,
    };
    let docs = bit("docs_updated")
        .map(|updated| if updated { "docs updated" } else { "docs not updated" });
    let words = ["code changed"].into_iter().chain(tests.map(|(words, _)| words)).chain(docs);
    let tone = tests.map_or(Tone::Plain, |(_, tone)| tone);
    Some(Part { name: "work", text: words.collect::<Vec<_>>().join(", "), tone })
}

/// The entries of a list, of an object by their keys, or of one that stands
/// alone; each with what it is about.
fn entries<'a>(
    value: Option<&'a Value>,
    about: &'a str,
) -> Box<dyn Iterator<Item = (String, &'a Value)> + 'a> {
    let name = move |entry: &Value| entry.get(about).and_then(text_of).unwrap_or_default();
    match value {
        Some(Value::Array(list)) => Box::new(list.iter().map(move |entry| (name(entry), entry))),
        Some(alone @ Value::Object(fields)) => {
            if fields.contains_key(about) || !fields.values().all(Value::is_object) {
                return Box::new(std::iter::once((name(alone), alone)));
            }
            Box::new(fields.iter().map(|(key, entry)| (key.clone(), entry)))
        }
        _ => Box::new(std::iter::empty()),
    }
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn number(value: &Value, key: &str) -> Option<u64> {
    value.get(key).and_then(Value::as_u64)
}

fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A name of the wire as people write it.
fn words(name: &str) -> String {
    clean(name).replace('_', " ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(summary: &Value) -> Vec<String> {
        let one = |part: Part| format!("{} {:?}: {}", part.name, part.tone, part.text);
        parts(summary).into_iter().map(one).collect()
    }

    #[test]
    fn what_a_session_does_not_have_takes_no_row() {
        assert_eq!(shown(&json!({})), Vec::<String>::new());
        let empty = json!({ "budgets": [], "context": null, "loops": {}, "progress": {} });
        assert_eq!(shown(&empty), Vec::<String>::new());
    }

    #[test]
    fn every_figure_has_its_words() {
        let summary = json!({
            "budgets": [
                { "dimension": "steps", "used": 41, "max": 500, "per": "session", "soft": false },
                { "dimension": "total_tokens", "used": 90, "max": 100, "per": "turn", "soft": true },
                { "dimension": "cost_micros", "used": 7, "max": 7 },
            ],
            "context": [
                { "actor": "main", "pct": 62, "level": "ok", "estimated": false },
                { "actor": "helper", "pct": 85, "level": "compact", "estimated": true },
            ],
            "loops": [
                { "actor": "main", "level": 2, "rule": "same_call", "count": 3, "signature": "Bash npm test" },
            ],
            "progress": { "iteration_count": 4, "consecutive_failures": 1, "max_consecutive_failures": 5 },
            "dirty_bits": { "code_modified": true, "tests_run": true, "tests_passing": false, "docs_updated": false },
        });
        assert_eq!(
            shown(&summary),
            [
                "budget Plain: steps 41 of 500",
                "budget Warning: total tokens 90 of 100 in this turn, soft",
                "budget Bad: cost micros 7 of 7",
                "context Good: ████████████░░░░░░░░ 62 %, ok",
                "context Warning: █████████████████░░░ 85 %, compact, estimated, helper",
                "loop Warning: same call 3 times, level 2: Bash npm test",
                "progress Warning: 4 rounds, 1 failure in a row of 5",
                "work Bad: code changed, tests fail, docs not updated",
            ]
        );
    }

    #[test]
    fn one_entry_may_stand_alone_or_under_its_name() {
        let alone = json!({ "context": { "actor": "main", "pct": 97, "level": "block" } });
        assert_eq!(shown(&alone), ["context Bad: ███████████████████░ 97 %, block"]);
        let named = json!({ "budgets": { "steps": { "used": 1, "max": 2 } } });
        assert_eq!(shown(&named), ["budget Plain: steps 1 of 2"]);
    }

    #[test]
    fn an_odd_figure_is_left_out_and_nothing_breaks() {
        let odd = json!({
            "budgets": [1, "x", { "dimension": "steps" }, { "used": -1 }],
            "context": "full", "loops": [null], "progress": 3, "dirty_bits": { "code_modified": 1 },
        });
        assert_eq!(shown(&odd), Vec::<String>::new());
        let hostile =
            json!({ "loops": [{ "count": 2, "rule": "a\u{1b}[2J", "signature": "b\nc" }] });
        assert_eq!(shown(&hostile), ["loop Plain: a [2J 2 times: b c"]);
    }
}
