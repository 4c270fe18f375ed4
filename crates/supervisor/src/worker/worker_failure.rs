//! Why an agent program failed.
//!
//! If the client reports the status of its provider, that decides. Otherwise the last lines of the
//! output are searched for phrases. Earlier lines are not searched, because the agent may write
//! about anything in them.

use std::time::Duration;

use jackline_engine::Timestamp;
use jackline_host::worker::WorkerReport;
use jackline_model::{ModelError, ModelErrorKind, provider_error_kind};
use jackline_workspace::shell::ShellOutput;

use crate::model_loop::preview;

/// How many of the last lines are searched.
const ENDING_LINES_MAX: usize = 5;

/// How long to wait for a plan limit without a reset time.
const PLAN_PAUSE_DEFAULT: Duration = Duration::from_mins(15);

/// The longest believable pause. Plans are counted by the week at most.
const PLAN_PAUSE_MAX: Duration = Duration::from_hours(8 * 24);

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Phrases with which clients report that a plan limit is used up.
const PLAN_LIMIT_PHRASES: [&str; 8] = [
    "usage limit",
    "session limit",
    "weekly limit",
    "hit your limit",
    "-hour limit",
    "spend limit",
    "credit balance",
    "quota exceeded",
];

/// Why a start failed; `None` if it did not. `now` is the time at which it ended.
pub(super) fn classify_failure(
    label: &str,
    output: &ShellOutput,
    report: Option<&WorkerReport>,
    now: Timestamp,
) -> Option<ModelError> {
    if output.succeeded() && !report.is_some_and(|report| report.failed) {
        return None;
    }
    let said = report.and_then(|report| report.text.as_deref()).unwrap_or(&output.output);
    let status = report.and_then(|report| report.status);
    let kind = if output.timed_out {
        ModelErrorKind::Timeout
    } else if report.is_some_and(|report| report.context_full) {
        ModelErrorKind::ContextLength
    } else if let Some(status) = status {
        kind_by_status(status, report.map_or("", |report| &report.code), said)
    } else {
        kind_by_text(&last_lines(said))
    };
    let last = preview(&last_lines(said));
    let last = if last.is_empty() { " without any output".to_owned() } else { format!(": {last}") };
    let message = format!("`{label}` {}{last}", exit_text(output));
    let retry_after = (kind == ModelErrorKind::PlanLimit).then(|| plan_pause(said, now));
    Some(ModelError { status, retry_after, ..ModelError::new(kind, message) })
}

fn exit_text(output: &ShellOutput) -> String {
    match (output.timed_out, output.exit_code, output.signal) {
        (true, ..) => "ran out of time".to_owned(),
        (_, Some(code), _) => format!("ended with code {code}"),
        (_, None, Some(signal)) => format!("was ended by signal {signal}"),
        _ => "ended".to_owned(),
    }
}

/// The kind of a failure with a provider status.
fn kind_by_status(status: u16, code: &str, said: &str) -> ModelErrorKind {
    match provider_error_kind(Some(status), code, said) {
        // Clients of subscribers report plan limits in their own words.
        ModelErrorKind::RateLimit if mentions_plan_limit(&said.to_lowercase()) => {
            ModelErrorKind::PlanLimit
        }
        kind => kind,
    }
}

fn mentions_plan_limit(lower: &str) -> bool {
    PLAN_LIMIT_PHRASES.iter().any(|phrase| lower.contains(phrase))
}

/// The last lines of the output.
fn last_lines(said: &str) -> String {
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let skipped = lines.len().saturating_sub(ENDING_LINES_MAX);
    lines.get(skipped..).unwrap_or_default().join("\n")
}

/// The kind of a failure, from the last lines of the output.
fn kind_by_text(ending: &str) -> ModelErrorKind {
    let lower = ending.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let is_coded = |codes: &[&str]| lower.lines().any(|line| has_status_code(line, codes));
    if mentions_plan_limit(&lower) {
        ModelErrorKind::PlanLimit
    } else if has(&["overloaded"]) || is_coded(&["529", "503"]) {
        ModelErrorKind::Overload
    } else if has(&["rate limit", "rate_limit", "too many requests"]) || is_coded(&["429"]) {
        ModelErrorKind::RateLimit
    } else if has(&["invalid api key", "not logged in", "/login"]) || is_coded(&["401", "403"]) {
        ModelErrorKind::Auth
    } else {
        ModelErrorKind::BadAnswer
    }
}

