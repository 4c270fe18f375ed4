//! A server that is a child process: it runs in its own process group, writes to it never block,
//! and it is ended with all processes of its group.

use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::clock::now_ms;
use super::open_requests::OpenRequest;
use super::output_pipe::{Backlog, OutputPipe};
use super::proxied_server::{ProxiedServer, Watcher, lock_ignoring_poison};
use super::proxy_shared::{ProxyJob, ProxyShared};

/// How much of the server's standard error is remembered.
const STDERR_TAIL_BYTES: usize = 2 << 10;

/// How long a server may take to end after SIGTERM.
const TERM_GRACE_MS: u64 = 1000;

/// How often the proxy checks whether the process has ended.
const EXIT_CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// A running server process.
pub(super) struct ServerProcess {
    child: Mutex<Child>,
    group: Pid,
    /// The buffered input of the server; `None` after it was closed.
    input: Mutex<Option<OutputPipe>>,
    /// The end of the server's standard error.
    tail: Arc<Mutex<Vec<u8>>>,
}

/// A started server, the threads that watch it, and its output.
pub(super) struct StartedProcess {
    pub(super) process: ServerProcess,
    pub(super) watchers: Vec<Watcher>,
    pub(super) output: OwnedFd,
}

impl ServerProcess {
    /// Starts a server.
    pub(super) fn start(words: &[String]) -> io::Result<StartedProcess> {
        let Some((program, args)) = words.split_first() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no command"));
        };
        let mut command = Command::new(program);
        command.args(args).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let missing = || io::Error::other("the server has no streams");
        let output = child.stdout.take().ok_or_else(missing)?;
        let errors = child.stderr.take().ok_or_else(missing)?;
        let input = child.stdin.take().ok_or_else(missing)?;
        let (group, tail) = (Pid::from_child(&child), Arc::default());
        let ears = watchers(errors, Arc::clone(&tail), group);
        let input = Mutex::new(Some(OutputPipe::new_exclusive(input.into())?));
        let process = Self { child: Mutex::new(child), group, input, tail };
        Ok(StartedProcess { process, watchers: ears, output: output.into() })
    }

    /// Whether the process has ended. Does not block and does not reap it.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        !matches!(waitid(WaitId::Pid(self.group), options), Ok(None))
    }
}

impl ProxiedServer for ServerProcess {
    fn send(&self, _: &ProxyShared, mut line: Vec<u8>) {
        line.push(b'\n');
        let mut input = lock_ignoring_poison(&self.input);
        // A broken pipe is ignored here; the end of the process is noticed separately.
        if input.as_mut().is_some_and(|pipe| pipe.push(&line).is_err()) {
            *input = None;
        }
    }

    fn backlog(&self) -> Option<Backlog> {
        lock_ignoring_poison(&self.input).as_ref().and_then(OutputPipe::backlog)
    }

    fn flush(&self, shared: &ProxyShared) {
        let mut input = lock_ignoring_poison(&self.input);
        let Some(pipe) = input.as_mut() else { return };
        let gone = pipe.flush().is_err();
        let late =
            |backlog: &Backlog| now_ms() >= backlog.since_ms.saturating_add(shared.timeout_ms);
        // A partly written line can't be withdrawn, so the server gets no more input.
        let late = pipe.backlog().as_ref().is_some_and(late);
        if gone || late {
            *input = None;
        }
        drop(input);
        if late {
            let seconds = shared.timeout_ms / 1000;
            shared.send(ProxyJob::Lost(format!(
                "the server has not read its input for {seconds} seconds"
            )));
        }
    }

    fn cancel_request(&self, _: &OpenRequest, notice: Option<&str>) {
        let mut input = lock_ignoring_poison(&self.input);
        if let Some(notice) = notice
            && let Some(pipe) = input.as_mut()
            // A server that does not read its input would not get the notification either.
            && pipe.backlog().is_none()
        {
            let _ = pipe.push(format!("{notice}\n").as_bytes());
        }
    }

    fn close(&self) {
        *lock_ignoring_poison(&self.input) = None;
    }

    fn end(&self, _: &ProxyShared) -> String {
        self.close();
        let _ = kill_process_group(self.group, Signal::TERM);
        let until = now_ms() + TERM_GRACE_MS;
        // The process id stays reserved until it is reaped, so the group can still be signalled.
        while now_ms() < until && !self.has_ended() {
            std::thread::sleep(EXIT_CHECK_INTERVAL);
        }
        let _ = kill_process_group(self.group, Signal::KILL);
        describe_end(lock_ignoring_poison(&self.child).wait().ok())
    }

    fn last_stderr(&self) -> Option<String> {
        let tail = lock_ignoring_poison(&self.tail);
        let text_bytes =
            tail.get(tail.len().saturating_sub(STDERR_TAIL_BYTES)..).unwrap_or_default();
        let text = String::from_utf8_lossy(text_bytes);
        let clean = |c: char| if c.is_control() && c != '\n' { ' ' } else { c };
        Some(text.trim().chars().map(clean).collect())
    }
}

/// The threads that watch a process: its standard error, and its end.
fn watchers(mut errors: ChildStderr, tail: Arc<Mutex<Vec<u8>>>, pid: Pid) -> Vec<Watcher> {
    let read_errors = move |shared: &Arc<ProxyShared>| {
        let mut chunk = vec![0; 16 << 10];
        while let Ok(read @ 1..) = errors.read(&mut chunk) {
            let text = chunk.get(..read).unwrap_or_default();
            append_to_tail(&tail, text);
            shared.write_server_stderr(text);
        }
    };
    let wait_for_end = move |shared: &Arc<ProxyShared>| {
        // The process is not reaped, so that its group can still be signalled by its id.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(pid), options), Err(rustix::io::Errno::INTR)) {}
        shared.send(ProxyJob::ServerExited);
    };
    vec![Box::new(read_errors), Box::new(wait_for_end)]
}

/// Appends to the remembered output.
fn append_to_tail(tail: &Mutex<Vec<u8>>, bytes: &[u8]) {
    let mut tail = lock_ignoring_poison(tail);
    tail.extend_from_slice(bytes);
    // It is sufficient to trim the buffer when it is several times too long.
    let surplus = tail.len().saturating_sub(STDERR_TAIL_BYTES);
    if surplus > 4 * STDERR_TAIL_BYTES {
        tail.drain(..surplus);
    }
}

/// Describes how a server ended.
fn describe_end(status: Option<ExitStatus>) -> String {
    match status.map(|status| (status.code(), status.signal())) {
        Some((Some(code), _)) => format!("it exited with status {code}"),
        Some((_, Some(signal))) => format!("it was killed by signal {signal}"),
        _ => "its exit status is unknown".to_owned(),
    }
}
