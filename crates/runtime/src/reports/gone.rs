//! Whether a report that is not there was removed by a person.
//!
//! Only one that is missing from a directory that can be read was removed at all.
//! It was a person if no session of the workspace was at work meanwhile, and it
//! concerns the session whose report lay there last.

use std::fs;
use std::io;
use std::path::Path;

use jackline_engine::facts::WatchedFact;
use jackline_engine::summary::ReportFile;
use jackline_engine::{SessionId, Timestamp};
use jackline_journal::Store;

use crate::edits::last_word;
use crate::neighbours::Neighbours;

/// The reports of a workspace, as one of its sessions sees them.
#[derive(Clone, Copy)]
pub(crate) struct Reports<'a> {
    pub(crate) home: Option<&'a Path>,
    pub(crate) store: &'a dyn Store,
    pub(crate) workspace: Option<&'a Path>,
    pub(crate) session: &'a SessionId,
}

impl Reports<'_> {
    /// Adds to what was seen of a report what it says that it is not as it was.
    pub(crate) fn explain(self, path: &str, fact: &mut WatchedFact, since: Timestamp) {
        let Some(workspace) = self.workspace.filter(|_| is_report(path)) else { return };
        let absolute = workspace.join(path);
        if fact.sha256.is_some() {
            let last = self.home.and_then(|home| last_word(home, &absolute));
            let is_own = |session: &String| session == self.session.as_str();
            fact.settled = last.is_some_and(|last| last.report.gone.iter().any(is_own));
        } else if !fact.by_person {
            fact.unsure = self.unsure(&absolute, since);
        }
    }

    /// Whether a person removed the report of another session, which lay there.
    pub(crate) fn was_removed(self, path: &str, absolute: &Path) -> bool {
        let Some(home) = self.home.filter(|_| is_report(path)) else { return false };
        let Some(last) = last_word(home, absolute) else { return false };
        !last.is_removal()
            && self.of_another(absolute).is_some()
            && in_the_way(absolute).is_none()
            && self.at_work_after(last.at).is_none()
    }

    /// Why nobody can tell that a person removed the report of this session.
    fn unsure(self, absolute: &Path, since: Timestamp) -> Option<String> {
        in_the_way(absolute).or_else(|| self.of_another(absolute)).or_else(|| {
            // The costliest comes last.
            self.at_work_after(since)
        })
    }

    fn of_another(self, absolute: &Path) -> Option<String> {
        let by = last_word(self.home?, absolute)?.report.by?;
        (by != self.session.as_str()).then(|| format!("it was the report of the session `{by}`"))
    }

    fn at_work_after(self, time: Timestamp) -> Option<String> {
        let Self { store, workspace, session: own, .. } = self;
        Neighbours { store, workspace: workspace?, own }.at_work_after(time)
    }
}

/// Whether a person says something by removing the file at a path.
fn is_report(path: &str) -> bool {
    [ReportFile::Blocker, ReportFile::Checkpoint].iter().any(|report| report.path() == path)
}

/// What keeps a report from being plainly missing.
fn in_the_way(path: &Path) -> Option<String> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => Some("a directory lies there".to_owned()),
        Ok(found) if found.is_symlink() => Some("a link lies there".to_owned()),
        Ok(_) => Some("what lies there can't be read".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let directory = path.parent()?;
            let is_directory = fs::symlink_metadata(directory).is_ok_and(|found| found.is_dir());
            let readable = is_directory && fs::read_dir(directory).is_ok();
            (!readable).then(|| "`.jackline` is no directory that can be read".to_owned())
        }
        Err(error) => Some(format!("it can't be looked at: {error}")),
    }
}
