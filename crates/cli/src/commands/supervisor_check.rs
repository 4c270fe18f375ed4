//! Whether the supervisor process of a run is alive. The journal cannot tell: after a kill it looks
//! like the journal of a running session.

use jackline_engine::SessionSummary;
use jackline_journal::SessionEntry;
use jackline_supervisor::{RUN_SESSION_PREFIX, RunRecord};

/// Whether the supervisor of a run is alive; `None` if the session is not a run or has stopped.
pub(super) fn has_supervisor(entry: &SessionEntry, summary: &SessionSummary) -> Option<bool> {
    let has_stopped = summary.stop.is_some();
    if has_stopped || !entry.name.starts_with(RUN_SESSION_PREFIX) {
        return None;
    }
    let directory = entry.directory()?;
    // A copy of a journal, or an export, never has a supervisor.
    let is_original = RunRecord::load(directory).map_or(true, |request| request.is_some());
    is_original.then(|| jackline_supervisor::is_driven(directory))
}
