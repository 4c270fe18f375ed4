//! Whether somebody drives a run: a process that is gone can't say so itself, and the journal
//! of a run that was killed looks like that of one at work.

use std::fs::{File, TryLockError};
use std::path::Path;

use jackline_engine::Summary;
use jackline_runtime::Found;
use jackline_supervisor::{Kept, PREFIX};

/// Locked by whoever drives the session, for as long as they do.
const LOCK: &str = "driven";

/// Whether somebody drives a session; none where it is no run, or over.
pub(super) fn is_driven(found: &Found, summary: &Summary) -> Option<bool> {
    let is_over = summary.stop.is_some();
    if is_over || !found.name.starts_with(PREFIX) {
        return None;
    }
    let directory = found.journal.parent()?;
    // A copy of a journal, or an export, is nobody's to drive.
    let is_here = Kept::load(directory).map_or(true, |kept| kept.is_some());
    is_here.then(|| is_locked(directory))
}

/// Whether the lock of a session's directory is taken. What can't be looked at counts as
/// taken: nobody is to go on with it.
fn is_locked(directory: &Path) -> bool {
    match File::open(directory.join(LOCK)) {
        // It is shared for this moment only, so that two who look don't see each other.
        Ok(file) => matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)),
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}
