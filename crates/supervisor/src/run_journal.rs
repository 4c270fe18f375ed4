//! The journal of a run, for the parts of the supervisor that read it.

use std::path::{Path, PathBuf};

use jackline_engine::{Session, SessionId};
use jackline_journal::{FileStore, JournalView, ReadMode, Store as _, StoreError};
use jackline_runtime::load_session;

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

    /// The id of the session.
    pub(crate) fn session_id(&self) -> &SessionId {
        &self.session
    }

    /// The directory of the session.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The journal as it is now.
    pub(crate) fn view(&self) -> Result<JournalView, StoreError> {
        let view = self.store.view_session(&self.session, ReadMode::Consistent)?;
        view.ok_or(StoreError::Empty)
    }

    /// The session as its journal describes it.
    pub(crate) fn session(&self) -> Result<Session, StoreError> {
        let entry = self.store.entry(&self.session)?.ok_or(StoreError::Empty)?;
        load_session(&self.store, &entry)
    }

    /// The length of the journal file in bytes; 0 if there is none.
    pub(crate) fn length_bytes(&self) -> u64 {
        self.file.metadata().map_or(0, |metadata| metadata.len())
    }
}
