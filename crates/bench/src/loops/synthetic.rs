//! Runs that no data set contains: polling, paging, a refused login, noise in results, and cycles
//! of every period.

use std::path::Path;

use serde_json::{Value, json};

use super::{BacktestResult, backtest_lines};
use crate::BenchError;
use crate::limits::Row;
use crate::report::BenchReport;

/// A made-up run, and where loops must be detected in it.
struct SyntheticRun {
    name: String,
    steps: Vec<Value>,
    soft: ExpectedLevel,
    hard: ExpectedLevel,
    /// Whether the result is printed only if the run is missed.
    is_one_of_many: bool,
}

/// The number of the call, from 1, at which a level must be reached.
enum ExpectedLevel {
    Never,
    By(u64),
    /// Any result is accepted.
    Any,
}

impl ExpectedLevel {
    fn is_met(&self, index: Option<u64>) -> bool {
        match (self, index) {
            (Self::Any, _) | (Self::Never, None) => true,
            (Self::By(most), Some(index)) => index < *most,
            (Self::Never, Some(_)) | (Self::By(_), None) => false,
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Never => "never".to_owned(),
            Self::By(call) => format!("by call {call}"),
            Self::Any => "any".to_owned(),
        }
    }
}

pub(super) fn run(jackline: &Path, report: &mut BenchReport) -> Result<(), BenchError> {
    let mut cases = cases();
    let spread = spread_cases();
    println!("{} runs with five of ten calls alike, in every order", spread.len());
    cases.extend(spread);
    let lines: Vec<String> = cases.iter().map(SyntheticRun::json_line).collect();
    let results = backtest_lines(jackline, &lines)?;
    if results.len() != cases.len() {
        return Err("the backtest did not return every made-up run".into());
    }
    let mut missed = Vec::new();
    for (case, result) in cases.into_iter().zip(results) {
        let BacktestResult { soft, hard, .. } = result;
        let is_met = case.soft.is_met(soft) && case.hard.is_met(hard);
        let call = |index: Option<u64>| {
            index.map_or_else(|| "-".to_owned(), |index| format!("call {}", index + 1))
        };
        let expected = format!("soft {}, hard {}", case.soft.describe(), case.hard.describe());
        let context = format!("soft {}, hard {}; expected: {expected}", call(soft), call(hard));
        if !case.is_one_of_many || !is_met {
            println!("{:<40} {context}", case.name);
        }
        if !is_met {
            missed.push(case.name);
        }
    }
    report.add(Row("loops: made-up runs missed"), missed.len() as f64, missed.join(", "));
    Ok(())
}

impl SyntheticRun {
    fn json_line(&self) -> String {
        json!({"id": self.name, "steps": self.steps}).to_string()
    }
}

fn cases() -> Vec<SyntheticRun> {
    let quiet = || (ExpectedLevel::Any, ExpectedLevel::Never);
    let mut cases = Vec::new();
    let mut case = |name: &str, (soft, hard): (ExpectedLevel, ExpectedLevel), steps: Vec<Value>| {
        let name = format!("made up: {name}");
        cases.push(SyntheticRun { name, steps, soft, hard, is_one_of_many: false });
    };
    case(
        "1,000 polls, changing output",
        quiet(),
        make_steps(1000, |n| poll(&format!("{n} % done"))),
    );
    case(
        "50 pages of one listing",
        (ExpectedLevel::Never, ExpectedLevel::Never),
        make_steps(50, page),
    );
    case(
        "401 with varying arguments",
        (ExpectedLevel::Any, ExpectedLevel::By(8)),
        make_steps(12, refused),
    );
    let status = |n: u64| {
        let result = format!("worker is waiting (pid {})", 4000 + 37 * n);
        step(n, "get_status", &json!({"worker": "a"}), &result, false)
    };
    case(
        "a pid in the output",
        (ExpectedLevel::By(3), ExpectedLevel::By(5)),
        make_steps(12, status),
    );
    let time = |n: u64| {
        let result = format!("2026-01-31T12:00:{:02}Z nothing new", n % 60);
        step(n, "get_status", &json!({"worker": "a"}), &result, false)
    };
    case(
        "a time in the output",
        (ExpectedLevel::By(3), ExpectedLevel::By(5)),
        make_steps(12, time),
    );
    let same = |n: u64| step(n, "get_status", &json!({"worker": "a"}), "waiting", false);
    case("period 1", (ExpectedLevel::By(3), ExpectedLevel::By(5)), make_steps(12, same));
    for period in 2..=8 {
        let steps = make_steps(period * 4, |n| {
            let item = json!({"item": n % period});
            step(n, "get_item", &item, &format!("item {}", n % period), false)
        });
        case(
            &format!("period {period}"),
            (ExpectedLevel::Any, ExpectedLevel::By(period * 3)),
            steps,
        );
    }
    cases
}

/// Runs of ten calls, of which five are the same call with the same result: every order of them,
/// for a tool, a read and a command. The other calls differ.
fn spread_cases() -> Vec<SyntheticRun> {
    let kinds = [("get_status", "worker"), ("Read", "file_path"), ("Bash", "command")];
    let orders = (0..1_u64 << 10).filter(|order| order.count_ones() == 5);
    let runs = orders.flat_map(|order| kinds.map(|kind| (order, kind)));
    let runs = runs.map(|(order, (tool, argument))| {
        let steps = make_steps(10, |n| {
            let is_same = order >> n & 1 == 1;
            let subject = if is_same { "same".to_owned() } else { format!("other-{n}") };
            let result = format!("the state of {subject} is good");
            step(n, tool, &json!({argument: subject}), &result, false)
        });
        SyntheticRun {
            name: format!("made up: five of ten, {tool}, order {order:010b}"),
            steps,
            soft: ExpectedLevel::By(10),
            hard: ExpectedLevel::Any,
            is_one_of_many: true,
        }
    });
    runs.collect()
}

fn make_steps(count: u64, step: impl Fn(u64) -> Value) -> Vec<Value> {
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
