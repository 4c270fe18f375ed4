//! What a person does to continue a session that is paused or stopped.

use std::path::Path;

use jackline_engine::facts::ControlFiles;
use jackline_engine::summary::{PauseCause, ReportFile};
use jackline_engine::{SessionPhase, SessionSummary};
use jackline_journal::OpeningRecord;
use jackline_supervisor::RUN_SESSION_PREFIX;

/// What a person has to do to continue a paused session.
fn how_to_resume(opened: &OpeningRecord, summary: &SessionSummary) -> &'static str {
    let workspace = opened.place.workspace.as_deref().map(Path::new);
    let has_pause_file =
        |workspace: &Path| workspace.join(ControlFiles::PAUSE).symlink_metadata().is_ok();
    match summary.paused_cause {
        _ if workspace.is_some_and(has_pause_file) => "remove `.jackline/PAUSE`",
        Some(PauseCause::Person) if summary.paused_by_file => {
            "nothing to do: `.jackline/PAUSE` is gone, the next call continues"
        }
        Some(cause) if cause.is_stuck() => "send the agent a message, or run `jackline clear`",
        // A person's pause hides a blocker or a checkpoint, and each has its own command.
        Some(PauseCause::Person | PauseCause::Protected)
            if summary.reports.contains(&ReportFile::Blocker) =>
        {
            "send the agent a message, or run `jackline resume` for the pause and `jackline clear` for the blocker"
        }
        Some(PauseCause::Person | PauseCause::Protected)
            if summary.reports.contains(&ReportFile::Checkpoint) =>
        {
            "run `jackline resume` for the pause and `jackline ack` for the checkpoint"
        }
        Some(PauseCause::Checkpoint) => "run `jackline ack`",
        _ => "send the agent a message, or run `jackline resume`",
    }
}

/// What a person has to do to continue a session that is paused, or was paused when it ended. A
/// run never returns to an ended session; the agent of a client can, and is then still paused.
pub(super) fn how_to_resume_paused(opened: &OpeningRecord, summary: &SessionSummary) -> String {
    if summary.phase != SessionPhase::Ended {
        return how_to_resume(opened, summary).to_owned();
    }
    let reopen = format!("it has ended; to reopen it: {}", how_to_reopen(opened));
    if opened.session.as_str().starts_with(RUN_SESSION_PREFIX) {
        return reopen;
    }
    format!("{reopen}; if its agent comes back: {}", how_to_resume(opened, summary))
}

/// What a person has to do to reopen a stopped session.
pub(super) fn how_to_reopen(opened: &OpeningRecord) -> &'static str {
    let workspace = opened.place.workspace.as_deref().map(Path::new);
    let has_stop_file =
        |workspace: &Path| workspace.join(ControlFiles::STOP).symlink_metadata().is_ok();
    if workspace.is_some_and(has_stop_file) {
        "remove `.jackline/STOP`, then run `jackline reset`"
    } else {
        "run `jackline reset`"
    }
}
