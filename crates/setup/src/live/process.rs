//! Runs a program with a timeout and reads its output.
//!
//! The output goes into files. With a pipe, we would wait for any process that keeps the pipe open.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::ScratchHome;
use super::clock::micros;

/// How often we check whether the program has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// How many bytes of an output are read.
const OUTPUT_BYTES_MAX: u64 = 16 << 20;

/// The result of a program.
#[derive(Debug)]
pub(crate) struct ProcessResult {
    /// Its exit status; nothing if a signal killed it.
    pub(crate) code: Option<i32>,
    /// Whether it was killed because of the timeout.
    pub(crate) timed_out: bool,
    pub(crate) micros: u64,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a program in a scratch directory, and then kills its process group.
pub(crate) fn run_with_timeout(
    command: Command,
    scratch: &ScratchHome,
    allowed: Duration,
) -> io::Result<ProcessResult> {
    let [stdout, stderr] = ["stdout", "stderr"].map(|name| scratch.root().join(name));
    let start = micros();
    let mut command = command;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(File::create(&stdout)?)
        .stderr(File::create(&stderr)?)
        .spawn()?;
    let allowed = u64::try_from(allowed.as_micros()).unwrap_or(u64::MAX);
    let mut status = child.try_wait()?;
    while status.is_none() && micros().saturating_sub(start) < allowed {
        sleep(POLL_INTERVAL);
        status = child.try_wait()?;
    }
    let took = micros().saturating_sub(start);
    // Processes that it started may still run.
    let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    scratch.forget_group();
    if status.is_none() {
        let _ = child.wait();
    }
    Ok(ProcessResult {
        code: status.and_then(|status| status.code()),
        timed_out: status.is_none(),
        micros: took,
        stdout: read_output(&stdout)?,
        stderr: read_output(&stderr)?,
    })
}

fn read_output(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str, allowed: Duration) -> ProcessResult {
        let scratch = ScratchHome::new().unwrap();
        let mut command = scratch.command(Path::new("sh"));
        command.args(["-c", line]);
        run_with_timeout(command, &scratch, allowed).unwrap()
    }

    #[test]
    fn a_program_ends_with_its_status_and_its_output() {
        let ended = shell("echo out; echo err >&2; exit 3", Duration::from_mins(1));
        assert_eq!((ended.code, ended.timed_out), (Some(3), false));
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("out\n", "err\n"));
    }

    #[test]
    fn a_program_is_killed_at_the_timeout_and_its_children_are_not_waited_for() {
        let ended = shell("echo here; sleep 1000", Duration::from_millis(50));
        assert_eq!((ended.code, ended.timed_out), (None, true));
        assert_eq!(ended.stdout, "here\n");
        let ended = shell("sleep 1000 & echo left", Duration::from_mins(1));
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "left\n"));
    }
}
