//! How soon nothing is left of a command once a person wants the run to end.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::WANTED;
use crate::Failure;
use crate::limits::Row;
use crate::report::{Report, median};

const ROUNDS: u32 = 20;

/// Nobody waits for anything longer than this.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) fn run(jackline: &Path, report: &mut Report) -> Result<(), Failure> {
    let mut taken = Vec::new();
    for _ in 0..ROUNDS {
        taken.push(once(jackline)?);
    }
    let worst = taken.iter().copied().fold(0.0, f64::max);
    let context = format!("median {:.0} ms, worst of {ROUNDS}", median(taken));
    report.add(Row("run: STOP to the last descendant"), worst, context);
    Ok(())
}

/// A command with a descendant that left its session; milliseconds until both are gone.
fn once(jackline: &Path) -> Result<f64, Failure> {
    let place = tempfile::tempdir()?;
    let root = place.path().canonicalize()?;
    let work = root.join("work");
    fs::create_dir_all(work.join(".jackline"))?;
    let line = "setsid sleep 300 & touch began; sleep 300; touch late";
    let script = format!(
        "steps:\n  - calls: [{{ tool: shell, args: {{ command: '{line}' }} }}]\nrepeat: true\n"
    );
    fs::write(root.join("script.yaml"), script)?;
    let task = "prompt: wait\ndefinition: jackline.yaml\nmodel: { script: script.yaml }\n";
    fs::write(root.join("task.yaml"), task)?;
    let definition = format!("version: 1\nname: bench/stop\ncompletion: {{ files: [{WANTED}] }}\n");
    fs::write(root.join("jackline.yaml"), definition)?;
    let mut child = Command::new(jackline)
        .args(["run", "--json", "--scripted"])
        .arg(root.join("task.yaml"))
        .current_dir(&work)
        .env("JACKLINE_HOME", root.join("home"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()?;
    let measured = until("the command", || work.join("began").exists()).and_then(|_| {
        fs::write(work.join(".jackline/STOP"), "")?;
        // Whoever drives the run is in the same directory, and no descendant of the command.
        let driver = child.id();
        until("the end of the command", || !is_anybody_in(&work, driver))
    });
    if measured.is_err() {
        let _ = child.kill();
    }
    child.wait()?;
    if work.join("late").exists() {
        return Err("the command went on".into());
    }
    Ok(measured?.as_secs_f64() * 1e3)
}

fn until(what: &str, holds: impl Fn() -> bool) -> Result<Duration, Failure> {
    let began = Instant::now();
    while !holds() {
        if began.elapsed() > PATIENCE {
            return Err(format!("{what} does not come").into());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(began.elapsed())
}

/// Whether a process works in a directory, besides one.
fn is_anybody_in(directory: &Path, besides: u32) -> bool {
    let Ok(all) = fs::read_dir("/proc") else { return true };
    let besides = besides.to_string();
    let mut others = all.flatten().filter(|entry| entry.file_name().to_str() != Some(&besides));
    others.any(|entry| fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == directory))
}
