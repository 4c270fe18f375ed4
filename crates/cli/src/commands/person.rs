//! Shared by the commands that only a person may run: the check for an agent, the parsing of
//! durations, and the request that records a control in a session's journal.

use std::path::PathBuf;

use jackline_engine::event::Control;
use jackline_engine::facts::ControlFiles;
use jackline_engine::summary::WaitingCall;
use jackline_engine::{
    ActorId, ControlAction, Event, EventKind, SessionId, Verdict, wire::TEXT_BYTES_MAX,
};
use jackline_host::environment::user_name;
use jackline_host::{OffPeriod, check_person};
use jackline_journal::FileStore;
use jackline_runtime::{AnswerKind, Runtime};

use crate::args::PersonArgs;
use crate::exit::ExitKind;
use crate::terminal::{current_directory, dim, fail, format_age, machine_definitions, sanitize};

/// The longest reason that is shown. It contains names that other programs chose.
const DOUBT_CHARS_MAX: usize = 600;

/// Refuses a command that relaxes the guard unless a person at a terminal started this process.
pub(super) fn require_person(command: &str) -> Result<(), ExitKind> {
    person_refusal(command).map_or(Ok(()), |refusal| Err(fail(ExitKind::No, refusal)))
}

/// The reason to refuse such a command; `None` if a person started this process.
pub(super) fn person_refusal(command: &str) -> Option<String> {
    let doubt = check_person().err()?;
    let doubt = sanitize(&doubt.to_string(), DOUBT_CHARS_MAX);
    Some(format!("only a person may run `jackline {command}`, and {doubt}"))
}

/// Parses a duration such as `90s`, `10m`, `2h` or `1d` into milliseconds.
pub(super) fn parse_duration(text: &str) -> Result<u64, String> {
    let invalid =
        || format!("--for takes a time such as 90s, 10m or 2h, not `{}`", sanitize(text, 40));
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let seconds = match text.get(digits.len()..) {
        Some("s") => 1,
        Some("m" | "min") => 60,
        Some("h") => 3600,
        Some("d") => 86_400,
        _ => return Err(invalid()),
    };
    let number: u64 = digits.parse().map_err(|_| invalid())?;
    number.checked_mul(seconds * 1000).filter(|ms| *ms > 0).ok_or_else(invalid)
}

/// Refuses a name or a reason that is too long for a record, before anything is done.
pub(super) fn check_person_args(word: &PersonArgs) -> Result<(), ExitKind> {
    let texts = [("--by", &word.by), ("--why", &word.why)];
    texts.into_iter().try_for_each(|(option, text)| {
        text.as_ref().map_or(Ok(()), |text| check_text_length(option, text))
    })
}

/// Refuses a text that is too long for a record.
pub(super) fn check_text_length(option: &str, text: &str) -> Result<(), ExitKind> {
    if text.len() <= TEXT_BYTES_MAX {
        return Ok(());
    }
    let problem = format!("{option} takes at most {TEXT_BYTES_MAX} bytes, not {}", text.len());
    Err(fail(ExitKind::Usage, problem))
}

/// A control of a person, before it is sent to the runtime.
pub(super) struct ControlRequest<'a> {
    pub(super) session: SessionId,
    pub(super) action: ControlAction,
    pub(super) person: &'a PersonArgs,
    pub(super) ask: Option<u64>,
    pub(super) seconds: Option<u64>,
    pub(super) constraint: Option<String>,
    /// The definition file that the person named.
    pub(super) definition: Option<PathBuf>,
}

impl<'a> ControlRequest<'a> {
    pub(super) fn new(session: SessionId, action: ControlAction, word: &'a PersonArgs) -> Self {
        let (ask, seconds, constraint, definition) = (None, None, None, None);
        Self { session, action, person: word, ask, seconds, constraint, definition }
    }

