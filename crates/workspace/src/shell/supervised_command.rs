//! The tool's side of a running command: it starts the supervisor, reads its reports, and limits
//! how long it waits.

use std::io::{self, Read, Write as _};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;

use super::layers::LayerPaths;
use super::output::OutputBuffer;
use super::wire::{
    CommandEnd, CommandRequest, CommandStartFailure, LINE_BYTES_MAX, PROTOCOL_NAME,
    SupervisorReport,
};
use super::{SUPERVISOR_ARGUMENT, ShellError, ShellLimits, descendants};
use crate::time::boot_ms;

/// Programs check this variable to know that an agent runs them.
const AGENT_VARIABLE: &str = "AI_AGENT";

/// How long a supervisor may take to identify itself on a busy machine.
const HELLO_MS_MAX: u64 = 20_000;

/// How long the supervisor may take after the timeout to end all processes and report.
const REPORT_MS_MAX: u64 = 20_000;

/// How many bytes are read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// How often the cancel signal is checked.
const CANCEL_CHECK_MS: u64 = 100;

/// How many reads drain the pipe after the command ended. An escaped process may hold the pipe
/// open, so we do not wait for its end.
const LAST_READS_MAX: usize = 64;

/// A running supervisor.
pub(super) struct SupervisedCommand {
    supervisor: Child,
    /// The supervisor's standard input. Closing it ends the command.
    supervisor_stdin: Option<ChildStdin>,
    reports: ChildStdout,
    output: ChildStderr,
    report_bytes: Vec<u8>,
    /// Whether the command was cancelled.
    cancelled: bool,
}

/// The outcome of a command.
pub(super) struct CommandOutcome {
    pub(super) end: CommandEnd,
    pub(super) printed_too_much: bool,
    pub(super) cancelled: bool,
}

impl SupervisedCommand {
    pub(super) fn start(
        root: &Path,
        limits: &ShellLimits,
        command: &str,
        layers: Option<&LayerPaths>,
    ) -> Result<Self, ShellError> {
        let mut line = serde_json::to_vec(&CommandRequest {
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
        // Send the request only to a real supervisor, because another program might not read it and
        // block us.
        if !supervised.expect_hello() {
            return Err(ShellError::NotASupervisor { program });
        }
        if let Some(lifeline) = &mut supervised.supervisor_stdin {
            lifeline.write_all(&line).map_err(ShellError::Supervisor)?;
        }
        Ok(supervised)
    }

    fn spawn(program: &Path, root: &Path) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.arg(SUPERVISOR_ARGUMENT).current_dir(root).env("PWD", root);
        // The command can remove this variable from its own environment, but not from that of its
        // supervisor. Programs that search their ancestors for an agent find it there.
        command.env(AGENT_VARIABLE, "jackline");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut supervisor = command.spawn()?;
        let pipes = (supervisor.stdin.take(), supervisor.stdout.take(), supervisor.stderr.take());
        let (lifeline, Some(reports), Some(output)) = pipes else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        Ok(Self {
            supervisor,
            supervisor_stdin: lifeline,
            reports,
            output,
            report_bytes: Vec::new(),
            cancelled: false,
        })
    }

    fn expect_hello(&mut self) -> bool {
        let until = boot_ms().saturating_add(HELLO_MS_MAX);
        while !self.report_bytes.contains(&b'\n') {
            let ready = poll_readable(&[PollFd::new(&self.reports, PollFlags::IN)], until);
            if !ready.first().is_some_and(|ready| *ready) || !self.read_reports() {
                return false;
            }
        }
        let line =
            self.report_bytes.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
        let is_supervisor = matches!(serde_json::from_slice(line), Ok(SupervisorReport::Hello(name)) if name == PROTOCOL_NAME);
        self.report_bytes.drain(..line.len());
        is_supervisor
    }

    /// Reads from the reports. Returns whether more may come.
    fn read_reports(&mut self) -> bool {
        let mut chunk = [0; 4096];
        match self.reports.read(&mut chunk) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
            Ok(0) | Err(_) => false,
            Ok(read) => {
                self.report_bytes.extend_from_slice(chunk.get(..read).unwrap_or_default());
                self.report_bytes.len() as u64 <= LINE_BYTES_MAX
            }
        }
    }

