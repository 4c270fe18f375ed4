//! A lock that shows whether a process is running the attempts of a session.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Holds the lock of a session until it is dropped or the process ends.
#[derive(Debug)]
pub struct AttemptLock {
    directory: PathBuf,
    _file: File,
}

impl AttemptLock {
    /// Whether this is the lock for the session in a directory.
    pub(crate) fn is_for(&self, directory: &Path) -> bool {
        self.directory == directory
    }
}

/// Locks the attempts of a session; `None` if another process has the lock.
pub fn lock_attempts(directory: &Path) -> io::Result<Option<AttemptLock>> {
    let path = directory.join("attempting");
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(AttemptLock { directory: directory.to_owned(), _file: file })),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
