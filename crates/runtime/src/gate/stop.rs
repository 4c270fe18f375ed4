//! What becomes of an agent's wish to end its turn.

use jackline_engine::Decision;
use jackline_engine::verdict::{Completion, ViolationSubtype};

use super::answer::GateAnswer;

/// What becomes of a stop.
#[derive(Debug)]
pub enum StopRuling {
    /// The agent may end its turn, and this became of the completion check.
    End(Option<Completion>),
    /// The agent must go on, and is told why.
    GoOn(String),
    /// A check by command runs; the stop can be proposed again once it has ended.
    Wait(String),
    /// The session is over, or the guard is broken.
    Hold(String),
}

impl StopRuling {
    pub(super) fn of(answer: GateAnswer) -> Self {
        if answer.is_broken() || answer.verdict.is_enforced(Decision::Stop) {
            return Self::Hold(answer.reason());
        }
        if answer.is_allowed() {
            return Self::End(answer.verdict.completion);
        }
        let reason = answer.reason();
        let mut violations = answer.verdict.violations.iter();
        if violations.any(|it| it.subtype == ViolationSubtype::VerificationRunning) {
            Self::Wait(reason)
        } else {
            Self::GoOn(reason)
        }
    }

    /// Why the agent may not end its turn, if so.
    pub fn objection(&self) -> Option<&str> {
        match self {
            Self::End(_) => None,
            Self::GoOn(reason) | Self::Wait(reason) | Self::Hold(reason) => Some(reason),
        }
    }
}
