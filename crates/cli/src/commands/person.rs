//! What the commands of a person share: who may open the guard, how long things
//! last, and how a person's word gets into a session's journal.

use std::path::PathBuf;

use jackline_engine::event::Control;
use jackline_engine::facts::Markers;
use jackline_engine::summary::Waiting;
use jackline_engine::{
    Action, ActorId, Event, EventKind, SessionId, Verdict, wire::TEXT_BYTES_MAX,
};
use jackline_host::environment::person;
use jackline_host::{Off, agent_above};
use jackline_journal::FileStore;
use jackline_runtime::{Outcome, Runtime};

use crate::args::Word;
use crate::exit::Exit;
use crate::terminal::{ago, definitions, dim, fail, here, plain};

/// Refuses what opens the guard to whom an agent started.
pub(super) fn may_open(command: &str) -> Result<(), Exit> {
    refusal(command).map_or(Ok(()), |refusal| Err(fail(Exit::No, refusal)))
}

/// Why what opens the guard is refused here.
pub(super) fn refusal(command: &str) -> Option<String> {
    let agent = plain(&agent_above()?.to_string(), 200);
    Some(format!(
        "only a person may `jackline {command}`, and {agent}; run it in a terminal that no agent \
         has started"
    ))
}

/// A time such as `90s`, `10m`, `2h` or `1d`, in milliseconds.
pub(super) fn parse_lasting(text: &str) -> Result<u64, String> {
    let wrong = || format!("--for takes a time such as 90s, 10m or 2h, not `{}`", plain(text, 40));
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let seconds = match text.get(digits.len()..) {
        Some("s") => 1,
        Some("m" | "min") => 60,
        Some("h") => 3600,
        Some("d") => 86_400,
        _ => return Err(wrong()),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(seconds * 1000).filter(|ms| *ms > 0).ok_or_else(wrong)
}

/// Refuses words that no record takes, before anything is done.
pub(super) fn may_say(word: &Word) -> Result<(), Exit> {
    let given = [("--by", &word.by), ("--why", &word.why)];
    given
        .into_iter()
        .try_for_each(|(option, text)| text.as_ref().map_or(Ok(()), |text| fits(option, text)))
}

/// Refuses a text that is too long for a record.
pub(super) fn fits(option: &str, text: &str) -> Result<(), Exit> {
    if text.len() <= TEXT_BYTES_MAX {
        return Ok(());
    }
    let problem = format!("{option} takes at most {TEXT_BYTES_MAX} bytes, not {}", text.len());
    Err(fail(Exit::Usage, problem))
}

/// One control, before it is sent.
pub(super) struct Said<'a> {
    pub(super) session: SessionId,
    pub(super) action: Action,
    pub(super) word: &'a Word,
    pub(super) ask: Option<u64>,
    pub(super) seconds: Option<u64>,
    pub(super) constraint: Option<String>,
    /// The definition that the person names.
    pub(super) definition: Option<PathBuf>,
}

impl<'a> Said<'a> {
    pub(super) fn new(session: SessionId, action: Action, word: &'a Word) -> Self {
        let (ask, seconds, constraint, definition) = (None, None, None, None);
        Self { session, action, word, ask, seconds, constraint, definition }
    }

    /// Has it written down in the session, and says what came of it.
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
                by: Some(self.word.by.clone().unwrap_or_else(person)),
                why: self.word.why.clone(),
                ask: self.ask,
                seconds: self.seconds,
                constraint: self.constraint,
                ..Control::default()
            }),
        };
        let definitions = definitions(self.definition, &store);
        let answer = Runtime::new(store, definitions, here()).answer(event);
        let verdict: Verdict =
            serde_json::from_str(&answer.json).map_err(|error| error.to_string())?;
        match (answer.outcome, marker(action)) {
            (Outcome::Decided, _) => Ok(verdict),
            (Outcome::Broken | Outcome::Passed, Some(file)) => Err(instead(&verdict, file)),
            (Outcome::Refused | Outcome::Broken | Outcome::Passed, _) => Err(problem(&verdict)),
        }
    }
}

/// The file that says the same without a journal.
fn marker(action: Action) -> Option<&'static str> {
    match action {
        Action::Stop => Some(Markers::STOP),
        Action::Pause => Some(Markers::PAUSE),
        _ => None,
    }
}

/// Why a session could not be held, and how it can: not by opening the guard.
fn instead(verdict: &Verdict, file: &str) -> String {
    let said: Vec<_> = verdict.violations.iter().map(|it| it.message.as_str()).collect();
    format!("{}; `touch {file}` in the workspace does it without a journal", said.join("; "))
}

/// Why a control was not decided on.
fn problem(verdict: &Verdict) -> String {
    let objections = objections(verdict);
    match &verdict.error {
        Some(error) if objections.is_empty() => error.reason.clone(),
        _ => objections,
    }
}

/// What speaks against a control, in one line; empty where nothing does.
pub(super) fn objections(verdict: &Verdict) -> String {
    let said = verdict.violations.iter().map(|violation| {
        let correction = violation.correction.as_ref();
        correction.map_or_else(
            || violation.message.clone(),
            |correction| format!("{}; {correction}", violation.message),
        )
    });
    said.collect::<Vec<_>>().join("; ")
}

/// What agents see in the place of a code.
pub(super) const FOR_PERSON: &str = "the code is for the person";

/// A question in one line.
pub(super) fn in_words(waiting: &Waiting) -> String {
    let does = if waiting.does.is_empty() {
        String::new()
    } else {
        format!(" `{}`", plain(&waiting.does, 120))
    };
    let why = if waiting.why.is_empty() {
        "a person refused it before".to_owned()
    } else {
        plain(&waiting.why, 120)
    };
    let when = dim(format!("({})", ago(waiting.asked_at)));
    format!("{}{does}: {why} {when}", plain(&waiting.tool, 40))
}

/// That the guard is off, in one line.
pub(super) fn off_in_words(off: &Off) -> String {
    let place = off.workspace.as_ref().map_or_else(
        || "everywhere".to_owned(),
        |path| format!("in `{}`", plain(&path.display().to_string(), 120)),
    );
    let by = if off.by.is_empty() { "a person" } else { &off.by };
    let why = if off.why.is_empty() { "no reason was kept" } else { &off.why };
    let (by, why) = (plain(by, 40), plain(why, 120));
    format!("{place} until {}, which is {}, by {by}: {why}", off.until, ago(off.until))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_unit() {
        for (text, ms) in [("90s", 90_000), ("10m", 600_000), ("2h", 7_200_000), ("1d", 86_400_000)]
        {
            assert_eq!(parse_lasting(text), Ok(ms), "{text}");
        }
        for odd in ["", "10", "m", "0m", "-5m", "1.5h", "10 m", "9999999999999999999h", "1w", "ü"]
        {
            assert!(parse_lasting(odd).is_err(), "{odd}");
        }
    }
}
