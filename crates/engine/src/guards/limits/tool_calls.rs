//! How often single tools may be called. A limit that is reached refuses that
//! tool and nothing else: the rest of the work can still be done.

use alloc::format;
use alloc::string::ToString;

use super::{Counter, Measured, Per, warn};
use crate::definition::Definition;
use crate::event::EventKind;
use crate::guards::{Answers, Fold, Look, Objection};
use crate::proposal::Proposal;
use crate::state::State;
use crate::verdict::{Class, Decision};

const DIMENSION: &str = "tool_calls";

/// What every limit on a tool stands at.
pub(super) fn measured<'a>(
    definition: &'a Definition,
    state: &'a State,
) -> impl Iterator<Item = Measured<'a>> {
    definition.limits.tool_calls.iter().enumerate().map(|(number, (tool, limit))| {
        let counter = match limit.per {
            Per::Session => &state.spent.session,
            Per::Turn => &state.spent.turn,
        };
        let used = counter.tool_calls.get(number).copied().unwrap_or(0);
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
    for (number, (tool, _)) in limits.iter().enumerate() {
        if calls(fold.definition, proposal, tool) {
            state.spent.session.count_call(number);
            state.spent.turn.count_call(number);
        }
    }
}

impl Counter {
    fn count_call(&mut self, number: usize) {
        if self.tool_calls.len() <= number {
            self.tool_calls.resize(number + 1, 0);
        }
        if let Some(calls) = self.tool_calls.get_mut(number) {
            *calls = calls.saturating_add(1);
        }
    }
}

/// Whether a call is one of a tool, by any of its names or in a command line.
fn calls(definition: &Definition, proposal: &Proposal<'_>, tool: &str) -> bool {
    let name = definition.resolve(tool).name;
    proposal.tool.name == name || proposal.recognised.iter().any(|known| known.tool.name == name)
}
