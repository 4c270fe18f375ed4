//! Programs that are run with an end: bounded time, bounded output, and no
//! process left behind.

use std::io::{self, PipeReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::thread::sleep;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};

use jackline_host::clock::boot_ms;

/// How long is waited for output before the program itself is looked at.
const TICK: Duration = Duration::from_millis(20);

/// The same, once there is no more output.
const SILENT_TICK: Duration = Duration::from_millis(1);

/// How often is read from what others still hold open after a program ended.
const LAST_READS_MAX: usize = 64;

/// How much is read at once.
const CHUNK_BYTES: usize = 16 << 10;

/// A program at work, in a process group of its own.
pub(crate) struct Running {
    child: Child,
    group: Pid,
    streams: Vec<Stream>,
    ended: bool,
}

/// Something that a program writes to.
pub(crate) struct Stream {
    pipe: Option<PipeReader>,
    keep: Keep,
    kept: Vec<u8>,
}

/// Which end of an output is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Keep {
    /// Its first bytes.
    Head(usize),
    /// Its last bytes.
    Tail(usize),
}

impl Stream {
    pub(crate) fn new(pipe: PipeReader, keep: Keep) -> Self {
        Self { pipe: Some(pipe), keep, kept: Vec::new() }
    }

    fn add(&mut self, bytes: &[u8]) {
        match self.keep {
            Keep::Head(most) => {
                let room = most.saturating_sub(self.kept.len());
                self.kept.extend(bytes.iter().take(room));
            }
            Keep::Tail(most) => {
                self.kept.extend_from_slice(bytes);
                // Now and then is enough: twice as much is bounded, too.
                if self.kept.len() > 2 * most {
                    self.kept.drain(..self.kept.len() - most);
                }
            }
        }
    }

    /// Reads once; nothing more is to come where the pipe is at its end.
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

impl Running {
    /// Starts a program that writes to the streams. The command goes with it,
    /// because it holds the other ends.
    pub(crate) fn start(mut command: Command, streams: Vec<Stream>) -> io::Result<Self> {
        let child = command.process_group(0).spawn()?;
        let group = Pid::from_child(&child);
        Ok(Self { child, group, streams, ended: false })
    }

    /// Waits until it ends, but no longer than is allowed.
    pub(crate) fn wait(&mut self, allowed: Duration) -> io::Result<Option<ExitStatus>> {
        let until =
            boot_ms().saturating_add(u64::try_from(allowed.as_millis()).unwrap_or(u64::MAX));
        loop {
            if let Some(status) = self.child.try_wait()? {
                self.ended = true;
                // What it started may hold on to its output, and go on for ever.
                let _ = (0..LAST_READS_MAX).find(|_| !self.read(Duration::ZERO));
                return Ok(Some(status));
            }
            let left = Duration::from_millis(until.saturating_sub(boot_ms()));
            if left.is_zero() {
                return Ok(None);
            }
            if self.is_silent() {
                sleep(SILENT_TICK);
            } else {
                self.read(left.min(TICK));
            }
        }
    }

    /// Ends it with everything it started: asks, and after the grace insists.
    pub(crate) fn end(mut self, grace: Duration) -> Vec<Vec<u8>> {
        self.kill(grace);
        self.outputs()
    }

    /// What was kept of each stream.
    pub(crate) fn outputs(&mut self) -> Vec<Vec<u8>> {
        let kept = |stream: &mut Stream| {
            let mut kept = std::mem::take(&mut stream.kept);
            if let Keep::Tail(most) = stream.keep {
                kept.drain(..kept.len().saturating_sub(most));
            }
            kept
        };
        self.streams.iter_mut().map(kept).collect()
    }

    fn kill(&mut self, grace: Duration) {
        if self.ended {
            return;
        }
        self.ended = true;
        if !grace.is_zero() {
            let _ = kill_process_group(self.group, Signal::TERM);
            let until = boot_ms() + u64::try_from(grace.as_millis()).unwrap_or(0);
            // Whoever is left of the group holds on to the output. The program
            // itself is not waited for yet, so that the group keeps its number.
            while !self.is_silent() && boot_ms() < until {
                self.read(TICK);
            }
        }
        let _ = kill_process_group(self.group, Signal::KILL);
        // One that the kernel itself does not let go is not waited for.
        for _ in 0..100 {
            match self.child.try_wait() {
                Ok(None) => sleep(SILENT_TICK),
                Ok(Some(_)) | Err(_) => return,
            }
        }
    }

