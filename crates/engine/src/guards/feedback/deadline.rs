//! How much time is left, in words that keep their precision where it matters.

use alloc::format;
use alloc::string::String;

use super::Said;
use crate::definition::Definition;
use crate::facts::Facts;
use crate::guards::Look;
use crate::guards::limits::Per;
use crate::state::State;
use crate::time::Timestamp;
use crate::verdict::Severity;

/// When the work must be over: the earliest of the session's deadline, the
/// runtime's, and what is left of the session's wall time.
pub(crate) fn of(definition: &Definition, state: &State, facts: &Facts) -> Option<Timestamp> {
    let wall = definition.limits.wall_seconds.filter(|limit| limit.per == Per::Session);
    let wall = wall.map(|limit| {
        let begun = state.clock.started().plus_ms(state.spent.session.since_ms);
        begun.plus_ms(limit.max.saturating_mul(1000))
    });
    [state.deadline, facts.deadline, wall].into_iter().flatten().min()
}

pub(super) fn speak(look: Look<'_>, warning_threshold_seconds: u64) -> Option<Said> {
    let deadline = of(look.definition, look.state, look.facts)?;
    let now = look.clock.now();
    let took = duration(look.clock.elapsed_ms() / 1000);
    if now >= deadline {
        return Some(Said {
            severity: Severity::Warning,
            summary: format!("The work so far took {took}. The deadline is reached."),
            suggestions: &["Wrap up at once."],
        });
    }
    let left_ms = deadline.ms_since(now);
    let summary =
        format!("The work so far took {took}. You have {} remaining.", duration(left_ms / 1000));
    if left_ms <= warning_threshold_seconds.saturating_mul(1000) {
        return Some(Said {
            severity: Severity::Warning,
            summary,
            suggestions: &["Finish what matters most first.", "Say what is done and what is left."],
        });
    }
    Some(Said { severity: Severity::Info, summary, suggestions: &[] })
}

/// "1 minute 30 seconds".
fn duration(seconds: u64) -> String {
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
            assert_eq!(duration(seconds), expected);
        }
    }
}
