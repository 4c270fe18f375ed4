//! What a session remembers: bounded, whatever an agent does.
//!
//! Rings, counters and small tables. Nothing here grows with the number of
//! events, so the work per event stays constant.

mod actors;
mod asks;
mod clock;
mod in_flight;
mod overrides;
mod pauses;
mod reads;
mod reports;
mod summary;
mod trail;
mod turn;
mod usage;
mod watched;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

pub(crate) use actors::Actors;
pub(crate) use asks::{Answered, Asks, Question, Signature};
pub(crate) use clock::Clock;
pub(crate) use in_flight::{Call, Changes, Did, InFlight, Key, Noted, Proof};
pub(crate) use overrides::{Breach, Demand, Draft, Override, Overrides, Wanted};
pub use pauses::PauseCause;
pub(crate) use pauses::Paused;
pub(crate) use reads::{Knows, Part, Reads};
pub(crate) use reports::Reports;
pub use reports::{Order, ReportFile};
pub use summary::{BudgetSummary, ContextSummary, SessionPhase, Summary, TurnSummary, Waiting};
pub(crate) use trail::Trail;
pub use trail::{ActionEnd, LastAction};
pub use turn::TurnStatus;
pub(crate) use turn::{Turn, TurnResult};
pub use usage::UsageTotals;
pub(crate) use usage::{Report, Usage};
pub(crate) use watched::Watched;

use crate::digest::Digest;
use crate::guards::advisor::Advised;
use crate::guards::completion::verification::Runs;
use crate::guards::context::Host;
use crate::guards::custom::CustomState;
use crate::guards::dirty::Dirty;
use crate::guards::effects::Effects;
use crate::guards::fallback::Fallback;
use crate::guards::feedback::{Cadence, Past};
use crate::guards::identity::Known;
use crate::guards::limits::Spent;
use crate::guards::loops::Findings;
use crate::guards::markers::Marked;
use crate::guards::progress::ProgressState;
use crate::guards::schema::Repairs;
use crate::guards::sequential::Earned;
use crate::id::{AttemptId, CallId};
use crate::time::Timestamp;
use crate::verdict::{Stop, StopCode, StopDetail};

/// The format of a serialised state. A state of a newer format is refused.
pub const STATE_FORMAT: u16 = 9;

/// The most a serialised state may take.
pub const STATE_BYTES_MAX: usize = 128 * 1024;

/// How many attempts may be open at once.
pub(crate) const ATTEMPTS_MAX: usize = 4;

/// How many of the latest calls that should not come back are remembered.
const GONE_MAX: usize = 64;

/// The memory of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct State {
    /// The last record that was applied.
    pub(crate) seq: u64,
    pub(crate) clock: Clock,
    pub(crate) phase: Phase,
    /// Who paused the session and why; it outlasts the agent's leaving.
    pub(crate) paused: Option<Paused>,
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) turn: Turn,
    /// How many times the workspace was changed.
    pub(crate) epoch: u64,
    /// How many calls came to an end that may have changed something, and iterations
    /// after whose refused stop the agent went on.
    pub(crate) work: u64,
    pub(crate) runs: Runs,
    pub(crate) in_flight: InFlight,
    pub(crate) actors: Actors,
    pub(crate) invocations: Invocations,
    pub(crate) spent: Spent,
    pub(crate) usage: Usage,
    pub(crate) host: Host,
    pub(crate) policies: Vec<PolicyState>,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) feedback: Vec<Cadence>,
    pub(crate) past: Past,
    pub(crate) effects: Effects,
    pub(crate) reads: Reads,
    pub(crate) watched: Watched,
    pub(crate) asks: Asks,
    pub(crate) overrides: Overrides,
    pub(crate) findings: Findings,
    pub(crate) dirty: Dirty,
    pub(crate) progress: ProgressState,
    /// The markers that were seen last.
    pub(crate) marked: Marked,
    pub(crate) reports: Reports,
    pub(crate) trail: Trail,
    pub(crate) repairs: Repairs,
    pub(crate) advised: Advised,
    pub(crate) fallback: Fallback,
    /// The checksum of the definition in force, where a person has put another
    /// in the place of the one that the session was opened with.
    pub(crate) reloaded: Option<Digest>,
    /// Who the agent is, and whether it is approved.
    pub(crate) identity: Known,
    /// Calls that were denied or lost, latest last. One that comes back all the
    /// same has done what it does.
    gone: Vec<Gone>,
}

