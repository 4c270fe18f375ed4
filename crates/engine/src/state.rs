//! The state of a session. Its size is bounded, whatever an agent does.
//!
//! It consists of rings, counters and small tables. Nothing grows with the number of events, so the
//! work per event stays constant.

mod action_trail;
mod actors;
mod approvals;
mod clock;
mod in_flight;
mod overrides;
mod pauses;
mod protected_files;
mod read_memory;
mod reports;
mod summary;
mod turn;
mod usage;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

pub(crate) use action_trail::ActionTrail;
pub use action_trail::{ActionEnd, LastAction};
pub(crate) use actors::Actors;
pub(crate) use approvals::{ApprovalAnswer, ApprovalQuestion, Approvals, CallSignature};
pub(crate) use clock::SessionClock;
pub(crate) use in_flight::{
    AwaitedApproval, CallFile, CallKey, ChangeCertainty, FileAccess, InFlight, InFlightCall,
    ToolProof,
};
pub(crate) use overrides::{
    ForcedAction, Override, OverrideBreach, OverrideDemand, OverrideDraft, Overrides,
};
pub use pauses::PauseCause;
pub(crate) use pauses::PauseState;
pub(crate) use protected_files::ProtectedFiles;
pub(crate) use read_memory::{FileKnowledge, FilePart, ReadMemory};
pub(crate) use reports::ReportState;
pub use reports::{ReportChange, ReportFile};
pub use summary::{
    BudgetSummary, ContextSummary, SessionPhase, SessionSummary, TurnSummary, WaitingCall,
};
pub use turn::TurnStatus;
pub(crate) use turn::{TurnResult, TurnState};
pub use usage::UsageTotals;
pub(crate) use usage::{UsageCounter, UsageReport};

use crate::digest::Digest;
use crate::guards::advisor::AdvisorUsage;
use crate::guards::completion::verification::CheckRuns;
use crate::guards::context::HostAgent;
use crate::guards::control_files::PresentControlFiles;
use crate::guards::custom::CustomPolicyState;
use crate::guards::dirty::{BitsBeforeAttempt, DirtyState};
use crate::guards::effects::RecordedEffects;
use crate::guards::fallback::FallbackState;
use crate::guards::feedback::{FeedbackCadence, FeedbackHistory};
use crate::guards::identity::SessionIdentity;
use crate::guards::limits::SpentBudget;
use crate::guards::loops::RecordedLoops;
use crate::guards::progress::ProgressState;
use crate::guards::schema::RepairRequests;
use crate::guards::sequential_dependency::PrerequisiteEpochs;
use crate::id::{ActorId, AttemptId, CallId};
use crate::time::Timestamp;
use crate::verdict::{SessionStop, StopCode, StopDetail};

/// The format of a serialised state. A state of a newer format is refused.
pub const STATE_FORMAT: u16 = 11;

/// The maximum size of a serialised state.
pub const STATE_BYTES_MAX: usize = 128 * 1024;

/// How many attempts may be open at once.
pub(crate) const ATTEMPTS_MAX: usize = 4;

/// How many of the latest calls without an expected result are remembered.
const CLOSED_CALLS_MAX: usize = 64;

/// The state of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SessionState {
    /// The last record that was applied.
    pub(crate) seq: u64,
    pub(crate) clock: SessionClock,
    pub(crate) phase: Phase,
    /// Who paused the session and why. A pause stays in force when the agent leaves.
    pub(crate) paused: Option<PauseState>,
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) turn: TurnState,
    /// A number that grows with every change of the workspace.
    pub(crate) epoch: u64,
    /// The number of finished calls that may have changed something, plus the number of iterations
    /// after a refused stop.
    pub(crate) work: u64,
    pub(crate) runs: CheckRuns,
    pub(crate) in_flight: InFlight,
    pub(crate) actors: Actors,
    pub(crate) invocations: Invocations,
    pub(crate) spent: SpentBudget,
    pub(crate) usage: UsageCounter,
    pub(crate) host: HostAgent,
    pub(crate) policies: Vec<PolicyState>,
    pub(crate) attempts: Vec<AttemptInProgress>,
    pub(crate) feedback: Vec<FeedbackCadence>,
    pub(crate) past: FeedbackHistory,
    pub(crate) effects: RecordedEffects,
    pub(crate) reads: ReadMemory,
    pub(crate) protected_files: ProtectedFiles,
    pub(crate) approvals: Approvals,
    pub(crate) overrides: Overrides,
    pub(crate) findings: RecordedLoops,
    pub(crate) dirty: DirtyState,
    pub(crate) progress: ProgressState,
    /// Which control files existed when they were last checked.
    pub(crate) control_files: PresentControlFiles,
    pub(crate) reports: ReportState,
    pub(crate) action_trail: ActionTrail,
    pub(crate) repairs: RepairRequests,
    pub(crate) advised: AdvisorUsage,
    pub(crate) fallback: FallbackState,
    /// The checksum of the definition in force, if a person's reload replaced the definition with
    /// which the session was opened.
    pub(crate) reloaded: Option<Digest>,
    /// The identity of the agent, and whether it is approved.
    pub(crate) identity: SessionIdentity,
    /// Calls that were denied or have no result, the latest last. If a result arrives anyway, the
    /// call had its effect.
    gone: Vec<ClosedCall>,
}

