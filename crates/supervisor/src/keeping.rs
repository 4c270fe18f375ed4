//! What a run has to know to go on after it was killed, and that nobody else drives it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use jackline_journal::write_private;
use serde::{Deserialize, Serialize};

/// With what the ids of such sessions begin.
pub const PREFIX: &str = "run-";

/// The file in the directory of a session.
const FILE: &str = "run.json";

/// Held as long as somebody drives the session.
const LOCK: &str = "driven";

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
    match file.try_lock() {
        Ok(()) => Ok(Some(Driven { _file: file })),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
