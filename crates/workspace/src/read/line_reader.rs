//! Reads a file from start to end, in chunks of fixed size.

use std::fs::File;
use std::io::Read as _;

use memchr::{memchr, memchr_iter};
use rustix::io::Errno;

const CHUNK_BYTES: usize = 64 << 10;

/// The chunk that was read but not used completely, and its position in the file.
pub(super) struct LineReader {
    file: File,
    chunk: Vec<u8>,
    chunk_bytes_used: usize,
    position: u64,
    /// Whether the end was reached. Bytes that are appended later belong to the next read, so that
    /// a line is not split in two.
    is_at_end: bool,
}

/// The result of skipping lines.
pub(super) struct LineSkip {
    pub(super) newlines: u64,
    /// Whether the last skipped byte belongs to a line without an end.
    pub(super) is_in_line: bool,
    /// Whether the file ended. If not, the budget was used up.
    pub(super) is_at_end: bool,
}

impl LineReader {
    pub(super) fn new(file: File) -> LineReader {
        let piece = Vec::with_capacity(CHUNK_BYTES);
        LineReader { file, chunk: piece, chunk_bytes_used: 0, position: 0, is_at_end: false }
    }

    /// The position of the next byte.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// The next bytes; empty at the end of the file.
    pub(super) fn peek(&mut self) -> Result<&[u8], Errno> {
        if self.chunk_bytes_used >= self.chunk.len() && !self.is_at_end {
            self.chunk.resize(CHUNK_BYTES, 0);
            self.chunk_bytes_used = 0;
            let read = loop {
                match self.file.read(&mut self.chunk) {
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    read => break read,
                }
            };
            let outcome = read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO));
            self.chunk.truncate(*outcome.as_ref().unwrap_or(&0));
            self.is_at_end = outcome? == 0;
        }
        Ok(self.chunk.get(self.chunk_bytes_used..).unwrap_or_default())
    }

    fn advance(&mut self, bytes: usize) {
        self.chunk_bytes_used += bytes;
        self.position += bytes as u64;
    }

    /// Skips `lines` line ends or `budget` bytes, or stops at the end of the file.
    pub(super) fn skip_lines(&mut self, lines: u64, budget: u64) -> Result<LineSkip, Errno> {
        let mut counted = LineSkip { newlines: 0, is_in_line: false, is_at_end: false };
        let until = self.position.saturating_add(budget);
        while counted.newlines < lines && self.position < until {
            let piece = self.peek()?;
            let Some(last) = piece.last() else {
                counted.is_at_end = true;
                break;
            };
            let wanted = lines - counted.newlines;
            let found = memchr_iter(b'\n', piece).count() as u64;
            let take = if found < wanted {
                counted.newlines += found;
                counted.is_in_line = *last != b'\n';
                piece.len()
            } else {
                counted.newlines = lines;
                counted.is_in_line = false;
                let nth = usize::try_from(wanted - 1).unwrap_or(usize::MAX);
                memchr_iter(b'\n', piece).nth(nth).map_or(piece.len(), |at| at + 1)
            };
            self.advance(take);
        }
        Ok(counted)
    }

    /// Appends up to `max` bytes of a line to `out`, without its line end. Returns whether the line
    /// end is next.
    pub(super) fn take_line(&mut self, out: &mut Vec<u8>, max: usize) -> Result<bool, Errno> {
        let mut remaining = max;
        loop {
            let piece = self.peek()?;
            if piece.is_empty() {
                return Ok(true);
            }
            let end = memchr(b'\n', piece);
            let take = end.unwrap_or(piece.len()).min(remaining);
            out.extend_from_slice(piece.get(..take).unwrap_or_default());
            self.advance(take);
            remaining -= take;
            if end == Some(take) {
                return Ok(true);
            }
            if remaining == 0 {
                return Ok(false);
            }
        }
    }

    /// Skips up to `budget` bytes of a line. Returns whether the line end is next.
    pub(super) fn skip_line(&mut self, budget: u64) -> Result<bool, Errno> {
        let until = self.position.saturating_add(budget);
        loop {
            let remaining = usize::try_from(until - self.position).unwrap_or(usize::MAX);
            let piece = self.peek()?;
            if piece.is_empty() {
                return Ok(true);
            }
            let end = memchr(b'\n', piece);
            let take = end.unwrap_or(piece.len()).min(remaining);
            self.advance(take);
            if end == Some(take) {
                return Ok(true);
            }
            if take == remaining {
                return Ok(false);
            }
        }
    }

    /// Skips a line end. Returns `false` at the end of the file.
    pub(super) fn skip_line_end(&mut self) -> Result<bool, Errno> {
        let there = self.peek()?.first() == Some(&b'\n');
        if there {
            self.advance(1);
        }
        Ok(there)
    }
}
