//! The supervisor process: it starts the shell, waits for its end, and ends all remaining
//! processes.

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

use super::wire::{
    CommandEnd, CommandRequest, CommandStartFailure, LINE_BYTES_MAX, PROTOCOL_NAME,
    SupervisorReport,
};
use super::{Confinement, confine, descendants, environment, layers};
use crate::time::boot_ms;

/// How often the supervisor reaps adopted processes that ended.
const TICK_MS: u64 = 50;

/// Supervises one command, which it reads from standard input. A program calls only this function
/// when it is started with the argument [`SUPERVISOR_ARGUMENT`](super::SUPERVISOR_ARGUMENT).
pub fn supervisor_main() -> ExitCode {
    match serve_one_request() {
        Ok(()) => ExitCode::SUCCESS,
        // The process that started us is gone or closed the pipe.
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve_one_request() -> io::Result<()> {
    write_report(&SupervisorReport::Hello(PROTOCOL_NAME.to_owned()))?;
    let mut line = Vec::new();
    BufReader::new(io::stdin().lock()).take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    let request: CommandRequest = serde_json::from_slice(&line)?;
    write_report(&match supervise_command(request) {
        Ok(ended) => SupervisorReport::Ended(ended),
        Err(failure) => SupervisorReport::Failed(failure),
    })
}

fn write_report(report: &SupervisorReport) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    let mut output = io::stdout().lock();
    output.write_all(&line)?;
    output.flush()
}

fn supervise_command(request: CommandRequest) -> Result<CommandEnd, CommandStartFailure> {
    let (timeout_ms, grace_ms) = (request.timeout_ms, request.grace_ms);
    // A mount namespace can only be entered while there is a single thread.
    if let Some(layers) = &request.layers {
        layers::mount_layer(layers).map_err(|_| CommandStartFailure::NotLayered)?;
    }
    set_child_subreaper(Some(getpid())).map_err(|error| start_failure(&error.into()))?;
    // Without a terminal, programs can't prompt, and no key can end the supervisor but not the
    // command.
    let _ = setsid();
    let output =
        io::stderr().as_fd().try_clone_to_owned().map_err(|error| start_failure(&error))?;
    let starting = std::thread::Builder::new().spawn(move || start_shell(&request, output));
    let started = starting.map_err(|error| start_failure(&error))?.join();
    let (shell, confinement) = started.unwrap_or_else(|_| {
        Err(CommandStartFailure::Start("the thread that starts it panicked".to_owned()))
    })?;
    let mut shell_process = RunningShell { shell, status: None };
    let timed_out = shell_process.wait(timeout_ms) == ShellWait::TimedOut;
    if timed_out {
        shell_process.terminate_all(grace_ms);
    }
    // If the shell itself still runs, it does not count as a process that it left behind.
    let own = u32::from(shell_process.status.is_none());
    let count =
        descendants::kill_descendants(|pid, status| shell_process.record_status(pid, status));
    Ok(CommandEnd {
        exit_code: shell_process.status.and_then(WaitStatus::exit_status),
        signal: shell_process.status.and_then(WaitStatus::terminating_signal),
        timed_out,
        stragglers: count.ended.saturating_sub(own),
        left: count.not_ended,
        confinement,
    })
}

fn start_failure(error: &io::Error) -> CommandStartFailure {
    CommandStartFailure::Start(error.to_string())
}

/// Starts the shell from a confined thread, so that the shell and its children are confined too.
fn start_shell(
    request: &CommandRequest,
    output: OwnedFd,
) -> Result<(Pid, Confinement), CommandStartFailure> {
    let confinement = confine::confine_thread(request.confine, Path::new("."), &request.writable)
        .map_err(CommandStartFailure::NotConfined)?;
    let also = output.try_clone().map_err(|error| start_failure(&error))?;
    let mut command = Command::new(&request.shell);
    command.arg("-c").arg(&request.command).process_group(0);
    command.stdin(Stdio::null()).stdout(output).stderr(also);
    environment::set_variables(&mut command, &request.environment, &request.hidden);
    match command.spawn() {
        Ok(child) => Ok((Pid::from_child(&child), confinement)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(CommandStartFailure::ShellMissing)
        }
        Err(error) => Err(start_failure(&error)),
    }
}

#[derive(PartialEq, Eq)]
enum ShellWait {
    Ended,
    TimedOut,
    /// The caller closed its end of the pipe, or is gone.
    CallerClosed,
}

/// The shell while it runs.
struct RunningShell {
    shell: Pid,
    status: Option<WaitStatus>,
}

impl RunningShell {
    fn record_status(&mut self, pid: Pid, status: WaitStatus) {
        if pid == self.shell {
            self.status = Some(status);
        }
    }

    fn wait(&mut self, timeout_ms: u64) -> ShellWait {
        let until = boot_ms().saturating_add(timeout_ms);
        // Without `pidfd_open`, the tick below is sufficient.
        let pidfd = pidfd_open(self.shell, PidfdFlags::empty()).ok();
        let stdin = io::stdin();
        loop {
            descendants::reap_children(|pid, status| self.record_status(pid, status));
            if self.status.is_some() {
                return ShellWait::Ended;
            }
            let left_ms = until.saturating_sub(boot_ms());
            if left_ms == 0 {
                return ShellWait::TimedOut;
            }
            let mut fds = vec![PollFd::new(&stdin, PollFlags::IN)];
            fds.extend(pidfd.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
            let tick = Duration::from_millis(left_ms.min(TICK_MS));
            let _ = poll(&mut fds, Some(&Timespec::try_from(tick).unwrap_or_default()));
            if fds.first().is_some_and(|stdin| !stdin.revents().is_empty()) {
                return ShellWait::CallerClosed;
            }
        }
    }

    /// Sends SIGTERM to all processes, and waits for a while.
    fn terminate_all(&mut self, grace_ms: u64) {
        descendants::signal_all(Signal::TERM);
        let until = boot_ms().saturating_add(grace_ms);
        while descendants::reap_children(|pid, status| self.record_status(pid, status))
            && boot_ms() < until
        {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
