//! A file, read in pieces of fixed size from front to back.

use std::fs::File;
use std::io::Read as _;

use memchr::{memchr, memchr_iter};
use rustix::io::Errno;

const PIECE_BYTES: usize = 64 << 10;

/// What was read and not used yet, and where that is in the file.
pub(super) struct Source {
    file: File,
    piece: Vec<u8>,
    used: usize,
    position: u64,
    /// The end was seen. What is appended after that belongs to another look, else
    /// half a line and its rest would be two.
    ended: bool,
}

/// How far lines were gone through.
pub(super) struct Counted {
    pub(super) newlines: u64,
    /// Whether the last byte belongs to a line that has no end.
    pub(super) open: bool,
    /// Whether the file ended; otherwise the budget did.
    pub(super) ended: bool,
}

impl Source {
    pub(super) fn new(file: File) -> Source {
        let piece = Vec::with_capacity(PIECE_BYTES);
        Source { file, piece, used: 0, position: 0, ended: false }
    }

    /// Where the next byte is.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// The next bytes; none at the end.
    pub(super) fn peek(&mut self) -> Result<&[u8], Errno> {
        if self.used >= self.piece.len() && !self.ended {
            self.piece.resize(PIECE_BYTES, 0);
            self.used = 0;
            let read = loop {
                match self.file.read(&mut self.piece) {
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    read => break read,
                }
            };
            let outcome = read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO));
            self.piece.truncate(*outcome.as_ref().unwrap_or(&0));
            self.ended = outcome? == 0;
        }
        Ok(self.piece.get(self.used..).unwrap_or_default())
    }

    fn advance(&mut self, bytes: usize) {
        self.used += bytes;
        self.position += bytes as u64;
    }

    /// Goes past `lines` ends of lines, or `budget` bytes, or to the end.
    pub(super) fn skip_lines(&mut self, lines: u64, budget: u64) -> Result<Counted, Errno> {
        let mut counted = Counted { newlines: 0, open: false, ended: false };
        let until = self.position.saturating_add(budget);
        while counted.newlines < lines && self.position < until {
            let piece = self.peek()?;
            let Some(last) = piece.last() else {
                counted.ended = true;
                break;
            };
            let wanted = lines - counted.newlines;
            let found = memchr_iter(b'\n', piece).count() as u64;
            let take = if found < wanted {
                counted.newlines += found;
                counted.open = *last != b'\n';
                piece.len()
            } else {
                counted.newlines = lines;
                counted.open = false;
                let nth = usize::try_from(wanted - 1).unwrap_or(usize::MAX);
                memchr_iter(b'\n', piece).nth(nth).map_or(piece.len(), |at| at + 1)
            };
            self.advance(take);
        }
        Ok(counted)
    }

    /// Takes bytes of a line into `out`, at most `max`, never its end.
    /// Says whether the line's end is next.
    pub(super) fn take_line(&mut self, out: &mut Vec<u8>, max: usize) -> Result<bool, Errno> {
        let mut left = max;
        loop {
            let piece = self.peek()?;
            if piece.is_empty() {
                return Ok(true);
            }
            let end = memchr(b'\n', piece);
            let take = end.unwrap_or(piece.len()).min(left);
            out.extend_from_slice(piece.get(..take).unwrap_or_default());
            self.advance(take);
            left -= take;
            if end == Some(take) {
                return Ok(true);
            }
            if left == 0 {
                return Ok(false);
            }
        }
    }

    /// Goes past bytes of a line, at most `budget`. Says whether the line's end is next.
    pub(super) fn skip_line(&mut self, budget: u64) -> Result<bool, Errno> {
        let until = self.position.saturating_add(budget);
        loop {
            let left = usize::try_from(until - self.position).unwrap_or(usize::MAX);
            let piece = self.peek()?;
            if piece.is_empty() {
                return Ok(true);
            }
            let end = memchr(b'\n', piece);
            let take = end.unwrap_or(piece.len()).min(left);
            self.advance(take);
            if end == Some(take) {
                return Ok(true);
            }
            if take == left {
                return Ok(false);
            }
        }
    }

    /// Takes the end of a line, unless the file ends without one.
    pub(super) fn take_end(&mut self) -> Result<bool, Errno> {
        let there = self.peek()?.first() == Some(&b'\n');
        if there {
            self.advance(1);
        }
        Ok(there)
    }
}
