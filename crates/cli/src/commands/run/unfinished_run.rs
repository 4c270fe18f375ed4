//! Finds an unfinished run in the directory in which a new run starts.

use std::path::Path;

use jackline_engine::SessionSummary;
use jackline_journal::{FileStore, ReadMode, SessionEntry, SessionFilter, Store as _};
use jackline_runtime::load_session_from;
use jackline_supervisor::{RUN_SESSION_PREFIX, RunRecord};

use super::super::supervisor_check::has_supervisor;
use crate::terminal::{print_note, sanitize};

/// Prints a note if the latest run of a directory is unfinished and has no supervisor, because the
/// user may have wanted to resume it.
pub(super) fn note_unfinished_run(store: &FileStore, directory: &Path) {
    let Ok(all) = store.list(&SessionFilter::default()) else { return };
    let is_run = |at: &Path| {
        at.file_name().is_some_and(|name| name.to_string_lossy().starts_with(RUN_SESSION_PREFIX))
    };
    let is_here = |at: &Path| {
        let request = RunRecord::load(at).ok().flatten();
        request.is_some_and(|it| it.started_in == directory || it.workspace == directory)
    };
    let is_run_here =
        |entry: &SessionEntry| entry.directory().is_some_and(|at| is_run(at) && is_here(at));
    // The list is sorted, the latest session first.
    let Some(latest) = all.into_iter().find(is_run_here) else { return };
    let Some(summary) = summary(store, &latest) else { return };
    if has_supervisor(&latest, &summary) == Some(false) {
        let name = sanitize(&latest.name, 60);
        print_note(format!(
            "starting a new run; the earlier run `{name}` is not finished, resume it with `jackline run --resume {name}`"
        ));
    }
}

/// Whether a run has stopped. If its journal can't be read, it counts as unfinished.
pub(super) fn is_finished(store: &FileStore, entry: &SessionEntry) -> bool {
    summary(store, entry).is_some_and(|summary| summary.stop.is_some())
}

fn summary(store: &FileStore, entry: &SessionEntry) -> Option<SessionSummary> {
    let journal = store.view(entry, ReadMode::Unlocked).ok()?;
    Some(load_session_from(entry, &journal).ok()?.summary())
}