/// Where a session is in its life.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Phase {
    /// Nothing has happened yet.
    #[default]
    New,
    /// At work, or held by a pause.
    Running,
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
    detail: Option<StopDetail>,
    signature: Option<String>,
}

impl From<&Stop> for Ending {
    fn from(stop: &Stop) -> Self {
        let Stop { code, detail, signature } = stop.clone();
        Self { code, detail, signature }
    }
}

impl From<&Ending> for Stop {
    fn from(ending: &Ending) -> Self {
        let Ending { code, detail, signature } = ending.clone();
        Self { code, detail, signature }
    }
}

/// One policy instance's memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum PolicyState {
    Sequential(Earned),
    Custom(CustomState),
    Stateless,
}

/// A call from which no result is expected.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Gone {
    call: u64,
    pub(crate) why: Why,
    pub(crate) mutates: bool,
}

/// Why no result of a call is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Why {
    /// It must not have run.
    Denied,
    /// Nobody knows how it ended, or it went on in the background.
    Unresolved,
}

/// An open attempt and what to go back to if it fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Attempt {
    pub(crate) id: AttemptId,
    pub(crate) policies: Vec<PolicyState>,
    /// The record that started it.
    pub(crate) since: u64,
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

impl fmt::Display for Invocations {
    /// `12: 9 ok, 3 failed`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ended = [
            ("ok", self.ok),
            ("failed", self.failed),
            ("denied", self.denied),
            ("invalid", self.invalid_arguments),
            ("unresolved", self.unresolved),
            ("timed out", self.timed_out),
            ("crashed", self.crashed),
            ("cancelled", self.cancelled),
        ];
        write!(f, "{}", self.proposed)?;
        let mut before = ": ";
        for (name, count) in ended.into_iter().filter(|(_, count)| *count > 0) {
            write!(f, "{before}{count} {name}")?;
            before = ", ";
        }
        Ok(())
    }
}

impl State {
    /// Remembers a call from which no result is expected.
    pub(crate) fn remember_gone(&mut self, call: &CallId, why: Why, mutates: bool) {
        self.forget_gone(call);
        if self.gone.len() >= GONE_MAX {
            self.gone.remove(0);
        }
        self.gone.push(Gone { call: short(call.as_str()), why, mutates });
    }

    /// Forgets a call, because it is open again or has come back.
    pub(crate) fn forget_gone(&mut self, call: &CallId) {
        let call = short(call.as_str());
        self.gone.retain(|gone| gone.call != call);
    }

    /// What is known of a call from which no result is expected.
    pub(crate) fn gone(&self, call: &CallId) -> Option<Gone> {
        let call = short(call.as_str());
        self.gone.iter().find(|gone| gone.call == call).copied()
    }
}

/// The beginning of a text that fits into so many bytes.
pub(crate) fn clipped(mut text: String, bytes_max: usize) -> String {
    if text.len() > bytes_max {
        text.truncate(text.floor_char_boundary(bytes_max.saturating_sub(3)));
        text.push('…');
    }
    text
}

/// As much of the beginning of a text as fits: names that others give are kept
/// short, because the state is bounded.
pub(crate) fn beginning(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or(text)
}

/// A short name for an id, for tables of fixed size.
pub(crate) fn short(id: &str) -> u64 {
    // FNV-1a: no secrets are compared here, and collisions only blur a hint.
    id.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
