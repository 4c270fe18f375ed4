//! A guard that could not answer.

use jackline_engine::Verdict;

use super::texts::reason_of;

/// Faults after which the records of a session can't be trusted or extended any more.
const PERMANENT: [&str; 4] =
    ["store_removed", "journal_truncated", "journal_tampered", "journal_unreadable"];

/// Why the guard could not answer an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardFault {
    /// What happened, and what to do.
    pub reason: String,
    kind: String,
}

impl GuardFault {
    pub(super) fn of(verdict: &Verdict) -> Self {
        let kind = verdict.error.as_ref().map(|error| error.kind.clone()).unwrap_or_default();
        Self { reason: reason_of(verdict), kind }
    }

    /// Whether the session can never go on, because its records are gone or damaged.
    pub fn is_permanent(&self) -> bool {
        PERMANENT.contains(&self.kind.as_str())
    }
}
