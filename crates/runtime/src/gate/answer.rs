//! The answer to one event.

use jackline_engine::{Decision, Verdict};

use super::texts::reason_of;
use crate::answer::Outcome;

/// A verdict, and whether it is a decision of the guards.
#[derive(Debug, Clone)]
pub struct GateAnswer {
    /// The verdict.
    pub verdict: Verdict,
    /// Whether it is a decision.
    pub outcome: Outcome,
}

impl GateAnswer {
    /// Whether what was proposed may happen: the guards allow it, or a person has switched a
    /// broken guard off.
    pub fn is_allowed(&self) -> bool {
        self.outcome == Outcome::Passed || (self.is_decision() && self.verdict.lets_run())
    }

    /// Whether the guards have decided, so that the event is in the journal.
    pub fn is_decision(&self) -> bool {
        self.outcome == Outcome::Decided
    }

    /// Whether an event that has happened is written down, or need not be, because a person
    /// has switched a broken guard off.
    pub fn is_accepted(&self) -> bool {
        matches!(self.outcome, Outcome::Decided | Outcome::Passed)
    }

    /// Whether the guard is broken, so that nothing may happen.
    pub fn is_broken(&self) -> bool {
        self.outcome == Outcome::Broken
    }

    /// Whether the session is paused or over now, so that nothing may go on.
    pub fn holds_session(&self) -> bool {
        self.verdict.is_enforced(Decision::Pause) || self.verdict.is_enforced(Decision::Stop)
    }

    /// Why the event is refused, in words.
    pub fn reason(&self) -> String {
        reason_of(&self.verdict)
    }
}
