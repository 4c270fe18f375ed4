//! Measures a snapshot of the values that programs remember, which allows a rollback.

use std::hint::black_box;
use std::time::Instant;

use jackline_task::ProgramContexts;
use serde_json::{Map, Value};

use crate::limits::Row;
use crate::report::{BenchReport, median};

const ROUNDS: usize = 1000;

/// The size of the context in MiB.
const PARTS: usize = 10;

pub(super) fn run(report: &mut BenchReport) {
    let mut contexts = ProgramContexts::default();
    let context_values: Map<String, Value> =
        (0..PARTS).map(|part| (format!("part{part}"), "x".repeat(1 << 20).into())).collect();
    contexts.store("bench", context_values);
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let snapshot = black_box(contexts.clone());
        times.push(start.elapsed().as_secs_f64() * 1e6);
        contexts = snapshot;
    }
    let context = format!("of {PARTS} MiB; median of {ROUNDS}");
    report.add(Row("attempt: snapshot of a context"), median(times), context);
}
