//! Denies every call while the session is paused.

use alloc::format;
use alloc::string::ToString;

use super::control::describe_pause;
use super::{Guard, GuardAnswers, GuardInput, ViolationDraft, reports};
use crate::state::PauseCause;
use crate::verdict::{Decision, GuardName, ViolationClass, ViolationSubtype, ViolationType};

pub(crate) struct PauseGuard;

impl Guard for PauseGuard {
    fn decide(&self, input: GuardInput<'_>, answers: &mut GuardAnswers) {
        let Some(paused) = &input.state.paused else { return };
        if !input.event.kind.is_work() || reports::is_resolved_by_removal(input) {
            return;
        }
        let (subtype, correction) = match paused.cause {
            cause if cause.is_stuck() => (
                ViolationSubtype::Blocked,
                "end the turn and report what you need; a person reads \
                 `.jackline/BLOCKER_REPORT.md` and continues the session with `jackline clear`",
            ),
            PauseCause::Person => (
                ViolationSubtype::PausedByPerson,
                "end the turn; the next message of a person or `jackline resume` continues the \
                 session",
            ),
            PauseCause::Checkpoint => (
                ViolationSubtype::Checkpoint,
                "end the turn; a person reads `.jackline/CHECKPOINT.md` and continues the run with \
                 `jackline ack`",
            ),
            _ => (
                ViolationSubtype::PausedByGuard,
                "end the turn; the next message of a person or `jackline resume` continues the \
                 session",
            ),
        };
        // A pause is enforced in observe mode, too.
        answers.add_enforced_violation(ViolationDraft {
            guard: GuardName::Pause,
            kind: ViolationType::Paused,
            subtype,
            class: ViolationClass::Recoverable,
            decision: Decision::Pause,
            message: match reports::unsure_removal(input) {
                Some(why) => format!("the session was paused by {}; {why}", describe_pause(paused)),
                None => format!("the session was paused by {}", describe_pause(paused)),
            },
            location: None,
            correction: Some(correction.to_string()),
        });
    }
}

impl GuardInput<'_> {
    /// Returns why the agent is stuck, if it is and no person has resolved that.
    pub(crate) fn stuck_cause(self) -> Option<PauseCause> {
        let cause = self.state.paused.as_ref().map(|paused| paused.cause);
        cause.filter(|cause| cause.is_stuck() && !reports::is_resolved_by_removal(self))
    }

    /// Returns whether calls are blocked now, by a pause or by the `PAUSE` file.
    pub(crate) fn is_paused(self) -> bool {
        let by_file = self.facts.control_files.pause && !self.facts.is_off();
        by_file || (self.state.paused.is_some() && !reports::is_resolved_by_removal(self))
    }
}
