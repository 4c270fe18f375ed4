//! Records file changes of an attempt, so that they can be undone.
//!
//! Before a file is changed for the first time, its contents are copied out of the workspace and
//! recorded durably. Its new state is recorded too: after a crash, a file that matches neither
//! state was changed by another program and is left alone.

pub mod calls;
mod log;
mod path_image;
mod plan;
mod points;
mod restore;

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::OpenError;
use crate::jail::Jail;
use crate::shell::remove_stale_layers;
use log::{UndoLog, UndoLogEntry};
pub use path_image::PathImage;
pub use plan::{UndoEffect, UndoPlan, UndoStep, plan_undo};
use points::{UndoPoint, UndoPoints};
use restore::{PathRestore, RestoreOutcome, UnsyncedFiles};

/// The largest file that is copied. A larger file may not be changed.
const COPY_BYTES_MAX: u64 = 1 << 30;

/// How many files are restored in one batch. Syncing many files takes about as long as syncing one,
/// so batches are faster. But if all temporary files existed before the first rename, none could
/// reuse the inode number of a replaced file. ext4 then searches long for a free number that was
/// not used in the last minute.
const RESTORE_BATCH_MAX: usize = 128;

/// Why changes can't be undone, or not be recorded for undoing.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// The workspace can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The log, or a copy of a file, can't be read or written.
    #[error("{what} `{path}`: {source}")]
    Storage {
        /// The operation that failed.
        what: &'static str,
        /// The path of the operation.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The file at this path could not be restored later.
    #[error("`{path}` {why}: it could not be restored later, so it was not changed")]
    NotRestorable {
        /// The path.
        path: String,
        /// The reason.
        why: &'static str,
    },
    /// The file is not an undo log, or has another version.
    #[error("`{path}` is not an undo log of a supported version")]
    UnknownFormat {
        /// The path of the log.
        path: String,
    },
    /// Some changes could not be undone.
    #[error("{}", render_failures(.0))]
    Unfinished(Box<UndoReport>),
}

/// The result of undoing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoReport {
    /// The paths that were restored.
    pub restored: Vec<String>,
    /// The paths that another program changed since, which were left as they are.
    #[serde(rename = "kept")]
    pub changed_since: Vec<String>,
    /// The paths that could not be restored, with the reasons.
    pub failed: Vec<(String, String)>,
}

fn render_failures(undone: &UndoReport) -> String {
    let each = |(path, why): &(String, String)| format!("`{path}` was not restored ({why})");
    undone.failed.iter().map(each).collect::<Vec<_>>().join("; ")
}

/// The open undo log of one attempt.
#[derive(Debug)]
pub struct UndoTransaction {
    jail: Jail,
    directory: PathBuf,
    log: UndoLog,
    touched: BTreeSet<String>,
}

impl UndoTransaction {
    /// Creates the log in its own directory, outside of the workspace.
    pub fn begin(root: &Path, directory: &Path) -> Result<Self, UndoError> {
        let jail = Jail::open(root)?;
        let log = UndoLog::create(directory, jail.real())?;
        Ok(Self { jail, directory: directory.to_owned(), log, touched: BTreeSet::new() })
    }

    /// The directory of the log.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Records the current state of a path, its new state, and the name of the temporary file next
    /// to it. The caller must change the path only after this call. `path` is the real path,
    /// relative to the workspace.
    pub fn record_before(
        &mut self,
        path: &str,
        becomes: PathImage,
        temporary: Option<&str>,
    ) -> Result<(), UndoError> {
        let mut entries = Vec::with_capacity(2);
        if !self.touched.contains(path) {
            let (copy, path) = (self.touched.len(), path.to_owned());
            entries.push(match path_image::read_short_text(&self.jail, &path) {
                Some((image, text)) => {
                    UndoLogEntry::Before { path, image, copy, bytes: 0, text: Some(text) }
                }
                None => {
                    let place = self.directory.join(copy.to_string());
                    let image = path_image::copy_image(&self.jail, &path, &place)?;
                    UndoLogEntry::Before { path, image, copy, bytes: 0, text: None }
                }
            });
        }
        let temporary = temporary.map(str::to_owned);
        entries.push(UndoLogEntry::Becomes { path: path.to_owned(), image: becomes, temporary });
        self.log.append_all(&entries)?;
        self.touched.insert(path.to_owned());
        Ok(())
    }

    /// Records the new state of a path after a change whose result could not be known before.
    pub fn record_after(&mut self, path: &str) -> Result<(), UndoError> {
        let image = path_image::read_image(&self.jail, path)?;
        self.log.append(&UndoLogEntry::Becomes { path: path.to_owned(), image, temporary: None })
    }

    /// Keeps the changes of the attempt. The log stays, so they can still be undone later.
    pub fn commit(mut self) -> Result<(), UndoError> {
        path_image::sync_parents(&self.jail, self.touched.iter().map(String::as_str))?;
        self.log.append(&UndoLogEntry::Committed)?;
        self.log.trim();
        Ok(())
    }

