//! A server that is a process: started in a group of its own, written to with an end,
//! and ended with everything it has started.

use std::io::{self, Read as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::clock::now_ms;
use super::ledger::Open;
use super::server::{Ear, Server, lock};
use super::shared::{Job, Shared};
use super::to_client;

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
    input: Input,
    /// The last it said on standard error.
    tail: Arc<Mutex<Vec<u8>>>,
}

impl Process {
    /// Starts a server; gives what hears it, too.
    pub(super) fn start(words: &[String]) -> io::Result<(Self, Vec<Ear>)> {
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
        fcntl_setfl(&input, fcntl_getfl(&input)? | OFlags::NONBLOCK)?;
        let (group, tail) = (Pid::from_child(&child), Arc::default());
        let ears = ears(output, errors, Arc::clone(&tail), group);
        let input = Input(Mutex::new(Some(input)));
        Ok((Self { child: Mutex::new(child), group, input, tail }, ears))
    }

    /// Whether the process has ended; it is not waited for.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        !matches!(waitid(WaitId::Pid(self.group), options), Ok(None))
    }
}

impl Server for Process {
    fn send(&self, shared: &Shared, mut line: Vec<u8>) {
        line.push(b'\n');
        // One that is gone is noticed by its end.
        if let Err(error) = self.input.write(&line, shared.timeout_ms)
            && error.kind() == io::ErrorKind::TimedOut
        {
            let seconds = shared.timeout_ms / 1000;
            shared.send(Job::Lost(format!("it has not read its input for {seconds} seconds")));
        }
    }

    fn take_back(&self, _: &Open, notice: Option<&str>) {
        if let Some(notice) = notice {
            self.input.write_now(format!("{notice}\n").as_bytes());
        }
    }

    fn close(&self) {
        self.input.close();
    }

    fn end(&self, _: &Shared) -> String {
        self.input.close();
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

/// What hears a process: what it says, what it complains about, and its end.
fn ears(
    output: ChildStdout,
    mut errors: ChildStderr,
    tail: Arc<Mutex<Vec<u8>>>,
    pid: Pid,
) -> Vec<Ear> {
    let complaints = move |shared: &Arc<Shared>| {
        let mut chunk = vec![0; 16 << 10];
        while let Ok(read @ 1..) = errors.read(&mut chunk) {
            let said = chunk.get(..read).unwrap_or_default();
            remember(&tail, said);
            let _ = lock(&shared.errors).write_all(said);
        }
    };
    let end = move |shared: &Arc<Shared>| {
        // Its number is left to it, so that its group can still be named.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(pid), options), Err(rustix::io::Errno::INTR)) {}
        shared.send(Job::Ended);
    };
    vec![
        Box::new(move |shared| to_client::run(shared, output)),
        Box::new(complaints),
        Box::new(end),
    ]
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

/// The standard input of a server.
struct Input(Mutex<Option<ChildStdin>>);

impl Input {
    /// Writes a line, as long as the server reads it. One that does not for so long
    /// is not to be talked to: half a line can't be taken back.
    fn write(&self, line: &[u8], allowed_ms: u64) -> io::Result<()> {
        let mut input = lock(&self.0);
        let Some(pipe) = input.as_mut() else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let written = write_by(pipe, line, now_ms().saturating_add(allowed_ms));
        if written.is_err() {
            *input = None;
        }
        written
    }

    /// Writes a short line if that takes no time, and nobody else is writing.
    fn write_now(&self, line: &[u8]) {
        if let Ok(mut input) = self.0.try_lock()
            && let Some(pipe) = input.as_mut()
            && line.len() <= rustix::pipe::PIPE_BUF
        {
            // That much goes in at once or not at all.
            let _ = pipe.write(line);
        }
    }

    /// Says that nothing more will come.
    fn close(&self) {
        // Somebody who writes to a server that does not read keeps the lock.
        if let Ok(mut input) = self.0.try_lock() {
            *input = None;
        }
    }
}

fn write_by(pipe: &mut ChildStdin, mut rest: &[u8], until_ms: u64) -> io::Result<()> {
    while !rest.is_empty() {
        match pipe.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => rest = rest.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let left = until_ms.saturating_sub(now_ms());
                if left == 0 {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                let left = Timespec::try_from(Duration::from_millis(left)).unwrap_or_default();
                let _ = poll(&mut [PollFd::new(pipe, PollFlags::OUT)], Some(&left));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
