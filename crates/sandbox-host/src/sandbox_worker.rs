//! One worker: a process that checks and runs programs, one after the other.
//!
//! The host stays safe whatever a program does: it waits for a limited time, reads a limited number
//! of bytes, and can always end the process.

use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::program_cancel::ProgramCancel;
use crate::protocol::{FromWorker, ProgramFailure, ToWorker, VERSION};

/// The exit code for a lack of memory, set by the interpreter's allocator.
const EXIT_OUT_OF_MEMORY: i32 = 65;

/// The signal for too much CPU time: `SIGXCPU`.
const SIGNAL_CPU_LIMIT: i32 = 24;

/// How many bytes are read at once.
const CHUNK_BYTES: usize = 16 << 10;

/// How often the cancel signal is checked.
const CANCEL_CHECK_US: u64 = 50_000;

/// The maximum length of the first message.
const GREETING_BYTES_MAX: usize = 256;

/// A process that checks and runs programs.
#[derive(Debug)]
pub(crate) struct SandboxWorker {
    child: Child,
    to: ChildStdin,
    from: ChildStdout,
    /// Bytes that were read and are not a complete line yet.
    unparsed: Vec<u8>,
    /// How many programs it has run.
    pub(crate) runs: u32,
}

/// How long the worker may still be silent, and the signal that cancels the wait.
pub(crate) struct WaitBudget {
    left_us: u64,
    cancel: ProgramCancel,
}

/// Why a worker can't be used any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WorkerLoss {
    /// It sent nothing within the time limit.
    #[error("the worker did not answer in time, and was ended")]
    Silent,
    /// The run was cancelled.
    #[error("the program was ended, because the run was cancelled")]
    Cancelled,
    /// It ran out of memory.
    #[error("the worker ran out of memory, and ended")]
    OutOfMemory,
    /// It used too much CPU time.
    #[error("the worker used too much CPU time, and was ended")]
    OutOfTime,
    /// It sent too much.
    #[error("the worker sent more than {0} bytes at once, and was ended")]
    TooLong(usize),
    /// It broke the protocol.
    #[error("the worker sent an invalid message, and was ended")]
    ProtocolBroken,
    /// Its process ended.
    #[error("the worker process ended unexpectedly ({0})")]
    Died(String),
}

impl WorkerLoss {
    /// The error type in traces.
    pub(crate) fn as_str(&self) -> &'static str {
        let failure = match self {
            // This is not a failure of the worker.
            Self::Cancelled => return "cancelled",
            Self::Silent | Self::OutOfTime => ProgramFailure::Timeout,
            Self::OutOfMemory => ProgramFailure::Memory,
            Self::TooLong(_) | Self::ProtocolBroken | Self::Died(_) => ProgramFailure::WorkerCrash,
        };
        failure.as_str()
    }
}

impl WaitBudget {
    pub(crate) fn new(ms: u64, ending: ProgramCancel) -> Self {
        Self { left_us: ms.saturating_mul(1000), cancel: ending }
    }

    /// Fails if the run was cancelled.
    pub(crate) fn check_cancelled(&self) -> Result<(), WorkerLoss> {
        if self.cancel.is_cancelled() { Err(WorkerLoss::Cancelled) } else { Ok(()) }
    }
}

