//! One worker: a process that checks and runs programs, one after the other.
//!
//! Whatever a program does to it, the host only ever waits as long as it said, reads as
//! much as it said, and ends the process that it started.

use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::ending::Ending;
use crate::protocol::{Failure, FromWorker, ToWorker, VERSION};

/// How a worker says that it has no memory left; the interpreter's allocator ends it so.
const OUT_OF_MEMORY: i32 = 65;

/// The signal for too much computing: `SIGXCPU`.
const TOO_MUCH_TIME: i32 = 24;

/// How much is read at once.
const CHUNK_BYTES: usize = 16 << 10;

/// How often whoever waits is asked whether it still does.
const TICK_US: u64 = 50_000;

/// How long a line may be that says that the worker is there.
const GREETING_BYTES_MAX: usize = 256;

/// A process that checks and runs programs.
#[derive(Debug)]
pub(crate) struct Worker {
    child: Child,
    to: ChildStdin,
    from: ChildStdout,
    /// What was read and is not a whole line yet.
    read: Vec<u8>,
    /// How many programs it has run.
    pub(crate) runs: u32,
}

/// How long the worker may still be silent, and whether anybody still waits for it.
pub(crate) struct Patience {
    left_us: u64,
    ending: Ending,
}

/// A worker that is of no use any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Lost {
    /// It said nothing for as long as it may.
    #[error("the worker did not answer in time, and was ended")]
    Silent,
    /// Nobody waits for it any more.
    #[error("the program was ended, because nothing may go on")]
    Unwanted,
    /// It has no memory left.
    #[error("the worker ran out of memory, and ended")]
    Memory,
    /// It computed for longer than it may.
    #[error("the worker computed for too long, and was ended")]
    Time,
    /// It said more than it may.
    #[error("the worker said more than {0} bytes at once, and was ended")]
    TooLong(usize),
    /// It said something else than a worker says.
    #[error("the worker said what no worker says, and was ended")]
    Garbled,
    /// It ended.
    #[error("the worker ended by itself ({0})")]
    Died(String),
}

impl Lost {
    /// Its word, as traces have it.
    pub(crate) fn name(&self) -> &'static str {
        let failure = match self {
            // No worker says this of itself.
            Self::Unwanted => return "cancelled",
            Self::Silent | Self::Time => Failure::Timeout,
            Self::Memory => Failure::Memory,
            Self::TooLong(_) | Self::Garbled | Self::Died(_) => Failure::WorkerCrash,
        };
        failure.name()
    }
}

impl Patience {
    pub(crate) fn new(ms: u64, ending: Ending) -> Self {
        Self { left_us: ms.saturating_mul(1000), ending }
    }

    /// Says so where nobody waits any more.
    pub(crate) fn check(&self) -> Result<(), Lost> {
        if self.ending.is_now() { Err(Lost::Unwanted) } else { Ok(()) }
    }
}

impl Worker {
    /// Starts one, and waits until it is there.
    pub(crate) fn start(program: &Path, patience: &mut Patience) -> Result<Self, StartError> {
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
        let mut worker = Self { child, to, from, read: Vec::new(), runs: 0 };
        match worker.receive(patience, GREETING_BYTES_MAX)? {
            FromWorker::Ready { version } if version == VERSION => Ok(worker),
            FromWorker::Ready { version } => Err(StartError::Version(version)),
            _ => Err(Lost::Garbled.into()),
        }
    }

    /// Whether it still runs.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Says something.
    pub(crate) fn send(&mut self, message: &ToWorker, patience: &mut Patience) -> Result<(), Lost> {
        let mut line = serde_json::to_vec(message).map_err(|_| Lost::Garbled)?;
        line.push(b'\n');
        let mut rest = line.as_slice();
        while !rest.is_empty() {
            match self.to.write(rest) {
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait(self.to.as_fd(), PollFlags::OUT, patience)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(self.died()),
            }
        }
        Ok(())
    }

    /// Hears something.
    pub(crate) fn receive(
        &mut self,
        patience: &mut Patience,
        bytes_max: usize,
    ) -> Result<FromWorker, Lost> {
        let mut seen = 0;
        let mut chunk = [0; CHUNK_BYTES];
        loop {
            let unseen = self.read.get(seen..).unwrap_or_default();
            if let Some(end) = unseen.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=seen + end).collect();
                return serde_json::from_slice(&line).map_err(|_| Lost::Garbled);
            }
            seen = self.read.len();
            if seen > bytes_max {
                return Err(Lost::TooLong(bytes_max));
            }
            match self.from.read(&mut chunk) {
                Ok(0) => return Err(self.died()),
                Ok(read) => self.read.extend_from_slice(chunk.get(..read).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait(self.from.as_fd(), PollFlags::IN, patience)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(self.died()),
            }
        }
    }

    /// What it died of. It closed its end, so it is as good as gone.
    fn died(&mut self) -> Lost {
        // One that only closed its pipes is no worker either.
        let mut status = None;
        for _ in 0..50 {
            status = self.child.try_wait().ok().flatten();
            if status.is_some() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        status.map_or_else(|| Lost::Died("it closed its output".to_owned()), reason)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn reason(status: ExitStatus) -> Lost {
    match (status.code(), status.signal()) {
        (Some(OUT_OF_MEMORY), _) => Lost::Memory,
        (_, Some(TOO_MUCH_TIME)) => Lost::Time,
        _ => Lost::Died(status.to_string()),
    }
}

/// Waits until a pipe is ready, for as long as there is patience left.
fn wait(pipe: impl AsFd, flags: PollFlags, patience: &mut Patience) -> Result<(), Lost> {
    loop {
        let began = now_us();
        let left = patience.left_us;
        if left == 0 {
            return Err(Lost::Silent);
        }
        let most = if patience.ending.is_possible() { left.min(TICK_US) } else { left };
        let timeout = Timespec {
            tv_sec: i64::try_from(most / 1_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(most % 1_000_000 * 1000).unwrap_or(0),
        };
        let mut descriptors = [PollFd::new(&pipe, flags)];
        // An interrupted wait is tried again by whoever reads or writes.
        let ready = poll(&mut descriptors, Some(&timeout)).unwrap_or(1);
        patience.left_us = left.saturating_sub(now_us().saturating_sub(began));
        if ready != 0 {
            return Ok(());
        }
        if most == left {
            return Err(Lost::Silent);
        }
        patience.check()?;
    }
}

/// Microseconds that only ever go forward.
fn now_us() -> u64 {
    let since = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    since.tv_sec.unsigned_abs() * 1_000_000 + since.tv_nsec.unsigned_abs() / 1000
}

/// Why there is no worker.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Lost(#[from] Lost),
    #[error("it speaks version {0} of the protocol, not {VERSION}")]
    Version(u32),
}
