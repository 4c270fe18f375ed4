//! The lines of a result: without colours, and few of them.

use alloc::borrow::Cow;
use alloc::string::String;

/// How much of the end of a text is read. Runners sum up at the end.
const TAIL_BYTES: usize = 64 * 1024;

/// How much of its beginning is read: a report in XML gives its totals there.
const HEAD_BYTES: usize = 4 * 1024;

/// A line as runners wrote it, but for colours.
pub(super) struct Line<'a> {
    /// With its indentation.
    pub text: &'a str,
    /// Without blanks on either side.
    pub trimmed: &'a str,
}

impl Line<'_> {
    /// Whether it begins at the margin.
    pub(super) fn at_margin(&self) -> bool {
        self.text.len() == self.trimmed.len()
    }
}

/// What is read of a text.
pub(super) struct Parts<'a> {
    /// How it begins; empty if the tail is all of it.
    pub head: &'a str,
    /// How it ends.
    pub tail: Cow<'a, str>,
    /// Whether something between the two is not read.
    pub clipped: bool,
}

impl<'a> Parts<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let from = text.ceil_char_boundary(text.len().saturating_sub(TAIL_BYTES));
        let (before, tail) = text.split_at(from);
        // Half a line says something else than the whole.
        let tail = match tail.find('\n') {
            Some(end) if !before.is_empty() => tail.get(end + 1..).unwrap_or(""),
            _ => tail,
        };
        let head = before.get(..before.floor_char_boundary(HEAD_BYTES)).unwrap_or("");
        let quoted = text.starts_with(['{', '[', '"']) && !text.trim_end().contains('\n');
        let tail = if quoted { Cow::Owned(unquoted(tail)) } else { Cow::Borrowed(tail) };
        Self { head, tail, clipped: !before.is_empty() }
    }
}

/// The text within one line of JSON: some tools hand over their output so.
fn unquoted(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find(['\\', '"']) {
        let (plain, found) = rest.split_at(at);
        text.push_str(plain);
        let (instead, length) = match found.as_bytes() {
            [b'"', ..] => ('\n', 1),
            [b'\\', b'n' | b'r', ..] => ('\n', 2),
            [b'\\', b't', ..] => ('\t', 2),
            [b'\\', b'"', ..] => ('"', 2),
            [b'\\', b'\\', ..] => ('\\', 2),
            [b'\\', b'u', b'0', b'0', b'1', b'b' | b'B', ..] => ('\u{1b}', 6),
            _ => ('\\', 1),
        };
        text.push(instead);
        rest = found.get(length..).unwrap_or("");
    }
    text.push_str(rest);
    text
}

/// Calls `hear` with every line of a text, as it looks without colours. What a
/// progress bar wrote over is a line, too.
pub(super) fn each_line(text: &str, mut hear: impl FnMut(&Line<'_>)) {
    let text = text.strip_suffix('\n').unwrap_or(text);
    // Most texts have neither, and are asked once.
    let returns = text.contains('\r');
    let colours = text.contains('\u{1b}');
    let mut scratch = String::new();
    let mut hear_one = |line: &str| {
        scratch.clear();
        let text = if colours && line.contains('\u{1b}') {
            strip(line, &mut scratch);
            scratch.as_str()
        } else {
            line
        };
        let text = text.trim_ascii_end();
        hear(&Line { text, trimmed: text.trim_ascii_start() });
    };
    for line in text.split('\n') {
        if returns {
            line.strip_suffix('\r').unwrap_or(line).split('\r').for_each(&mut hear_one);
        } else {
            hear_one(line);
        }
    }
}

/// Whether a line tells that a program died: `Segmentation fault (core dumped)`,
/// `bash: line 1:  4242 Aborted  …`, `Fatal Python error: …`.
pub(super) fn is_crash(line: &Line<'_>) -> bool {
    const DEATHS: [&str; 5] =
        ["Segmentation fault", "Bus error", "Illegal instruction", "Aborted", "Killed"];
    if !line.at_margin()
        || !matches!(line.text.as_bytes().first(), Some(b'A'..=b'Z' | b'b' | b's' | b'/'))
    {
        return false;
    }
    if line.text.starts_with("Fatal Python error: ") {
        return true;
    }
    // A shell says which process, and of which line.
    let told = match line.text.split_once(": line ").and_then(|(_, rest)| rest.split_once(": ")) {
        Some((_, rest)) => rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' '),
        None => line.text,
    };
    DEATHS.iter().any(|death| {
        told.strip_prefix(death).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ':']))
    })
}

/// Leaves out what a terminal takes for commands: colours, cursor, titles, links.
fn strip(line: &str, into: &mut String) {
    let mut rest = line;
    while let Some(at) = rest.find('\u{1b}') {
        let (plain, sequence) = rest.split_at(at);
        into.push_str(plain);
        let after = sequence.get(1..).unwrap_or("");
        rest = if let Some(control) = after.strip_prefix('[') {
            let end = control.find(|c: char| matches!(c, '\u{40}'..='\u{7e}'));
            end.and_then(|end| control.get(end + 1..)).unwrap_or("")
        } else if let Some(string) = after.strip_prefix(']') {
            let end = string.find(['\u{7}', '\u{1b}']);
            let left = end.and_then(|end| string.get(end..)).unwrap_or("");
            left.strip_prefix('\u{7}').or_else(|| left.strip_prefix("\u{1b}\\")).unwrap_or(left)
        } else {
            // A character set is named by one character more: `ESC ( B`.
            let set = after.starts_with(['(', ')', '*', '+', '#', '%']);
            let mut chars = after.chars();
            chars.nth(usize::from(set));
            chars.as_str()
        };
    }
    into.push_str(rest);
}

/// Whether a line says that the rest was left out: `… [120 lines truncated]`.
pub(super) fn is_cut_mark(line: &str) -> bool {
    const WORDS: [&str; 4] = ["truncated", "clipped", "omitted", "cut off"];
    let marked = match line.as_bytes().first() {
        Some(b'[' | b'<' | b'(') => true,
        Some(b'.') => line.starts_with("..."),
        Some(0xe2) => line.starts_with('…'),
        _ => false,
    };
    marked
        && line.len() < 200
        && (line == "…" || line == "..." || WORDS.iter().any(|word| line.contains(word)))
}
