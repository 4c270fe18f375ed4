//! What a server says instead of an answer, and what kind of failure that is.
//!
//! Providers spell the same failure in many ways, so words are looked at before the
//! status: a conversation that is too long is a plain 400 at most of them.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use serde_json::Value;

use crate::error::ErrorKind;
use crate::http::Head;

/// What was paid for is used up.
const PLAN: [&str; 4] =
    ["insufficient_quota", "billing_error", "billing_hard_limit_reached", "billing_not_active"];
const PLAN_PHRASES: [&str; 3] = ["credit balance", "usage limit", "spending limit"];

/// The conversation does not fit.
const CONTEXT: [&str; 3] =
    ["context_length_exceeded", "exceed_context_size_error", "request_too_large"];
const CONTEXT_PHRASES: [&str; 7] = [
    "prompt is too long",
    "input is too long",
    "context length",
    "context window",
    "context size",
    "context limit",
    "maximum number of tokens",
];

const AUTH: [&str; 6] = [
    "authentication_error",
    "permission_error",
    "invalid_api_key",
    "API_KEY_INVALID",
    "UNAUTHENTICATED",
    "PERMISSION_DENIED",
];
const UNKNOWN_MODEL: [&str; 3] = ["model_not_found", "not_found_error", "NOT_FOUND"];
const OVERLOAD: [&str; 8] = [
    "overloaded_error",
    "engine_overloaded",
    "server_is_overloaded",
    "slow_down",
    "UNAVAILABLE",
    "api_error",
    "server_error",
    "INTERNAL",
];
const RATE: [&str; 3] = ["rate_limit_error", "rate_limit_exceeded", "RESOURCE_EXHAUSTED"];
const TIMEOUT: [&str; 2] = ["timeout_error", "DEADLINE_EXCEEDED"];

/// What kind of failure a provider told somebody else of, who passes on its status, its code
/// and its words.
pub fn refusal_kind(status: Option<u16>, code: &str, message: &str) -> ErrorKind {
    let complaint =
        Complaint { message: message.to_owned(), codes: vec![code.to_owned()], wait: None };
    complaint.kind(status)
}

/// What a server complains of.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Complaint {
    /// In words for people; empty where there are none.
    pub(crate) message: String,
    /// In words for programs.
    codes: Vec<String>,
    /// How long it wants to be left alone.
    pub(crate) wait: Option<Duration>,
}

impl Complaint {
    /// Reads the body of a refusal, or an error in a stream, in any provider's spelling.
    pub(crate) fn of(said: &Value) -> Self {
        let said = said.get(0).unwrap_or(said);
        let error = said.get("error").filter(|error| !error.is_null()).unwrap_or(said);
        let text = |value: &Value, name: &str| value.get(name)?.as_str().map(str::to_owned);
        let message = error.as_str().map(str::to_owned);
        let message = message.or_else(|| text(error, "message")).or_else(|| text(error, "detail"));
        let mut complaint = Self { message: message.unwrap_or_default(), ..Self::default() };
        complaint.codes.extend(["type", "code", "status"].iter().filter_map(|it| text(error, it)));
        let details = error.get("details").and_then(Value::as_array);
        for detail in details.into_iter().flatten() {
            complaint.codes.extend(text(detail, "reason"));
            let violations = detail.get("violations").and_then(Value::as_array);
            let quotas = violations.into_iter().flatten().filter_map(|it| text(it, "quotaId"));
            complaint.codes.extend(quotas);
            let delay = text(detail, "retryDelay");
            let delay = delay.as_deref().and_then(|delay| seconds(delay.strip_suffix('s')?));
            complaint.wait = complaint.wait.or(delay);
        }
        complaint
    }