/// Whether a line reports a failure with one of these status codes.
fn has_status_code(line: &str, codes: &[&str]) -> bool {
    let is_of_failure = ["error", "status", "http"].iter().any(|word| line.contains(word));
    let mut words = line.split(|c: char| !c.is_ascii_alphanumeric());
    is_of_failure && words.any(|word| codes.contains(&word))
}

/// How long to wait after a plan limit.
fn plan_pause(said: &str, now: Timestamp) -> Duration {
    let now_ms = u64::try_from(now.as_ms()).unwrap_or(0);
    let until_ms = reset_time_ms(said, now_ms);
    let pause = until_ms.map(|until| Duration::from_millis(until.saturating_sub(now_ms)));
    // Ignore a time that has passed or is too far away.
    pause.filter(|pause| !pause.is_zero() && *pause <= PLAN_PAUSE_MAX).unwrap_or(PLAN_PAUSE_DEFAULT)
}

/// The reset time: `…|1790000000`, a time with date and zone, or `resets 3pm (UTC)`. A time of day
/// in another zone is not supported.
fn reset_time_ms(said: &str, now_ms: u64) -> Option<u64> {
    let after_bar = said.rsplit_once('|').map(|(_, rest)| rest.trim_start());
    let digits = after_bar.map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
    let unix = digits.flatten().filter(|digits| digits.len() >= 10);
    if let Some(seconds) = unix.and_then(|digits| digits.parse::<u64>().ok()) {
        return Some(seconds.saturating_mul(1000));
    }
    let (_, rest) = said.split_once("resets ")?;
    let rest = rest.strip_prefix("at ").unwrap_or(rest);
    let mut words = rest.split_whitespace();
    let word = words.next()?.trim_end_matches(['.', ',']);
    if let Ok(then) = Timestamp::parse(word) {
        return u64::try_from(then.as_ms()).ok();
    }
    let zone = words.next()?.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let of_day = (zone == "UTC").then(|| parse_time_of_day_ms(&word.to_lowercase()))??;
    let today = now_ms - now_ms % DAY_MS + of_day;
    Some(if today > now_ms { today } else { today + DAY_MS })
}

