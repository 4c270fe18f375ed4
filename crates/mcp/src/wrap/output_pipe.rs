//! A buffered output pipe: a write never waits for the process that reads.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pipe::PIPE_BUF;

use super::clock::now_ms;

/// How much capacity a buffer keeps after it was emptied.
const SPARE_BYTES: usize = 64 << 10;

/// A pipe, with the bytes that did not fit into it yet.
pub(super) struct OutputPipe {
    pipe: Arc<OwnedFd>,
    /// Whether a write to the pipe blocks when the pipe is full.
    can_block: bool,
    buffer: Vec<u8>,
    /// How many bytes of the buffer were written.
    written_bytes: usize,
    /// When the pipe last accepted bytes.
    last_write_ms: u64,
}

impl OutputPipe {
    /// For a pipe that may be shared with other processes, so its blocking mode must not change.
    pub(super) fn new(pipe: OwnedFd) -> Self {
        Self {
            pipe: Arc::new(pipe),
            can_block: true,
            buffer: Vec::new(),
            written_bytes: 0,
            last_write_ms: 0,
        }
    }

    /// For a pipe that only this process writes to.
    pub(super) fn new_exclusive(pipe: OwnedFd) -> io::Result<Self> {
        fcntl_setfl(&pipe, fcntl_getfl(&pipe)? | OFlags::NONBLOCK)?;
        Ok(Self { can_block: false, ..Self::new(pipe) })
    }

    /// Appends a line to the buffer and writes as much as fits.
    pub(super) fn push(&mut self, line: &[u8]) -> io::Result<()> {
        if self.buffer.is_empty() {
            self.last_write_ms = now_ms();
        }
        self.buffer.extend_from_slice(line);
        self.flush()
    }

    /// Writes as much of the buffer as fits.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let before = self.written_bytes;
        let end = self.write();
        if self.written_bytes > before {
            self.last_write_ms = now_ms();
        }
        if end.is_err() || self.written_bytes >= self.buffer.len() {
            self.written_bytes = 0;
            self.buffer.clear();
            // Release the memory of a single long line.
            self.buffer.shrink_to(SPARE_BYTES);
        } else if self.written_bytes > SPARE_BYTES.max(self.buffer.len() / 2) {
            // Drop the written part, so that the buffer does not grow without limit for a slow
            // reader.
            self.buffer.drain(..self.written_bytes);
            self.written_bytes = 0;
        }
        end
    }

    fn write(&mut self) -> io::Result<()> {
        loop {
            let mut rest = self.buffer.get(self.written_bytes..).unwrap_or_default();
            if self.can_block {
                // The kernel accepts this many bytes without blocking once there is room.
                rest = rest.get(..PIPE_BUF).unwrap_or(rest);
            }
            if rest.is_empty() || self.can_block && !has_room(self.pipe.as_fd()) {
                return Ok(());
            }
            match rustix::io::write(&self.pipe, rest) {
                Ok(some) => self.written_bytes += some,
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The unwritten rest, if there is any.
    pub(super) fn backlog(&self) -> Option<Backlog> {
        let bytes = self.buffer.len() - self.written_bytes;
        let backlog =
            || Backlog { pipe: Arc::clone(&self.pipe), bytes, since_ms: self.last_write_ms };
        (bytes > 0).then(backlog)
    }
}

/// The bytes that a reader has not accepted yet.
pub(super) struct Backlog {
    /// The pipe that will become writable.
    pub(super) pipe: Arc<OwnedFd>,
    pub(super) bytes: usize,
    /// When the pipe last accepted bytes.
    pub(super) since_ms: u64,
}

/// Whether the pipe can be written to without blocking. A broken pipe counts as writable, so that
/// the write reports the error.
fn has_room(pipe: BorrowedFd<'_>) -> bool {
    let mut look = [PollFd::from_borrowed_fd(pipe, PollFlags::OUT)];
    poll(&mut look, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use std::io::PipeReader;
    use std::io::Read as _;

    use super::*;

    fn pipes() -> [(PipeReader, OutputPipe); 2] {
        let pipe = || std::io::pipe().unwrap();
        let ((one, to_one), (two, to_two)) = (pipe(), pipe());
        [
            (one, OutputPipe::new(to_one.into())),
            (two, OutputPipe::new_exclusive(to_two.into()).unwrap()),
        ]
    }

    #[test]
    fn unread_lines_are_buffered_and_arrive_complete() {
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
    fn a_slow_reader_does_not_grow_the_buffer() {
        for (mut reader, mut outlet) in pipes() {
            let mut some = vec![0; 30_000];
            outlet.push(&vec![b'x'; 300_000]).unwrap();
            for _ in 0..1_000 {
                reader.read_exact(&mut some).unwrap();
                outlet.push(&some).unwrap();
            }
            assert_eq!(outlet.backlog().map(|backlog| backlog.bytes > 200_000), Some(true));
            assert!(outlet.buffer.len() < 1 << 20, "{}", outlet.buffer.len());
        }
    }

    #[test]
    fn a_closed_pipe_is_an_error_and_drops_the_buffer() {
        for (reader, mut outlet) in pipes() {
            outlet.push(&vec![b'x'; 200_000]).unwrap();
            drop(reader);
            assert_eq!(outlet.flush().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
            assert!(outlet.backlog().is_none());
        }
    }
}
