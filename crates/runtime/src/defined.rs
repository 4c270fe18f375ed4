//! Which definition a session runs under.

use std::sync::Arc;

use jackline_engine::bounds::STATE_FORMAT;
use jackline_engine::session::StateError;
use jackline_engine::{Definition, Digest, Place, Record, Session};
use jackline_journal::{Opened, OpenedDefinition, ReloadedDefinition, StoreError};

/// The definition in force, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Defined {
    /// The checksum of its sources.
    pub(crate) checksum: Digest,
    /// The digest of its stored form.
    pub(crate) stored: Digest,
    /// Whether a person has put it in force since the session was opened.
    pub(crate) is_reloaded: bool,
}

impl Defined {
    /// What a session is opened with.
    pub(crate) fn opened(definition: &OpenedDefinition) -> Self {
        let (checksum, stored) = (definition.checksum, definition.lowered.digest());
        Self { checksum, stored, is_reloaded: false }
    }

    /// What a session runs under since a reload.
    pub(crate) fn reloaded(definition: &OpenedDefinition) -> Self {
        Self { is_reloaded: true, ..Self::opened(definition) }
    }

    /// The one in force once a record is folded.
    pub(crate) fn after(self, record: &Record<'_>) -> Self {
        let reloads = record.reloads().map(|new| Self {
            checksum: new.checksum,
            stored: new.lowered.digest(),
            is_reloaded: true,
        });
        reloads.unwrap_or(self)
    }
}

/// What a session runs under.
pub(crate) struct Under {
    pub(crate) definition: Arc<Definition>,
    pub(crate) place: Arc<Place>,
    pub(crate) defined: Defined,
}

impl Under {
    /// What it was opened with; `load` loads the definition.
    pub(crate) fn opened(
        opened: &Opened,
        load: impl FnOnce(&Digest) -> Result<Arc<Definition>, StoreError>,
    ) -> Result<Self, StoreError> {
        let defined = Defined::opened(&opened.definition);
        let place = Arc::new(opened.place.clone());
        Ok(Self { definition: load(&defined.stored)?, place, defined })
    }

    /// What it runs under since a reload.
    pub(crate) fn reloaded(
        reloaded: &ReloadedDefinition,
        load: impl FnOnce(&Digest) -> Result<Arc<Definition>, StoreError>,
    ) -> Result<Self, StoreError> {
        let defined = Defined::reloaded(&reloaded.definition);
        let place = Arc::new(reloaded.place.clone());
        Ok(Self { definition: load(&defined.stored)?, place, defined })
    }

    /// A session in which nothing has happened.
    pub(crate) fn begin(&self) -> Session {
        Session::new(Arc::clone(&self.definition), Arc::clone(&self.place))
    }

    /// Brings a saved session back. A state of a newer format shuts the gate;
    /// one that can't be read, or belongs to another definition, is made again
    /// from the journal.
    pub(crate) fn restore(&self, state: &[u8]) -> Result<Option<Session>, StoreError> {
        let restored =
            Session::restore(Arc::clone(&self.definition), Arc::clone(&self.place), state);
        match restored {
            Ok(session) => Ok(Some(session).filter(|session| self.is_of(session))),
            Err(StateError::Newer(found)) => Err(StoreError::Newer {
                what: "the saved state",
                found: u32::from(found),
                known: u32::from(STATE_FORMAT),
            }),
            Err(StateError::Unreadable) => Ok(None),
        }
    }

    fn is_of(&self, session: &Session) -> bool {
        let reloaded = self.defined.is_reloaded.then_some(self.defined.checksum);
        session.reloaded() == reloaded
    }
}
