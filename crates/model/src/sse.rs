//! Server-sent events out of bytes, however these are split.
//!
//! A line ends with a newline, a carriage return, or both. An event has a bounded size:
//! what a server sends without an end must not fill the memory.

/// How long an event may be, with the line that is not at its end yet.
const EVENT_BYTES_MAX: usize = 8 << 20;

/// What some servers write first.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Takes bytes, and gives what is said in events.
#[derive(Debug, Default)]
pub(crate) struct Events {
    line: Vec<u8>,
    /// The data of the event that is being read, if it has any.
    data: Option<Vec<u8>>,
    /// Whether a carriage return was last: a newline after it belongs to it.
    after_return: bool,
    begun: bool,
}

/// An event is longer than any can be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Events {
    /// Takes more bytes, and adds the data of each event that is whole now. The names of
    /// events are left out: every provider repeats them in the data.
    pub(crate) fn feed(&mut self, bytes: &[u8], events: &mut Vec<Vec<u8>>) -> Result<(), TooLong> {
        let mut rest = bytes;
        while let Some(first) = rest.first() {
            if std::mem::take(&mut self.after_return) && *first == b'\n' {
                rest = rest.get(1..).unwrap_or_default();
                continue;
            }
            let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (line, after) = rest.split_at(end.unwrap_or(rest.len()));
            let held = self.line.len() + self.data.as_ref().map_or(0, Vec::len);
            if held + line.len() > EVENT_BYTES_MAX {
                return Err(TooLong);
            }
            self.line.extend_from_slice(line);
            let Some((last, after)) = after.split_first() else { return Ok(()) };
            self.after_return = *last == b'\r';
            rest = after;
            self.end_line(events);
        }
        Ok(())
    }

    fn end_line(&mut self, events: &mut Vec<Vec<u8>>) {
        let line = std::mem::take(&mut self.line);
        let line = if std::mem::replace(&mut self.begun, true) {
            line.as_slice()
        } else {
            line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&line)
        };
        if line.is_empty() {
            events.extend(self.data.take());
        } else if let Some(value) = data(line) {
            match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            }
        }
    }
}

/// What a line adds to the data of its event; comments and other fields add nothing.
fn data(line: &[u8]) -> Option<&[u8]> {
    match line.strip_prefix(b"data")? {
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

    fn all<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        let (mut events, mut found) = (Events::default(), Vec::new());
        for piece in pieces {
            events.feed(piece, &mut found).unwrap();
        }
        found.into_iter().map(|data| String::from_utf8(data).unwrap()).collect()
    }

    #[test]
    fn events_are_read_however_their_lines_end() {
        let text = "\u{feff}data: a\n\n: ping\r\n\r\nevent: x\r\nid: 1\r\ndata: {\r\ndata:}\r\n\r\n\
                    data\rdata: b\r\rdatum: no\n\nretry: 3\ndata:  two\n\ndata: half";
        assert_eq!(all([text.as_bytes()]), ["a", "{\n}", "\nb", " two"]);
    }

    #[test]
    fn an_event_without_an_end_is_not_kept() {
        let (mut events, mut found) = (Events::default(), Vec::new());
        let line = [b"data: ".as_slice(), &vec![b'x'; 1 << 20], b"\n"].concat();
        let fed: Vec<bool> = (0..9).map(|_| events.feed(&line, &mut found).is_ok()).collect();
        assert_eq!(fed.iter().filter(|ok| **ok).count(), 7, "{fed:?}");
        assert!(found.is_empty());
        let mut events = Events::default();
        assert_eq!(events.feed(&vec![b'x'; EVENT_BYTES_MAX], &mut found), Ok(()));
        assert_eq!(events.feed(b"x", &mut found), Err(TooLong));
    }

    proptest! {
        #[test]
        fn any_split_of_the_bytes_gives_the_same_events(
            lines in vec("(data|id|event|:|x)?:? ?[a-z{}\u{e4}]{0,8}(\r\n|\n|\r){0,3}", 0..20),
            cuts in vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let text = lines.concat();
            let bytes = text.as_bytes();
            let mut at: Vec<usize> =
                cuts.iter().map(|cut| cut.index(bytes.len() + 1)).chain([0, bytes.len()]).collect();
            at.sort_unstable();
            let pieces = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
            prop_assert_eq!(all(pieces), all([bytes]));
        }
    }
}
