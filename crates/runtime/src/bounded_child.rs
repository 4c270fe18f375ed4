//! Runs a program with bounded time and bounded output, and leaves no process behind.

use std::io::{self, PipeReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::thread::sleep;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};

use jackline_host::clock::boot_ms;

/// How long one wait for output lasts before the exit of the program is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The time between two exit checks when all outputs are closed.
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// How often output is read after the program has ended, while its child processes hold the pipe.
const LAST_READS_MAX: usize = 64;

/// How many bytes one read takes.
const CHUNK_BYTES: usize = 16 << 10;

/// A running program in its own process group.
pub(crate) struct BoundedChild {
    child: Child,
    group: Pid,
    streams: Vec<OutputStream>,
    is_reaped: bool,
}

/// One output of a program.
pub(crate) struct OutputStream {
    pipe: Option<PipeReader>,
    end: OutputEnd,
    bytes: Vec<u8>,
}

/// Which end of a long output is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OutputEnd {
    /// The first bytes.
    Head(usize),
    /// The last bytes.
    Tail(usize),
}

impl OutputStream {
    pub(crate) fn new(pipe: PipeReader, keep: OutputEnd) -> Self {
        Self { pipe: Some(pipe), end: keep, bytes: Vec::new() }
    }

    fn add(&mut self, bytes: &[u8]) {
        match self.end {
            OutputEnd::Head(most) => {
                let room = most.saturating_sub(self.bytes.len());
                self.bytes.extend(bytes.iter().take(room));
            }
            OutputEnd::Tail(most) => {
                self.bytes.extend_from_slice(bytes);
                // Truncate rarely. The buffer stays below twice the limit, plus one chunk.
                if self.bytes.len() > 2 * most {
                    self.bytes.drain(..self.bytes.len() - most);
                }
            }
        }
    }

    /// Reads once. At the end of the pipe, the stream closes.
    fn read(&mut self) {
        let mut chunk = [0; CHUNK_BYTES];
        let Some(pipe) = &mut self.pipe else { return };
        match pipe.read(&mut chunk) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => self.pipe = None,
            Ok(read) => self.add(chunk.get(..read).unwrap_or_default()),
        }
    }
}

impl BoundedChild {
    /// Starts a program that writes to the streams. This consumes the command, because it holds the
    /// other ends of the pipes.
    pub(crate) fn start(mut command: Command, streams: Vec<OutputStream>) -> io::Result<Self> {
        let child = command.process_group(0).spawn()?;
        let group = Pid::from_child(&child);
        Ok(Self { child, group, streams, is_reaped: false })
    }

    /// Waits until the program ends, at most for the given time.
    pub(crate) fn wait(&mut self, allowed: Duration) -> io::Result<Option<ExitStatus>> {
        let until =
            boot_ms().saturating_add(u64::try_from(allowed.as_millis()).unwrap_or(u64::MAX));
        loop {
            if let Some(status) = self.child.try_wait()? {
                self.is_reaped = true;
                // Child processes of the program may hold its output open for ever.
                let _ = (0..LAST_READS_MAX).find(|_| !self.read(Duration::ZERO));
                return Ok(Some(status));
            }
            let remaining = Duration::from_millis(until.saturating_sub(boot_ms()));
            if remaining.is_zero() {
                return Ok(None);
            }
            if self.are_outputs_closed() {
                sleep(EXIT_POLL_INTERVAL);
            } else {
                self.read(remaining.min(POLL_INTERVAL));
            }
        }
    }

    /// Ends the program and all its child processes: first with SIGTERM, after the grace period
    /// with SIGKILL.
    pub(crate) fn end(mut self, grace: Duration) -> Vec<Vec<u8>> {
        self.kill(grace);
        self.take_outputs()
    }

    /// The stored part of each output.
    pub(crate) fn take_outputs(&mut self) -> Vec<Vec<u8>> {
        let take_stored = |stream: &mut OutputStream| {
            let mut stored = std::mem::take(&mut stream.bytes);
            if let OutputEnd::Tail(most) = stream.end {
                stored.drain(..stored.len().saturating_sub(most));
            }
            stored
        };
        self.streams.iter_mut().map(take_stored).collect()
    }

    fn kill(&mut self, grace: Duration) {
        if self.is_reaped {
            return;
        }
        self.is_reaped = true;
        if !grace.is_zero() {
            let _ = kill_process_group(self.group, Signal::TERM);
            let until = boot_ms() + u64::try_from(grace.as_millis()).unwrap_or(0);
            // Processes that remain in the group hold the output open. The program itself is not
            // reaped yet, so that the process group id stays valid.
            while !self.are_outputs_closed() && boot_ms() < until {
                self.read(POLL_INTERVAL);
            }
        }
        let _ = kill_process_group(self.group, Signal::KILL);
        // The kernel may not be able to end a process. Then this stops waiting.
        for _ in 0..100 {
            match self.child.try_wait() {
                Ok(None) => sleep(EXIT_POLL_INTERVAL),
                Ok(Some(_)) | Err(_) => return,
            }
        }
    }

