//! Finishes what a process that is gone has left: its attempts are undone.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};

use jackline_engine::SessionId;
use jackline_journal::FileStore;
use jackline_runtime::Gate;
use jackline_workspace::undo::{self, Left, UndoError, Undone};

use crate::held::{Held, hold};
use crate::task_front::TaskFront;

/// What the sessions of tasks are called first.
pub(crate) const PREFIX: &str = "attempt-";

/// Whose attempts are undone: of tasks, and of runs that act by programs.
const PREFIXES: [&str; 2] = [PREFIX, "run-"];

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

impl Recovery {
    /// Which attempt is neither done nor undone, and what a person can do about it.
    pub fn unfinished(&self) -> Option<String> {
        let (log, why) = self.failed.first()?;
        // …/sessions/SESSION/undo/ATTEMPT
        let name = |path: Option<&Path>| {
            let name = path.and_then(Path::file_name).unwrap_or_default();
            name.to_string_lossy().into_owned()
        };
        let (session, attempt) = (log.parent().and_then(Path::parent), Some(log.as_path()));
        let again = format!("jackline undo {} {}", name(session), name(attempt));
        Some(format!(
            "{why}; copies of what was lie in `{}`, and `{again}` tries again",
            log.display()
        ))
    }
}

/// What became of the files of an attempt; none where it wrote none.
pub(crate) fn left(undo: &Path) -> Option<Left> {
    undo.join("log").is_file().then(|| undo::left(undo).ok()).flatten()
}

/// Undoes what attempts of processes that are gone have left in a workspace, and writes that
/// down in their sessions. Whoever holds a session has that one looked at, too.
pub fn recover(
    store: &FileStore,
    root: &Path,
    gate: &RefCell<Gate>,
    ours: Option<&Held>,
) -> Recovery {
    let recovery = undo_all(store, root, ours);
    let mut front = TaskFront::new(gate, None);
    for recovered in &recovery.done {
        if let Ok(session) = SessionId::parse(&recovered.session) {
            front.attempt_ended_in(&session, recovered.attempt);
        }
    }
    recovery
}

fn undo_all(store: &FileStore, root: &Path, ours: Option<&Held>) -> Recovery {
    let mut recovery = Recovery::default();
    for directory in store.directories().unwrap_or_default() {
        let name = directory.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_ours = PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        if !is_ours || !directory.join("undo").is_dir() {
            continue;
        }
        // Whoever is at work undoes their own.
        let is_held = ours.is_some_and(|ours| ours.is_of(&directory));
        let held = if is_held { None } else { hold(&directory).ok().flatten() };
        if !is_held && held.is_none() {
            continue;
        }
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
