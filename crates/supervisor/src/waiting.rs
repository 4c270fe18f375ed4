//! Waits where nothing can go on: for a person, or until a model answers again.

use std::path::Path;
use std::time::Duration;

use jackline_engine::{Markers, Summary};
use jackline_runtime::now;

use crate::desk::Desk;

/// How often is looked.
const TICK: Duration = Duration::from_millis(100);

/// Why the wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    /// Something is otherwise than before, or the time has passed.
    Changed,
    /// What the whole work may take is used up.
    TimeIsUp,
    /// Somebody wants the process to end.
    Cancelled,
}

/// Waits until a person does something: a command, or a file that comes or goes.
pub(crate) fn wait(desk: &mut Desk<'_>, workspace: &Path, paused: &Summary) -> Waited {
    let is_there = |file: &str| workspace.join(file).symlink_metadata().is_ok();
    let reports: Vec<&str> = paused.reports.iter().copied().filter(|it| is_there(it)).collect();
    let held_by_file = is_there(Markers::PAUSE);
    loop {
        if let Some(ended) = is_ended(desk) {
            return ended;
        }
        let moved = desk.summary().is_none_or(|now| now.seq != paused.seq);
        let gone = reports.iter().any(|report| !is_there(report));
        let lifted = held_by_file && !is_there(Markers::PAUSE);
        if moved || gone || lifted || is_there(Markers::STOP) {
            return Waited::Changed;
        }
        std::thread::sleep(TICK);
    }
}

/// Waits for some time, unless somebody wants the run to end.
pub(crate) fn sleep(desk: &mut Desk<'_>, pause: Duration) -> Waited {
    let until = now().boot_ms.saturating_add(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX));
    while now().boot_ms < until {
        if let Some(ended) = is_ended(desk) {
            return ended;
        }
        if desk.lookout.is_over() {
            return Waited::Changed;
        }
        std::thread::sleep(TICK);
    }
    Waited::Changed
}

fn is_ended(desk: &mut Desk<'_>) -> Option<Waited> {
    if desk.lookout.is_cancelled() {
        return Some(Waited::Cancelled);
    }
    is_late(&desk.summary()?).then_some(Waited::TimeIsUp)
}

/// Whether the deadline has passed, or the limit on time. Guards say so only at an event.
fn is_late(summary: &Summary) -> bool {
    let wall = now().wall;
    let over = |limit_s: u64| wall.ms_since(summary.started) >= limit_s.saturating_mul(1000);
    let mut limits = summary.budgets.iter().filter(|it| it.dimension == "wall_seconds" && !it.soft);
    summary.deadline.is_some_and(|deadline| wall >= deadline) || limits.any(|it| over(it.max))
}
