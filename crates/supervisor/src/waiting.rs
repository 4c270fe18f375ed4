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
        let summary = desk.summary();
        if let Some(ended) = is_ended(desk, summary.as_ref()) {
            return ended;
        }
        let moved = summary.is_none_or(|now| now.seq != paused.seq);
        let gone = reports.iter().any(|report| !is_there(report));
        let lifted = held_by_file && !is_there(Markers::PAUSE);
        if moved || gone || lifted || is_there(Markers::STOP) || desk.lookout.is_gone() {
            return Waited::Changed;
        }
        std::thread::sleep(TICK);
    }
}

/// Waits for some time, unless somebody wants the run to end.
pub(crate) fn sleep(desk: &mut Desk<'_>, pause: Duration) -> Waited {
    let until = now().boot_ms.saturating_add(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX));
    while now().boot_ms < until {
        let summary = desk.summary();
        if let Some(ended) = is_ended(desk, summary.as_ref()) {
            return ended;
        }
        if desk.lookout.is_over() {
            return Waited::Changed;
        }
        std::thread::sleep(TICK);
    }
    Waited::Changed
}

fn is_ended(desk: &Desk<'_>, summary: Option<&Summary>) -> Option<Waited> {
    if desk.lookout.is_cancelled() {
        return Some(Waited::Cancelled);
    }
    let summary = summary?;
    let limits = summary.budgets.iter().filter(|it| it.dimension == "wall_seconds" && !it.soft);
    let limits = limits.map(|it| it.max);
    let left = summary.deadline.map(|deadline| deadline.ms_since(summary.started));
    is_late(left, limits, summary.elapsed_at(&now())).then_some(Waited::TimeIsUp)
}

/// Whether the deadline has passed, so long after the beginning, or a limit on time in
/// seconds. Guards say so only at an event.
fn is_late(
    deadline_ms: Option<u64>,
    mut limits_s: impl Iterator<Item = u64>,
    elapsed_ms: u64,
) -> bool {
    deadline_ms.is_some_and(|deadline| elapsed_ms >= deadline)
        || limits_s.any(|limit| elapsed_ms >= limit.saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_up_at_the_deadline_or_at_a_limit() {
        assert!(!is_late(Some(3_600_000), [3600].into_iter(), 3_599_999));
        assert!(is_late(None, [7200, 3600].into_iter(), 3_600_000), "the limit");
        assert!(is_late(Some(3_600_000), [].into_iter(), 3_600_000), "the deadline");
    }
}
