//! Reads one page of a file: its lines, where they are cut, and what comes after it.

use std::fs::File;

use memchr::memchr;
use rustix::io::Errno;
use serde::Serialize;

use super::line_reader::LineReader;
use crate::limits::WorkspaceLimits;

/// How many bytes at the start of a file are searched for NUL bytes.
const BINARY_CHECK_BYTES_MAX: usize = 8 << 10;

/// The page that the caller wants.
pub(super) struct PageRequest {
    /// The first line, counted from 1.
    pub(super) offset: u64,
    pub(super) limit: u64,
    /// If not 0, the page shows only this line, starting at this byte.
    pub(super) line_offset: u64,
}

/// The lines of one page, and what follows.
#[derive(Default)]
pub(super) struct FilePage {
    pub(super) content: Vec<u8>,
    pub(super) lines_shown: u64,
    pub(super) cut_lines: Vec<CutLine>,
    /// The first line of the next page, and the byte in it if the page starts within a line.
    pub(super) next: Option<(u64, Option<u64>)>,
    /// `None` if the rest is too long to be counted.
    pub(super) lines_remaining: Option<u64>,
    pub(super) total_lines: Option<u64>,
    pub(super) bytes_remaining: u64,
}

/// A line of which only the start is shown.
#[derive(Serialize)]
pub(super) struct CutLine {
    pub(super) line: u64,
    pub(super) shown_bytes: u64,
    /// The length of the line, if its end was found.
    pub(super) bytes: Option<u64>,
}

/// The reasons why a page can't be read.
pub(super) enum ReadFailure {
    Binary {
        utf16: bool,
    },
    TooFar {
        at_line: u64,
    },
    /// The byte is too far into its line.
    TooFarInLine {
        bytes: u64,
    },
    ShortLine {
        bytes: u64,
    },
    System(Errno),
}

impl From<Errno> for ReadFailure {
    fn from(errno: Errno) -> ReadFailure {
        ReadFailure::System(errno)
    }
}

/// Reads a page. `size` is the size of the file when it was opened. The file may have changed since
/// then, and the bytes that are read decide.
pub(super) fn read_page(
    file: File,
    size: u64,
    asked: &PageRequest,
    limits: &WorkspaceLimits,
) -> Result<FilePage, ReadFailure> {
    let mut source = LineReader::new(file);
    let start = source.peek()?;
    let start = start.get(..BINARY_CHECK_BYTES_MAX).unwrap_or(start);
    if memchr(0, start).is_some() {
        let utf16 = start.starts_with(&[0xff, 0xfe]) || start.starts_with(&[0xfe, 0xff]);
        return Err(ReadFailure::Binary { utf16 });
    }
    let skipped = source.skip_lines(asked.offset - 1, limits.skip_bytes_max)?;
    if skipped.is_at_end {
        let total = skipped.newlines + u64::from(skipped.is_in_line);
        let none =
            FilePage { lines_remaining: Some(0), total_lines: Some(total), ..FilePage::default() };
        return Ok(none);
    }
    if skipped.newlines < asked.offset - 1 {
        return Err(ReadFailure::TooFar { at_line: skipped.newlines });
    }
    let mut page = FilePage::default();
    let end = if asked.line_offset > 0 {
        read_within_line(&mut source, asked, &mut page, limits)?
    } else {
        read_whole_lines(&mut source, asked, &mut page, limits)?
    };
    if memchr(0, &page.content).is_some() {
        return Err(ReadFailure::Binary { utf16: false });
    }
    count_rest(&mut source, size, &end, &mut page, limits)?;
    Ok(page)
}

/// The end of a page.
struct PageEnd {
    /// Where the next page starts.
    line: u64,
    byte: Option<u64>,
    position: u64,
    /// How many lines were read but did not fit into the page.
    pushed_back: u64,
    /// Whether the lines after the page may be counted. This is false within a line whose end was
    /// not found.
    can_count_rest: bool,
}

