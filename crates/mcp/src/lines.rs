//! Lines of bounded length, whatever is sent.

use std::io::{self, BufRead};

/// The longest line that is read.
pub(crate) const LINE_BYTES_MAX: usize = 64 << 20;

/// How much is kept of both ends of a longer one.
pub(crate) const END_BYTES: usize = 4 << 10;

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// A line, without its newline.
    Line(Vec<u8>),
    /// How a line begins and ends that is too long, and how long it is.
    TooLong { head: Vec<u8>, tail: Vec<u8>, bytes: usize },
    /// There is nothing more.
    End,
}

/// A line while it comes; the middle of one that is too long is passed over.
#[derive(Debug)]
pub(crate) struct Coming {
    most: usize,
    line: Vec<u8>,
    /// How a line begins that is too long, and how long it is so far.
    long: Option<(Vec<u8>, usize)>,
}

impl Coming {
    /// Lines of at most so many bytes.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, line: Vec::new(), long: None }
    }

    /// Takes bytes up to the end of a line; gives the line where there is one.
    pub(crate) fn take(&mut self, bytes: &mut &[u8]) -> Option<Read> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let part = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
        self.line.extend_from_slice(part);
        let kept = self.line.len().saturating_sub(END_BYTES);
        match &mut self.long {
            Some((_, bytes)) => {
                *bytes += part.len();
                self.line.drain(..kept);
            }
            None if self.line.len() > self.most => {
                let head = self.line.get(..END_BYTES.min(self.line.len())).unwrap_or_default();
                self.long = Some((head.to_vec(), self.line.len()));
                self.line.drain(..kept);
                self.line.shrink_to(END_BYTES);
            }
            None => {}
        }
        *bytes = bytes.get(part.len() + usize::from(end.is_some())..).unwrap_or_default();
        end.map(|_| self.whole())
    }

    /// What is left where nothing more comes.
    pub(crate) fn end(&mut self) -> Read {
        if self.line.is_empty() && self.long.is_none() { Read::End } else { self.whole() }
    }

    fn whole(&mut self) -> Read {
        let line = std::mem::take(&mut self.line);
        match self.long.take() {
            Some((head, bytes)) => Read::TooLong { head, tail: line, bytes },
            None => Read::Line(line),
        }
    }
}

/// Reads a line of at most `most` bytes, however long that takes.
pub(crate) fn read_line(input: &mut impl BufRead, most: usize) -> io::Result<Read> {
    let mut coming = Coming::new(most);
    loop {
        let mut available = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            available => available?,
        };
        if available.is_empty() {
            return Ok(coming.end());
        }
        let before = available.len();
        let line = coming.take(&mut available);
        let used = before - available.len();
        input.consume(used);
        if let Some(line) = line {
            return Ok(line);
        }
    }
}

/// The id in the ends of a message that is too long, as JSON: it is written first or last.
pub(crate) fn id_in_ends(head: &[u8], tail: &[u8]) -> Option<serde_json::Value> {
    id_in_head(&String::from_utf8_lossy(head)).or_else(|| id_in_tail(tail))
}

/// Whether a message that is too long has a method, as far as its first fields say so.
pub(crate) fn begins_with_method(head: &[u8]) -> bool {
    field_in_head(&String::from_utf8_lossy(head), "method").is_some()
}

fn id_in_head(head: &str) -> Option<serde_json::Value> {
    field_in_head(head, "id")
}

/// Reads fields from the beginning as long as they are short.
fn field_in_head(head: &str, name: &str) -> Option<serde_json::Value> {
    let mut rest = head.trim_start().strip_prefix('{')?;
    loop {
        let (key, after) = first_value(rest)?;
        let (value, after) = first_value(after.trim_start().strip_prefix(':')?)?;
        if key == name {
            return Some(value);
        }
        rest = after.trim_start().strip_prefix(',')?;
    }
}

/// Looks for the last field of the message. What is before it can't be read, so it
/// has to be the very last thing, and within nothing else.
fn id_in_tail(tail: &[u8]) -> Option<serde_json::Value> {
    const KEY: &str = "\"id\"";
    let tail = String::from_utf8_lossy(tail);
    let inside = tail.trim_end().strip_suffix('}')?;
    // The value may be the word itself, which no colon follows.
    let mut values = inside
        .rmatch_indices(KEY)
        .filter_map(|(at, _)| inside.get(at + KEY.len()..)?.trim_start().strip_prefix(':'));
    let value = values.next()?;
    let value: serde_json::Value = serde_json::from_str(value.trim()).ok()?;
    (value.is_number() || value.is_string()).then_some(value)
}

fn first_value(text: &str) -> Option<(serde_json::Value, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter();
    let value = values.next()?.ok()?;
    Some((value, text.get(values.byte_offset()..)?))
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    #[test]
    fn lines_are_bounded_and_the_next_one_is_found() {
        let long = "x".repeat(END_BYTES * 3);
        let text = format!("one\r\n{long}yz\n\nlast");
        let mut input = BufReader::with_capacity(7, text.as_bytes());
        let mut next = || read_line(&mut input, END_BYTES * 2).unwrap();
        assert_eq!(next(), Read::Line(b"one\r".to_vec()));
        let Read::TooLong { head, tail, bytes } = next() else { panic!("too long") };
        assert_eq!((head.len(), tail.len(), bytes), (END_BYTES, END_BYTES, long.len() + 2));
        assert!(tail.ends_with(b"xyz"));
        assert_eq!(next(), Read::Line(Vec::new()));
        assert_eq!(next(), Read::Line(b"last".to_vec()));
        assert_eq!(next(), Read::End);
    }

    #[test]
    fn an_id_is_found_at_both_ends() {
        let id = |head: &str, tail: &str| id_in_ends(head.as_bytes(), tail.as_bytes());
        assert_eq!(id(r#"{"jsonrpc":"2.0","id":7,"result":{"a":"xx"#, "").unwrap(), 7);
        assert_eq!(id(r#"{"result":{"id":3,"#, r#"x"}]},"jsonrpc":"2.0","id":"a"}"#).unwrap(), "a");
        assert_eq!(id("", "x\"}, \"id\" : 22 } ").unwrap(), 22);
        assert_eq!(id("", r#"x"},"id":"id"}"#).unwrap(), "id");
        assert_eq!(id(r#"{"result":{"id":3,"#, r#"xx"}]}}"#), None);
        assert_eq!(id("", r#"x","id" : 3}}"#), None, "within something else");
    }
}
