//! Calls of tools that do not exist: those that the definition does not accept, and those that the
//! adapter does not offer.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{FoldInput, Guard, GuardAnswers, GuardInput, ViolationDraft, join_names};
use crate::definition::{Definition, UnknownTools};
use crate::event::{Event, EventKind, ToolProposed};
use crate::nearest::nearest_name;
use crate::state::{SessionState, short_hash};
use crate::tool::ToolKind;
use crate::verdict::{
    Decision, GuardName, SessionStop, StopCode, StopDetail, ViolationClass, ViolationSubtype,
    ViolationType,
};

const GUARD: GuardName = GuardName::Tools;

/// How many tools a message names.
const TOOLS_SHOWN_MAX: usize = 8;

/// How many characters of an unknown name a message quotes.
const NAME_CHARS_MAX: usize = 100;

pub(crate) struct UnknownToolGuard;

impl Guard for UnknownToolGuard {
    fn decide(&self, input: GuardInput<'_>, answers: &mut GuardAnswers) {
        let EventKind::ToolProposed(ToolProposed { tool, .. }) = &input.event.kind else { return };
        let (definition, called) = (input.definition, tool.as_str());
        let offered = &input.facts.tools;
        let is_offered = offered.iter().any(|name| name == called);
        let is_refuted = !offered.is_empty() && !is_offered;
        if !is_refuted && definition.accepts_tool(called, is_offered) {
            return;
        }
        let known: Vec<&str> = if is_refuted {
            offered.iter().map(String::as_str).collect()
        } else {
            definition.callable_tools().collect()
        };
        let name: String = called.chars().take(NAME_CHARS_MAX).collect();
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
            message: format!("there is no tool `{name}`"),
            location: Some(called.to_string()),
            correction: Some(known_tools_text(called, &known, definition)),
        });
        if is_exhausted && answers.is_enforcing() {
            answers.stop.get_or_insert_with(|| SessionStop {
                signature: Some(called.to_string()),
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

/// Names the tool that was probably meant, and the known tools.
fn known_tools_text(called: &str, known: &[&str], definition: &Definition) -> String {
    let (meant, list) = match (known, definition.unknown_tools) {
        ([_, ..], _) => {
            let more = if known.len() > TOOLS_SHOWN_MAX { ", …" } else { "" };
            let names = join_names(known.iter().copied().take(TOOLS_SHOWN_MAX));
            let meant = nearest_name(called, known.iter().copied());
            (meant, format!("the known tools are {names}{more}"))
        }
        ([], UnknownTools::Deny) => {
            let text = "no tool is known: the definition denies all that it does not declare, and \
                        it declares none";
            (None, text.to_string())
        }
        ([], UnknownTools::Allow | UnknownTools::Client) => {
            let usual = join_names(["read_file", "edit_file", "bash"]);
            let text = format!("the known tools are those with a well-known name, such as {usual}");
            (nearest_name(called, ToolKind::well_known_names()), text)
        }
    };
    match meant {
        Some(meant) => format!("did you mean `{meant}`? {list}"),
        None => list,
    }
}

/// Returns the key under which an actor's mistakes are counted.
fn correction_key(event: &Event) -> u64 {
    short_hash(&format!("{}\nunknown_tool", event.actor))
}
