//! The files for people in a workspace: reports and the safety log.
//!
//! A report is written before the record that mentions it. After a crash in between, the next event
//! decides the same again and writes the report again. The other order could leave a paused session
//! without its report. A missing report of a paused session means that a person removed it, which
//! resumes the session.

mod changed_files;
mod removal;
mod safety_log;
mod summary_lines;
mod text;

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io;
use std::path::{Path, PathBuf};

use jackline_engine::facts::{TrackedFile, WatchedFact};
use jackline_engine::summary::{ReportChange, ReportFile};
use jackline_engine::{Event, Record, SessionId, SessionSummary, Timestamp, Verdict};
use jackline_journal::Store;

use crate::facts::{FactContext, LocalMachine};
use crate::live_session::LiveSession;
use crate::restore::{self, OriginalFile};
use crate::vouched_edits::{REMOVED, vouch_for_report};

pub(crate) use removal::ReportRemovals;
pub use safety_log::SAFETY_LOG;
pub(crate) use safety_log::{SafetyLogEntry, add as add_to_safety_log};

/// The directory for people in a workspace.
const PEOPLE_DIRECTORY: &str = ".jackline";

/// The input of a report.
pub(crate) struct ReportInput<'a> {
    pub(crate) session: &'a SessionId,
    pub(crate) at: Timestamp,
    pub(crate) event: &'a Event,
    pub(crate) verdict: &'a Verdict,
    /// The session after the event was applied.
    pub(crate) summary: &'a SessionSummary,
    /// The files that the session has changed, if they are known.
    pub(crate) changed_files: Option<BTreeSet<String>>,
}

/// The files that a session has changed, if one of the ordered reports lists them.
pub(crate) fn changed_files(
    orders: &[ReportChange],
    store: &dyn Store,
    live: &LiveSession,
) -> Option<BTreeSet<String>> {
    let tells = orders.contains(&ReportChange::Write(ReportFile::Checkpoint));
    tells.then(|| changed_files::changed(store, &live.id, &live.session)).flatten()
}

/// Writes and removes the reports that a record orders. Returns the facts of the successful orders
/// for the record, and the errors of the others.
pub(crate) fn execute_orders(
    orders: &[ReportChange],
    input: &ReportInput<'_>,
    scene: &FactContext<'_>,
    machine: &LocalMachine,
) -> (Vec<(String, WatchedFact)>, Vec<String>) {
    let (mut done, mut failed) = (Vec::new(), Vec::new());
    let Some(workspace) = scene.workspace else { return (done, failed) };
    for order in orders {
        let path = order.report().path();
        let absolute = workspace.join(path);
        let was_removed_by_person = scene.reports().was_removed(path, &absolute);
        let (result, contents) = match order {
            ReportChange::Write(report) => {
                let text = text::render(*report, input);
                (write(workspace, *report, &text), text.into_bytes())
            }
            ReportChange::Remove(_) => (remove(scene.store, &absolute), REMOVED.to_vec()),
        };
        match result {
            Ok(()) => {
                // Other sessions of this workspace must not take the change for a person's.
                if let Some(home) = scene.definitions.state_directory() {
                    vouch_for_report(
                        home,
                        &absolute,
                        &contents,
                        input.session,
                        was_removed_by_person,
                    );
                }
                let file = TrackedFile { path: path.to_owned(), stamp: 0 };
                let gone = WatchedFact::default();
                let fact = machine.changed_files(scene, &[file]).remove(path).unwrap_or(gone);
                done.push((path.to_owned(), fact));
            }
            Err(error) => failed.push(format!("`{path}`: {error}")),
        }
    }
    (done, failed)
}

fn write(workspace: &Path, report: ReportFile, text: &str) -> io::Result<()> {
    let directory = create_people_directory(workspace)?;
    let path = workspace.join(report.path());
    // A directory at the path of the report can't be replaced, so it is renamed.
    if fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir()) {
        restore::rename_aside(&path)?;
    }
    restore::write(&path, text.as_bytes(), restore::PRIVATE_MODE)?;
    restore::sync(&directory)
}

/// Removes a report. The store gets a copy, in case a person has edited it.
fn remove(store: &dyn Store, path: &Path) -> io::Result<()> {
    restore::restore_file(store, path, OriginalFile::Missing).map(drop)
}

/// Creates the directory for people if it is missing, with a `.gitignore` file for its contents.
fn create_people_directory(workspace: &Path) -> io::Result<PathBuf> {
    let path = workspace.join(PEOPLE_DIRECTORY);
    match DirBuilder::new().create(&path) {
        Ok(()) => {
            let ignores = path.join(".gitignore");
            if let Err(error) = fs::write(&ignores, "*\n") {
                // Remove the incomplete directory, so that the next attempt creates both again.
                let _ = fs::remove_file(&ignores);
                let _ = fs::remove_dir(&path);
                return Err(error);
            }
            Ok(path)
        }
        // Another session may have made it just now.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if fs::symlink_metadata(&path)?.is_dir() {
                return Ok(path);
            }
            let text = format!("`{PEOPLE_DIRECTORY}` is not a directory");
            Err(io::Error::new(io::ErrorKind::NotADirectory, text))
        }
        Err(error) => Err(error),
    }
}

/// The entries of a record for the safety log.
pub(crate) fn safety_log_entries<'a>(
    session: &'a SessionId,
    record: &Record<'a>,
) -> impl Iterator<Item = SafetyLogEntry<'a>> {
    let seq = record.seq;
    record.verdict.safety.iter().map(move |event| SafetyLogEntry { session, seq, event })
}
