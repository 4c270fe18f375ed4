//! Typed overrides that a guard has put in force.
//!
//! What a person says about a call is theirs and lies with the questions; these
//! come from the loop guard, bind one actor, and end when a person speaks.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{clipped, short};
use crate::digest::Digest128;
use crate::id::ActorId;
use crate::proposal::{Proposal, Touch};
use crate::time::Timestamp;
use crate::tool::Kind;
use crate::verdict::{Constraint, ConstraintKind, ConstraintScope, Decision, Violation};

/// How many are in force at a time; the oldest gives way.
const OVERRIDES_MAX: usize = 16;

/// How long a reason is kept.
const REASON_BYTES_MAX: usize = 200;

/// What an override demands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Demand {
    /// Not this call.
    Forbid(Digest128),
    /// Not this search, until there was another.
    Widen(Digest128),
    /// Nothing but this, until it was done once.
    Force(Wanted),
    /// So many more calls of a tool.
    Budget { tool: String, left: u32 },
}

/// What has to be done next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Wanted {
    /// A call of this kind.
    Kind(Kind),
    /// A call of this tool.
    Tool(String),
}

/// An override.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Override {
    pub(crate) number: u32,
    actor: u64,
    pub(crate) demand: Demand,
    /// The call that was repeated: that one again is the repeat.
    call: Digest128,
    pub(crate) reason: String,
    pub(crate) expires_at: Option<Timestamp>,
    /// The epoch up to which it makes sense; files that were changed since make
    /// the same call another one.
    until_epoch: Option<u64>,
    /// How often it was disregarded.
    pub(crate) repeats: u16,
    /// Whether it holds. One that is only observed goes the same way, and binds
    /// nobody.
    pub(crate) enforced: bool,
}

/// How a call disregards an override.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Breach {
    /// It is what was repeated.
    Repeat,
    /// It is something else that must not be now.
    Other,
}

/// An override that is still to be numbered and kept.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Draft {
    pub(crate) demand: Demand,
    pub(crate) call: Digest128,
    pub(crate) reason: String,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) enforced: bool,
}

impl Draft {
    /// The constraint as verdicts show it.
    pub(crate) fn show(&self, number: u32) -> Constraint {
        let Self { demand, reason, expires_at, enforced, .. } = self;
        show(number, demand, reason, (*expires_at, *enforced))
    }
}

impl Demand {
    pub(crate) fn kind(&self) -> ConstraintKind {
        match self {
            Self::Forbid(_) => ConstraintKind::ForbidSignature,
            Self::Widen(_) => ConstraintKind::WidenRetrieval,
            Self::Force(_) => ConstraintKind::ForceAction,
            Self::Budget { .. } => ConstraintKind::ToolBudget,
        }
    }

    fn is_breached(&self, proposal: &Proposal<'_>, call: &Digest128) -> bool {
        match self {
            Self::Forbid(forbidden) | Self::Widen(forbidden) => forbidden == call,
            Self::Force(wanted) => !wanted.is(proposal),
            Self::Budget { tool, left } => {
                *left == 0 && proposal.tools().any(|known| known.name == tool)
            }
        }
    }
}

impl Wanted {
    /// Whether a call is what has to be done.
    fn is(&self, proposal: &Proposal<'_>) -> bool {
        match self {
            // Whoever has no tool for reading reads with a command.
            Self::Kind(Kind::Read) if proposal.touches.iter().any(shows) => true,
            Self::Kind(kind) => proposal.tools().any(|tool| tool.kind == *kind),
            Self::Tool(name) => proposal.tools().any(|tool| tool.name == name),
        }
    }
}

/// Whether a file is read, and not merely searched.
fn shows(touch: &Touch) -> bool {
    !touch.changes() && !touch.recursive
}

impl Override {
    /// The constraint as verdicts show it.
    pub(crate) fn show(&self) -> Constraint {
        show(self.number, &self.demand, &self.reason, (self.expires_at, self.enforced))
    }

    fn is_over(&self, now: Timestamp, epoch: u64) -> bool {
        self.expires_at.is_some_and(|expiry| now >= expiry)
            || self.until_epoch.is_some_and(|until| epoch > until)
    }
}

fn show(
    number: u32,
    demand: &Demand,
    reason: &str,
    (expires_at, enforced): (Option<Timestamp>, bool),
) -> Constraint {
    Constraint {
        id: format!("k{number}"),
        kind: demand.kind(),
        reason: reason.to_string(),
        scope: ConstraintScope::Turn,
        expires_at,
        enforced,
    }
}

