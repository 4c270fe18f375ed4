//! The iteration cap: an autonomous run pauses there until a person has looked.
//!
//! It is no end. Acknowledging extends the cap and goes on; going on without
//! that pauses again at once. A run that is supervised has a cap also where the
//! definition says nothing of one.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::ToString;

use serde_json::Value;

use super::{Dimension, Limit, Measured, Per, warn};
use crate::definition::Definition;
use crate::event::{Action, EventKind, SessionStarted};
use crate::guards::{Answers, Fold, Look, Objection, progress};
use crate::state::{PauseCause, Paused, State};
use crate::verdict::{
    Class, Decision, GuardName, SafetyAction, SafetyEvent, SafetyKind, ViolationSubtype,
    ViolationType,
};

const DIMENSION: Dimension = Dimension::Iterations;

/// What whoever supervises a run is called in the beginning of its session.
const SUPERVISOR: &str = "run";

/// The cap of such a run, unless its definition has one.
const SUPERVISED: Limit = Limit { max: 100, soft: false, per: Per::Session };

/// How a person lets the run go on.
pub(crate) const ACKNOWLEDGE: &str =
    "end the turn; a person reads `.jackline/CHECKPOINT.md`, and `jackline ack` goes on";

/// How many iterations have come to an end.
pub(crate) fn ended(state: &State) -> u64 {
    state.progress.iterations
}

/// What the cap stands at once so many iterations have ended.
pub(super) fn measured(
    definition: &Definition,
    state: &State,
    ended: u64,
) -> Option<Measured<'static>> {
    let usual = state.spent.supervised.then_some(SUPERVISED);
    let limit = definition.limits.iterations.or(usual)?;
    let counter = match limit.per {
        Per::Session => &state.spent.session,
        Per::Turn => &state.spent.turn,
    };
    let used = ended.saturating_sub(counter.since_iteration);
    let limit = Limit { max: limit.max.saturating_add(state.spent.extended), ..limit };
    Some(Measured { dimension: DIMENSION, tool: None, limit, used, unpriced: &[] })
}

/// The cap, where it is reached and holds.
fn reached(definition: &Definition, state: &State, ended: u64) -> Option<Measured<'static>> {
    measured(definition, state, ended).filter(Measured::is_reached)
}

/// Whether the cap is reached, and a person has to acknowledge it.
pub(crate) fn waits(look: Look<'_>) -> bool {
    let reached = reached(look.definition, look.state, ended(look.state));
    reached.is_some_and(|reached| !reached.limit.soft)
}

pub(super) fn decide(look: Look<'_>, answers: &mut Answers) {
    let ends = progress::ends(look.definition, look.state, look.event);
    // Where it is paused already, that answers.
    if look.state.paused.is_some() || !(ends || look.event.kind.is_work() || begins(look)) {
        return;
    }
    let ended = ended(look.state).saturating_add(u64::from(ends));
    let Some(reached) = reached(look.definition, look.state, ended) else { return };
    if reached.limit.soft {
        warn(look, &reached, answers);
        return;
    }
    let paused = answers.enforces();
    // What is only observed is said when it happens, not at every call after it.
    if paused || ends {
        answers.safety.push(SafetyEvent {
            timestamp: look.clock.now(),
            kind: SafetyKind::IterationCap,
            details: BTreeMap::from([
                ("iterations".to_string(), Value::from(reached.used)),
                ("max".to_string(), Value::from(reached.limit.max)),
            ]),
            action_taken: if paused { SafetyAction::Paused } else { SafetyAction::Observed },
        });
    }
    answers.object(Objection {
        guard: GuardName::Limits,
        kind: ViolationType::Budget,
        subtype: DIMENSION.into(),
        class: Class::Recoverable,
        decision: Decision::Pause,
        message: match reached.limit.max {
            0 => format!("`limits.{DIMENSION}` is 0, so nothing is begun"),
            _ => reached.message(),
        },
        location: Some(format!("limits.{DIMENSION}")),
        correction: Some(ACKNOWLEDGE.to_string()),
    });
}

/// Whether whoever supervises the agent has it begin or go on. An agent program may propose
/// no call at all, so nothing else would hold it.
fn begins(look: Look<'_>) -> bool {
    let is_prompt = matches!(look.event.kind, EventKind::PromptSubmitted(_));
    is_prompt && look.event.actor.is_main() && look.state.spent.supervised
}

pub(super) fn apply(state: &mut State, fold: Fold<'_>) {
    let record = fold.record;
    if let EventKind::SessionStarted(SessionStarted { client: Some(client), .. }) =
        &record.event.kind
        && record.event.actor.is_main()
    {
        state.spent.supervised |= client == SUPERVISOR;
    }
    if fold.said == Some(Action::Acknowledge) {
        acknowledge(state, fold.definition);
    }
    let held = record.verdict.violations.iter().find(|violation| {
        violation.enforced
            && violation.guard == GuardName::Limits
            && violation.subtype == ViolationSubtype::Iterations
    });
    if let Some(held) = held {
        state.paused = Some(Paused::by_guard(PauseCause::Checkpoint, held.message.clone()));
    }
}

/// Allows more iterations, counted from where the run is, and goes on.
fn acknowledge(state: &mut State, definition: &Definition) {
    let Some(reached) = reached(definition, state, ended(state)) else { return };
    let beyond = reached.used.saturating_sub(reached.limit.max);
    let more = beyond.saturating_add(definition.limits.iterations_extension);
    state.spent.extended = state.spent.extended.saturating_add(more);
}
