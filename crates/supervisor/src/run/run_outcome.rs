//! The public outcome of a run. It says what the stop code and the journal say.

use jackline_attempt::{GuardrailCause, InternalOutcome, OutcomeError, PublicOutcome, egress};
use jackline_engine::StopCode;
use jackline_engine::verdict::{SessionStop, StopDetail};
use jackline_task::RetryCounts;
use serde_json::Value;

use crate::evidence::Objections;

/// How a run ended.
pub(super) struct RunEnd<'a> {
    /// The stop code. `None` if the run was suspended.
    pub(super) stop: Option<&'a SessionStop>,
    /// The answer of the agent, if it was allowed to stop.
    pub(super) answer: Option<InternalOutcome>,
    /// How the last program ended, if it failed.
    pub(super) failed_program: Option<InternalOutcome>,
    /// How often its programs were retried.
    pub(super) retries: RetryCounts,
    /// What the guards objected to.
    pub(super) objections: &'a Objections,
    /// Whether the last model failed for a reason that may pass with time.
    pub(super) has_temporary_failure: bool,
}

/// The outcome for the caller: the answer of the agent if the journal proves that the task is done,
/// else a text without internal details.
pub(super) fn public_outcome(end: RunEnd<'_>) -> PublicOutcome {
    let is_done = end.stop.is_some_and(|stop| stop.code == StopCode::ObjectiveAchieved);
    let nothing = || InternalOutcome::Ok { value: Value::Null, sources: Vec::new() };
    if is_done {
        return egress(&end.answer.unwrap_or_else(nothing));
    }
    let (error, guardrail) = match end.failed_program {
        // Further programs have tried to repair a retriable error, so it stays internal.
        Some(InternalOutcome::Error(error)) if error.retriable => (error, None),
        Some(failed @ InternalOutcome::Error(_)) => return egress(&failed),
        Some(InternalOutcome::InternalError { error, guardrail, .. }) => (error, guardrail),
        Some(InternalOutcome::Ok { .. }) | None => {
            unfinished_error(end.stop, end.objections, end.has_temporary_failure)
        }
    };
    let refused_stops = end.objections.refused_stops;
    egress(&InternalOutcome::InternalError {
        error,
        guardrail,
        guardrail_recovery_attempts: end.retries.guardrail.saturating_add(refused_stops),
        retries: end.retries.all.saturating_add(refused_stops),
    })
}

/// The error of a run that ended without success, and the violation that ended it.
fn unfinished_error(
    stop: Option<&SessionStop>,
    objections: &Objections,
    has_temporary_failure: bool,
) -> (OutcomeError, Option<GuardrailCause>) {
    let error_type = stop.map_or_else(|| "suspended".to_owned(), ToString::to_string);
    let is_engine = stop
        .is_some_and(|stop| matches!(stop.detail, Some(StopDetail::Model | StopDetail::Worker)));
    let is_retriable = is_engine && has_temporary_failure;
    let error = OutcomeError::new(&error_type, "the run ended without success", is_retriable);
    let guardrail = stop.filter(|stop| is_ended_by_guardrail(stop));
    (error, guardrail.and_then(|_| objections.last.clone()))
}

/// Whether a guard ended the session, and not a person, a provider or a fault.
fn is_ended_by_guardrail(stop: &SessionStop) -> bool {
    match stop.code {
        StopCode::Capped | StopCode::BudgetExceeded => true,
        StopCode::SystemError => matches!(
            stop.detail,
            Some(StopDetail::Loop | StopDetail::Schema | StopDetail::Identity)
        ),
        StopCode::ObjectiveAchieved
        | StopCode::NoEvidence
        | StopCode::HumanRequested
        | StopCode::Interrupted => false,
    }
}

#[cfg(test)]
mod tests {
    use jackline_engine::verdict::ViolationClass;

    use super::*;

    fn outcome_of(code: StopCode, detail: Option<StopDetail>) -> PublicOutcome {
        let stop = SessionStop { detail, ..SessionStop::with_code(code) };
        let cause =
            GuardrailCause { class: ViolationClass::Terminal, subtype: "repeat".to_owned() };
        public_outcome(RunEnd {
            stop: Some(&stop),
            answer: None,
            failed_program: None,
            retries: RetryCounts::default(),
            objections: &Objections { last: Some(cause), refused_stops: 0 },
            has_temporary_failure: true,
        })
    }

    #[test]
    fn only_a_stop_by_a_guard_names_its_violation() {
        let looping = outcome_of(StopCode::SystemError, Some(StopDetail::Loop));
        assert!(looping.normalized && !looping.retriable);
        assert_eq!(looping.guardrail.unwrap().subtype, "repeat");
        let overload = outcome_of(StopCode::SystemError, Some(StopDetail::Model));
        assert!(overload.normalized && overload.retriable && overload.guardrail.is_none());
        let stopped = outcome_of(StopCode::HumanRequested, None);
        assert!(stopped.normalized && !stopped.retriable && stopped.guardrail.is_none());
    }
}
