//! Whether a process still works on a session.
//!
//! A process that answers many events locks a file in the session's directory for as long as it
//! lives. The system releases the lock of a process that was killed. So a session without the lock
//! that is also silent was left. Sessions of hooks have no such file: each hook is a new process.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use jackline_engine::Timestamp;
use jackline_journal::SessionEntry;

/// The file that the processes of a session lock.
const LOCK_FILE: &str = "process.lock";

/// A session without a process counts as left after this silence. A program may start a new process
/// for each of its events.
pub const LEFT_AFTER_MS: u64 = 10 * 60_000;

/// The lock of a process that works on a session, until it is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct SessionProcessLock {
    _file: File,
}

impl SessionProcessLock {
    /// Locks the session in a directory. Several processes may work on one session. `None` if the
    /// lock can't be had: the session then only looks left sooner.
    pub(crate) fn acquire(directory: &Path) -> Option<Self> {
        let path = directory.join(LOCK_FILE);
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path).ok()?;
        file.try_lock_shared().ok()?;
        Some(Self { _file: file })
    }
}

/// Whether the process that worked on an open session is gone, and has been silent for a while.
pub fn was_left(entry: &SessionEntry, now: Timestamp) -> bool {
    let is_silent = entry.modified.is_some_and(|modified| now.ms_since(modified) >= LEFT_AFTER_MS);
    let file = entry.directory().map(|directory| File::open(directory.join(LOCK_FILE)));
    // Without the file, no process of this kind has worked on the session.
    is_silent && matches!(file, Some(Ok(file)) if !is_locked(&file))
}

/// Whether a process has the lock. If this can't be found out, one has it.
fn is_locked(file: &File) -> bool {
    match file.try_lock() {
        Ok(()) => {
            let _ = file.unlock();
            false
        }
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => true,
    }
}
