//! Server-sent events, parsed from bytes in any split.
//!
//! A line ends with a newline, a carriage return, or both. The parser stores the data of one
//! event and a short part of one line, so a server that sends an event without an end can't fill
//! the memory.

/// The maximum length of the value of `event`, `id` or `retry`. The parser ignores a longer one.
const SHORT_VALUE_BYTES_MAX: usize = 4 << 10;

/// The byte order mark that some servers send first.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// How much of a line is stored until its field name is complete: a byte order mark and the longest
/// name. The parser ignores a field with a longer name.
const NAME_BYTES_MAX: usize = BYTE_ORDER_MARK.len() + 5;

/// What the parser does with an event that is longer than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverlongEvent {
    /// It reports an error.
    Reject,
    /// It stores the first and the last bytes of the data, this many of each.
    KeepEnds(usize),
}

/// An event is longer than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SseOverflow;

/// One event of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The type of the event; an event without one is a `message`.
    pub name: Option<String>,
    /// The id by which a client resumes the stream after this event.
    pub id: Option<String>,
    /// How long a client waits before it resumes the stream.
    pub retry_ms: Option<u64>,
    /// The data; `None` if the event has no `data` line.
    pub data: Option<SseData>,
}

/// The data of an event: its lines, joined by newlines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SseData {
    /// All of it.
    Whole(Vec<u8>),
    /// The ends of data that is longer than the limit, and its length.
    TooLong {
        /// The first bytes.
        head: Vec<u8>,
        /// The last bytes.
        tail: Vec<u8>,
        /// How many bytes there are.
        bytes: usize,
    },
}

/// Parses a stream of events piece by piece.
#[derive(Debug)]
pub struct SseParser {
    event_bytes_max: usize,
    overlong: OverlongEvent,
    /// The event that is being read.
    event: SseEvent,
    line: SseLine,
    /// Whether the last byte was a carriage return: a newline after it belongs to it.
    after_return: bool,
    has_begun: bool,
}

/// The line that is being read.
#[derive(Debug, Default)]
struct SseLine {
    field: SseField,
    /// The bytes so far of the field name, then of a short value.
    stored: Vec<u8>,
    /// Whether a part of the value was read: then a space at its start is no longer skipped.
    has_value: bool,
    bytes: usize,
    /// How many bytes of data the event had when the line began.
    data_bytes_before: usize,
}

/// The field of a line.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum SseField {
    /// The name is not complete yet.
    #[default]
    Unnamed,
    Data,
    Event,
    Id,
    Retry,
    /// A comment, or a field that no client needs.
    Ignored,
}

impl SseParser {
    /// A parser for the start of a stream. The limit applies to the data of an event together with
    /// the line that is being read.
    pub fn new(event_bytes_max: usize, overlong: OverlongEvent) -> Self {
        Self {
            event_bytes_max,
            overlong,
            event: SseEvent::default(),
            line: SseLine::default(),
            after_return: false,
            has_begun: false,
        }
    }

    /// Parses more bytes, and adds each event that is complete now to `events`.
    ///
    /// With [`OverlongEvent::Reject`] an overlong event is an error, at the byte where it
    /// becomes too long; the parser can't be used after that.
    pub fn feed(&mut self, bytes: &[u8], events: &mut Vec<SseEvent>) -> Result<(), SseOverflow> {
        let mut rest = bytes;
        while let Some(first) = rest.first() {
            if std::mem::take(&mut self.after_return) && *first == b'\n' {
                rest = rest.get(1..).unwrap_or_default();
                continue;
            }
            let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (piece, after) = rest.split_at(end.unwrap_or(rest.len()));
            self.read_piece(piece)?;
            let Some((last, after)) = after.split_first() else { return Ok(()) };
            self.after_return = *last == b'\r';
            rest = after;
            self.end_line(events);
        }
        Ok(())
    }

