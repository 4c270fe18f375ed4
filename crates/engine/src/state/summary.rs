//! The summary of a session for people.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Serialize, Serializer};

use super::actors::ActorState;
use super::clock::SessionClock;
use super::{
    Invocations, LastAction, Override, PauseCause, PauseState, Phase, ReportFile, SessionState,
    TurnStatus, UsageTotals,
};
use crate::definition::{Definition, LimitPeriod};
use crate::facts::{ControlFiles, Now};
use crate::guards::advisor::AdvisorSummary;
use crate::guards::dirty::DirtySummary;
use crate::guards::limits::{LimitKey, measure_all_limits};
use crate::guards::loops::{self, LoopsSummary};
use crate::guards::progress::{ProgressSummary, TestCounts};
use crate::id::{ActorId, CallId};
use crate::time::Timestamp;
use crate::verdict::{Constraint, ContextLevel, SessionStop};
use crate::words::words;

/// A session in the vocabulary of `jackline status`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionSummary {
    /// The phase of the session.
    pub phase: SessionPhase,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<SessionStop>,
    /// Who paused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_by: Option<String>,
    /// Why it is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_why: Option<String>,
    /// The cause of the pause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_cause: Option<PauseCause>,
    /// Whether it was paused only by a person's control file at the last check.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub paused_by_file: bool,
    /// The number of the last record.
    pub seq: u64,
    /// When it began.
    pub started: Timestamp,
    /// How long it had lasted at the last record.
    pub elapsed_ms: u64,
    #[serde(skip)]
    clock: SessionClock,
    /// When it must be finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// The number of steps.
    pub steps: u64,
    /// A number that grows with every change of the workspace.
    pub epoch: u64,
    /// The current turn.
    pub turn: TurnSummary,
    /// Tokens used.
    pub usage: UsageTotals,
    /// How calls ended.
    pub invocations: Invocations,
    /// Calls that may run and have no result yet.
    pub in_flight: Vec<(Option<CallId>, String)>,
    /// The actors, and the number of calls that each proposed.
    pub actors: Vec<(ActorId, u64)>,
    /// Calls that wait for a person.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingCall>,
    /// The constraints that a person's answer or a guard has put in force.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<Constraint>,
    /// The loops of the actors.
    pub loops: LoopsSummary,
    /// Whether code was changed, and tested since.
    pub dirty_bits: DirtySummary,
    /// The progress of the iterations.
    pub progress: ProgressSummary,
    /// The counts of the latest test run that printed them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestCounts>,
    /// Every limit and its use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<BudgetSummary>,
    /// How full the contexts are, if the definition checks that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<ContextSummary>,
    /// When the main agent's context was last compacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_compaction: Option<Timestamp>,
    /// How often an advisor was asked, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advisor: Option<AdvisorSummary>,
    /// The model that does the work, as last reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The first prompt of a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// The latest actions of the agent, the most recent last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub last_actions: Vec<LastAction>,
    /// Report files that exist, serialised as their paths.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "serialize_paths")]
    pub reports: Vec<ReportFile>,
}

words! {
    /// The phase of a session.
    SessionPhase {
        /// Nothing has happened yet.
        New = "new",
        /// The agent works.
        Running = "running",
        /// A person, a guard or a control file has paused it.
        Paused = "paused",
        /// A terminal stop ended it. Only a reset reopens it.
        Stopped = "stopped",
        /// The agent left. It may start again.
        Ended = "ended",
    }
}

impl SessionPhase {
    /// Whether the session has neither stopped nor ended.
    pub fn is_open(self) -> bool {
        matches!(self, Self::New | Self::Running | Self::Paused)
    }
}

fn serialize_paths<S: Serializer>(
    reports: &[ReportFile],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(reports.iter().map(|report| report.path()))
}

/// A limit in the vocabulary of `jackline status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BudgetSummary {
    /// The key below `limits`.
    #[serde(rename = "dimension")]
    pub key: LimitKey,
    /// The used amount, in millionths of a dollar for `cost_usd`.
    pub used: u64,
    /// The limit in the same unit, including the amounts that a person has added.
    pub max: u64,
    /// The period over which it is counted.
    pub per: LimitPeriod,
    /// Whether reaching it only causes a warning.
    pub soft: bool,
    /// Models whose cost is not included.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unpriced: Vec<String>,
}

/// A context in the vocabulary of `jackline status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContextSummary {
    /// The actor whose context it is.
    pub actor: ActorId,
    /// Tokens in the context, if they are reported.
    pub used: Option<u64>,
    /// Size of the context window in tokens, if it is known.
    pub window: Option<u64>,
    /// The used part of the window in percent.
    pub pct: Option<u64>,
    /// The level that results from it.
    pub level: ContextLevel,
    /// Whether the numbers are an estimate.
    pub estimated: bool,
    /// The number of consecutive compactions that freed almost nothing.
    pub ineffective: u32,
}

