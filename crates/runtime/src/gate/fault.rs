//! A guard that could not answer.

use jackline_engine::{FaultKind, Verdict};

use super::texts::reason_of;

/// Why the guard could not answer an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardFault {
    /// The fault and what to do about it.
    pub reason: String,
    kind: Option<FaultKind>,
}

impl GuardFault {
    pub(super) fn of(verdict: &Verdict) -> Self {
        let kind = verdict.error.as_ref().map(|error| error.kind.clone());
        Self { reason: reason_of(verdict), kind }
    }

    /// Whether the session can never resume, because its records are missing or damaged.
    pub fn is_permanent(&self) -> bool {
        self.kind.as_ref().is_some_and(FaultKind::is_permanent)
    }
}
