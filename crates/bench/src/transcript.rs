//! Measures how fast a hook finds the latest usage record of a long session.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use jackline_clients::claude::usage::{TranscriptOwner, uncounted_usage};
use serde_json::json;

use crate::BenchError;
use crate::limits::Row;
use crate::report::{BenchReport, median};

const TRANSCRIPT_BYTES: usize = 500 << 20;
const ROUNDS: usize = 200;

pub(crate) fn run(report: &mut BenchReport) -> Result<(), BenchError> {
    let directory = tempfile::tempdir()?;
    for (row, after) in [
        (Row("transcript: last usage of 500 MB"), 2_000),
        // Just below the limit beyond which the transcript is not read.
        (Row("transcript: before a result of 3 MB"), 3 << 20),
    ] {
        let path = directory.path().join("transcript.jsonl");
        write_transcript(&path, after)?;
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let start = Instant::now();
            // All records except the latest have been counted, as in most hooks.
            let records =
                uncounted_usage(&path, TranscriptOwner::MainAgent, |usage, _| usage.input != 7);
            times.push(start.elapsed().as_secs_f64() * 1e3);
            if records.len() != 1 {
                return Err("the usage was not found".into());
            }
        }
        let worst = times.iter().copied().fold(0.0, f64::max);
        let context = format!("median of {ROUNDS}; worst {worst:.2} ms");
        report.add(row, median(times), context);
    }
    Ok(())
}

/// Writes calls and results until the file is long enough. The last result has `after` bytes.
fn write_transcript(path: &Path, after: usize) -> Result<(), BenchError> {
    let mut file = BufWriter::new(File::create(path)?);
    let pair = format!("{}\n{}\n", answer(1), result(100_000));
    for _ in 0..TRANSCRIPT_BYTES.div_ceil(pair.len()) {
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
