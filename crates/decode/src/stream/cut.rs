//! When it is right to stop listening to a model.
//!
//! The check of a stream knows the first byte with which no valid document goes on. That
//! alone is no reason to cut: what is no JSON yet may still be cleaned up, and today's slips
//! (a comma too many, a document in a text, quotes that are not escaped) must not cost an
//! answer. So a stream is cut only where the ladder could not mend it either: what came is
//! an object, in JSON to the letter, and what its schema refuses in it is
//!
//! - a key, once its colon has come: before, it may be a part of a text whose quotes are not
//!   escaped, and a comma may be one too many;
//! - an item, once it has begun;
//! - a number, an object, an array, `true`, `false` or `null`, as a value or by its worth;
//! - an end that comes too early;
//! - a text by what is in it, unless it may hold a document.
//!
//! Everything else is heard to its end, as if nobody looked.

use super::{Refusal, RefusalKind, Stream, StreamSchema};

/// How long a key may be whose end is waited for.
const WAIT_BYTES_MAX: usize = 1024;

/// Listens to a document while it comes, and says when to stop.
#[derive(Debug, Clone)]
pub struct Cutter<'s> {
    stream: Stream<'s>,
    text: String,
    /// What was refused, while it is open whether the rest could be mended.
    refused: Option<Refusal>,
    over: bool,
}

/// What is to be done about a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Cut,
    /// The next bytes will tell.
    Wait,
    /// It is heard to its end.
    Leave,
}

impl<'s> Cutter<'s> {
    /// A document of which nothing has come yet.
    pub fn new(schema: &'s StreamSchema) -> Self {
        Self { stream: Stream::new(schema), text: String::new(), refused: None, over: false }
    }

    /// Takes more of the text. An error is the first byte that can't be, and the reason to
    /// stop listening: nothing that follows makes a document of it.
    pub fn feed(&mut self, more: &str) -> Result<(), Refusal> {
        if self.over {
            return Ok(());
        }
        self.text.push_str(more);
        if self.refused.is_none() {
            self.refused = self.stream.feed(more.as_bytes()).err();
        }
        let Some(refusal) = &self.refused else { return Ok(()) };
        match step(&self.text, refusal) {
            Step::Wait if self.waited(refusal) <= WAIT_BYTES_MAX => Ok(()),
            Step::Cut => Err(refusal.clone()),
            Step::Wait | Step::Leave => {
                self.over = true;
                self.text = String::new();
                Ok(())
            }
        }
    }

    /// How much has come since a refusal.
    fn waited(&self, refusal: &Refusal) -> usize {
        self.text.len().saturating_sub(usize::try_from(refusal.position).unwrap_or(usize::MAX))
    }
}

fn step(text: &str, refusal: &Refusal) -> Step {
    if !matches!(refusal.kind, RefusalKind::Schema | RefusalKind::DuplicateKey) {
        return Step::Leave;
    }
    let at = usize::try_from(refusal.position).unwrap_or(usize::MAX);
    let (Some(before), Some(rest)) = (text.get(..at), text.get(at..)) else { return Step::Leave };
    let Some(byte) = rest.bytes().next() else { return Step::Wait };
    // A square bracket may be one in prose, before the document.
    if !before.trim_start().starts_with('{') {
        return Step::Leave;
    }
    let place = Place::of(before);
    match place.open {
        None => Step::Leave,
        Some(Open { text: Some(Quoted { start, is_key: false }), .. }) => {
            in_text(before, start, byte)
        }
        Some(Open { text: Some(Quoted { is_key: true, .. }), .. }) => colon(rest),
        Some(open) => match byte {
            b',' if open.is_object => {
                let rest = rest.get(1..).unwrap_or_default().trim_start();
                match rest.strip_prefix('"') {
                    Some(key) => colon(key),
                    None if rest.is_empty() => Step::Wait,
                    None => Step::Leave,
                }
            }
            b',' => match rest.get(1..).unwrap_or_default().trim_start().bytes().next() {
                None => Step::Wait,
                Some(b'{' | b'[' | b'"' | b'-' | b'0'..=b'9') => Step::Cut,
                Some(_) => Step::Leave,
            },
            b'"' if place.awaits_key => colon(rest.get(1..).unwrap_or_default()),
            b't' => word(rest, "true"),
            b'f' => word(rest, "false"),
            b'n' => word(rest, "null"),
            b'{' | b'[' | b'}' | b']' | b'-' | b'0'..=b'9' | b' ' | b'\t' | b'\r' | b'\n' => {
                Step::Cut
            }
            // A text may hold the document that is wanted, and the rest is no JSON.
            _ => Step::Leave,
        },
    }
}

/// A text whose next character can't be. What begins as a document does may be one.
fn in_text(before: &str, start: usize, byte: u8) -> Step {
    let said = format!("{}{}", before.get(start..).unwrap_or_default(), char::from(byte));
    let plain = said.starts_with(|first: char| first.is_ascii_alphabetic())
        && !["true", "false", "null"].iter().any(|word| word.starts_with(&said))
        && !said.contains('\\');
    if plain && byte != b'"' { Step::Cut } else { Step::Leave }
}

/// Waits for the end of a key, and for its colon.
fn colon(rest: &str) -> Step {
    let Some(end) = rest.find(['"', '\\', '\n']) else { return Step::Wait };
    let (_, after) = rest.split_at(end);
    let Some(after) = after.strip_prefix('"') else { return Step::Leave };
    match after.trim_start().bytes().next() {
        None => Step::Wait,
        Some(b':') => Step::Cut,
        Some(_) => Step::Leave,
    }
}

/// Waits for the end of a word, and for what follows it.
fn word(rest: &str, word: &str) -> Step {
    match rest.strip_prefix(word).map(|rest| rest.bytes().next()) {
        None if word.starts_with(rest) => Step::Wait,
        Some(None) => Step::Wait,
        Some(Some(b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n')) => Step::Cut,
        None | Some(Some(_)) => Step::Leave,
    }
}

/// Where in a document a byte stands. What is before it is JSON, as far as it goes.
struct Place {
    open: Option<Open>,
    /// Whether a key is next.
    awaits_key: bool,
}

/// What is open there.
struct Open {
    is_object: bool,
    text: Option<Quoted>,
}

/// A string that is not closed.
#[derive(Clone, Copy)]
struct Quoted {
    /// Where its first character is.
    start: usize,
    is_key: bool,
}

impl Place {
    fn of(before: &str) -> Self {
        let mut open: Vec<bool> = Vec::new();
        let (mut text, mut escaped, mut awaits_key) = (None, false, false);
        for (at, byte) in before.bytes().enumerate() {
            match (text, byte) {
                (Some(_), _) if escaped => escaped = false,
                (Some(_), b'\\') => escaped = true,
                (Some(_), b'"') => text = None,
                (None, b'"') => {
                    text = Some(Quoted { start: at + 1, is_key: awaits_key });
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
        Self { open: open.last().map(|is_object| Open { is_object: *is_object, text }), awaits_key }
    }
}
