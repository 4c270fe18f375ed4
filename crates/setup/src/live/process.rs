//! A program that is run with an end, and its output.
//!
//! The output goes into files: whoever stays behind and holds a pipe open would
//! be waited for.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::Scratch;
use super::clock::micros;

/// How often the program is looked at.
const TICK: Duration = Duration::from_millis(5);

/// How much of an output is read.
const OUTPUT_BYTES_MAX: u64 = 16 << 20;

/// How a program ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Its exit status; none if it was ended, by us or by a signal.
    pub(crate) code: Option<i32>,
    /// It took longer than it may, and was ended.
    pub(crate) timed_out: bool,
    pub(crate) micros: u64,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a program of a scratch; its process group is gone afterwards.
pub(crate) fn run(command: Command, scratch: &Scratch, allowed: Duration) -> io::Result<Ended> {
    let [stdout, stderr] = ["stdout", "stderr"].map(|name| scratch.root().join(name));
    let began = micros();
    let mut command = command;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(File::create(&stdout)?)
        .stderr(File::create(&stderr)?)
        .spawn()?;
    let allowed = u64::try_from(allowed.as_micros()).unwrap_or(u64::MAX);
    let mut status = child.try_wait()?;
    while status.is_none() && micros().saturating_sub(began) < allowed {
        sleep(TICK);
        status = child.try_wait()?;
    }
    let took = micros().saturating_sub(began);
    // What it started may still be at work.
    let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    scratch.forget_group();
    if status.is_none() {
        let _ = child.wait();
    }
    Ok(Ended {
        code: status.and_then(|status| status.code()),
        timed_out: status.is_none(),
        micros: took,
        stdout: read(&stdout)?,
        stderr: read(&stderr)?,
    })
}

fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str, allowed: Duration) -> Ended {
        let scratch = Scratch::new().unwrap();
        let mut command = scratch.command(Path::new("sh"));
        command.args(["-c", line]);
        run(command, &scratch, allowed).unwrap()
    }

    #[test]
    fn a_program_ends_with_its_status_and_its_output() {
        let ended = shell("echo out; echo err >&2; exit 3", Duration::from_mins(1));
        assert_eq!((ended.code, ended.timed_out), (Some(3), false));
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("out\n", "err\n"));
    }

    #[test]
    fn one_that_does_not_end_is_ended_and_one_that_stays_behind_is_not_waited_for() {
        let ended = shell("echo here; sleep 1000", Duration::from_millis(50));
        assert_eq!((ended.code, ended.timed_out), (None, true));
        assert_eq!(ended.stdout, "here\n");
        let ended = shell("sleep 1000 & echo left", Duration::from_mins(1));
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "left\n"));
    }
}
