//! How often single tools may be called. A limit that is reached refuses that
//! tool and nothing else: the rest of the work can still be done.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

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
    for measured in measured(look.definition, look.state) {
        let Some(tool) = measured.tool else { continue };
        let calls = calls(look.definition, proposal, tool);
        if calls == 0 || measured.used.saturating_add(calls) <= measured.limit.max {
            continue;
        }
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
            message: message(&measured, calls),
            location: Some(format!("limits.{DIMENSION}.{tool}")),
            correction: Some(correction.to_string()),
        });
    }
}

/// What is used up, and where that is not all, what the line would use.
fn message(measured: &Measured<'_>, calls: u64) -> String {
    let used = measured.message();
    if measured.is_reached() { used } else { format!("{used}, and this line has {calls} more") }
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
        let calls = calls(fold.definition, proposal, tool);
        if calls > 0 {
            state.spent.session.count_calls(number, calls);
            state.spent.turn.count_calls(number, calls);
        }
    }
}

impl Counter {
    fn count_calls(&mut self, number: usize, more: u64) {
        if self.tool_calls.len() <= number {
            self.tool_calls.resize(number + 1, 0);
        }
        if let Some(calls) = self.tool_calls.get_mut(number) {
            *calls = calls.saturating_add(more);
        }
    }
}

/// How many calls of a tool a call is, by any of its names: one of its own, and
/// one for each command of its line.
fn calls(definition: &Definition, proposal: &Proposal<'_>, tool: &str) -> u64 {
    let name = definition.resolve(tool).name;
    let own = u64::from(proposal.tool.name == name);
    let known = proposal.recognised.iter().filter(|known| known.tool.name == name);
    let mut commands: Vec<u32> = known.map(|known| known.command).collect();
    commands.sort_unstable();
    commands.dedup();
    // What one of them runs is the same call: `env make deploy`.
    let all = proposal.commands();
    let parent = |number: u32| all.get(number as usize).and_then(|command| command.parent);
    let within = |number: &&u32| {
        let mut above = core::iter::successors(parent(**number), |at| parent(*at));
        above.any(|at| commands.contains(&at))
    };
    let nested = commands.iter().filter(within).count();
    own.saturating_add((commands.len() - nested) as u64)
}