    /// Reads a body that may be no JSON.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        match serde_json::from_slice(bytes) {
            Ok(said) => Self::of(&said),
            Err(_) if looks_like_html(bytes) => {
                Self { message: "a page of HTML".to_owned(), ..Self::default() }
            }
            Err(_) => {
                let message = String::from_utf8_lossy(bytes).into_owned();
                Self { message, ..Self::default() }
            }
        }
    }

    /// What kind of failure it is, with the status of the answer unless it came in the
    /// middle of one.
    pub(crate) fn kind(&self, status: Option<u16>) -> ErrorKind {
        let lower = self.message.to_lowercase();
        let coded = |words: &[&str]| self.codes.iter().any(|code| words.contains(&code.as_str()));
        let phrased = |phrases: &[&str]| phrases.iter().any(|phrase| lower.contains(phrase));
        let daily = self.codes.iter().any(|code| code.contains("PerDay"));
        let used_up = coded(&PLAN) || phrased(&PLAN_PHRASES) || daily;
        if used_up && matches!(status, None | Some(400 | 402 | 403 | 429)) {
            return ErrorKind::PlanLimit;
        }
        let too_long = coded(&CONTEXT) || phrased(&CONTEXT_PHRASES);
        if too_long && !matches!(status, Some(401 | 403 | 404 | 429)) {
            return ErrorKind::ContextLength;
        }
        match status {
            Some(401 | 403) => ErrorKind::Auth,
            Some(402) => ErrorKind::PlanLimit,
            Some(404) if coded(&UNKNOWN_MODEL) || lower.contains("model") => {
                ErrorKind::UnknownModel
            }
            Some(408 | 504 | 524) => ErrorKind::Timeout,
            Some(413) => ErrorKind::ContextLength,
            Some(429) => ErrorKind::RateLimit,
            Some(502 | 520..=523) => ErrorKind::Network,
            Some(500..) => ErrorKind::Overload,
            Some(_) if coded(&UNKNOWN_MODEL[..1]) => ErrorKind::UnknownModel,
            _ if coded(&AUTH) || phrased(&["api key not valid"]) => ErrorKind::Auth,
            Some(_) => ErrorKind::BadRequest,
            None if coded(&OVERLOAD) || lower.contains("overloaded") => ErrorKind::Overload,
            None if coded(&RATE) => ErrorKind::RateLimit,
            None if coded(&TIMEOUT) => ErrorKind::Timeout,
            None => ErrorKind::BadAnswer,
        }
    }

    /// What it says in one line, however long that is.
    pub(crate) fn line(&self) -> String {
        let words = self.message.split(|c: char| c.is_whitespace() || c.is_control());
        let line = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        if line.is_empty() { self.codes.join(" ") } else { line }
    }
}

/// A text of at most so many characters.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

pub(crate) fn looks_like_html(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().starts_with(b"<")
}

/// How long a server wants to be left alone. A date is counted from the server's own
/// clock, so that ours does not matter.
pub(crate) fn wait(head: &Head, complaint: &Complaint) -> Option<Duration> {
    let ms = head.get("retry-after-ms").and_then(|ms| ms.trim().parse().ok());
    let ms = ms.map(Duration::from_millis);
    let now = head.get("date").and_then(date);
    let until = |then: Timestamp| Duration::try_from(then.duration_since(now?)).ok();
    let after = head.get("retry-after").map(str::trim);
    let after = after.and_then(|after| seconds(after).or_else(|| until(date(after)?)));
    ms.or(after).or(complaint.wait).or_else(|| until(regained(&complaint.message)?))
}

fn date(text: &str) -> Option<Timestamp> {
    DateTimeParser::new().parse_timestamp(text).ok()
}

/// Anthropic says only in words when a limit ends: `on 2026-02-01 at 00:00 UTC`.
fn regained(message: &str) -> Option<Timestamp> {
    let (_, then) = message.split_once("regain access on ")?;
    let (day, rest) = then.split_once(" at ")?;
    let (time, _) = rest.split_once(" UTC")?;
    format!("{day}T{time}:00Z").parse().ok()
}

