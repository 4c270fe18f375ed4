//! Whether an error says that the caller has no permission: a missing, wrong or expired key.
//!
//! After such an error, other arguments fail in the same way. Programs report it in many ways, and
//! many texts only mention it: a test that expects 401, a page of documentation, a log. So an
//! answer with a successful status counts only if the whole answer is a refusal. A line of a
//! failure counts only if it reports the refusal itself, not in quotes and not as an expected
//! value.

use serde_json::Value;

/// The status numbers with which protocols report a refusal.
const REFUSAL_STATUSES: [&[u8]; 3] = [b"401", b"403", b"407"];

/// Phrases of a refusal, by their first byte. A phrase must not be part of a longer name.
fn refusal_phrases(first: u8) -> &'static [&'static str] {
    match first {
        b'a' => &[
            "access denied for user",
            "accessdenied",
            "api key expired",
            "api key not valid",
            "authentication failed",
            "authentication required",
            "authentication credentials were not provided",
        ],
        b'b' => &["bad credentials"],
        b'c' => &["could not validate credentials"],
        b'e' => &["expired token", "expiredtoken", "expiredtokenexception"],
        b'i' => &[
            "incorrect api key",
            "invalid access token",
            "invalid api key",
            "invalid api token",
            "invalid authentication",
            "invalid credentials",
            "invalid username or password",
            "invalid x-api-key",
            "invalid_api_key",
            "invalid_token",
            "invalidclienttokenid",
        ],
        b'j' => &["jwt expired"],
        b'm' => &["missing api key", "missing authentication token"],
        b'n' => &["not authenticated", "not authorized to perform"],
        b'p' => &["permission denied (publickey", "permission_denied"],
        b'r' => &["requires authentication"],
        b't' => &["token expired", "token has expired", "token is expired"],
        b'u' => &["unauthenticated", "unauthorised", "unauthorized", "unrecognizedclientexception"],
        _ => &[],
    }
}

/// Phrases that are a refusal only if they are the whole message.
const COMPLETE_PHRASES: [&str; 5] =
    ["access denied", "forbidden", "login required", "not authorized", "session expired"];

/// Phrases that are such a refusal only in a JSON document, because compilers and file systems use
/// them too.
const COMPLETE_PHRASES_IN_DOCUMENTS: [&str; 3] =
    ["insufficient_scope", "invalid token", "permission denied"];

/// Whether a whole answer is a refusal although the call was successful: the status line of a
/// protocol, or a document that reports an error.
pub(super) fn is_refusal_answer(head: &str) -> bool {
    match head.trim_ascii_start().as_bytes() {
        start @ [b'h' | b'H', ..] => is_status_line(start),
        // The part of the output of `curl -v` that shows the answer.
        [b'*', ..] => head.lines().any(|line| {
            line.strip_prefix("< ").is_some_and(|line| is_status_line(line.as_bytes()))
        }),
        [b'{' | b'[', ..] => {
            error_document(head).is_some_and(|document| is_error_document(&document))
        }
        _ => false,
    }
}

/// Whether the output of a failed call contains a refusal: a document or the status line of a
/// protocol.
pub(super) fn contains_refusal(head: &str) -> bool {
    let status = |line: &str| {
        let line = line.trim_ascii();
        is_status_line(line.strip_prefix("< ").unwrap_or(line).as_bytes())
    };
    let document = || {
        let rest = head.find('{').and_then(|at| head.get(at..))?;
        error_document(rest).filter(is_error_document)
    };
    head.lines().any(status) || document().is_some()
}

/// Whether a line of a failure reports a refusal. The line is in lower case and without quoted
/// parts.
pub(super) fn reports_refusal(line: &[u8]) -> bool {
    let expected =
        || [b"expected".as_slice(), b"assert"].iter().any(|word| contains_bytes(line, word));
    let reports = line.iter().enumerate().any(|(at, first)| {
        let matches = |word: &&str| is_whole_word_at(line, at, word.as_bytes());
        refusal_phrases(*first).iter().any(matches)
            || (first.is_ascii_digit() && is_refusal_status_at(line, at))
    });
    (reports && !expected()) || is_complete_phrase(without_label(line), &COMPLETE_PHRASES)
}

