//! Finds out whether a person removed a missing report.
//!
//! A report counts as removed only if its directory can be read. A person removed it if no session
//! of the workspace was active meanwhile. The removal concerns the session that wrote the report
//! last.

use std::fs;
use std::io;
use std::path::Path;

use jackline_engine::facts::WatchedFact;
use jackline_engine::summary::ReportFile;
use jackline_engine::{SessionId, Timestamp};
use jackline_journal::Store;

use crate::other_sessions::OtherSessions;
use crate::vouched_edits::last_vouched_edit;

/// The reports of a workspace, as one session sees them.
#[derive(Clone, Copy)]
pub(crate) struct ReportRemovals<'a> {
    pub(crate) home: Option<&'a Path>,
    pub(crate) store: &'a dyn Store,
    pub(crate) workspace: Option<&'a Path>,
    pub(crate) session: &'a SessionId,
}

impl ReportRemovals<'_> {
    /// Adds to the fact about a changed report what the change means.
    pub(crate) fn explain_change(self, path: &str, fact: &mut WatchedFact, since: Timestamp) {
        let Some(workspace) = self.workspace.filter(|_| is_report(path)) else { return };
        let absolute = workspace.join(path);
        if fact.sha256.is_some() {
            let last = self.home.and_then(|home| last_vouched_edit(home, &absolute));
            let is_own = |session: &String| session == self.session.as_str();
            fact.removed_by_person = last.is_some_and(|last| last.report.gone.iter().any(is_own));
        } else if !fact.by_person {
            fact.unsure = self.removal_doubt(&absolute, since);
        }
    }

    /// Whether a person removed the report of another session.
    pub(crate) fn was_removed(self, path: &str, absolute: &Path) -> bool {
        let Some(home) = self.home.filter(|_| is_report(path)) else { return false };
        let Some(last) = last_vouched_edit(home, absolute) else { return false };
        !last.is_removal()
            && self.other_owner(absolute).is_some()
            && path_obstacle(absolute).is_none()
            && self.active_after(last.at).is_none()
    }

    /// Why it is uncertain that a person removed the report of this session.
    fn removal_doubt(self, absolute: &Path, since: Timestamp) -> Option<String> {
        path_obstacle(absolute).or_else(|| self.other_owner(absolute)).or_else(|| {
            // The most expensive check comes last.
            self.active_after(since)
        })
    }

    fn other_owner(self, absolute: &Path) -> Option<String> {
        let by = last_vouched_edit(self.home?, absolute)?.report.by?;
        (by != self.session.as_str()).then(|| format!("the report belonged to the session `{by}`"))
    }

    fn active_after(self, time: Timestamp) -> Option<String> {
        let Self { store, workspace, session: own, .. } = self;
        OtherSessions { store, workspace: workspace?, current: own }.active_after(time)
    }
}

/// Whether removing the file at a path is a command of a person.
fn is_report(path: &str) -> bool {
    [ReportFile::Blocker, ReportFile::Checkpoint].iter().any(|report| report.path() == path)
}

/// Why a report does not count as simply missing.
fn path_obstacle(path: &Path) -> Option<String> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => Some("a directory is at its path".to_owned()),
        Ok(found) if found.is_symlink() => Some("a link is at its path".to_owned()),
        Ok(_) => Some("the file at its path can't be read".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let directory = path.parent()?;
            let is_directory = fs::symlink_metadata(directory).is_ok_and(|found| found.is_dir());
            let readable = is_directory && fs::read_dir(directory).is_ok();
            (!readable).then(|| "`.jackline` is not a directory that can be read".to_owned())
        }
        Err(error) => Some(format!("its path can't be read: {error}")),
    }
}
