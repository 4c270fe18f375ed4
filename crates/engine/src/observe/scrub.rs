//! The part of a result that stays the same on every run, without times, durations, process
//! numbers, addresses and names of temporary files.
//!
//! An agent that runs the same command again and gets the same answer learns nothing, even if the
//! answer contains another duration. Only parts with an unmistakable form are removed. A plain
//! number stays: page 3 is not page 4, and "43 tests passed" is more than "42 tests passed".

mod number;
mod paths;
mod volatile_names;

use alloc::vec::Vec;

use crate::digest::Digest128;

/// How many bytes of each end are read. Clients show less than twice this to a model, so the model
/// has not seen the middle.
const READ_END_BYTES: usize = 64 * 1024;

/// How many bytes of each scrubbed end count. It is less than what is read, because the removed
/// parts differ in length and would move the cut.
const COUNTED_END_BYTES: usize = 48 * 1024;

/// Replaces a removed part.
const REMOVED_MARK: u8 = 0;

/// The fingerprint of a text without its volatile parts. `None` if there are none; then the
/// fingerprint of the whole text counts.
pub(super) fn scrubbed_digest(text: &str) -> Option<Digest128> {
    let bytes = text.as_bytes();
    let Some(middle) = bytes.len().checked_sub(2 * READ_END_BYTES).filter(|middle| *middle > 0)
    else {
        return scrub_bytes(bytes).map(|rest| Digest128::of(&rest));
    };
    let (head, rest) = bytes.split_at_checked(READ_END_BYTES)?;
    let (_, tail) = rest.split_at_checked(middle)?;
    let (start, end) = (scrub_bytes(head), scrub_bytes(tail));
    if start.is_none() && end.is_none() {
        return None;
    }
    let mut left = start.unwrap_or_else(|| head.to_vec());
    left.truncate(COUNTED_END_BYTES);
    let end = end.as_deref().unwrap_or(tail);
    left.extend(end.get(end.len().saturating_sub(COUNTED_END_BYTES)..).unwrap_or_default());
    left.extend(length_class(bytes.len()).to_le_bytes());
    Some(Digest128::of(&left))
}

/// The approximate length of a text. Durations and process numbers change the length of a long text
/// by a few bytes; a list with new entries changes it by more.
fn length_class(bytes: usize) -> u64 {
    let bytes = bytes as u64;
    let step = bytes.checked_ilog2().unwrap_or(0).saturating_sub(6);
    bytes >> step << step
}

/// A text without its volatile parts; `None` if it has none.
fn scrub_bytes(text: &[u8]) -> Option<Vec<u8>> {
    let mut scrub = Scrubber { text, processed_until: 0, output: Vec::new() };
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(next_candidate) {
        at += found;
        // INVARIANT: every arm advances by at least one byte, so this loop ends.
        at = match text.get(at) {
            Some(b'\x1b') => scrub.remove(at, escape_end(text, at)),
            Some(b'-') => {
                match uuid_around(text, at).filter(|(start, _)| *start >= scrub.processed_until) {
                    Some((start, end)) => scrub.replace_with_mark(start, end),
                    None => at + 1,
                }
            }
            Some(b'/') => match paths::generated_path_part(text, at) {
                Some((start, end)) => scrub.replace_with_mark(start, end),
                None => at + 1,
            },
            Some(b'.') | None => at + 1,
            Some(_) => {
                let token = number::word_around(text, at);
                match number::volatile_end(text, &token) {
                    Some(end) => scrub
                        .replace_with_mark(token.start.max(scrub.processed_until), end.max(at + 1)),
                    None => token.end.max(at + 1),
                }
            }
        };
    }
    scrub.finish()
}

/// The position of the next byte that can be part of something volatile.
fn next_candidate(text: &[u8]) -> Option<usize> {
    let matters = |byte: &u8| matches!(byte, b'-'..=b'9' | b'\x1b');
    // Most bytes do not matter. A loop without branches skips stretches of them quickly.
    let stretches = text.chunks_exact(STRETCH_BYTES);
    let skipped = stretches
        .take_while(|stretch| !stretch.iter().fold(false, |any, byte| any | matters(byte)));
    let at = skipped.count() * STRETCH_BYTES;
    text.get(at..)?.iter().position(matters).map(|found| at + found)
}

const STRETCH_BYTES: usize = 32;

/// A text from which parts are removed.
struct Scrubber<'t> {
    text: &'t [u8],
    /// The text before this position is processed.
    processed_until: usize,
    output: Vec<u8>,
}

impl Scrubber<'_> {
    /// Removes a part without a mark, and returns the position after it.
    fn remove(&mut self, start: usize, end: usize) -> usize {
        if self.output.capacity() == 0 {
            self.output.reserve(self.text.len());
        }
        self.output.extend(self.text.get(self.processed_until..start).unwrap_or_default());
        self.processed_until = end;
        end
    }

    /// Replaces a part by the mark, and returns the position after it.
    fn replace_with_mark(&mut self, start: usize, end: usize) -> usize {
        self.remove(start, end);
        self.output.push(REMOVED_MARK);
        end
    }

    fn finish(mut self) -> Option<Vec<u8>> {
        if self.processed_until == 0 {
            return None;
        }
        self.output.extend(self.text.get(self.processed_until..).unwrap_or_default());
        Some(self.output)
    }
}

/// The end of a terminal escape sequence: a colour, a title, a cursor movement.
fn escape_end(text: &[u8], at: usize) -> usize {
    let rest = text.get(at + 1..).unwrap_or_default();
    let length = match rest.first() {
        Some(b'[') => {
            let parameters = rest.iter().skip(1).take_while(|byte| matches!(byte, 0x20..=0x3f));
            let last = 1 + parameters.count();
            last + usize::from(matches!(rest.get(last), Some(0x40..=0x7e)))
        }
        // A title ends with a bell or with another escape sequence.
        Some(b']') => {
            let last = rest.iter().position(|byte| matches!(byte, 0x07 | 0x1b | b'\n'));
            last.map_or(1, |last| last + usize::from(rest.get(last) == Some(&0x07)))
        }
        Some(byte) if byte.is_ascii() => 1,
        _ => 0,
    };
    at + 1 + length
}

/// The UUID whose first hyphen is at this position.
fn uuid_around(text: &[u8], hyphen: usize) -> Option<(usize, usize)> {
    let start = hyphen.checked_sub(8)?;
    let end = hyphen + 28;
    let whole = text.get(start..end)?;
    let is_uuid = whole.iter().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    let alone = |byte: Option<&u8>| byte.is_none_or(|byte| !byte.is_ascii_alphanumeric());
    let before = start.checked_sub(1).and_then(|before| text.get(before));
    (is_uuid && alone(before) && alone(text.get(end))).then_some((start, end))
}

#[cfg(test)]
mod tests;
