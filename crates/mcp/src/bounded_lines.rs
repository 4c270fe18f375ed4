//! Reads lines with a length limit.

use std::io::{self, BufRead};

/// The longest line that is accepted.
pub(crate) const LINE_BYTES_MAX: usize = 64 << 20;

/// How many bytes of the start and of the end of a too long line are stored.
pub(crate) const END_BYTES: usize = 4 << 10;

/// The result of reading.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LineRead {
    /// A line, without its newline.
    Line(Vec<u8>),
    /// The start, the end and the length of a line that is too long.
    TooLong { head: Vec<u8>, tail: Vec<u8>, bytes: usize },
    /// The end of the input.
    End,
}

/// Assembles one line from chunks. The middle of a line that is too long is skipped.
#[derive(Debug)]
pub(crate) struct LineBuffer {
    line_bytes_max: usize,
    line: Vec<u8>,
    /// The start of a line that is too long, and its length so far.
    long: Option<(Vec<u8>, usize)>,
}

impl LineBuffer {
    /// A buffer for lines of at most so many bytes.
    pub(crate) fn new(most: usize) -> Self {
        Self { line_bytes_max: most, line: Vec::new(), long: None }
    }

    /// Takes bytes up to the end of a line. Returns the line if it is complete.
    pub(crate) fn take_line(&mut self, bytes: &mut &[u8]) -> Option<LineRead> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let part = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
        self.line.extend_from_slice(part);
        let surplus = self.line.len().saturating_sub(END_BYTES);
        match &mut self.long {
            Some((_, bytes)) => {
                *bytes += part.len();
                self.line.drain(..surplus);
            }
            None if self.line.len() > self.line_bytes_max => {
                let head = self.line.get(..END_BYTES.min(self.line.len())).unwrap_or_default();
                self.long = Some((head.to_vec(), self.line.len()));
                self.line.drain(..surplus);
                self.line.shrink_to(END_BYTES);
            }
            None => {}
        }
        *bytes = bytes.get(part.len() + usize::from(end.is_some())..).unwrap_or_default();
        end.map(|_| self.take_whole())
    }

    /// The rest of the input as a line, at the end of the input.
    pub(crate) fn finish(&mut self) -> LineRead {
        if self.line.is_empty() && self.long.is_none() { LineRead::End } else { self.take_whole() }
    }

    fn take_whole(&mut self) -> LineRead {
        let line = std::mem::take(&mut self.line);
        match self.long.take() {
            Some((head, bytes)) => LineRead::TooLong { head, tail: line, bytes },
            None => LineRead::Line(line),
        }
    }
}

/// Reads a line of at most `most` bytes. Blocks until it is complete.
pub(crate) fn read_line(input: &mut impl BufRead, most: usize) -> io::Result<LineRead> {
    let mut buffer = LineBuffer::new(most);
    loop {
        let mut available = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            available => available?,
        };
        if available.is_empty() {
            return Ok(buffer.finish());
        }
        let before = available.len();
        let line = buffer.take_line(&mut available);
        let used = before - available.len();
        input.consume(used);
        if let Some(line) = line {
            return Ok(line);
        }
    }
}

/// Finds the `id` of a message that is too long. Senders write it as the first or the last field.
pub(crate) fn find_id_in_ends(head: &[u8], tail: &[u8]) -> Option<serde_json::Value> {
    find_id_in_head(&String::from_utf8_lossy(head)).or_else(|| find_id_in_tail(tail))
}

/// Whether a message that is too long has a `method` among its first fields.
pub(crate) fn has_method_in_head(head: &[u8]) -> bool {
    find_field_in_head(&String::from_utf8_lossy(head), "method").is_some()
}

fn find_id_in_head(head: &str) -> Option<serde_json::Value> {
    find_field_in_head(head, "id")
}

/// Reads the first fields of a message, as long as they are short.
fn find_field_in_head(head: &str, name: &str) -> Option<serde_json::Value> {
    let mut rest = head.trim_start().strip_prefix('{')?;
    loop {
        let (key, after) = split_first_value(rest)?;
        let (value, after) = split_first_value(after.trim_start().strip_prefix(':')?)?;
        if key == name {
            return Some(value);
        }
        rest = after.trim_start().strip_prefix(',')?;
    }
}

/// Finds the `id` as the last field of a message. The part before it can't be parsed, so the field
/// must be the very last one and not be nested.
fn find_id_in_tail(tail: &[u8]) -> Option<serde_json::Value> {
    const KEY: &str = "\"id\"";
    let tail = String::from_utf8_lossy(tail);
    let inside = tail.trim_end().strip_suffix('}')?;
    // The value may be the text `id` itself, which is not followed by a colon.
    let mut values = inside
        .rmatch_indices(KEY)
        .filter_map(|(at, _)| inside.get(at + KEY.len()..)?.trim_start().strip_prefix(':'));
    let value = values.next()?;
    let value: serde_json::Value = serde_json::from_str(value.trim()).ok()?;
    (value.is_number() || value.is_string()).then_some(value)
}

fn split_first_value(text: &str) -> Option<(serde_json::Value, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter();
    let value = values.next()?.ok()?;
    Some((value, text.get(values.byte_offset()..)?))
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_the_next_one_is_read() {
        let long = "x".repeat(END_BYTES * 3);
        let text = format!("one\r\n{long}yz\n\nlast");
        let mut input = BufReader::with_capacity(7, text.as_bytes());
        let mut next = || read_line(&mut input, END_BYTES * 2).unwrap();
        assert_eq!(next(), LineRead::Line(b"one\r".to_vec()));
        let LineRead::TooLong { head, tail, bytes } = next() else { panic!("too long") };
        assert_eq!((head.len(), tail.len(), bytes), (END_BYTES, END_BYTES, long.len() + 2));
        assert!(tail.ends_with(b"xyz"));
        assert_eq!(next(), LineRead::Line(Vec::new()));
        assert_eq!(next(), LineRead::Line(b"last".to_vec()));
        assert_eq!(next(), LineRead::End);
    }

    #[test]
    fn an_id_is_found_at_the_start_and_at_the_end() {
        let id = |head: &str, tail: &str| find_id_in_ends(head.as_bytes(), tail.as_bytes());
        assert_eq!(id(r#"{"jsonrpc":"2.0","id":7,"result":{"a":"xx"#, "").unwrap(), 7);
        assert_eq!(id(r#"{"result":{"id":3,"#, r#"x"}]},"jsonrpc":"2.0","id":"a"}"#).unwrap(), "a");
        assert_eq!(id("", "x\"}, \"id\" : 22 } ").unwrap(), 22);
        assert_eq!(id("", r#"x"},"id":"id"}"#).unwrap(), "id");
        assert_eq!(id(r#"{"result":{"id":3,"#, r#"xx"}]}}"#), None);
        assert_eq!(id("", r#"x","id" : 3}}"#), None, "the id is nested");
    }
}
