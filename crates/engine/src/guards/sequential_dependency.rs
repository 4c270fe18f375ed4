//! `sequential_dependency`: one tool requires that another one has succeeded.
//!
//! A prerequisite marked `fresh` counts only until the next change of the workspace. It counts for
//! the epoch in which its call *started*, so a lint that ran during an edit proves nothing. An
//! epoch is a number that grows with every change of the workspace.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{FoldInput, Guard, GuardAnswers, GuardInput, ViolationDraft, join_names};
use crate::definition::{PolicyRule, ResolvedTool};
use crate::event::{CallStatus, EventKind, ToolFinished};
use crate::state::{PolicyState, SessionState};
use crate::verdict::{Decision, GuardName, ViolationClass, ViolationSubtype, ViolationType};

/// Which tools require which other tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequentialDependency {
    /// The tools with prerequisites, each once.
    pub dependencies: Vec<ToolDependency>,
    /// All prerequisites, sorted. The state has one entry for each.
    prerequisites: Vec<String>,
}

/// A tool and its prerequisites.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolDependency {
    /// The tool by its declared name.
    pub tool: String,
    /// The tools that must have succeeded before.
    pub needs: Vec<Prerequisite>,
}

/// One prerequisite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prerequisite {
    /// The tool by its declared name.
    pub tool: String,
    /// Whether it must have succeeded since the last change of the workspace.
    pub fresh: bool,
}

impl SequentialDependency {
    /// Builds a policy.
    pub fn new(dependencies: Vec<ToolDependency>) -> Self {
        let mut prerequisites: Vec<String> =
            dependencies.iter().flat_map(|d| &d.needs).map(|need| need.tool.clone()).collect();
        prerequisites.sort_unstable();
        prerequisites.dedup();
        Self { dependencies, prerequisites }
    }

    /// Returns whether any prerequisite must be fresh.
    pub fn has_fresh(&self) -> bool {
        self.dependencies.iter().flat_map(|dependency| &dependency.needs).any(|need| need.fresh)
    }

    /// Returns the index of a prerequisite in the state.
    pub(crate) fn position(&self, tool: &str) -> Option<usize> {
        self.prerequisites.binary_search_by(|name| name.as_str().cmp(tool)).ok()
    }

    pub(crate) fn initial(&self) -> PrerequisiteEpochs {
        PrerequisiteEpochs(self.prerequisites.iter().map(|_| None).collect())
    }
}

/// The epoch in which each prerequisite last succeeded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PrerequisiteEpochs(Vec<Option<u64>>);

pub(crate) struct SequentialGuard;

impl Guard for SequentialGuard {
    fn decide(&self, input: GuardInput<'_>, answers: &mut GuardAnswers) {
        let Some(proposal) = input.proposal else { return };
        for (at, tool) in proposal.tools().enumerate() {
            // A command line may call the same tool twice.
            if proposal.tools().take(at).all(|earlier| earlier.name != tool.name) {
                check_tool(input, tool, answers);
            }
        }
    }

    fn apply(&self, state: &mut SessionState, fold: FoldInput<'_>) {
        let (definition, record) = (fold.definition, fold.record);
        // A command that reports "ok" but exits with an error did not succeed.
        let EventKind::ToolFinished(ToolFinished {
            status: CallStatus::Ok,
            background: false,
            exit_code: None | Some(0),
            ..
        }) = &record.event.kind
        else {
            return;
        };
        // The call is still open here: it is closed after all guards have seen the event.
        let SessionState { in_flight, policies, epoch, .. } = state;
        let Some(call) = in_flight.find(record.call_key(definition)) else { return };
        // A tool that changes files, such as a formatter, covers its own changes, unless another
        // call changed the workspace meanwhile.
        let own_change = |is_own: bool| u64::from(is_own && call.mutates() && call.epoch == *epoch);
        let itself = (definition.resolve_tool(&call.tool), own_change(true));
        let proven = call.proofs.iter().filter_map(|proof| {
            let tool = definition.tools.get(usize::from(proof.tool))?;
            Some((ResolvedTool::declared(tool), own_change(proof.is_after_changes)))
        });
        for (tool, own_change) in core::iter::once(itself).chain(proven) {
            let earned_in = call.epoch + own_change;
            for (number, rule) in definition.policies_for(tool) {
                if let PolicyRule::SequentialDependency(rule) = rule
                    && let Some(position) = rule.position(tool.name)
                    && let Some(PolicyState::Sequential(earned)) = policies.get_mut(number)
                    && let Some(entry) = earned.0.get_mut(position)
                {
                    // Two runs may finish in either order; the later epoch wins.
                    *entry = (*entry).max(Some(earned_in));
                }
            }
        }
    }
}

fn check_tool(input: GuardInput<'_>, tool: ResolvedTool<'_>, answers: &mut GuardAnswers) {
    for (number, rule) in input.definition.policies_for(tool) {
        let PolicyRule::SequentialDependency(rule) = rule else { continue };
        let Some(PolicyState::Sequential(earned)) = input.state.policies.get(number) else {
            continue;
        };
        let dependency = rule.dependencies.iter().find(|dependency| dependency.tool == tool.name);
        if let Some(violation) =
            dependency.and_then(|dependency| unmet_prerequisites(rule, dependency, earned, input))
        {
            answers.add_violation(violation);
        }
    }
}

fn unmet_prerequisites(
    rule: &SequentialDependency,
    dependency: &ToolDependency,
    earned: &PrerequisiteEpochs,
    input: GuardInput<'_>,
) -> Option<ViolationDraft> {
    let (definition, state) = (input.definition, input.state);
    let epoch = |need: &Prerequisite| {
        rule.position(&need.tool).and_then(|at| earned.0.get(at).copied()).flatten()
    };
    let changing = state.in_flight.find_mutating();
    let missing: Vec<&str> = dependency
        .needs
        .iter()
        .filter(|need| epoch(need).is_none())
        .map(|need| need.tool.as_str())
        .collect();
    let stale: Vec<&str> = dependency
        .needs
        .iter()
        .filter(|need| need.fresh && epoch(need).is_some())
        .filter(|need| epoch(need) != Some(state.epoch) || changing.is_some())
        .map(|need| need.tool.as_str())
        .collect();
    let tool = &dependency.tool;
    let mut message = Vec::new();
    if !missing.is_empty() {
        message.push(format!(
            "`{tool}` needs {} to have succeeded first",
            join_names(missing.iter().copied())
        ));
    }
    if !stale.is_empty() {
        let since = match changing {
            Some(call) => format!("`{}` is changing files now", call.tool),
            None => "files were changed since".to_string(),
        };
        message.push(format!(
            "`{tool}` needs {} to have succeeded on the current files, but {since}",
            join_names(stale.iter().copied())
        ));
    }
    if message.is_empty() {
        return None;
    }
    let run = join_names(
        dependency
            .needs
            .iter()
            .map(|need| need.tool.as_str())
            .filter(|tool| missing.contains(tool) || stale.contains(tool))
            .map(|tool| definition.runnable_name(tool)),
    );
    let again = definition.runnable_name(tool);
    Some(ViolationDraft {
        guard: GuardName::SequentialDependency,
        kind: ViolationType::ToolPolicyViolation,
        subtype: if missing.is_empty() {
            ViolationSubtype::StalePrerequisite
        } else {
            ViolationSubtype::MissingPrerequisite
        },
        class: ViolationClass::Recoverable,
        decision: Decision::Deny,
        message: message.join("; "),
        location: Some(tool.clone()),
        correction: Some(format!("run {run}, then `{again}` again")),
    })
}
