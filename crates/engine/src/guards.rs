//! The guards: modules of one shape that look at every event.
//!
//! Each has its configuration, says which facts it [needs](Guard::needs),
//! [answers](Guard::decide), and [folds](Guard::apply) what was recorded into
//! its slice of the state. Adding one is a file here and a line in [`GUARDS`].

pub(crate) mod advisor;
pub(crate) mod completion;
pub(crate) mod context;
pub(crate) mod control;
pub(crate) mod custom;
pub(crate) mod dirty;
pub(crate) mod effects;
pub(crate) mod fallback;
pub(crate) mod feedback;
pub(crate) mod grants;
pub(crate) mod identity;
pub(crate) mod limits;
pub(crate) mod loops;
pub(crate) mod markers;
pub(crate) mod opaque;
pub(crate) mod output;
pub(crate) mod pause;
pub(crate) mod progress;
pub(crate) mod protected;
pub(crate) mod protocol;
pub(crate) mod reads;
pub(crate) mod reports;
pub(crate) mod rules;
pub(crate) mod schema;
pub(crate) mod sequential;
pub(crate) mod unknown;

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write as _};

use jackline_shell::{Command, Line};
use serde_json::Value;

use crate::definition::{Definition, Mode};
use crate::event::{Action, Event};
use crate::facts::{Facts, Queries};
use crate::place::Place;
use crate::proposal::Proposal;
use crate::session::Record;
use crate::state::{Clock, State};
use crate::verdict::{
    Class, Completion, Constraint, ContextGate, Decision, Feedback, GuardName, Mismatch, Page,
    Repair, SafetyEvent, Stop, Violation, ViolationSubtype, ViolationType,
};

/// Everything a guard may look at.
#[derive(Clone, Copy)]
pub(crate) struct Look<'a> {
    pub(crate) definition: &'a Definition,
    pub(crate) state: &'a State,
    pub(crate) event: &'a Event,
    pub(crate) facts: &'a Facts,
    /// The clock as it will be once this event is applied.
    pub(crate) clock: &'a Clock,
    pub(crate) place: &'a Place,
    /// What the event proposes, understood.
    pub(crate) proposal: Option<&'a Proposal<'a>>,
}

/// Everything a guard may use to fold a record.
#[derive(Clone, Copy)]
pub(crate) struct Fold<'a> {
    pub(crate) definition: &'a Definition,
    pub(crate) place: &'a Place,
    pub(crate) record: &'a Record<'a>,
    /// What the event proposed, understood.
    pub(crate) proposal: Option<&'a Proposal<'a>>,
    /// What a person has done: a control that was not refused, or a report that
    /// they removed, which says the same. An advisor and a further model that lift
    /// a pause say what a person says who clears a blocker.
    pub(crate) said: Option<Action>,
}

