//! Decides when to stop reading the text of a model early.
//!
//! The streaming check finds the first byte after which no valid document is possible. That
//! alone is no reason to stop: the decoding ladder can repair many mistakes (an extra comma,
//! a document in a string, unescaped quotes), and such a text must not lose its answer. So
//! the stream is cut only where the ladder could not repair the text either: everything so
//! far is strict JSON and an object, and the schema refuses
//!
//! - a key, after its colon has arrived (before that, it may be part of a string with
//!   unescaped quotes, and a comma in front of it may be an extra one);
//! - an item, after it has started;
//! - a number, an object, an array, `true`, `false` or `null`, because of its type or value;
//! - an end of an object or array that is too early;
//! - the content of a string, unless the string may contain a document.
//!
//! In all other cases the stream is read to its end.

use super::{Refusal, RefusalKind, StreamCheck, StreamSchema};

/// How many bytes the cutter waits for the end of a key after a refusal.
const KEY_WAIT_BYTES_MAX: usize = 1024;

/// Reads a document while it arrives, and reports when to stop.
#[derive(Debug, Clone)]
pub struct StreamCutter<'s> {
    stream: StreamCheck<'s>,
    text: String,
    /// The refusal, while it is not decided whether the text can be repaired.
    refused: Option<Refusal>,
    is_undecidable: bool,
}

/// What to do about a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CutDecision {
    Cut,
    /// The next bytes will decide.
    Wait,
    /// Read the stream to its end.
    ReadOn,
}

impl<'s> StreamCutter<'s> {
    /// A cutter for a document of which nothing has arrived yet.
    pub fn new(schema: &'s StreamSchema) -> Self {
        Self {
            stream: StreamCheck::new(schema),
            text: String::new(),
            refused: None,
            is_undecidable: false,
        }
    }

    /// Reads more of the text. An error means: stop reading, because no continuation can
    /// make the text valid. It reports the first invalid byte.
    pub fn feed(&mut self, more: &str) -> Result<(), Refusal> {
        if self.is_undecidable {
            return Ok(());
        }
        self.text.push_str(more);
        if self.refused.is_none() {
            self.refused = self.stream.feed(more.as_bytes()).err();
        }
        let Some(refusal) = &self.refused else { return Ok(()) };
        match decide_cut(&self.text, refusal) {
            CutDecision::Wait if self.bytes_since(refusal) <= KEY_WAIT_BYTES_MAX => Ok(()),
            CutDecision::Cut => Err(refusal.clone()),
            CutDecision::Wait | CutDecision::ReadOn => {
                self.is_undecidable = true;
                self.text = String::new();
                Ok(())
            }
        }
    }

    /// How many bytes have arrived since a refusal.
    fn bytes_since(&self, refusal: &Refusal) -> usize {
        self.text.len().saturating_sub(usize::try_from(refusal.position).unwrap_or(usize::MAX))
    }
}

fn decide_cut(text: &str, refusal: &Refusal) -> CutDecision {
    if !matches!(refusal.kind, RefusalKind::Schema | RefusalKind::DuplicateKey) {
        return CutDecision::ReadOn;
    }
    let at = usize::try_from(refusal.position).unwrap_or(usize::MAX);
    let (Some(before), Some(rest)) = (text.get(..at), text.get(at..)) else {
        return CutDecision::ReadOn;
    };
    let Some(byte) = rest.bytes().next() else { return CutDecision::Wait };
    // A square bracket may be part of prose before the document.
    if !before.trim_start().starts_with('{') {
        return CutDecision::ReadOn;
    }
    let position = CutPosition::of(before);
    match position.open {
        None => CutDecision::ReadOn,
        Some(OpenBracket { open_string: Some(OpenString { start, is_key: false }), .. }) => {
            decide_in_text(before, start, byte)
        }
        Some(OpenBracket { open_string: Some(OpenString { is_key: true, .. }), .. }) => {
            decide_at_key(rest)
        }
        Some(open) => match byte {
            b',' if open.is_object => {
                let rest = rest.get(1..).unwrap_or_default().trim_start();
                match rest.strip_prefix('"') {
                    Some(key) => decide_at_key(key),
                    None if rest.is_empty() => CutDecision::Wait,
                    None => CutDecision::ReadOn,
                }
            }
            b',' => match rest.get(1..).unwrap_or_default().trim_start().bytes().next() {
                None => CutDecision::Wait,
                Some(b'{' | b'[' | b'"' | b'-' | b'0'..=b'9') => CutDecision::Cut,
                Some(_) => CutDecision::ReadOn,
            },
            b'"' if position.awaits_key => decide_at_key(rest.get(1..).unwrap_or_default()),
            b't' => decide_at_word(rest, "true"),
            b'f' => decide_at_word(rest, "false"),
            b'n' => decide_at_word(rest, "null"),
            b'{' | b'[' | b'}' | b']' | b'-' | b'0'..=b'9' | b' ' | b'\t' | b'\r' | b'\n' => {
                CutDecision::Cut
            }
            // A string may contain the expected document; all other bytes are not JSON.
            _ => CutDecision::ReadOn,
        },
    }
}