/// `HTTP/2 401`, in any version of HTTP.
fn is_status_line(line: &[u8]) -> bool {
    let Some((b"HTTP/", rest)) = line.split_at_checked(5) else { return false };
    let version = rest.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
    let rest = rest.get(version..).unwrap_or_default();
    let number = rest.get(1..4).unwrap_or_default();
    let ends = !rest.get(4).is_some_and(u8::is_ascii_digit);
    rest.first() == Some(&b' ') && REFUSAL_STATUSES.contains(&number) && ends
}

/// The document at the beginning of a text, if it may report an error. Most documents have no key
/// for errors, and these are not parsed.
fn error_document(text: &str) -> Option<Value> {
    let mut quoted = text.as_bytes().split(|byte| *byte == b'"').skip(1);
    let is_error_key = |part: &[u8]| match part.first() {
        Some(b'c' | b'd' | b'e' | b'f' | b'm' | b'r' | b't') => {
            part == b"errors"
                || part == b"fault"
                || MESSAGE_KEYS.iter().any(|key| key.as_bytes() == part)
        }
        _ => false,
    };
    if !quoted.any(is_error_key) {
        return None;
    }
    serde_json::Deserializer::from_str(text).into_iter().next()?.ok()
}

/// The keys of a document that contain the error message.
const MESSAGE_KEYS: [&str; 8] =
    ["message", "error", "error_description", "detail", "title", "msg", "reason", "code"];

/// The keys of a document that contain a status number.
const STATUS_KEYS: [&str; 5] = ["status", "code", "statusCode", "status_code", "http_status"];

/// Whether a document reports that the caller has no permission.
fn is_error_document(document: &Value) -> bool {
    let document = match document {
        Value::Array(items) => match items.as_slice() {
            [only] => only,
            _ => return false,
        },
        other => other,
    };
    let inner = ["error", "errors", "fault"].iter().find_map(|key| document.get(*key));
    let inner = match inner {
        Some(Value::Array(items)) => items.first(),
        other => other,
    };
    let reports = match inner {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(_) => true,
    };
    let parts = || [Some(document), inner].into_iter().flatten();
    let has_message = |part: &Value| {
        MESSAGE_KEYS.iter().any(|key| part.get(*key).is_some_and(is_refusal_message))
    };
    let has_status =
        |part: &Value| STATUS_KEYS.iter().any(|key| part.get(*key).is_some_and(is_refusal_status));
    parts().any(has_message) || (reports && parts().any(has_status))
}

fn is_refusal_status(value: &Value) -> bool {
    match value {
        Value::Number(number) => {
            number.as_u64().is_some_and(|number| [401, 403, 407].contains(&number))
        }
        Value::String(text) => REFUSAL_STATUSES.contains(&text.as_bytes()),
        _ => false,
    }
}

/// Whether a message begins with a refusal. In the middle of a message it may only be mentioned.
fn is_refusal_message(value: &Value) -> bool {
    let Some(text) = value.as_str() else { return false };
    let text = text.trim_ascii().to_ascii_lowercase();
    let text = text.as_bytes();
    let first = text.first().copied().unwrap_or_default();
    let begins = |word: &&str| {
        is_whole_word_at(text, 0, word.as_bytes()) && !is_start_of_sentence(text, word.len())
    };
    refusal_phrases(first).iter().any(begins)
        || (first.is_ascii_digit() && is_refusal_status_at(text, 0))
        || is_complete_phrase(text, &COMPLETE_PHRASES)
        || is_complete_phrase(text, &COMPLETE_PHRASES_IN_DOCUMENTS)
}

/// Whether a single word is the subject of a longer sentence: `unauthorized access is …`.
fn is_start_of_sentence(text: &[u8], length: usize) -> bool {
    let one = !text.get(..length).unwrap_or_default().contains(&b' ');
    let rest = text.get(length..).unwrap_or_default();
    one && matches!(rest, [b' ', next, ..] if next.is_ascii_alphanumeric())
}

