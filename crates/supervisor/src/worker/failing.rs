//! Why an agent program came to nothing, as far as it says so.
//!
//! A client may report its provider's status, and that decides. Words are the last resort, and only those with which a program ends: what it says
//! of its work may be about anything.

use std::time::Duration;

use jackline_engine::Timestamp;
use jackline_host::worker::WorkerReport;
use jackline_model::{ErrorKind, ModelError, refusal_kind};
use jackline_workspace::shell::ShellOutput;

use crate::own::shown;

/// So many lines are the ending of a program.
const ENDING_LINES: usize = 5;

/// How long a plan that is used up is left alone where nobody says until when.
const PLAN_PAUSE: Duration = Duration::from_mins(15);

/// The longest pause that is believed: plans are counted by the week at most.
const PLAN_PAUSE_MAX: Duration = Duration::from_hours(8 * 24);

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// With what programs say that what was paid for is used up.
const PLAN: [&str; 8] = [
    "usage limit",
    "session limit",
    "weekly limit",
    "hit your limit",
    "-hour limit",
    "spend limit",
    "credit balance",
    "quota exceeded",
];

/// How a start came to nothing; none where it did not. `now` is when it ended.
pub(super) fn failure(
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
        ErrorKind::Timeout
    } else if report.is_some_and(|report| report.context_full) {
        ErrorKind::ContextLength
    } else if let Some(status) = status {
        by_status(status, report.map_or("", |report| &report.code), said)
    } else {
        by_words(&ending(said))
    };
    let last = shown(&ending(said));
    let last = if last.is_empty() { " without a word".to_owned() } else { format!(": {last}") };
    let message = format!("`{label}` {}{last}", how(output));
    let retry_after = (kind == ErrorKind::PlanLimit).then(|| pause(said, now));
    Some(ModelError { status, retry_after, ..ModelError::new(kind, message) })
}

fn how(output: &ShellOutput) -> String {
    match (output.timed_out, output.exit_code, output.signal) {
        (true, ..) => "ran out of time".to_owned(),
        (_, Some(code), _) => format!("ended with code {code}"),
        (_, None, Some(signal)) => format!("was ended by signal {signal}"),
        _ => "ended".to_owned(),
    }
}

/// What the provider of a client said, by its status.
fn by_status(status: u16, code: &str, said: &str) -> ErrorKind {
    match refusal_kind(Some(status), code, said) {
        // Those who have subscribed are told so by a client in its own words.
        ErrorKind::RateLimit if is_plan(&said.to_lowercase()) => ErrorKind::PlanLimit,
        kind => kind,
    }
}

fn is_plan(lower: &str) -> bool {
    PLAN.iter().any(|phrase| lower.contains(phrase))
}

/// The last lines that a program has printed.
fn ending(said: &str) -> String {
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let skipped = lines.len().saturating_sub(ENDING_LINES);
    lines.get(skipped..).unwrap_or_default().join("\n")
}

/// What kind of failure the words tell of with which a program ends.
fn by_words(ending: &str) -> ErrorKind {
    let lower = ending.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let is_coded = |codes: &[&str]| lower.lines().any(|line| is_coded(line, codes));
    if is_plan(&lower) {
        ErrorKind::PlanLimit
    } else if has(&["overloaded"]) || is_coded(&["529", "503"]) {
        ErrorKind::Overload
    } else if has(&["rate limit", "rate_limit", "too many requests"]) || is_coded(&["429"]) {
        ErrorKind::RateLimit
    } else if has(&["invalid api key", "not logged in", "/login"]) || is_coded(&["401", "403"]) {
        ErrorKind::Auth
    } else {
        ErrorKind::BadAnswer
    }
}

/// Whether a line tells of a failure with one of these numbers.
fn is_coded(line: &str, codes: &[&str]) -> bool {
    let is_of_failure = ["error", "status", "http"].iter().any(|word| line.contains(word));
    let mut words = line.split(|c: char| !c.is_ascii_alphanumeric());
    is_of_failure && words.any(|word| codes.contains(&word))
}

/// How long a plan that is used up is left alone.
fn pause(said: &str, now: Timestamp) -> Duration {
    let now_ms = u64::try_from(now.as_ms()).unwrap_or(0);
    let until_ms = until_ms(said, now_ms);
    let pause = until_ms.map(|until| Duration::from_millis(until.saturating_sub(now_ms)));
    // What is past already, or years away, is no time at all.
    pause.filter(|pause| !pause.is_zero() && *pause <= PLAN_PAUSE_MAX).unwrap_or(PLAN_PAUSE)
}

