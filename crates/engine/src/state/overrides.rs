//! Typed overrides that a guard has put in force.
//!
//! The answers of people about single calls are stored with the approvals. The overrides here come
//! from the loop guard, apply to one actor, and end with the next prompt of a person.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{clip_text, short_hash};
use crate::digest::Digest128;
use crate::id::ActorId;
use crate::proposal::{FileTouch, Proposal};
use crate::time::Timestamp;
use crate::tool::ToolKind;
use crate::verdict::{Constraint, ConstraintKind, ConstraintScope, Decision, Violation};

/// How many overrides are in force at a time. If there are more, the oldest is removed.
const OVERRIDES_MAX: usize = 16;

/// How many bytes of a reason are stored.
const REASON_BYTES_MAX: usize = 200;

/// The demand of an override.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum OverrideDemand {
    /// This call may not run.
    Forbid(Digest128),
    /// This search may not run until another search has run.
    Widen(Digest128),
    /// Only this action may run, until it has run once.
    Force(ForcedAction),
    /// This number of calls of a tool may still run.
    Budget { tool: String, left: u32 },
}

/// The action that must run next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ForcedAction {
    /// A call of this kind.
    Kind(ToolKind),
    /// A call of this tool.
    Tool(String),
}

/// An override.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Override {
    pub(crate) number: u32,
    actor: u64,
    pub(crate) demand: OverrideDemand,
    /// The call that was repeated. The same call counts as a repetition.
    call: Digest128,
    pub(crate) reason: String,
    pub(crate) expires_at: Option<Timestamp>,
    /// The last epoch in which it is in force. After a change of files, the same call is no longer
    /// a repetition.
    until_epoch: Option<u64>,
    /// How often it was violated.
    pub(crate) repeats: u16,
    /// Whether it is enforced. An override that is only observed has the same life cycle but blocks
    /// nothing.
    pub(crate) enforced: bool,
}

/// How a call violates an override.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OverrideBreach {
    /// It is the repeated call.
    Repeat,
    /// It is another call that may not run now.
    Other,
}

/// A new override without a number.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OverrideDraft {
    pub(crate) demand: OverrideDemand,
    pub(crate) call: Digest128,
    pub(crate) reason: String,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) enforced: bool,
}

impl OverrideDraft {
    /// The constraint in the form of verdicts.
    pub(crate) fn to_constraint(&self, number: u32) -> Constraint {
        let Self { demand, reason, expires_at, enforced, .. } = self;
        make_constraint(number, demand, reason, (*expires_at, *enforced))
    }
}

impl OverrideDemand {
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
            Self::Force(wanted) => !wanted.is_met_by(proposal),
            Self::Budget { tool, left } => *left == 0 && proposal.tools().any(|it| it.name == tool),
        }
    }
}

impl ForcedAction {
    /// Whether a call is the required action.
    fn is_met_by(&self, proposal: &Proposal<'_>) -> bool {
        match self {
            // An agent without a tool for reading reads with a command.
            Self::Kind(ToolKind::Read) if proposal.touches.iter().any(is_direct_read) => true,
            Self::Kind(kind) => proposal.tools().any(|tool| tool.kind == *kind),
            Self::Tool(name) => proposal.tools().any(|tool| tool.name == name),
        }
    }
}

/// Whether a file itself is read, as opposed to a recursive search.
fn is_direct_read(touch: &FileTouch) -> bool {
    !touch.changes() && !touch.recursive
}

impl Override {
    /// The constraint in the form of verdicts.
    pub(crate) fn to_constraint(&self) -> Constraint {
        make_constraint(self.number, &self.demand, &self.reason, (self.expires_at, self.enforced))
    }

    fn has_expired(&self, now: Timestamp, epoch: u64) -> bool {
        self.expires_at.is_some_and(|expiry| now >= expiry)
            || self.until_epoch.is_some_and(|until| epoch > until)
    }
}