fn read_whole_lines(
    source: &mut LineReader,
    asked: &PageRequest,
    page: &mut FilePage,
    limits: &WorkspaceLimits,
) -> Result<PageEnd, ReadFailure> {
    let mut budget = limits.count_bytes_max;
    let mut line = asked.offset;
    let mut piece = Vec::new();
    while page.lines_shown < asked.limit && !source.peek()?.is_empty() {
        let start = source.position();
        piece.clear();
        // Read one byte more than is shown, to know whether and where the line is cut.
        let mut ends = source.take_line(&mut piece, limits.line_bytes_max + 1)?;
        let cut = piece.len() > limits.line_bytes_max;
        if cut {
            let shown = char_boundary_before(&piece, limits.line_bytes_max);
            piece.truncate(shown);
            if !ends {
                let before = source.position();
                ends = source.skip_line(budget)?;
                budget = budget.saturating_sub(source.position() - before);
            }
        }
        let bytes = source.position() - start;
        let shown_bytes = piece.len() as u64;
        if ends && source.skip_line_end()? {
            piece.push(b'\n');
        }
        if page.lines_shown > 0 && page.content.len() + piece.len() > limits.read_bytes_max {
            let end =
                PageEnd { line, byte: None, position: start, pushed_back: 1, can_count_rest: ends };
            return Ok(end);
        }
        page.content.extend_from_slice(&piece);
        page.lines_shown += 1;
        if cut {
            page.cut_lines.push(CutLine { line, shown_bytes, bytes: ends.then_some(bytes) });
        }
        if !ends {
            // The end of this line was not found, so the next page must continue within it.
            let position = start + shown_bytes;
            let byte = Some(shown_bytes);
            return Ok(PageEnd { line, byte, position, pushed_back: 0, can_count_rest: false });
        }
        line += 1;
    }
    let position = source.position();
    Ok(PageEnd { line, byte: None, position, pushed_back: 0, can_count_rest: true })
}

fn read_within_line(
    source: &mut LineReader,
    asked: &PageRequest,
    page: &mut FilePage,
    limits: &WorkspaceLimits,
) -> Result<PageEnd, ReadFailure> {
    let start = source.position();
    let ended = source.skip_line(asked.line_offset.min(limits.skip_bytes_max))?;
    let skipped = source.position() - start;
    if ended && skipped < asked.line_offset {
        return Err(ReadFailure::ShortLine { bytes: skipped });
    }
    if skipped < asked.line_offset {
        return Err(ReadFailure::TooFarInLine { bytes: skipped });
    }
    let mut piece = Vec::new();
    // If the page can't hold the last character completely, the next page starts with it.
    source.take_line(&mut piece, limits.read_bytes_max - 1)?;
    let next = source.peek()?.first().copied();
    let ends = matches!(next, None | Some(b'\n'));
    if !ends {
        let whole = piece.len();
        piece.extend(next);
        let shown = char_boundary_before(&piece, whole);
        piece.truncate(shown);
    }
    let shown = piece.len() as u64;
    page.lines_shown = 1;
    if ends && source.skip_line_end()? {
        piece.push(b'\n');
    }
    page.content = piece;
    let (line, byte) = if ends {
        (asked.offset + 1, None)
    } else {
        (asked.offset, Some(asked.line_offset + shown))
    };
    let position = if ends { source.position() } else { start + asked.line_offset + shown };
    // The rest of the line counts as one line. Its bytes are counted next.
    Ok(PageEnd { line, byte, position, pushed_back: 0, can_count_rest: true })
}

/// Counts the lines and bytes after a page.
fn count_rest(
    source: &mut LineReader,
    size: u64,
    end: &PageEnd,
    page: &mut FilePage,
    limits: &WorkspaceLimits,
) -> Result<(), ReadFailure> {
    let at_end = end.pushed_back == 0 && end.byte.is_none() && source.peek()?.is_empty();
    page.next = (!at_end).then_some((end.line, end.byte));
    page.bytes_remaining = size.max(source.position()).saturating_sub(end.position);
    if at_end {
        page.bytes_remaining = 0;
    }
    let ahead = size.saturating_sub(source.position());
    if !end.can_count_rest || ahead > limits.count_bytes_max {
        return Ok(());
    }
    let counted = source.skip_lines(u64::MAX, limits.count_bytes_max)?;
    if !counted.is_at_end {
        return Ok(());
    }
    let remaining = end.pushed_back + counted.newlines + u64::from(counted.is_in_line);
    page.bytes_remaining = source.position() - end.position;
    page.lines_remaining = Some(remaining);
    page.total_lines = Some(end.line - 1 + remaining);
    Ok(())
}

/// The longest prefix of at most `max` bytes that does not split a character.
fn char_boundary_before(bytes: &[u8], max: usize) -> usize {
    let continues = |at: usize| bytes.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    (max.saturating_sub(3)..=max)
        .rev()
        .find(|at| !continues(*at))
        .filter(|at| *at > 0)
        .unwrap_or(max)
}
