//! Waits where nothing can go on: for a person, or until a model answers again.

use std::path::Path;
use std::time::Duration;

use jackline_engine::Summary;
use jackline_engine::definition::Dimension;
use jackline_engine::facts::Markers;
use jackline_host::clock::now;

use crate::run_front::RunFront;

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

/// Waits until a person does something: a command, or a file that comes or goes.
pub(crate) fn wait(front: &mut RunFront<'_>, workspace: &Path, paused: &Summary) -> Waited {
    let is_there = |file: &str| workspace.join(file).symlink_metadata().is_ok();
    let paths = paused.reports.iter().map(|report| report.path());
    let reports: Vec<&str> = paths.filter(|it| is_there(it)).collect();
    // It may be gone already: whoever is told of the wait may act on it at once.
    let held_by_file = paused.paused_by_file || is_there(Markers::PAUSE);
    loop {
        let summary = front.summary();
        if let Some(ended) = is_ended(front, summary.as_ref()) {
            return ended;
        }
        let moved = summary.is_none_or(|now| now.seq != paused.seq);
        let gone = reports.iter().any(|report| !is_there(report));
        let lifted = held_by_file && !is_there(Markers::PAUSE);
        if moved || gone || lifted || is_there(Markers::STOP) || front.lookout.is_gone() {
            return Waited::Changed;
        }
        std::thread::sleep(TICK);
    }
}

/// How long is waited for a model, of which was waited so many times in a row: as long as it
/// wants, and longer each time.
pub(crate) fn rest(wanted: Option<Duration>, waits: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(waits);
    let usual = || UNKNOWN.saturating_mul(doubled).min(UNKNOWN_MAX);
    wanted.unwrap_or_else(usual).max(LEAST.saturating_mul(doubled).min(LEAST_MAX))
}

/// Waits for some time, unless somebody wants the run to end.
pub(crate) fn sleep(front: &mut RunFront<'_>, pause: Duration) -> Waited {
    let until = now().boot_ms.saturating_add(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX));
    while now().boot_ms < until {
        let summary = front.summary();
        if let Some(ended) = is_ended(front, summary.as_ref()) {
            return ended;
        }
        if front.lookout.is_over() {
            return Waited::Changed;
        }
        std::thread::sleep(TICK);
    }
    Waited::Changed
}

/// Waits until no check of the session is at work, without asking anybody: each question is
/// one of the stops that are blocked. A pause is a reason to ask, unless it held before.
pub(crate) fn wait_for_checks(front: &mut RunFront<'_>, was_held: bool) -> Waited {
    loop {
        std::thread::sleep(TICK);
        let summary = front.summary();
        if let Some(ended) = is_ended(front, summary.as_ref()) {
            return ended;
        }
        let lookout = &front.lookout;
        if lookout.is_over() || !lookout.is_checking() || (lookout.is_held() && !was_held) {
            return Waited::Changed;
        }
    }
}

/// How long the work may still take: until the session's deadline, or until a hard limit on
/// time is used up. None where nothing limits it.
pub(crate) fn time_left(front: &mut RunFront<'_>) -> Option<Duration> {
    let summary = front.summary()?;
    let left_ms = end_ms(&summary)?.saturating_sub(summary.elapsed_at(&now()));
    Some(Duration::from_millis(left_ms))
}

fn is_ended(front: &RunFront<'_>, summary: Option<&Summary>) -> Option<Waited> {
    if front.lookout.is_cancelled() {
        return Some(Waited::Cancelled);
    }
    let summary = summary?;
    is_late(end_ms(summary), summary.elapsed_at(&now())).then_some(Waited::TimeIsUp)
}

/// When the work must be over, counted from its beginning. Guards say so only at an event.
fn end_ms(summary: &Summary) -> Option<u64> {
    let limits =
        summary.budgets.iter().filter(|it| it.key.dimension == Dimension::WallSeconds && !it.soft);
    let limits = limits.map(|it| it.max.saturating_mul(1000));
    let deadline = summary.deadline.map(|deadline| deadline.ms_since(summary.started));
    limits.chain(deadline).min()
}

fn is_late(end_ms: Option<u64>, elapsed_ms: u64) -> bool {
    end_ms.is_some_and(|end| elapsed_ms >= end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_up_at_the_end_and_not_before() {
        assert!(!is_late(Some(3_600_000), 3_599_999));
        assert!(is_late(Some(3_600_000), 3_600_000));
        assert!(!is_late(None, u64::MAX));
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
}
