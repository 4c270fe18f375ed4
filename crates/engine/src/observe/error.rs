//! Which error a failed call met, whatever its arguments were.
//!
//! An agent that is refused with 401 and tries another query is refused again.
//! Two errors are of one class if they say the same once numbers, paths and what
//! stands in quotes are left out.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::refusal;
use crate::event::Status;

/// The class of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorClass {
    /// What it says, without numbers, paths and what stands in quotes. Short:
    /// two classes that are taken for one only make a storm of two winds.
    pub fingerprint: u32,
    /// Whether the call itself was refused or not understood: no right to it, no
    /// such tool, malformed arguments. Other arguments of its kind end the same.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub protocol: bool,
}

/// How much of a text is looked through for the line that tells.
const HEAD_BYTES: usize = 2048;

/// How much of that line counts.
const LINE_BYTES: usize = 256;

/// What stands for every refusal: that somebody has no right is one error,
/// however it is told and whatever was asked.
const REFUSED: &[u8] = b"refused";

/// The class of the error that a result reports; nothing for a success.
pub(super) fn classify(text: &str, status: Status, exit_code: Option<i64>) -> Option<ErrorClass> {
    let head = text.get(..text.floor_char_boundary(HEAD_BYTES)).unwrap_or(text);
    let answered = refusal::is_answer(head);
    let failed = match status {
        Status::Ok => exit_code.is_some_and(|code| code != 0) || starts_as_error(text) || answered,
        Status::Error | Status::Timeout | Status::Crashed => true,
        // Somebody else ended it.
        Status::Cancelled => false,
    };
    failed.then(|| {
        let line = plain(telling_line(head));
        let refused = answered
            || refusal::is_told(&line)
            || refusal::is_told(&plain(last_line(text)))
            || refusal::is_within(head);
        let says = if refused { REFUSED } else { &line };
        let how = u32::from(matches!(status, Status::Timeout | Status::Crashed));
        let fingerprint = says.iter().fold(0x811c_9dc5 ^ how, |hash: u32, byte| {
            (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
        });
        ErrorClass { fingerprint, protocol: refused || contains_any(&line, protocol) }
    })
}

/// How results begin that report an error although the call is said to be fine.
const BEGINNINGS: [&[u8]; 8] = [
    b"error:",
    b"error (",
    b"[error]",
    b"<error>",
    b"{\"error\":",
    b"{\"error\" :",
    b"unauthorized",
    b"forbidden",
];

fn starts_as_error(text: &str) -> bool {
    let text = text.trim_ascii_start().as_bytes();
    let first = text.first().map(u8::to_ascii_lowercase);
    BEGINNINGS
        .iter()
        .filter(|known| known.first().copied() == first)
        .any(|known| text.get(..known.len()).is_some_and(|start| start.eq_ignore_ascii_case(known)))
}

/// The line that says what went wrong: the first that looks like it, else the
/// last of what is looked at.
fn telling_line(head: &str) -> &[u8] {
    let lines = || head.as_bytes().split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let tells = |line: &&[u8]| contains_any(line, telling);
    lines()
        .find(tells)
        .or_else(|| lines().rfind(|line| !line.is_empty()))
        .map(|line| line.get(..LINE_BYTES).unwrap_or(line))
        .unwrap_or_default()
}

/// The last line, where a program says what it died of.
fn last_line(text: &str) -> &[u8] {
    let text = text.trim_ascii_end();
    let tail = text.as_bytes().get(text.len().saturating_sub(LINE_BYTES)..).unwrap_or_default();
    tail.rsplit(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii()
}

/// What a line has in it that tells what went wrong, by its first byte.
fn telling(first: u8) -> &'static [&'static [u8]] {
    match first {
        b'r' => &[b"rror"],
        b'E' => &[b"ERROR"],
        b'x' => &[b"xception"],
        b'e' => &[b"enied"],
        b'n' => &[b"nauthorized"],
        b'o' => &[b"orbidden"],
        _ => &[],
    }
}

/// Whether a text has one of some parts in it, which are known by their first byte.
fn contains_any(text: &[u8], parts: impl Fn(u8) -> &'static [&'static [u8]]) -> bool {
    text.iter().enumerate().any(|(at, first)| {
        let rest = || text.get(at..).unwrap_or_default();
        parts(*first).iter().any(|part| rest().starts_with(part))
    })
}

