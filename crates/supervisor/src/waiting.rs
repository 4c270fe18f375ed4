//! Waits for a person, for a model that does not answer, and for verification commands.

use std::path::Path;
use std::time::Duration;

use jackline_engine::SessionSummary;
use jackline_engine::definition::LimitDimension;
use jackline_engine::facts::ControlFiles;
use jackline_host::clock::now;

use crate::run_front::RunFront;

/// How often the conditions are checked.
const WAIT_CHECK_PAUSE: Duration = Duration::from_millis(100);

/// The pause for a model that names no time. It doubles with each wait, up to the maximum.
const MODEL_PAUSE_DEFAULT: Duration = Duration::from_mins(1);
const MODEL_PAUSE_DEFAULT_MAX: Duration = Duration::from_hours(1);

/// The shortest pause, also if the model names a shorter one. It doubles, too.
const MODEL_PAUSE_MIN: Duration = Duration::from_secs(1);
const MODEL_PAUSE_MIN_MAX: Duration = Duration::from_mins(5);

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitEnd {
    /// The session changed, or the time has passed.
    Changed,
    /// The time of the session is used up.
    OutOfTime,
    /// The process has to end.
    Cancelled,
}

/// Waits until a person acts: by a command, or by creating or deleting a file.
pub(crate) fn wait_for_person(
    front: &mut RunFront<'_>,
    workspace: &Path,
    paused: &SessionSummary,
) -> WaitEnd {
    let is_there = |file: &str| workspace.join(file).symlink_metadata().is_ok();
    let paths = paused.reports.iter().map(|report| report.path());
    let reports: Vec<&str> = paths.filter(|it| is_there(it)).collect();
    // The person may have deleted the pause file already, so the summary counts as well.
    let held_by_file = paused.paused_by_file || is_there(ControlFiles::PAUSE);
    loop {
        let summary = front.summary();
        if let Some(ended) = early_end(front, summary.as_ref()) {
            return ended;
        }
        let moved = summary.is_none_or(|now| now.seq != paused.seq);
        let gone = reports.iter().any(|report| !is_there(report));
        let lifted = held_by_file && !is_there(ControlFiles::PAUSE);
        if moved
            || gone
            || lifted
            || is_there(ControlFiles::STOP)
            || front.stop_signals.is_workspace_gone()
        {
            return WaitEnd::Changed;
        }
        std::thread::sleep(WAIT_CHECK_PAUSE);
    }
}

/// How long to wait for a model after `waits` waits in a row. The time that the model named is the
/// base.
pub(crate) fn model_pause(wanted: Option<Duration>, waits: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(waits);
    let usual = || MODEL_PAUSE_DEFAULT.saturating_mul(doubled).min(MODEL_PAUSE_DEFAULT_MAX);
    wanted
        .unwrap_or_else(usual)
        .max(MODEL_PAUSE_MIN.saturating_mul(doubled).min(MODEL_PAUSE_MIN_MAX))
}

/// Waits for some time, unless the run has to stop.
pub(crate) fn wait_for_duration(front: &mut RunFront<'_>, pause: Duration) -> WaitEnd {
    let until = now().boot_ms.saturating_add(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX));
    while now().boot_ms < until {
        let summary = front.summary();
        if let Some(ended) = early_end(front, summary.as_ref()) {
            return ended;
        }
        if front.stop_signals.should_stop() {
            return WaitEnd::Changed;
        }
        std::thread::sleep(WAIT_CHECK_PAUSE);
    }
    WaitEnd::Changed
}

/// Waits until no verification command of the session runs. It proposes no stop in between, because
/// each proposal counts. A new pause ends the wait, too.
pub(crate) fn wait_for_checks(front: &mut RunFront<'_>, was_held: bool) -> WaitEnd {
    loop {
        std::thread::sleep(WAIT_CHECK_PAUSE);
        let summary = front.summary();
        if let Some(ended) = early_end(front, summary.as_ref()) {
            return ended;
        }
        let lookout = &front.stop_signals;
        if lookout.should_stop()
            || !lookout.is_verification_running()
            || (lookout.should_pause() && !was_held)
        {
            return WaitEnd::Changed;
        }
    }
}

/// How much time the session has left: until its deadline or a hard limit on time. `None` if there
/// is no limit.
pub(crate) fn time_left(front: &mut RunFront<'_>) -> Option<Duration> {
    let summary = front.summary()?;
    let left_ms = time_limit_ms(&summary)?.saturating_sub(summary.elapsed_at(&now()));
    Some(Duration::from_millis(left_ms))
}

fn early_end(front: &RunFront<'_>, summary: Option<&SessionSummary>) -> Option<WaitEnd> {
    if front.stop_signals.is_cancelled() {
        return Some(WaitEnd::Cancelled);
    }
    let summary = summary?;
    is_late(time_limit_ms(summary), summary.elapsed_at(&now())).then_some(WaitEnd::OutOfTime)
}

/// When the work must have ended, in milliseconds from its start. The guards check this only at
/// events.
fn time_limit_ms(summary: &SessionSummary) -> Option<u64> {
    let limits = summary
        .budgets
        .iter()
        .filter(|it| it.key.dimension == LimitDimension::WallSeconds && !it.soft);
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
    fn the_time_is_used_up_at_the_limit_and_not_before() {
        assert!(!is_late(Some(3_600_000), 3_599_999));
        assert!(is_late(Some(3_600_000), 3_600_000));
        assert!(!is_late(None, u64::MAX));
    }

    #[test]
    fn each_wait_for_a_model_is_longer_than_the_one_before() {
        let (zero, hour) = (Some(Duration::ZERO), Some(Duration::from_hours(1)));
        assert_eq!(model_pause(zero, 0), Duration::from_secs(1));
        assert_eq!(
            (model_pause(zero, 3), model_pause(zero, 99)),
            (Duration::from_secs(8), MODEL_PAUSE_MIN_MAX)
        );
        assert_eq!(
            (model_pause(hour, 0), model_pause(hour, 99)),
            (MODEL_PAUSE_DEFAULT_MAX, MODEL_PAUSE_DEFAULT_MAX),
            "the named time"
        );
        assert_eq!(
            (model_pause(None, 0), model_pause(None, 2)),
            (MODEL_PAUSE_DEFAULT, MODEL_PAUSE_DEFAULT * 4)
        );
        assert_eq!(model_pause(None, u32::MAX), MODEL_PAUSE_DEFAULT_MAX);
    }
}
