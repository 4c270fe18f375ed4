//! What people are shown of a state.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Serialize, Serializer};

use super::actors::Actor;
use super::clock::Clock;
use super::{
    Invocations, LastAction, Override, PauseCause, Paused, Phase, ReportFile, State, TurnStatus,
    UsageTotals,
};
use crate::definition::{Definition, Per};
use crate::facts::{Markers, Now};
use crate::guards::advisor::AdvisorSummary;
use crate::guards::dirty::DirtySummary;
use crate::guards::limits::{LimitKey, budgets};
use crate::guards::loops::{self, LoopsSummary};
use crate::guards::progress::{ProgressSummary, TestCounts};
use crate::id::{ActorId, CallId};
use crate::time::Timestamp;
use crate::verdict::{Constraint, ContextLevel, Stop};
use crate::words::words;

/// A state in the words of `status`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Where it is in its life.
    pub phase: SessionPhase,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// Who paused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_by: Option<String>,
    /// Why it is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_why: Option<String>,
    /// What it is paused for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_cause: Option<PauseCause>,
    /// Whether nothing but a person's file held it when it was looked at last.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub paused_by_file: bool,
    /// The last record.
    pub seq: u64,
    /// When it began.
    pub started: Timestamp,
    /// How long it had lasted at the last record.
    pub elapsed_ms: u64,
    #[serde(skip)]
    clock: Clock,
    /// When it must be over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Steps taken.
    pub steps: u64,
    /// How often the workspace was changed.
    pub epoch: u64,
    /// The turn at hand.
    pub turn: TurnSummary,
    /// Tokens used.
    pub usage: UsageTotals,
    /// How calls ended.
    pub invocations: Invocations,
    /// Calls that were let run and have not come back.
    pub in_flight: Vec<(Option<CallId>, String)>,
    /// Who acted, and how many calls each proposed.
    pub actors: Vec<(ActorId, u64)>,
    /// Calls that wait for a person.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Waiting>,
    /// What a person's word or a guard has put in force.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<Constraint>,
    /// Who goes in circles.
    pub loops: LoopsSummary,
    /// Whether code was changed, and tested since.
    pub dirty_bits: DirtySummary,
    /// How iterations went.
    pub progress: ProgressSummary,
    /// The counts of the latest run of tests that said them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestCounts>,
    /// Every limit, and what was used of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<BudgetSummary>,
    /// How full the contexts are, where the definition looks at them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<ContextSummary>,
    /// How often an advisor was asked, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advisor: Option<AdvisorSummary>,
    /// The model that goes on with the work, as it was told last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What a person asked for first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// What the agent did last, the latest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub last_actions: Vec<LastAction>,
    /// Reports for people that are out; serialised as their paths.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "paths")]
    pub reports: Vec<ReportFile>,
}

words! {
    /// Where a session is in its life.
    SessionPhase {
        /// Nothing has happened yet.
        New = "new",
        /// It is at work.
        Running = "running",
        /// A person, a guard or a file holds it.
        Paused = "paused",
        /// A terminal stop ended it; only a reset opens it again.
        Stopped = "stopped",
        /// The agent left, and may come back.
        Ended = "ended",
    }
}

impl SessionPhase {
    /// Whether the session is neither stopped nor ended.
    pub fn is_open(self) -> bool {
        matches!(self, Self::New | Self::Running | Self::Paused)
    }
}

fn paths<S: Serializer>(reports: &[ReportFile], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(reports.iter().map(|report| report.path()))
}

/// A limit in the words of `status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BudgetSummary {
    /// Its key below `limits`.
    #[serde(rename = "dimension")]
    pub key: LimitKey,
    /// What was used; millionths of a dollar for `cost_usd`.
    pub used: u64,
    /// What may be used, in the same unit, with what a person has added.
    pub max: u64,
    /// What it is counted over.
    pub per: Per,
    /// Whether reaching it only warns.
    pub soft: bool,
    /// Models whose cost is not in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unpriced: Vec<String>,
}

