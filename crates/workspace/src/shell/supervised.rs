//! A command from the side of the tool: the supervisor is started, heard, and
//! never waited for without an end.

use std::io::{self, Read, Write as _};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;

use super::layers::Layers;
use super::output::Kept;
use super::wire::{Ended, Failure, LINE_BYTES_MAX, PROGRAM, Report, Request};
use super::{CHILD, ShellError, ShellLimits, descendants};
use crate::time::boot_ms;

/// The variable by which programs know that no person runs them.
const AGENT: &str = "AI_AGENT";

/// How long a supervisor may take to say who it is, on a machine that is busy.
const HELLO_MS: u64 = 20_000;

/// How long it may take beyond the limits, to end everything and report.
const REPORT_MS: u64 = 20_000;

/// How much is read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// How often whoever may end a command is asked.
const CANCEL_MS: u64 = 100;

/// How often is read from what is left in the pipe when all have ended. Somebody
/// may have handed it on, so its end is not waited for.
const LAST_READS_MAX: usize = 64;

/// A supervisor at work.
pub(super) struct Supervised {
    supervisor: Child,
    /// Open as long as the command shall run.
    lifeline: Option<ChildStdin>,
    reports: ChildStdout,
    output: ChildStderr,
    heard: Vec<u8>,
    /// Whether whoever may end it has.
    cancelled: bool,
}

/// What was heard of a command.
pub(super) struct Heard {
    pub(super) ended: Ended,
    pub(super) printed_too_much: bool,
    pub(super) cancelled: bool,
}

impl Supervised {
    pub(super) fn start(
        root: &Path,
        limits: &ShellLimits,
        command: &str,
        layers: Option<&Layers>,
    ) -> Result<Self, ShellError> {
        let mut line = serde_json::to_vec(&Request {
            command: command.to_owned(),
            shell: limits.shell.clone(),
            timeout_ms: limits.timeout_ms,
            grace_ms: limits.grace_ms,
            writable: limits.writable.clone(),
            environment: limits.environment.clone(),
            hidden: limits.hidden.clone(),
            confine: limits.confine,
            layers: layers.cloned(),
        })
        .map_err(|error| ShellError::Supervisor(error.into()))?;
        line.push(b'\n');
        let program = match &limits.supervisor {
            Some(program) => program.clone(),
            None => std::env::current_exe().map_err(ShellError::Supervisor)?,
        };
        let mut supervised = Self::spawn(&program, root).map_err(ShellError::Supervisor)?;
        // Only one that is known reads what it is told, and does not block us.
        if !supervised.says_hello() {
            return Err(ShellError::Stranger { program });
        }
        if let Some(lifeline) = &mut supervised.lifeline {
            lifeline.write_all(&line).map_err(ShellError::Supervisor)?;
        }
        Ok(supervised)
    }