/// The overrides in force.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Overrides(Vec<Override>);

impl Overrides {
    /// Puts an override in force for an actor. `until_epoch` is the epoch that
    /// the workspace is in once this event is over.
    pub(crate) fn put(&mut self, number: u32, actor: &ActorId, draft: Draft, until_epoch: u64) {
        let Draft { demand, call, reason, expires_at, enforced } = draft;
        let actor = short(actor.as_str());
        if self.0.len() >= OVERRIDES_MAX {
            self.0.remove(0);
        }
        let until_epoch = (!matches!(demand, Demand::Budget { .. })).then_some(until_epoch);
        let reason = clipped(reason, REASON_BYTES_MAX);
        self.0.push(Override {
            number,
            actor,
            demand,
            call,
            reason,
            expires_at,
            until_epoch,
            repeats: 0,
            enforced,
        });
    }

    /// Whether an actor is under this very demand already.
    pub(crate) fn holds(&self, actor: &ActorId, draft: &Draft, now: Timestamp, epoch: u64) -> bool {
        let actor = short(actor.as_str());
        self.in_force(now, epoch).any(|known| {
            let as_much = known.enforced || !draft.enforced;
            known.actor == actor && known.demand == draft.demand && as_much
        })
    }

    /// The first override that a proposed call disregards, and how; one that
    /// holds goes before those that are only observed.
    pub(crate) fn breached(
        &self,
        actor: &ActorId,
        proposal: &Proposal<'_>,
        call: &Digest128,
        (now, epoch): (Timestamp, u64),
    ) -> Option<(&Override, Breach)> {
        let actor = short(actor.as_str());
        let breached =
            |known: &&Override| known.actor == actor && known.demand.is_breached(proposal, call);
        let such = || self.in_force(now, epoch).filter(breached);
        let found = such().find(|known| known.enforced).or_else(|| such().next())?;
        let repeats = found.call == *call || matches!(found.demand, Demand::Budget { .. });
        Some((found, if repeats { Breach::Repeat } else { Breach::Other }))
    }

    /// An override was disregarded, as an objection says. One that holds counts
    /// what it held back. One that is only observed counts what ran, and is over
    /// once it would have ended the session: nothing comes after that.
    pub(crate) fn repeated(&mut self, by: &Violation) {
        let Some(id) = by.location.as_deref() else { return };
        self.0.retain_mut(|known| {
            if known.show().id != id || (known.enforced && !by.enforced) {
                return true;
            }
            known.repeats = known.repeats.saturating_add(1);
            known.enforced || by.decision != Decision::Stop
        });
    }

    /// A call was let run: budgets shrink, and another search widens.
    pub(crate) fn ran(&mut self, actor: &ActorId, proposal: &Proposal<'_>, call: &Digest128) {
        let actor = short(actor.as_str());
        let searches = proposal.tools().any(|tool| tool.kind == Kind::Search);
        self.0.retain_mut(|known| {
            if known.actor != actor {
                return true;
            }
            match &mut known.demand {
                Demand::Budget { tool, left } if proposal.tools().any(|t| t.name == *tool) => {
                    *left = left.saturating_sub(1);
                    true
                }
                Demand::Widen(forbidden) => !(searches && forbidden != call),
                Demand::Force(wanted) => !wanted.is(proposal),
                _ => true,
            }
        });
    }

    /// Whether a constraint is in force.
    pub(crate) fn is_in_force(&self, id: &str, now: Timestamp, epoch: u64) -> bool {
        self.in_force(now, epoch).any(|known| known.show().id == id)
    }

    /// Ends a constraint.
    pub(crate) fn expire(&mut self, id: &str) {
        self.0.retain(|known| known.show().id != id);
    }

    /// A person has spoken to an actor; to the main one, for all.
    pub(crate) fn human(&mut self, actor: &ActorId) {
        let id = short(actor.as_str());
        self.0.retain(|known| !actor.is_main() && known.actor != id);
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets what is over.
    pub(crate) fn tidy(&mut self, now: Timestamp, epoch: u64) {
        self.0.retain(|known| !known.is_over(now, epoch));
    }

    /// Every override that binds somebody.
    pub(crate) fn binding(&self, now: Timestamp, epoch: u64) -> impl Iterator<Item = &Override> {
        self.in_force(now, epoch).filter(|known| known.enforced)
    }

    /// Every override in force, also those that are only observed.
    pub(crate) fn in_force(&self, now: Timestamp, epoch: u64) -> impl Iterator<Item = &Override> {
        self.0.iter().filter(move |known| !known.is_over(now, epoch))
    }
}
