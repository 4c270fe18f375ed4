//! Session time: it starts at zero and never runs backwards.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::event::Event;
use crate::facts::{Facts, Now};
use crate::time::Timestamp;

/// How long a session has lasted, independently of clock changes on its machines.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SessionClock {
    started_ms: i64,
    elapsed_ms: u64,
    last: Option<ClockReading>,
}

/// The latest clock reading. The boot id is stored as a hash, because only equality matters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct ClockReading {
    wall_ms: i64,
    boot: Option<(u64, u64)>,
}

impl SessionClock {
    /// The clock after an event.
    pub(crate) fn after(&self, event: &Event, facts: &Facts) -> Self {
        let reading = ClockReading::of(event.at, &facts.now);
        let Some(last) = &self.last else {
            return Self { started_ms: reading.wall_ms, elapsed_ms: 0, last: Some(reading) };
        };
        let passed_ms = last.ms_until(&reading);
        // The wall clock is stored at its highest value, so that a jump back and forth is not
        // counted twice.
        let wall_ms = reading.wall_ms.max(last.wall_ms);
        Self {
            started_ms: self.started_ms,
            elapsed_ms: self.elapsed_ms.saturating_add(passed_ms),
            last: Some(ClockReading { wall_ms, boot: reading.boot }),
        }
    }

    /// The start of the session.
    pub(crate) fn started(&self) -> Timestamp {
        Timestamp::from_ms(self.started_ms)
    }

    /// The duration of the session at its last record.
    pub(crate) fn elapsed_ms(&self) -> u64 {
        self.elapsed_ms
    }

    /// The duration of the session now.
    pub(crate) fn elapsed_at(&self, now: &Now) -> u64 {
        let passed_ms =
            self.last.as_ref().map_or(0, |last| last.ms_until(&ClockReading::of(None, now)));
        self.elapsed_ms.saturating_add(passed_ms)
    }

    /// The current time of the session.
    pub(crate) fn now(&self) -> Timestamp {
        self.started().plus_ms(self.elapsed_ms)
    }
}

impl ClockReading {
    /// The time between two readings.
    fn ms_until(&self, later: &Self) -> u64 {
        match (self.boot, later.boot) {
            (Some((machine, before)), Some((same, after))) if machine == same => {
                after.saturating_sub(before)
            }
            // Another machine, a reboot, or a time from the adapter: only the wall clock can be
            // compared. If it runs backwards, no time has passed.
            _ => Timestamp::from_ms(later.wall_ms).ms_since(Timestamp::from_ms(self.wall_ms)),
        }
    }

    fn of(at: Option<Timestamp>, now: &Now) -> Self {
        match at {
            Some(at) => Self { wall_ms: at.as_ms(), boot: None },
            None => Self {
                wall_ms: now.wall.as_ms(),
                boot: (now.boot_id != String::new())
                    .then(|| (super::short_hash(&now.boot_id), now.boot_ms)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{EventKind, SessionEnded};
    use crate::id::{ActorId, SessionId};

    fn tick(clock: &SessionClock, wall: i64, boot: Option<(&str, u64)>) -> SessionClock {
        let event = Event {
            session: SessionId::parse("s").unwrap(),
            id: None,
            at: None,
            actor: ActorId::main(),
            kind: EventKind::SessionEnded(SessionEnded::default()),
            meta: None,
        };
        let (boot_id, boot_ms) = boot.unwrap_or(("", 0));
        let now = Now { wall: Timestamp::from_ms(wall), boot_id: boot_id.into(), boot_ms };
        clock.after(&event, &Facts::at(now))
    }

    #[test]
    fn boot_time_counts_while_the_wall_clock_jumps() {
        let clock = tick(&SessionClock::default(), 1_000, Some(("a", 50)));
        let clock = tick(&clock, 900_000, Some(("a", 60)));
        assert_eq!(clock.elapsed_ms(), 10);
        let clock = tick(&clock, 0, Some(("a", 80)));
        assert_eq!(clock.elapsed_ms(), 30);
    }

    #[test]
    fn time_continues_from_the_last_event() {
        let now = |wall: i64, boot_ms: u64| Now {
            wall: Timestamp::from_ms(wall),
            boot_id: "a".into(),
            boot_ms,
        };
        assert_eq!(SessionClock::default().elapsed_at(&now(5_000, 5_000)), 0);
        let clock = tick(&SessionClock::default(), 1_000, Some(("a", 50)));
        let clock = tick(&clock, 1_010, Some(("a", 60)));
        for wall in [i64::from(i32::MIN), 0, 1_800_000_000_000, i64::MAX / 2] {
            assert_eq!(clock.elapsed_at(&now(wall, 70)), 20, "a wall clock that jumps");
        }
        assert_eq!(
            clock.elapsed_at(&now(0, 10)),
            10,
            "a clock that runs backwards does not shorten the duration"
        );
    }

    #[test]
    fn after_a_reboot_the_wall_clock_counts() {
        let clock = tick(&SessionClock::default(), 1_000, Some(("a", 50)));
        let clock = tick(&clock, 5_000, Some(("b", 3)));
        assert_eq!(clock.elapsed_ms(), 4_000);
    }

    #[test]
    fn a_wall_clock_that_jumps_back_and_forth_counts_once() {
        let clock = tick(&SessionClock::default(), 10_000, None);
        let clock = tick(&clock, 4_000, None);
        assert_eq!(clock.elapsed_ms(), 0);
        let clock = tick(&clock, 10_500, None);
        assert_eq!(clock.elapsed_ms(), 500);
        assert_eq!(clock.now(), Timestamp::from_ms(10_500));
    }
}
