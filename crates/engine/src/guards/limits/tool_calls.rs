//! How often single tools may be called. A limit that is reached refuses that
//! tool and nothing else: the rest of the work can still be done.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::{Counter, Measured, Per, Spent, warn};
use crate::definition::Definition;
use crate::event::EventKind;
use crate::guards::{Answers, Fold, Look, Objection};
use crate::proposal::Proposal;
use crate::state::{State, short};
use crate::verdict::{Class, Decision};

const DIMENSION: &str = "tool_calls";

/// How many tools are remembered across definitions.
const REMEMBERED_MAX: usize = 64;

/// What every limit on a tool stands at.
pub(super) fn measured<'a>(
    definition: &'a Definition,
    state: &'a State,
) -> impl Iterator<Item = Measured<'a>> {
    definition.limits.tool_calls.iter().map(|(tool, limit)| {
        let counter = match limit.per {
            Per::Session => &state.spent.session,
            Per::Turn => &state.spent.turn,
        };
        let used = counter.calls_of(definition, tool);
        let tool = Some(tool.as_str());
        Measured { dimension: DIMENSION, tool, limit: *limit, used, unpriced: &[] }
    })
}

pub(super) fn decide(look: Look<'_>, answers: &mut Answers) {
    let Some(proposal) = look.proposal else { return };
    for measured in measured(look.definition, look.state).filter(Measured::is_reached) {
        let Some(tool) = measured.tool.filter(|tool| calls(look.definition, proposal, tool)) else {
            continue;
        };
        if measured.limit.soft {
            warn(look, &measured, answers);
            continue;
        }
        let correction = match measured.limit.per {
            Per::Session => "go on without it, or end the turn and say what is left",
            Per::Turn => "go on without it; a person's next message opens a new turn",
        };
        answers.object(Objection {
            guard: "limits",
            kind: "budget",
            subtype: DIMENSION,
            class: Class::Recoverable,
            decision: Decision::Deny,
            message: measured.message(),
            location: Some(format!("limits.{DIMENSION}.{tool}")),
            correction: Some(correction.to_string()),
        });
    }
}

/// Counts calls that run, and those that a person is asked about, once.
pub(super) fn apply(state: &mut State, fold: Fold<'_>) {
    let EventKind::ToolProposed { call, .. } = &fold.record.event.kind else { return };
    let (Some(proposal), limits) = (fold.proposal, &fold.definition.limits.tool_calls) else {
        return;
    };
    let asked = fold.record.verdict.is_enforced(Decision::Ask);
    let again = call.as_ref().is_some_and(|call| {
        state.in_flight.iter().any(|open| open.asked && open.id.as_ref() == Some(call))
    });
    if limits.is_empty() || again || !(asked || fold.record.verdict.lets_run()) {
        return;
    }
    let called = limits.iter().filter(|(tool, _)| calls(fold.definition, proposal, tool));
    let mut keys: Vec<u64> = called.map(|(tool, _)| key(fold.definition, tool)).collect();
    // Two limits may be about one tool, by different names.
    keys.sort_unstable();
    keys.dedup();
    for key in keys {
        state.spent.session.count_call(key);
        state.spent.turn.count_call(key);
    }
}

/// A limit that is taken away and put back finds what was used, as long as there
/// is room for it.
pub(super) fn carry_over(spent: &mut Spent, to: &Definition) {
    let limits = &to.limits.tool_calls;
    let limited: Vec<u64> = limits.iter().map(|(tool, _)| key(to, tool)).collect();
    let room = REMEMBERED_MAX.saturating_sub(limited.len());
    for counter in [&mut spent.session, &mut spent.turn] {
        let known = core::mem::take(&mut counter.tool_calls).into_iter();
        let (mut kept, mut others): (Vec<_>, Vec<_>) =
            known.partition(|(tool, _)| limited.contains(tool));
        others.truncate(room);
        kept.append(&mut others);
        counter.tool_calls = kept;
    }
}

impl Counter {
    fn calls_of(&self, definition: &Definition, tool: &str) -> u64 {
        let key = key(definition, tool);
        let known = self.tool_calls.iter().find(|(known, _)| *known == key);
        known.map_or(0, |(_, calls)| *calls)
    }

    fn count_call(&mut self, tool: u64) {
        match self.tool_calls.iter_mut().find(|(known, _)| *known == tool) {
            Some((_, calls)) => *calls = calls.saturating_add(1),
            None => self.tool_calls.push((tool, 1)),
        }
    }
}

/// A tool as it is counted: by its declared name.
fn key(definition: &Definition, tool: &str) -> u64 {
    short(definition.resolve(tool).name)
}

/// Whether a call is one of a tool, by any of its names or in a command line.
fn calls(definition: &Definition, proposal: &Proposal<'_>, tool: &str) -> bool {
    let name = definition.resolve(tool).name;
    proposal.tool.name == name || proposal.recognised.iter().any(|known| known.tool.name == name)
}
