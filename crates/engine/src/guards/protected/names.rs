//! Parts that nobody can see into, and the protected paths they name.
//!
//! A script that can't be read does not run if it names a protected path, and
//! neither does a command whose program is not known. Programs that are merely
//! strangers may be given one: most of them read it.

use alloc::string::String;

use jackline_shell::{Access, Command, Line, Opaque, Reason};
use serde_json::Value;

use super::super::Look;
use super::paths::Guarded;
use crate::proposal::{Proposal, Run};

/// How long a text may be to be taken for a path.
const PATH_BYTES_MAX: usize = 4096;

/// The first protected path that an opaque part of a line names.
pub(super) fn named(
    look: Look<'_>,
    proposal: &Proposal<'_>,
    guarded: &Guarded<'_>,
) -> Option<String> {
    let Run::Line(line) = &proposal.run else { return None };
    // A language of its own, of which only the names can be looked for.
    if proposal.tool.name.eq_ignore_ascii_case("powershell") {
        return guarded.named_in(line.text, &proposal.cwd);
    }
    line.opaque.iter().find_map(|part| {
        let command = part.command.and_then(|number| line.commands.get(number as usize));
        let dir = command.map_or(Some(proposal.cwd.clone()), |command| {
            look.place.directory(&command.dir, &proposal.cwd)
        });
        let base = dir.as_deref().unwrap_or(".");
        Hidden { line, part, command, base }.named(guarded)
    })
}

/// The protected path that is a word of a command.
pub(super) fn word_of(
    look: Look<'_>,
    proposal: &Proposal<'_>,
    command: Option<u32>,
    guarded: &Guarded<'_>,
) -> Option<String> {
    let command = proposal.commands().get(command? as usize)?;
    let base = look.place.directory(&command.dir, &proposal.cwd);
    is_given(command, base.as_deref().unwrap_or("."), guarded)
}

struct Hidden<'p, 'a> {
    line: &'p Line<'a>,
    part: &'p Opaque<'a>,
    command: Option<&'p Command<'a>>,
    base: &'p str,
}

impl Hidden<'_, '_> {
    fn named(&self, guarded: &Guarded<'_>) -> Option<String> {
        let in_text = || guarded.named_in(&self.part.text, self.base);
        match self.part.reason {
            // Where it was given up, the rest of the line was not seen either.
            Reason::Unparsable
            | Reason::Nul
            | Reason::TooLong
            | Reason::TooDeep
            | Reason::TooMany => in_text().or_else(|| guarded.named_in(self.line.text, self.base)),
            Reason::Elsewhere | Reason::Environment => in_text(),
            Reason::InlineScript | Reason::UnknownScript | Reason::Alias => {
                in_text().or_else(|| self.named_by_command(guarded))
            }
            Reason::UnknownProgram => self.named_by_command(guarded),
            // The text is there where a program was handed a command.
            Reason::Runner if self.part.text.is_empty() => {
                self.command.and_then(|command| is_told_to_write(command, self.base, guarded))
            }
            Reason::Runner => in_text().and_then(|_| self.named_by_command(guarded)),
            Reason::UnknownArguments | Reason::Contents => {
                self.command.and_then(|command| is_given(command, self.base, guarded))
            }
            Reason::NoRow | Reason::ScriptFile => {
                self.command.and_then(|command| is_told_to_write(command, self.base, guarded))
            }
        }
    }

    /// What the command names, besides files that it only reads.
    fn named_by_command(&self, guarded: &Guarded<'_>) -> Option<String> {
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
        // What is handed over by a here-document or a here-string is no word.
        let span = command.span.start as usize..command.span.end as usize;
        let text = self.line.text.get(span).filter(|text| text.contains("<<"))?;
        let handed = text.split_once("<<").map_or("", |(_, handed)| handed);
        guarded.named_in(handed, self.base)
    }
}

/// The protected path that is a word of a command, or the value of an option.
fn is_given(command: &Command<'_>, base: &str, guarded: &Guarded<'_>) -> Option<String> {
    command.arguments().iter().find_map(|word| {
        let value = word.text.split_once('=').map_or("", |(_, value)| value);
        let mut paths = [&*word.text, value].into_iter().filter(|text| may_be_path(text));
        paths.find_map(|text| {
            let path = guarded.place.locate(text, base);
            guarded.contains(&path).then_some(path)
        })
    })
}

/// How options begin behind which a program is given what it writes.
const OUTPUTS: [&str; 14] = [
    "-o", "-O", "--out", "--save", "--write", "--log", "--dump", "--result", "--record",
    "--export", "--dest", "--target", "-out", "-sOutput",
];

/// Options and subcommands that make a program change what it is given.
const CHANGES: [&str; 16] = [
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

/// The protected path that a stranger is told to write, as programs are told
/// such things.
fn is_told_to_write(command: &Command<'_>, base: &str, guarded: &Guarded<'_>) -> Option<String> {
    let words = command.arguments();
    let at = |text: &str| {
        let path = may_be_path(text).then(|| guarded.place.locate(text, base))?;
        guarded.contains(&path).then_some(path)
    };
    let is_output = |text: &str| OUTPUTS.iter().any(|option| text.starts_with(option));
    let changes = words.iter().any(|word| CHANGES.contains(&&*word.text));
    let mut before = "";
    for word in words {
        let text = &*word.text;
        let (option, value) = text.split_once('=').unwrap_or((text, ""));
        let attached = text.strip_prefix("-o").unwrap_or_default();
        let hit = if changes || is_output(before) { at(text) } else { None };
        let hit = hit.or_else(|| is_output(option).then(|| at(value)).flatten());
        if let Some(path) = hit.or_else(|| at(attached)) {
            return Some(path);
        }
        before = text;
    }
    None
}

/// A text among the arguments that is the path of a protected file.
pub(super) fn named_argument(
    value: &Value,
    proposal: &Proposal<'_>,
    guarded: &Guarded<'_>,
) -> Option<String> {
    let at = |text: &str| {
        let path = text.strip_prefix("file://").unwrap_or(text);
        let path = may_be_path(path).then(|| guarded.place.located(path, &proposal.cwd))?;
        guarded.contains(&path).then(|| path.into_owned())
    };
    match value {
        Value::String(text) => at(text),
        Value::Array(items) => {
            items.iter().find_map(|item| named_argument(item, proposal, guarded))
        }
        Value::Object(fields) => fields
            .iter()
            .find_map(|(key, field)| at(key).or_else(|| named_argument(field, proposal, guarded))),
        _ => None,
    }
}

/// Whether a text is short and plain enough for a path.
pub(super) fn may_be_path(text: &str) -> bool {
    !text.is_empty() && text.len() <= PATH_BYTES_MAX && !text.contains(['\n', '\0'])
}