/// Decides about a refused character in a string. A string that starts like a document may
/// contain one.
fn decide_in_text(before: &str, start: usize, byte: u8) -> CutDecision {
    let text = format!("{}{}", before.get(start..).unwrap_or_default(), char::from(byte));
    let plain = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && !["true", "false", "null"].iter().any(|word| word.starts_with(&text))
        && !text.contains('\\');
    if plain && byte != b'"' { CutDecision::Cut } else { CutDecision::ReadOn }
}

/// Waits for the end of a key, and for its colon.
fn decide_at_key(rest: &str) -> CutDecision {
    let Some(end) = rest.find(['"', '\\', '\n']) else { return CutDecision::Wait };
    let (_, after) = rest.split_at(end);
    let Some(after) = after.strip_prefix('"') else { return CutDecision::ReadOn };
    match after.trim_start().bytes().next() {
        None => CutDecision::Wait,
        Some(b':') => CutDecision::Cut,
        Some(_) => CutDecision::ReadOn,
    }
}

/// Waits for the end of a word, and for the byte behind it.
fn decide_at_word(rest: &str, word: &str) -> CutDecision {
    match rest.strip_prefix(word).map(|rest| rest.bytes().next()) {
        None if word.starts_with(rest) => CutDecision::Wait,
        Some(None) => CutDecision::Wait,
        Some(Some(b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n')) => CutDecision::Cut,
        None | Some(Some(_)) => CutDecision::ReadOn,
    }
}

/// The position of a byte in a document. The text before it is a prefix of valid JSON.
struct CutPosition {
    open: Option<OpenBracket>,
    /// Whether a key is next.
    awaits_key: bool,
}

/// The innermost open object or array.
struct OpenBracket {
    is_object: bool,
    open_string: Option<OpenString>,
}

/// A string that is not closed.
#[derive(Clone, Copy)]
struct OpenString {
    /// Where its first character is.
    start: usize,
    is_key: bool,
}

impl CutPosition {
    fn of(before: &str) -> Self {
        let mut open: Vec<bool> = Vec::new();
        let (mut text, mut escaped, mut awaits_key) = (None, false, false);
        for (at, byte) in before.bytes().enumerate() {
            match (text, byte) {
                (Some(_), _) if escaped => escaped = false,
                (Some(_), b'\\') => escaped = true,
                (Some(_), b'"') => text = None,
                (None, b'"') => {
                    text = Some(OpenString { start: at + 1, is_key: awaits_key });
                    awaits_key = false;
                }
                (None, b'{' | b'[') => {
                    open.push(byte == b'{');
                    awaits_key = byte == b'{';
                }
                (None, b'}' | b']') => {
                    open.pop();
                    awaits_key = false;
                }
                (None, b',') => awaits_key = open.last() == Some(&true),
                (_, _) => {}
            }
        }
        Self {
            open: open
                .last()
                .map(|is_object| OpenBracket { is_object: *is_object, open_string: text }),
            awaits_key,
        }
    }
}