    fn are_outputs_closed(&self) -> bool {
        self.streams.iter().all(|stream| stream.pipe.is_none())
    }

    /// Waits for output and reads it. Returns whether output was ready.
    fn read(&mut self, most: Duration) -> bool {
        let ready = {
            let open = self.streams.iter().filter_map(|stream| stream.pipe.as_ref());
            let mut fds: Vec<PollFd<'_>> =
                open.map(|pipe| PollFd::new(pipe, PollFlags::IN)).collect();
            let most = Timespec::try_from(most).unwrap_or_default();
            match poll(&mut fds, Some(&most)) {
                Ok(0) | Err(_) => return false,
                Ok(_) => fds.iter().map(|fd| !fd.revents().is_empty()).collect::<Vec<bool>>(),
            }
        };
        let open = self.streams.iter_mut().filter(|stream| stream.pipe.is_some());
        open.zip(ready).filter(|(_, ready)| *ready).for_each(|(stream, _)| stream.read());
        true
    }
}

impl Drop for BoundedChild {
    fn drop(&mut self) {
        self.kill(Duration::ZERO);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::{Path, PathBuf};
    use std::process::Stdio;

    use super::*;

    /// Writes a script. A separate process writes it: if a thread of this process started another
    /// program meanwhile, that program would inherit the open file, and Linux refuses to run a file
    /// that is open for writing.
    pub(crate) fn write_script(path: &Path, text: &str) -> PathBuf {
        let mut writer = Command::new("sh");
        writer.args(["-c", r#"printf '#!/bin/sh\n%s\n' "$1" > "$0" && chmod +x "$0""#]);
        assert!(writer.arg(path).arg(text).status().unwrap().success());
        path.to_owned()
    }

    const LONG: Duration = Duration::from_mins(1);

    /// A running shell whose output goes to one stream.
    fn shell(script: &str, keep: OutputEnd) -> BoundedChild {
        let (pipe, writer) = io::pipe().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null()).stdout(writer).stderr(Stdio::null());
        BoundedChild::start(command, vec![OutputStream::new(pipe, keep)]).unwrap()
    }

    fn output(mut running: BoundedChild) -> String {
        String::from_utf8(running.take_outputs().remove(0)).unwrap()
    }

    #[test]
    fn a_program_ends_with_its_status_and_its_output() {
        let mut running = shell("echo one; echo two; exit 3", OutputEnd::Head(100));
        assert_eq!(running.wait(LONG).unwrap().and_then(|status| status.code()), Some(3));
        assert_eq!(output(running), "one\ntwo\n");
    }

    #[test]
    fn head_or_tail_of_a_long_output_is_stored() {
        let line = "i=0; while [ $i -lt 3000 ]; do echo $i; i=$((i+1)); done";
        let mut head = shell(line, OutputEnd::Head(8));
        assert!(head.wait(LONG).unwrap().is_some());
        assert_eq!(output(head), "0\n1\n2\n3\n");
        let mut tail = shell(line, OutputEnd::Tail(10));
        assert!(tail.wait(LONG).unwrap().is_some());
        assert_eq!(output(tail), "2998\n2999\n");
    }

    #[test]
    fn a_slow_program_is_ended_with_its_child_processes() {
        let mut running = shell("sleep 1000 & echo $!; sleep 1000", OutputEnd::Head(100));
        while running.streams[0].bytes.is_empty() {
            running.read(POLL_INTERVAL);
        }
        assert_eq!(running.wait(Duration::from_millis(1)).unwrap(), None);
        let outputs = running.end(LONG);
        let started = String::from_utf8(outputs[0].clone()).unwrap();
        let pid = Pid::from_raw(started.trim().parse().unwrap()).unwrap();
        assert!(is_gone(pid), "{started}");
    }

    #[test]
    fn a_program_that_ignores_sigterm_is_killed() {
        let running = shell("trap '' TERM; sleep 1000 & echo $!; wait", OutputEnd::Head(100));
        let mut running = running;
        while running.streams[0].bytes.is_empty() {
            running.read(POLL_INTERVAL);
        }
        let outputs = running.end(Duration::from_millis(30));
        let started = String::from_utf8(outputs[0].clone()).unwrap();
        let pid = Pid::from_raw(started.trim().parse().unwrap()).unwrap();
        assert!(is_gone(pid), "{started}");
    }

    #[test]
    fn endless_output_of_a_remaining_child_is_not_read() {
        let mut running = shell("yes & exit 0", OutputEnd::Tail(100));
        let group = running.group;
        assert!(running.wait(LONG).unwrap().is_some());
        let _ = kill_process_group(group, Signal::KILL);
    }

    /// Whether a process has ended or is a zombie.
    fn is_gone(pid: Pid) -> bool {
        let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
        (0..1000).any(|_| {
            sleep(EXIT_POLL_INTERVAL);
            std::fs::read_to_string(&path).map_or(true, |stat| stat.contains(") Z "))
        })
    }
}
