//! Cuts and wraps text by its width on a terminal.

use jackline_engine::Timestamp;
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::terminal::{format_duration, sanitize};

/// The maximum length of an untrusted text.
const LETTERS_MAX: usize = 400;

/// Makes untrusted text safe for a terminal, on one line.
pub(super) fn clean(text: &str) -> String {
    sanitize(text, LETTERS_MAX)
}

/// The age of a point in time, in a few characters.
pub(super) fn age(at: Timestamp, now: Timestamp) -> String {
    match now.ms_since(at.min(now)) {
        0..1000 => "now".to_owned(),
        ms => format_duration(ms),
    }
}

/// Cuts a text to a width in cells.
pub(super) fn fit(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let (head, _) = split(text, width.saturating_sub(1));
    if width == 0 { String::new() } else { format!("{head}…") }
}

/// Cuts or pads a text to exactly a width in cells.
pub(super) fn padded(text: &str, width: usize) -> String {
    let mut text = fit(text, width);
    let missing = width.saturating_sub(text.width());
    text.extend(std::iter::repeat_n(' ', missing));
    text
}

/// Wraps a text to at most `lines_max` lines, at spaces if possible.
pub(super) fn wrap(text: &str, width: usize, lines_max: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() && width > 0 {
        if lines.len() + 1 == lines_max || rest.width() <= width {
            lines.push(fit(rest, width));
            break;
        }
        let (head, tail) = split(rest, width);
        let at_blank = tail.starts_with(' ');
        let line = match head.rfind(' ').filter(|at| !at_blank && *at > 0) {
            Some(blank) => head.get(..blank).unwrap_or(head),
            // A character that is wider than the line still gets a line.
            None if head.is_empty() => rest.get(..first_letter(rest)).unwrap_or(rest),
            None => head,
        };
        lines.push(line.trim_end().to_owned());
        rest = rest.get(line.len()..).unwrap_or_default().trim_start();
    }
    lines
}

/// Splits a text after the part that fits.
fn split(text: &str, width: usize) -> (&str, &str) {
    let mut used = 0;
    let end = text.char_indices().find(|(_, letter)| {
        used += letter.width().unwrap_or(0);
        used > width
    });
    text.split_at(end.map_or(text.len(), |(at, _)| at))
}

fn first_letter(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}

/// The width of the names of rows.
pub(super) const NAME_WIDTH: usize = 11;

/// A row with a name and a wrapped value.
pub(super) fn row(
    name: (&str, Style),
    value: (&str, Style),
    width: usize,
    lines_max: usize,
) -> Vec<Line<'static>> {
    let wrapped = wrap(value.0, width.saturating_sub(NAME_WIDTH), lines_max);
    let names = std::iter::once(name.0).chain(std::iter::repeat(""));
    let lines = names.zip(wrapped).map(|(first, text)| {
        let first = Span::styled(padded(first, NAME_WIDTH), name.1);
        Line::from(vec![first, Span::styled(text, value.1)])
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_text_is_cut_by_cells() {
        assert_eq!(fit("abcdef", 6), "abcdef");
        assert_eq!(fit("abcdef", 4), "abc…");
        assert_eq!(fit("日本語", 5), "日本…");
        assert_eq!(fit("日本語", 4), "日…");
        assert_eq!(fit("abc", 0), "");
        assert_eq!(padded("日", 4), "日  ");
    }

    #[test]
    fn text_wraps_at_spaces() {
        assert_eq!(wrap("one two three", 8, 9), ["one two", "three"]);
        assert_eq!(wrap("one two three", 7, 9), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh ij", 4, 9), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("one two three four", 8, 2), ["one two", "three f…"]);
        assert_eq!(wrap("", 8, 2), Vec::<String>::new());
        assert_eq!(wrap("日本語", 1, 9), ["日", "本", "語"]);
    }
}
