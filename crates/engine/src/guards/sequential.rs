//! `sequential_dependency`: one tool needs another to have succeeded.
//!
//! A prerequisite marked `fresh` counts only in the epoch it was earned: any
//! change of the workspace since makes it stale. It is earned in the epoch in
//! which its call *began*, so a lint that ran beside an edit proves nothing.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{Answers, Fold, Guard, Look, Objection, listed};
use crate::definition::{PolicyRule, Resolved};
use crate::event::{EventKind, Status, ToolFinished};
use crate::state::{PolicyState, State};
use crate::verdict::{Class, Decision, GuardName, ViolationSubtype, ViolationType};

/// Which tool needs which.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequentialDependency {
    /// The tools that need others, each once.
    pub dependencies: Vec<Dependency>,
    /// Every tool that is needed, sorted; the state keeps one entry for each.
    prerequisites: Vec<String>,
}

/// A tool and what it needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependency {
    /// The tool by its declared name.
    pub tool: String,
    /// What must have succeeded before it.
    pub needs: Vec<Need>,
}

/// One prerequisite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Need {
    /// The tool by its declared name.
    pub tool: String,
    /// Whether it must have succeeded since the last change of the workspace.
    pub fresh: bool,
}

impl SequentialDependency {
    /// Puts a policy together.
    pub fn new(dependencies: Vec<Dependency>) -> Self {
        let mut prerequisites: Vec<String> =
            dependencies.iter().flat_map(|d| &d.needs).map(|need| need.tool.clone()).collect();
        prerequisites.sort_unstable();
        prerequisites.dedup();
        Self { dependencies, prerequisites }
    }

    /// Whether a prerequisite has to be fresh.
    pub fn has_fresh(&self) -> bool {
        self.dependencies.iter().flat_map(|dependency| &dependency.needs).any(|need| need.fresh)
    }

    /// Where a prerequisite stands in the state.
    pub(crate) fn position(&self, tool: &str) -> Option<usize> {
        self.prerequisites.binary_search_by(|known| known.as_str().cmp(tool)).ok()
    }

    pub(crate) fn initial(&self) -> Earned {
        Earned(self.prerequisites.iter().map(|_| None).collect())
    }
}

/// In which epoch each prerequisite last succeeded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Earned(Vec<Option<u64>>);

pub(crate) struct Sequential;

impl Guard for Sequential {
    fn decide(&self, look: Look<'_>, answers: &mut Answers) {
        let Some(proposal) = look.proposal else { return };
        for (at, tool) in proposal.tools().enumerate() {
            // A line may call the same tool twice.
            if proposal.tools().take(at).all(|before| before.name != tool.name) {
                check(look, tool, answers);
            }
        }
    }

    fn apply(&self, state: &mut State, fold: Fold<'_>) {
        let (definition, record) = (fold.definition, fold.record);
        // A command that says "ok" and exits with an error did not succeed.
        let EventKind::ToolFinished(ToolFinished {
            status: Status::Ok,
            background: false,
            exit_code: None | Some(0),
            ..
        }) = &record.event.kind
        else {
            return;
        };
        // The call is still open here: it is closed after the guards have seen it.
        let State { in_flight, policies, epoch, .. } = state;
        let Some(call) = in_flight.find(record.key(definition)) else { return };
        // A tool that changes files, such as a formatter, is about the files as
        // it leaves them, unless somebody else changed them meanwhile.
        let own_change = |own: bool| u64::from(own && call.mutates() && call.epoch == *epoch);
        let itself = (definition.resolve(&call.tool), own_change(true));
        let proven = call.proves.iter().filter_map(|proof| {
            let tool = definition.tools.get(usize::from(proof.tool))?;
            Some((Resolved::declared(tool), own_change(proof.after)))
        });
        for (tool, own_change) in core::iter::once(itself).chain(proven) {
            let earned_in = call.epoch + own_change;
            for (number, rule) in definition.governing(tool) {
                if let PolicyRule::SequentialDependency(rule) = rule
                    && let Some(position) = rule.position(tool.name)
                    && let Some(PolicyState::Sequential(earned)) = policies.get_mut(number)
                    && let Some(entry) = earned.0.get_mut(position)
                {
                    // Two runs may come back in either order; the later epoch stands.
                    *entry = (*entry).max(Some(earned_in));
                }
            }
        }
    }
}

fn check(look: Look<'_>, tool: Resolved<'_>, answers: &mut Answers) {
    for (number, rule) in look.definition.governing(tool) {
        let PolicyRule::SequentialDependency(rule) = rule else { continue };
        let Some(PolicyState::Sequential(earned)) = look.state.policies.get(number) else {
            continue;
        };
        let wanted = rule.dependencies.iter().find(|wanted| wanted.tool == tool.name);
        if let Some(objection) = wanted.and_then(|wanted| unmet(rule, wanted, earned, look.state)) {
            answers.object(objection);
        }
    }
}

fn unmet(
    rule: &SequentialDependency,
    wanted: &Dependency,
    earned: &Earned,
    state: &State,
) -> Option<Objection> {
    let epoch =
        |need: &Need| rule.position(&need.tool).and_then(|at| earned.0.get(at).copied()).flatten();
    let changing = state.in_flight.mutating();
    let missing: Vec<&str> = wanted
        .needs
        .iter()
        .filter(|need| epoch(need).is_none())
        .map(|need| need.tool.as_str())
        .collect();
    let stale: Vec<&str> = wanted
        .needs
        .iter()
        .filter(|need| need.fresh && epoch(need).is_some())
        .filter(|need| epoch(need) != Some(state.epoch) || changing.is_some())
        .map(|need| need.tool.as_str())
        .collect();
    let tool = &wanted.tool;
    let mut message = Vec::new();
    if !missing.is_empty() {
        message.push(format!(
            "`{tool}` needs {} to have succeeded first",
            listed(missing.iter().copied())
        ));
    }
    if !stale.is_empty() {
        let since = match changing {
            Some(call) => format!("`{}` is changing files just now", call.tool),
            None => "files were changed since".to_string(),
        };
        message.push(format!(
            "`{tool}` needs {} on the files as they are, and {since}",
            listed(stale.iter().copied())
        ));
    }
    if message.is_empty() {
        return None;
    }
    let run = listed(
        wanted
            .needs
            .iter()
            .map(|need| need.tool.as_str())
            .filter(|tool| missing.contains(tool) || stale.contains(tool)),
    );
    Some(Objection {
        guard: GuardName::SequentialDependency,
        kind: ViolationType::ToolPolicyViolation,
        subtype: if missing.is_empty() {
            ViolationSubtype::StalePrerequisite
        } else {
            ViolationSubtype::MissingPrerequisite
        },
        class: Class::Recoverable,
        decision: Decision::Deny,
        message: message.join("; "),
        location: Some(tool.clone()),
        correction: Some(format!("run {run}, then `{tool}` again")),
    })
}
