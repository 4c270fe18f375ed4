//! The guard's own program: an agent may look with it and may tighten, but what
//! opens the guard is a person's to run.

use alloc::format;
use alloc::string::{String, ToString};

use jackline_shell::{Command, Word};
use serde_json::Value;

use super::super::Objection;
use super::part_of;
use crate::proposal::{Proposal, Run};
use crate::tool::Kind;
use crate::verdict::{Class, Decision, GuardName, ViolationSubtype, ViolationType};

/// What the program is called.
const PROGRAM: &str = "jackline";

/// Commands that only show something.
const READING: [&str; 11] = [
    "check", "explain", "status", "log", "show", "replay", "verify", "backtest", "pending", "help",
    "version",
];

/// Commands that only ever tighten.
const CLOSING: [&str; 4] = ["stop", "pause", "refuse", "enforce"];

/// Commands that open the guard or say what they like, as a script names them.
const OPENING: [&str; 14] = [
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

/// The setting by which a client asks no hooks.
const NO_HOOKS: &str = "disableAllHooks";

/// How the codes begin by which a person answers, and how many letters follow.
const CODE: &str = "jl-";
const CODE_LETTERS: usize = 6;

/// The objection to the first part of a call that would open the guard.
pub(super) fn objection(proposal: &Proposal<'_>) -> Option<Objection> {
    let found = (0..).zip(proposal.commands()).find(|(_, command)| opens(command));
    let command = found.map(|(number, command)| {
        part_of(proposal, number).unwrap_or_else(|| command.program().to_string())
    });
    let part = command
        .or_else(|| script(proposal))
        .or_else(|| silencer(proposal))
        .or_else(|| later_word(proposal))?;
    Some(Objection {
        guard: GuardName::Protected,
        kind: ViolationType::ToolPolicyViolation,
        subtype: ViolationSubtype::OpeningControl,
        class: Class::Recoverable,
        decision: Decision::Deny,
        message: format!("`{part}` can open the guard, and an agent may not run it"),
        location: Some(PROGRAM.to_string()),
        correction: Some(
            "tell the person what you need; they have to run it in a terminal of their own"
                .to_string(),
        ),
    })
}

/// A client that is started so that it asks no guard.
fn silencer(proposal: &Proposal<'_>) -> Option<String> {
    let silences = |word: &Word<'_>| word.text.contains(NO_HOOKS);
    let mut commands = (0..).zip(proposal.commands());
    let (number, _) = commands.find(|(_, command)| command.arguments().iter().any(silences))?;
    part_of(proposal, number)
}

/// A text that would be a person's word once it comes back as a prompt: agents
/// can have themselves told something later.
fn later_word(proposal: &Proposal<'_>) -> Option<String> {
    if !matches!(proposal.tool.kind, Kind::Other | Kind::Spawn | Kind::Effect) {
        return None;
    }
    let texts = proposal.args?.as_object()?.values().filter_map(Value::as_str);
    texts.filter(|text| is_word(text)).map(ToString::to_string).next()
}

/// Whether a text is a code alone, perhaps with what to do with it.
fn is_word(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let last = words.next_back().unwrap_or_default();
    let is_code = last.split_at_checked(CODE.len()).is_some_and(|(code, letters)| {
        code.eq_ignore_ascii_case(CODE)
            && letters.len() == CODE_LETTERS
            && letters.chars().all(|c| c.is_ascii_alphanumeric())
    });
    is_code && words.all(|word| matches!(word, "jackline" | "allow" | "refuse"))
}

/// Whether a simple command runs the program for anything but to look or to tighten.
fn opens(command: &Command<'_>) -> bool {
    if !command.program().eq_ignore_ascii_case(PROGRAM) {
        return false;
    }
    let mut words = command.arguments().iter();
    let Some(name) = words.find(|word| !is_option(word)) else { return false };
    // An expansion may become any command.
    let Some(name) = name.exact() else { return true };
    let asks_for_help =
        words.next().is_some_and(|word| matches!(word.exact(), Some("--help" | "-h")));
    !(asks_for_help || READING.contains(&name) || CLOSING.contains(&name))
}

/// What a script that can't be read would open the guard with.
fn script(proposal: &Proposal<'_>) -> Option<String> {
    let Run::Line(line) = &proposal.run else { return None };
    line.opaque.iter().find_map(|part| {
        let words = part.text.split(|letter: char| !letter.is_ascii_alphanumeric());
        let mut words = words.filter(|word| !word.is_empty()).peekable();
        while let Some(word) = words.next() {
            if word == PROGRAM
                && let Some(name) = words.peek().filter(|name| OPENING.contains(name))
            {
                return Some(format!("{PROGRAM} {name}"));
            }
        }
        None
    })
}

fn is_option(word: &Word<'_>) -> bool {
    word.exact().is_some_and(|text| text.starts_with('-'))
}
