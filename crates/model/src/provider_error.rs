//! Parses the error responses of providers and finds the kind of failure.
//!
//! Providers describe the same failure in many ways, so error codes and phrases are checked before
//! the status: most of them answer a too long conversation with a plain 400.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use serde_json::Value;

use crate::error::ModelErrorKind;
use crate::http_exchange::ResponseHead;

/// The quota of the plan is used up.
const PLAN_CODES: [&str; 4] =
    ["insufficient_quota", "billing_error", "billing_hard_limit_reached", "billing_not_active"];
const PLAN_PHRASES: [&str; 3] = ["credit balance", "usage limit", "spending limit"];

/// The conversation exceeds the context window.
const CONTEXT_CODES: [&str; 3] =
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

const AUTH_CODES: [&str; 6] = [
    "authentication_error",
    "permission_error",
    "invalid_api_key",
    "API_KEY_INVALID",
    "UNAUTHENTICATED",
    "PERMISSION_DENIED",
];
const UNKNOWN_MODEL_CODES: [&str; 3] = ["model_not_found", "not_found_error", "NOT_FOUND"];
const OVERLOAD_CODES: [&str; 8] = [
    "overloaded_error",
    "engine_overloaded",
    "server_is_overloaded",
    "slow_down",
    "UNAVAILABLE",
    "api_error",
    "server_error",
    "INTERNAL",
];
const RATE_LIMIT_CODES: [&str; 3] =
    ["rate_limit_error", "rate_limit_exceeded", "RESOURCE_EXHAUSTED"];
const TIMEOUT_CODES: [&str; 2] = ["timeout_error", "DEADLINE_EXCEEDED"];

/// The kind of a provider failure that another program reports, with its status, code and message.
pub fn provider_error_kind(status: Option<u16>, code: &str, message: &str) -> ModelErrorKind {
    let complaint = ProviderErrorBody {
        message: message.to_owned(),
        codes: vec![code.to_owned()],
        retry_after: None,
    };
    complaint.kind(status)
}

/// An error response of a server.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ProviderErrorBody {
    /// The message for people; may be empty.
    pub(crate) message: String,
    /// The error codes.
    codes: Vec<String>,
    /// How long the server asks to wait.
    pub(crate) retry_after: Option<Duration>,
}

impl ProviderErrorBody {
    /// Reads the body of an error response, or an error in a stream, of any provider.
    pub(crate) fn from_json(body: &Value) -> Self {
        let body = body.get(0).unwrap_or(body);
        let error = body.get("error").filter(|error| !error.is_null()).unwrap_or(body);
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
            let delay = delay.as_deref().and_then(|delay| parse_seconds(delay.strip_suffix('s')?));
            complaint.retry_after = complaint.retry_after.or(delay);
        }
        complaint
    }

    /// Reads a body that may not be JSON.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        match serde_json::from_slice(bytes) {
            Ok(body) => Self::from_json(&body),
            Err(_) if looks_like_html(bytes) => {
                Self { message: "an HTML page".to_owned(), ..Self::default() }
            }
            Err(_) => {
                let message = String::from_utf8_lossy(bytes).into_owned();
                Self { message, ..Self::default() }
            }
        }
    }

    /// The kind of failure. `status` is the status of the response, or `None` for an error within a
    /// stream.
    pub(crate) fn kind(&self, status: Option<u16>) -> ModelErrorKind {
        let lower = self.message.to_lowercase();
        let coded = |words: &[&str]| self.codes.iter().any(|code| words.contains(&code.as_str()));
        let phrased = |phrases: &[&str]| phrases.iter().any(|phrase| lower.contains(phrase));
        let daily = self.codes.iter().any(|code| code.contains("PerDay"));
        let used_up = coded(&PLAN_CODES) || phrased(&PLAN_PHRASES) || daily;
        if used_up && matches!(status, None | Some(400 | 402 | 403 | 429)) {
            return ModelErrorKind::PlanLimit;
        }
        let too_long = coded(&CONTEXT_CODES) || phrased(&CONTEXT_PHRASES);
        if too_long && !matches!(status, Some(401 | 403 | 404 | 429)) {
            return ModelErrorKind::ContextLength;
        }
        match status {
            Some(401 | 403) => ModelErrorKind::Auth,
            Some(402) => ModelErrorKind::PlanLimit,
            Some(404) if coded(&UNKNOWN_MODEL_CODES) || lower.contains("model") => {
                ModelErrorKind::UnknownModel
            }
            Some(408 | 504 | 524) => ModelErrorKind::Timeout,
            Some(413) => ModelErrorKind::ContextLength,
            Some(429) => ModelErrorKind::RateLimit,
            Some(502 | 520..=523) => ModelErrorKind::Network,
            Some(500..) => ModelErrorKind::Overload,
            Some(_) if coded(&UNKNOWN_MODEL_CODES[..1]) => ModelErrorKind::UnknownModel,
            _ if coded(&AUTH_CODES) || phrased(&["api key not valid"]) => ModelErrorKind::Auth,
            Some(_) => ModelErrorKind::BadRequest,
            None if coded(&OVERLOAD_CODES) || lower.contains("overloaded") => {
                ModelErrorKind::Overload
            }
            None if coded(&RATE_LIMIT_CODES) => ModelErrorKind::RateLimit,
            None if coded(&TIMEOUT_CODES) => ModelErrorKind::Timeout,
            None => ModelErrorKind::BadAnswer,
        }
    }

    /// The message in one line.
    pub(crate) fn one_line_message(&self) -> String {
        let words = self.message.split(|c: char| c.is_whitespace() || c.is_control());
        let line = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        if line.is_empty() { self.codes.join(" ") } else { line }
    }
}

