//! Calls that wait for something: while they wait, the same result is expected.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{CallClass, CompletedCall, digest_half};

/// How many polls of one actor are tracked at once. A further poll replaces the one used longest
/// ago, whose count then starts again.
pub(super) const OPEN_POLLS_MAX: usize = 4;

/// The current waiting of an actor.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct PollTracker {
    /// The tracked polls, the latest at the end.
    asked: Vec<OpenPoll>,
    /// The calls that only wait. They count as one, whatever their durations.
    idle: IdleWait,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct OpenPoll {
    call: u64,
    outcome: u64,
    calls: u32,
    since_ms: u64,
}

/// How many calls only waited, and since when.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct IdleWait {
    calls: u32,
    since_ms: u64,
}

impl PollTracker {
    /// Returns whether a call waits and may continue to wait. After that limit it counts as any
    /// other call, and so does a refused call, because waiting for it is useless.
    pub(super) fn allow(&mut self, step: &CompletedCall) -> bool {
        if step.error.is_some_and(|error| error.protocol) {
            return false;
        }
        match step.class {
            CallClass::Poll { until_changed, max_calls, within_ms } => {
                let poll = self.update_poll(step, until_changed);
                let waited_ms = step.at_ms.saturating_sub(poll.since_ms);
                let allowed = poll.calls <= max_calls && waited_ms <= within_ms;
                if self.asked.len() >= OPEN_POLLS_MAX {
                    self.asked.remove(0);
                }
                self.asked.push(poll);
                allowed
            }
            CallClass::Wait { max_calls, within_ms } => {
                let idle = self.idle.extend(step.at_ms);
                let waited_ms = step.at_ms.saturating_sub(idle.since_ms);
                idle.calls <= max_calls && waited_ms <= within_ms
            }
            CallClass::Transparent | CallClass::ReadOnly | CallClass::Exec | CallClass::Other => {
                false
            }
        }
    }

    /// Renews the allowance for waiting, because something new arrived.
    pub(super) fn renew(&mut self) {
        self.idle = IdleWait::default();
    }

    /// Removes and updates the poll of this call.
    fn update_poll(&mut self, step: &CompletedCall, until_changed: bool) -> OpenPoll {
        let (call, outcome) = (digest_half(&step.call), digest_half(&step.outcome));
        let at = self.asked.iter().position(|poll| poll.call == call);
        let previous = at.map(|at| self.asked.remove(at));
        if previous.as_ref().is_some_and(|poll| poll.outcome != outcome) {
            self.renew();
        }
        match previous {
            Some(poll) if !until_changed || poll.outcome == outcome => {
                OpenPoll { outcome, calls: poll.calls.saturating_add(1), ..poll }
            }
            Some(_) | None => OpenPoll { call, outcome, calls: 1, since_ms: step.at_ms },
        }
    }
}

impl IdleWait {
    /// Counts one more wait.
    fn extend(&mut self, at_ms: u64) -> Self {
        let since_ms = if self.calls == 0 { at_ms } else { self.since_ms };
        *self = Self { calls: self.calls.saturating_add(1), since_ms };
        *self
    }
}
