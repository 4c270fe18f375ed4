//! One page: which lines it has, where they are cut, and what comes behind it.

use std::fs::File;

use memchr::memchr;
use rustix::io::Errno;
use serde::Serialize;

use super::source::Source;
use crate::limits::Limits;

/// How far a file is looked into for bytes that no text has.
const BINARY_BYTES: usize = 8 << 10;

/// Which page.
pub(super) struct Asked {
    /// The first line, from 1.
    pub(super) offset: u64,
    pub(super) limit: u64,
    /// If not 0: only this line, from this byte on.
    pub(super) line_offset: u64,
}

/// What a page has.
#[derive(Default)]
pub(super) struct Page {
    pub(super) content: Vec<u8>,
    pub(super) lines_shown: u64,
    pub(super) cut: Vec<Cut>,
    /// The line, and the byte in it, that the next page begins with.
    pub(super) next: Option<(u64, Option<u64>)>,
    /// Unknown where the rest is too long to be counted.
    pub(super) lines_remaining: Option<u64>,
    pub(super) total_lines: Option<u64>,
    pub(super) bytes_remaining: u64,
}

/// A line that is longer than what is shown of it.
#[derive(Serialize)]
pub(super) struct Cut {
    pub(super) line: u64,
    pub(super) shown_bytes: u64,
    /// How long it is, if its end was found.
    pub(super) bytes: Option<u64>,
}

/// Why there is no page.
pub(super) enum Failed {
    Binary {
        utf16: bool,
    },
    TooFar {
        at_line: u64,
    },
    /// The byte is so far into its line that nobody goes there.
    TooFarInLine {
        bytes: u64,
    },
    ShortLine {
        bytes: u64,
    },
    System(Errno),
}

impl From<Errno> for Failed {
    fn from(errno: Errno) -> Failed {
        Failed::System(errno)
    }
}

/// Reads a page. `size` is what the file had when it was opened; it may have
/// changed since, and what is read is what counts.
pub(super) fn read(file: File, size: u64, asked: &Asked, limits: &Limits) -> Result<Page, Failed> {
    let mut source = Source::new(file);
    let start = source.peek()?;
    let start = start.get(..BINARY_BYTES).unwrap_or(start);
    if memchr(0, start).is_some() {
        let utf16 = start.starts_with(&[0xff, 0xfe]) || start.starts_with(&[0xfe, 0xff]);
        return Err(Failed::Binary { utf16 });
    }
    let skipped = source.skip_lines(asked.offset - 1, limits.skip_bytes_max)?;
    if skipped.ended {
        let total = skipped.newlines + u64::from(skipped.open);
        let none = Page { lines_remaining: Some(0), total_lines: Some(total), ..Page::default() };
        return Ok(none);
    }
    if skipped.newlines < asked.offset - 1 {
        return Err(Failed::TooFar { at_line: skipped.newlines });
    }
    let mut page = Page::default();
    let end = if asked.line_offset > 0 {
        within_line(&mut source, asked, &mut page, limits)?
    } else {
        whole_lines(&mut source, asked, &mut page, limits)?
    };
    if memchr(0, &page.content).is_some() {
        return Err(Failed::Binary { utf16: false });
    }
    rest(&mut source, size, &end, &mut page, limits)?;
    Ok(page)
}

/// Where a page ends.
struct End {
    /// The line and byte to go on with.
    line: u64,
    byte: Option<u64>,
    position: u64,
    /// Lines that were read and did not fit any more.
    pushed_back: u64,
    /// Whether lines behind it may be counted: not where we are amid one without an end.
    countable: bool,
}