    /// Records the control in the session's journal, and returns the verdict.
    pub(super) fn send(self, store: FileStore) -> Result<Verdict, String> {
        let action = self.action;
        let event = Event {
            session: self.session,
            id: None,
            at: None,
            actor: ActorId::main(),
            meta: None,
            kind: EventKind::Control(Control {
                action: self.action,
                by: Some(self.person.by.clone().unwrap_or_else(user_name)),
                why: self.person.why.clone(),
                ask: self.ask,
                seconds: self.seconds,
                constraint: self.constraint,
                ..Control::default()
            }),
        };
        let definitions = machine_definitions(self.definition, &store);
        let answer = Runtime::new(store, definitions, current_directory()).answer(event);
        let verdict: Verdict =
            serde_json::from_str(&answer.json).map_err(|error| error.to_string())?;
        match (answer.outcome, control_file(action)) {
            (AnswerKind::Decided, _) => Ok(verdict),
            (AnswerKind::Broken | AnswerKind::GuardOff, Some(file)) => {
                Err(control_file_hint(&verdict, file))
            }
            (AnswerKind::Refused | AnswerKind::Broken | AnswerKind::GuardOff, _) => {
                Err(describe_failure(&verdict))
            }
        }
    }
}

/// The control file with the same effect, which needs no journal.
fn control_file(action: ControlAction) -> Option<&'static str> {
    match action {
        ControlAction::Stop => Some(ControlFiles::STOP),
        ControlAction::Pause => Some(ControlFiles::PAUSE),
        _ => None,
    }
}

/// The reason why a session could not be paused or stopped, with the control file as a
/// replacement. It never recommends to turn the guard off.
fn control_file_hint(verdict: &Verdict, file: &str) -> String {
    let messages: Vec<_> = verdict.violations.iter().map(|it| it.message.as_str()).collect();
    format!("{}; `touch {file}` in the workspace has the same effect", messages.join("; "))
}

/// The reason why a control was not decided on.
fn describe_failure(verdict: &Verdict) -> String {
    let violations = describe_violations(verdict);
    match &verdict.error {
        Some(error) if violations.is_empty() => error.reason.clone(),
        _ => violations,
    }
}

/// The violations of a control on one line; empty if there are none.
pub(super) fn describe_violations(verdict: &Verdict) -> String {
    let texts = verdict.violations.iter().map(|violation| {
        let correction = violation.correction.as_ref();
        correction.map_or_else(
            || violation.message.clone(),
            |correction| format!("{}; {correction}", violation.message),
        )
    });
    texts.collect::<Vec<_>>().join("; ")
}

/// The text that agents see instead of an approval code.
pub(super) const CODE_IS_FOR_PERSON: &str = "only the person sees the code";

/// A waiting question on one line.
pub(super) fn describe_question(waiting: &WaitingCall) -> String {
    let action = if waiting.does.is_empty() {
        String::new()
    } else {
        format!(" `{}`", sanitize(&waiting.does, 120))
    };
    let why = if waiting.why.is_empty() {
        "a person has refused it before".to_owned()
    } else {
        sanitize(&waiting.why, 120)
    };
    let when = dim(format!("({})", format_age(waiting.asked_at)));
    format!("{}{action}: {why} {when}", sanitize(&waiting.tool, 40))
}

/// Where and until when the guard is off, on one line.
pub(super) fn describe_off(off: &OffPeriod) -> String {
    let place = off.workspace.as_ref().map_or_else(
        || "everywhere".to_owned(),
        |path| format!("in `{}`", sanitize(&path.display().to_string(), 120)),
    );
    let by = if off.by.is_empty() { "a person" } else { &off.by };
    let why = if off.why.is_empty() { "no reason was recorded" } else { &off.why };
    let (by, why) = (sanitize(by, 40), sanitize(why, 120));
    format!("{place} until {} ({}), by {by}: {why}", off.until, format_age(off.until))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_with_their_unit() {
        for (text, ms) in [("90s", 90_000), ("10m", 600_000), ("2h", 7_200_000), ("1d", 86_400_000)]
        {
            assert_eq!(parse_duration(text), Ok(ms), "{text}");
        }
        for odd in ["", "10", "m", "0m", "-5m", "1.5h", "10 m", "9999999999999999999h", "1w", "ü"]
        {
            assert!(parse_duration(odd).is_err(), "{odd}");
        }
    }
}