    /// Reads the output of the command until its supervisor has reported and exited.
    pub(super) fn wait_for_end(
        mut self,
        limits: &ShellLimits,
        buffer: &mut OutputBuffer,
    ) -> Result<CommandOutcome, ShellError> {
        let allowed =
            limits.timeout_ms.saturating_add(limits.grace_ms).saturating_add(REPORT_MS_MAX);
        let until = boot_ms().saturating_add(allowed);
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut open = true;
        let mut asked_at = boot_ms();
        loop {
            let mut fds = vec![PollFd::new(&self.reports, PollFlags::IN)];
            fds.extend(open.then(|| PollFd::new(&self.output, PollFlags::IN)));
            let wakes =
                if limits.cancel.is_possible() { asked_at + CANCEL_CHECK_MS } else { until };
            let ready = poll_readable(&fds, wakes.min(until));
            if boot_ms() >= wakes {
                asked_at = boot_ms();
                if self.supervisor_stdin.is_some() && limits.cancel.is_cancelled() {
                    self.cancelled = true;
                    self.supervisor_stdin = None;
                }
            }
            if ready.get(1).is_some_and(|ready| *ready) {
                open = read_output(&mut self.output, &mut chunk, buffer);
            }
            if buffer.bytes_total() > limits.printed_bytes_max {
                self.supervisor_stdin = None;
            }
            let reported = ready.first().is_some_and(|ready| *ready);
            if (reported && !self.read_reports()) || boot_ms() >= until {
                break;
            }
        }
        for _ in 0..LAST_READS_MAX {
            let ready = poll_readable(&[PollFd::new(&self.output, PollFlags::IN)], 0);
            let has_output = open && ready.first().is_some_and(|ready| *ready);
            if !has_output || !read_output(&mut self.output, &mut chunk, buffer) {
                break;
            }
        }
        self.into_outcome(limits)
    }

    fn into_outcome(self, limits: &ShellLimits) -> Result<CommandOutcome, ShellError> {
        let printed_too_much = self.supervisor_stdin.is_none() && !self.cancelled;
        let cancelled = self.cancelled;
        match serde_json::from_slice(&self.report_bytes) {
            Ok(SupervisorReport::Ended(ended)) => {
                Ok(CommandOutcome { end: ended, printed_too_much, cancelled })
            }
            Ok(SupervisorReport::Failed(failure)) => Err(match failure {
                CommandStartFailure::ShellMissing => {
                    ShellError::ShellMissing { shell: limits.shell.clone() }
                }
                CommandStartFailure::NotConfined(reason) => ShellError::NotConfined { reason },
                CommandStartFailure::NotLayered => ShellError::NotLayered,
                CommandStartFailure::Start(reason) => ShellError::Start { reason },
            }),
            Ok(SupervisorReport::Hello(_)) | Err(_) => Err(ShellError::Lost),
        }
    }
}

impl Drop for SupervisedCommand {
    /// A supervisor that reported has exited. Any other is killed, followed by its session.
    fn drop(&mut self) {
        self.supervisor_stdin = None;
        let session = Pid::from_child(&self.supervisor);
        if self.report_bytes.ends_with(b"\n") {
            let _ = self.supervisor.wait();
            return;
        }
        let _ = self.supervisor.kill();
        // The process id can't be reused until it is waited for, and the session id neither.
        descendants::kill_session(session);
        let _ = self.supervisor.wait();
    }
}

/// Which of the descriptors are readable. Waits for the first one until the given time.
fn poll_readable(fds: &[PollFd<'_>], until: u64) -> Vec<bool> {
    let mut fds = fds.to_vec();
    let timeout = Duration::from_millis(until.saturating_sub(boot_ms()));
    match poll(&mut fds, Some(&Timespec::try_from(timeout).unwrap_or_default())) {
        Ok(_) => fds.iter().map(|fd| !fd.revents().is_empty()).collect(),
        Err(_) => vec![false; fds.len()],
    }
}

/// Reads once. Returns whether more may come.
fn read_output(from: &mut impl Read, chunk: &mut [u8], buffer: &mut OutputBuffer) -> bool {
    match from.read(chunk) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
        Ok(0) | Err(_) => false,
        Ok(read) => {
            buffer.add(chunk.get(..read).unwrap_or_default());
            true
        }
    }
}
