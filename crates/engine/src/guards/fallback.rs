//! The fallback chain: another model goes on with the work.
//!
//! Who drives the agent says so, and why. Where the session is stuck, another of the models
//! that the definition names lifts the pause, each of them once; then only a person does. Who
//! works first may be none of them: a task can name its own.
//!
//! A model that goes on after itself was waited for.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::advisor::{DETAIL_BYTES_MAX, line, no_effect, objects};
use super::{Answers, Fold, Guard, Look, Objection};
use crate::definition::{Definition, ModelChoice};
use crate::event::{ChangeReason, EventKind, ModelChanged, PromptSource, PromptSubmitted};
use crate::session::Record;
use crate::state::{State, beginning, short};
use crate::verdict::{GuardName, SafetyAction, SafetyKind, ViolationSubtype};

/// The name under which the guard objects.
const GUARD: GuardName = GuardName::Models;

/// How much of a model's name is remembered.
const NAME_BYTES_MAX: usize = 200;

/// Which model is at work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fallback {
    /// The one that was told last.
    pub(crate) model: Option<String>,
    /// Which models of the definition were stuck, or have lifted a pause, since a person
    /// spoke: by their names in short.
    tried: Vec<u64>,
}

impl Fallback {
    /// Has every further model be tried again.
    pub(crate) fn begin(&mut self) {
        self.tried.clear();
    }

    /// Remembers who was stuck and who goes on, as far as the definition names them.
    fn lift(&mut self, definition: &Definition, from: &str, to: &str) {
        let known: Vec<u64> = definition.choices.iter().map(|it| short(&it.label())).collect();
        self.tried.extend([short(from), short(to)]);
        self.tried.sort_unstable();
        self.tried.dedup();
        self.tried.retain(|tried| known.contains(tried));
    }

    /// Who works where a change does not say who did: the one that was told last, or else
    /// the first.
    fn works<'a>(&'a self, definition: &'a Definition, from: Option<&'a str>) -> Cow<'a, str> {
        let told = from.or(self.model.as_deref()).map(Cow::Borrowed);
        let first = || definition.choices.first().map(|it| Cow::Owned(it.label()));
        told.or_else(first).unwrap_or_default()
    }
}

pub(crate) struct FallbackGuard;

impl Guard for FallbackGuard {
    fn decide(&self, look: Look<'_>, answers: &mut Answers) {
        let EventKind::ModelChanged(ModelChanged { from, to, reason }) = &look.event.kind else {
            return;
        };
        let taken = if let Some(objection) = futile(look, from.as_deref(), to, reason) {
            // It is about the session itself, so it holds in every mode.
            answers.insist(objection);
            SafetyAction::Refused
        } else if from.as_ref() == Some(to) {
            SafetyAction::Waited
        } else if *reason == ChangeReason::Return {
            SafetyAction::ReturnedToPrimary
        } else {
            SafetyAction::SwitchedModel
        };
        let shown = |text: &str| json!(beginning(text, DETAIL_BYTES_MAX));
        let details = [
            ("from", from.as_deref().map(shown)),
            ("to", Some(shown(to))),
            ("reason", Some(shown(reason.word()))),
        ];
        answers.safety.push(line(look, SafetyKind::ModelFallback, details, taken));
    }

    fn apply(&self, state: &mut State, fold: Fold<'_>) {
        let record = fold.record;
        match &record.event.kind {
            EventKind::ModelChanged(ModelChanged { from, to, .. })
                if !objects(record.verdict, &GUARD) =>
            {
                if lifts(record) {
                    let works = state.fallback.works(fold.definition, from.as_deref()).into_owned();
                    state.fallback.lift(fold.definition, &works, to);
                }
                state.fallback.model = Some(beginning(to, NAME_BYTES_MAX).to_string());
            }
            EventKind::PromptSubmitted(PromptSubmitted { source: PromptSource::Human, .. })
                if record.event.actor.is_main() =>
            {
                state.fallback.begin();
            }
            _ => {}
        }
    }
}

/// Whether the next model takes over where the one before was stuck.
pub(super) fn lifts(record: &Record<'_>) -> bool {
    let EventKind::ModelChanged(ModelChanged { reason, .. }) = &record.event.kind else {
        return false;
    };
    *reason == ChangeReason::Blocked && !objects(record.verdict, &GUARD)
}

/// Why the change would be for nothing.
fn futile(
    look: Look<'_>,
    from: Option<&str>,
    to: &str,
    reason: &ChangeReason,
) -> Option<Objection> {
    let object = |subtype, message: String, correction: &str| {
        Some(no_effect(GUARD, subtype, message, correction))
    };
    if !look.event.actor.is_main() {
        let message = "the model of the main agent is told, and of no other".to_string();
        return object(ViolationSubtype::NotMain, message, "leave `actor` out");
    }
    if *reason != ChangeReason::Blocked {
        return None;
    }
    if !look.is_stuck() {
        let message = "nothing blocks this session".to_string();
        return object(
            ViolationSubtype::NotStuck,
            message,
            "give the reason for which the model was changed",
        );
    }
    let (fallback, definition) = (&look.state.fallback, look.definition);
    let shown = beginning(to, DETAIL_BYTES_MAX);
    let way = "a person has to clear the blocker: `jackline clear`";
    let is_named = |choice: &ModelChoice| choice.label() == to;
    if !definition.choices.iter().any(is_named) || fallback.works(definition, from) == to {
        let message = format!("the definition has no further model `{shown}`");
        return object(ViolationSubtype::NoFurtherModel, message, way);
    }
    if fallback.tried.contains(&short(to)) {
        let message = format!("`{shown}` has had its turn since a person spoke");
        return object(ViolationSubtype::Budget, message, way);
    }
    None
}
