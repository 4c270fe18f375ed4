//! Reads the lines of a plain or packed file, with a limit for their length.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jackline_journal::Export;
use rustix::fs::{Mode, OFlags};

use super::gzip::{Gunzip, MAGIC};

/// The longest line that is read. A whole run may be one line.
pub const LINE_BYTES_MAX: usize = 64 << 20;

const BUFFER_BYTES: usize = 256 << 10;

/// A source of lines, unpacked if it is gzip.
pub type BacktestInput = Box<dyn BufRead + Send>;

/// Opens a regular file, or the journal in an export, and counts the bytes read in `read`. This
/// never waits, for example for a pipe without a writer. A packed file is recognised by its first
/// bytes, whatever its name is.
pub fn open_lines(path: &Path, read: Arc<AtomicU64>) -> io::Result<BacktestInput> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut file = BufReader::with_capacity(BUFFER_BYTES, CountingFile { file, read });
    if !file.fill_buf()?.starts_with(&MAGIC) {
        return open_export(skip_byte_order_mark(file)?);
    }
    let unpacked = BufReader::with_capacity(BUFFER_BYTES, Gunzip::new(file));
    open_export(skip_byte_order_mark(unpacked)?)
}

/// The lines of an export are those of its journal.
fn open_export(mut source: impl BufRead + Send + 'static) -> io::Result<BacktestInput> {
    if !Export::is_export(source.fill_buf()?) {
        return Ok(Box::new(source));
    }
    let export = Export::read(&mut source)?;
    let export = export.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok(Box::new(io::Cursor::new(export.lines())))
}

/// Skips the byte order mark with which some editors begin a file.
fn skip_byte_order_mark<S: BufRead>(mut source: S) -> io::Result<S> {
    const MARK: &[u8] = "\u{feff}".as_bytes();
    if source.fill_buf()?.starts_with(MARK) {
        source.consume(MARK.len());
    }
    Ok(source)
}

struct CountingFile {
    file: File,
    read: Arc<AtomicU64>,
}

impl Read for CountingFile {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(out)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// How a line ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnd {
    /// It is complete, and its newline was removed.
    Complete,
    /// It is the last line and has no newline.
    WithoutNewline,
    /// It is too long, and is left out.
    TooLong,
}

/// Appends the next line to `line`; `None` at the end.
pub fn read_line(source: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Option<LineEnd>> {
    let before = line.len();
    let most = LINE_BYTES_MAX as u64 + 1;
    let count = source.by_ref().take(most).read_until(b'\n', line)?;
    if count == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
        return Ok(Some(LineEnd::Complete));
    }
    if count <= LINE_BYTES_MAX {
        return Ok(Some(LineEnd::WithoutNewline));
    }
    line.truncate(before);
    line.shrink_to(BUFFER_BYTES);
    source.skip_until(b'\n')?;
    Ok(Some(LineEnd::TooLong))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_one_by_one() {
        let mut source: &[u8] = b"a\n\nb";
        let mut lines = Vec::new();
        let mut ends = Vec::new();
        while let Some(end) = read_line(&mut source, &mut lines).unwrap() {
            ends.push((end, lines.len()));
        }
        assert_eq!(
            ends,
            [(LineEnd::Complete, 1), (LineEnd::Complete, 1), (LineEnd::WithoutNewline, 2)]
        );
        assert_eq!(lines, b"ab");
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("runs.jsonl");
        for (contents, expected) in [("\u{feff}{}\n", "{}"), ("a\u{feff}\n", "a\u{feff}"), ("", "")]
        {
            std::fs::write(&path, contents).unwrap();
            let mut line = Vec::new();
            read_line(&mut open_lines(&path, Arc::default()).unwrap(), &mut line).unwrap();
            assert_eq!(line, expected.as_bytes());
        }
    }

    #[test]
    fn a_too_long_line_is_skipped_with_bounded_memory() {
        let long = io::repeat(b'x').take(LINE_BYTES_MAX as u64 * 2);
        let mut source = BufReader::new(long.chain(&b"\nnext\n"[..]));
        let mut line = b"kept".to_vec();
        assert_eq!(read_line(&mut source, &mut line).unwrap(), Some(LineEnd::TooLong));
        assert_eq!(line, b"kept");
        assert!(line.capacity() <= BUFFER_BYTES);
        assert_eq!(read_line(&mut source, &mut line).unwrap(), Some(LineEnd::Complete));
        assert_eq!(line, b"keptnext");
    }
}
