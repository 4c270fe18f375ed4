//! Calls that wait for something: the same answer is what they give until it comes.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{Class, Step, half};

/// How many things an actor may wait for at once. Of more, the one asked about
/// longest ago is forgotten, and may be asked about anew.
pub(super) const POLLS_MAX: usize = 4;

/// How an actor waits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Polls {
    /// What it asks about, the latest last.
    asked: Vec<Poll>,
    /// How it only waits. That is one thing, however long it takes each time.
    idle: Idle,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Poll {
    call: u64,
    outcome: u64,
    calls: u32,
    since_ms: u64,
}

/// So many calls that only wait, since the first of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Idle {
    calls: u32,
    since_ms: u64,
}

impl Polls {
    /// Whether a call waits and may go on with it. Once it may not, it is a call
    /// like any other; so is one that is refused, because nothing comes of that.
    pub(super) fn allow(&mut self, step: &Step) -> bool {
        if step.error.is_some_and(|error| error.protocol) {
            return false;
        }
        match step.class {
            Class::Poll { until_changed, max_calls, within_ms } => {
                let poll = self.ask(step, until_changed);
                let waited_ms = step.at_ms.saturating_sub(poll.since_ms);
                let allowed = poll.calls <= max_calls && waited_ms <= within_ms;
                if self.asked.len() >= POLLS_MAX {
                    self.asked.remove(0);
                }
                self.asked.push(poll);
                allowed
            }
            Class::Wait { max_calls, within_ms } => {
                let idle = self.idle.go_on(step.at_ms);
                let waited_ms = step.at_ms.saturating_sub(idle.since_ms);
                idle.calls <= max_calls && waited_ms <= within_ms
            }
            Class::Transparent | Class::ReadOnly | Class::Exec | Class::Other => false,
        }
    }

    /// Something new has come: it was worth waiting.
    pub(super) fn renew(&mut self) {
        self.idle = Idle::default();
    }

    /// What is asked about, taken out of what is known.
    fn ask(&mut self, step: &Step, until_changed: bool) -> Poll {
        let (call, outcome) = (half(&step.call), half(&step.outcome));
        let at = self.asked.iter().position(|poll| poll.call == call);
        let known = at.map(|at| self.asked.remove(at));
        if known.as_ref().is_some_and(|poll| poll.outcome != outcome) {
            self.renew();
        }
        match known {
            Some(poll) if !until_changed || poll.outcome == outcome => {
                Poll { outcome, calls: poll.calls.saturating_add(1), ..poll }
            }
            Some(_) | None => Poll { call, outcome, calls: 1, since_ms: step.at_ms },
        }
    }
}

impl Idle {
    /// Waits once more.
    fn go_on(&mut self, at_ms: u64) -> Self {
        let since_ms = if self.calls == 0 { at_ms } else { self.since_ms };
        *self = Self { calls: self.calls.saturating_add(1), since_ms };
        *self
    }
}
