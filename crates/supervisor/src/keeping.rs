//! What a run has to know to go on after it was killed, and that nobody else drives it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use jackline_journal::write_private;
use serde::{Deserialize, Serialize};

/// With what the ids of such sessions begin.
pub const PREFIX: &str = "run-";

/// The file in the directory of a session.
const FILE: &str = "run.json";

/// Held as long as somebody drives the session.
const LOCK: &str = "driven";

/// How often a session is tried to be taken. Whoever only looks has it for a moment, too.
const LOOKS_MAX: u32 = 5;

/// How long is waited in between.
const LOOK: Duration = Duration::from_millis(10);

/// What a run was begun with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// The task file.
    pub task: PathBuf,
    /// Where it works.
    pub workspace: PathBuf,
    /// The definition that a person has named.
    pub definition: Option<PathBuf>,
    /// The definition that it was begun under, named by that person or by the task as it was.
    #[serde(default)]
    pub defined_by: Option<PathBuf>,
    /// Where it was started.
    pub started_in: PathBuf,
    /// Whether a model out of the environment takes the place of a script.
    pub scripted: bool,
}

impl Kept {
    /// Reads what a session was begun with; none if it is no run.
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

/// Shows that a session is driven, until it is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct Driven {
    _file: File,
}

/// Takes a session; none if somebody else has it.
pub(crate) fn drive(directory: &Path) -> io::Result<Option<Driven>> {
    let path = directory.join(LOCK);
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    for _ in 0..LOOKS_MAX {
        match file.try_lock() {
            Ok(()) => return Ok(Some(Driven { _file: file })),
            Err(TryLockError::WouldBlock) => thread::sleep(LOOK),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(None)
}

/// Whether somebody drives the session of a directory. What can't be looked at counts as
/// driven: nobody is to go on with it.
pub fn is_driven(directory: &Path) -> bool {
    match File::open(directory.join(LOCK)) {
        // It is shared for this moment only, so that two who look don't see each other.
        Ok(file) => matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}
