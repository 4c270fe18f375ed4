//! The fallback chain: another model continues the work.
//!
//! The runtime reports each change of the model with its reason. If the session is stuck, the next
//! model that the definition names ends the pause. Each model may do so once until a person sends a
//! message. A task may start with a model that the definition does not name.
//!
//! Each model has counts of its own: when another one takes over, the guards count failed
//! iterations, refused stops, useless compactions and repeated calls from zero.
//!
//! A change from a model to itself means that the runtime waited for this model.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::advisor::{DETAIL_BYTES_MAX, build_safety_event, has_violation_of, no_effect_violation};
use super::{FoldInput, Guard, GuardAnswers, GuardInput, ViolationDraft};
use crate::definition::{Definition, ModelChoice};
use crate::event::{
    ChangeReason, ControlAction, EventKind, ModelChanged, PromptSource, PromptSubmitted,
};
use crate::session::Record;
use crate::state::{PauseCause, SessionState, short_hash, text_prefix};
use crate::verdict::{GuardName, SafetyAction, SafetyKind, ViolationSubtype};

/// The guard name in violations.
const GUARD: GuardName = GuardName::Models;

/// How many bytes of a model name are stored.
const NAME_BYTES_MAX: usize = 200;

/// The model at work, and the models that were tried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FallbackState {
    /// The model of the last change.
    pub(crate) model: Option<String>,
    /// The models of the definition that got stuck or ended a pause since the last message of a
    /// person, as hashes of their names.
    tried: Vec<u64>,
}

impl FallbackState {
    /// Allows every fallback model again.
    pub(crate) fn reset(&mut self) {
        self.tried.clear();
    }

    /// Records the stuck model and its successor, if the definition names them.
    fn record_switch(&mut self, definition: &Definition, from: &str, to: &str) {
        let named: Vec<u64> =
            definition.choices.iter().map(|choice| short_hash(&choice.label())).collect();
        self.tried.extend([short_hash(from), short_hash(to)]);
        self.tried.sort_unstable();
        self.tried.dedup();
        self.tried.retain(|model| named.contains(model));
    }

    /// Returns the model at work. If the event does not name it, this is the model of the last
    /// change, or else the first one.
    fn current_model<'a>(
        &'a self,
        definition: &'a Definition,
        from: Option<&'a str>,
    ) -> Cow<'a, str> {
        let reported = from.or(self.model.as_deref()).map(Cow::Borrowed);
        let first = || definition.choices.first().map(|choice| Cow::Owned(choice.label()));
        reported.or_else(first).unwrap_or_default()
    }
}

impl SessionState {
    /// Returns whether the definition names a later model that was not tried since the last message
    /// of a person.
    pub(crate) fn has_next_model(&self, definition: &Definition) -> bool {
        let current = self.fallback.model.as_ref().or(self.host.model.as_ref());
        let works = |choice: &ModelChoice| {
            current.is_some_and(|current| {
                choice.label() == *current || choice.model() == Some(current)
            })
        };
        // A model that only the task names comes before those of the definition.
        let later = definition.choices.iter().position(works).map_or(0, |at| at + 1);
        let mut later = definition.choices.iter().skip(later);
        later.any(|choice| !self.fallback.tried.contains(&short_hash(&choice.label())))
    }
}

pub(crate) struct FallbackGuard;

impl Guard for FallbackGuard {
    fn decide(&self, input: GuardInput<'_>, answers: &mut GuardAnswers) {
        let EventKind::ModelChanged(ModelChanged { from, to, reason }) = &input.event.kind else {
            return;
        };
        let taken = if let Some(violation) = check_change(input, from.as_deref(), to, reason) {
            // The violation is about the session, not a policy, so every mode enforces it.
            answers.add_enforced_violation(violation);
            SafetyAction::Refused
        } else if from.as_ref() == Some(to) {
            SafetyAction::Waited
        } else if *reason == ChangeReason::Return {
            SafetyAction::ReturnedToPrimary
        } else {
            SafetyAction::SwitchedModel
        };
        let shown = |detail: &str| json!(text_prefix(detail, DETAIL_BYTES_MAX));
        let details = [
            ("from", from.as_deref().map(shown)),
            ("to", Some(shown(to))),
            ("reason", Some(shown(reason.as_str()))),
        ];
        answers.safety.push(build_safety_event(input, SafetyKind::ModelFallback, details, taken));
    }

