//! Opaque parts of a command line, and the protected paths that they name.
//!
//! A script that Jackline cannot parse is denied if it names a protected path, and so is a command
//! whose program is unknown at parse time. A program that is merely not recognised may get a
//! protected path as an argument, because most programs only read it.

use alloc::string::String;

use jackline_shell::{Access, OpaqueReason, ShellCommand, ShellLine, ShellOpaquePart};
use serde_json::Value;

use super::super::GuardInput;
use super::git_facts;
use super::paths::ProtectedPaths;
use crate::proposal::{Proposal, ProposedRun};

/// How long a text may be to count as a path.
const PATH_BYTES_MAX: usize = 4096;

/// Returns the first protected path that an opaque part of a command line names.
pub(super) fn named_path(
    input: GuardInput<'_>,
    proposal: &Proposal<'_>,
    guarded: &ProtectedPaths<'_>,
) -> Option<String> {
    let ProposedRun::Line(line) = &proposal.run else { return None };
    // Jackline does not parse PowerShell; it only searches the text for names.
    if proposal.tool.name.eq_ignore_ascii_case("powershell") {
        return guarded.named_in(line.text, &proposal.cwd);
    }
    // Git has told which files its commands change.
    let is_answered = |part: &&ShellOpaquePart<'_>| {
        part.reason == OpaqueReason::Contents && git_facts::is_answered(input, part.command)
    };
    line.opaque_parts.iter().filter(|part| !is_answered(part)).find_map(|part| {
        let command = part.command.and_then(|number| line.commands.get(number as usize));
        let dir = command.map_or(Some(proposal.cwd.clone()), |command| {
            input.place.command_directory(&command.dir, &proposal.cwd)
        });
        let base = dir.as_deref().unwrap_or(".");
        OpaqueNameSearch { line, part, command, base }.named(guarded)
    })
}

/// Returns the protected path that is an argument of a command.
pub(super) fn argument_path(
    input: GuardInput<'_>,
    proposal: &Proposal<'_>,
    command: Option<u32>,
    guarded: &ProtectedPaths<'_>,
) -> Option<String> {
    let command = proposal.commands().get(command? as usize)?;
    let base = input.place.command_directory(&command.dir, &proposal.cwd);
    protected_argument(command, base.as_deref().unwrap_or("."), guarded)
}

struct OpaqueNameSearch<'p, 'a> {
    line: &'p ShellLine<'a>,
    part: &'p ShellOpaquePart<'a>,
    command: Option<&'p ShellCommand<'a>>,
    base: &'p str,
}

impl OpaqueNameSearch<'_, '_> {
    fn named(&self, guarded: &ProtectedPaths<'_>) -> Option<String> {
        let in_text = || guarded.named_in(&self.part.text, self.base);
        match self.part.reason {
            // Parsing stopped at this part, so the rest of the command line is unparsed, too.
            OpaqueReason::Unparsable
            | OpaqueReason::Nul
            | OpaqueReason::TooLong
            | OpaqueReason::TooDeep
            | OpaqueReason::TooMany
            | OpaqueReason::StartsItself => {
                in_text().or_else(|| guarded.named_in(self.line.text, self.base))
            }
            OpaqueReason::Elsewhere | OpaqueReason::Environment => in_text(),
            OpaqueReason::InlineScript | OpaqueReason::UnknownScript | OpaqueReason::Alias => {
                in_text().or_else(|| self.named_by_command(guarded))
            }
            OpaqueReason::UnknownProgram => self.named_by_command(guarded),
            // The text is empty if the program got no command.
            OpaqueReason::Runner if self.part.text.is_empty() => {
                self.command.and_then(|command| written_argument(command, self.base, guarded))
            }
            OpaqueReason::Runner => in_text().and_then(|_| self.named_by_command(guarded)),
            OpaqueReason::UnknownArguments | OpaqueReason::Contents => {
                self.command.and_then(|command| protected_argument(command, self.base, guarded))
            }
            OpaqueReason::NoRow | OpaqueReason::ScriptFile => {
                self.command.and_then(|command| written_argument(command, self.base, guarded))
            }
        }
    }

