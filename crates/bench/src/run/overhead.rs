//! Measures the overhead of an iteration, without its tools and its records.

use std::fs;
use std::path::Path;
use std::time::Instant;

use jackline_model::scripted::{ModelScript, ScriptStep};
use jackline_supervisor::RunEvent;
use jackline_workspace::{Workspace, WorkspaceLimits};
use serde_json::{Value, json};

use super::{REQUIRED_FILE, completing_steps, run_task, scripted_engine};
use crate::BenchError;
use crate::appends::AppendBaseline;
use crate::limits::Row;
use crate::report::{BenchReport, median};

const ITERATIONS: usize = 600;

/// How many iterations at the beginning and at the end are compared.
const EDGE_ITERATIONS: usize = 100;

/// How many iterations come first, in a separate run, without being measured.
const WARM_UP_ITERATIONS: usize = 10;

/// The records of one iteration: two answers and their usage, a call and its result, a stop, an
/// end. A check compares this number with the journal.
const RECORDS_PER_ITERATION: usize = 6;

pub(super) fn run(report: &mut BenchReport) -> Result<(), BenchError> {
    let warm_up = tempfile::tempdir()?;
    run_iterations(warm_up.path(), WARM_UP_ITERATIONS, &mut |_| {})?;
    let mut baseline = BaselineTimes::new(warm_up.path())?;
    let measured = tempfile::tempdir()?;
    let mut failed = None;
    run_iterations(measured.path(), ITERATIONS, &mut |event| {
        if matches!(event, RunEvent::Iteration { .. })
            && let Err(error) = baseline.measure_iteration()
        {
            failed = Some(error);
        }
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    let records = records(measured.path())? / ITERATIONS;
    if records != RECORDS_PER_ITERATION {
        return Err(
            format!("an iteration has {records} records, not {RECORDS_PER_ITERATION}").into()
        );
    }
    let BaselineTimes { whole, tools, appends, .. } = baseline;
    let edge =
        |at: usize| whole.iter().skip(at).take(EDGE_ITERATIONS).copied().collect::<Vec<f64>>();
    let (first, last) =
        (median(edge(0)), median(edge(whole.len().saturating_sub(EDGE_ITERATIONS))));
    let (whole, tools, appends) = (median(whole), median(tools), median(appends));
    let context = format!(
        "{whole:.2} ms per iteration, its tool {tools:.2}, its {RECORDS_PER_ITERATION} records {appends:.2}; median of {ITERATIONS}"
    );
    let ours = whole - tools - appends;
    report.add(Row("run: supervision of an iteration"), ours, context);
    let context = format!("{last:.2} ms vs {first:.2}, {EDGE_ITERATIONS} iterations each");
    report.add(Row("run: the last iterations vs the first"), last / first, context);
    Ok(())
}

/// Each iteration writes a file and wants to stop. The guard denies that until the last iteration.
fn run_iterations(
    place: &Path,
    iterations: usize,
    hear: &mut dyn FnMut(&RunEvent),
) -> Result<(), BenchError> {
    let step = |n| [ScriptStep::call("write_file", call(n)), ScriptStep::say(format!("Done {n}."))];
    let mut steps: Vec<ScriptStep> = (0..iterations).flat_map(step).collect();
    steps.extend(completing_steps());
    let definition = format!(
        "completion: {{ files: [{REQUIRED_FILE}] }}\ncompletion_cap: {{ blocks: 100000, same: 100000 }}\nlimits: {{ iterations: 100000 }}\n"
    );
    let stop = run_task(place, &definition, scripted_engine(ModelScript::new(steps)), &[], hear)?;
    if stop == "OBJECTIVE_ACHIEVED" {
        Ok(())
    } else {
        Err(format!("unexpected stop code: {stop}").into())
    }
}

fn call(number: usize) -> Value {
    json!({ "path": format!("n{}", number % 10), "content": format!("line {number}\n") })
}

/// The same tools and records alone, measured between the iterations, so that a slow period of the
/// disk affects both.
struct BaselineTimes {
    workspace: Workspace,
    store: AppendBaseline,
    began: Option<Instant>,
    whole: Vec<f64>,
    tools: Vec<f64>,
    appends: Vec<f64>,
}

impl BaselineTimes {
    fn new(place: &Path) -> Result<Self, BenchError> {
        let workspace = Workspace::open(place.join("work"), WorkspaceLimits::default())?;
        let store = AppendBaseline::with_records_of(place)?;
        let (whole, tools, appends) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { workspace, store, began: None, whole, tools, appends })
    }

    /// Called at the end of an iteration: measures its tool and its records again.
    fn measure_iteration(&mut self) -> Result<(), BenchError> {
        if let Some(began) = self.began {
            self.whole.push(millis(began));
        }
        let began = Instant::now();
        self.workspace.call("write_file", &call(self.whole.len()))?;
        self.tools.push(millis(began));
        let began = Instant::now();
        for _ in 0..RECORDS_PER_ITERATION {
            self.store.append()?;
        }
        self.appends.push(millis(began));
        self.began = Some(Instant::now());
        Ok(())
    }
}

fn millis(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

/// How many records the journal of the only session has.
fn records(place: &Path) -> Result<usize, BenchError> {
    let entry = fs::read_dir(place.join("home/sessions"))?.next().ok_or("no session")??;
    let journal = fs::read(entry.path().join("journal.jsonl"))?;
    Ok(journal.split(|byte| *byte == b'\n').count() - 1)
}