    fn apply(&self, state: &mut SessionState, fold: FoldInput<'_>) {
        let record = fold.record;
        match &record.event.kind {
            EventKind::ModelChanged(ModelChanged { from, to, reason })
                if !has_violation_of(record.verdict, &GUARD) =>
            {
                // The pause has already ended here.
                let ends_pause = fold.person_action == Some(ControlAction::ClearBlocker);
                if ends_pause && tells_of_stuck(reason) {
                    let works =
                        state.fallback.current_model(fold.definition, from.as_deref()).into_owned();
                    state.fallback.record_switch(fold.definition, &works, to);
                }
                state.fallback.model = Some(text_prefix(to, NAME_BYTES_MAX).to_string());
            }
            EventKind::PromptSubmitted(PromptSubmitted { source: PromptSource::Human, .. })
                if record.event.actor.is_main() =>
            {
                state.fallback.reset();
            }
            _ => {}
        }
    }
}

/// Returns whether the next model takes over from a stuck one, which ends a pause.
pub(super) fn is_takeover(state: &SessionState, record: &Record<'_>) -> bool {
    let EventKind::ModelChanged(ModelChanged { reason, .. }) = &record.event.kind else {
        return false;
    };
    let is_stuck = state.paused.as_ref().is_some_and(|paused| paused.cause.takes_next_model());
    let is_for_stuck = *reason == ChangeReason::Blocked || (is_stuck && tells_of_stuck(reason));
    is_for_stuck && !has_violation_of(record.verdict, &GUARD)
}

/// Returns whether another model works after this record, so that its counts start.
pub(super) fn is_other_model(record: &Record<'_>) -> bool {
    let EventKind::ModelChanged(ModelChanged { from, to, .. }) = &record.event.kind else {
        return false;
    };
    from.as_ref() != Some(to) && !has_violation_of(record.verdict, &GUARD)
}

/// Returns whether a model is replaced for this reason because the agent is stuck.
fn tells_of_stuck(reason: &ChangeReason) -> bool {
    matches!(
        reason,
        ChangeReason::Blocked
            | ChangeReason::StopEvents
            | ChangeReason::Verification
            | ChangeReason::Context
    )
}

/// Returns the reason why the model change would change nothing.
fn check_change(
    input: GuardInput<'_>,
    from: Option<&str>,
    to: &str,
    reason: &ChangeReason,
) -> Option<ViolationDraft> {
    let refuse = |subtype, message: String, correction: &str| {
        Some(no_effect_violation(GUARD, subtype, message, correction))
    };
    if !input.event.actor.is_main() {
        let message = "only a model change of the main agent can be reported".to_string();
        return refuse(ViolationSubtype::NotMain, message, "omit `actor`");
    }
    let is_stuck = input.stuck_cause().is_some_and(PauseCause::takes_next_model);
    if *reason != ChangeReason::Blocked && !(is_stuck && tells_of_stuck(reason)) {
        return None;
    }
    if !is_stuck {
        let message = "nothing blocks this session".to_string();
        return refuse(
            ViolationSubtype::NotStuck,
            message,
            "report the actual `reason` of the model change",
        );
    }
    let (fallback, definition) = (&input.state.fallback, input.definition);
    let shown = text_prefix(to, DETAIL_BYTES_MAX);
    let correction = "a person must clear the blocker: `jackline clear`";
    let is_named = |choice: &ModelChoice| choice.label() == to;
    if !definition.choices.iter().any(is_named) || fallback.current_model(definition, from) == to {
        let message = format!("the definition names no other fallback model `{shown}`");
        return refuse(ViolationSubtype::NoFurtherModel, message, correction);
    }
    if fallback.tried.contains(&short_hash(to)) {
        let message = format!("`{shown}` was already tried since the last message of a person");
        return refuse(ViolationSubtype::Budget, message, correction);
    }
    None
}