/// A call that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WaitingCall {
    /// The record in which the person was asked.
    pub seq: u64,
    /// Earlier records in which the person was asked about the same call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<u64>,
    /// When the person was last asked.
    pub asked_at: Timestamp,
    /// The tool.
    pub tool: String,
    /// What the call would do: the command line, or the file.
    pub does: String,
    /// Why approval is needed.
    pub why: String,
    /// Whether the client itself asks the person now. If the person answers there, this question
    /// ends.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub in_client: bool,
}

/// A turn in the vocabulary of `jackline status`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TurnSummary {
    /// The number of the turn, from 1.
    pub number: u64,
    /// How it ended; `None` while it is open.
    pub result: Option<TurnStatus>,
    /// How often a stop was blocked in it.
    pub blocks: u32,
    /// The number of steps in it.
    pub steps: u64,
    /// Tokens used in it.
    pub usage: UsageTotals,
}

impl SessionSummary {
    /// Whether a person, a guard or a control file has paused the session.
    pub fn is_paused(&self) -> bool {
        self.phase == SessionPhase::Paused
    }

    /// Whether the session has neither stopped nor ended.
    pub fn is_open(&self) -> bool {
        self.phase.is_open()
    }

    /// The duration of the session now. Guards only know the duration at the last event.
    pub fn elapsed_at(&self, now: &Now) -> u64 {
        self.clock.elapsed_at(now)
    }
}

impl SessionState {
    pub(crate) fn summary(&self, definition: &Definition) -> SessionSummary {
        let (phase, stop) = match &self.phase {
            Phase::New | Phase::Running if self.paused.is_some() || self.control_files.pause => {
                (SessionPhase::Paused, None)
            }
            Phase::New => (SessionPhase::New, None),
            Phase::Running => (SessionPhase::Running, None),
            Phase::Stopped(ending) => (SessionPhase::Stopped, Some(SessionStop::from(ending))),
            Phase::Ended(ending) => (SessionPhase::Ended, Some(SessionStop::from(ending))),
        };
        let by_file = self.control_files.pause.then(|| {
            let why = Some(format!("`{}` exists", ControlFiles::PAUSE));
            PauseState::by_person(None, why)
        });
        let paused = self.paused.clone().or(by_file);
        let paused_cause = paused.as_ref().map(|paused| paused.cause);
        let (paused_by, paused_why) = paused.map_or((None, None), |paused| (paused.by, paused.why));
        SessionSummary {
            phase,
            stop,
            paused_by,
            paused_why,
            paused_cause,
            paused_by_file: self.paused.is_none() && self.control_files.pause,
            seq: self.seq,
            started: self.clock.started(),
            elapsed_ms: self.clock.elapsed_ms(),
            clock: self.clock.clone(),
            deadline: self.deadline,
            steps: self.spent.session.steps,
            epoch: self.epoch,
            turn: TurnSummary {
                number: self.turn.number,
                result: self.turn.result.map(super::TurnResult::status),
                blocks: self.turn.blocks,
                steps: self.spent.turn.steps,
                usage: self.usage.turn,
            },
            usage: self.usage.session,
            invocations: self.invocations,
            in_flight: self
                .in_flight
                .iter()
                // A call that waits for approval does not run yet; it is listed under `waiting`.
                .filter(|call| !call.needs_approval())
                .map(|call| (call.id.clone(), call.tool.clone()))
                .collect(),
            actors: self.actors.iter().map(|actor| (actor.id.clone(), actor.calls)).collect(),
            waiting: self.approvals.waiting_calls().collect(),
            constraints: self
                .approvals
                .in_force()
                .chain(
                    self.overrides
                        .enforced(self.clock.now(), self.epoch)
                        .map(Override::to_constraint),
                )
                .collect(),
            loops: loops::summary(self),
            dirty_bits: self.dirty.summary(),
            progress: self.progress.summary(definition),
            tests: self.progress.counts,
            budgets: self.budgets(definition),
            context: self.contexts(definition),
            last_compaction: self.host.last_compaction,
            advisor: self.advised.summary(definition),
            model: self.fallback.model.clone(),
            goal: self.action_trail.goal.clone(),
            last_actions: self.action_trail.actions().collect(),
            reports: self.reports.written.clone(),
        }
    }

    fn budgets(&self, definition: &Definition) -> Vec<BudgetSummary> {
        measure_all_limits(definition, self, self.clock.elapsed_ms())
            .map(|measured| BudgetSummary {
                key: measured.key(),
                used: measured.used,
                max: measured.limit.max,
                per: measured.limit.per,
                soft: measured.limit.soft,
                unpriced: measured.unpriced.to_vec(),
            })
            .collect()
    }

    fn contexts(&self, definition: &Definition) -> Vec<ContextSummary> {
        let Some(settings) = definition.context else { return Vec::new() };
        let show = |actor: &ActorState| {
            let status = actor.fill.status(settings, self.host.can_compact());
            ContextSummary {
                actor: actor.id.clone(),
                used: status.used,
                window: status.window,
                pct: status.pct,
                level: status.level,
                estimated: status.estimated,
                ineffective: actor.fill.ineffective,
            }
        };
        self.actors.iter().map(show).collect()
    }
}
