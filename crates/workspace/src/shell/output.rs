//! What is kept of an output: its beginning, its end, and how long it was; and itself, up to
//! a length, where somebody wants it.

use std::collections::VecDeque;
use std::fmt::Write as _;

/// An output that is never held in all its length.
#[derive(Debug)]
pub struct Kept {
    head: Vec<u8>,
    head_max: usize,
    tail: VecDeque<u8>,
    tail_max: usize,
    bytes_total: u64,
    /// The output itself, up to a length, where somebody wants it.
    whole: Vec<u8>,
    whole_max: usize,
}

/// The same as text.
#[derive(Debug, PartialEq, Eq)]
pub struct Text {
    /// What is shown of it.
    pub shown: String,
    /// Whether the middle of it is missing.
    pub truncated: bool,
    /// Whether some of it was no text.
    pub lossy: bool,
}

impl Kept {
    /// Room for so many bytes.
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

    /// Holds the output itself besides, up to so many bytes.
    #[must_use]
    pub(super) fn holding(mut self, bytes_max: usize) -> Self {
        self.whole_max = bytes_max;
        self
    }

    /// The output itself, as far as it was held.
    pub(super) fn whole(&mut self) -> String {
        decode(&std::mem::take(&mut self.whole)).0
    }

    /// How long it was.
    pub fn bytes_total(&self) -> u64 {
        self.bytes_total
    }

    /// The next part of it.
    pub fn add(&mut self, bytes: &[u8]) {
        self.bytes_total += bytes.len() as u64;
        let held = bytes.len().min(self.whole_max - self.whole.len());
        self.whole.extend_from_slice(bytes.get(..held).unwrap_or_default());
        let room = self.head_max - self.head.len();
        let (first, rest) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
        self.head.extend_from_slice(first);
        let last = rest.get(rest.len().saturating_sub(self.tail_max)..).unwrap_or_default();
        let surplus = (self.tail.len() + last.len()).saturating_sub(self.tail_max);
        self.tail.drain(..surplus);
        self.tail.extend(last);
    }

    /// The next part is so long, and will not be shown: more than what is kept of
    /// the end comes behind it.
    pub fn skip(&mut self, bytes: u64) {
        self.bytes_total += bytes;
    }

    /// Where the kept end begins, in an output of so many bytes.
    pub fn ends(&self, bytes_total: u64) -> (usize, u64) {
        (self.head_max, bytes_total.saturating_sub(self.tail_max as u64).max(self.head_max as u64))
    }

    /// The output as it is shown.
    pub fn finish(self) -> Text {
        self.finish_with(|missing, total| format!("[{missing} of {total} bytes are not shown]"))
    }

    /// The same, with a line of one's own where the middle is missing: of so many
    /// bytes, of so many.
    pub fn finish_with(self, say: impl FnOnce(u64, u64) -> String) -> Text {
        let Self { mut head, tail, bytes_total, .. } = self;
        let mut tail = Vec::from(tail);
        if bytes_total == (head.len() + tail.len()) as u64 {
            head.append(&mut tail);
            let (text, lossy) = decode(&head);
            return Text { shown: text, truncated: false, lossy };
        }
        // Whole lines, where they are not too long for it.
        let end = head.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
        head.truncate(end.filter(|end| *end > head.len() / 2).unwrap_or_else(|| whole(&head)));
        let start = tail.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let start = start.filter(|start| *start < tail.len() / 2);
        let continued = || tail.iter().take(3).take_while(|byte| is_continued(**byte)).count();
        tail.drain(..start.unwrap_or_else(continued));
        let missing = bytes_total - (head.len() + tail.len()) as u64;
        let (mut text, head_lossy) = decode(&head);
        let (end, tail_lossy) = decode(&tail);
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        let _ = writeln!(text, "{}", say(missing, bytes_total));
        text.push_str(&end);
        Text { shown: text, truncated: true, lossy: head_lossy || tail_lossy }
    }
}

/// How long it is without a character that is cut at the end.
fn whole(bytes: &[u8]) -> usize {
    let cut = bytes.iter().rev().take(3).position(|byte| !is_continued(*byte) && *byte >= 0xc0);
    match cut {
        Some(back) => {
            let start = bytes.len() - back - 1;
            let ends = bytes.get(start..).is_some_and(|last| std::str::from_utf8(last).is_ok());
            if ends { bytes.len() } else { start }
        }
        None => bytes.len(),
    }
}

fn is_continued(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// As text; what is none is one mark, however long it is.
fn decode(bytes: &[u8]) -> (String, bool) {
    let mut text = String::with_capacity(bytes.len());
    let mut lossy = false;
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\0' => mark(&mut text, &mut lossy),
                letter => text.push(letter),
            }
        }
        if !chunk.invalid().is_empty() {
            mark(&mut text, &mut lossy);
        }
    }
    (text, lossy)
}

fn mark(text: &mut String, lossy: &mut bool) {
    *lossy = true;
    if !text.ends_with(char::REPLACEMENT_CHARACTER) {
        text.push(char::REPLACEMENT_CHARACTER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(bytes_max: usize, parts: &[&[u8]]) -> Text {
        let mut kept = Kept::new(bytes_max);
        parts.iter().for_each(|part| kept.add(part));
        assert!(kept.head.len() + kept.tail.len() <= bytes_max);
        kept.finish()
    }

    fn whole_text(text: &str) -> Text {
        Text { shown: text.to_owned(), truncated: false, lossy: false }
    }

    #[test]
    fn a_short_output_is_kept_whole() {
        assert_eq!(kept(10, &[b"one", b"", b"two"]), whole_text("onetwo"));
        assert_eq!(kept(6, &[b"one", b"two"]), whole_text("onetwo"));
        assert_eq!(kept(6, &[]), whole_text(""));
    }

    #[test]
    fn of_a_long_one_the_middle_is_missing_by_whole_lines() {
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
    fn what_is_no_text_is_marked_once() {
        let text = kept(100, &[b"a\xff\xfe\0\0b\0"]);
        assert_eq!(
            text,
            Text { shown: "a\u{fffd}b\u{fffd}".to_owned(), truncated: false, lossy: true }
        );
    }
}
