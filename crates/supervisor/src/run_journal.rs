//! The journal of a run, for the parts of the supervisor that read it.

use std::path::{Path, PathBuf};

use jackline_engine::{Session, SessionId};
use jackline_journal::{FileStore, JournalView, Reading, Store as _, StoreError};
use jackline_runtime::inspect;

/// The journal of the session that a run works in.
#[derive(Debug, Clone)]
pub(crate) struct RunJournal {
    store: FileStore,
    session: SessionId,
    directory: PathBuf,
    file: PathBuf,
}

impl RunJournal {
    pub(crate) fn new(store: FileStore, session: SessionId) -> Self {
        let directory = store.directory(&session);
        let file = store.journal_file(&session);
        Self { store, session, directory, file }
    }

    /// The directory of the session.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The journal as it is now.
    pub(crate) fn view(&self) -> Result<JournalView, StoreError> {
        let view = self.store.view_session(&self.session, Reading::Consistent)?;
        view.ok_or(StoreError::Unopened)
    }

    /// The session as the journal leaves it.
    pub(crate) fn session(&self) -> Result<Session, StoreError> {
        let entry = self.store.entry(&self.session)?.ok_or(StoreError::Unopened)?;
        inspect(&self.store, &entry)
    }

    /// How many bytes it has; 0 where there is none.
    pub(crate) fn length(&self) -> u64 {
        self.file.metadata().map_or(0, |metadata| metadata.len())
    }
}
