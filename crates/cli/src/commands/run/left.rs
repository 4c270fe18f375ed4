//! A run that was left in the directory in which another one is about to begin.

use std::path::Path;

use jackline_engine::Summary;
use jackline_journal::{FileStore, Reading, SessionEntry, SessionFilter, Store as _};
use jackline_runtime::session_of;
use jackline_supervisor::{Kept, PREFIX};

use super::super::driven::is_driven;
use crate::terminal::{note, plain};

/// Says of the latest run of a directory that it is not over and that nobody drives it:
/// whoever begins another one may have meant to go on.
pub(super) fn say_left(store: &FileStore, directory: &Path) {
    let Ok(all) = store.list(&SessionFilter::default()) else { return };
    let is_run =
        |at: &Path| at.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
    let is_here = |at: &Path| {
        let kept = Kept::load(at).ok().flatten();
        kept.is_some_and(|it| it.started_in == directory || it.workspace == directory)
    };
    let is_mine =
        |entry: &SessionEntry| entry.directory().is_some_and(|at| is_run(at) && is_here(at));
    // The list has the latest first.
    let Some(latest) = all.into_iter().find(is_mine) else { return };
    let Some(summary) = summary(store, &latest) else { return };
    if is_driven(&latest, &summary) == Some(false) {
        let name = plain(&latest.name, 60);
        note(format!(
            "`{name}` was left here and is not over; this is another run, and `jackline run --resume {name}` goes on with that one"
        ));
    }
}

/// Whether a run is over. One of which nobody can tell is not.
pub(super) fn is_over(store: &FileStore, found: &SessionEntry) -> bool {
    summary(store, found).is_some_and(|summary| summary.stop.is_some())
}

fn summary(store: &FileStore, found: &SessionEntry) -> Option<Summary> {
    let journal = store.view(found, Reading::Glance).ok()?;
    Some(session_of(found, &journal).ok()?.summary())
}
