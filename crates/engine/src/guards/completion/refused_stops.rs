//! Refused stops of a supervised run: when they show that the agent is stuck.
//!
//! A client that can only let an agent continue or stop ends a turn as `capped`. A supervised run
//! can do more: an advisor, another model or a person helps. So it is paused instead, and earlier if
//! there is an advisor or another model. If the checks can't be run, only a person can help.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use serde_json::json;

use super::check_problems::CheckProblems;
use crate::event::{EventKind, IterationEnded};
use crate::guards::progress::{log_no_progress, no_progress_violation};
use crate::guards::{FoldInput, GuardAnswers, GuardInput};
use crate::session::Record;
use crate::state::{PauseCause, PauseState, SessionState, short_hash};
use crate::verdict::{CompletionResult, Decision, GuardName, Violation, ViolationSubtype};

/// How many characters of the problems the reason of the pause repeats.
const PROBLEM_CHARS_MAX: usize = 400;

/// Pauses a supervised run whose agent is stuck. Returns whether it did.
pub(super) fn pause_stuck_agent(
    input: GuardInput<'_>,
    problems: &CheckProblems,
    is_capped: bool,
    answers: &mut GuardAnswers,
) -> bool {
    let Some(subtype) = stuck_reason(input, problems, is_capped) else { return false };
    let refused = input.state.turn.blocks.saturating_add(1);
    let problem: String = problems.text().chars().take(PROBLEM_CHARS_MAX).collect();
    let message = match subtype {
        ViolationSubtype::StopEvents => format!(
            "the agent stopped {} and did nothing in between: {problem}",
            times(input.state.turn.stops_without_work(input.state.invocations.proposed))
        ),
        ViolationSubtype::CheckNotRunnable => {
            format!("a check can't be run, and only a person can repair that: {problem}")
        }
        _ => format!("the completion check failed {}: {problem}", times(refused)),
    };
    let details = BTreeMap::from([
        ("reason".to_owned(), json!(message)),
        ("refused_stops".to_owned(), json!(refused)),
    ]);
    answers.add_violation(no_progress_violation(GuardName::Completion, subtype, message));
    log_no_progress(input, details, answers);
    true
}

/// Describes how often something happened.
fn times(count: u32) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// Returns why the agent of a supervised run is stuck, if it is.
fn stuck_reason(
    input: GuardInput<'_>,
    problems: &CheckProblems,
    is_capped: bool,
) -> Option<ViolationSubtype> {
    let (state, definition) = (input.state, input.definition);
    if !state.spent.supervised || problems.is_waiting() {
        return None;
    }
    if problems.is_unrunnable() {
        let was_told = is_capped || state.turn.unrunnable_blocks > 0;
        return was_told.then_some(ViolationSubtype::CheckNotRunnable);
    }
    let stops = state.turn.stops_without_work(state.invocations.proposed);
    let did_nothing = stops >= definition.run.stops_without_work;
    let has_help = || state.advised.has_budget(definition) || state.has_next_model(definition);
    let asks_for_help = did_nothing || state.turn.blocks >= definition.run.failed_checks;
    let is_stuck = is_capped || (asks_for_help && has_help());
    is_stuck.then_some(if did_nothing {
        ViolationSubtype::StopEvents
    } else {
        ViolationSubtype::Verification
    })
}

/// Counts a refused stop, or pauses the session.
pub(super) fn apply_refused_stop(state: &mut SessionState, record: &Record<'_>) {
    let Some(CompletionResult::Incomplete { feedback, .. }) = &record.verdict.completion else {
        return;
    };
    state.turn.remember_missing(feedback);
    let is_pause = |it: &&Violation| it.guard == GuardName::Completion && it.enforced;
    let Some(violation) = record.verdict.violations.iter().find(is_pause) else { return };
    let cause = match violation.subtype {
        ViolationSubtype::StopEvents => PauseCause::StopEvents,
        ViolationSubtype::Verification => PauseCause::Verification,
        ViolationSubtype::CheckNotRunnable if record.verdict.is_enforced(Decision::Pause) => {
            PauseCause::BrokenCheck
        }
        // A stop that only waits for a running check may repeat its text without reaching the cap.
        ViolationSubtype::VerificationRunning => {
            if !state.spent.supervised {
                state.turn.count_block(None, state.epoch);
            }
            return;
        }
        _ => {
            let is_unrunnable = violation.subtype == ViolationSubtype::CheckNotRunnable;
            state.turn.count_block(Some(short_hash(feedback)), state.epoch);
            state.turn.count_stop(state.invocations.proposed, is_unrunnable);
            return;
        }
    };
    state.paused = Some(PauseState::by_guard(cause, violation.message.clone()));
}

/// Notices work that no call shows: files that changed while a program without hooks worked.
pub(super) fn apply_iteration_end(state: &mut SessionState, fold: FoldInput<'_>) {
    if let EventKind::IterationEnded(IterationEnded { files_changed: Some(1..), .. }) =
        &fold.record.event.kind
    {
        state.turn.record_work();
    }
}