fn make_constraint(
    number: u32,
    demand: &OverrideDemand,
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
    /// Puts an override in force for an actor. `until_epoch` is the epoch of the workspace after
    /// this event.
    pub(crate) fn add(
        &mut self,
        number: u32,
        actor: &ActorId,
        draft: OverrideDraft,
        until_epoch: u64,
    ) {
        let OverrideDraft { demand, call, reason, expires_at, enforced } = draft;
        let actor = short_hash(actor.as_str());
        if self.0.len() >= OVERRIDES_MAX {
            self.0.remove(0);
        }
        let until_epoch = (!matches!(demand, OverrideDemand::Budget { .. })).then_some(until_epoch);
        let reason = clip_text(reason, REASON_BYTES_MAX);
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

    /// Whether the same demand is already in force for an actor.
    pub(crate) fn has_demand(
        &self,
        actor: &ActorId,
        draft: &OverrideDraft,
        now: Timestamp,
        epoch: u64,
    ) -> bool {
        let actor = short_hash(actor.as_str());
        self.in_force(now, epoch).any(|existing| {
            let as_much = existing.enforced || !draft.enforced;
            existing.actor == actor && existing.demand == draft.demand && as_much
        })
    }

    /// The override that a proposed call violates, and how. Enforced overrides come before those
    /// that are only observed, and overrides about this call before those about another one.
    pub(crate) fn find_breach(
        &self,
        actor: &ActorId,
        proposal: &Proposal<'_>,
        call: &Digest128,
        (now, epoch): (Timestamp, u64),
    ) -> Option<(&Override, OverrideBreach)> {
        let actor = short_hash(actor.as_str());
        let breached = |it: &&Override| it.actor == actor && it.demand.is_breached(proposal, call);
        let is_repeat =
            |it: &Override| it.call == *call || matches!(it.demand, OverrideDemand::Budget { .. });
        let candidates = self.in_force(now, epoch).filter(breached);
        // Of equal candidates, the first one counts.
        let found = candidates.min_by_key(|it| (!it.enforced, !is_repeat(it)))?;
        let breach = if is_repeat(found) { OverrideBreach::Repeat } else { OverrideBreach::Other };
        Some((found, breach))
    }

    /// Counts the violation of an override. An enforced override counts the calls it blocked. An
    /// observed override counts the calls that ran, and is removed when it would have ended the
    /// session.
    pub(crate) fn count_breach(&mut self, by: &Violation) {
        let Some(id) = by.location.as_deref() else { return };
        self.0.retain_mut(|existing| {
            if existing.to_constraint().id != id || (existing.enforced && !by.enforced) {
                return true;
            }
            existing.repeats = existing.repeats.saturating_add(1);
            existing.enforced || by.decision != Decision::Stop
        });
    }

    /// Updates the overrides after a call was allowed: budgets decrease, and another search ends a
    /// demand for one.
    pub(crate) fn update_after_call(
        &mut self,
        actor: &ActorId,
        proposal: &Proposal<'_>,
        call: &Digest128,
    ) {
        let actor = short_hash(actor.as_str());
        let searches = proposal.tools().any(|tool| tool.kind == ToolKind::Search);
        self.0.retain_mut(|existing| {
            if existing.actor != actor {
                return true;
            }
            match &mut existing.demand {
                OverrideDemand::Budget { tool, left }
                    if proposal.tools().any(|t| t.name == *tool) =>
                {
                    *left = left.saturating_sub(1);
                    true
                }
                OverrideDemand::Widen(forbidden) => !(searches && forbidden != call),
                OverrideDemand::Force(wanted) => !wanted.is_met_by(proposal),
                _ => true,
            }
        });
    }

    /// Whether a constraint is in force.
    pub(crate) fn is_in_force(&self, id: &str, now: Timestamp, epoch: u64) -> bool {
        self.in_force(now, epoch).any(|it| it.to_constraint().id == id)
    }

    /// Ends a constraint.
    pub(crate) fn end_constraint(&mut self, id: &str) {
        self.0.retain(|it| it.to_constraint().id != id);
    }

    /// Removes the overrides of an actor after a person's prompt. A prompt to the main agent
    /// removes all overrides.
    pub(crate) fn remove_for_prompt(&mut self, actor: &ActorId) {
        let id = short_hash(actor.as_str());
        self.0.retain(|it| !actor.is_main() && it.actor != id);
    }

    /// Whether there are no overrides.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes expired overrides.
    pub(crate) fn remove_expired(&mut self, now: Timestamp, epoch: u64) {
        self.0.retain(|it| !it.has_expired(now, epoch));
    }

    /// Every override that is enforced.
    pub(crate) fn enforced(&self, now: Timestamp, epoch: u64) -> impl Iterator<Item = &Override> {
        self.in_force(now, epoch).filter(|it| it.enforced)
    }

    /// Every override in force, including those that are only observed.
    pub(crate) fn in_force(&self, now: Timestamp, epoch: u64) -> impl Iterator<Item = &Override> {
        self.0.iter().filter(move |it| !it.has_expired(now, epoch))
    }
}
