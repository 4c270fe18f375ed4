//! Whether the process that makes the attempts of a session is still there.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// A session that is at work; others see that until this is dropped, or the process ends.
#[derive(Debug)]
pub struct Held {
    directory: PathBuf,
    _file: File,
}

impl Held {
    /// Whether this is about the session of a directory.
    pub(crate) fn is_of(&self, directory: &Path) -> bool {
        self.directory == directory
    }
}

/// Says that a session is at work. None if somebody else says so.
pub fn hold(directory: &Path) -> io::Result<Option<Held>> {
    let path = directory.join("attempting");
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(Held { directory: directory.to_owned(), _file: file })),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