/// One guard.
pub(crate) trait Guard: Sync {
    /// Asks for the facts that are still missing.
    fn needs(&self, _look: Look<'_>, _queries: &mut Queries) {}

    /// Answers the event.
    fn decide(&self, look: Look<'_>, answers: &mut Answers);

    /// Folds a recorded verdict into the guard's slice of the state.
    fn apply(&self, _state: &mut State, _fold: Fold<'_>) {}
}

/// All guards, in the order in which their objections are listed.
pub(crate) const GUARDS: [&dyn Guard; 26] = [
    &protocol::Protocol,
    &schema::SchemaGuard,
    &markers::MarkerGuard,
    &pause::Pause,
    &identity::IdentityGuard,
    // Before the limits, which count the usage it looks at.
    &context::ContextGuard,
    // Before the limits, which may pause and count its iterations.
    &progress::ProgressGuard,
    &limits::LimitGuard,
    &unknown::Unknown,
    &reports::ReportGuard,
    &protected::Protected,
    &reads::ReadGuard,
    &sequential::Sequential,
    &dirty::DirtyGuard,
    &effects::EffectGuard,
    &custom::Custom,
    &rules::RuleGuard,
    &opaque::OpaqueGuard,
    &grants::Grants,
    &control::ControlGuard,
    &advisor::AdvisorGuard,
    &fallback::FallbackGuard,
    &completion::CompletionGuard,
    // After everybody who can refuse a call.
    &loops::LoopGuard,
    &output::OutputGuard,
    &feedback::FeedbackGuard,
];

/// An objection before it has a number.
pub(crate) struct Objection {
    pub(crate) guard: GuardName,
    pub(crate) kind: ViolationType,
    pub(crate) subtype: ViolationSubtype,
    pub(crate) class: Class,
    pub(crate) decision: Decision,
    pub(crate) message: String,
    pub(crate) location: Option<String>,
    pub(crate) correction: Option<String>,
}

/// What the guards said about one event.
#[derive(Default)]
pub(crate) struct Answers {
    mode: Mode,
    /// Whether a person has switched the guard off: then nothing holds.
    off: bool,
    seq: u64,
    pub(crate) violations: Vec<Violation>,
    pub(crate) feedback: Vec<Feedback>,
    pub(crate) constraints: Vec<Constraint>,
    pub(crate) args: Option<Value>,
    pub(crate) output: Option<Value>,
    pub(crate) page: Option<Page>,
    pub(crate) repair: Option<Repair>,
    pub(crate) invalid_result: Vec<Mismatch>,
    pub(crate) completion: Option<Completion>,
    pub(crate) context_gate: Option<ContextGate>,
    pub(crate) stop: Option<Stop>,
    pub(crate) safety: Vec<SafetyEvent>,
}

impl Answers {
    pub(crate) fn new(mode: Mode, facts: &Facts, seq: u64) -> Self {
        Self { mode, off: facts.is_off(), seq, ..Self::default() }
    }

    /// Whether what a guard says by the definition's mode holds.
    pub(crate) fn enforces(&self) -> bool {
        self.mode == Mode::Enforce && !self.off
    }

    /// Adds an objection that holds unless the definition only observes.
    pub(crate) fn object(&mut self, objection: Objection) {
        self.object_as(objection, self.mode);
    }

    /// The same, for what has a mode of its own.
    pub(crate) fn object_as(&mut self, objection: Objection, mode: Mode) {
        self.push(objection, mode == Mode::Enforce);
    }

    /// Adds an objection that holds in every mode: it is about the session
    /// itself, or about a person's word, not about a policy on trial. Only what
    /// a person switched off does not hold.
    pub(crate) fn insist(&mut self, objection: Objection) {
        self.push(objection, true);
    }

    fn push(&mut self, objection: Objection, enforced: bool) {
        self.violations.push(Violation {
            id: format!("v{}.{}", self.seq, self.violations.len() + 1),
            guard: objection.guard,
            kind: objection.kind,
            subtype: objection.subtype,
            class: objection.class,
            message: objection.message,
            location: objection.location,
            correction: objection.correction,
            decision: objection.decision,
            enforced: enforced && !self.off,
        });
    }

    /// The strongest enforced answer, else the strongest observed one.
    pub(crate) fn decision(&self) -> (Decision, Option<bool>) {
        let strongest = |enforced: bool| {
            let page = self.page.iter().filter(|page| page.enforced == enforced);
            let objections = self.violations.iter().filter(|v| v.enforced == enforced);
            objections.map(|v| v.decision).chain(page.map(|_| Decision::Rewrite)).max()
        };
        match (strongest(true), strongest(false)) {
            (Some(decision), _) => (decision, Some(true)),
            (None, Some(decision)) => (decision, Some(false)),
            (None, None) => (Decision::Allow, None),
        }
    }
}

/// How much of a command line a message quotes.
const EXCERPT_CHARS_MAX: usize = 120;

/// A text short enough for a message.
pub(crate) fn shortened(text: &str) -> String {
    let text = text.trim();
    // No text has more characters than bytes, and most are short.
    if text.len() <= EXCERPT_CHARS_MAX {
        return text.to_owned();
    }
    match text.char_indices().nth(EXCERPT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// The JSON of a value, short enough for a message. No more of it is written than
/// is shown.
pub(crate) fn shortened_json(value: &Value) -> String {
    let mut start = Start(String::with_capacity(EXCERPT_CHARS_MAX + 8));
    let whole = write!(start, "{value}").is_ok();
    if !whole {
        start.0.push('…');
    }
    start.0
}

/// The beginning of a text, as far as a message shows it.
struct Start(String);

impl fmt::Write for Start {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        // No text has more characters than bytes, and most are short.
        if self.0.len() + more.len() <= EXCERPT_CHARS_MAX {
            self.0.push_str(more);
            return Ok(());
        }
        let room = EXCERPT_CHARS_MAX.saturating_sub(self.0.chars().count());
        match more.char_indices().nth(room) {
            Some((end, _)) => {
                self.0.push_str(more.get(..end).unwrap_or_default());
                Err(fmt::Error)
            }
            None => {
                self.0.push_str(more);
                Ok(())
            }
        }
    }
}

/// A simple command as it is written.
pub(crate) fn excerpt(line: &Line<'_>, command: &Command<'_>) -> Option<String> {
    let text = line.text.get(command.span.start as usize..command.span.end as usize)?;
    (!text.trim().is_empty()).then(|| shortened(text))
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

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString as _;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn short_json_is_what_is_shown_of_all_of_it(
            texts in prop::collection::vec("[a\"\\\\é… \n]{0,90}", 0..4), number in any::<i64>()
        ) {
            for value in [Value::from(texts.clone()), serde_json::json!({ "a": texts, "b": number })] {
                prop_assert_eq!(shortened_json(&value), shortened(&value.to_string()));
            }
        }
    }
}