    /// Reads a part of a line.
    fn read_piece(&mut self, piece: &[u8]) -> Result<(), SseOverflow> {
        self.line.bytes += piece.len();
        if self.is_overlong() && self.overlong == OverlongEvent::Reject {
            return Err(SseOverflow);
        }
        if self.line.field != SseField::Unnamed {
            self.read_value(piece);
            return Ok(());
        }
        let end = piece.iter().position(|byte| *byte == b':');
        let (name, value) = piece.split_at(end.unwrap_or(piece.len()));
        let room = (NAME_BYTES_MAX + 1).saturating_sub(self.line.stored.len());
        self.line.stored.extend_from_slice(name.get(..room).unwrap_or(name));
        if let Some((_, value)) = value.split_first() {
            self.end_name();
            self.read_value(value);
        }
        Ok(())
    }

    fn is_overlong(&self) -> bool {
        self.line.data_bytes_before + self.line.bytes > self.event_bytes_max
    }

    /// The field name as far as it was read, without a byte order mark.
    fn field_name(&self) -> &[u8] {
        let stored = self.line.stored.as_slice();
        if self.has_begun { stored } else { stored.strip_prefix(BYTE_ORDER_MARK).unwrap_or(stored) }
    }

    /// Handles the end of the field name.
    fn end_name(&mut self) {
        self.line.field = match self.field_name() {
            b"data" => SseField::Data,
            b"event" => SseField::Event,
            b"id" => SseField::Id,
            b"retry" => SseField::Retry,
            _ => SseField::Ignored,
        };
        self.line.stored.clear();
        self.has_begun = true;
        if self.line.field == SseField::Data {
            match &mut self.event.data {
                Some(_) => self.add_data(b"\n"),
                none => *none = Some(SseData::Whole(Vec::new())),
            }
        }
    }

    /// Reads a part of the value of a field.
    fn read_value(&mut self, piece: &[u8]) {
        let skips_space = !self.line.has_value;
        self.line.has_value |= !piece.is_empty();
        let piece = if skips_space { piece.strip_prefix(b" ").unwrap_or(piece) } else { piece };
        match self.line.field {
            SseField::Data => self.add_data(piece),
            SseField::Event | SseField::Id | SseField::Retry => {
                let room = (SHORT_VALUE_BYTES_MAX + 1).saturating_sub(self.line.stored.len());
                self.line.stored.extend_from_slice(piece.get(..room).unwrap_or(piece));
            }
            SseField::Unnamed | SseField::Ignored => {}
        }
    }

    fn add_data(&mut self, bytes: &[u8]) {
        let is_overlong = self.is_overlong();
        match (&mut self.event.data, self.overlong) {
            (Some(data), OverlongEvent::KeepEnds(end_bytes)) => {
                if is_overlong {
                    data.keep_ends(end_bytes);
                }
                data.add(bytes, end_bytes);
            }
            (Some(SseData::Whole(data)), OverlongEvent::Reject) => data.extend_from_slice(bytes),
            (Some(SseData::TooLong { .. }) | None, _) => {}
        }
    }

    fn end_line(&mut self, events: &mut Vec<SseEvent>) {
        if self.line.field == SseField::Unnamed {
            let is_blank = self.field_name().is_empty();
            self.end_name();
            if is_blank {
                events.push(std::mem::take(&mut self.event));
            }
        }
        let line = std::mem::take(&mut self.line);
        self.line.data_bytes_before = self.event.data.as_ref().map_or(0, SseData::len);
        if line.stored.len() > SHORT_VALUE_BYTES_MAX {
            return;
        }
        let Ok(value) = String::from_utf8(line.stored) else { return };
        match line.field {
            SseField::Event => self.event.name = Some(value),
            SseField::Id => self.event.id = Some(value),
            SseField::Retry => self.event.retry_ms = value.parse().ok(),
            SseField::Data | SseField::Unnamed | SseField::Ignored => {}
        }
    }
}

impl SseData {
    fn len(&self) -> usize {
        match self {
            Self::Whole(data) => data.len(),
            Self::TooLong { bytes, .. } => *bytes,
        }
    }