/// The phase of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Phase {
    /// Nothing has happened yet.
    #[default]
    New,
    /// The agent works, or a pause blocks it.
    Running,
    /// A terminal stop ended the session. Only a reset reopens it.
    Stopped(StoredStop),
    /// The agent left. It may start again.
    Ended(StoredStop),
}

/// How a session ended, in the form of the state. A [`SessionStop`] omits empty fields when it is
/// serialised, which the compact format of the state does not allow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredStop {
    code: StopCode,
    detail: Option<StopDetail>,
    signature: Option<String>,
}

impl From<&SessionStop> for StoredStop {
    fn from(stop: &SessionStop) -> Self {
        let SessionStop { code, detail, signature } = stop.clone();
        Self { code, detail, signature }
    }
}

impl From<&StoredStop> for SessionStop {
    fn from(ending: &StoredStop) -> Self {
        let StoredStop { code, detail, signature } = ending.clone();
        Self { code, detail, signature }
    }
}

/// The state of one policy instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum PolicyState {
    Sequential(PrerequisiteEpochs),
    Custom(CustomPolicyState),
    Stateless,
}

/// A call for which no result is expected.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct ClosedCall {
    call: u64,
    pub(crate) reason: CloseReason,
    pub(crate) mutates: bool,
}

/// Why no result is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CloseReason {
    /// It was denied.
    Denied,
    /// How it ended is unknown, or it continued in the background.
    Unresolved,
}

/// An open attempt, and the state that is restored if it fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AttemptInProgress {
    pub(crate) id: AttemptId,
    /// The actor that works on it.
    pub(crate) actor: ActorId,
    pub(crate) policies: Vec<PolicyState>,
    pub(crate) bits: BitsBeforeAttempt,
    /// The record that started it.
    pub(crate) since: u64,
}

/// How calls ended. All counters of calls are derived from these.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invocations {
    /// All proposed calls.
    pub proposed: u64,
    /// Not run: the arguments were invalid.
    pub invalid_arguments: u64,
    /// Not run: a guard reported a violation.
    pub denied: u64,
    /// Not run: a person was asked, and has not approved the call.
    pub not_approved: u64,
    /// Unknown: there was no result.
    pub unresolved: u64,
    /// Exceeded their timeout.
    pub timed_out: u64,
    /// The tool process crashed.
    pub crashed: u64,
    /// Failed.
    pub failed: u64,
    /// Interrupted.
    pub cancelled: u64,
    /// Succeeded.
    pub ok: u64,
}

impl fmt::Display for Invocations {
    /// `12: 9 ok, 3 failed`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [
            ("ok", self.ok),
            ("failed", self.failed),
            ("denied", self.denied),
            ("not approved", self.not_approved),
            ("invalid", self.invalid_arguments),
            ("unresolved", self.unresolved),
            ("timed out", self.timed_out),
            ("crashed", self.crashed),
            ("cancelled", self.cancelled),
        ];
        write!(f, "{}", self.proposed)?;
        let mut before = ": ";
        for (name, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            write!(f, "{before}{count} {name}")?;
            before = ", ";
        }
        Ok(())
    }
}

impl SessionState {
    /// The number of calls that feedback counts: those under the definition of this name.
    pub(crate) fn feedback_calls(&self) -> u64 {
        self.past.count_calls(self.invocations.proposed)
    }

    /// Records a call for which no result is expected.
    pub(crate) fn remember_closed_call(&mut self, call: &CallId, why: CloseReason, mutates: bool) {
        self.forget_closed_call(call);
        if self.gone.len() >= CLOSED_CALLS_MAX {
            self.gone.remove(0);
        }
        self.gone.push(ClosedCall { call: short_hash(call.as_str()), reason: why, mutates });
    }

    /// Removes a call that is open again or has a result.
    pub(crate) fn forget_closed_call(&mut self, call: &CallId) {
        let call = short_hash(call.as_str());
        self.gone.retain(|gone| gone.call != call);
    }

    /// The entry of a call for which no result is expected.
    pub(crate) fn gone(&self, call: &CallId) -> Option<ClosedCall> {
        let call = short_hash(call.as_str());
        self.gone.iter().find(|gone| gone.call == call).copied()
    }
}

/// The beginning of a text that fits into this number of bytes, with an ellipsis.
pub(crate) fn clip_text(mut text: String, bytes_max: usize) -> String {
    if text.len() > bytes_max {
        text.truncate(text.floor_char_boundary(bytes_max.saturating_sub(3)));
        text.push('…');
    }
    text
}

/// The beginning of a text that fits into this number of bytes. Names from outside are shortened,
/// because the state is bounded.
pub(crate) fn text_prefix(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or(text)
}

/// A hash of an id, for tables of fixed size.
pub(crate) fn short_hash(id: &str) -> u64 {
    // FNV-1a is enough: no secrets are compared here, and a collision has no serious effect.
    id.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
