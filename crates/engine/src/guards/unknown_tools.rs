//! Calls of tools that do not exist: those that the definition does not declare, if it declares all
//! tools, and those that the adapter does not offer.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{FoldInput, Guard, GuardAnswers, GuardInput, ViolationDraft, join_names};
use crate::definition::{Definition, UnknownTools};
use crate::event::Event;
use crate::nearest::nearest_name;
use crate::state::{SessionState, short_hash};
use crate::tool::{PAGE_TURN_TOOL, ToolKind};
use crate::verdict::{
    Decision, GuardName, SessionStop, StopCode, StopDetail, ViolationClass, ViolationSubtype,
    ViolationType,
};

const GUARD: GuardName = GuardName::Tools;

/// How many tools a message names.
const TOOLS_SHOWN_MAX: usize = 8;

pub(crate) struct UnknownToolGuard;

impl Guard for UnknownToolGuard {
    fn decide(&self, input: GuardInput<'_>, answers: &mut GuardAnswers) {
        let Some(proposal) = input.proposal else { return };
        let definition = input.definition;
        let tool = proposal.tool;
        let offered = &input.facts.tools;
        let is_allowed = definition.unknown_tools == UnknownTools::Allow
            || tool.declared.is_some()
            || tool.name == PAGE_TURN_TOOL
            || (tool.kind == ToolKind::Exec && has_recognised_tools(definition));
        // An adapter that lists its tools decides which exist.
        let is_offered = offered.iter().any(|name| name == tool.name);
        let is_allowed = is_allowed || (is_offered && !has_named_tools(definition));
        if is_allowed && (offered.is_empty() || is_offered) {
            return;
        }
        let known: Vec<&str> = if offered.is_empty() || is_offered {
            definition.tools.iter().map(|tool| tool.name.as_str()).collect()
        } else {
            offered.iter().map(String::as_str).collect()
        };
        let names = || {
            let more = if known.len() > TOOLS_SHOWN_MAX { ", …" } else { "" };
            format!(
                "the known tools are {}{more}",
                join_names(known.iter().copied().take(TOOLS_SHOWN_MAX))
            )
        };
        let correction = nearest_name(tool.name, known.iter().copied())
            .map_or_else(names, |meant| format!("did you mean `{meant}`? {}", names()));
        // An agent that was told the existing tools and still calls a missing one repeatedly has a
        // wrong list of tools.
        let corrections = input.state.repairs.count(correction_key(input.event));
        let is_exhausted = corrections >= definition.schemas.attempts.correction_max_attempts;
        answers.add_violation(ViolationDraft {
            guard: GUARD,
            kind: ViolationType::UnknownTool,
            subtype: ViolationSubtype::UnknownTool,
            class: if is_exhausted {
                ViolationClass::Terminal
            } else {
                ViolationClass::Recoverable
            },
            decision: if is_exhausted { Decision::Stop } else { Decision::Deny },
            message: format!("there is no tool `{}`", tool.name),
            location: Some(tool.name.to_string()),
            correction: Some(correction),
        });
        if is_exhausted && answers.is_enforcing() {
            answers.stop.get_or_insert_with(|| SessionStop {
                signature: Some(tool.name.to_string()),
                ..SessionStop::with_code(StopCode::SystemError).with_detail(StopDetail::Schema)
            });
        }
    }

    fn apply(&self, state: &mut SessionState, fold: FoldInput<'_>) {
        if fold.proposal.is_none() {
            return;
        }
        let verdict = fold.record.verdict;
        let unknown = verdict.has_enforced_violation_of(&GUARD);
        // A call that another guard refused does not show whether the agent knows the tools.
        if unknown || verdict.allows_run() {
            state.repairs.record(unknown, || correction_key(fold.record.event));
        }
    }
}

/// Returns the key under which an actor's mistakes are counted.
fn correction_key(event: &Event) -> u64 {
    short_hash(&format!("{}\nunknown_tool", event.actor))
}

/// Returns whether the definition declares tools by name, not only tools that are recognised in
/// command lines.
fn has_named_tools(definition: &Definition) -> bool {
    definition.tools.iter().any(|tool| tool.commands.is_empty())
}

/// Returns whether the definition declares tools that are recognised in command lines, so that a
/// tool for command lines must exist.
fn has_recognised_tools(definition: &Definition) -> bool {
    definition.tools.iter().any(|tool| !tool.commands.is_empty())
}