/// A line in lower case without numbers, paths, and what stands in quotes. The
/// status of a protocol stays a number.
fn plain(line: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(line.len());
    let mut rest = line;
    while let [byte, after @ ..] = rest {
        rest = after;
        let in_word = plain.last().is_some_and(u8::is_ascii_alphanumeric);
        match byte {
            b'"' | b'`' => rest = behind_quote(after, *byte),
            b'\'' if !in_word => rest = behind_quote(after, *byte),
            b'0'..=b'9' => {
                let digits = 1 + after.iter().take_while(|byte| byte.is_ascii_digit()).count();
                let status = rest_of(line, rest, digits);
                let kept = matches!(status, b"401" | b"403" | b"404" | b"407" | b"429");
                if kept && (!in_word || matches!(plain.as_slice(), [.., b' ', b'e'])) {
                    plain.extend(status);
                } else if plain.last() != Some(&b'#') {
                    plain.push(b'#');
                }
                rest = after.get(digits - 1..).unwrap_or_default();
            }
            b'/' | b'\\' => {
                // A path goes with the name it began with.
                while plain.last().is_some_and(|last| is_of_path(*last)) {
                    plain.pop();
                }
                plain.push(b'/');
                let path = after.iter().take_while(|byte| is_of_path(**byte)).count();
                rest = after.get(path..).unwrap_or_default();
            }
            b' ' | b'\t' if plain.last() == Some(&b' ') => {}
            byte => plain.push(byte.to_ascii_lowercase()),
        }
    }
    plain
}

/// The number that begins a byte before what is left of a line.
fn rest_of<'t>(line: &'t [u8], rest: &[u8], digits: usize) -> &'t [u8] {
    let at = line.len() - rest.len() - 1;
    line.get(at..at + digits).unwrap_or_default()
}

/// What is left behind a quoted text; all of it where the quote is not closed.
fn behind_quote(after: &[u8], quote: u8) -> &[u8] {
    match after.iter().position(|byte| *byte == quote) {
        Some(end) => after.get(end + 1..).unwrap_or_default(),
        None => after,
    }
}

const fn is_of_path(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'/' | b'\\' | b'#' | b'~')
}

/// Words of errors that are about the call, not about what it asked for, apart
/// from those of a refusal.
fn protocol(first: u8) -> &'static [&'static [u8]] {
    match first {
        b'u' => &[b"unknown tool"],
        b'i' => &[b"invalid arguments", b"invalid json"],
        b'n' => &[b"no such tool"],
        b't' => &[b"tool not found"],
        b'v' => &[b"validation error"],
        b'm' => &[b"malformed"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    fn failed(text: &str) -> ErrorClass {
        classify(text, Status::Error, None).unwrap()
    }

    #[test]
    fn errors_that_differ_in_arguments_are_one_class() {
        for (one, other) in [
            ("Error: no row 12 in `users`", "Error: no row 7 in `orders`"),
            ("File not found: /a/b.txt", "File not found: /c/d/e.rs"),
            ("File not found: src/b.txt", "File not found: lib/e.rs"),
            ("ValueError: time data '10:00' bad", "ValueError: time data '2026-11-15' bad"),
            ("first\nTypeError: x[3]\nlater", "second\nTypeError: x[4]\nother"),
        ] {
            assert_eq!(failed(one), failed(other), "{one} {other}");
        }
        for (one, other) in [
            ("Error: no such column", "Error: no such table"),
            ("ValueError: x", "TypeError: x"),
            ("Error: 401 Unauthorized", "Error: 429 Too Many Requests"),
            ("Error: 404 Not Found", "Error: 429 Not Found"),
        ] {
            assert_ne!(failed(one), failed(other), "{one} {other}");
        }
    }

    #[test]
    fn errors_about_the_call_itself_are_told_apart() {
        for text in [
            "HTTP 401: bad credentials",
            "401 Unauthorized",
            "requests.exceptions.HTTPError: 403 Client Error: Forbidden for url: https://x.example",
            "Error: unknown tool `frobnicate`",
            "ERROR: ValidationError: 1 validation error for Input schema",
        ] {
            assert!(failed(text).protocol, "{text}");
        }
        for text in
            ["assert 401 == 200", "AssertionError: 401 != 200", "File not found", "1401 errors"]
        {
            assert!(!failed(text).protocol, "{text}");
        }
    }

    #[test]
    fn a_success_has_no_class_unless_its_text_begins_as_an_error() {
        let ok = |text: &str| classify(text, Status::Ok, None);
        assert_eq!(ok("fine"), None);
        assert_eq!(ok("no errors found"), None);
        assert!(ok("Error: not found").is_some());
        assert!(ok("HTTP/1.1 401 Unauthorized\n\n{}").unwrap().protocol);
        assert!(ok(r#"{"error": "unauthorized"}"#).is_some());
        assert!(classify("x", Status::Ok, Some(1)).is_some());
        assert_eq!(classify("x", Status::Ok, Some(0)), None);
        assert_eq!(classify("Error: x", Status::Cancelled, None), None);
    }

    #[test]
    fn odd_texts_are_taken() {
        for text in ["", "\n\n", "'", "\"", "é'é", "/", "///", "7", "\u{0}\u{0}"] {
            let _ = failed(text);
        }
        let _ = failed(&format!("{}é{}", "x".repeat(HEAD_BYTES - 1), "'".repeat(100_000)));
    }
}
