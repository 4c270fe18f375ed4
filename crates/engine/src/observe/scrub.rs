//! What stays of a result when everything is left out that changes by itself:
//! times, durations, process numbers, addresses, names of temporary files.
//!
//! An agent that runs the same command again and gets the same answer learns
//! nothing, even if the answer says how long it took. What is left out is only
//! what is written in one of a few unmistakable ways. A plain number stays: the
//! third page is not the fourth, and 43 tests passed are one more than 42.

mod number;
mod paths;
mod words;

use alloc::vec::Vec;

use crate::digest::Digest128;

/// How much of either end is looked at. Clients cut what they show to a model
/// well below twice this, so what lies between can't be what it learned from.
const END_BYTES: usize = 64 * 1024;

/// How much of either end counts of what is left of it. It is less, because what
/// is left out is not always equally long, and the cut would move with it.
const LEFT_BYTES: usize = 48 * 1024;

/// Stands for what was left out.
const MARK: u8 = 0;

/// The fingerprint of a text without what changes by itself; nothing if there
/// is no such thing in it, and the fingerprint of the whole text stands.
pub(super) fn scrub(text: &str) -> Option<Digest128> {
    let bytes = text.as_bytes();
    let Some(middle) = bytes.len().checked_sub(2 * END_BYTES).filter(|middle| *middle > 0) else {
        return scrubbed(bytes).map(|left| Digest128::of(&left));
    };
    let (head, rest) = bytes.split_at_checked(END_BYTES)?;
    let (_, tail) = rest.split_at_checked(middle)?;
    let (start, end) = (scrubbed(head), scrubbed(tail));
    if start.is_none() && end.is_none() {
        return None;
    }
    let mut left = start.unwrap_or_else(|| head.to_vec());
    left.truncate(LEFT_BYTES);
    let end = end.as_deref().unwrap_or(tail);
    left.extend(end.get(end.len().saturating_sub(LEFT_BYTES)..).unwrap_or_default());
    left.extend(length_class(bytes.len()).to_le_bytes());
    Some(Digest128::of(&left))
}

/// About how long a text is: durations and process numbers change the length of
/// a long text by a few bytes, a list that has grown by more.
fn length_class(bytes: usize) -> u64 {
    let bytes = bytes as u64;
    let step = bytes.checked_ilog2().unwrap_or(0).saturating_sub(6);
    bytes >> step << step
}

/// A text without what changes by itself, or nothing if it stays as it is.
fn scrubbed(text: &[u8]) -> Option<Vec<u8>> {
    let mut scrub = Scrub { text, kept: 0, left: Vec::new() };
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(next_that_matters) {
        at += found;
        // INVARIANT: every arm goes on by at least a byte, so this ends.
        at = match text.get(at) {
            Some(b'\x1b') => scrub.cut(at, escape_end(text, at)),
            Some(b'-') => match uuid(text, at).filter(|(start, _)| *start >= scrub.kept) {
                Some((start, end)) => scrub.mark(start, end),
                None => at + 1,
            },
            Some(b'/') => match paths::temporary(text, at) {
                Some((start, end)) => scrub.mark(start, end),
                None => at + 1,
            },
            Some(b'.') | None => at + 1,
            Some(_) => {
                let token = number::token(text, at);
                match number::volatile(text, &token) {
                    Some(end) => scrub.mark(token.start.max(scrub.kept), end.max(at + 1)),
                    None => token.end.max(at + 1),
                }
            }
        };
    }
    scrub.finish()
}

/// Where something that changes by itself can be told from.
fn next_that_matters(text: &[u8]) -> Option<usize> {
    let matters = |byte: &u8| matches!(byte, b'-'..=b'9' | b'\x1b');
    // Most of a text does not matter, and a stretch without a branch goes fast.
    let stretches = text.chunks_exact(STRETCH_BYTES);
    let dull = stretches
        .take_while(|stretch| !stretch.iter().fold(false, |any, byte| any | matters(byte)));
    let at = dull.count() * STRETCH_BYTES;
    text.get(at..)?.iter().position(matters).map(|found| at + found)
}

const STRETCH_BYTES: usize = 32;

/// A text of which parts are left out.
struct Scrub<'t> {
    text: &'t [u8],
    /// Up to here everything is decided.
    kept: usize,
    left: Vec<u8>,
}

impl Scrub<'_> {
    /// Leaves a part out without a trace, and goes on behind it.
    fn cut(&mut self, start: usize, end: usize) -> usize {
        if self.left.capacity() == 0 {
            self.left.reserve(self.text.len());
        }
        self.left.extend(self.text.get(self.kept..start).unwrap_or_default());
        self.kept = end;
        end
    }

    /// Leaves a part out and says that something was there.
    fn mark(&mut self, start: usize, end: usize) -> usize {
        self.cut(start, end);
        self.left.push(MARK);
        end
    }

    fn finish(mut self) -> Option<Vec<u8>> {
        if self.kept == 0 {
            return None;
        }
        self.left.extend(self.text.get(self.kept..).unwrap_or_default());
        Some(self.left)
    }
}

/// Where an escape sequence of a terminal ends: a colour, a title, a movement.
fn escape_end(text: &[u8], at: usize) -> usize {
    let rest = text.get(at + 1..).unwrap_or_default();
    let length = match rest.first() {
        Some(b'[') => {
            let parameters = rest.iter().skip(1).take_while(|byte| matches!(byte, 0x20..=0x3f));
            let last = 1 + parameters.count();
            last + usize::from(matches!(rest.get(last), Some(0x40..=0x7e)))
        }
        // A title ends with a bell or with another escape.
        Some(b']') => {
            let last = rest.iter().position(|byte| matches!(byte, 0x07 | 0x1b | b'\n'));
            last.map_or(1, |last| last + usize::from(rest.get(last) == Some(&0x07)))
        }
        Some(byte) if byte.is_ascii() => 1,
        _ => 0,
    };
    at + 1 + length
}

/// The uuid whose first hyphen is here.
fn uuid(text: &[u8], hyphen: usize) -> Option<(usize, usize)> {
    let start = hyphen.checked_sub(8)?;
    let end = hyphen + 28;
    let whole = text.get(start..end)?;
    let right = whole.iter().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    let alone = |byte: Option<&u8>| byte.is_none_or(|byte| !byte.is_ascii_alphanumeric());
    let before = start.checked_sub(1).and_then(|before| text.get(before));
    (right && alone(before) && alone(text.get(end))).then_some((start, end))
}

#[cfg(test)]
mod tests;
