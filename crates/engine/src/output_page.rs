//! The first page of a long result, with the same limits on every surface.
//!
//! A result of a tool that reads files is limited like a page of `read_file`: by lines and bytes.
//! Any other result is limited by bytes. A page is the beginning of the result, so a caller can
//! cut the result at [`OutputFact::shown`].

use crate::definition::IoLimits;
use crate::facts::{OutputFact, PageLines};
use crate::tool::ToolKind;

/// A page ends at the end of a line if that line ends in the last quarter of the page.
const LINE_END_PART: usize = 4;

/// How much of a result of one tool is shown at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimits {
    /// The largest number of lines, if lines are limited.
    pub lines_max: Option<u64>,
    /// The largest number of bytes.
    pub bytes_max: usize,
}

impl PageLimits {
    /// The limits for a tool of this kind.
    pub fn of(kind: ToolKind, io: &IoLimits) -> Self {
        let bytes = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        match kind {
            ToolKind::Read => Self {
                lines_max: Some(io.read_file.max_lines.into()),
                bytes_max: bytes(io.read_file.max_bytes),
            },
            _ => Self { lines_max: None, bytes_max: bytes(io.output.max_bytes) },
        }
    }

    /// Whether a result is longer than one page.
    pub fn is_exceeded_by(&self, text: &str) -> bool {
        text.len() > self.bytes_max || self.line_limit_end(text).is_some_and(|end| end < text.len())
    }

    /// The beginning of a text that fits into a page.
    pub fn first_page<'t>(&self, text: &'t str) -> &'t str {
        let end = self.line_limit_end(text).unwrap_or(text.len());
        first_part(text.get(..end).unwrap_or(text), self.bytes_max)
    }

    /// Where the last line ends that fits into a page.
    fn line_limit_end(&self, text: &str) -> Option<usize> {
        let lines = usize::try_from(self.lines_max?).unwrap_or(usize::MAX);
        Some(text.split_inclusive('\n').take(lines).map(str::len).sum())
    }
}

/// Describes the first page of a text, which is line `first` and following of a file or of an
/// output.
pub fn describe_page(text: &str, shown: &str, first: u64) -> OutputFact {
    let total = count_lines(text);
    let ends_in_line = shown.len() < text.len() && !shown.ends_with('\n');
    let line_offset = ends_in_line.then(|| {
        shown.rfind('\n').map_or(shown.len(), |line_end| shown.len() - line_end - 1) as u64
    });
    let lines = PageLines { first, shown: count_lines(shown), total, line_offset };
    OutputFact {
        bytes: text.len() as u64,
        shown: shown.len() as u64,
        lines: Some(lines),
        ..OutputFact::default()
    }
}

/// The number of lines. A line without an end counts.
fn count_lines(text: &str) -> u64 {
    text.split_inclusive('\n').count() as u64
}

/// The first part of a text. It ends at a character, and at the end of a line if that costs little.
pub fn first_part(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let part = text.get(..text.floor_char_boundary(most)).unwrap_or_default();
    match part.rfind('\n') {
        Some(line) if line + 1 >= most - most / LINE_END_PART => part.get(..=line).unwrap_or(part),
        _ => part,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str, lines_max: Option<u64>, bytes_max: usize) -> (bool, &str) {
        let limits = PageLimits { lines_max, bytes_max };
        (limits.is_exceeded_by(text), limits.first_page(text))
    }

    #[test]
    fn a_page_has_at_most_the_lines_and_bytes_of_its_limits() {
        assert_eq!(page("a\nb\nc\n", Some(2), 100), (true, "a\nb\n"));
        assert_eq!(page("a\nb\n", Some(2), 100), (false, "a\nb\n"));
        assert_eq!(page("a\nb", Some(2), 100), (false, "a\nb"));
        assert_eq!(page("a\nb\nc", None, 5), (false, "a\nb\nc"));
        assert_eq!(page("aaaa\nbbbb\n", Some(9), 6), (true, "aaaa\n"));
        assert_eq!(page("aaaaaaaa", None, 3), (true, "aaa"));
        assert_eq!(page("ééé", None, 3), (true, "é"));
    }

    #[test]
    fn a_page_tells_which_lines_it_shows_and_where_it_ends() {
        let lines = |text, shown, first| describe_page(text, shown, first).lines.unwrap();
        let whole_lines = PageLines { first: 7, shown: 2, total: 3, line_offset: None };
        assert_eq!(lines("a\nb\nc", "a\nb\n", 7), whole_lines);
        let within = PageLines { first: 1, shown: 2, total: 2, line_offset: Some(2) };
        assert_eq!(lines("a\nbbb\n", "a\nbb", 1), within);
    }
}
