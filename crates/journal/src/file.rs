//! The embedded store: one append-only file a session.
//!
//! ```text
//! sessions/<id>/journal.jsonl   the truth, locked while it is written
//! sessions/<id>/state           a cache in two slots
//! sessions/<id>/ids             a cache: event id → record
//! blobs/<sha256>                payloads too large for a record
//! ```
//!
//! The order is append, sync, save state, answer. So a state that is ahead of
//! the journal means that the journal was cut, and a tail without a newline
//! beyond the state's head is a write that was never answered.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use jackline_engine::{Blob, Digest, SessionId, Timestamp};

use crate::error::{Context as _, StoreError};
use crate::file_log::FileLog;
use crate::{Log, Retention, Store, directory_name, retention};

/// Sessions below one directory, the state home.
#[derive(Debug, Clone)]
pub struct FileStore {
    home: PathBuf,
    boot: u64,
}

impl FileStore {
    /// A store in `home`. `boot` tells one start of the machine from another.
    pub fn new(home: impl Into<PathBuf>, boot: u64) -> Self {
        Self { home: home.into(), boot }
    }

    /// The state home.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The directory of a session.
    pub fn directory(&self, session: &SessionId) -> PathBuf {
        self.home.join("sessions").join(directory_name(session))
    }

    /// Every session directory.
    pub fn directories(&self) -> Result<Vec<PathBuf>, StoreError> {
        let sessions = self.home.join("sessions");
        match fs::read_dir(&sessions) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error).context("list", &sessions),
            Ok(entries) => {
                let mut found: Vec<PathBuf> = entries
                    .filter_map(|entry| entry.ok().map(|entry| entry.path()))
                    .filter(|path| path.join("journal.jsonl").is_file())
                    .collect();
                found.sort();
                Ok(found)
            }
        }
    }

    /// The log in a session directory, or of a journal file that stands alone.
    pub fn log_at(&self, directory: &Path) -> FileLog {
        FileLog::new(directory.to_owned(), self.boot)
    }

    fn blob_path(&self, sha256: &Digest) -> PathBuf {
        self.home.join("blobs").join(sha256.to_string())
    }
}

impl Store for FileStore {
    fn open(&self, session: &SessionId) -> Result<Box<dyn Log>, StoreError> {
        Ok(Box::new(FileLog::new(self.directory(session), self.boot)))
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
        let path = self.blob_path(sha256);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).context("read", &path),
        }
    }

    fn prune(&self, keep: &Retention, now: Timestamp) -> Result<Vec<PathBuf>, StoreError> {
        retention::prune(self, keep, now)
    }
}

/// Creates a private directory and the ones above it, durably.
pub fn create_directory(path: &Path) -> Result<(), StoreError> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        create_directory(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(error).context("create", path)
        }
        _ => path.parent().map_or(Ok(()), sync_directory),
    }
}

pub(crate) fn sync_directory(path: &Path) -> Result<(), StoreError> {
    File::open(path).and_then(|directory| directory.sync_all()).context("sync", path)
}

/// Writes a private file as a whole: it is there completely or not at all.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let parent = path.parent().unwrap_or(Path::new("."));
    create_directory(parent)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = parent.join(format!(".{name}.{}", std::process::id()));
    let written = (|| {
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written.context("write", path)?;
    sync_directory(parent)
}
