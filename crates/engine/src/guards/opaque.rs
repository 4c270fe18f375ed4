//! Opaque command lines: Jackline cannot tell what they run.
//!
//! A command line that is missing or too long to read is always denied. A command line that is only
//! partly understood runs, unless the definition asks a person about it or denies it.

use alloc::format;
use alloc::string::ToString;

use jackline_shell::{OpaqueReason, ShellOpaquePart as Part};

use super::{Guard, GuardAnswers, GuardInput, ViolationDraft, shorten_for_message};
use crate::definition::OpaquePolicy;
use crate::proposal::ProposedRun;
use crate::verdict::{Decision, GuardName, ViolationClass, ViolationSubtype, ViolationType};

pub(crate) struct OpaqueGuard;

impl Guard for OpaqueGuard {
    fn decide(&self, input: GuardInput<'_>, answers: &mut GuardAnswers) {
        let Some(proposal) = input.proposal else { return };
        match &proposal.run {
            ProposedRun::Nothing => {}
            // Another guard refuses invalid arguments.
            ProposedRun::Unseen if proposal.args.is_none() => {}
            ProposedRun::Unseen => answers.add_violation(ViolationDraft {
                guard: GuardName::Shell,
                kind: ViolationType::ToolPolicyViolation,
                subtype: ViolationSubtype::UnseenCommand,
                class: ViolationClass::Recoverable,
                decision: Decision::Deny,
                message: format!(
                    "the command line of `{}` is missing or too long to check",
                    proposal.tool.name
                ),
                location: Some(proposal.tool.name.to_string()),
                correction: Some(
                    "send the command line as one string; write a long script to a file and run \
                     that file"
                        .to_string(),
                ),
            }),
            ProposedRun::Line(line) => {
                let decision = match input.definition.shell.opaque {
                    OpaquePolicy::Allow => return,
                    OpaquePolicy::Ask if input.is_permitted() => return,
                    OpaquePolicy::Ask => Decision::Ask,
                    OpaquePolicy::Deny => Decision::Deny,
                };
                let is_opaque = |part: &&Part<'_>| {
                    may_run_anything(part.reason) && !proposal.is_recognised(part.command)
                };
                let Some(part) = line.opaque_parts.iter().find(is_opaque) else { return };
                answers.add_violation(ViolationDraft {
                    guard: GuardName::Shell,
                    kind: ViolationType::ToolPolicyViolation,
                    subtype: ViolationSubtype::OpaqueCommand,
                    class: ViolationClass::Recoverable,
                    decision,
                    message: format!(
                        "Jackline cannot tell what this command line runs: {} (at `{}`)",
                        describe_reason(part.reason),
                        shorten_for_message(line.text.get(part_range(part)).unwrap_or(line.text)),
                    ),
                    location: Some(reason_word(part.reason).to_string()),
                    correction: Some(
                        "write the commands out, without scripts and expansions".to_string(),
                    ),
                });
            }
        }
    }
}

fn part_range(part: &Part<'_>) -> core::ops::Range<usize> {
    part.span.start as usize..part.span.end as usize
}

/// Returns whether a reason means that any command could run.
fn may_run_anything(reason: OpaqueReason) -> bool {
    !matches!(reason, OpaqueReason::NoRow | OpaqueReason::Runner | OpaqueReason::Contents)
}

/// Returns the JSON word of a reason, which rules compare.
pub(crate) fn reason_word(reason: OpaqueReason) -> &'static str {
    match reason {
        OpaqueReason::Unparsable => "unparsable",
        OpaqueReason::Nul => "nul",
        OpaqueReason::TooLong => "too_long",
        OpaqueReason::TooDeep => "too_deep",
        OpaqueReason::TooMany => "too_many",
        OpaqueReason::StartsItself => "starts_itself",
        OpaqueReason::UnknownProgram => "unknown_program",
        OpaqueReason::UnknownArguments => "unknown_arguments",
        OpaqueReason::NoRow => "no_row",
        OpaqueReason::Runner => "runner",
        OpaqueReason::ScriptFile => "script_file",
        OpaqueReason::InlineScript => "inline_script",
        OpaqueReason::UnknownScript => "unknown_script",
        OpaqueReason::Alias => "alias",
        OpaqueReason::Elsewhere => "elsewhere",
        OpaqueReason::Environment => "environment",
        OpaqueReason::Contents => "contents",
    }
}

/// Describes a reason for people.
pub(crate) fn describe_reason(reason: OpaqueReason) -> &'static str {
    match reason {
        OpaqueReason::Unparsable => "it is not a valid command line",
        OpaqueReason::Nul => "it contains a NUL byte",
        OpaqueReason::TooLong => "it is too long",
        OpaqueReason::TooDeep => "it is nested too deeply",
        OpaqueReason::TooMany => "it has too many parts",
        OpaqueReason::StartsItself => "a function starts itself without end",
        OpaqueReason::UnknownProgram => "the program is named by an expansion",
        OpaqueReason::UnknownArguments => "an unknown argument may change what it does",
        OpaqueReason::NoRow => "the program is not recognised",
        OpaqueReason::Runner => "the program runs other programs",
        OpaqueReason::ScriptFile => "it runs a script from a file",
        OpaqueReason::InlineScript => "it contains a script in another language",
        OpaqueReason::UnknownScript => "it runs an unknown script",
        OpaqueReason::Alias => "an alias may replace the program",
        OpaqueReason::Elsewhere => "it runs something on another machine",
        OpaqueReason::Environment => "it changes which programs run",
        OpaqueReason::Contents => "it may write any file of a directory",
    }
}
