//! Measures `jackline hook claude`, one process for each event, as the client starts it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::json;

use crate::BenchError;
use crate::limits::Row;
use crate::process::{self, BLOCKS, ProcessBench};
use crate::report::{BenchReport, median};

/// The definition that `jackline init` writes, with all packs.
const DEFINITION_SOURCE: &str = "version: 1\nextends: [coding-agent]\n";

/// For how many processes the page faults are counted.
const FAULT_ROUNDS: usize = 101;

pub(crate) fn run(jackline: &Path, report: &mut BenchReport) -> Result<(), BenchError> {
    let directory = tempfile::tempdir()?;
    let bench = ProcessBench::new(jackline, directory.path(), DEFINITION_SOURCE)?;
    bench.create_session("short", 10)?;
    bench.create_session("long", 100_000)?;

    let (mut idle, mut short, mut long) = (Vec::new(), Vec::new(), Vec::new());
    let mut waited = Vec::new();
    for _ in 0..BLOCKS {
        idle.push(ProcessBench::cpu_seconds(&mut || bench.run_true())?);
        short.push(ProcessBench::cpu_seconds(&mut || {
            waited.push(run_hook(&bench, "short")?);
            Ok(())
        })?);
        long.push(ProcessBench::cpu_seconds(&mut || run_hook(&bench, "long").map(drop))?);
    }
    let (idle, short, long) = (median(idle), median(short), median(long));
    report.add(
        Row("hook: CPU relative to /bin/true"),
        short / idle,
        format!("{:.2} vs {:.2} ms", short * 1e3, idle * 1e3),
    );
    report.add(
        Row("hook: wall p99"),
        percentile_99(&mut waited),
        format!("of {}; median {:.1} ms", waited.len(), median(waited.clone())),
    );
    report.add(
        Row("hook: CPU at 100,000 events vs at 10"),
        long / short,
        format!("{:.2} vs {:.2} ms", long * 1e3, short * 1e3),
    );
    page_faults(&bench, report)
}

/// Counts the page faults of a hook. They are a part of its CPU time that does not depend on the
/// load of the machine.
fn page_faults(bench: &ProcessBench, report: &mut BenchReport) -> Result<(), BenchError> {
    let (mut hook, mut idle) = (Vec::new(), Vec::new());
    for _ in 0..FAULT_ROUNDS {
        hook.push(process::page_faults(|| run_hook(bench, "short").map(drop))?);
        idle.push(process::page_faults(|| bench.run_true())?);
    }
    let context = format!("median of {FAULT_ROUNDS}; /bin/true {:.0}", median(idle));
    report.add(Row("hook: page faults"), median(hook), context);
    Ok(())
}

/// The milliseconds from the start of a hook to its end.
fn run_hook(bench: &ProcessBench, session: &str) -> Result<f64, BenchError> {
    let payload = bench.input(|number| {
        let payload = json!({
            "session_id": session,
            "transcript_path": format!("/nowhere/{session}.jsonl"),
            "cwd": bench.workspace,
            "permission_mode": "default",
            "hook_event_name": "PreToolUse",
            "tool_name": "Bash",
            "tool_input": {"command": "cargo test --workspace", "description": "Runs the tests"},
            "tool_use_id": format!("toolu_{number}"),
        });
        payload.to_string()
    })?;
    let mut hook = Command::new(&bench.jackline);
    hook.args(["hook", "claude"])
        .current_dir(&bench.workspace)
        .env("JACKLINE_HOME", &bench.home)
        .env("CLAUDE_PROJECT_DIR", &bench.workspace)
        .env("CLAUDE_CODE_ENTRYPOINT", "cli")
        .stdin(payload)
        .stdout(Stdio::piped());
    let start = Instant::now();
    let output = hook.spawn()?.wait_with_output()?;
    let waited = start.elapsed().as_secs_f64() * 1e3;
    if output.status.success() && output.stdout.is_empty() {
        return Ok(waited);
    }
    Err(format!("unexpected answer of the hook: `{}`", String::from_utf8_lossy(&output.stdout))
        .into())
}

fn percentile_99(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() * 99 / 100).copied().unwrap_or(f64::NAN)
}
