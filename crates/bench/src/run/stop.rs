//! Measures how soon a command and its descendants are gone after a person stops the run.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::REQUIRED_FILE;
use crate::BenchError;
use crate::limits::Row;
use crate::report::{BenchReport, median};

const ROUNDS: u32 = 20;

/// The longest wait for each step.
const WAIT_MAX: Duration = Duration::from_secs(20);

pub(super) fn run(jackline: &Path, report: &mut BenchReport) -> Result<(), BenchError> {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        times.push(measure_stop(jackline)?);
    }
    let worst = times.iter().copied().fold(0.0, f64::max);
    let context = format!("median {:.0} ms, worst of {ROUNDS}", median(times));
    report.add(Row("run: STOP to the last descendant"), worst, context);
    Ok(())
}

/// Stops a run whose command has a descendant in another session. Returns the milliseconds until
/// both are gone.
fn measure_stop(jackline: &Path) -> Result<f64, BenchError> {
    let directory = tempfile::tempdir()?;
    let root = directory.path().canonicalize()?;
    let work = root.join("work");
    fs::create_dir_all(work.join(".jackline"))?;
    let line = "setsid sleep 300 & touch began; sleep 300; touch late";
    let script = format!(
        "steps:\n  - calls: [{{ tool: shell, args: {{ command: '{line}' }} }}]\nrepeat: true\n"
    );
    fs::write(root.join("script.yaml"), script)?;
    let task = "prompt: wait\ndefinition: jackline.yaml\nmodel: { script: script.yaml }\n";
    fs::write(root.join("task.yaml"), task)?;
    let definition =
        format!("version: 1\nname: bench/stop\ncompletion: {{ files: [{REQUIRED_FILE}] }}\n");
    fs::write(root.join("jackline.yaml"), definition)?;
    let mut child = Command::new(jackline)
        .args(["run", "--json", "--scripted"])
        .arg(root.join("task.yaml"))
        .current_dir(&work)
        .env("JACKLINE_HOME", root.join("home"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()?;
    let measured = wait_until("the command", || work.join("began").exists()).and_then(|_| {
        fs::write(work.join(".jackline/STOP"), "")?;
        // The supervisor has the same working directory, but is not a descendant of the command.
        let supervisor = child.id();
        wait_until("the end of the command", || !is_any_process_in(&work, supervisor))
    });
    if measured.is_err() {
        let _ = child.kill();
    }
    child.wait()?;
    if work.join("late").exists() {
        return Err("the command continued after STOP".into());
    }
    Ok(measured?.as_secs_f64() * 1e3)
}

fn wait_until(what: &str, condition: impl Fn() -> bool) -> Result<Duration, BenchError> {
    let start = Instant::now();
    while !condition() {
        if start.elapsed() > WAIT_MAX {
            return Err(format!("timeout while waiting for {what}").into());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(start.elapsed())
}

/// Whether any process except one works in a directory.
fn is_any_process_in(directory: &Path, except: u32) -> bool {
    let Ok(all) = fs::read_dir("/proc") else { return true };
    let except = except.to_string();
    let mut others = all.flatten().filter(|entry| entry.file_name().to_str() != Some(&except));
    others.any(|entry| fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == directory))
}