    fn is_silent(&self) -> bool {
        self.streams.iter().all(|stream| stream.pipe.is_none())
    }

    /// Waits for output and reads it; whether there was any.
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

impl Drop for Running {
    fn drop(&mut self) {
        self.kill(Duration::ZERO);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::{Path, PathBuf};
    use std::process::Stdio;

    use super::*;

    /// Writes a program. Another process does, so that no thread that starts a
    /// program in the same moment holds it open: the system runs no such file.
    pub(crate) fn write_script(path: &Path, text: &str) -> PathBuf {
        let mut writer = Command::new("sh");
        writer.args(["-c", r#"printf '#!/bin/sh\n%s\n' "$1" > "$0" && chmod +x "$0""#]);
        assert!(writer.arg(path).arg(text).status().unwrap().success());
        path.to_owned()
    }

    const LONG: Duration = Duration::from_mins(1);

    /// A shell at work, its output kept by one stream.
    fn shell(line: &str, keep: Keep) -> Running {
        let (pipe, writer) = io::pipe().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", line]).stdin(Stdio::null()).stdout(writer).stderr(Stdio::null());
        Running::start(command, vec![Stream::new(pipe, keep)]).unwrap()
    }

    fn output(mut running: Running) -> String {
        String::from_utf8(running.outputs().remove(0)).unwrap()
    }

    #[test]
    fn a_program_ends_with_its_status_and_its_output() {
        let mut running = shell("echo one; echo two; exit 3", Keep::Head(100));
        assert_eq!(running.wait(LONG).unwrap().and_then(|status| status.code()), Some(3));
        assert_eq!(output(running), "one\ntwo\n");
    }

    #[test]
    fn either_end_of_a_long_output_is_kept() {
        let line = "i=0; while [ $i -lt 3000 ]; do echo $i; i=$((i+1)); done";
        let mut head = shell(line, Keep::Head(8));
        assert!(head.wait(LONG).unwrap().is_some());
        assert_eq!(output(head), "0\n1\n2\n3\n");
        let mut tail = shell(line, Keep::Tail(10));
        assert!(tail.wait(LONG).unwrap().is_some());
        assert_eq!(output(tail), "2998\n2999\n");
    }

    #[test]
    fn one_that_takes_too_long_is_ended_with_all_it_started() {
        let mut running = shell("sleep 1000 & echo $!; sleep 1000", Keep::Head(100));
        while running.streams[0].kept.is_empty() {
            running.read(TICK);
        }
        assert_eq!(running.wait(Duration::from_millis(1)).unwrap(), None);
        let outputs = running.end(LONG);
        let started = String::from_utf8(outputs[0].clone()).unwrap();
        let pid = Pid::from_raw(started.trim().parse().unwrap()).unwrap();
        assert!(is_gone(pid), "{started}");
    }

    #[test]
    fn one_that_does_not_listen_is_ended_all_the_same() {
        let running = shell("trap '' TERM; sleep 1000 & echo $!; wait", Keep::Head(100));
        let mut running = running;
        while running.streams[0].kept.is_empty() {
            running.read(TICK);
        }
        let outputs = running.end(Duration::from_millis(30));
        let started = String::from_utf8(outputs[0].clone()).unwrap();
        let pid = Pid::from_raw(started.trim().parse().unwrap()).unwrap();
        assert!(is_gone(pid), "{started}");
    }

    #[test]
    fn what_stays_behind_and_talks_for_ever_is_not_listened_to() {
        let mut running = shell("yes & exit 0", Keep::Tail(100));
        let group = running.group;
        assert!(running.wait(LONG).unwrap().is_some());
        let _ = kill_process_group(group, Signal::KILL);
    }

    /// Whether a process is gone, or as good as.
    fn is_gone(pid: Pid) -> bool {
        let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
        (0..1000).any(|_| {
            sleep(SILENT_TICK);
            std::fs::read_to_string(&path).map_or(true, |stat| stat.contains(") Z "))
        })
    }
}
