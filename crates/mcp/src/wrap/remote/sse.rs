//! Events as a server sends them over HTTP, of bounded length.
//!
//! A line ends with a newline, with a carriage return before it or not. The format also
//! knows lines that end with a carriage return alone; no server of MCP writes them.

use std::io::{self, BufReader, Read};

use crate::wrap::lines::{self, END_BYTES, read_line};

/// How long the short fields of an event may be.
const FIELD_BYTES_MAX: usize = 4 << 10;

/// Something that a server says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// What kind it is of; messages have none, or `message`.
    pub(super) name: Option<String>,
    /// Where a stream that breaks is taken up again.
    pub(super) id: Option<String>,
    /// How long to wait before that.
    pub(super) retry_ms: Option<u64>,
    pub(super) data: Data,
}

/// What is said in an event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Data {
    /// Its lines, with newlines between them.
    Whole(Vec<u8>),
    /// How it begins and ends, and how long it is.
    TooLong { head: Vec<u8>, tail: Vec<u8>, bytes: usize },
}

/// The events of a stream.
pub(super) struct Events<R> {
    input: BufReader<R>,
    most: usize,
}

impl<R: Read> Events<R> {
    pub(super) fn new(input: R, most: usize) -> Self {
        Self { input: BufReader::with_capacity(64 << 10, input), most }
    }

    /// The next event; none where the stream is at its end. What has no end is no event.
    pub(super) fn next(&mut self) -> io::Result<Option<Event>> {
        let mut event =
            Event { name: None, id: None, retry_ms: None, data: Data::Whole(Vec::new()) };
        let mut lines = 0_usize;
        loop {
            match read_line(&mut self.input, self.most)? {
                lines::Read::End => return Ok(None),
                lines::Read::Line(line) => {
                    let line = line.strip_suffix(b"\r").unwrap_or(&line);
                    if line.is_empty() {
                        return Ok(Some(event));
                    }
                    event.line(line, &mut lines, self.most);
                }
                lines::Read::TooLong { head, tail, bytes } => {
                    if let Some(start) = value(&head, b"data") {
                        let bytes = bytes - (head.len() - start.len());
                        event.data = Data::TooLong { head: start.to_vec(), tail, bytes };
                        lines += 1;
                    }
                }
            }
        }
    }
}

impl Event {
    fn line(&mut self, line: &[u8], lines: &mut usize, most: usize) {
        if let Some(data) = value(line, b"data") {
            self.data.push(data, *lines > 0, most);
            *lines += 1;
            return;
        }
        let short = |name: &[u8]| {
            let value = value(line, name).filter(|value| value.len() <= FIELD_BYTES_MAX);
            value.and_then(|value| String::from_utf8(value.to_vec()).ok())
        };
        if let Some(name) = short(b"event") {
            self.name = Some(name);
        } else if let Some(id) = short(b"id") {
            self.id = Some(id);
        } else if let Some(retry) = short(b"retry") {
            self.retry_ms = retry.parse().ok();
        }
    }
}

impl Data {
    fn push(&mut self, line: &[u8], another: bool, most: usize) {
        let end = |bytes: &[u8]| {
            bytes.get(bytes.len().saturating_sub(END_BYTES)..).unwrap_or_default().to_vec()
        };
        match self {
            Self::Whole(data) => {
                if another {
                    data.push(b'\n');
                }
                data.extend_from_slice(line);
                if data.len() > most {
                    let head = data.get(..END_BYTES.min(data.len())).unwrap_or_default().to_vec();
                    let tail = end(data);
                    *self = Self::TooLong { head, tail, bytes: data.len() };
                }
            }
            Self::TooLong { tail, bytes, .. } => {
                *bytes += line.len() + 1;
                *tail = end(&[tail.as_slice(), line].concat());
            }
        }
    }
}

/// The value of a field of this name.
fn value<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    match line.strip_prefix(name)? {
        [] => Some(&[]),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn all(text: &str, most: usize) -> Vec<Event> {
        let mut events = Events::new(text.as_bytes(), most);
        std::iter::from_fn(|| events.next().unwrap()).collect()
    }

    #[test]
    fn events_are_read_however_their_lines_end() {
        let text = ": hello\r\n\r\nevent: message\r\nid: 7\r\ndata: {\r\ndata:}\r\n\r\nretry:5\nid\ndata\n\ndata: half";
        let data = |text: &str| Data::Whole(text.as_bytes().to_vec());
        let named = |text: &str| Some(text.to_owned());
        let expected = [
            Event { name: None, id: None, retry_ms: None, data: data("") },
            Event { name: named("message"), id: named("7"), retry_ms: None, data: data("{\n}") },
            Event { name: None, id: named(""), retry_ms: Some(5), data: data("") },
        ];
        assert_eq!(all(text, 100), expected);
    }

    #[test]
    fn what_is_too_long_is_known_by_its_ends_and_the_next_one_is_found() {
        let (line, most) = ("x".repeat(5000), 9000);
        let twice = format!("data: begin{line}\ndata: {line}\ndata: end\n\n");
        let once = format!("data: begin{line}{line}end\n\n");
        for (text, bytes) in [(twice, 10_010), (once, 10_008)] {
            let events = all(&format!("{text}data: 1\n\n"), most);
            let Data::TooLong { head, tail, bytes: found } = &events[0].data else {
                panic!("it is too long")
            };
            assert!(head.starts_with(b"begin") && tail.ends_with(b"end"), "{events:?}");
            assert_eq!(*found, bytes);
            assert_eq!(events[1].data, Data::Whole(b"1".to_vec()));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_come_to_an_end_and_no_event_is_longer_than_allowed(
            lines in vec("(data|id|event|retry|:|x)?:? ?[a-z{}\"\u{e4}]{0,12}\r?\n{0,2}", 0..40),
            most in 1_usize..30,
        ) {
            let text = lines.concat();
            for event in all(&text, most) {
                match event.data {
                    Data::Whole(data) => prop_assert!(data.len() <= most),
                    Data::TooLong { bytes, .. } => prop_assert!(bytes <= text.len()),
                }
            }
        }
    }
}
