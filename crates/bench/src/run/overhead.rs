//! What an iteration costs beside its tools and its records.

use std::fs;
use std::path::Path;
use std::time::Instant;

use jackline_model::scripted::{Script, Step};
use jackline_supervisor::Told;
use jackline_workspace::{Limits, Workspace};
use serde_json::{Value, json};

use super::{WANTED, drive, plays, works};
use crate::Failure;
use crate::appends::Appends;
use crate::limits::Row;
use crate::report::{Report, median};

const ITERATIONS: usize = 600;

/// So many at the beginning and at the end are compared.
const EDGE: usize = 100;

/// So many come first, in a run of their own, and are not measured.
const WARM_UP: usize = 10;

/// Records of one iteration: two answers and what they cost, a call and its result, a stop,
/// an end. Counted again in the journal.
const RECORDS: usize = 6;

pub(super) fn run(report: &mut Report) -> Result<(), Failure> {
    let place = tempfile::tempdir()?;
    iterate(place.path(), WARM_UP, &mut |_| {})?;
    let mut beside = Beside::new(place.path())?;
    let measured = tempfile::tempdir()?;
    let mut failed = None;
    iterate(measured.path(), ITERATIONS, &mut |told| {
        if matches!(told, Told::Iteration { .. })
            && let Err(error) = beside.lap()
        {
            failed = Some(error);
        }
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    let records = records(measured.path())? / ITERATIONS;
    if records != RECORDS {
        return Err(format!("an iteration has {records} records, not {RECORDS}").into());
    }
    let Beside { whole, tools, appends, .. } = beside;
    let edge = |at: usize| whole.iter().skip(at).take(EDGE).copied().collect::<Vec<f64>>();
    let (first, last) = (median(edge(0)), median(edge(whole.len().saturating_sub(EDGE))));
    let (whole, tools, appends) = (median(whole), median(tools), median(appends));
    let context = format!(
        "{whole:.2} ms an iteration, its tool {tools:.2}, its {RECORDS} records {appends:.2}; median of {ITERATIONS}"
    );
    let ours = whole - tools - appends;
    report.add(Row("run: supervision of an iteration"), ours, context);
    let context = format!("{last:.2} ms beside {first:.2}, {EDGE} iterations each");
    report.add(Row("run: the last iterations vs the first"), last / first, context);
    Ok(())
}

/// Each iteration writes a file and wants to stop, which it may not until the last.
fn iterate(place: &Path, iterations: usize, hear: &mut dyn FnMut(&Told)) -> Result<(), Failure> {
    let step = |n| [Step::call("write_file", call(n)), Step::say(format!("Done {n}."))];
    let mut steps: Vec<Step> = (0..iterations).flat_map(step).collect();
    steps.extend(works());
    let definition = format!(
        "completion: {{ files: [{WANTED}] }}\ncompletion_cap: {{ blocks: 100000, same: 100000 }}\nlimits: {{ iterations: 100000 }}\n"
    );
    let stop = drive(place, &definition, plays(Script::new(steps)), &[], hear)?;
    if stop == "OBJECTIVE_ACHIEVED" { Ok(()) } else { Err(format!("it ended as {stop}").into()) }
}

fn call(number: usize) -> Value {
    json!({ "path": format!("n{}", number % 10), "content": format!("line {number}\n") })
}

/// The same work by itself, between the iterations, so that a disk that is slow for a while
/// is slow for all.
struct Beside {
    workspace: Workspace,
    store: Appends,
    began: Option<Instant>,
    whole: Vec<f64>,
    tools: Vec<f64>,
    appends: Vec<f64>,
}

impl Beside {
    fn new(place: &Path) -> Result<Self, Failure> {
        let workspace = Workspace::open(place.join("work"), Limits::default())?;
        let store = Appends::like(place)?;
        let (whole, tools, appends) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { workspace, store, began: None, whole, tools, appends })
    }

    /// An iteration is over; its tool and its records are done again.
    fn lap(&mut self) -> Result<(), Failure> {
        if let Some(began) = self.began {
            self.whole.push(millis(began));
        }
        let began = Instant::now();
        self.workspace.call("write_file", &call(self.whole.len()))?;
        self.tools.push(millis(began));
        let began = Instant::now();
        for _ in 0..RECORDS {
            self.store.append()?;
        }
        self.appends.push(millis(began));
        self.began = Some(Instant::now());
        Ok(())
    }
}

fn millis(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1e3
}

/// How many records the journal of the one session has.
fn records(place: &Path) -> Result<usize, Failure> {
    let entry = fs::read_dir(place.join("home/sessions"))?.next().ok_or("no session")??;
    let journal = fs::read(entry.path().join("journal.jsonl"))?;
    Ok(journal.split(|byte| *byte == b'\n').count() - 1)
}