    /// Undoes all changes of the attempt.
    pub fn roll_back(self) -> Result<UndoReport, UndoError> {
        let directory = self.directory.clone();
        drop(self);
        roll_back(&directory)
    }
}

/// The state of an undo log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoLogState {
    /// The attempt was neither committed nor rolled back.
    Open,
    /// The attempt was committed.
    Committed,
    /// The attempt was rolled back.
    RolledBack,
}

/// The state of the undo log in a directory.
pub fn log_state(directory: &Path) -> Result<UndoLogState, UndoError> {
    Ok(match UndoLog::read(directory)?.entries.last() {
        Some(UndoLogEntry::Committed) => UndoLogState::Committed,
        Some(UndoLogEntry::RolledBack) => UndoLogState::RolledBack,
        _ => UndoLogState::Open,
    })
}

/// Undoes all changes in the log of a directory. Changes that were already undone are skipped, so
/// an interrupted rollback can be repeated.
pub fn roll_back(directory: &Path) -> Result<UndoReport, UndoError> {
    undo(directory, UnrestoredPaths::Forget)
}

/// Undoes all changes in the log as a person asked for it. Paths that are not restored now, because
/// they have another state, can be undone later: a person may have checked out another branch.
pub fn undo_for_person(directory: &Path) -> Result<UndoReport, UndoError> {
    undo(directory, UnrestoredPaths::Keep)
}

/// What happens to the entries of paths that are not restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnrestoredPaths {
    /// They are done with.
    Forget,
    /// They stay in the log.
    Keep,
}

fn undo(directory: &Path, rest: UnrestoredPaths) -> Result<UndoReport, UndoError> {
    let contents = UndoLog::read(directory)?;
    let jail = Jail::open(&contents.root)?;
    // If the log can't be written, fail before the first file changes.
    let mut log = UndoLog::open_to_continue(directory, &contents)?;
    let points = UndoPoints::of(&contents.entries);
    for (path, name) in &points.temporaries {
        path_image::remove_beside(&jail, path, name);
    }
    points.in_order.iter().for_each(|point| restore::make_writable(&jail, point));
    // Undo in reverse order, so that directories are empty when they are removed.
    let points: Vec<&UndoPoint<'_>> = points.in_order.iter().rev().collect();
    let mut undone = UndoReport::default();
    let mut unrestored: Vec<&UndoPoint<'_>> = Vec::new();
    for points in points.chunks(RESTORE_BATCH_MAX) {
        let mut backs: Vec<PathRestore<'_>> =
            points.iter().map(|point| PathRestore::new(&jail, directory, point)).collect();
        let mut unsynced = UnsyncedFiles::default();
        backs.iter_mut().for_each(|back| back.prepare(&mut unsynced));
        unsynced.sync().map_err(|errno| storage_error("syncing", &contents.root)(errno.into()))?;
        for (point, back) in points.iter().zip(backs) {
            let path = point.path;
            match back.restore() {
                Ok(RestoreOutcome::AlreadyRestored) => unrestored.push(point),
                Ok(RestoreOutcome::Restored) => undone.restored.push(path.to_owned()),
                Ok(RestoreOutcome::ChangedMeanwhile) => {
                    store_copy(directory, point)?;
                    undone.changed_since.push(path.to_owned());
                    unrestored.push(point);
                }
                Err(error) => undone.failed.push((path.to_owned(), error.to_string())),
            }
        }
    }
    if !undone.failed.is_empty() {
        return Err(UndoError::Unfinished(Box::new(undone)));
    }
    path_image::sync_parents(&jail, points.iter().map(|point| point.path))?;
    let keeps_rest = rest == UnrestoredPaths::Keep;
    if !(keeps_rest && undone.restored.is_empty()) {
        let mut entries = vec![UndoLogEntry::RolledBack];
        if keeps_rest && !unrestored.is_empty() {
            entries.extend(unrestored.iter().rev().flat_map(|point| point.entries()));
            entries.push(UndoLogEntry::Committed);
        }
        log.append_all(&entries)?;
    }
    remove_stale_layers(directory);
    Ok(undone)
}

/// Stores the text of a path that was not restored as a file next to the log.
fn store_copy(directory: &Path, point: &UndoPoint<'_>) -> Result<(), UndoError> {
    let Some(text) = point.text else { return Ok(()) };
    let copy = directory.join(point.copy.to_string());
    let mut options = OpenOptions::new();
    let opened = options.write(true).create(true).truncate(true).mode(0o600).open(&copy);
    let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(storage_error("writing", &copy))
}

/// Builds the error of a failed file operation.
fn storage_error(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> UndoError {
    move |source| UndoError::Storage { what, path: path.display().to_string(), source }
}