/// The milliseconds from midnight to a time of day such as `3pm`, `3:30pm` or `15:30`.
fn parse_time_of_day_ms(word: &str) -> Option<u64> {
    let (clock, half) = match (word.strip_suffix("am"), word.strip_suffix("pm")) {
        (Some(clock), _) => (clock, Some(0)),
        (_, Some(clock)) => (clock, Some(12)),
        (None, None) => (word, None),
    };
    let (hours, minutes) = clock.split_once(':').unwrap_or((clock, "0"));
    let (hours, minutes): (u64, u64) = (hours.parse().ok()?, minutes.parse().ok()?);
    let hours_max = if half.is_some() { 12 } else { 23 };
    let is_time = hours <= hours_max && minutes < 60;
    let hours = half.map_or(hours, |half| hours % 12 + half);
    is_time.then_some((hours * 60 + minutes) * 60 * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jackline_workspace::shell::Confinement;

    fn output(text: &str, exit_code: i32) -> ShellOutput {
        ShellOutput {
            exit_code: Some(exit_code),
            signal: None,
            timed_out: false,
            printed_too_much: false,
            cancelled: false,
            output: text.to_owned(),
            truncated: false,
            lossy: false,
            bytes_total: 0,
            processes_ended: 0,
            processes_left: 0,
            confinement: Confinement::None,
            artifact: None,
            not_kept: None,
        }
    }

    fn now() -> Timestamp {
        Timestamp::parse("2026-01-31T12:00:00Z").unwrap()
    }

    fn report(text: &str) -> WorkerReport {
        WorkerReport { text: Some(text.to_owned()), failed: true, ..WorkerReport::default() }
    }

    /// The failure of a client whose provider refused the request.
    fn refused(status: u16, code: &str, result: &str) -> ModelError {
        let (status, code) = (Some(status), code.to_owned());
        let report = WorkerReport { status, code, ..report(result) };
        classify_failure("agent", &output("", 1), Some(&report), now()).unwrap()
    }

    #[test]
    fn the_status_of_the_provider_has_priority_over_the_text() {
        let cases = [
            (529, "overloaded_error", "API Error: 529 Overloaded. 401", ModelErrorKind::Overload),
            (
                429,
                "rate_limit_error",
                "API Error: Request rejected (429)",
                ModelErrorKind::RateLimit,
            ),
            (429, "rate_limit_error", "You've hit your session limit", ModelErrorKind::PlanLimit),
            (401, "authentication_error", "Invalid API key", ModelErrorKind::Auth),
            (400, "invalid_request_error", "Credit balance is too low", ModelErrorKind::PlanLimit),
            (400, "invalid_request_error", "Prompt is too long", ModelErrorKind::ContextLength),
        ];
        for (status, code, result, kind) in cases {
            let error = refused(status, code, result);
            assert_eq!((error.kind, error.status), (kind, Some(status)), "{result}");
        }
    }

    #[test]
    fn a_reported_error_is_a_failure_even_with_exit_code_0() {
        let error = classify_failure("agent", &output("", 0), Some(&report("no")), now()).unwrap();
        assert_eq!(error.kind, ModelErrorKind::BadAnswer);
        let well = WorkerReport { failed: false, ..report("overloaded") };
        assert_eq!(classify_failure("agent", &output("", 0), Some(&well), now()), None);
    }

    #[test]
    fn a_failure_without_output_gets_a_complete_message() {
        let said = |text: &str, exit_code, signal| {
            let output = ShellOutput { exit_code, signal, ..output(text, 0) };
            classify_failure("sh", &output, None, now()).unwrap().message
        };
        assert_eq!(said("", None, Some(9)), "`sh` was ended by signal 9 without any output");
        assert_eq!(said(" \n", Some(7), None), "`sh` ended with code 7 without any output");
        assert_eq!(said("no\n", None, Some(9)), "`sh` was ended by signal 9: no");
    }

    #[test]
    fn only_the_last_lines_are_searched() {
        let kind = |text: &str| classify_failure("sh", &output(text, 1), None, now()).unwrap().kind;
        let long_ago = format!("error 401: overloaded, rate limit\n{}", "working\n".repeat(5));
        for (text, expected) in [
            (long_ago.as_str(), ModelErrorKind::BadAnswer),
            ("test 401 of 529 failed: expected 503", ModelErrorKind::BadAnswer),
            ("working\nAPI error: 529", ModelErrorKind::Overload),
            ("HTTP 429 from the provider", ModelErrorKind::RateLimit),
            ("status: 401", ModelErrorKind::Auth),
            ("Claude AI usage limit reached|1790000000", ModelErrorKind::PlanLimit),
        ] {
            assert_eq!(kind(text), expected, "{text}");
        }
    }

    #[test]
    fn a_plan_limit_is_waited_out_until_the_reset_time() {
        let wait = |text: &str| plan_pause(text, now()).as_secs();
        let in_an_hour = now().as_ms() / 1000 + 3600;
        assert_eq!(wait(&format!("usage limit reached|{in_an_hour}")), 3600);
        assert_eq!(wait("5-hour limit reached ∙ resets 3pm (UTC)"), 3 * 3600);
        assert_eq!(wait("limit · resets at 3:30am (UTC)"), 15 * 3600 + 1800);
        assert_eq!(wait("limit · resets 12am UTC."), 12 * 3600);
        assert_eq!(wait("limit resets 2026-01-31T12:01:00Z"), 60);
        for no_time in [
            "usage limit reached",
            "usage limit reached|1000000000",
            "usage limit reached|99999999999999999999999",
            "resets 3pm (America/Los_Angeles)",
            "resets 99pm (UTC)",
        ] {
            assert_eq!(wait(no_time), PLAN_PAUSE_DEFAULT.as_secs(), "{no_time}");
        }
    }
}
