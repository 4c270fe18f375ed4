//! Limits on the calls of single tools. A reached limit refuses only that tool; the rest of the
//! work can continue.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{BudgetCounter, LimitDimension, LimitPeriod, LimitUsage, SpentBudget, warn_soft_limit};
use crate::definition::Definition;
use crate::event::{EventKind, ToolProposed};
use crate::guards::{FoldInput, GuardAnswers, GuardInput, ViolationDraft};
use crate::proposal::Proposal;
use crate::state::{SessionState, short_hash};
use crate::verdict::{Decision, GuardName, ViolationClass, ViolationType};

const DIMENSION: LimitDimension = LimitDimension::ToolCalls;

/// How many tool counters are stored across definitions.
const TOOL_COUNTERS_MAX: usize = 64;

/// Measures the limits on single tools.
pub(super) fn measure_tool_limits<'a>(
    definition: &'a Definition,
    state: &'a SessionState,
) -> impl Iterator<Item = LimitUsage<'a>> {
    definition.limits.tool_calls.iter().map(|(tool, limit)| {
        let counter = match limit.per {
            LimitPeriod::Session => &state.spent.session,
            LimitPeriod::Turn => &state.spent.turn,
        };
        let used = counter.calls_of(definition, tool);
        let tool = Some(tool.as_str());
        LimitUsage { dimension: DIMENSION, tool, limit: *limit, used, unpriced: &[] }
    })
}

pub(super) fn decide(input: GuardInput<'_>, answers: &mut GuardAnswers) {
    let Some(proposal) = input.proposal else { return };
    for measured in measure_tool_limits(input.definition, input.state) {
        let Some(tool) = measured.tool else { continue };
        let calls = count_calls_of_tool(input.definition, proposal, tool);
        if calls == 0 || measured.used.saturating_add(calls) <= measured.limit.max {
            continue;
        }
        if measured.limit.soft {
            warn_soft_limit(input, &measured, answers);
            continue;
        }
        let correction = match measured.limit.per {
            LimitPeriod::Session => {
                "continue without this tool, or end the turn and report what is left to do"
            }
            LimitPeriod::Turn => {
                "continue without this tool; the next message of a person starts a new turn"
            }
        };
        answers.add_violation(ViolationDraft {
            guard: GuardName::Limits,
            kind: ViolationType::Budget,
            subtype: DIMENSION.into(),
            class: ViolationClass::Recoverable,
            decision: Decision::Deny,
            message: limit_message(&measured, calls),
            location: Some(format!("limits.{DIMENSION}.{tool}")),
            correction: Some(correction.to_string()),
        });
    }
}

/// Says how much is used. If calls remain, it adds how many the command line would use.
fn limit_message(measured: &LimitUsage<'_>, calls: u64) -> String {
    let used = measured.message();
    if measured.is_reached() {
        used
    } else {
        format!("{used}, and this command line would use {calls} more")
    }
}

/// Counts calls that run, and counts calls that a person is asked about once.
pub(super) fn apply(state: &mut SessionState, fold: FoldInput<'_>) {
    let EventKind::ToolProposed(ToolProposed { call, .. }) = &fold.record.event.kind else {
        return;
    };
    let (Some(proposal), limits) = (fold.proposal, &fold.definition.limits.tool_calls) else {
        return;
    };
    let is_asked = fold.record.verdict.is_enforced(Decision::Ask);
    let is_counted = call.as_ref().is_some_and(|call| {
        state.in_flight.iter().any(|open| open.needs_approval() && open.id.as_ref() == Some(call))
    });
    if limits.is_empty() || is_counted || !(is_asked || fold.record.verdict.allows_run()) {
        return;
    }
    let counts = limits.iter().map(|(tool, _)| {
        (counter_key(fold.definition, tool), count_calls_of_tool(fold.definition, proposal, tool))
    });
    let mut counts: Vec<(u64, u64)> = counts.filter(|(_, calls)| *calls > 0).collect();
    // Two limits may name the same tool by different names.
    counts.sort_unstable();
    counts.dedup();
    for (tool, calls) in counts {
        state.spent.session.count_calls(tool, calls);
        state.spent.turn.count_calls(tool, calls);
    }
}

/// Preserves the counters of tools without a limit while there is room, so that a limit that is
/// removed and added again continues its count.
pub(super) fn carry_over(spent: &mut SpentBudget, to: &Definition) {
    let limits = &to.limits.tool_calls;
    let limited: Vec<u64> = limits.iter().map(|(tool, _)| counter_key(to, tool)).collect();
    let room = TOOL_COUNTERS_MAX.saturating_sub(limited.len());
    for counter in [&mut spent.session, &mut spent.turn] {
        let counters = core::mem::take(&mut counter.tool_calls).into_iter();
        let (mut remaining, mut others): (Vec<_>, Vec<_>) =
            counters.partition(|(tool, _)| limited.contains(tool));
        others.truncate(room);
        remaining.append(&mut others);
        counter.tool_calls = remaining;
    }
}

impl BudgetCounter {
    fn calls_of(&self, definition: &Definition, tool: &str) -> u64 {
        let key = counter_key(definition, tool);
        let entry = self.tool_calls.iter().find(|(name, _)| *name == key);
        entry.map_or(0, |(_, calls)| *calls)
    }

    fn count_calls(&mut self, tool: u64, more: u64) {
        match self.tool_calls.iter_mut().find(|(name, _)| *name == tool) {
            Some((_, calls)) => *calls = calls.saturating_add(more),
            None => self.tool_calls.push((tool, more)),
        }
    }
}

/// Returns the counter key of a tool: the hash of its declared name.
fn counter_key(definition: &Definition, tool: &str) -> u64 {
    short_hash(definition.resolve_tool(tool).name)
}

/// Counts how many calls of a tool a call contains: the call itself, and each command in its
/// command line that counts as the tool.
fn count_calls_of_tool(definition: &Definition, proposal: &Proposal<'_>, tool: &str) -> u64 {
    let name = definition.resolve_tool(tool).name;
    let own = u64::from(proposal.tool.name == name);
    let matching = proposal.recognised.iter().filter(|command| command.tool.name == name);
    let mut commands: Vec<u32> = matching.map(|command| command.command).collect();
    commands.sort_unstable();
    commands.dedup();
    // A command inside another one is the same call: `env make deploy`.
    let all = proposal.commands();
    let parent = |number: u32| all.get(number as usize).and_then(|command| command.parent);
    let is_nested = |number: &&u32| {
        let mut above = core::iter::successors(parent(**number), |at| parent(*at));
        above.any(|at| commands.contains(&at))
    };
    let nested = commands.iter().filter(is_nested).count();
    own.saturating_add((commands.len() - nested) as u64)
}
