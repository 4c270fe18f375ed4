//! The iteration cap: at this number of iterations an autonomous run pauses until a person has
//! reviewed it.
//!
//! The cap does not end the run. An acknowledgement extends the cap and continues the run; any
//! other way to continue pauses again at once. A supervised run has a cap even if the definition
//! sets none.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::ToString;

use serde_json::Value;

use super::{BudgetLimit, LimitDimension, LimitPeriod, LimitUsage, warn_soft_limit};
use crate::definition::Definition;
use crate::event::{ControlAction, EventKind, SessionStarted};
use crate::guards::{FoldInput, GuardAnswers, GuardInput, ViolationDraft, progress};
use crate::state::{PauseCause, PauseState, SessionState};
use crate::verdict::{
    Decision, GuardName, SafetyAction, SafetyEvent, SafetyKind, ViolationClass, ViolationSubtype,
    ViolationType,
};

const DIMENSION: LimitDimension = LimitDimension::Iterations;

/// The client name that a supervisor sends in its start event.
const SUPERVISOR_CLIENT: &str = "run";

/// The cap of a supervised run without a cap in its definition.
const SUPERVISED_CAP: BudgetLimit =
    BudgetLimit { max: 100, soft: false, per: LimitPeriod::Session };

/// The correction that tells how a person continues the run.
pub(crate) const ACKNOWLEDGE_CORRECTION: &str = "end the turn; a person reads `.jackline/CHECKPOINT.md` and \
                                      continues the run with `jackline ack`";

/// Returns the number of finished iterations.
pub(crate) fn finished_iterations(state: &SessionState) -> u64 {
    state.progress.iterations
}

/// Measures the cap for this number of finished iterations.
pub(super) fn measure_cap(
    definition: &Definition,
    state: &SessionState,
    ended: u64,
) -> Option<LimitUsage<'static>> {
    let default_cap = state.spent.supervised.then_some(SUPERVISED_CAP);
    let limit = definition.limits.iterations.or(default_cap)?;
    let counter = match limit.per {
        LimitPeriod::Session => &state.spent.session,
        LimitPeriod::Turn => &state.spent.turn,
    };
    let used = ended.saturating_sub(counter.since_iteration);
    let limit = BudgetLimit { max: limit.max.saturating_add(state.spent.extended), ..limit };
    Some(LimitUsage { dimension: DIMENSION, tool: None, limit, used, unpriced: &[] })
}

/// Returns the cap if it is reached.
fn reached_cap(
    definition: &Definition,
    state: &SessionState,
    ended: u64,
) -> Option<LimitUsage<'static>> {
    measure_cap(definition, state, ended).filter(LimitUsage::is_reached)
}

/// Returns whether the run waits for an acknowledgement of the cap.
pub(crate) fn is_waiting_for_acknowledgement(input: GuardInput<'_>) -> bool {
    let reached = reached_cap(input.definition, input.state, finished_iterations(input.state));
    reached.is_some_and(|reached| !reached.limit.soft)
}

pub(super) fn decide(input: GuardInput<'_>, answers: &mut GuardAnswers) {
    let is_end = progress::is_iteration_end(input.definition, input.state, input.event);
    // A session that is already paused needs no second pause.
    if input.state.paused.is_some()
        || !(is_end || input.event.kind.is_work() || is_supervised_start(input))
    {
        return;
    }
    let ended = finished_iterations(input.state).saturating_add(u64::from(is_end));
    let Some(reached) = reached_cap(input.definition, input.state, ended) else { return };
    if reached.limit.soft {
        warn_soft_limit(input, &reached, answers);
        return;
    }
    let paused = answers.is_enforcing();
    // An observed cap is logged once, not at every later call.
    if paused || is_end {
        answers.safety.push(SafetyEvent {
            timestamp: input.clock.now(),
            kind: SafetyKind::IterationCap,
            details: BTreeMap::from([
                ("iterations".to_string(), Value::from(reached.used)),
                ("max".to_string(), Value::from(reached.limit.max)),
            ]),
            action_taken: if paused { SafetyAction::Paused } else { SafetyAction::Observed },
        });
    }
    answers.add_violation(ViolationDraft {
        guard: GuardName::Limits,
        kind: ViolationType::Budget,
        subtype: DIMENSION.into(),
        class: ViolationClass::Recoverable,
        decision: Decision::Pause,
        message: match reached.limit.max {
            0 => format!("`limits.{DIMENSION}` is 0, so no iteration may start"),
            _ => reached.message(),
        },
        location: Some(format!("limits.{DIMENSION}")),
        correction: Some(ACKNOWLEDGE_CORRECTION.to_string()),
    });
}

/// Returns whether a supervisor starts or continues the agent. An agent program may propose no
/// calls, so only this event can be blocked.
fn is_supervised_start(input: GuardInput<'_>) -> bool {
    let is_prompt = matches!(input.event.kind, EventKind::PromptSubmitted(_));
    is_prompt && input.event.actor.is_main() && input.state.spent.supervised
}

pub(super) fn apply(state: &mut SessionState, fold: FoldInput<'_>) {
    let record = fold.record;
    if let EventKind::SessionStarted(SessionStarted { client: Some(client), .. }) =
        &record.event.kind
        && record.event.actor.is_main()
    {
        state.spent.supervised |= client == SUPERVISOR_CLIENT;
    }
    if fold.person_action == Some(ControlAction::Acknowledge) {
        extend_cap(state, fold.definition);
    }
    let violation = record.verdict.violations.iter().find(|violation| {
        violation.enforced
            && violation.guard == GuardName::Limits
            && violation.subtype == ViolationSubtype::Iterations
    });
    if let Some(violation) = violation {
        state.paused =
            Some(PauseState::by_guard(PauseCause::Checkpoint, violation.message.clone()));
    }
}

/// Extends the cap, counted from the current iteration.
fn extend_cap(state: &mut SessionState, definition: &Definition) {
    let Some(reached) = reached_cap(definition, state, finished_iterations(state)) else { return };
    let beyond = reached.used.saturating_sub(reached.limit.max);
    let more = beyond.saturating_add(definition.limits.iterations_extension);
    state.spent.extended = state.spent.extended.saturating_add(more);
}
