//! Tools that the definition does not know, where it says which there are, and tools that
//! an adapter does not have.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Answers, Fold, Guard, Look, Objection, listed};
use crate::definition::{Definition, UnknownTools};
use crate::event::Event;
use crate::nearest::nearest;
use crate::state::{State, short};
use crate::tool::{Kind, PAGE_TURN};
use crate::verdict::{
    Class, Decision, GuardName, Stop, StopCode, StopDetail, ViolationSubtype, ViolationType,
};

const GUARD: GuardName = GuardName::Tools;

/// How many tools a message names.
const TOOLS_SHOWN: usize = 8;

pub(crate) struct Unknown;

impl Guard for Unknown {
    fn decide(&self, look: Look<'_>, answers: &mut Answers) {
        let Some(proposal) = look.proposal else { return };
        let definition = look.definition;
        let tool = proposal.tool;
        let there = &look.facts.tools;
        let is_allowed = definition.unknown_tools == UnknownTools::Allow
            || tool.declared.is_some()
            || tool.name == PAGE_TURN
            || (tool.kind == Kind::Exec && recognises(definition));
        // Who lists tools has said which there are.
        let is_there = there.iter().any(|known| known == tool.name);
        let is_allowed = is_allowed || (is_there && !lists(definition));
        if is_allowed && (there.is_empty() || is_there) {
            return;
        }
        let known: Vec<&str> = if there.is_empty() || is_there {
            definition.tools.iter().map(|tool| tool.name.as_str()).collect()
        } else {
            there.iter().map(String::as_str).collect()
        };
        let names = || {
            let more = if known.len() > TOOLS_SHOWN { ", …" } else { "" };
            format!("known are {}{more}", listed(known.iter().copied().take(TOOLS_SHOWN)))
        };
        let correction = nearest(tool.name, known.iter().copied())
            .map_or_else(names, |meant| format!("did you mean `{meant}`? {}", names()));
        // Who names a tool that is not there, told which there are, and does so
        // again and again, knows of other tools than these.
        let told = look.state.repairs.of(key(look.event));
        let is_over = told >= definition.schemas.attempts.correction_max_attempts;
        answers.object(Objection {
            guard: GUARD,
            kind: ViolationType::UnknownTool,
            subtype: ViolationSubtype::UnknownTool,
            class: if is_over { Class::Terminal } else { Class::Recoverable },
            decision: if is_over { Decision::Stop } else { Decision::Deny },
            message: format!("there is no tool `{}`", tool.name),
            location: Some(tool.name.to_string()),
            correction: Some(correction),
        });
        if is_over && answers.enforces() {
            answers.stop.get_or_insert_with(|| Stop {
                signature: Some(tool.name.to_string()),
                ..Stop::of(StopCode::SystemError).because(StopDetail::Schema)
            });
        }
    }

    fn apply(&self, state: &mut State, fold: Fold<'_>) {
        if fold.proposal.is_none() {
            return;
        }
        let verdict = fold.record.verdict;
        let unknown = verdict.is_refused_by(&GUARD);
        // A call that another guard refused shows no knowledge of tools.
        if unknown || verdict.lets_run() {
            state.repairs.note(unknown, || key(fold.record.event));
        }
    }
}

/// Whose mistakes are counted.
fn key(event: &Event) -> u64 {
    short(&format!("{}\nunknown_tool", event.actor))
}

/// Whether tools are listed by their names, those aside that are recognised in command lines.
fn lists(definition: &Definition) -> bool {
    definition.tools.iter().any(|tool| tool.commands.is_empty())
}

/// Whether tools are recognised in command lines, so that there must be some.
fn recognises(definition: &Definition) -> bool {
    definition.tools.iter().any(|tool| !tool.commands.is_empty())
}
