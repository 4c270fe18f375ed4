//! The definition under which a session runs.

use std::sync::Arc;

use jackline_engine::bounds::STATE_FORMAT;
use jackline_engine::session::StateError;
use jackline_engine::{Definition, Digest, Record, Session, SessionLocation};
use jackline_journal::{OpenedDefinition, OpeningRecord, ReloadedDefinition, StoreError};

/// The definition in force, identified by digests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DefinitionIdentity {
    /// The checksum of the source files.
    pub(crate) checksum: Digest,
    /// The digest of the stored form.
    pub(crate) stored: Digest,
    /// Whether a person reloaded the definition after the session was opened.
    pub(crate) is_reloaded: bool,
}

impl DefinitionIdentity {
    /// The definition with which a session was opened.
    pub(crate) fn opened(definition: &OpenedDefinition) -> Self {
        let (checksum, stored) = (definition.checksum, definition.lowered.digest());
        Self { checksum, stored, is_reloaded: false }
    }

    /// The definition since a reload.
    pub(crate) fn reloaded(definition: &OpenedDefinition) -> Self {
        Self { is_reloaded: true, ..Self::opened(definition) }
    }

    /// The definition in force after a record.
    pub(crate) fn after(self, record: &Record<'_>) -> Self {
        let reloads = record.reloaded_definition().map(|new| Self {
            checksum: new.checksum,
            stored: new.lowered.digest(),
            is_reloaded: true,
        });
        reloads.unwrap_or(self)
    }
}

/// The definition and the location under which a session runs.
pub(crate) struct SessionDefinition {
    pub(crate) definition: Arc<Definition>,
    pub(crate) place: Arc<SessionLocation>,
    pub(crate) identity: DefinitionIdentity,
}

impl SessionDefinition {
    /// The definition with which the session was opened; `load` loads it.
    pub(crate) fn opened(
        opened: &OpeningRecord,
        load: impl FnOnce(&Digest) -> Result<Arc<Definition>, StoreError>,
    ) -> Result<Self, StoreError> {
        let defined = DefinitionIdentity::opened(&opened.definition);
        let place = Arc::new(opened.place.clone());
        Ok(Self { definition: load(&defined.stored)?, place, identity: defined })
    }

    /// The definition since a reload.
    pub(crate) fn reloaded(
        reloaded: &ReloadedDefinition,
        load: impl FnOnce(&Digest) -> Result<Arc<Definition>, StoreError>,
    ) -> Result<Self, StoreError> {
        let defined = DefinitionIdentity::reloaded(&reloaded.definition);
        let place = Arc::new(reloaded.place.clone());
        Ok(Self { definition: load(&defined.stored)?, place, identity: defined })
    }

    /// A session without any events.
    pub(crate) fn new_session(&self) -> Session {
        Session::new(Arc::clone(&self.definition), Arc::clone(&self.place))
    }

    /// Restores a saved session. A state of a newer format is an error, so the gate stays closed. A
    /// state that is unreadable or belongs to another definition gives `None`; the caller then
    /// rebuilds it from the journal.
    pub(crate) fn restore(&self, state: &[u8]) -> Result<Option<Session>, StoreError> {
        let restored =
            Session::restore(Arc::clone(&self.definition), Arc::clone(&self.place), state);
        match restored {
            Ok(session) => Ok(Some(session).filter(|session| self.matches_session(session))),
            Err(StateError::NewerFormat(found)) => Err(StoreError::Newer {
                what: "the saved state",
                found: u32::from(found),
                known: u32::from(STATE_FORMAT),
            }),
            Err(StateError::Unreadable) => Ok(None),
        }
    }

    fn matches_session(&self, session: &Session) -> bool {
        let reloaded = self.identity.is_reloaded.then_some(self.identity.checksum);
        session.reloaded_checksum() == reloaded
    }
}
