//! Undoes the attempts of processes that have ended.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};

use jackline_engine::SessionId;
use jackline_journal::FileStore;
use jackline_runtime::Gate;
use jackline_workspace::undo::{self, UndoError, UndoLogState, UndoReport};

use crate::attempt_lock::{AttemptLock, lock_attempts};
use crate::task_front::TaskFront;

/// The prefix of the session ids of tasks.
pub(crate) const TASK_SESSION_PREFIX: &str = "attempt-";

/// The sessions whose attempts are undone: those of tasks, and of runs that act by programs.
const RECOVERED_PREFIXES: [&str; 2] = [TASK_SESSION_PREFIX, "run-"];

/// An attempt that was interrupted and is now undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveredAttempt {
    /// The session id.
    pub session: String,
    /// The number of the attempt in the session.
    pub attempt: u32,
    /// The result of undoing it.
    pub undone: UndoReport,
}

/// The result of a recovery.
#[derive(Debug, Default)]
pub struct AttemptRecovery {
    /// The attempts that are now undone.
    pub done: Vec<RecoveredAttempt>,
    /// The undo logs of attempts that could not be undone, and why.
    pub failed: Vec<(PathBuf, String)>,
}

impl AttemptRecovery {
    /// The attempt that could not be undone, and what a person can do about it.
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
            "{why}; copies of the old files are in `{}`; try again with `{again}`",
            log.display()
        ))
    }
}

/// The state of the undo log of an attempt; `None` if it wrote no files.
pub(crate) fn undo_log_state(undo: &Path) -> Option<UndoLogState> {
    undo.join("log").is_file().then(|| undo::log_state(undo).ok()).flatten()
}

/// Undoes interrupted attempts in a workspace, and records that in their sessions. `ours` is the
/// session that this process has locked itself; it is included.
pub fn recover_attempts(
    store: &FileStore,
    root: &Path,
    gate: &RefCell<Gate>,
    ours: Option<&AttemptLock>,
) -> AttemptRecovery {
    let recovery = undo_all(store, root, ours);
    let mut front = TaskFront::new(gate, None);
    for recovered in &recovery.done {
        if let Ok(session) = SessionId::parse(&recovered.session) {
            front.attempt_ended_in(&session, recovered.attempt);
        }
    }
    recovery
}

fn undo_all(store: &FileStore, root: &Path, ours: Option<&AttemptLock>) -> AttemptRecovery {
    let mut recovery = AttemptRecovery::default();
    for directory in store.directories().unwrap_or_default() {
        let name = directory.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_ours = RECOVERED_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        if !is_ours || !directory.join("undo").is_dir() {
            continue;
        }
        // A process that holds the lock undoes its own attempts.
        let is_held = ours.is_some_and(|ours| ours.is_for(&directory));
        let held = if is_held { None } else { lock_attempts(&directory).ok().flatten() };
        if !is_held && held.is_none() {
            continue;
        }
        for number in attempt_numbers(&directory.join("undo")) {
            let log = directory.join("undo").join(number.to_string());
            match undo_if_open(&log, root) {
                Ok(None) => {}
                Ok(Some(undone)) => {
                    let session = name.to_owned();
                    recovery.done.push(RecoveredAttempt { session, attempt: number, undone });
                }
                Err(error) => recovery.failed.push((log, error.to_string())),
            }
        }
    }
    recovery
}

/// The attempts of a session, the last one first: attempts may be nested.
fn attempt_numbers(directory: &Path) -> Vec<u32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable_by(|one, other| other.cmp(one));
    numbers
}

fn undo_if_open(log: &Path, root: &Path) -> Result<Option<UndoReport>, UndoError> {
    // Without a log file, the attempt has changed nothing.
    if !log.join("log").is_file() || undo::log_state(log)? != UndoLogState::Open {
        return Ok(None);
    }
    if undo::plan_undo(log)?.root != root {
        return Ok(None);
    }
    undo::roll_back(log).map(Some)
}
