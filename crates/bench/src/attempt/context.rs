//! What it takes to keep what programs remember, so that it can be put back.

use std::hint::black_box;
use std::time::Instant;

use jackline_task::Contexts;
use serde_json::{Map, Value};

use crate::limits::Row;
use crate::report::{Report, median};

const ROUNDS: usize = 1000;

/// How much is remembered, in parts of a megabyte.
const PARTS: usize = 10;

pub(super) fn run(report: &mut Report) {
    let mut contexts = Contexts::default();
    let remembered: Map<String, Value> =
        (0..PARTS).map(|part| (format!("part{part}"), "x".repeat(1 << 20).into())).collect();
    contexts.remember("bench", remembered);
    let mut kept = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let snapshot = black_box(contexts.clone());
        kept.push(start.elapsed().as_secs_f64() * 1e6);
        contexts = snapshot;
    }
    let context = format!("of {PARTS} MiB; median of {ROUNDS}");
    report.add(Row("attempt: snapshot of a context"), median(kept), context);
}
