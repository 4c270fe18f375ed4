//! The files for people in a workspace: reports and the safety log.
//!
//! A report is written before the record that says so. A crash in between leaves
//! a report of something that the next event decides again; the other order would
//! leave a pause whose report is missing, and a report that is missing while a
//! session is paused was removed by a person, which lets it go on.

mod figures;
mod files;
mod gone;
mod safety_log;
mod text;

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io;
use std::path::{Path, PathBuf};

use jackline_engine::facts::{Tracked, WatchedFact};
use jackline_engine::summary::{Order, ReportFile};
use jackline_engine::{Event, Record, SessionId, Summary, Timestamp, Verdict};
use jackline_journal::Store;

use crate::edits::{REMOVED, vouch_for_report};
use crate::facts::{Machine, Scene};
use crate::live::Live;
use crate::restore::{self, Was};

pub(crate) use gone::Reports;
pub use safety_log::SAFETY_LOG;
pub(crate) use safety_log::{Entry, add as add_to_safety_log};

/// The directory for people, in a workspace.
const PEOPLE: &str = ".jackline";

/// What a report is made of.
pub(crate) struct Told<'a> {
    pub(crate) session: &'a SessionId,
    pub(crate) at: Timestamp,
    pub(crate) event: &'a Event,
    pub(crate) verdict: &'a Verdict,
    /// The session as it stands once the event is folded.
    pub(crate) summary: &'a Summary,
    /// The files that it has changed, where somebody knows.
    pub(crate) changed: Option<BTreeSet<String>>,
}

/// The files that a session has changed, where one of these reports tells of them.
pub(crate) fn changed(
    orders: &[Order],
    store: &dyn Store,
    live: &Live,
) -> Option<BTreeSet<String>> {
    let tells = orders.contains(&Order::Write(ReportFile::Checkpoint));
    tells.then(|| files::changed(store, &live.id, &live.session)).flatten()
}

/// Writes and removes what a record calls for. Gives what was done, for the
/// record, and what could not be.
pub(crate) fn carry_out(
    orders: &[Order],
    told: &Told<'_>,
    scene: &Scene<'_>,
    machine: &Machine,
) -> (Vec<(String, WatchedFact)>, Vec<String>) {
    let (mut done, mut failed) = (Vec::new(), Vec::new());
    let Some(workspace) = scene.workspace else { return (done, failed) };
    for order in orders {
        let path = order.report().path();
        let absolute = workspace.join(path);
        let was_gone = scene.reports().was_removed(path, &absolute);
        let (result, contents) = match order {
            Order::Write(report) => {
                let text = text::render(*report, told);
                (write(workspace, *report, &text), text.into_bytes())
            }
            Order::Remove(_) => (remove(scene.store, &absolute), REMOVED.to_vec()),
        };
        match result {
            Ok(()) => {
                // Other sessions of this workspace must not take it for a person's.
                if let Some(home) = scene.definitions.given_home() {
                    vouch_for_report(home, &absolute, &contents, told.session, was_gone);
                }
                let file = Tracked { path: path.to_owned(), look: 0 };
                let gone = WatchedFact::default();
                let fact = machine.watched(scene, &[file]).remove(path).unwrap_or(gone);
                done.push((path.to_owned(), fact));
            }
            Err(error) => failed.push(format!("`{path}`: {error}")),
        }
    }
    (done, failed)
}

fn write(workspace: &Path, report: ReportFile, text: &str) -> io::Result<()> {
    let directory = directory(workspace)?;
    let path = workspace.join(report.path());
    // A directory in its place would never give way.
    if fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir()) {
        restore::put_aside(&path)?;
    }
    restore::write(&path, text.as_bytes(), restore::PRIVATE)?;
    restore::sync(&directory)
}

/// What somebody wrote into it is kept in the store.
fn remove(store: &dyn Store, path: &Path) -> io::Result<()> {
    restore::give_back(store, path, Was::Missing).map(drop)
}

/// The directory for people. It is made where it is missing, and then keeps itself
/// out of a repository.
fn directory(workspace: &Path) -> io::Result<PathBuf> {
    let path = workspace.join(PEOPLE);
    match DirBuilder::new().create(&path) {
        Ok(()) => {
            let ignores = path.join(".gitignore");
            if let Err(error) = fs::write(&ignores, "*\n") {
                // An empty one would stay so: whoever comes next makes both anew.
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
            let text = format!("`{PEOPLE}` is no directory");
            Err(io::Error::new(io::ErrorKind::NotADirectory, text))
        }
        Err(error) => Err(error),
    }
}

/// What a record says for the safety log.
pub(crate) fn entries<'a>(
    session: &'a SessionId,
    record: &Record<'a>,
) -> impl Iterator<Item = Entry<'a>> {
    let seq = record.seq;
    record.verdict.safety.iter().map(move |event| Entry { session, seq, event })
}