/// Until when: `…|1790000000`, a time with its date and zone, or `resets 3pm (UTC)`. A time of
/// the day in any other zone is none that we know.
fn until_ms(said: &str, now_ms: u64) -> Option<u64> {
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
    let of_day = (zone == "UTC").then(|| of_day_ms(&word.to_lowercase()))??;
    let today = now_ms - now_ms % DAY_MS + of_day;
    Some(if today > now_ms { today } else { today + DAY_MS })
}

/// A time of the day, such as `3pm`, `3:30pm` or `15:30`, counted from midnight.
fn of_day_ms(word: &str) -> Option<u64> {
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

    /// What a client reports whose provider refuses.
    fn refused(status: u16, code: &str, result: &str) -> ModelError {
        let (status, code) = (Some(status), code.to_owned());
        let report = WorkerReport { status, code, ..report(result) };
        failure("agent", &output("", 1), Some(&report), now()).unwrap()
    }

    #[test]
    fn the_status_in_the_answer_decides_whatever_the_words_are() {
        let cases = [
            (529, "overloaded_error", "API Error: 529 Overloaded. 401", ErrorKind::Overload),
            (429, "rate_limit_error", "API Error: Request rejected (429)", ErrorKind::RateLimit),
            (429, "rate_limit_error", "You've hit your session limit", ErrorKind::PlanLimit),
            (401, "authentication_error", "Invalid API key", ErrorKind::Auth),
            (400, "invalid_request_error", "Credit balance is too low", ErrorKind::PlanLimit),
            (400, "invalid_request_error", "Prompt is too long", ErrorKind::ContextLength),
        ];
        for (status, code, result, kind) in cases {
            let error = refused(status, code, result);
            assert_eq!((error.kind, error.status), (kind, Some(status)), "{result}");
        }
    }

    #[test]
    fn an_answer_that_is_an_error_is_none_although_the_program_ended_well() {
        let error = failure("agent", &output("", 0), Some(&report("no")), now()).unwrap();
        assert_eq!(error.kind, ErrorKind::BadAnswer);
        let well = WorkerReport { failed: false, ..report("overloaded") };
        assert_eq!(failure("agent", &output("", 0), Some(&well), now()), None);
    }

    #[test]
    fn a_program_that_dies_in_silence_is_told_of_in_whole_sentences() {
        let said = |text: &str, exit_code, signal| {
            let output = ShellOutput { exit_code, signal, ..output(text, 0) };
            failure("sh", &output, None, now()).unwrap().message
        };
        assert_eq!(said("", None, Some(9)), "`sh` was ended by signal 9 without a word");
        assert_eq!(said(" \n", Some(7), None), "`sh` ended with code 7 without a word");
        assert_eq!(said("no\n", None, Some(9)), "`sh` was ended by signal 9: no");
    }

    #[test]
    fn words_count_only_where_a_program_ends() {
        let kind = |text: &str| failure("sh", &output(text, 1), None, now()).unwrap().kind;
        let long_ago = format!("error 401: overloaded, rate limit\n{}", "working\n".repeat(5));
        for (text, expected) in [
            (long_ago.as_str(), ErrorKind::BadAnswer),
            ("test 401 of 529 failed: expected 503", ErrorKind::BadAnswer),
            ("working\nAPI error: 529", ErrorKind::Overload),
            ("HTTP 429 from the provider", ErrorKind::RateLimit),
            ("status: 401", ErrorKind::Auth),
            ("Claude AI usage limit reached|1790000000", ErrorKind::PlanLimit),
        ] {
            assert_eq!(kind(text), expected, "{text}");
        }
    }

    #[test]
    fn a_plan_is_left_alone_until_the_time_that_is_said() {
        let wait = |text: &str| pause(text, now()).as_secs();
        let in_an_hour = now().as_ms() / 1000 + 3600;
        assert_eq!(wait(&format!("usage limit reached|{in_an_hour}")), 3600);
        assert_eq!(wait("5-hour limit reached ∙ resets 3pm (UTC)"), 3 * 3600);
        assert_eq!(wait("limit · resets at 3:30am (UTC)"), 15 * 3600 + 1800);
        assert_eq!(wait("limit · resets 12am UTC."), 12 * 3600);
        assert_eq!(wait("limit resets 2026-01-31T12:01:00Z"), 60);
        for nobody_knows in [
            "usage limit reached",
            "usage limit reached|1000000000",
            "usage limit reached|99999999999999999999999",
            "resets 3pm (America/Los_Angeles)",
            "resets 99pm (UTC)",
        ] {
            assert_eq!(wait(nobody_knows), PLAN_PAUSE.as_secs(), "{nobody_knows}");
        }
    }
}
