//! The guard's own program: an agent may look with it and may tighten, but what
//! opens the guard is a person's to run.

use alloc::format;
use alloc::string::{String, ToString};

use jackline_shell::{Command, Word};

use super::super::Objection;
use super::part_of;
use crate::proposal::{Proposal, Run};
use crate::verdict::{Class, Decision};

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
const OPENING: [&str; 12] = [
    "allow", "off", "resume", "reset", "observe", "trust", "ack", "clear", "reload", "stdio",
    "init", "hook",
];

/// The objection to the first part of a call that would open the guard.
pub(super) fn objection(proposal: &Proposal<'_>) -> Option<Objection<'static>> {
    let found = (0..).zip(proposal.commands()).find(|(_, command)| opens(command));
    let command = found.map(|(number, command)| {
        part_of(proposal, number).unwrap_or_else(|| command.program().to_string())
    });
    let part = command.or_else(|| script(proposal))?;
    Some(Objection {
        guard: "protected",
        kind: "tool_policy_violation",
        subtype: "opening_control",
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
