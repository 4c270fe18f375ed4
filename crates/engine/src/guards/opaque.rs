//! Command lines that can't be seen into.
//!
//! One that is not there to be read at all is refused: nobody could say what it
//! does. One that is only understood in part runs, unless the definition says
//! that a person is asked, or that it does not.

use alloc::format;
use alloc::string::ToString;

use jackline_shell::{Opaque as Part, Reason};

use super::{Answers, Guard, Look, Objection, shortened};
use crate::definition::Opaque;
use crate::proposal::Run;
use crate::verdict::{Class, Decision, GuardName, ViolationSubtype, ViolationType};

pub(crate) struct OpaqueGuard;

impl Guard for OpaqueGuard {
    fn decide(&self, look: Look<'_>, answers: &mut Answers) {
        let Some(proposal) = look.proposal else { return };
        match &proposal.run {
            Run::Nothing => {}
            // Arguments that are none are refused by another guard.
            Run::Unseen if proposal.args.is_none() => {}
            Run::Unseen => answers.object(Objection {
                guard: GuardName::Shell,
                kind: ViolationType::ToolPolicyViolation,
                subtype: ViolationSubtype::UnseenCommand,
                class: Class::Recoverable,
                decision: Decision::Deny,
                message: format!(
                    "the command line of `{}` is missing, or too long to be looked at",
                    proposal.tool.name
                ),
                location: Some(proposal.tool.name.to_string()),
                correction: Some(
                    "send it as one text; write a long script to a file, and run that".to_string(),
                ),
            }),
            Run::Line(line) => {
                let decision = match look.definition.shell.opaque {
                    Opaque::Allow => return,
                    Opaque::Ask if look.is_permitted() => return,
                    Opaque::Ask => Decision::Ask,
                    Opaque::Deny => Decision::Deny,
                };
                let hidden =
                    |part: &&Part<'_>| hides(part.reason) && !proposal.is_recognised(part.command);
                let Some(part) = line.opaque.iter().find(hidden) else { return };
                answers.object(Objection {
                    guard: GuardName::Shell,
                    kind: ViolationType::ToolPolicyViolation,
                    subtype: ViolationSubtype::OpaqueCommand,
                    class: Class::Recoverable,
                    decision,
                    message: format!(
                        "it can't be seen what this line runs: {} (at `{}`)",
                        describe(part.reason),
                        shortened(line.text.get(span(part)).unwrap_or(line.text)),
                    ),
                    location: Some(word(part.reason).to_string()),
                    correction: Some(
                        "write the commands out, without scripts and expansions".to_string(),
                    ),
                });
            }
        }
    }
}

fn span(part: &Part<'_>) -> core::ops::Range<usize> {
    part.span.start as usize..part.span.end as usize
}

/// Whether a reason means that anything could be run.
fn hides(reason: Reason) -> bool {
    !matches!(reason, Reason::NoRow | Reason::Runner | Reason::Contents)
}

/// The word for a reason, as rules see it.
pub(crate) fn word(reason: Reason) -> &'static str {
    match reason {
        Reason::Unparsable => "unparsable",
        Reason::Nul => "nul",
        Reason::TooLong => "too_long",
        Reason::TooDeep => "too_deep",
        Reason::TooMany => "too_many",
        Reason::UnknownProgram => "unknown_program",
        Reason::UnknownArguments => "unknown_arguments",
        Reason::NoRow => "no_row",
        Reason::Runner => "runner",
        Reason::ScriptFile => "script_file",
        Reason::InlineScript => "inline_script",
        Reason::UnknownScript => "unknown_script",
        Reason::Alias => "alias",
        Reason::Elsewhere => "elsewhere",
        Reason::Environment => "environment",
        Reason::Contents => "contents",
    }
}

/// A reason for people.
pub(crate) fn describe(reason: Reason) -> &'static str {
    match reason {
        Reason::Unparsable => "it is not a valid command line",
        Reason::Nul => "it holds a NUL",
        Reason::TooLong => "it is too long",
        Reason::TooDeep => "it nests too deep",
        Reason::TooMany => "it has too many parts",
        Reason::UnknownProgram => "the program is named by an expansion",
        Reason::UnknownArguments => "an argument that is not known may change what it does",
        Reason::NoRow => "the program is not known",
        Reason::Runner => "the program runs others",
        Reason::ScriptFile => "it runs a script from a file",
        Reason::InlineScript => "it holds a script in another language",
        Reason::UnknownScript => "it runs a script that is not known",
        Reason::Alias => "an alias may stand for another program",
        Reason::Elsewhere => "it runs something on another machine",
        Reason::Environment => "it changes which programs are run",
        Reason::Contents => "it may write any file of a directory",
    }
}
