//! The fallback chain: another model goes on with the work.
//!
//! Who drives the agent says so, and why. Where the session is stuck, the next model lifts
//! the pause, as often as there are further models; then only a person does.

use alloc::format;
use alloc::string::{String, ToString};

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::advisor::{DETAIL_BYTES_MAX, line, no_effect, objects};
use super::{Answers, Fold, Guard, Look, Objection};
use crate::event::{EventKind, PromptSource};
use crate::session::Record;
use crate::state::{State, beginning};
use crate::verdict::SafetyKind;

/// The name under which the guard objects.
const GUARD: &str = "models";

/// The reason that lifts a pause.
const BLOCKED: &str = "blocked";

/// The reason with which the first model goes on again.
const RETURN: &str = "return";

/// How much of a model's name is remembered.
const NAME_BYTES_MAX: usize = 200;

/// Which model is at work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fallback {
    /// The one that was told last.
    pub(crate) model: Option<String>,
    /// How many pauses further models have lifted since a person spoke.
    lifted: u32,
}

impl Fallback {
    /// Has every further model be tried again.
    pub(crate) fn begin(&mut self) {
        self.lifted = 0;
    }
}

pub(crate) struct FallbackGuard;

impl Guard for FallbackGuard {
    fn decide(&self, look: Look<'_>, answers: &mut Answers) {
        let EventKind::ModelChanged { from, to, reason } = &look.event.kind else { return };
        let taken = if let Some(objection) = futile(look, reason) {
            // It is about the session itself, so it holds in every mode.
            answers.insist(objection);
            "refused"
        } else if reason == RETURN {
            "returned_to_primary"
        } else {
            "switched_model"
        };
        let shown = |text: &str| json!(beginning(text, DETAIL_BYTES_MAX));
        let details = [
            ("from", from.as_deref().map(shown)),
            ("to", Some(shown(to))),
            ("reason", Some(shown(reason))),
        ];
        answers.safety.push(line(look, SafetyKind::ModelFallback, details, taken));
    }

    fn apply(&self, state: &mut State, fold: Fold<'_>) {
        let record = fold.record;
        match &record.event.kind {
            EventKind::ModelChanged { to, .. } if !objects(record.verdict, GUARD) => {
                state.fallback.model = Some(beginning(to, NAME_BYTES_MAX).to_string());
                let lifts = u32::from(lifts(record));
                state.fallback.lifted = state.fallback.lifted.saturating_add(lifts);
            }
            EventKind::PromptSubmitted { source: PromptSource::Human, .. }
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
    let EventKind::ModelChanged { reason, .. } = &record.event.kind else { return false };
    reason == BLOCKED && !objects(record.verdict, GUARD)
}

/// Why the change would be for nothing.
fn futile(look: Look<'_>, reason: &str) -> Option<Objection<'static>> {
    let object = |subtype, message: String, correction: &str| {
        Some(no_effect(GUARD, subtype, message, correction))
    };
    if !look.event.actor.is_main() {
        let message = "the model of the main agent is told, and of no other".to_string();
        return object("not_main", message, "leave `actor` out");
    }
    if reason != BLOCKED {
        return None;
    }
    if !look.is_stuck() {
        let message = "nothing blocks this session".to_string();
        return object("not_stuck", message, "give the reason for which the model was changed");
    }
    let further = look.definition.choices.len().saturating_sub(1);
    let lifted = look.state.fallback.lifted;
    let way = "a person has to clear the blocker: `jackline clear`";
    match usize::try_from(lifted) {
        _ if further == 0 => {
            object("no_further_model", "the definition has no further model".to_string(), way)
        }
        Ok(lifted) if lifted < further => None,
        _ => {
            let message = format!("further models have gone on {lifted} of {further} times");
            object("budget", message, way)
        }
    }
}
