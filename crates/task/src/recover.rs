//! Finishes what a process that is gone has left: its attempts are undone.

use std::fs;
use std::path::{Path, PathBuf};

use jackline_engine::SessionId;
use jackline_journal::FileStore;
use jackline_workspace::undo::{self, Left, UndoError, Undone};

use crate::held::hold;

/// What the sessions of tasks are called first.
pub(crate) const PREFIX: &str = "attempt-";

/// An attempt that was left in the middle, and is undone now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// The session it is of.
    pub session: String,
    /// Its number there.
    pub attempt: u32,
    /// What came of it.
    pub undone: Undone,
}

/// What was left, and what became of it.
#[derive(Debug, Default)]
pub struct Recovery {
    /// Attempts that are undone now.
    pub done: Vec<Recovered>,
    /// Logs of attempts that could not be undone, and why.
    pub failed: Vec<(PathBuf, String)>,
}

/// Undoes what attempts of processes that are gone have left in a workspace.
pub(crate) fn recover(store: &FileStore, root: &Path) -> Recovery {
    let mut recovery = Recovery::default();
    for directory in store.directories().unwrap_or_default() {
        let name = directory.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !name.starts_with(PREFIX) || !directory.join("undo").is_dir() {
            continue;
        }
        // Whoever is at work undoes their own.
        let Ok(Some(_held)) = hold(&directory) else { continue };
        for number in numbers(&directory.join("undo")) {
            let log = directory.join("undo").join(number.to_string());
            match finish(&log, root) {
                Ok(None) => {}
                Ok(Some(undone)) => {
                    let session = name.to_owned();
                    recovery.done.push(Recovered { session, attempt: number, undone });
                }
                Err(error) => recovery.failed.push((log, error.to_string())),
            }
        }
    }
    recovery
}

/// The attempts of a session, the last first: they may lie within earlier ones.
fn numbers(directory: &Path) -> Vec<u32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable_by(|one, other| other.cmp(one));
    numbers
}

fn finish(log: &Path, root: &Path) -> Result<Option<Undone>, UndoError> {
    // One that was never begun has nothing to undo.
    if !log.join("log").is_file() || undo::left(log)? != Left::Open {
        return Ok(None);
    }
    if undo::plan(log)?.root != root {
        return Ok(None);
    }
    undo::roll_back(log).map(Some)
}

/// The session that a directory is of.
pub(crate) fn session_of(recovered: &Recovered) -> Option<SessionId> {
    SessionId::parse(&recovered.session).ok()
}