/// Whether the sentence consists only of one of the phrases.
fn is_complete_phrase(text: &[u8], words: &[&str]) -> bool {
    let ends = |rest: &[u8]| matches!(rest.first(), None | Some(b'.' | b':' | b',' | b'!' | b'('));
    words.iter().any(|word| text.strip_prefix(word.as_bytes()).is_some_and(ends))
}

/// The text of an error without its label: `error: …`, `gh: …`.
fn without_label(line: &[u8]) -> &[u8] {
    let label = line.windows(2).position(|two| two == b": ");
    label.and_then(|at| line.get(at + 2..)).unwrap_or(line)
}

/// Whether a status number of a refusal is at this position. The word before or after it must show
/// that it is a status number.
fn is_refusal_status_at(line: &[u8], at: usize) -> bool {
    let (before, rest) = line.split_at_checked(at).unwrap_or((line, b""));
    let Some((number, after)) = rest.split_at_checked(3) else { return false };
    if !REFUSAL_STATUSES.contains(&number) || after.first().is_some_and(|byte| is_name_byte(*byte))
    {
        return false;
    }
    let next: &[u8] = after.strip_prefix(b" ").unwrap_or_default();
    let named =
        [b"unauthorized".as_slice(), b"forbidden", b"client error", b"proxy authentication"];
    if named.iter().any(|word| next.starts_with(word)) {
        return !before.last().is_some_and(|byte| is_name_byte(*byte));
    }
    let word = before.trim_ascii_end();
    let word = word.strip_suffix(b":").unwrap_or(word);
    let ends_in = |word_before: &&[u8]| {
        word.strip_suffix(*word_before)
            .is_some_and(|rest| !rest.last().is_some_and(|b| is_name_byte(*b)))
    };
    // The number in `error: 401 tests failed` is a count.
    let counts = next.first().is_some_and(u8::is_ascii_alphabetic);
    [b"http".as_slice(), b"status", b"status code"].iter().any(ends_in)
        || ([b"error".as_slice(), b"code", b"code e"].iter().any(ends_in) && !counts)
}

/// Whether a word is at this position and is not part of a longer word.
fn is_whole_word_at(line: &[u8], at: usize, word: &[u8]) -> bool {
    let (before, rest) = line.split_at_checked(at).unwrap_or((line, b""));
    let bound = |byte: Option<&u8>| !byte.is_some_and(|byte| is_name_byte(*byte));
    rest.strip_prefix(word).is_some_and(|after| bound(before.last()) && bound(after.first()))
}

fn contains_bytes(line: &[u8], word: &[u8]) -> bool {
    line.windows(word.len()).any(|window| window == word)
}

const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'#')
}

#[cfg(test)]
mod tests {
    use super::super::error::classify_error;
    use crate::event::CallStatus;

    /// Whether a text counts as a refusal.
    fn refused(text: &str, exit_code: Option<i64>) -> bool {
        classify_error(text, CallStatus::Ok, exit_code).is_some_and(|error| error.protocol)
    }

    #[test]
    fn an_answer_of_a_successful_call_can_be_a_refusal() {
        for text in [
            r#"{"error":{"code":401,"message":"Unauthorized"}}"#,
            r#"{"message":"Bad credentials","status":"401"}"#,
            r#"{"message":"Bad credentials","documentation_url":"https://docs.example/rest"}"#,
            r#"{"message": "Unauthorized"}"#,
            r#"{"detail":"Authentication credentials were not provided."}"#,
            r#"{"error":"invalid_token","error_description":"The access token expired"}"#,
            r#"{"error":{"message":"Incorrect API key provided: sk-x","type":"invalid_request_error"}}"#,
            r#"{"error":{"code":403,"status":"PERMISSION_DENIED","message":"The caller has no right"}}"#,
            r#"{"errors":[{"message":"Forbidden"}],"data":null}"#,
            r#"[{"message":"Session expired","errorCode":"INVALID_SESSION_ID"}]"#,
            "{\"error\":{\"code\":401,\"message\":\"Unauthorized\"}}\n401",
            "HTTP/2 401 \r\ndate: Mon, 16 Nov 2026 10:00:00 GMT\r\n\r\n",
            "HTTP/1.1 403 Forbidden\n\n<html>",
            "HTTP/1.1 407 Proxy Authentication Required",
            "* Connected to api.example\n> GET / HTTP/2\n< HTTP/2 401\n< server: x",
            "Error: 401 Unauthorized",
        ] {
            assert!(refused(text, Some(0)), "{text}");
            assert!(refused(text, Some(22)), "{text}");
        }
    }

