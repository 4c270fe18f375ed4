//! The answer to one event.

use jackline_engine::{Decision, Verdict};

use super::texts::reason_of;
use crate::answer::AnswerKind;

/// A verdict, and whether it is a decision of the guards.
#[derive(Debug, Clone)]
pub struct GateAnswer {
    /// The verdict.
    pub verdict: Verdict,
    /// Whether it is a decision.
    pub outcome: AnswerKind,
}

impl GateAnswer {
    /// Whether the proposed action may happen: the guards allow it, or the guard is broken and a
    /// person has turned it off.
    pub fn is_allowed(&self) -> bool {
        self.outcome == AnswerKind::GuardOff || (self.is_decision() && self.verdict.allows_run())
    }

    /// Whether the guards have decided, so that the event is in the journal.
    pub fn is_decision(&self) -> bool {
        self.outcome == AnswerKind::Decided
    }

    /// Whether an event that has happened is recorded, or need not be recorded because a person has
    /// turned a broken guard off.
    pub fn is_accepted(&self) -> bool {
        matches!(self.outcome, AnswerKind::Decided | AnswerKind::GuardOff)
    }

    /// Whether the guard is broken, so that nothing may run.
    pub fn is_broken(&self) -> bool {
        self.outcome == AnswerKind::Broken
    }

    /// Whether the session is now paused or stopped, so that nothing may run.
    pub fn blocks_session(&self) -> bool {
        self.verdict.is_enforced(Decision::Pause) || self.verdict.is_enforced(Decision::Stop)
    }

    /// The reason for the refusal.
    pub fn reason(&self) -> String {
        reason_of(&self.verdict)
    }
}
