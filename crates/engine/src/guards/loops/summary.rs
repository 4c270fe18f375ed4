//! What people are shown of loops.

use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;

use super::detector::LoopLevel;
use super::memory::Found;
use crate::id::ActorId;
use crate::state::State;
use crate::time::Timestamp;

/// Loops in the words of `status`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LoopsSummary {
    /// Who goes in circles just now, or is refused the same again.
    pub actors: Vec<LoopSummary>,
    /// What was found last, oldest first.
    pub last: Vec<LoopNoticed>,
}

/// How it stands with one actor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoopSummary {
    /// The actor.
    pub actor: ActorId,
    /// The loop that the latest call is part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<LoopAt>,
    /// How often a call was refused for the same reason.
    pub blocked: u32,
}

/// How far a loop has gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoopAt {
    /// How far it has gone.
    pub level: LoopLevel,
    /// What makes it a loop.
    pub rule: &'static str,
    /// How often.
    pub count: u32,
    /// The call as people read it.
    pub signature: String,
}

/// A loop that was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoopNoticed {
    /// When.
    pub timestamp: Timestamp,
    /// Of whom.
    pub actor: ActorId,
    /// What was found.
    #[serde(flatten)]
    pub at: LoopAt,
}

impl From<&Found> for LoopAt {
    fn from(found: &Found) -> Self {
        let (rule, signature) = (found.what.word(), found.shown.clone());
        Self { level: found.level, rule, count: found.count, signature }
    }
}

/// Loops in the words of `status`.
pub(crate) fn of(state: &State) -> LoopsSummary {
    let actors = state.actors.iter().filter_map(|actor| {
        let at = actor.looping.found.as_ref().map(LoopAt::from);
        let blocked = actor.looping.blocked.most();
        let quiet = at.is_none() && blocked < 2;
        (!quiet).then(|| LoopSummary { actor: actor.id.clone(), at, blocked })
    });
    let last = state.findings.iter().map(|noticed| LoopNoticed {
        timestamp: noticed.at,
        actor: noticed.actor.clone(),
        at: LoopAt::from(&noticed.found),
    });
    LoopsSummary { actors: actors.collect(), last: last.collect() }
}
