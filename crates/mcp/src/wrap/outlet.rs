//! Where lines go out: who writes never waits for who reads.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pipe::PIPE_BUF;

use super::clock::now_ms;

/// How much room is kept for what comes next.
const ROOM_BYTES: usize = 64 << 10;

/// A pipe, and what it did not take yet.
pub(super) struct Outlet {
    pipe: Arc<OwnedFd>,
    /// Whether a write waits where there is no room.
    waits: bool,
    left: Vec<u8>,
    /// How much of that it took.
    taken: usize,
    /// When it took something last.
    moved_ms: u64,
}

impl Outlet {
    /// A pipe that may be somebody else's, too: how it is written to stays as it is.
    pub(super) fn new(pipe: OwnedFd) -> Self {
        Self { pipe: Arc::new(pipe), waits: true, left: Vec::new(), taken: 0, moved_ms: 0 }
    }

    /// A pipe that is nobody else's.
    pub(super) fn own(pipe: OwnedFd) -> io::Result<Self> {
        fcntl_setfl(&pipe, fcntl_getfl(&pipe)? | OFlags::NONBLOCK)?;
        Ok(Self { waits: false, ..Self::new(pipe) })
    }

    /// Writes a line behind what is left of others, as far as it goes.
    pub(super) fn push(&mut self, line: &[u8]) -> io::Result<()> {
        if self.left.is_empty() {
            self.moved_ms = now_ms();
        }
        self.left.extend_from_slice(line);
        self.flush()
    }

    /// Writes what is left, as far as it goes.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let before = self.taken;
        let end = self.write();
        if self.taken > before {
            self.moved_ms = now_ms();
        }
        if end.is_err() || self.taken >= self.left.len() {
            self.taken = 0;
            self.left.clear();
            // One long line must not keep its room for ever.
            self.left.shrink_to(ROOM_BYTES);
        } else if self.taken > ROOM_BYTES.max(self.left.len() / 2) {
            // Nor may what was taken pile up before somebody who is always a little behind.
            self.left.drain(..self.taken);
            self.taken = 0;
        }
        end
    }

    fn write(&mut self) -> io::Result<()> {
        loop {
            let mut rest = self.left.get(self.taken..).unwrap_or_default();
            if self.waits {
                // So much goes in without waiting once there is room.
                rest = rest.get(..PIPE_BUF).unwrap_or(rest);
            }
            if rest.is_empty() || self.waits && !has_room(self.pipe.as_fd()) {
                return Ok(());
            }
            match rustix::io::write(&self.pipe, rest) {
                Ok(some) => self.taken += some,
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// What waits for whoever reads, if anything does.
    pub(super) fn backlog(&self) -> Option<Backlog> {
        let bytes = self.left.len() - self.taken;
        let backlog = || Backlog { pipe: Arc::clone(&self.pipe), bytes, since_ms: self.moved_ms };
        (bytes > 0).then(backlog)
    }
}

/// What somebody did not take yet.
pub(super) struct Backlog {
    /// Where there will be room again.
    pub(super) pipe: Arc<OwnedFd>,
    pub(super) bytes: usize,
    /// When they took something last.
    pub(super) since_ms: u64,
}

/// Whether a pipe takes something at once. One that is broken does: the error is one, too.
fn has_room(pipe: BorrowedFd<'_>) -> bool {
    let mut look = [PollFd::from_borrowed_fd(pipe, PollFlags::OUT)];
    poll(&mut look, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use std::io::PipeReader;
    use std::io::Read as _;

    use super::*;

    fn pipes() -> [(PipeReader, Outlet); 2] {
        let pipe = || std::io::pipe().unwrap();
        let ((one, to_one), (two, to_two)) = (pipe(), pipe());
        [(one, Outlet::new(to_one.into())), (two, Outlet::own(to_two.into()).unwrap())]
    }

    #[test]
    fn what_nobody_reads_waits_and_comes_whole() {
        for (mut reader, mut outlet) in pipes() {
            let lines: Vec<String> =
                (0..9_000).map(|line| format!("line {line} of many\n")).collect();
            for line in &lines {
                outlet.push(line.as_bytes()).unwrap();
            }
            let backlog = outlet.backlog().unwrap();
            assert!(backlog.bytes > 0 && backlog.since_ms > 0);
            drop(backlog);
            let mut got = Vec::new();
            while outlet.backlog().is_some() {
                let mut some = [0; 10_000];
                let read = reader.read(&mut some).unwrap();
                got.extend_from_slice(&some[..read]);
                outlet.flush().unwrap();
            }
            drop(outlet);
            reader.read_to_end(&mut got).unwrap();
            assert_eq!(String::from_utf8(got).unwrap(), lines.concat());
        }
    }

    #[test]
    fn who_is_always_behind_costs_no_more_with_time() {
        for (mut reader, mut outlet) in pipes() {
            let mut some = vec![0; 30_000];
            outlet.push(&vec![b'x'; 300_000]).unwrap();
            for _ in 0..1_000 {
                reader.read_exact(&mut some).unwrap();
                outlet.push(&some).unwrap();
            }
            assert_eq!(outlet.backlog().map(|backlog| backlog.bytes > 200_000), Some(true));
            assert!(outlet.left.len() < 1 << 20, "{}", outlet.left.len());
        }
    }

    #[test]
    fn who_has_left_is_said_and_nothing_waits_for_them() {
        for (reader, mut outlet) in pipes() {
            outlet.push(&vec![b'x'; 200_000]).unwrap();
            drop(reader);
            assert_eq!(outlet.flush().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
            assert!(outlet.backlog().is_none());
        }
    }
}