    fn keep_ends(&mut self, end_bytes: usize) {
        if let Self::Whole(data) = self {
            let head = first_bytes(data, end_bytes).to_vec();
            let tail = last_bytes(data, end_bytes).to_vec();
            *self = Self::TooLong { head, tail, bytes: data.len() };
        }
    }

    fn add(&mut self, more: &[u8], end_bytes: usize) {
        match self {
            Self::Whole(data) => data.extend_from_slice(more),
            Self::TooLong { head, tail, bytes } => {
                *bytes += more.len();
                head.extend_from_slice(first_bytes(more, end_bytes.saturating_sub(head.len())));
                tail.extend_from_slice(last_bytes(more, end_bytes));
                tail.drain(..tail.len().saturating_sub(end_bytes));
            }
        }
    }
}

fn first_bytes(bytes: &[u8], count: usize) -> &[u8] {
    bytes.get(..count).unwrap_or(bytes)
}

fn last_bytes(bytes: &[u8], count: usize) -> &[u8] {
    bytes.get(bytes.len().saturating_sub(count)..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const END_BYTES: usize = 4 << 10;

    fn parse<'a>(
        pieces: impl IntoIterator<Item = &'a [u8]>,
        event_bytes_max: usize,
        end_bytes: usize,
    ) -> Vec<SseEvent> {
        let mut parser = SseParser::new(event_bytes_max, OverlongEvent::KeepEnds(end_bytes));
        let mut events = Vec::new();
        pieces.into_iter().for_each(|piece| parser.feed(piece, &mut events).unwrap());
        events
    }

    /// The data of each event that has some.
    fn texts(bytes: &[u8]) -> Vec<String> {
        let mut parser = SseParser::new(8 << 20, OverlongEvent::Reject);
        let mut events = Vec::new();
        parser.feed(bytes, &mut events).unwrap();
        let text = |data| match data {
            SseData::Whole(data) => String::from_utf8(data).unwrap(),
            SseData::TooLong { .. } => panic!("no event here is too long"),
        };
        events.into_iter().filter_map(|event| event.data).map(text).collect()
    }

    /// Splits the bytes at the positions in `cuts`.
    fn split<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
        let inner = cuts.iter().map(|cut| cut.index(bytes.len() + 1));
        let mut at: Vec<usize> = inner.chain([0, bytes.len()]).collect();
        at.sort_unstable();
        at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
    }

    #[test]
    fn events_are_read_however_their_lines_end() {
        let text = "\u{feff}data: a\n\n: ping\r\n\r\nevent: x\r\nid: 1\r\ndata: {\r\ndata:}\r\n\r\n\
                    data\rdata: b\r\rdatum: no\n\nretry: 3\ndata:  two\n\ndata: half";
        assert_eq!(texts(text.as_bytes()), ["a", "{\n}", "\nb", " two"]);
    }

    #[test]
    fn an_event_has_its_name_its_id_and_its_time_to_retry() {
        let text = ": hello\r\n\r\nevent: message\r\nid: 7\r\ndata: {\r\ndata:}\r\n\r\nretry:5\nid\ndata\n\ndata: half";
        let data = |text: &str| Some(SseData::Whole(text.as_bytes().to_vec()));
        let named = |text: &str| Some(text.to_owned());
        let expected = [
            SseEvent::default(),
            SseEvent { name: named("message"), id: named("7"), retry_ms: None, data: data("{\n}") },
            SseEvent { name: None, id: named(""), retry_ms: Some(5), data: data("") },
        ];
        assert_eq!(parse([text.as_bytes()], 100, END_BYTES), expected);
    }

    #[test]
    fn a_short_field_that_is_long_is_ignored() {
        let long = "x".repeat(SHORT_VALUE_BYTES_MAX + 1);
        let text = format!("id: 1\nid: {long}\nevent: {long}\nretry: soon\ndata: 1\n\n");
        let events = parse([text.as_bytes()], 1 << 20, END_BYTES);
        let data = Some(SseData::Whole(b"1".to_vec()));
        let expected = SseEvent { id: Some("1".to_owned()), data, ..SseEvent::default() };
        assert_eq!(events, [expected]);
    }

    #[test]
    fn an_event_without_an_end_is_not_stored() {
        const MAX: usize = 8 << 20;
        let (mut parser, mut events) = (SseParser::new(MAX, OverlongEvent::Reject), Vec::new());
        let line = [b"data: ".as_slice(), &vec![b'x'; 1 << 20], b"\n"].concat();
        let fed: Vec<bool> = (0..9).map(|_| parser.feed(&line, &mut events).is_ok()).collect();
        assert_eq!(fed.iter().filter(|ok| **ok).count(), 7, "{fed:?}");
        assert!(events.is_empty());
        let mut parser = SseParser::new(MAX, OverlongEvent::Reject);
        assert_eq!(parser.feed(&vec![b'x'; MAX], &mut events), Ok(()));
        assert_eq!(parser.feed(b"x", &mut events), Err(SseOverflow));
    }

    #[test]
    fn an_overlong_event_keeps_its_ends_and_the_next_one_is_found() {
        let (line, max) = ("x".repeat(5000), 9000);
        let twice = format!("data: begin{line}\ndata: {line}\ndata: end\n\n");
        let once = format!("data: begin{line}{line}end\n\n");
        for (text, length) in [(twice, 10_010), (once, 10_008)] {
            let events = parse([format!("{text}data: 1\n\n").as_bytes()], max, END_BYTES);
            let Some(SseData::TooLong { head, tail, bytes }) = &events[0].data else {
                panic!("the event is too long")
            };
            assert!(head.starts_with(b"begin") && tail.ends_with(b"end"), "{events:?}");
            assert_eq!((head.len(), tail.len(), *bytes), (END_BYTES, END_BYTES, length));
            assert_eq!(events[1].data, Some(SseData::Whole(b"1".to_vec())));
        }
    }

    proptest! {
        #[test]
        fn any_split_of_the_bytes_gives_the_same_events(
            lines in vec("(data|id|event|retry|:|x)?:? ?[a-z1{}\u{e4}]{0,8}(\r\n|\n|\r){0,3}", 0..20),
            cuts in vec(any::<prop::sample::Index>(), 0..12),
            max in 1_usize..60,
            end_bytes in 1_usize..20,
        ) {
            let bytes = lines.concat().into_bytes();
            let pieces = split(&bytes, &cuts);
            prop_assert_eq!(parse(pieces, max, end_bytes), parse([bytes.as_slice()], max, end_bytes));
        }

        #[test]
        fn no_event_is_longer_than_the_limit(
            lines in vec("(data|id|event|retry|:|x)?:? ?[a-z{}\"\u{e4}]{0,12}\r?\n{0,2}", 0..40),
            max in 1_usize..30,
        ) {
            let text = lines.concat();
            for event in parse([text.as_bytes()], max, END_BYTES) {
                match event.data {
                    Some(SseData::Whole(data)) => prop_assert!(data.len() <= max),
                    Some(SseData::TooLong { bytes, .. }) => prop_assert!(bytes <= text.len()),
                    None => {}
                }
            }
        }

        #[test]
        fn both_ways_to_treat_an_overlong_event_agree_on_the_others(
            lines in vec("(data|id|:)?: ?[a-z]{0,8}(\r\n|\n|\r){0,2}", 0..20),
            max in 1_usize..60,
        ) {
            let text = lines.concat();
            let (mut parser, mut events) = (SseParser::new(max, OverlongEvent::Reject), Vec::new());
            let fed = parser.feed(text.as_bytes(), &mut events);
            let with_ends = parse([text.as_bytes()], max, END_BYTES);
            let cut_off = with_ends.len().min(events.len());
            prop_assert_eq!(&with_ends[..cut_off], &events[..]);
            prop_assert!(fed.is_err() || with_ends.len() == events.len());
        }
    }
}
