//! Brace expansion. bash does it on the written word, before any other expansion.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::limits::BRACE_WORDS_MAX;

/// The result of brace expansion.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BraceExpansion {
    /// Nothing to expand.
    None,
    /// These words, still with their quotes.
    Words(Vec<String>),
    /// More words than we follow.
    TooMany,
}

/// Expands the braces of a word as it is written.
pub(crate) fn expand_braces(text: &str) -> BraceExpansion {
    if find_first_braces(text).is_none() {
        return BraceExpansion::None;
    }
    let mut open = vec![String::from(text)];
    let mut done = Vec::new();
    let mut steps = 0;
    // The last of the open words is expanded first, so the stack is in reverse order.
    while let Some(word) = open.pop() {
        steps += 1;
        if steps > BRACE_WORDS_MAX * 4 || done.len() + open.len() > BRACE_WORDS_MAX {
            return BraceExpansion::TooMany;
        }
        let Some(found) = find_first_braces(&word) else {
            done.push(word);
            continue;
        };
        let Some(parts) = found.alternatives(&word) else { return BraceExpansion::TooMany };
        let before = word.get(..found.start).unwrap_or_default();
        let after = word.get(found.end + 1..).unwrap_or_default();
        if parts.len() * word.len() > 1 << 16 {
            return BraceExpansion::TooMany;
        }
        for part in parts.iter().rev() {
            open.push(format!("{before}{part}{after}"));
        }
    }
    BraceExpansion::Words(done)
}

/// The first pair of braces that expands.
struct BracePair {
    start: usize,
    end: usize,
    commas: Vec<usize>,
}

impl BracePair {
    /// The alternatives inside the braces, in order.
    fn alternatives(&self, word: &str) -> Option<Vec<String>> {
        if self.commas.is_empty() {
            return expand_sequence(word.get(self.start + 1..self.end)?);
        }
        let mut parts = Vec::with_capacity(self.commas.len() + 1);
        let mut from = self.start + 1;
        for comma in self.commas.iter().copied().chain([self.end]) {
            parts.push(String::from(word.get(from..comma)?));
            from = comma + 1;
        }
        Some(parts)
    }
}

/// Finds the braces in one pass over the word, with a stack of open braces.
fn find_first_braces(text: &str) -> Option<BracePair> {
    let bytes = text.as_bytes();
    let mut stack: Vec<(usize, Vec<usize>)> = Vec::new();
    let mut best: Option<BracePair> = None;
    let mut at = 0;
    while let Some(byte) = bytes.get(at).copied() {
        match byte {
            b'\\' => at += 1,
            b'\'' => at += skip_quoted(bytes, at + 1, b'\'', BackslashEscapes::No),
            b'"' => at += skip_quoted(bytes, at + 1, b'"', BackslashEscapes::Yes),
            b'$' if bytes.get(at + 1) == Some(&b'\'') => {
                at += 1 + skip_quoted(bytes, at + 2, b'\'', BackslashEscapes::Yes);
            }
            b'$' if bytes.get(at + 1) == Some(&b'{') => {
                at += skip_quoted(bytes, at + 1, b'}', BackslashEscapes::Yes);
            }
            b'{' if stack.len() < 64 => stack.push((at, Vec::new())),
            b',' => {
                if let Some((_, commas)) = stack.last_mut() {
                    commas.push(at);
                }
            }
            b'}' => {
                if let Some((start, commas)) = stack.pop() {
                    let inside = text.get(start + 1..at).unwrap_or_default();
                    let expands = !commas.is_empty() || is_sequence(inside);
                    let outer = best.as_ref().is_none_or(|best| start < best.start);
                    if expands && outer {
                        best = Some(BracePair { start, end: at, commas });
                    }
                    if stack.is_empty() && best.is_some() {
                        return best;
                    }
                }
            }
            _ => {}
        }
        at += 1;
    }
    best
}

/// Whether a backslash escapes inside quotes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BackslashEscapes {
    Yes,
    No,
}

