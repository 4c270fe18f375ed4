//! Tools that the definition does not know, where it says which there are.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::{Answers, Guard, Look, Objection, listed};
use crate::definition::{Definition, UnknownTools};
use crate::nearest::nearest;
use crate::tool::Kind;
use crate::verdict::{Class, Decision};

/// How many tools a message names.
const TOOLS_SHOWN: usize = 8;

pub(crate) struct Unknown;

impl Guard for Unknown {
    fn decide(&self, look: Look<'_>, answers: &mut Answers) {
        let Some(proposal) = look.proposal else { return };
        let definition = look.definition;
        let tool = proposal.tool;
        if definition.unknown_tools == UnknownTools::Allow
            || tool.declared.is_some()
            || (tool.kind == Kind::Exec && recognises(definition))
        {
            return;
        }
        let known: Vec<&str> = definition.tools.iter().map(|tool| tool.name.as_str()).collect();
        let names = || {
            let more = if known.len() > TOOLS_SHOWN { ", …" } else { "" };
            format!("known are {}{more}", listed(known.iter().copied().take(TOOLS_SHOWN)))
        };
        let correction = nearest(tool.name, known.iter().copied())
            .map_or_else(names, |meant| format!("did you mean `{meant}`?"));
        answers.object(Objection {
            guard: "tools",
            kind: "unknown_tool",
            subtype: "unknown_tool",
            class: Class::Recoverable,
            decision: Decision::Deny,
            message: format!("there is no tool `{}`", tool.name),
            location: Some(tool.name.to_string()),
            correction: Some(correction),
        });
    }
}

/// Whether tools are recognised in command lines, so that there must be some.
fn recognises(definition: &Definition) -> bool {
    definition.tools.iter().any(|tool| !tool.commands.is_empty())
}
