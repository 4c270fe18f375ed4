//! Buffers the output of a command: its start, its end and its length. If required, it also stores
//! the whole output up to a limit.

use std::collections::VecDeque;
use std::fmt::Write as _;

/// An output buffer of limited size.
#[derive(Debug)]
pub struct OutputBuffer {
    head: Vec<u8>,
    head_max: usize,
    tail: VecDeque<u8>,
    tail_max: usize,
    bytes_total: u64,
    /// The output from its start, up to `whole_max` bytes.
    whole: Vec<u8>,
    whole_max: usize,
}

/// The buffered output as text.
#[derive(Debug, PartialEq, Eq)]
pub struct OutputText {
    /// The text to show.
    pub shown: String,
    /// Whether the middle is missing.
    pub truncated: bool,
    /// Whether the output contained bytes that are not text.
    pub lossy: bool,
}

impl OutputBuffer {
    /// A buffer for so many bytes.
    pub fn new(bytes_max: usize) -> Self {
        let head_max = bytes_max / 2;
        let tail_max = bytes_max - head_max;
        Self {
            head: Vec::new(),
            head_max,
            tail: VecDeque::new(),
            tail_max,
            bytes_total: 0,
            whole: Vec::new(),
            whole_max: 0,
        }
    }

    /// Also stores the output from its start, up to so many bytes.
    #[must_use]
    pub(super) fn storing_whole(mut self, bytes_max: usize) -> Self {
        self.whole_max = bytes_max;
        self
    }

    /// The stored output, up to the limit.
    pub(super) fn whole(&mut self) -> String {
        decode_lossy(&std::mem::take(&mut self.whole)).0
    }

    /// The length of the complete output.
    pub fn bytes_total(&self) -> u64 {
        self.bytes_total
    }

    /// Adds the next part of the output.
    pub fn add(&mut self, bytes: &[u8]) {
        self.bytes_total += bytes.len() as u64;
        let stored = bytes.len().min(self.whole_max - self.whole.len());
        self.whole.extend_from_slice(bytes.get(..stored).unwrap_or_default());
        let room = self.head_max - self.head.len();
        let (first, rest) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
        self.head.extend_from_slice(first);
        let last = rest.get(rest.len().saturating_sub(self.tail_max)..).unwrap_or_default();
        let surplus = (self.tail.len() + last.len()).saturating_sub(self.tail_max);
        self.tail.drain(..surplus);
        self.tail.extend(last);
    }

    /// Counts a part of the output that will not be shown. More bytes than the buffer holds for the
    /// end must follow it.
    pub fn count_skipped(&mut self, bytes: u64) {
        self.bytes_total += bytes;
    }

    /// How many bytes of the start are shown, and the position where the shown end starts, for an
    /// output of `bytes_total` bytes.
    pub fn shown_ranges(&self, bytes_total: u64) -> (usize, u64) {
        (self.head_max, bytes_total.saturating_sub(self.tail_max as u64).max(self.head_max as u64))
    }

    /// The output as text, with a standard line for the missing middle.
    pub fn finish(self) -> OutputText {
        self.finish_with(|missing, total| format!("[{missing} of {total} bytes are not shown]"))
    }

    /// Like `finish`, but `say` writes the line for the missing middle. It gets the number of
    /// missing bytes and of all bytes.
    pub fn finish_with(self, say: impl FnOnce(u64, u64) -> String) -> OutputText {
        let Self { mut head, tail, bytes_total, .. } = self;
        let mut tail = Vec::from(tail);
        if bytes_total == (head.len() + tail.len()) as u64 {
            head.append(&mut tail);
            let (text, lossy) = decode_lossy(&head);
            return OutputText { shown: text, truncated: false, lossy };
        }
        // Cut at line ends, unless the lines are too long.
        let end = head.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
        head.truncate(
            end.filter(|end| *end > head.len() / 2).unwrap_or_else(|| complete_chars_len(&head)),
        );
        let start = tail.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let start = start.filter(|start| *start < tail.len() / 2);
        let continued =
            || tail.iter().take(3).take_while(|byte| is_continuation_byte(**byte)).count();
        tail.drain(..start.unwrap_or_else(continued));
        let missing = bytes_total - (head.len() + tail.len()) as u64;
        let (mut text, head_lossy) = decode_lossy(&head);
        let (end, tail_lossy) = decode_lossy(&tail);
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        let _ = writeln!(text, "{}", say(missing, bytes_total));
        text.push_str(&end);
        OutputText { shown: text, truncated: true, lossy: head_lossy || tail_lossy }
    }
}

