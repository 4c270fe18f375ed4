//! One `jackline hook claude` an event, as the client starts it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::json;

use crate::Failure;
use crate::process::{BLOCKS, Bench};
use crate::report::{Report, median};

/// What `jackline init` puts in force, packs and all.
const SOURCE: &str = "version: 1\nextends: [coding-agent]\n";

pub(crate) fn run(jackline: &Path, report: &mut Report) -> Result<(), Failure> {
    let place = tempfile::tempdir()?;
    let bench = Bench::new(jackline, place.path(), SOURCE)?;
    bench.grow("short", 10)?;
    bench.grow("long", 100_000)?;

    let (mut idle, mut short, mut long) = (Vec::new(), Vec::new(), Vec::new());
    let mut waited = Vec::new();
    for _ in 0..BLOCKS {
        idle.push(Bench::cpu(&mut || bench.idle())?);
        short.push(Bench::cpu(&mut || {
            waited.push(once(&bench, "short")?);
            Ok(())
        })?);
        long.push(Bench::cpu(&mut || once(&bench, "long").map(drop))?);
    }
    let (idle, short, long) = (median(idle), median(short), median(long));
    report.at_most(
        "hook: PreToolUse Bash, coding-agent; CPU",
        short / idle,
        "x",
        3.5,
        format!("of /bin/true; {:.2} vs {:.2} ms", short * 1e3, idle * 1e3),
    );
    report.at_most(
        "  wall p99",
        percentile_99(&mut waited),
        "ms",
        10.0,
        format!("of {}; median {:.1} ms", waited.len(), median(waited.clone())),
    );
    report.at_most(
        "  at 100,000 events vs at 10",
        long / short,
        "x",
        1.2,
        format!("{:.2} vs {:.2} ms", long * 1e3, short * 1e3),
    );
    Ok(())
}

/// Milliseconds from the start of a hook to its end.
fn once(bench: &Bench, session: &str) -> Result<f64, Failure> {
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
    Err(format!("the hook said `{}`", String::from_utf8_lossy(&output.stdout)).into())
}

fn percentile_99(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() * 99 / 100).copied().unwrap_or(f64::NAN)
}
