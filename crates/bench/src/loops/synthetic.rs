//! Runs that no data set holds: polling, paging, a refused login, noise in
//! results, and cycles of every period.

use std::path::Path;

use serde_json::{Value, json};

use super::{Found, backtest_lines};
use crate::Failure;
use crate::limits::Row;
use crate::report::Report;

/// A run that is made up, and where loops must be found in it.
struct Case {
    name: String,
    steps: Vec<Value>,
    soft: Level,
    hard: Level,
}

/// The call by which a level must have been reached, counted from 1.
enum Level {
    Never,
    By(u64),
    /// Whatever comes.
    Any,
}

impl Level {
    fn is_met(&self, index: Option<u64>) -> bool {
        match (self, index) {
            (Self::Any, _) | (Self::Never, None) => true,
            (Self::By(most), Some(index)) => index < *most,
            (Self::Never, Some(_)) | (Self::By(_), None) => false,
        }
    }

    fn say(&self) -> String {
        match self {
            Self::Never => "never".to_owned(),
            Self::By(call) => format!("by call {call}"),
            Self::Any => "any".to_owned(),
        }
    }
}

pub(super) fn run(jackline: &Path, report: &mut Report) -> Result<(), Failure> {
    let cases = cases();
    let lines: Vec<String> = cases.iter().map(Case::line).collect();
    let found = backtest_lines(jackline, &lines)?;
    if found.len() != cases.len() {
        return Err("not every made-up run came out".into());
    }
    let mut missed = Vec::new();
    for (case, found) in cases.into_iter().zip(found) {
        let Found { soft, hard, .. } = found;
        let met = case.soft.is_met(soft) && case.hard.is_met(hard);
        let call = |index: Option<u64>| {
            index.map_or_else(|| "-".to_owned(), |index| format!("call {}", index + 1))
        };
        let wanted = format!("soft {}, hard {}", case.soft.say(), case.hard.say());
        let context = format!("soft {}, hard {}; wanted: {wanted}", call(soft), call(hard));
        println!("{:<40} {context}", case.name);
        if !met {
            missed.push(case.name);
        }
    }
    report.add(Row("loops: made-up runs missed"), missed.len() as f64, missed.join(", "));
    Ok(())
}

impl Case {
    fn line(&self) -> String {
        json!({"id": self.name, "steps": self.steps}).to_string()
    }
}

fn cases() -> Vec<Case> {
    let quiet = || (Level::Any, Level::Never);
    let mut cases = Vec::new();
    let mut case = |name: &str, (soft, hard): (Level, Level), steps: Vec<Value>| {
        cases.push(Case { name: format!("made up: {name}"), steps, soft, hard });
    };
    case("1,000 polls, changing output", quiet(), each(1000, |n| poll(&format!("{n} % done"))));
    case("50 pages of one listing", (Level::Never, Level::Never), each(50, page));
    case("401 with varying arguments", (Level::Any, Level::By(8)), each(12, refused));
    let status = |n: u64| {
        let result = format!("worker is waiting (pid {})", 4000 + 37 * n);
        step(n, "get_status", &json!({"worker": "a"}), &result, false)
    };
    case("a pid in the output", (Level::By(3), Level::By(5)), each(12, status));
    let time = |n: u64| {
        let result = format!("2026-01-31T12:00:{:02}Z nothing new", n % 60);
        step(n, "get_status", &json!({"worker": "a"}), &result, false)
    };
    case("a time in the output", (Level::By(3), Level::By(5)), each(12, time));
    let same = |n: u64| step(n, "get_status", &json!({"worker": "a"}), "waiting", false);
    case("period 1", (Level::By(3), Level::By(5)), each(12, same));
    for period in 2..=8 {
        let steps = each(period * 4, |n| {
            let item = json!({"item": n % period});
            step(n, "get_item", &item, &format!("item {}", n % period), false)
        });
        case(&format!("period {period}"), (Level::Any, Level::By(period * 3)), steps);
    }
    cases
}

fn each(count: u64, step: impl Fn(u64) -> Value) -> Vec<Value> {
    (0..count).map(step).collect()
}

fn step(turn: u64, tool: &str, args: &Value, result: &str, is_error: bool) -> Value {
    json!({"turn": turn, "tool": tool, "args": args, "result": result, "is_error": is_error})
}

fn poll(result: &str) -> Value {
    json!({"tool": "get_build", "args": {"build": 7}, "result": result, "is_error": false})
}

fn page(n: u64) -> Value {
    let rows: Vec<String> = (0..5).map(|row| format!("file-{}.txt", n * 5 + row)).collect();
    step(n, "list_files", &json!({"path": "/project", "page": n}), &rows.join("\n"), false)
}

fn refused(n: u64) -> Value {
    let query = json!({"query": format!("open issues, part {n}")});
    step(n, "search_issues", &query, "401 Unauthorized: bad credentials", true)
}
