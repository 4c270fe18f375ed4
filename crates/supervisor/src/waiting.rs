//! Waits where nothing can go on: for a person, or until a model answers again.

use std::path::Path;
use std::time::Duration;

use jackline_engine::{Markers, Now, Summary};
use jackline_runtime::now;

use crate::desk::Desk;

/// How often is looked.
const TICK: Duration = Duration::from_millis(100);

/// How long a model is left alone that does not say for how long; doubles each time.
const UNKNOWN: Duration = Duration::from_mins(1);
const UNKNOWN_MAX: Duration = Duration::from_hours(1);

/// And at least, whatever it says; doubles, too.
const LEAST: Duration = Duration::from_secs(1);
const LEAST_MAX: Duration = Duration::from_mins(5);

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
    let held_by_file = is_there(Markers::PAUSE);
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

/// How long the session may still last: until its deadline, or the nearest limit on its time
/// that holds. None where nothing ends it.
pub(crate) fn time_left(desk: &mut Desk<'_>) -> Option<Duration> {
    let summary = desk.summary()?;
    let watch = Watch::since(summary.elapsed_ms, desk.told_ms());
    let left_ms = ends_ms(&summary)?.saturating_sub(watch.elapsed_ms(&now()));
    Some(Duration::from_millis(left_ms))
}

/// How long is waited for a model, of which was waited so many times in a row: as long as it
/// wants, and longer each time.
pub(crate) fn rest(wanted: Option<Duration>, waits: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(waits);
    let usual = || UNKNOWN.saturating_mul(doubled).min(UNKNOWN_MAX);
    wanted.unwrap_or_else(usual).max(LEAST.saturating_mul(doubled).min(LEAST_MAX))
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

fn is_ended(desk: &Desk<'_>, summary: Option<&Summary>, watch: Watch) -> Option<Waited> {
    if desk.lookout.is_cancelled() {
        return Some(Waited::Cancelled);
    }
    let ends = ends_ms(summary?)?;
    (watch.elapsed_ms(&now()) >= ends).then_some(Waited::TimeIsUp)
}

/// How long after its beginning a session is over. Guards say so only at an event.
fn ends_ms(summary: &Summary) -> Option<u64> {
    let limits = summary.budgets.iter().filter(|it| it.dimension == "wall_seconds" && !it.soft);
    let deadline = summary.deadline.map(|deadline| deadline.ms_since(summary.started));
    soonest(deadline, limits.map(|it| it.max))
}

/// The deadline, or a limit on time in seconds, whichever comes first.
fn soonest(deadline_ms: Option<u64>, limits_s: impl Iterator<Item = u64>) -> Option<u64> {
    limits_s.map(|limit| limit.saturating_mul(1000)).chain(deadline_ms).min()
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
        let hour_s = 3600;
        let watch = Watch::since(1000, 50_000);
        for wall_ms in [i64::from(i32::MIN), 0, 1_800_000_000_000, i64::MAX / 2] {
            let early = watch.elapsed_ms(&at(wall_ms, 50_400));
            assert_eq!(early, 1400);
            let both = soonest(Some(3_600_000), [hour_s].into_iter());
            assert!(both.is_some_and(|ends| early < ends));
            let late = watch.elapsed_ms(&at(wall_ms, 50_000 + 3_599_000));
            assert_eq!(soonest(None, [hour_s].into_iter()), Some(late), "the limit");
            assert_eq!(soonest(Some(3_600_000), [].into_iter()), Some(late), "the deadline");
        }
    }

    #[test]
    fn the_nearer_of_a_deadline_and_a_limit_ends_a_session() {
        assert_eq!(soonest(Some(5000), [9, 4].into_iter()), Some(4000));
        assert_eq!(soonest(Some(3000), [9, 4].into_iter()), Some(3000));
        assert_eq!(soonest(None, [].into_iter()), None);
    }

    #[test]
    fn a_model_is_never_asked_again_at_once_and_is_left_alone_longer_each_time() {
        let (zero, hour) = (Some(Duration::ZERO), Some(Duration::from_hours(1)));
        assert_eq!(rest(zero, 0), Duration::from_secs(1));
        assert_eq!((rest(zero, 3), rest(zero, 99)), (Duration::from_secs(8), LEAST_MAX));
        assert_eq!((rest(hour, 0), rest(hour, 99)), (UNKNOWN_MAX, UNKNOWN_MAX), "as it wants");
        assert_eq!((rest(None, 0), rest(None, 2)), (UNKNOWN, UNKNOWN * 4));
        assert_eq!(rest(None, u32::MAX), UNKNOWN_MAX);
    }

    #[test]
    fn a_clock_of_the_machine_that_runs_back_takes_nothing_away() {
        assert_eq!(Watch::since(1000, 50_000).elapsed_ms(&at(0, 10)), 1000);
    }
}
