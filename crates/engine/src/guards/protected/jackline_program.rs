//! The `jackline` program: an agent may run commands that only read or tighten, but a person must
//! run those that weaken the guard.

use alloc::format;
use alloc::string::{String, ToString};

use jackline_shell::{ShellCommand, ShellWord};
use serde_json::Value;

use super::super::ViolationDraft;
use super::command_text;
use super::guard_loss::NO_HOOKS_SETTING;
use crate::proposal::{Proposal, ProposedRun};
use crate::tool::ToolKind;
use crate::verdict::{Decision, GuardName, ViolationClass, ViolationSubtype, ViolationType};

/// The name of the program.
const PROGRAM: &str = "jackline";

/// Commands that only read.
const READ_COMMANDS: [&str; 11] = [
    "check", "explain", "status", "log", "show", "replay", "verify", "backtest", "pending", "help",
    "version",
];

/// Commands that only tighten.
const TIGHTENING_COMMANDS: [&str; 4] = ["stop", "pause", "refuse", "enforce"];

/// Commands that weaken the guard or report events, as a script would name them.
const WEAKENING_COMMANDS: [&str; 14] = [
    "allow",
    "off",
    "resume",
    "reset",
    "observe",
    "trust",
    "ack",
    "clear",
    "reload",
    "stdio",
    "init",
    "hook",
    "skip",
    "constraint",
];

/// The prefix of approval codes, and how many characters follow.
const CODE_PREFIX: &str = "jl-";
const CODE_LETTERS: usize = 6;

/// Returns the violation for the first part of a call that would weaken the guard.
pub(super) fn weakening_violation(proposal: &Proposal<'_>) -> Option<ViolationDraft> {
    let found = (0..).zip(proposal.commands()).find(|(_, command)| is_weakening(command));
    let command = found.map(|(number, command)| {
        command_text(proposal, number).unwrap_or_else(|| command.program().to_string())
    });
    let part = command
        .or_else(|| find_weakening_script(proposal))
        .or_else(|| find_hookless_client(proposal))
        .or_else(|| find_scheduled_approval(proposal))?;
    Some(ViolationDraft {
        guard: GuardName::Protected,
        kind: ViolationType::ToolPolicyViolation,
        subtype: ViolationSubtype::OpeningControl,
        class: ViolationClass::Recoverable,
        decision: Decision::Deny,
        message: format!("`{part}` can weaken the guard, so an agent must not run it"),
        location: Some(PROGRAM.to_string()),
        correction: Some(
            "tell the person what you need; they must run it in their own terminal".to_string(),
        ),
    })
}

/// Returns a command that starts a client without hooks.
fn find_hookless_client(proposal: &Proposal<'_>) -> Option<String> {
    let skips_hooks = |word: &ShellWord<'_>| word.text.contains(NO_HOOKS_SETTING);
    let mut commands = (0..).zip(proposal.commands());
    let (number, _) = commands.find(|(_, command)| command.arguments().iter().any(skips_hooks))?;
    command_text(proposal, number)
}

/// Returns an argument that would count as a person's approval if it came back as a prompt. Agents
/// can schedule prompts to themselves.
fn find_scheduled_approval(proposal: &Proposal<'_>) -> Option<String> {
    if !matches!(proposal.tool.kind, ToolKind::Other | ToolKind::Spawn | ToolKind::Effect) {
        return None;
    }
    let texts = proposal.args?.as_object()?.values().filter_map(Value::as_str);
    texts.filter(|text| is_approval_text(text)).map(ToString::to_string).next()
}

/// Returns whether a text is only an approval code, with or without the command before it.
fn is_approval_text(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let last = words.next_back().unwrap_or_default();
    let is_code = last.split_at_checked(CODE_PREFIX.len()).is_some_and(|(code, letters)| {
        code.eq_ignore_ascii_case(CODE_PREFIX)
            && letters.len() == CODE_LETTERS
            && letters.chars().all(|c| c.is_ascii_alphanumeric())
    });
    is_code && words.all(|word| matches!(word, "jackline" | "allow" | "refuse"))
}

/// Returns whether a simple command runs the program for more than reading or tightening.
fn is_weakening(command: &ShellCommand<'_>) -> bool {
    if !command.program().eq_ignore_ascii_case(PROGRAM) {
        return false;
    }
    let mut words = command.arguments().iter();
    let Some(name) = words.find(|word| !is_option(word)) else { return false };
    // An expansion may become any command.
    let Some(name) = name.exact_text() else { return true };
    let asks_for_help =
        words.next().is_some_and(|word| matches!(word.exact_text(), Some("--help" | "-h")));
    !(asks_for_help || READ_COMMANDS.contains(&name) || TIGHTENING_COMMANDS.contains(&name))
}

/// Returns the weakening command that an opaque script contains.
fn find_weakening_script(proposal: &Proposal<'_>) -> Option<String> {
    let ProposedRun::Line(line) = &proposal.run else { return None };
    line.opaque_parts.iter().find_map(|part| {
        let words = part.text.split(|letter: char| !letter.is_ascii_alphanumeric());
        let mut words = words.filter(|word| !word.is_empty()).peekable();
        while let Some(word) = words.next() {
            if word == PROGRAM
                && let Some(name) = words.peek().filter(|name| WEAKENING_COMMANDS.contains(name))
            {
                return Some(format!("{PROGRAM} {name}"));
            }
        }
        None
    })
}

fn is_option(word: &ShellWord<'_>) -> bool {
    word.exact_text().is_some_and(|text| text.starts_with('-'))
}
