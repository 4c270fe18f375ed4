//! Classifies the error of a failed call, independently of the arguments.
//!
//! An agent that gets a 401 and tries another query will get a 401 again. Two errors have the same
//! class if their texts are equal without numbers, paths and quoted parts.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::refusal;
use crate::event::CallStatus;

/// The class of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorClass {
    /// The hash of the error text without numbers, paths and quoted parts. It is short, because a
    /// collision only makes two kinds of errors count as one.
    pub fingerprint: u32,
    /// Whether the call itself was refused or not understood: no permission, no such tool,
    /// malformed arguments. Calls of the same kind with other arguments fail in the same way.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub protocol: bool,
}

/// How many bytes of a text are searched for the line with the error.
const SEARCHED_BYTES_MAX: usize = 2048;

/// How many bytes of that line count.
const ERROR_LINE_BYTES_MAX: usize = 256;

/// The text that replaces every refusal. A missing permission is one error, whatever its wording is
/// and whatever was requested.
const REFUSAL_TEXT: &[u8] = b"refused";

/// The class of the error that a result reports; `None` for a success.
pub(super) fn classify_error(
    text: &str,
    status: CallStatus,
    exit_code: Option<i64>,
) -> Option<ErrorClass> {
    let head = text.get(..text.floor_char_boundary(SEARCHED_BYTES_MAX)).unwrap_or(text);
    let answered = refusal::is_refusal_answer(head);
    let failed = match status {
        CallStatus::Ok => {
            exit_code.is_some_and(|code| code != 0) || starts_as_error(text) || answered
        }
        CallStatus::Error | CallStatus::Timeout | CallStatus::Crashed => true,
        // The person or the client ended the call.
        CallStatus::Cancelled => false,
    };
    failed.then(|| {
        let line = normalize_line(error_line(head));
        let refused = answered
            || refusal::reports_refusal(&line)
            || refusal::reports_refusal(&normalize_line(last_line(text)))
            || refusal::contains_refusal(head);
        let text = if refused { REFUSAL_TEXT } else { &line };
        let how = u32::from(matches!(status, CallStatus::Timeout | CallStatus::Crashed));
        let fingerprint = text.iter().fold(0x811c_9dc5 ^ how, |hash: u32, byte| {
            (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
        });
        ErrorClass { fingerprint, protocol: refused || contains_any(&line, call_error_phrases) }
    })
}

/// The beginnings of results that report an error although the status of the call is a success.
const ERROR_PREFIXES: [&[u8]; 8] = [
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
    ERROR_PREFIXES.iter().filter(|prefix| prefix.first().copied() == first).any(|prefix| {
        text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    })
}

/// The line that describes the error: the first line that looks like an error, or otherwise the
/// last line of the searched text.
fn error_line(head: &str) -> &[u8] {
    let lines = || head.as_bytes().split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let is_error = |line: &&[u8]| contains_any(line, error_words);
    lines()
        .find(is_error)
        .or_else(|| lines().rfind(|line| !line.is_empty()))
        .map(|line| line.get(..ERROR_LINE_BYTES_MAX).unwrap_or(line))
        .unwrap_or_default()
}

/// The last line, where a program usually reports its fatal error.
fn last_line(text: &str) -> &[u8] {
    let text = text.trim_ascii_end();
    let tail =
        text.as_bytes().get(text.len().saturating_sub(ERROR_LINE_BYTES_MAX)..).unwrap_or_default();
    tail.rsplit(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii()
}

/// The words that mark an error line, by their first byte.
fn error_words(first: u8) -> &'static [&'static [u8]] {
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

/// Whether a text contains one of the parts, which are looked up by their first byte.
fn contains_any(text: &[u8], parts: impl Fn(u8) -> &'static [&'static [u8]]) -> bool {
    text.iter().enumerate().any(|(at, first)| {
        let rest = || text.get(at..).unwrap_or_default();
        parts(*first).iter().any(|part| rest().starts_with(part))
    })
}

/// A line in lower case without numbers, paths and quoted parts. The status codes of protocols
/// stay.
fn normalize_line(line: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(line.len());
    let mut rest = line;
    while let [byte, after @ ..] = rest {
        rest = after;
        let in_word = plain.last().is_some_and(u8::is_ascii_alphanumeric);
        match byte {
            b'"' | b'`' => rest = after_quote(after, *byte),
            b'\'' if !in_word => rest = after_quote(after, *byte),
            b'0'..=b'9' => {
                let digits = 1 + after.iter().take_while(|byte| byte.is_ascii_digit()).count();
                let status = digits_at(line, rest, digits);
                let is_status = matches!(status, b"401" | b"403" | b"404" | b"407" | b"429");
                if is_status && (!in_word || matches!(plain.as_slice(), [.., b' ', b'e'])) {
                    plain.extend(status);
                } else if plain.last() != Some(&b'#') {
                    plain.push(b'#');
                }
                rest = after.get(digits - 1..).unwrap_or_default();
            }
            b'/' | b'\\' => {
                // A path is removed together with the name it began with.
                while plain.last().is_some_and(|last| is_path_byte(*last)) {
                    plain.pop();
                }
                plain.push(b'/');
                let path = after.iter().take_while(|byte| is_path_byte(**byte)).count();
                rest = after.get(path..).unwrap_or_default();
            }
            b' ' | b'\t' if plain.last() == Some(&b' ') => {}
            byte => plain.push(byte.to_ascii_lowercase()),
        }
    }
    plain
}

/// The digits at the current position of a line.
fn digits_at<'t>(line: &'t [u8], rest: &[u8], digits: usize) -> &'t [u8] {
    let at = line.len() - rest.len() - 1;
    line.get(at..at + digits).unwrap_or_default()
}

/// The text after a quoted part; all of it if the quote is not closed.
fn after_quote(after: &[u8], quote: u8) -> &[u8] {
    match after.iter().position(|byte| *byte == quote) {
        Some(end) => after.get(end + 1..).unwrap_or_default(),
        None => after,
    }
}

const fn is_path_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'/' | b'\\' | b'#' | b'~')
}

/// Phrases of errors that concern the call itself and not its subject. Phrases of refusals are
/// listed elsewhere.
fn call_error_phrases(first: u8) -> &'static [&'static [u8]] {
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
        classify_error(text, CallStatus::Error, None).unwrap()
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
    fn errors_about_the_call_itself_are_recognised() {
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
        let ok = |text: &str| classify_error(text, CallStatus::Ok, None);
        assert_eq!(ok("fine"), None);
        assert_eq!(ok("no errors found"), None);
        assert!(ok("Error: not found").is_some());
        assert!(ok("HTTP/1.1 401 Unauthorized\n\n{}").unwrap().protocol);
        assert!(ok(r#"{"error": "unauthorized"}"#).is_some());
        assert!(classify_error("x", CallStatus::Ok, Some(1)).is_some());
        assert_eq!(classify_error("x", CallStatus::Ok, Some(0)), None);
        assert_eq!(classify_error("Error: x", CallStatus::Cancelled, None), None);
    }

    #[test]
    fn unusual_texts_do_not_panic() {
        for text in ["", "\n\n", "'", "\"", "é'é", "/", "///", "7", "\u{0}\u{0}"] {
            let _ = failed(text);
        }
        let _ = failed(&format!("{}é{}", "x".repeat(SEARCHED_BYTES_MAX - 1), "'".repeat(100_000)));
    }
}
