//! The deadline provider: how much time is left, with more precision when little time is left.

use alloc::format;
use alloc::string::String;

use super::BuiltinFeedback;
use crate::definition::Definition;
use crate::facts::Facts;
use crate::guards::GuardInput;
use crate::guards::limits::LimitPeriod;
use crate::state::SessionState;
use crate::time::Timestamp;
use crate::verdict::Severity;

/// Returns when the work must be finished: the earliest of the session's deadline, the runtime's
/// deadline, and the end of the session's wall time.
pub(crate) fn earliest_deadline(
    definition: &Definition,
    state: &SessionState,
    facts: &Facts,
) -> Option<Timestamp> {
    let wall = definition.limits.wall_seconds.filter(|limit| limit.per == LimitPeriod::Session);
    let wall = wall.map(|limit| {
        let begun = state.clock.started().plus_ms(state.spent.session.since_ms);
        begun.plus_ms(limit.max.saturating_mul(1000))
    });
    [state.deadline, facts.deadline, wall].into_iter().flatten().min()
}

pub(super) fn deadline_feedback(
    input: GuardInput<'_>,
    warning_threshold_seconds: u64,
) -> Option<BuiltinFeedback> {
    let deadline = earliest_deadline(input.definition, input.state, input.facts)?;
    let now = input.clock.now();
    let took = format_duration(input.clock.elapsed_ms() / 1000);
    if now >= deadline {
        return Some(BuiltinFeedback {
            severity: Severity::Warning,
            summary: format!("The work so far took {took}. The deadline is reached."),
            suggestions: &["Finish now."],
        });
    }
    let left_ms = deadline.ms_since(now);
    let summary = format!(
        "The work so far took {took}. You have {} remaining.",
        format_duration(left_ms / 1000)
    );
    if left_ms <= warning_threshold_seconds.saturating_mul(1000) {
        return Some(BuiltinFeedback {
            severity: Severity::Warning,
            summary,
            suggestions: &[
                "Finish what matters most first.",
                "Report what is done and what is left.",
            ],
        });
    }
    Some(BuiltinFeedback { severity: Severity::Info, summary, suggestions: &[] })
}

/// Formats a duration, such as "1 minute 30 seconds".
fn format_duration(seconds: u64) -> String {
    let unit = |count: u64, one: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {one}s"),
    };
    let two = |large: String, count: u64, one: &str| match count {
        0 => large,
        count => format!("{large} {}", unit(count, one)),
    };
    match seconds {
        0..60 => unit(seconds, "second"),
        60..3600 => two(unit(seconds / 60, "minute"), seconds % 60, "second"),
        _ => two(unit(seconds / 3600, "hour"), seconds % 3600 / 60, "minute"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_keep_precision_and_singulars() {
        let rows = [
            (0, "0 seconds"),
            (1, "1 second"),
            (59, "59 seconds"),
            (60, "1 minute"),
            (61, "1 minute 1 second"),
            (90, "1 minute 30 seconds"),
            (3599, "59 minutes 59 seconds"),
            (3600, "1 hour"),
            (3660, "1 hour 1 minute"),
            (7325, "2 hours 2 minutes"),
        ];
        for (seconds, expected) in rows {
            assert_eq!(format_duration(seconds), expected);
        }
    }
}
