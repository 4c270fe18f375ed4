//! Locks between processes, with a bounded wait.

use std::fs::{File, TryLockError};
use std::io;
use std::sync::mpsc;
use std::time::Duration;

use crate::error::{IoContext as _, StoreError};

/// How long this waits for a session that another process has locked.
const LOCK_WAIT_SECONDS: u64 = 10;

/// Locks a file for writing.
pub fn exclusive(file: &File) -> Result<(), StoreError> {
    acquire(file, File::try_lock, File::lock)
}

/// Locks a file for reading.
pub fn shared(file: &File) -> Result<(), StoreError> {
    acquire(file, File::try_lock_shared, File::lock_shared)
}

fn acquire(
    file: &File,
    try_lock: fn(&File) -> Result<(), TryLockError>,
    lock: fn(&File) -> io::Result<()>,
) -> Result<(), StoreError> {
    match try_lock(file) {
        Ok(()) => Ok(()),
        Err(TryLockError::Error(error)) => Err(error).context("lock the session"),
        Err(TryLockError::WouldBlock) => wait(file, lock),
    }
}

/// Waits in a separate thread, so that the wait can be bounded.
fn wait(file: &File, lock: fn(&File) -> io::Result<()>) -> Result<(), StoreError> {
    let (sender, receiver) = mpsc::sync_channel(0);
    // Locks belong to the open file, which the clone shares.
    let waiting = file.try_clone().context("lock the session")?;
    std::thread::spawn(move || {
        let locked = lock(&waiting);
        if sender.send(locked).is_err() {
            // The wait has timed out, so the lock is released at once.
            let _ = waiting.unlock();
        }
    });
    match receiver.recv_timeout(Duration::from_secs(LOCK_WAIT_SECONDS)) {
        Ok(locked) => locked.context("lock the session"),
        Err(_) => Err(StoreError::Busy { seconds: LOCK_WAIT_SECONDS }),
    }
}