/// Seconds, with a fraction or without.
fn seconds(text: &str) -> Option<Duration> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole = Duration::from_secs(whole.parse().ok()?);
    if fraction.is_empty() {
        return Some(whole);
    }
    let nanos = format!("{fraction:0<9}");
    let nanos = nanos.get(..9)?.parse().ok()?;
    whole.checked_add(Duration::from_nanos(nanos))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refusal_is_typed_by_what_is_meant() {
        use ErrorKind as K;
        let anthropic = |kind: &str, message: &str| json!({ "type": "error", "error": { "type": kind, "message": message } });
        let openai =
            |code: &str| json!({ "error": { "message": "No.", "type": "x", "code": code } });
        let gemini = |status: &str, message: &str| json!([{ "error": { "code": 1, "status": status, "message": message } }]);
        let quota = |id: &str| {
            let violations = json!([{ "quotaId": id }]);
            json!({ "error": { "details": [{ "violations": violations }] } })
        };
        let invalid = "invalid_request_error";
        for (status, said, kind) in [
            (401, anthropic("authentication_error", "invalid x-api-key"), K::Auth),
            (403, gemini("PERMISSION_DENIED", "blocked"), K::Auth),
            (400, gemini("INVALID_ARGUMENT", "API key not valid. Pass one."), K::Auth),
            (404, anthropic("not_found_error", "model: x"), K::UnknownModel),
            (404, openai("model_not_found"), K::UnknownModel),
            (400, openai("model_not_found"), K::UnknownModel),
            (404, json!({ "error": "model 'x' not found" }), K::UnknownModel),
            (404, json!({ "detail": "Not Found" }), K::BadRequest),
            (400, anthropic(invalid, "prompt is too long: 9 > 8"), K::ContextLength),
            (400, openai("context_length_exceeded"), K::ContextLength),
            (
                400,
                gemini(
                    "INVALID_ARGUMENT",
                    "The count (9) exceeds the maximum number of tokens allowed",
                ),
                K::ContextLength,
            ),
            (413, anthropic("request_too_large", "big"), K::ContextLength),
            (400, openai("invalid_value"), K::BadRequest),
            (422, json!({}), K::BadRequest),
            (301, json!(null), K::BadRequest),
            (408, json!({}), K::Timeout),
            (504, json!({}), K::Timeout),
            (
                429,
                anthropic("rate_limit_error", "over the rate limit, context window"),
                K::RateLimit,
            ),
            (429, openai("insufficient_quota"), K::PlanLimit),
            (400, anthropic(invalid, "Your credit balance is too low"), K::PlanLimit),
            (400, anthropic(invalid, "You have reached your API usage limits."), K::PlanLimit),
            (402, json!({}), K::PlanLimit),
            (429, quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"), K::PlanLimit),
            (429, quota("GenerateRequestsPerMinutePerProjectPerModel"), K::RateLimit),
            (500, json!({}), K::Overload),
            (502, json!({}), K::Network),
            (503, gemini("UNAVAILABLE", "The model is overloaded."), K::Overload),
            (529, anthropic("overloaded_error", "Overloaded"), K::Overload),
        ] {
            assert_eq!(Complaint::of(&said).kind(Some(status)), kind, "{status} {said}");
        }
        for (said, kind) in [
            (anthropic("overloaded_error", "Overloaded"), K::Overload),
            (anthropic("api_error", "Internal"), K::Overload),
            (json!({ "code": "rate_limit_exceeded", "message": "slow" }), K::RateLimit),
            (json!({ "code": "context_length_exceeded", "message": "long" }), K::ContextLength),
            (gemini("DEADLINE_EXCEEDED", "late"), K::Timeout),
            (json!({ "code": "mystery" }), K::BadAnswer),
        ] {
            assert_eq!(Complaint::of(&said).kind(None), kind, "{said}");
        }
    }

    #[test]
    fn what_is_said_is_one_line_of_text() {
        let complaint = Complaint::of_bytes(b"  upstream\r\n\tdied\0 ");
        assert_eq!(complaint.line(), "upstream died");
        assert_eq!(Complaint::of_bytes(b" <!doctype html>").line(), "a page of HTML");
        assert_eq!(Complaint::of(&json!({ "error": { "code": "x" } })).line(), "x");
        assert_eq!((shortened("äöü", 3), shortened("äöü", 2)), ("äöü".to_owned(), "ä…".to_owned()));
    }

    #[test]
    fn a_pause_is_told_in_seconds_or_by_a_date() {
        assert_eq!(seconds("34.074824224"), Some(Duration::new(34, 74_824_224)));
        assert_eq!(seconds("1.5"), Some(Duration::from_millis(1500)));
        assert_eq!(seconds("7"), Some(Duration::from_secs(7)));
        assert_eq!(seconds("-7"), None);
        let then = date("Wed, 21 Oct 2015 07:28:10 GMT").unwrap();
        let now = date("Wed, 21 Oct 2015 07:28:00 GMT").unwrap();
        assert_eq!(then.duration_since(now).as_secs(), 10);
        let text = "You will regain access on 2026-02-01 at 00:00 UTC.";
        assert_eq!(
            regained(text).map(|it| it.to_string()).as_deref(),
            Some("2026-02-01T00:00:00Z")
        );
        let details = json!([{ "@type": "x.RetryInfo", "retryDelay": "3.5s" }]);
        let complaint = Complaint::of(&json!({ "error": { "details": details } }));
        assert_eq!(complaint.wait, Some(Duration::from_millis(3500)));
    }
}
