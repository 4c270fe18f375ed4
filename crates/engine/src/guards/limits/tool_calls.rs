//! How often single tools may be called. A limit that is reached refuses that
//! tool and nothing else: the rest of the work can still be done.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Counter, Dimension, Measured, Per, Spent, warn};
use crate::definition::Definition;
use crate::event::{EventKind, ToolProposed};
use crate::guards::{Answers, Fold, Look, Objection};
use crate::proposal::Proposal;
use crate::state::{State, short};
use crate::verdict::{Class, Decision, GuardName, ViolationType};

const DIMENSION: Dimension = Dimension::ToolCalls;

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
            guard: GuardName::Limits,
            kind: ViolationType::Budget,
            subtype: DIMENSION.into(),
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
    let EventKind::ToolProposed(ToolProposed { call, .. }) = &fold.record.event.kind else {
        return;
    };
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
    let called = limits
        .iter()
        .map(|(tool, _)| (key(fold.definition, tool), calls(fold.definition, proposal, tool)));
    let mut called: Vec<(u64, u64)> = called.filter(|(_, calls)| *calls > 0).collect();
    // Two limits may be about one tool, by different names.
    called.sort_unstable();
    called.dedup();
    for (tool, calls) in called {
        state.spent.session.count_calls(tool, calls);
        state.spent.turn.count_calls(tool, calls);
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

    fn count_calls(&mut self, tool: u64, more: u64) {
        match self.tool_calls.iter_mut().find(|(known, _)| *known == tool) {
            Some((_, calls)) => *calls = calls.saturating_add(more),
            None => self.tool_calls.push((tool, more)),
        }
    }
}

/// A tool as it is counted: by its declared name.
fn key(definition: &Definition, tool: &str) -> u64 {
    short(definition.resolve(tool).name)
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
