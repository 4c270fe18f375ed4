//! Waits where nothing can go on: for a person, or until a model answers again.

use std::path::Path;
use std::time::Duration;

use jackline_engine::{Markers, Now, Summary};
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

/// Session time while nothing happens. Guards know it only at an event, so here the clock of
/// the machine's start goes on from there; the wall clock may jump as it likes.
#[derive(Debug, Clone, Copy)]
struct Watch {
    elapsed_ms: u64,
    boot_ms: u64,
}

impl Watch {
    /// Begins with how long the session had lasted at its last event, and when that was.
    fn since(elapsed_ms: u64, told_ms: u64) -> Self {
        Self { elapsed_ms, boot_ms: told_ms }
    }

    /// How long the session has lasted.
    fn elapsed_ms(self, now: &Now) -> u64 {
        self.elapsed_ms.saturating_add(now.boot_ms.saturating_sub(self.boot_ms))
    }
}

/// Waits until a person does something: a command, or a file that comes or goes.
pub(crate) fn wait(desk: &mut Desk<'_>, workspace: &Path, paused: &Summary) -> Waited {
    let is_there = |file: &str| workspace.join(file).symlink_metadata().is_ok();
    let reports: Vec<&str> = paused.reports.iter().copied().filter(|it| is_there(it)).collect();
    // It may be gone already: whoever is told of the wait may act on it at once.
    let held_by_file = paused.paused_by_file || is_there(Markers::PAUSE);
    let watch = Watch::since(paused.elapsed_ms, desk.told_ms());
    loop {
        let summary = desk.summary();
        if let Some(ended) = is_ended(desk, summary.as_ref(), watch) {
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
    let elapsed_ms = desk.summary().map_or(0, |summary| summary.elapsed_ms);
    let watch = Watch::since(elapsed_ms, desk.told_ms());
    while now().boot_ms < until {
        let summary = desk.summary();
        if let Some(ended) = is_ended(desk, summary.as_ref(), watch) {
            return ended;
        }
        if desk.lookout.is_over() {
            return Waited::Changed;
        }
        std::thread::sleep(TICK);
    }
    Waited::Changed
}

/// How long the work may still take: until the session's deadline, or until a hard limit on
/// time is used up. None where nothing limits it.
pub(crate) fn time_left(desk: &mut Desk<'_>) -> Option<Duration> {
    let summary = desk.summary()?;
    let watch = Watch::since(summary.elapsed_ms, desk.told_ms());
    let left_ms = end_ms(&summary)?.saturating_sub(watch.elapsed_ms(&now()));
    Some(Duration::from_millis(left_ms))
}

fn is_ended(desk: &Desk<'_>, summary: Option<&Summary>, watch: Watch) -> Option<Waited> {
    if desk.lookout.is_cancelled() {
        return Some(Waited::Cancelled);
    }
    is_late(end_ms(summary?), watch.elapsed_ms(&now())).then_some(Waited::TimeIsUp)
}

/// When the work must be over, counted from its beginning. Guards say so only at an event.
fn end_ms(summary: &Summary) -> Option<u64> {
    let limits = summary.budgets.iter().filter(|it| it.dimension == "wall_seconds" && !it.soft);
    let limits = limits.map(|it| it.max.saturating_mul(1000));
    let deadline = summary.deadline.map(|deadline| deadline.ms_since(summary.started));
    limits.chain(deadline).min()
}

fn is_late(end_ms: Option<u64>, elapsed_ms: u64) -> bool {
    end_ms.is_some_and(|end| elapsed_ms >= end)
}

#[cfg(test)]
mod tests {
    use jackline_engine::Timestamp;

    use super::*;

    fn at(wall_ms: i64, boot_ms: u64) -> Now {
        Now { wall: Timestamp::from_ms(wall_ms), boot_id: "a".to_owned(), boot_ms }
    }

    #[test]
    fn a_wall_clock_that_jumps_neither_ends_a_wait_nor_makes_it_longer() {
        let hour_ms = Some(3_600_000);
        let watch = Watch::since(1000, 50_000);
        for wall_ms in [i64::from(i32::MIN), 0, 1_800_000_000_000, i64::MAX / 2] {
            let early = watch.elapsed_ms(&at(wall_ms, 50_400));
            assert_eq!(early, 1400);
            assert!(!is_late(hour_ms, early));
            let late = watch.elapsed_ms(&at(wall_ms, 50_000 + 3_599_000));
            assert!(is_late(hour_ms, late));
            assert!(!is_late(None, late));
        }
    }

    #[test]
    fn a_clock_of_the_machine_that_runs_back_takes_nothing_away() {
        assert_eq!(Watch::since(1000, 50_000).elapsed_ms(&at(0, 10)), 1000);
    }
}