    fn spawn(program: &Path, root: &Path) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.arg(CHILD).current_dir(root).env("PWD", root);
        // The command can forget this, its supervisor can't: what asks whether an
        // agent is above it looks there.
        command.env(AGENT, "jackline");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut supervisor = command.spawn()?;
        let pipes = (supervisor.stdin.take(), supervisor.stdout.take(), supervisor.stderr.take());
        let (lifeline, Some(reports), Some(output)) = pipes else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        Ok(Self { supervisor, lifeline, reports, output, heard: Vec::new(), cancelled: false })
    }

    fn says_hello(&mut self) -> bool {
        let until = boot_ms().saturating_add(HELLO_MS);
        while !self.heard.contains(&b'\n') {
            let ready = is_ready(&[PollFd::new(&self.reports, PollFlags::IN)], until);
            if !ready.first().is_some_and(|ready| *ready) || !self.hear() {
                return false;
            }
        }
        let line = self.heard.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
        let known =
            matches!(serde_json::from_slice(line), Ok(Report::Hello(who)) if who == PROGRAM);
        self.heard.drain(..line.len());
        known
    }

    /// Reads from the reports; whether more may come.
    fn hear(&mut self) -> bool {
        let mut chunk = [0; 4096];
        match self.reports.read(&mut chunk) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
            Ok(0) | Err(_) => false,
            Ok(read) => {
                self.heard.extend_from_slice(chunk.get(..read).unwrap_or_default());
                self.heard.len() as u64 <= LINE_BYTES_MAX
            }
        }
    }

    /// Reads what the command prints until its supervisor has reported and is gone.
    pub(super) fn listen(
        mut self,
        limits: &ShellLimits,
        kept: &mut Kept,
    ) -> Result<Heard, ShellError> {
        let allowed = limits.timeout_ms.saturating_add(limits.grace_ms).saturating_add(REPORT_MS);
        let until = boot_ms().saturating_add(allowed);
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut open = true;
        let mut asked_at = boot_ms();
        loop {
            let mut fds = vec![PollFd::new(&self.reports, PollFlags::IN)];
            fds.extend(open.then(|| PollFd::new(&self.output, PollFlags::IN)));
            let wakes = if limits.cancel.is_possible() { asked_at + CANCEL_MS } else { until };
            let ready = is_ready(&fds, wakes.min(until));
            if boot_ms() >= wakes {
                asked_at = boot_ms();
                if self.lifeline.is_some() && limits.cancel.is_over() {
                    self.cancelled = true;
                    self.lifeline = None;
                }
            }
            if ready.get(1).is_some_and(|ready| *ready) {
                open = read(&mut self.output, &mut chunk, kept);
            }
            if kept.bytes_total() > limits.printed_bytes_max {
                self.lifeline = None;
            }
            let reported = ready.first().is_some_and(|ready| *ready);
            if (reported && !self.hear()) || boot_ms() >= until {
                break;
            }
        }
        for _ in 0..LAST_READS_MAX {
            let ready = is_ready(&[PollFd::new(&self.output, PollFlags::IN)], 0);
            let there = open && ready.first().is_some_and(|ready| *ready);
            if !there || !read(&mut self.output, &mut chunk, kept) {
                break;
            }
        }
        self.conclude(limits)
    }

    fn conclude(self, limits: &ShellLimits) -> Result<Heard, ShellError> {
        let printed_too_much = self.lifeline.is_none() && !self.cancelled;
        let cancelled = self.cancelled;
        match serde_json::from_slice(&self.heard) {
            Ok(Report::Ended(ended)) => Ok(Heard { ended, printed_too_much, cancelled }),
            Ok(Report::Failed(failure)) => Err(match failure {
                Failure::ShellMissing => ShellError::ShellMissing { shell: limits.shell.clone() },
                Failure::NotConfined(reason) => ShellError::NotConfined { reason },
                Failure::NotLayered => ShellError::NotLayered,
                Failure::Start(reason) => ShellError::Start { reason },
            }),
            Ok(Report::Hello(_)) | Err(_) => Err(ShellError::Lost),
        }
    }
}

impl Drop for Supervised {
    /// One that has reported is gone. Any other is ended, and then its session.
    fn drop(&mut self) {
        self.lifeline = None;
        let session = Pid::from_child(&self.supervisor);
        if self.heard.ends_with(b"\n") {
            let _ = self.supervisor.wait();
            return;
        }
        let _ = self.supervisor.kill();
        // Its number is its own until it is waited for, and so is the session's.
        descendants::end_session(session);
        let _ = self.supervisor.wait();
    }
}

/// Which of them can be read, waiting until a time for the first.
fn is_ready(fds: &[PollFd<'_>], until: u64) -> Vec<bool> {
    let mut fds = fds.to_vec();
    let left = Duration::from_millis(until.saturating_sub(boot_ms()));
    match poll(&mut fds, Some(&Timespec::try_from(left).unwrap_or_default())) {
        Ok(_) => fds.iter().map(|fd| !fd.revents().is_empty()).collect(),
        Err(_) => vec![false; fds.len()],
    }
}

/// Reads once; whether more may come.
fn read(from: &mut impl Read, chunk: &mut [u8], kept: &mut Kept) -> bool {
    match from.read(chunk) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
        Ok(0) | Err(_) => false,
        Ok(read) => {
            kept.add(chunk.get(..read).unwrap_or_default());
            true
        }
    }
}