/// A context in the words of `status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContextSummary {
    /// Whose it is.
    pub actor: ActorId,
    /// Tokens in it, where somebody reports them.
    pub used: Option<u64>,
    /// Tokens it holds, where that is known.
    pub window: Option<u64>,
    /// How much of it is used, in percent.
    pub pct: Option<u64>,
    /// What that calls for.
    pub level: ContextLevel,
    /// Whether it was guessed.
    pub estimated: bool,
    /// Compactions in a row that freed next to nothing.
    pub ineffective: u32,
}

/// A call that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Waiting {
    /// The record in which they were asked.
    pub seq: u64,
    /// Earlier records in which they were asked about exactly this call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<u64>,
    /// When they were asked last.
    pub asked_at: Timestamp,
    /// The tool.
    pub tool: String,
    /// What it would do: the command line, or the file.
    pub does: String,
    /// Why somebody has to be asked.
    pub why: String,
}

/// A turn in the words of `status`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TurnSummary {
    /// Counts from 1.
    pub number: u64,
    /// How it ended; none while it is open.
    pub result: Option<TurnStatus>,
    /// How often a stop was blocked in it.
    pub blocks: u32,
    /// Steps taken in it.
    pub steps: u64,
    /// Tokens used in it.
    pub usage: UsageTotals,
}

impl Summary {
    /// Whether a person, a guard or a file holds the session.
    pub fn is_paused(&self) -> bool {
        self.phase == SessionPhase::Paused
    }

    /// Whether the session is neither stopped nor ended.
    pub fn is_open(&self) -> bool {
        self.phase.is_open()
    }

    /// How long the session will have lasted if something happens now. Guards know it only
    /// at an event.
    pub fn elapsed_at(&self, now: &Now) -> u64 {
        self.clock.elapsed_at(now)
    }
}

impl State {
    pub(crate) fn summary(&self, definition: &Definition) -> Summary {
        let (phase, stop) = match &self.phase {
            Phase::New | Phase::Running if self.paused.is_some() || self.marked.pause => {
                (SessionPhase::Paused, None)
            }
            Phase::New => (SessionPhase::New, None),
            Phase::Running => (SessionPhase::Running, None),
            Phase::Stopped(ending) => (SessionPhase::Stopped, Some(Stop::from(ending))),
            Phase::Ended(ending) => (SessionPhase::Ended, Some(Stop::from(ending))),
        };
        let by_file = self.marked.pause.then(|| {
            let why = Some(format!("`{}` is there", Markers::PAUSE));
            Paused::by_person(None, why)
        });
        let paused = self.paused.clone().or(by_file);
        let paused_cause = paused.as_ref().map(|paused| paused.cause);
        let (paused_by, paused_why) = paused.map_or((None, None), |paused| (paused.by, paused.why));
        Summary {
            phase,
            stop,
            paused_by,
            paused_why,
            paused_cause,
            paused_by_file: self.paused.is_none() && self.marked.pause,
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
                // What a person is asked about was not let run; it waits below.
                .filter(|call| !call.asked)
                .map(|call| (call.id.clone(), call.tool.clone()))
                .collect(),
            actors: self.actors.iter().map(|actor| (actor.id.clone(), actor.calls)).collect(),
            waiting: self.asks.waiting().collect(),
            constraints: self
                .asks
                .in_force()
                .chain(self.overrides.binding(self.clock.now(), self.epoch).map(Override::show))
                .collect(),
            loops: loops::summary(self),
            dirty_bits: self.dirty.summary(),
            progress: self.progress.summary(definition),
            tests: self.progress.counts,
            budgets: self.budgets(definition),
            context: self.contexts(definition),
            advisor: self.advised.summary(definition),
            model: self.fallback.model.clone(),
            goal: self.trail.goal.clone(),
            last_actions: self.trail.actions().collect(),
            reports: self.reports.out.clone(),
        }
    }

    fn budgets(&self, definition: &Definition) -> Vec<BudgetSummary> {
        budgets(definition, self, self.clock.elapsed_ms())
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
        let show = |actor: &Actor| {
            let standing = actor.fill.standing(settings, self.host.compacts());
            ContextSummary {
                actor: actor.id.clone(),
                used: standing.used,
                window: standing.window,
                pct: standing.pct,
                level: standing.level,
                estimated: standing.estimated,
                ineffective: actor.fill.ineffective,
            }
        };
        self.actors.iter().map(show).collect()
    }
}