impl SandboxWorker {
    /// Starts a worker and waits for its first message.
    pub(crate) fn start(
        program: &Path,
        patience: &mut WaitBudget,
    ) -> Result<Self, WorkerStartError> {
        let mut child = Command::new(program)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the worker has no pipes").into());
        };
        for end in [to.as_fd(), from.as_fd()] {
            let flags = fcntl_getfl(end).map_err(io::Error::from)?;
            fcntl_setfl(end, flags | OFlags::NONBLOCK).map_err(io::Error::from)?;
        }
        let mut worker = Self { child, to, from, unparsed: Vec::new(), runs: 0 };
        match worker.receive(patience, GREETING_BYTES_MAX)? {
            FromWorker::Ready { version } if version == VERSION => Ok(worker),
            FromWorker::Ready { version } => Err(WorkerStartError::Version(version)),
            _ => Err(WorkerLoss::ProtocolBroken.into()),
        }
    }

    /// Whether the process still runs.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends a message.
    pub(crate) fn send(
        &mut self,
        message: &ToWorker,
        patience: &mut WaitBudget,
    ) -> Result<(), WorkerLoss> {
        let mut line = serde_json::to_vec(message).map_err(|_| WorkerLoss::ProtocolBroken)?;
        line.push(b'\n');
        let mut rest = line.as_slice();
        while !rest.is_empty() {
            match self.to.write(rest) {
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait_for_pipe(self.to.as_fd(), PollFlags::OUT, patience)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(self.loss_at_exit()),
            }
        }
        Ok(())
    }

    /// Receives a message.
    pub(crate) fn receive(
        &mut self,
        patience: &mut WaitBudget,
        bytes_max: usize,
    ) -> Result<FromWorker, WorkerLoss> {
        let mut seen = 0;
        let mut chunk = [0; CHUNK_BYTES];
        loop {
            let unseen = self.unparsed.get(seen..).unwrap_or_default();
            if let Some(end) = unseen.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unparsed.drain(..=seen + end).collect();
                return serde_json::from_slice(&line).map_err(|_| WorkerLoss::ProtocolBroken);
            }
            seen = self.unparsed.len();
            if seen > bytes_max {
                return Err(WorkerLoss::TooLong(bytes_max));
            }
            match self.from.read(&mut chunk) {
                Ok(0) => return Err(self.loss_at_exit()),
                Ok(read) => self.unparsed.extend_from_slice(chunk.get(..read).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait_for_pipe(self.from.as_fd(), PollFlags::IN, patience)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(self.loss_at_exit()),
            }
        }
    }

    /// Why the process ended. It has closed its pipe, so it is not usable in any case.
    fn loss_at_exit(&mut self) -> WorkerLoss {
        // The process may need a moment to end after it closed its pipe.
        let mut status = None;
        for _ in 0..50 {
            status = self.child.try_wait().ok().flatten();
            if status.is_some() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        status.map_or_else(|| WorkerLoss::Died("it closed its output".to_owned()), loss_of_status)
    }
}

impl Drop for SandboxWorker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn loss_of_status(status: ExitStatus) -> WorkerLoss {
    match (status.code(), status.signal()) {
        (Some(EXIT_OUT_OF_MEMORY), _) => WorkerLoss::OutOfMemory,
        (_, Some(SIGNAL_CPU_LIMIT)) => WorkerLoss::OutOfTime,
        _ => WorkerLoss::Died(status.to_string()),
    }
}

/// Waits until a pipe is ready, at most as long as the wait budget allows.
fn wait_for_pipe(
    pipe: impl AsFd,
    flags: PollFlags,
    patience: &mut WaitBudget,
) -> Result<(), WorkerLoss> {
    loop {
        let began = now_us();
        let left = patience.left_us;
        if left == 0 {
            return Err(WorkerLoss::Silent);
        }
        let most = if patience.cancel.can_cancel() { left.min(CANCEL_CHECK_US) } else { left };
        let timeout = Timespec {
            tv_sec: i64::try_from(most / 1_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(most % 1_000_000 * 1000).unwrap_or(0),
        };
        let mut descriptors = [PollFd::new(&pipe, flags)];
        // The caller repeats a read or write after an interrupted wait.
        let ready = poll(&mut descriptors, Some(&timeout)).unwrap_or(1);
        patience.left_us = left.saturating_sub(now_us().saturating_sub(began));
        if ready != 0 {
            return Ok(());
        }
        if most == left {
            return Err(WorkerLoss::Silent);
        }
        patience.check_cancelled()?;
    }
}

/// A monotonic clock in microseconds.
fn now_us() -> u64 {
    let since = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    since.tv_sec.unsigned_abs() * 1_000_000 + since.tv_nsec.unsigned_abs() / 1000
}

/// Why a worker could not be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkerStartError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Lost(#[from] WorkerLoss),
    #[error("it uses protocol version {0}; version {VERSION} is needed")]
    Version(u32),
}
