//! The lines of a result: without colours, and only the lines at the end of a long text.

use alloc::borrow::Cow;
use alloc::string::String;

/// How many bytes of the end of a text are read. Runners print their summary at the end.
const TAIL_BYTES_MAX: usize = 64 * 1024;

/// How many bytes of the beginning are read: an XML report has its totals there.
const HEAD_BYTES_MAX: usize = 4 * 1024;

/// A line of a runner's output without colours.
pub(super) struct OutputLine<'a> {
    /// The line with its indentation.
    pub text: &'a str,
    /// The line without white space on either side.
    pub trimmed: &'a str,
}

impl OutputLine<'_> {
    /// Whether the line has no indentation.
    pub(super) fn has_no_indentation(&self) -> bool {
        self.text.len() == self.trimmed.len()
    }
}

/// The parts of a text that are read.
pub(super) struct TextParts<'a> {
    /// The beginning; empty if the tail is the whole text.
    pub head: &'a str,
    /// The end.
    pub tail: Cow<'a, str>,
    /// Whether text between the two is not read.
    pub clipped: bool,
}

impl<'a> TextParts<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let from = text.ceil_char_boundary(text.len().saturating_sub(TAIL_BYTES_MAX));
        let (before, tail) = text.split_at(from);
        // The first line may be incomplete, and half a line can have another meaning.
        let tail = match tail.find('\n') {
            Some(end) if !before.is_empty() => tail.get(end + 1..).unwrap_or(""),
            _ => tail,
        };
        let head = before.get(..before.floor_char_boundary(HEAD_BYTES_MAX)).unwrap_or("");
        let is_json = text.starts_with(['{', '[', '"']) && !text.trim_end().contains('\n');
        let tail = if is_json { Cow::Owned(unescape_json(tail)) } else { Cow::Borrowed(tail) };
        Self { head, tail, clipped: !before.is_empty() }
    }
}

/// The text within one line of JSON. Some tools return their output in this form.
fn unescape_json(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find(['\\', '"']) {
        let (plain, escape) = rest.split_at(at);
        text.push_str(plain);
        let (replacement, length) = match escape.as_bytes() {
            [b'"', ..] => ('\n', 1),
            [b'\\', b'n' | b'r', ..] => ('\n', 2),
            [b'\\', b't', ..] => ('\t', 2),
            [b'\\', b'"', ..] => ('"', 2),
            [b'\\', b'\\', ..] => ('\\', 2),
            [b'\\', b'u', b'0', b'0', b'1', b'b' | b'B', ..] => ('\u{1b}', 6),
            _ => ('\\', 1),
        };
        text.push(replacement);
        rest = escape.get(length..).unwrap_or("");
    }
    text.push_str(rest);
    text
}

/// Calls `visit` with every line of a text, without colours. A text that a progress bar overwrote
/// with a carriage return counts as a line too.
pub(super) fn each_line(text: &str, mut visit: impl FnMut(&OutputLine<'_>)) {
    let text = text.strip_suffix('\n').unwrap_or(text);
    // Most texts contain neither, so this is checked once.
    let returns = text.contains('\r');
    let colours = text.contains('\u{1b}');
    let mut scratch = String::new();
    let mut visit_one = |line: &str| {
        scratch.clear();
        let text = if colours && line.contains('\u{1b}') {
            strip_escapes(line, &mut scratch);
            scratch.as_str()
        } else {
            line
        };
        let text = text.trim_ascii_end();
        visit(&OutputLine { text, trimmed: text.trim_ascii_start() });
    };
    for line in text.split('\n') {
        if returns {
            line.strip_suffix('\r').unwrap_or(line).split('\r').for_each(&mut visit_one);
        } else {
            visit_one(line);
        }
    }
}

/// Whether a line reports that a program crashed: `Segmentation fault (core dumped)`, `bash: line
/// 1:  4242 Aborted  …`, `Fatal Python error: …`.
pub(super) fn is_crash(line: &OutputLine<'_>) -> bool {
    const DEATHS: [&str; 5] =
        ["Segmentation fault", "Bus error", "Illegal instruction", "Aborted", "Killed"];
    if !line.has_no_indentation()
        || !matches!(line.text.as_bytes().first(), Some(b'A'..=b'Z' | b'b' | b's' | b'/'))
    {
        return false;
    }
    if line.text.starts_with("Fatal Python error: ") {
        return true;
    }
    // A shell prints the line of the script and the number of the process first.
    let message = match line.text.split_once(": line ").and_then(|(_, rest)| rest.split_once(": "))
    {
        Some((_, rest)) => rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' '),
        None => line.text,
    };
    DEATHS.iter().any(|death| {
        message
            .strip_prefix(death)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ':']))
    })
}

/// Removes terminal escape sequences: colours, cursor movements, titles, links.
fn strip_escapes(line: &str, into: &mut String) {
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
            let remaining = end.and_then(|end| string.get(end..)).unwrap_or("");
            remaining
                .strip_prefix('\u{7}')
                .or_else(|| remaining.strip_prefix("\u{1b}\\"))
                .unwrap_or(remaining)
        } else {
            // A character set has one more character: `ESC ( B`.
            let set = after.starts_with(['(', ')', '*', '+', '#', '%']);
            let mut chars = after.chars();
            chars.nth(usize::from(set));
            chars.as_str()
        };
    }
    into.push_str(rest);
}

/// Whether a line reports that text is missing: `… [120 lines truncated]`.
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
