//! The guards: modules of one shape that look at every event.
//!
//! Each has its configuration, says which facts it [needs](Guard::needs),
//! [answers](Guard::decide), and [folds](Guard::apply) what was recorded into
//! its slice of the state. Adding one is a file here and a line in [`GUARDS`].

pub(crate) mod completion;
pub(crate) mod custom;
pub(crate) mod effects;
pub(crate) mod feedback;
pub(crate) mod limits;
pub(crate) mod pause;
pub(crate) mod protocol;
pub(crate) mod rules;
pub(crate) mod sequential;

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::definition::{Definition, Mode};
use crate::event::Event;
use crate::facts::{Facts, Queries};
use crate::session::Record;
use crate::state::{Clock, State};
use crate::verdict::{Class, Completion, Decision, Feedback, Stop, Violation};

/// Everything a guard may look at.
#[derive(Clone, Copy)]
pub(crate) struct Look<'a> {
    pub(crate) definition: &'a Definition,
    pub(crate) state: &'a State,
    pub(crate) event: &'a Event,
    pub(crate) facts: &'a Facts,
    /// The clock as it will be once this event is applied.
    pub(crate) clock: &'a Clock,
}

/// One guard.
pub(crate) trait Guard: Sync {
    /// Asks for the facts that are still missing.
    fn needs(&self, _look: Look<'_>, _queries: &mut Queries) {}

    /// Answers the event.
    fn decide(&self, look: Look<'_>, answers: &mut Answers);

    /// Folds a recorded verdict into the guard's slice of the state.
    fn apply(&self, _definition: &Definition, _state: &mut State, _record: &Record<'_>) {}
}

/// All guards, in the order in which their objections are listed.
pub(crate) const GUARDS: [&dyn Guard; 8] = [
    &protocol::Protocol,
    &pause::Pause,
    &limits::LimitGuard,
    &sequential::Sequential,
    &effects::EffectGuard,
    &custom::Custom,
    &completion::CompletionGuard,
    &feedback::FeedbackGuard,
];

/// An objection before it has a number.
pub(crate) struct Objection {
    pub(crate) guard: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) subtype: &'static str,
    pub(crate) class: Class,
    pub(crate) decision: Decision,
    pub(crate) message: String,
    pub(crate) location: Option<String>,
    pub(crate) correction: Option<String>,
}

/// What the guards said about one event.
pub(crate) struct Answers {
    mode: Mode,
    seq: u64,
    pub(crate) violations: Vec<Violation>,
    pub(crate) feedback: Vec<Feedback>,
    pub(crate) completion: Option<Completion>,
    pub(crate) stop: Option<Stop>,
}

impl Answers {
    pub(crate) fn new(mode: Mode, seq: u64) -> Self {
        Self {
            mode,
            seq,
            violations: Vec::new(),
            feedback: Vec::new(),
            completion: None,
            stop: None,
        }
    }

    /// Adds an objection that holds unless the definition only observes.
    pub(crate) fn object(&mut self, objection: Objection) {
        self.push(objection, self.mode == Mode::Enforce);
    }

    /// Adds an objection that holds in every mode: it is about the session
    /// itself, or about a person's word, not about a policy on trial.
    pub(crate) fn insist(&mut self, objection: Objection) {
        self.push(objection, true);
    }

    fn push(&mut self, objection: Objection, enforced: bool) {
        self.violations.push(Violation {
            id: format!("v{}.{}", self.seq, self.violations.len() + 1),
            guard: objection.guard.to_owned(),
            kind: objection.kind.to_owned(),
            subtype: objection.subtype.to_owned(),
            class: objection.class,
            message: objection.message,
            location: objection.location,
            correction: objection.correction,
            decision: objection.decision,
            enforced,
        });
    }

    /// The strongest enforced answer, else the strongest observed one.
    pub(crate) fn decision(&self) -> (Decision, Option<bool>) {
        let strongest = |enforced: bool| {
            self.violations.iter().filter(|v| v.enforced == enforced).map(|v| v.decision).max()
        };
        match (strongest(true), strongest(false)) {
            (Some(decision), _) => (decision, Some(true)),
            (None, Some(decision)) => (decision, Some(false)),
            (None, None) => (Decision::Allow, None),
        }
    }
}

/// "`a`, `b` and `c`", for messages.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}
