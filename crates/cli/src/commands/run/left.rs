//! A run that was left in the directory in which another one is about to begin.

use std::path::Path;

use jackline_engine::Summary;
use jackline_journal::{FileStore, JournalFile};
use jackline_runtime::{Found, glance};
use jackline_supervisor::{Kept, PREFIX};

use super::super::driven::is_driven;
use crate::terminal::{note, plain};

/// Says of the latest run of a directory that it is not over and that nobody drives it:
/// whoever begins another one may have meant to go on.
pub(super) fn say_left(store: &FileStore, directory: &Path) {
    let Ok(all) = store.directories() else { return };
    let is_run = |at: &&std::path::PathBuf| {
        at.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX))
    };
    let is_here = |at: &&std::path::PathBuf| {
        let kept = Kept::load(at).ok().flatten();
        kept.is_some_and(|it| it.started_in == directory || it.workspace == directory)
    };
    let mine = all.iter().filter(is_run).filter(is_here);
    let found = mine.filter_map(|at| Found::at(&at.join("journal.jsonl")));
    let Some(latest) = found.max_by_key(|found| found.modified) else { return };
    let Some(summary) = summary(&latest) else { return };
    if is_driven(&latest, &summary) == Some(false) {
        let name = plain(&latest.name, 60);
        note(format!(
            "`{name}` was left here and is not over; this is another run, and `jackline run --resume {name}` goes on with that one"
        ));
    }
}

/// Whether a run is over. One of which nobody can tell is not.
pub(super) fn is_over(found: &Found) -> bool {
    summary(found).is_some_and(|summary| summary.stop.is_some())
}

fn summary(found: &Found) -> Option<Summary> {
    let journal = JournalFile::glance(&found.journal).ok()?;
    Some(glance(found, &journal).ok()?.summary())
}