    /// Returns the protected path that the command names, except for files that it only reads.
    fn named_by_command(&self, guarded: &ProtectedPaths<'_>) -> Option<String> {
        let command = self.command?;
        let is_read = |text: &str| {
            let mut effects = command.effects.iter();
            effects
                .any(|effect| matches!(effect.access, Access::Read(_)) && effect.path.text == text)
        };
        let mut words = command.words.iter().filter(|word| !is_read(&word.text));
        if let Some(name) = words.find_map(|word| guarded.named_in(&word.text, self.base)) {
            return Some(name);
        }
        // The text of a here document or here string is not among the words.
        let span = command.span.start as usize..command.span.end as usize;
        let text = self.line.text.get(span).filter(|text| text.contains("<<"))?;
        let here_text = text.split_once("<<").map_or("", |(_, here_text)| here_text);
        guarded.named_in(here_text, self.base)
    }
}

/// Returns the protected path that is an argument of a command, or the value of an option.
fn protected_argument(
    command: &ShellCommand<'_>,
    base: &str,
    guarded: &ProtectedPaths<'_>,
) -> Option<String> {
    command.arguments().iter().find_map(|word| {
        let value = word.text.split_once('=').map_or("", |(_, value)| value);
        let mut paths = [&*word.text, value].into_iter().filter(|text| may_be_path(text));
        paths.find_map(|text| {
            let path = guarded.place.resolve_path(text, base);
            guarded.contains(&path).then_some(path)
        })
    })
}

/// Beginnings of options whose value is an output file.
const OUTPUT_OPTIONS: [&str; 14] = [
    "-o", "-O", "--out", "--save", "--write", "--log", "--dump", "--result", "--record",
    "--export", "--dest", "--target", "-out", "-sOutput",
];

/// Options and subcommands that make a program change its arguments.
const CHANGE_OPTIONS: [&str; 16] = [
    "--in-place",
    "--inplace",
    "--write",
    "--fix",
    "--overwrite",
    "--rm",
    "--remove",
    "--delete",
    "revert",
    "restore",
    "fmt",
    "trash",
    "delete",
    "remove",
    "set",
    "--set",
];

/// Returns the protected path that an unrecognised program is probably asked to write.
fn written_argument(
    command: &ShellCommand<'_>,
    base: &str,
    guarded: &ProtectedPaths<'_>,
) -> Option<String> {
    let words = command.arguments();
    let protected_path = |text: &str| {
        let path = may_be_path(text).then(|| guarded.place.resolve_path(text, base))?;
        guarded.contains(&path).then_some(path)
    };
    let is_output = |text: &str| OUTPUT_OPTIONS.iter().any(|option| text.starts_with(option));
    let changes = words.iter().any(|word| CHANGE_OPTIONS.contains(&&*word.text));
    let mut before = "";
    for word in words {
        let text = &*word.text;
        let (option, value) = text.split_once('=').unwrap_or((text, ""));
        let attached = text.strip_prefix("-o").unwrap_or_default();
        let output = if changes || is_output(before) { protected_path(text) } else { None };
        let output = output.or_else(|| is_output(option).then(|| protected_path(value)).flatten());
        if let Some(path) = output.or_else(|| protected_path(attached)) {
            return Some(path);
        }
        before = text;
    }
    None
}

/// Returns the first string in the arguments that is a protected path.
pub(super) fn named_argument(
    value: &Value,
    proposal: &Proposal<'_>,
    guarded: &ProtectedPaths<'_>,
) -> Option<String> {
    let protected_path = |text: &str| {
        let path = text.strip_prefix("file://").unwrap_or(text);
        let path =
            may_be_path(path).then(|| guarded.place.resolve_path_cow(path, &proposal.cwd))?;
        guarded.contains(&path).then(|| path.into_owned())
    };
    match value {
        Value::String(text) => protected_path(text),
        Value::Array(items) => {
            items.iter().find_map(|item| named_argument(item, proposal, guarded))
        }
        Value::Object(fields) => fields.iter().find_map(|(key, field)| {
            protected_path(key).or_else(|| named_argument(field, proposal, guarded))
        }),
        _ => None,
    }
}

/// Returns whether a text is short and simple enough for a path.
pub(super) fn may_be_path(text: &str) -> bool {
    !text.is_empty() && text.len() <= PATH_BYTES_MAX && !text.contains(['\n', '\0'])
}
