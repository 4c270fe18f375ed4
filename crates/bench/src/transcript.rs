//! The latest usage record of a long session, as a hook looks for it.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use jackline_clients::claude::usage::{Whose, uncounted};
use serde_json::json;

use crate::Failure;
use crate::limits::Row;
use crate::report::{Report, median};

const BYTES: usize = 500 << 20;
const ROUNDS: usize = 200;

pub(crate) fn run(report: &mut Report) -> Result<(), Failure> {
    let place = tempfile::tempdir()?;
    for (row, after) in [
        (Row("transcript: last usage of 500 MB"), 2_000),
        // Not far from the bound beyond which nobody looks.
        (Row("transcript: before a result of 3 MB"), 3 << 20),
    ] {
        let path = place.path().join("transcript.jsonl");
        write(&path, after)?;
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let start = Instant::now();
            // All but the latest record was counted, as it mostly is.
            let found = uncounted(&path, Whose::Main, |usage, _| usage.input != 7);
            times.push(start.elapsed().as_secs_f64() * 1e3);
            if found.len() != 1 {
                return Err("the usage was not found".into());
            }
        }
        let worst = times.iter().copied().fold(0.0, f64::max);
        let context = format!("median of {ROUNDS}; worst {worst:.2} ms");
        report.add(row, median(times), context);
    }
    Ok(())
}

/// Calls and results until it is long enough; the last result has `after` bytes.
fn write(path: &Path, after: usize) -> Result<(), Failure> {
    let mut file = BufWriter::new(File::create(path)?);
    let pair = format!("{}\n{}\n", answer(1), result(100_000));
    for _ in 0..BYTES.div_ceil(pair.len()) {
        file.write_all(pair.as_bytes())?;
    }
    writeln!(file, "{}\n{}", answer(7), result(after))?;
    file.flush()?;
    Ok(())
}

fn answer(input: u64) -> serde_json::Value {
    json!({"isSidechain": false, "message": {"id": format!("msg_{input}"), "model": "claude-x", "role": "assistant",
        "content": [{"type": "tool_use", "id": "toolu_1", "name": "Bash",
            "input": {"command": "cargo test"}}],
        "usage": {"input_tokens": input, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 90_000, "output_tokens": 300}},
        "type": "assistant", "timestamp": "2026-01-31T12:00:00.000Z"})
}

fn result(bytes: usize) -> serde_json::Value {
    json!({"isSidechain": false, "type": "user", "message": {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x".repeat(bytes)}]},
        "timestamp": "2026-01-31T12:00:00.000Z"})
}