fn whole_lines(
    source: &mut Source,
    asked: &Asked,
    page: &mut Page,
    limits: &Limits,
) -> Result<End, Failed> {
    let mut budget = limits.count_bytes_max;
    let mut line = asked.offset;
    let mut piece = Vec::new();
    while page.lines_shown < asked.limit && !source.peek()?.is_empty() {
        let start = source.position();
        piece.clear();
        // A byte more than is shown, so that we know whether it is cut, and where.
        let mut ends = source.take_line(&mut piece, limits.line_bytes_max + 1)?;
        let cut = piece.len() > limits.line_bytes_max;
        if cut {
            let shown = boundary(&piece, limits.line_bytes_max);
            piece.truncate(shown);
            if !ends {
                let before = source.position();
                ends = source.skip_line(budget)?;
                budget = budget.saturating_sub(source.position() - before);
            }
        }
        let bytes = source.position() - start;
        let shown_bytes = piece.len() as u64;
        if ends && source.take_end()? {
            piece.push(b'\n');
        }
        if page.lines_shown > 0 && page.content.len() + piece.len() > limits.read_bytes_max {
            let end = End { line, byte: None, position: start, pushed_back: 1, countable: ends };
            return Ok(end);
        }
        page.content.extend_from_slice(&piece);
        page.lines_shown += 1;
        if cut {
            page.cut.push(Cut { line, shown_bytes, bytes: ends.then_some(bytes) });
        }
        if !ends {
            // Nobody found where this line ends, so it can only be read on.
            let position = start + shown_bytes;
            let byte = Some(shown_bytes);
            return Ok(End { line, byte, position, pushed_back: 0, countable: false });
        }
        line += 1;
    }
    let position = source.position();
    Ok(End { line, byte: None, position, pushed_back: 0, countable: true })
}

fn within_line(
    source: &mut Source,
    asked: &Asked,
    page: &mut Page,
    limits: &Limits,
) -> Result<End, Failed> {
    let start = source.position();
    let ended = source.skip_line(asked.line_offset.min(limits.skip_bytes_max))?;
    let went = source.position() - start;
    if ended && went < asked.line_offset {
        return Err(Failed::ShortLine { bytes: went });
    }
    if went < asked.line_offset {
        return Err(Failed::TooFarInLine { bytes: went });
    }
    let mut piece = Vec::new();
    // The rest of a character that the page can't hold is read again with the next.
    source.take_line(&mut piece, limits.read_bytes_max - 1)?;
    let next = source.peek()?.first().copied();
    let ends = matches!(next, None | Some(b'\n'));
    if !ends {
        let whole = piece.len();
        piece.extend(next);
        let shown = boundary(&piece, whole);
        piece.truncate(shown);
    }
    let shown = piece.len() as u64;
    page.lines_shown = 1;
    if ends && source.take_end()? {
        piece.push(b'\n');
    }
    page.content = piece;
    let (line, byte) = if ends {
        (asked.offset + 1, None)
    } else {
        (asked.offset, Some(asked.line_offset + shown))
    };
    let position = if ends { source.position() } else { start + asked.line_offset + shown };
    // The rest of the line counts as one, and its bytes are what is counted next.
    Ok(End { line, byte, position, pushed_back: 0, countable: true })
}

/// What comes behind a page.
fn rest(
    source: &mut Source,
    size: u64,
    end: &End,
    page: &mut Page,
    limits: &Limits,
) -> Result<(), Failed> {
    let at_end = end.pushed_back == 0 && end.byte.is_none() && source.peek()?.is_empty();
    page.next = (!at_end).then_some((end.line, end.byte));
    page.bytes_remaining = size.max(source.position()).saturating_sub(end.position);
    if at_end {
        page.bytes_remaining = 0;
    }
    let ahead = size.saturating_sub(source.position());
    if !end.countable || ahead > limits.count_bytes_max {
        return Ok(());
    }
    let counted = source.skip_lines(u64::MAX, limits.count_bytes_max)?;
    if !counted.ended {
        return Ok(());
    }
    let remaining = end.pushed_back + counted.newlines + u64::from(counted.open);
    page.bytes_remaining = source.position() - end.position;
    page.lines_remaining = Some(remaining);
    page.total_lines = Some(end.line - 1 + remaining);
    Ok(())
}

/// The longest beginning of at most `max` bytes that cuts no character in two.
fn boundary(bytes: &[u8], max: usize) -> usize {
    let continues = |at: usize| bytes.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    (max.saturating_sub(3)..=max)
        .rev()
        .find(|at| !continues(*at))
        .filter(|at| *at > 0)
        .unwrap_or(max)
}
