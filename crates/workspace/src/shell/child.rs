//! The supervisor: starts the shell, waits for its end, and leaves nobody behind.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitStatus, getpid, pidfd_open, set_child_subreaper, setsid,
};

use super::wire::{Ended, Failure, LINE_BYTES_MAX, PROGRAM, Report, Request};
use super::{Confinement, confine, descendants, environment, layers};
use crate::time::boot_ms;

/// How often is looked for children that ended and belong to nobody else.
const TICK_MS: u64 = 50;

/// Supervises one command, as the wire tells it. A program calls this, and does
/// nothing else, when it is started with the word [`CHILD`](super::CHILD).
pub fn child() -> ExitCode {
    match converse() {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever started us is gone, or hears nothing.
        Err(_) => ExitCode::FAILURE,
    }
}

fn converse() -> io::Result<()> {
    report(&Report::Hello(PROGRAM.to_owned()))?;
    let mut line = Vec::new();
    BufReader::new(io::stdin().lock()).take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    let request: Request = serde_json::from_slice(&line)?;
    report(&match supervise(request) {
        Ok(ended) => Report::Ended(ended),
        Err(failure) => Report::Failed(failure),
    })
}

fn report(report: &Report) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    let mut output = io::stdout().lock();
    output.write_all(&line)?;
    output.flush()
}

fn supervise(request: Request) -> Result<Ended, Failure> {
    let (timeout_ms, grace_ms) = (request.timeout_ms, request.grace_ms);
    // As long as there is only one thread.
    if let Some(layers) = &request.layers {
        layers::enter(layers).map_err(|_| Failure::NotLayered)?;
    }
    set_child_subreaper(Some(getpid())).map_err(|error| failed(&error.into()))?;
    // Without a terminal nobody can be asked, and no key ends us but not the command.
    let _ = setsid();
    let output = io::stderr().as_fd().try_clone_to_owned().map_err(|error| failed(&error))?;
    let starting = std::thread::Builder::new().spawn(move || start(&request, output));
    let started = starting.map_err(|error| failed(&error))?.join();
    let (shell, confinement) = started.unwrap_or_else(|_| {
        Err(Failure::Start("the thread that starts it came to an end".to_owned()))
    })?;
    let mut watched = Watched { shell, status: None };
    let timed_out = watched.wait(timeout_ms) == Waited::TimedOut;
    if timed_out {
        watched.ask(grace_ms);
    }
    // The shell itself is no process that it left behind.
    let own = u32::from(watched.status.is_none());
    let count = descendants::end_all(|pid, status| watched.note(pid, status));
    Ok(Ended {
        exit_code: watched.status.and_then(WaitStatus::exit_status),
        signal: watched.status.and_then(WaitStatus::terminating_signal),
        timed_out,
        stragglers: count.ended.saturating_sub(own),
        left: count.left,
        confinement,
    })
}

fn failed(error: &io::Error) -> Failure {
    Failure::Start(error.to_string())
}

/// Starts the shell from a thread that is confined, and all that comes from it.
fn start(request: &Request, output: OwnedFd) -> Result<(Pid, Confinement), Failure> {
    let confinement = confine::confine(request.confine, Path::new("."), &request.writable)
        .map_err(Failure::NotConfined)?;
    let also = output.try_clone().map_err(|error| failed(&error))?;
    let mut command = Command::new(&request.shell);
    command.arg("-c").arg(&request.command).process_group(0);
    command.stdin(Stdio::null()).stdout(output).stderr(also);
    environment::give(&mut command, &request.environment, &request.hidden);
    match command.spawn() {
        Ok(child) => Ok((Pid::from_child(&child), confinement)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Failure::ShellMissing),
        Err(error) => Err(failed(&error)),
    }
}

#[derive(PartialEq, Eq)]
enum Waited {
    Ended,
    TimedOut,
    /// Whoever started us wants no more of it, or is gone.
    Told,
}

/// The shell, while it is at work.
struct Watched {
    shell: Pid,
    status: Option<WaitStatus>,
}

impl Watched {
    fn note(&mut self, pid: Pid, status: WaitStatus) {
        if pid == self.shell {
            self.status = Some(status);
        }
    }

    fn wait(&mut self, timeout_ms: u64) -> Waited {
        let until = boot_ms().saturating_add(timeout_ms);
        // Where there is no such thing, the tick will do.
        let held = pidfd_open(self.shell, PidfdFlags::empty()).ok();
        let told = io::stdin();
        loop {
            descendants::reap(|pid, status| self.note(pid, status));
            if self.status.is_some() {
                return Waited::Ended;
            }
            let left_ms = until.saturating_sub(boot_ms());
            if left_ms == 0 {
                return Waited::TimedOut;
            }
            let mut fds = vec![PollFd::new(&told, PollFlags::IN)];
            fds.extend(held.iter().map(|held| PollFd::new(held, PollFlags::IN)));
            let tick = Duration::from_millis(left_ms.min(TICK_MS));
            let _ = poll(&mut fds, Some(&Timespec::try_from(tick).unwrap_or_default()));
            if fds.first().is_some_and(|told| !told.revents().is_empty()) {
                return Waited::Told;
            }
        }
    }

    /// Asks everything to end, and gives it a while.
    fn ask(&mut self, grace_ms: u64) {
        descendants::signal_all(Signal::TERM);
        let until = boot_ms().saturating_add(grace_ms);
        while descendants::reap(|pid, status| self.note(pid, status)) && boot_ms() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
