//! The decision on an agent's request to end its turn.

use jackline_engine::verdict::{CompletionResult, ViolationSubtype};

use super::answer::GateAnswer;

/// The decision on a stop.
#[derive(Debug)]
pub enum StopRuling {
    /// The agent may end its turn; the value is the result of the completion check.
    End(Option<CompletionResult>),
    /// The agent must continue, for this reason.
    Continue(String),
    /// A check by command is running. The stop can be proposed again when it has ended.
    Wait(String),
    /// The session is paused or stopped, or the guard is broken.
    Blocked(String),
}

impl StopRuling {
    /// The decision in an answer to a proposed stop.
    pub fn of(answer: GateAnswer) -> Self {
        if answer.is_broken() || answer.blocks_session() {
            return Self::Blocked(answer.reason());
        }
        if answer.is_allowed() {
            return Self::End(answer.verdict.completion);
        }
        let reason = answer.reason();
        let mut violations = answer.verdict.violations.iter();
        if violations.any(|it| it.subtype == ViolationSubtype::VerificationRunning) {
            Self::Wait(reason)
        } else {
            Self::Continue(reason)
        }
    }

    /// The reason why the agent may not end its turn, if it may not.
    pub fn refusal_reason(&self) -> Option<&str> {
        match self {
            Self::End(_) => None,
            Self::Continue(reason) | Self::Wait(reason) | Self::Blocked(reason) => Some(reason),
        }
    }
}