/// Cuts a text to a number of characters.
pub(crate) fn shorten(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

pub(crate) fn looks_like_html(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().starts_with(b"<")
}

/// How long a server asks to wait. A date is compared with the server's own clock, so a wrong local
/// clock does not matter.
pub(crate) fn retry_delay(head: &ResponseHead, complaint: &ProviderErrorBody) -> Option<Duration> {
    let ms = head.get("retry-after-ms").and_then(|ms| ms.trim().parse().ok());
    let ms = ms.map(Duration::from_millis);
    let now = head.get("date").and_then(parse_http_date);
    let until = |then: Timestamp| Duration::try_from(then.duration_since(now?)).ok();
    let after = head.get("retry-after").map(str::trim);
    let after =
        after.and_then(|after| parse_seconds(after).or_else(|| until(parse_http_date(after)?)));
    ms.or(after)
        .or(complaint.retry_after)
        .or_else(|| until(regain_access_time(&complaint.message)?))
}

fn parse_http_date(text: &str) -> Option<Timestamp> {
    DateTimeParser::new().parse_timestamp(text).ok()
}

/// Anthropic reports only in the message when a limit ends: `on 2026-02-01 at 00:00 UTC`.
fn regain_access_time(message: &str) -> Option<Timestamp> {
    let (_, then) = message.split_once("regain access on ")?;
    let (day, rest) = then.split_once(" at ")?;
    let (time, _) = rest.split_once(" UTC")?;
    format!("{day}T{time}:00Z").parse().ok()
}

/// Parses seconds with an optional fraction.
fn parse_seconds(text: &str) -> Option<Duration> {
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
    fn an_error_response_gets_its_kind() {
        use ModelErrorKind as K;
        let anthropic = |kind: &str, message: &str| json!({ "type": "error", "error": { "type": kind, "message": message } });
        let openai =
            |code: &str| json!({ "error": { "message": "No.", "type": "x", "code": code } });
        let gemini = |status: &str, message: &str| json!([{ "error": { "code": 1, "status": status, "message": message } }]);
        let quota = |id: &str| {
            let violations = json!([{ "quotaId": id }]);
            json!({ "error": { "details": [{ "violations": violations }] } })
        };
        let invalid = "invalid_request_error";
        for (status, body, kind) in [
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
            assert_eq!(
                ProviderErrorBody::from_json(&body).kind(Some(status)),
                kind,
                "{status} {body}"
            );
        }
        for (body, kind) in [
            (anthropic("overloaded_error", "Overloaded"), K::Overload),
            (anthropic("api_error", "Internal"), K::Overload),
            (json!({ "code": "rate_limit_exceeded", "message": "slow" }), K::RateLimit),
            (json!({ "code": "context_length_exceeded", "message": "long" }), K::ContextLength),
            (gemini("DEADLINE_EXCEEDED", "late"), K::Timeout),
            (json!({ "code": "mystery" }), K::BadAnswer),
        ] {
            assert_eq!(ProviderErrorBody::from_json(&body).kind(None), kind, "{body}");
        }
    }

    #[test]
    fn the_message_is_one_line() {
        let complaint = ProviderErrorBody::from_bytes(b"  upstream\r\n\tdied\0 ");
        assert_eq!(complaint.one_line_message(), "upstream died");
        assert_eq!(
            ProviderErrorBody::from_bytes(b" <!doctype html>").one_line_message(),
            "an HTML page"
        );
        assert_eq!(
            ProviderErrorBody::from_json(&json!({ "error": { "code": "x" } })).one_line_message(),
            "x"
        );
        assert_eq!((shorten("äöü", 3), shorten("äöü", 2)), ("äöü".to_owned(), "ä…".to_owned()));
    }

    #[test]
    fn a_wait_is_given_in_seconds_or_as_a_date() {
        assert_eq!(parse_seconds("34.074824224"), Some(Duration::new(34, 74_824_224)));
        assert_eq!(parse_seconds("1.5"), Some(Duration::from_millis(1500)));
        assert_eq!(parse_seconds("7"), Some(Duration::from_secs(7)));
        assert_eq!(parse_seconds("-7"), None);
        let then = parse_http_date("Wed, 21 Oct 2015 07:28:10 GMT").unwrap();
        let now = parse_http_date("Wed, 21 Oct 2015 07:28:00 GMT").unwrap();
        assert_eq!(then.duration_since(now).as_secs(), 10);
        let text = "You will regain access on 2026-02-01 at 00:00 UTC.";
        assert_eq!(
            regain_access_time(text).map(|it| it.to_string()).as_deref(),
            Some("2026-02-01T00:00:00Z")
        );
        let details = json!([{ "@type": "x.RetryInfo", "retryDelay": "3.5s" }]);
        let complaint = ProviderErrorBody::from_json(&json!({ "error": { "details": details } }));
        assert_eq!(complaint.retry_after, Some(Duration::from_millis(3500)));
    }
}
