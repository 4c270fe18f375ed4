//! What people are shown of a state.

use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;

use super::overrides::Override;
use super::{Invocations, Phase, State, UsageTotals};
use crate::definition::Definition;
use crate::guards::dirty::DirtySummary;
use crate::guards::loops::{self, LoopsSummary};
use crate::guards::progress::ProgressSummary;
use crate::id::{ActorId, CallId};
use crate::time::Timestamp;
use crate::verdict::{Constraint, Stop};

/// A state in the words of `status`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// `new`, `running`, `paused`, `stopped` or `ended`.
    pub phase: &'static str,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// Who paused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_by: Option<String>,
    /// Why it is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_why: Option<String>,
    /// The last record.
    pub seq: u64,
    /// When it began.
    pub started: Timestamp,
    /// How long it has lasted.
    pub elapsed_ms: u64,
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
    /// Calls that have not come back.
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
    pub result: Option<&'static str>,
    /// How often a stop was blocked in it.
    pub blocks: u32,
    /// Steps taken in it.
    pub steps: u64,
    /// Tokens used in it.
    pub usage: UsageTotals,
}

impl State {
    pub(crate) fn summary(&self, definition: &Definition) -> Summary {
        let (phase, stop) = match &self.phase {
            Phase::New | Phase::Running if self.paused.is_some() => ("paused", None),
            Phase::New => ("new", None),
            Phase::Running => ("running", None),
            Phase::Stopped(ending) => ("stopped", Some(Stop::from(ending))),
            Phase::Ended(ending) => ("ended", Some(Stop::from(ending))),
        };
        let paused = self.paused.clone();
        let (paused_by, paused_why) = paused.map_or((None, None), |paused| (paused.by, paused.why));
        Summary {
            phase,
            stop,
            paused_by,
            paused_why,
            seq: self.seq,
            started: self.clock.started(),
            elapsed_ms: self.clock.elapsed_ms(),
            deadline: self.deadline,
            steps: self.spent.session.steps,
            epoch: self.epoch,
            turn: TurnSummary {
                number: self.turn.number,
                result: self.turn.result.map(super::TurnResult::word),
                blocks: self.turn.blocks,
                steps: self.spent.turn.steps,
                usage: self.usage.turn,
            },
            usage: self.usage.session,
            invocations: self.invocations,
            in_flight: self
                .in_flight
                .iter()
                .map(|call| (call.id.clone(), call.tool.clone()))
                .collect(),
            actors: self.actors.iter().map(|actor| (actor.id.clone(), actor.calls)).collect(),
            waiting: self.asks.waiting().collect(),
            constraints: self
                .asks
                .in_force()
                .chain(self.overrides.in_force(self.clock.now(), self.epoch).map(Override::show))
                .collect(),
            loops: loops::summary(self),
            dirty_bits: self.dirty.summary(),
            progress: self.progress.summary(definition),
        }
    }
}
