//! Why the session of a task proves nothing: the guard broke, or its journal was changed.

use jackline_attempt::{InternalOutcome, is_storage_failure};
use jackline_engine::SessionId;
use jackline_journal::{
    FileStore, JournalProblemKind, ReadMode, Store as _, StoreError, Verifier, parse_record,
};
use jackline_runtime::Gate;

/// Why the outcome of a task says nothing about its work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BrokenGuard {
    /// The guard could not answer an event.
    #[error("{0}")]
    Guard(String),
    /// The records of the session are missing or damaged.
    #[error("{0}")]
    Records(String),
    /// The state of an attempt could not be saved.
    #[error("can't save the state of the attempt: {0}")]
    Store(String),
    /// The journal was changed.
    #[error(transparent)]
    Tampered(#[from] ChangedJournal),
}

/// The journal of a session was changed, so it proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the journal of session `{session}` was changed ({found}), so it proves nothing; \
     inspect it with `jackline verify {session}`"
)]
pub struct ChangedJournal {
    /// The session id.
    pub session: String,
    /// The first finding.
    pub found: String,
}

impl BrokenGuard {
    /// Looks for a fault of the guard, and reads the whole journal.
    pub(crate) fn find(
        gate: &Gate,
        store: &FileStore,
        session: &SessionId,
        outcome: &InternalOutcome,
    ) -> Option<Self> {
        if let Some(fault) = gate.fault() {
            let reason = fault.reason.clone();
            let is_permanent = fault.is_permanent();
            return Some(if is_permanent { Self::Records(reason) } else { Self::Guard(reason) });
        }
        let error = outcome.error().filter(|error| is_storage_failure(&error.error_type));
        if let Some(error) = error {
            return Some(Self::Store(error.error_message.clone()));
        }
        let found = first_change(store, session).unwrap_or_else(|error| Some(error.to_string()))?;
        Some(Self::Tampered(ChangedJournal { session: session.to_string(), found }))
    }

    /// A stable word for the reason, for programs. `jackline run` uses the same words.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Guard(_) => "guard",
            Self::Records(_) => "records",
            Self::Store(_) => "store",
            Self::Tampered(_) => "tampered",
        }
    }
}

/// The first change in a journal. A gate reads only its end.
fn first_change(store: &FileStore, session: &SessionId) -> Result<Option<String>, StoreError> {
    let view = store.view_session(session, ReadMode::Consistent)?.ok_or(StoreError::Empty)?;
    let mut verifier = Verifier::new(view.saved_head());
    let torn = view.for_each(|line| {
        if verifier.check_line(line) {
            parse_record(line)?;
        }
        Ok::<_, StoreError>(())
    })?;
    let report = verifier.finish(torn);
    let first = report.findings.iter().find(|it| it.kind != JournalProblemKind::Torn);
    Ok(first.map(|it| format!("record {}: {}", it.record, it.reason)))
}
