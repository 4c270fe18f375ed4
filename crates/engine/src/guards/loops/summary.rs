//! The loop section of the status output.

use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;

use super::detector::LoopLevel;
use super::loop_state::DetectedLoop;
use crate::id::ActorId;
use crate::state::SessionState;
use crate::time::Timestamp;

/// Loops as `jackline status` shows them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LoopsSummary {
    /// Actors that are in a loop or whose calls are refused repeatedly.
    pub actors: Vec<LoopSummary>,
    /// The latest findings, oldest first.
    pub last: Vec<LoopReport>,
}

/// The loops of one actor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoopSummary {
    /// The actor.
    pub actor: ActorId,
    /// The loop that the latest call is a part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<LoopAt>,
    /// How often a call was refused for the same reason.
    pub blocked: u32,
}

/// The level of a loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoopAt {
    /// The level.
    pub level: LoopLevel,
    /// The rule that found the loop.
    pub rule: &'static str,
    /// The number of repetitions.
    pub count: u32,
    /// The call as people read it.
    pub signature: String,
}

/// A loop that was reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoopReport {
    /// When it was found.
    pub timestamp: Timestamp,
    /// The actor in the loop.
    pub actor: ActorId,
    /// The loop.
    #[serde(flatten)]
    pub at: LoopAt,
}

impl From<&DetectedLoop> for LoopAt {
    fn from(found: &DetectedLoop) -> Self {
        let (rule, signature) = (found.what.as_str(), found.shown.clone());
        Self { level: found.level, rule, count: found.count, signature }
    }
}

/// Returns the loops as `jackline status` shows them.
pub(crate) fn loops_summary(state: &SessionState) -> LoopsSummary {
    let actors = state.actors.iter().filter_map(|actor| {
        let at = actor.looping.found.as_ref().map(LoopAt::from);
        let blocked = actor.looping.blocked.count_max();
        let is_unremarkable = at.is_none() && blocked < 2;
        (!is_unremarkable).then(|| LoopSummary { actor: actor.id.clone(), at, blocked })
    });
    let last = state.findings.iter().map(|noticed| LoopReport {
        timestamp: noticed.at,
        actor: noticed.actor.clone(),
        at: LoopAt::from(&noticed.found),
    });
    LoopsSummary { actors: actors.collect(), last: last.collect() }
}