    #[test]
    fn refusals_with_different_wording_are_recognised() {
        for text in [
            "curl: (22) The requested URL returned error: 401",
            "gh: Bad credentials (HTTP 401)",
            "npm error code E401\nnpm error Incorrect or missing password.",
            "fatal: Authentication failed for 'https://git.example/a.git/'",
            "git@git.example: Permission denied (publickey).\nfatal: Could not read from remote repository.",
            "urllib.error.HTTPError: HTTP Error 403: Forbidden",
            "An error occurred (AccessDenied) when calling the ListBuckets operation: Access Denied",
            "An error occurred (ExpiredToken) when calling the GetObject operation",
            "Traceback (most recent call last):\n    raise HTTPError(msg, response=self)\nrequests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://x.example",
            "API error: 401 {\"type\":\"error\",\"error\":{\"type\":\"authentication_error\",\"message\":\"invalid x-api-key\"}}",
            "error: token has expired",
            "Error: Forbidden",
            "ERROR 1045 (28000): Access denied for user 'root'@'localhost'",
            "server said: status code: 407",
        ] {
            assert!(refused(text, Some(1)), "{text}");
        }
    }

    #[test]
    fn a_text_that_only_mentions_a_refusal_is_not_one() {
        for text in [
            "if response.status == 401:\n    raise Unauthorized()",
            "src/api.rs:12: HTTP/1.1 401 Unauthorized",
            "# Errors\n\nHTTP/1.1 401 Unauthorized is what you get without a key.",
            "401",
            "401 lines",
            "403 files changed",
            "Returns 401 Unauthorized where the key is wrong.",
            r#"{"responses":{"401":{"description":"Unauthorized"}}}"#,
            r#"{"status":401,"message":"GET /login","level":"info"}"#,
            r#"{"code":403,"name":"Widget","message":"in stock"}"#,
            r#"[{"message":"Unauthorized"},{"message":"Fixed"}]"#,
            r#"{"message":"Unauthorized access is logged now","sha":"ab12"}"#,
            r#"{"error":null,"status":401}"#,
            "HTTP/1.1 200 OK\n\n401 Unauthorized",
        ] {
            assert!(!refused(text, Some(0)), "{text}");
        }
        for text in [
            "assert 401 == 200",
            "AssertionError: 401 != 200",
            "AssertionError: expected status 401, got 200",
            "FAILED tests/test_auth.py::test_unauthorized - TypeError: x",
            "error: 401 tests failed",
            "error[E0401]: can't use generic parameters from outer item",
            "npm error code E404",
            "SyntaxError: invalid token",
            "error: use of a forbidden function",
            "rm: cannot remove 'a': Permission denied",
            "error: Permission denied",
            "Error: got \"unauthorized\" from the mock",
            "line 401: error: expected `;`",
        ] {
            assert!(!refused(text, Some(1)), "{text}");
        }
    }

    #[test]
    fn all_refusals_have_the_same_class() {
        let class = |text: &str| classify_error(text, CallStatus::Ok, Some(1));
        let one = class(r#"{"error":{"code":401,"message":"Unauthorized"},"id":"a1"}"#);
        assert_eq!(one, class("HTTP/2 401 \r\nx-request-id: 77\r\n\r\nno"));
        assert_eq!(one, class("gh: Bad credentials (HTTP 401)"));
    }
}
