//! What a session remembers: bounded, whatever an agent does.
//!
//! Rings, counters and small tables. Nothing here grows with the number of
//! events, so the work per event stays constant.

mod actors;
mod clock;
mod in_flight;
mod summary;
mod turn;
mod usage;

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

pub(crate) use actors::Actors;
pub(crate) use clock::Clock;
pub(crate) use in_flight::{Call, InFlight, Key};
pub use summary::{Summary, TurnSummary};
pub(crate) use turn::{Turn, TurnResult};
pub(crate) use usage::Usage;
pub use usage::UsageTotals;

use crate::guards::custom::CustomState;
use crate::guards::limits::Spent;
use crate::guards::sequential::Earned;
use crate::id::AttemptId;
use crate::time::Timestamp;
use crate::verdict::{Stop, StopCode};

/// The format of a serialised state. A state of a newer format is refused.
pub const STATE_FORMAT: u16 = 1;

/// The most a serialised state may take.
pub const STATE_BYTES_MAX: usize = 128 * 1024;

/// How many attempts may be open at once.
pub(crate) const ATTEMPTS_MAX: usize = 8;

/// How many of the latest denied calls are remembered.
const DENIED_MAX: usize = 32;

/// The memory of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct State {
    /// The last record that was applied.
    pub(crate) seq: u64,
    pub(crate) clock: Clock,
    pub(crate) phase: Phase,
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) turn: Turn,
    /// How many times the workspace was changed.
    pub(crate) epoch: u64,
    pub(crate) in_flight: InFlight,
    pub(crate) actors: Actors,
    pub(crate) invocations: Invocations,
    pub(crate) spent: Spent,
    pub(crate) usage: Usage,
    pub(crate) policies: Vec<PolicyState>,
    pub(crate) attempts: Vec<Attempt>,
    /// Calls that were denied, latest last, and whether they change files: a
    /// result for one of them means that the client ran it all the same.
    denied: Vec<(u64, bool)>,
}

/// Where a session is in its life.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Phase {
    /// Nothing has happened yet.
    #[default]
    New,
    /// At work.
    Running,
    /// Waiting for a person.
    Paused {
        /// Who paused it.
        by: Option<String>,
        /// Why.
        why: Option<String>,
    },
    /// Ended by a terminal stop; only a reset opens it again.
    Stopped(Ending),
    /// The agent left; it may come back.
    Ended(Ending),
}

/// How a session ended, as the state keeps it: a [`Stop`] leaves out what is
/// empty, and the compact form can't do without.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ending {
    code: StopCode,
    detail: Option<String>,
}

impl From<&Stop> for Ending {
    fn from(stop: &Stop) -> Self {
        Self { code: stop.code, detail: stop.detail.clone() }
    }
}

impl From<&Ending> for Stop {
    fn from(ending: &Ending) -> Self {
        Self { code: ending.code, detail: ending.detail.clone() }
    }
}

/// One policy instance's memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum PolicyState {
    Sequential(Earned),
    Custom(CustomState),
}

/// An open attempt and what to go back to if it fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Attempt {
    pub(crate) id: AttemptId,
    pub(crate) policies: Vec<PolicyState>,
}

/// How calls ended. All counters about calls derive from these.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invocations {
    /// Proposed, whatever came of it.
    pub proposed: u64,
    /// Not run: the arguments were no arguments.
    pub invalid_arguments: u64,
    /// Not run: a guard objected.
    pub denied: u64,
    /// Nobody knows: no result came.
    pub unresolved: u64,
    /// Ran out of time.
    pub timed_out: u64,
    /// The tool died.
    pub crashed: u64,
    /// Failed.
    pub failed: u64,
    /// Broken off.
    pub cancelled: u64,
    /// Succeeded.
    pub ok: u64,
}

impl State {
    /// Remembers a denied call.
    pub(crate) fn remember_denied(&mut self, call: u64, mutates: bool) {
        self.forget_denied(call);
        if self.denied.len() >= DENIED_MAX {
            self.denied.remove(0);
        }
        self.denied.push((call, mutates));
    }

    /// Forgets a denied call, because it was allowed in the end.
    pub(crate) fn forget_denied(&mut self, call: u64) {
        self.denied.retain(|(denied, _)| *denied != call);
    }

    /// Whether a call is among the latest denied ones, and if so whether it
    /// changes files.
    pub(crate) fn denied(&self, call: u64) -> Option<bool> {
        self.denied.iter().find(|(denied, _)| *denied == call).map(|(_, mutates)| *mutates)
    }
}

/// A short name for an id, for tables of fixed size.
pub(crate) fn short(id: &str) -> u64 {
    // FNV-1a: no secrets are compared here, and collisions only blur a hint.
    id.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
