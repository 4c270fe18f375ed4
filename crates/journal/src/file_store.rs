//! The file store: one append-only file per session.
//!
//! ```text
//! sessions/<id>/journal.jsonl          authoritative, locked while it is written
//! sessions/<id>/<digest>.definition    a definition that a record refers to: a link to
//! definitions/<digest>.json            the same file, shared by all sessions
//! sessions/<id>/state                  a cache in two slots
//! sessions/<id>/ids                    a cache: event id → record
//! blobs/<sha256>                       payloads too large for a record
//! ```
//!
//! The order is: append, sync, save state, answer. So a state newer than the journal means that the
//! journal was truncated. Bytes without a newline after the state's head are an incomplete record
//! that was never answered.

use std::cmp::Reverse;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jackline_engine::observe::Blob;
use jackline_engine::{Digest, SessionId, Timestamp};

use crate::definitions::LoadedDefinitions;
use crate::error::{IoContext as _, StoreError};
use crate::file_log::FileLog;
use crate::files::write_private;
use crate::session_entry::{JournalLocation, SessionEntry, SessionFilter};
use crate::view::{JournalView, modified};
use crate::{ReadMode, Retention, SessionLog, Store, directory_name, retention};

/// The name of the journal file in a session's directory.
pub(crate) const JOURNAL_FILE: &str = "journal.jsonl";

/// Sessions below one directory, the state home.
#[derive(Debug, Clone)]
pub struct FileStore {
    home: PathBuf,
    boot: u64,
    definition_cache: LoadedDefinitions,
}

impl FileStore {
    /// A store in `home`. `boot` is a number that differs after each start of the machine.
    pub fn new(home: impl Into<PathBuf>, boot: u64) -> Self {
        Self { home: home.into(), boot, definition_cache: LoadedDefinitions::default() }
    }

    /// The state home.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The directory of a session.
    pub fn directory(&self, session: &SessionId) -> PathBuf {
        self.home.join("sessions").join(directory_name(session))
    }

    /// The journal file of a session.
    pub fn journal_file(&self, session: &SessionId) -> PathBuf {
        journal_file(&self.directory(session))
    }

    /// Every session directory with a journal, sorted by name.
    pub fn directories(&self) -> Result<Vec<PathBuf>, StoreError> {
        match fs::read_dir(self.home.join("sessions")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error).context("list the sessions"),
            Ok(entries) => {
                let mut directories: Vec<PathBuf> = entries
                    .filter_map(|entry| entry.ok().map(|entry| entry.path()))
                    .filter(|path| journal_file(path).is_file())
                    .collect();
                directories.sort();
                Ok(directories)
            }
        }
    }

    /// The session in one of the directories; `None` if it has no journal.
    pub fn entry_at(&self, directory: &Path) -> Option<SessionEntry> {
        SessionEntry::in_directory(directory.to_owned())
    }

    /// The size of the session in one of the directories.
    pub fn session_bytes(directory: &Path) -> u64 {
        retention::session_bytes(directory)
    }

    /// Removes the session in one of the directories, unless a process uses it. Returns whether it
    /// is removed.
    pub fn remove_session(directory: &Path) -> bool {
        retention::remove_session(directory)
    }

    fn log(&self, directory: PathBuf) -> FileLog {
        FileLog::new(
            directory,
            self.home.join("definitions"),
            self.boot,
            self.definition_cache.clone(),
        )
    }

    fn blob_path(&self, sha256: &Digest) -> PathBuf {
        self.home.join("blobs").join(sha256.to_string())
    }
}

impl Store for FileStore {
    fn open(&self, session: &SessionId) -> Result<Box<dyn SessionLog>, StoreError> {
        Ok(Box::new(self.log(self.directory(session))))
    }

    fn list(&self, filter: &SessionFilter) -> Result<Vec<SessionEntry>, StoreError> {
        let is_recent = |directory: &PathBuf| {
            let Some(since) = filter.since else { return true };
            modified(&journal_file(directory)).flatten().is_some_and(|modified| modified >= since)
        };
        let directories = self.directories()?.into_iter().filter(is_recent);
        let mut entries: Vec<SessionEntry> =
            directories.filter_map(SessionEntry::in_directory).collect();
        entries.sort_by_key(|entry| Reverse(entry.modified));
        Ok(entries)
    }

    fn entry(&self, session: &SessionId) -> Result<Option<SessionEntry>, StoreError> {
        Ok(SessionEntry::in_directory(self.directory(session)))
    }

    fn view(&self, entry: &SessionEntry, reading: ReadMode) -> Result<JournalView, StoreError> {
        let loaded = self.definition_cache.clone();
        match &entry.location {
            JournalLocation::Directory(directory) => {
                JournalView::open_file(&journal_file(directory), reading, loaded)
            }
            JournalLocation::File(file) => JournalView::open_file(file, reading, loaded),
            JournalLocation::Stored(_) => Err(io::Error::from(io::ErrorKind::NotFound))
                .context("find the session in this store"),
        }
    }

    fn put_blobs(&self, blobs: &[Blob]) -> Result<(), StoreError> {
        for blob in blobs {
            let path = self.blob_path(&blob.sha256);
            if !path.exists() {
                write_private(&path, &blob.bytes)?;
            }
        }
        Ok(())
    }

    fn blob(&self, sha256: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        read_if_exists(&self.blob_path(sha256)).context("read a payload")
    }

    fn prune(&self, keep: &Retention, now: Timestamp) -> Result<Vec<SessionId>, StoreError> {
        retention::prune(self, keep, now)
    }
}

/// The journal file in a session's directory.
pub(crate) fn journal_file(directory: &Path) -> PathBuf {
    directory.join(JOURNAL_FILE)
}

/// The file name of a definition in a session's directory.
pub(crate) fn definition_name(digest: &Digest) -> String {
    format!("{digest}.definition")
}

/// The stored form of a definition that a journal in this directory refers to.
pub(crate) fn read_definition(
    directory: &Path,
    digest: &Digest,
) -> Result<Option<Vec<u8>>, StoreError> {
    read_if_exists(&directory.join(definition_name(digest))).context("read a definition")
}

fn read_if_exists(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