/// How many bytes to skip from `from` to get past the closing quote.
fn skip_quoted(bytes: &[u8], from: usize, close: u8, escapes: BackslashEscapes) -> usize {
    let mut at = from;
    while let Some(byte) = bytes.get(at).copied() {
        if byte == b'\\' && escapes == BackslashEscapes::Yes {
            at += 1;
        } else if byte == close {
            break;
        }
        at += 1;
    }
    at + 1 - from
}

fn is_sequence(inside: &str) -> bool {
    let mut parts = inside.split("..");
    let (Some(first), Some(last)) = (parts.next(), parts.next()) else { return false };
    let numbers = first.parse::<i64>().is_ok() && last.parse::<i64>().is_ok();
    let letters = single_letter(first).is_some() && single_letter(last).is_some();
    let step = parts.next().is_none_or(|step| step.parse::<i64>().is_ok());
    (numbers || letters) && step && parts.next().is_none()
}

/// Expands `1..5`, `a..e`, `1..9..2`. `None` where the sequence is too long.
fn expand_sequence(inside: &str) -> Option<Vec<String>> {
    let mut parts = inside.split("..");
    let (first, last) = (parts.next()?, parts.next()?);
    let step = parts.next().and_then(|step| step.parse::<i64>().ok()).unwrap_or(1);
    let step = step.checked_abs().filter(|step| *step > 0).unwrap_or(1);
    let letters = single_letter(first).zip(single_letter(last));
    let (from, to) = match letters {
        Some((from, to)) => (i64::from(from), i64::from(to)),
        None => (first.parse().ok()?, last.parse().ok()?),
    };
    let padded = |text: &str| text.trim_start_matches('-').starts_with('0') && text.len() > 1;
    let width = if padded(first) || padded(last) { first.len().max(last.len()) } else { 0 };
    let count = from.checked_sub(to)?.checked_abs()?.checked_div(step)?;
    if usize::try_from(count).ok()? >= BRACE_WORDS_MAX {
        return None;
    }
    let sign = if from <= to { step } else { -step };
    let mut words = Vec::new();
    let mut value = from;
    for _ in 0..=count {
        words.push(match letters {
            Some(_) => String::from(char::from(u8::try_from(value).ok()?)),
            None => format!("{value:0width$}"),
        });
        value = value.checked_add(sign)?;
    }
    Some(words)
}

fn single_letter(text: &str) -> Option<u8> {
    match text.as_bytes() {
        [letter] if letter.is_ascii_alphabetic() => Some(*letter),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        match expand_braces(text) {
            BraceExpansion::None => vec![String::from(text)],
            BraceExpansion::Words(words) => words,
            BraceExpansion::TooMany => vec![String::from("too many")],
        }
    }

    #[test]
    fn braces_expand_as_in_bash() {
        assert_eq!(words("{rm,-rf,x}"), ["rm", "-rf", "x"]);
        assert_eq!(words("a{b,c{d,e}}f"), ["abf", "acdf", "acef"]);
        assert_eq!(words("{a,b}{1,2}"), ["a1", "a2", "b1", "b2"]);
        assert_eq!(words("x{1..3}"), ["x1", "x2", "x3"]);
        assert_eq!(words("{c..a}"), ["c", "b", "a"]);
        assert_eq!(words("{01..03}"), ["01", "02", "03"]);
        assert_eq!(words("{1..9..4}"), ["1", "5", "9"]);
    }

    #[test]
    fn text_that_bash_does_not_expand_is_unchanged() {
        for text in ["{}", "{a}", "a{b", "'{a,b}'", "\\{a,b}", "${a,b}", "{a..}", "{1..b}"] {
            assert_eq!(expand_braces(text), BraceExpansion::None, "{text}");
        }
    }

    #[test]
    fn an_expansion_beyond_the_limit_is_refused() {
        assert_eq!(expand_braces("{1..100000}"), BraceExpansion::TooMany);
        assert_eq!(expand_braces(&"{a,b}".repeat(20)), BraceExpansion::TooMany);
    }
}
