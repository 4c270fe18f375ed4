//! Tools that wait for something: the same answer is what they give until it comes.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{Class, Step, half};

/// How many things an actor may wait for at once. Of more, the one asked about
/// longest ago is forgotten, and may be asked about anew.
pub(super) const POLLS_MAX: usize = 4;

/// What an actor waits for, the latest last.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Polls(Vec<Poll>);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Poll {
    call: u64,
    outcome: u64,
    calls: u32,
    since_ms: u64,
}

impl Polls {
    /// Whether a call is a poll that may go on. Once it may not, it is a call
    /// like any other.
    pub(super) fn allow(&mut self, step: &Step) -> bool {
        let Class::Poll { until_changed, max_calls, within_ms } = step.class else { return false };
        let (call, outcome) = (half(&step.call), half(&step.outcome));
        let at = self.0.iter().position(|poll| poll.call == call);
        let known = at.map(|at| self.0.remove(at));
        let poll = match known {
            Some(poll) if !until_changed || poll.outcome == outcome => {
                Poll { outcome, calls: poll.calls.saturating_add(1), ..poll }
            }
            Some(_) | None => Poll { call, outcome, calls: 1, since_ms: step.at_ms },
        };
        let waited_ms = step.at_ms.saturating_sub(poll.since_ms);
        let allowed = poll.calls <= max_calls && waited_ms <= within_ms;
        if self.0.len() >= POLLS_MAX {
            self.0.remove(0);
        }
        self.0.push(poll);
        allowed
    }
}
