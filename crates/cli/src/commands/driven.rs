//! Whether somebody drives a run: a process that is gone can't say so itself, and the journal
//! of a run that was killed looks like that of one at work.

use jackline_engine::Summary;
use jackline_journal::SessionEntry;
use jackline_supervisor::{Kept, PREFIX};

/// Whether somebody drives a session; none where it is no run, or over.
pub(super) fn is_driven(found: &SessionEntry, summary: &Summary) -> Option<bool> {
    let is_over = summary.stop.is_some();
    if is_over || !found.name.starts_with(PREFIX) {
        return None;
    }
    let directory = found.directory()?;
    // A copy of a journal, or an export, is nobody's to drive.
    let is_here = Kept::load(directory).map_or(true, |kept| kept.is_some());
    is_here.then(|| jackline_supervisor::is_driven(directory))
}
