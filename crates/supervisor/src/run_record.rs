//! What a run stores so that it can resume, and the lock that allows only one driver per session.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use jackline_journal::write_private;
use serde::{Deserialize, Serialize};

/// The prefix of the session ids of runs.
pub const RUN_SESSION_PREFIX: &str = "run-";

/// The file name in the session directory.
const FILE: &str = "run.json";

/// The lock file. The process that drives the session locks it.
const LOCK_FILE: &str = "driven";

/// How many times to try the lock. `is_driven` takes the lock for a moment, too.
const LOCK_TRIES_MAX: u32 = 5;

/// The pause between two tries.
const LOCK_RETRY_PAUSE: Duration = Duration::from_millis(10);

/// How a run was started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The task file.
    pub task: PathBuf,
    /// The workspace directory.
    pub workspace: PathBuf,
    /// The definition file that a person named.
    pub definition: Option<PathBuf>,
    /// The definition file at the start of the run, named by the person or by the task.
    #[serde(default)]
    pub defined_by: Option<PathBuf>,
    /// The directory in which the run was started.
    pub started_in: PathBuf,
    /// Whether a model from the environment replaces the script of the task.
    pub scripted: bool,
}

impl RunRecord {
    /// Reads the record of a session; `None` if the session is not a run.
    pub fn load(directory: &Path) -> io::Result<Option<Self>> {
        match std::fs::read(directory.join(FILE)) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn save(&self, directory: &Path) -> io::Result<()> {
        write_private(&directory.join(FILE), &serde_json::to_vec(self)?).map_err(io::Error::other)
    }
}

/// Holds the lock of a session until it is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct RunLock {
    _file: File,
}

/// Locks a session; `None` if another process has the lock.
pub(crate) fn lock_run(directory: &Path) -> io::Result<Option<RunLock>> {
    let path = directory.join(LOCK_FILE);
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    for _ in 0..LOCK_TRIES_MAX {
        match file.try_lock() {
            Ok(()) => return Ok(Some(RunLock { _file: file })),
            Err(TryLockError::WouldBlock) => thread::sleep(LOCK_RETRY_PAUSE),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(None)
}

/// Whether a process drives the session in a directory. If the lock file can't be read, the session
/// counts as driven, so that it is not resumed twice.
pub fn is_driven(directory: &Path) -> bool {
    match File::open(directory.join(LOCK_FILE)) {
        // The shared lock lasts for this check only, and two checks do not block each other.
        Ok(file) => matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}
