//! The lines of a file, packed or not, none of them longer than can be held.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jackline_journal::Export;
use rustix::fs::{Mode, OFlags};

use super::gzip::{Gunzip, MAGIC};

/// The longest line that is read: a whole run may be one.
pub const LINE_BYTES_MAX: usize = 64 << 20;

const BUFFER_BYTES: usize = 256 << 10;

/// A file of lines, unpacked where it is gzip.
pub type Source = Box<dyn BufRead + Send>;

/// Opens a regular file, or the journal in an export, and counts in `read` how much of it was read. Nothing
/// else is waited for, such as a pipe that nobody writes to. That it is packed
/// shows in its first bytes, whatever it is called.
pub fn open_lines(path: &Path, read: Arc<AtomicU64>) -> io::Result<Source> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    let mut file = BufReader::with_capacity(BUFFER_BYTES, Counted { file, read });
    if !file.fill_buf()?.starts_with(&MAGIC) {
        return exported(unmarked(file)?);
    }
    let unpacked = BufReader::with_capacity(BUFFER_BYTES, Gunzip::new(file));
    exported(unmarked(unpacked)?)
}

/// The lines of an export are those of its journal.
fn exported(mut source: impl BufRead + Send + 'static) -> io::Result<Source> {
    if !Export::begins(source.fill_buf()?) {
        return Ok(Box::new(source));
    }
    let export = Export::read(&mut source)?;
    let export = export.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok(Box::new(io::Cursor::new(export.lines())))
}

/// Some editors begin a file with a mark that is no part of its text.
fn unmarked<S: BufRead>(mut source: S) -> io::Result<S> {
    const MARK: &[u8] = "\u{feff}".as_bytes();
    if source.fill_buf()?.starts_with(MARK) {
        source.consume(MARK.len());
    }
    Ok(source)
}

struct Counted {
    file: File,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(out)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// How a line came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnd {
    /// Whole, its newline read and left out.
    Whole,
    /// The last one, without a newline.
    Torn,
    /// Longer than is read; what was read of it is left out.
    TooLong,
}

/// Appends the next line to `line`, or says that there is none.
pub fn read_line(source: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Option<LineEnd>> {
    let before = line.len();
    let most = LINE_BYTES_MAX as u64 + 1;
    let count = source.by_ref().take(most).read_until(b'\n', line)?;
    if count == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
        return Ok(Some(LineEnd::Whole));
    }
    if count <= LINE_BYTES_MAX {
        return Ok(Some(LineEnd::Torn));
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
        assert_eq!(ends, [(LineEnd::Whole, 1), (LineEnd::Whole, 1), (LineEnd::Torn, 2)]);
        assert_eq!(lines, b"ab");
    }

    #[test]
    fn a_mark_at_the_beginning_is_no_part_of_the_first_line() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("runs.jsonl");
        for (held, expected) in [("\u{feff}{}\n", "{}"), ("a\u{feff}\n", "a\u{feff}"), ("", "")] {
            std::fs::write(&path, held).unwrap();
            let mut line = Vec::new();
            read_line(&mut open_lines(&path, Arc::default()).unwrap(), &mut line).unwrap();
            assert_eq!(line, expected.as_bytes());
        }
    }

    #[test]
    fn a_line_without_end_is_passed_over_and_not_held() {
        let long = io::repeat(b'x').take(LINE_BYTES_MAX as u64 * 2);
        let mut source = BufReader::new(long.chain(&b"\nnext\n"[..]));
        let mut line = b"kept".to_vec();
        assert_eq!(read_line(&mut source, &mut line).unwrap(), Some(LineEnd::TooLong));
        assert_eq!(line, b"kept");
        assert!(line.capacity() <= BUFFER_BYTES);
        assert_eq!(read_line(&mut source, &mut line).unwrap(), Some(LineEnd::Whole));
        assert_eq!(line, b"keptnext");
    }
}