/// The length without an incomplete character at the end.
fn complete_chars_len(bytes: &[u8]) -> usize {
    let cut =
        bytes.iter().rev().take(3).position(|byte| !is_continuation_byte(*byte) && *byte >= 0xc0);
    match cut {
        Some(back) => {
            let start = bytes.len() - back - 1;
            let ends = bytes.get(start..).is_some_and(|last| std::str::from_utf8(last).is_ok());
            if ends { bytes.len() } else { start }
        }
        None => bytes.len(),
    }
}

fn is_continuation_byte(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// Decodes text. Each run of invalid bytes and NUL bytes becomes one replacement character.
fn decode_lossy(bytes: &[u8]) -> (String, bool) {
    let mut text = String::with_capacity(bytes.len());
    let mut lossy = false;
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\0' => push_replacement(&mut text, &mut lossy),
                letter => text.push(letter),
            }
        }
        if !chunk.invalid().is_empty() {
            push_replacement(&mut text, &mut lossy);
        }
    }
    (text, lossy)
}

fn push_replacement(text: &mut String, lossy: &mut bool) {
    *lossy = true;
    if !text.ends_with(char::REPLACEMENT_CHARACTER) {
        text.push(char::REPLACEMENT_CHARACTER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(bytes_max: usize, parts: &[&[u8]]) -> OutputText {
        let mut buffer = OutputBuffer::new(bytes_max);
        parts.iter().for_each(|part| buffer.add(part));
        assert!(buffer.head.len() + buffer.tail.len() <= bytes_max);
        buffer.finish()
    }

    fn whole_text(text: &str) -> OutputText {
        OutputText { shown: text.to_owned(), truncated: false, lossy: false }
    }

    #[test]
    fn a_short_output_is_shown_completely() {
        assert_eq!(kept(10, &[b"one", b"", b"two"]), whole_text("onetwo"));
        assert_eq!(kept(6, &[b"one", b"two"]), whole_text("onetwo"));
        assert_eq!(kept(6, &[]), whole_text(""));
    }

    #[test]
    fn a_long_output_lacks_whole_lines_in_the_middle() {
        let lines = (10..100).fold(String::new(), |lines, line| lines + &format!("line {line}\n"));
        let text = kept(40, &[lines.as_bytes()]);
        assert!(text.truncated && !text.lossy);
        let shown = "line 10\nline 11\n[688 of 720 bytes are not shown]\nline 98\nline 99\n";
        assert_eq!(text.shown, shown);
        let bytewise: Vec<&[u8]> = lines.as_bytes().chunks(1).collect();
        assert_eq!(kept(40, &bytewise).shown, shown);
    }

    #[test]
    fn a_line_that_is_too_long_is_cut_between_characters() {
        let text = kept(9, &["ä".repeat(100).as_bytes()]);
        assert_eq!(text.shown, "ää\n[192 of 200 bytes are not shown]\nää");
        assert!(!text.lossy);
    }

    #[test]
    fn bytes_that_are_not_text_become_one_mark() {
        let text = kept(100, &[b"a\xff\xfe\0\0b\0"]);
        assert_eq!(
            text,
            OutputText { shown: "a\u{fffd}b\u{fffd}".to_owned(), truncated: false, lossy: true }
        );
    }
}
