//! Which definition a session runs under, and where its journal holds it.

use std::sync::Arc;

use jackline_engine::{Definition, Digest, Place, Record, STATE_FORMAT, Session, StateError};
use jackline_journal::{Line, Opened, StoreError, parse_record};

/// The definition in force, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Defined {
    /// Its checksum.
    pub(crate) checksum: Digest,
    /// Where the record begins that holds it: the first one, or that of the
    /// latest reload.
    pub(crate) at: u64,
}

impl Defined {
    /// What a session is opened with.
    pub(crate) fn opened(checksum: Digest) -> Self {
        Self { checksum, at: 0 }
    }

    /// The one in force once a record is folded that begins at a byte.
    pub(crate) fn after(self, record: &Record<'_>, at: u64) -> Self {
        record.reloads().map_or(self, |new| Self { checksum: new.checksum, at })
    }
}

/// What a session runs under.
pub(crate) struct Under {
    pub(crate) definition: Arc<Definition>,
    pub(crate) place: Arc<Place>,
    pub(crate) defined: Defined,
}

impl Under {
    /// What it was opened with.
    pub(crate) fn opened(opened: &Opened) -> Self {
        Self {
            definition: Arc::new(opened.definition.lowered.clone()),
            place: Arc::new(opened.place.clone()),
            defined: Defined::opened(opened.definition.checksum),
        }
    }

    /// What the record says that begins at a byte; none where it says nothing
    /// of the kind. `line` reads it.
    pub(crate) fn defined_at(
        at: u64,
        opened: &Opened,
        line: impl FnOnce(u64) -> Result<Option<Vec<u8>>, StoreError>,
    ) -> Result<Option<Self>, StoreError> {
        if at == 0 {
            return Ok(Some(Self::opened(opened)));
        }
        let Some(line) = line(at)? else { return Ok(None) };
        let Ok(Line::Event(record)) = parse_record(&line) else { return Ok(None) };
        Ok(record.as_record().reloads().map(|new| Self {
            definition: Arc::new(new.lowered.clone()),
            place: Arc::new(new.place(&opened.place)),
            defined: Defined { checksum: new.checksum, at },
        }))
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
        match session.reloaded() {
            Some(checksum) => self.defined.at > 0 && self.defined.checksum == checksum,
            None => self.defined.at == 0,
        }
    }
}
