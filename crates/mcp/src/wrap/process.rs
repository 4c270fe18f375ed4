//! A server that is a process: started in a group of its own, written to with an end,
//! and ended with everything it has started.

use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::clock::now_ms;
use super::ledger::Open;
use super::outlet::{Backlog, Outlet};
use super::server::{Ear, Server, lock};
use super::shared::{Job, Shared};

/// How much is remembered of what a server complains about.
const TAIL_BYTES: usize = 2 << 10;

/// How long a server may take from the polite word to its end.
const TERM_GRACE_MS: u64 = 1000;

/// How often is looked whether it has ended.
const TICK: Duration = Duration::from_millis(5);

/// A server at work.
pub(super) struct Process {
    child: Mutex<Child>,
    group: Pid,
    /// What was said to it goes in here; none once it has heard the end.
    input: Mutex<Option<Outlet>>,
    /// The last it said on standard error.
    tail: Arc<Mutex<Vec<u8>>>,
}

/// A server that was started, what hears of it, and what it says.
pub(super) struct Started {
    pub(super) process: Process,
    pub(super) ears: Vec<Ear>,
    pub(super) output: OwnedFd,
}

impl Process {
    /// Starts a server.
    pub(super) fn start(words: &[String]) -> io::Result<Started> {
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
        let ears = ears(errors, Arc::clone(&tail), group);
        let input = Mutex::new(Some(Outlet::own(input.into())?));
        let process = Self { child: Mutex::new(child), group, input, tail };
        Ok(Started { process, ears, output: output.into() })
    }

    /// Whether the process has ended; it is not waited for.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        !matches!(waitid(WaitId::Pid(self.group), options), Ok(None))
    }
}

impl Server for Process {
    fn send(&self, _: &Shared, mut line: Vec<u8>) {
        line.push(b'\n');
        let mut input = lock(&self.input);
        // One that is gone is noticed by its end.
        if input.as_mut().is_some_and(|pipe| pipe.push(&line).is_err()) {
            *input = None;
        }
    }

    fn backlog(&self) -> Option<Backlog> {
        lock(&self.input).as_ref().and_then(Outlet::backlog)
    }

    fn flush(&self, shared: &Shared) {
        let mut input = lock(&self.input);
        let Some(pipe) = input.as_mut() else { return };
        let gone = pipe.flush().is_err();
        let late =
            |backlog: &Backlog| now_ms() >= backlog.since_ms.saturating_add(shared.timeout_ms);
        // Half a line can't be taken back, so it is not to be talked to any more.
        let late = pipe.backlog().as_ref().is_some_and(late);
        if gone || late {
            *input = None;
        }
        drop(input);
        if late {
            let seconds = shared.timeout_ms / 1000;
            shared.send(Job::Lost(format!("it has not read its input for {seconds} seconds")));
        }
    }

    fn take_back(&self, _: &Open, notice: Option<&str>) {
        let mut input = lock(&self.input);
        if let Some(notice) = notice
            && let Some(pipe) = input.as_mut()
            // One that does not read does not hear it, either.
            && pipe.backlog().is_none()
        {
            let _ = pipe.push(format!("{notice}\n").as_bytes());
        }
    }

    fn close(&self) {
        *lock(&self.input) = None;
    }

    fn end(&self, _: &Shared) -> String {
        self.close();
        let _ = kill_process_group(self.group, Signal::TERM);
        let until = now_ms() + TERM_GRACE_MS;
        // Its number is free only once it was waited for, and by then all are gone.
        while now_ms() < until && !self.has_ended() {
            std::thread::sleep(TICK);
        }
        let _ = kill_process_group(self.group, Signal::KILL);
        describe_end(lock(&self.child).wait().ok())
    }

    fn last_words(&self) -> Option<String> {
        let tail = lock(&self.tail);
        let kept = tail.get(tail.len().saturating_sub(TAIL_BYTES)..).unwrap_or_default();
        let text = String::from_utf8_lossy(kept);
        let clean = |c: char| if c.is_control() && c != '\n' { ' ' } else { c };
        Some(text.trim().chars().map(clean).collect())
    }
}

/// What hears of a process: what it complains about, and its end.
fn ears(mut errors: ChildStderr, tail: Arc<Mutex<Vec<u8>>>, pid: Pid) -> Vec<Ear> {
    let complaints = move |shared: &Arc<Shared>| {
        let mut chunk = vec![0; 16 << 10];
        while let Ok(read @ 1..) = errors.read(&mut chunk) {
            let said = chunk.get(..read).unwrap_or_default();
            remember(&tail, said);
            shared.pass_on(said);
        }
    };
    let end = move |shared: &Arc<Shared>| {
        // Its number is left to it, so that its group can still be named.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(pid), options), Err(rustix::io::Errno::INTR)) {}
        shared.send(Job::Ended);
    };
    vec![Box::new(complaints), Box::new(end)]
}

/// Adds to what was said last.
fn remember(tail: &Mutex<Vec<u8>>, bytes: &[u8]) {
    let mut tail = lock(tail);
    tail.extend_from_slice(bytes);
    // Now and then is enough: a few times as much is bounded, too.
    let over = tail.len().saturating_sub(TAIL_BYTES);
    if over > 4 * TAIL_BYTES {
        tail.drain(..over);
    }
}

/// How a server ended, in words.
fn describe_end(status: Option<ExitStatus>) -> String {
    match status.map(|status| (status.code(), status.signal())) {
        Some((Some(code), _)) => format!("it ended with exit status {code}"),
        Some((_, Some(signal))) => format!("it was ended by signal {signal}"),
        _ => "nobody knows how it ended".to_owned(),
    }
}
