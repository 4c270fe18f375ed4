//! Signatures: when two calls are the same, and when they are about the same file or program.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use jackline_shell::ShellCommand;
use serde_json::Value;

use super::LoopSettings;
use super::loop_state::{CoarseSubject, shorten_call};
use crate::definition::ResolvedTool;
use crate::digest::Digest128;
use crate::event::CallStatus;
use crate::json;
use crate::observe::ObservedResult;
use crate::proposal::{Proposal, ProposedRun};
use crate::state::short_hash;
use crate::tool::path_pointers;

/// The usual size of the parts of a signature.
const PARTS_BYTES_USUAL: usize = 128;

/// Arguments beside a command line that do not change what it does.
const IGNORED_ARGUMENTS: [&str; 8] = [
    "description",
    "timeout",
    "timeout_ms",
    "timeout_seconds",
    "explanation",
    "justification",
    "reason",
    "yield_time_ms",
];

/// Returns a digest that is equal for calls that do the same: the same tool, the same arguments
/// except for volatile ones, and the same files however they are written. `written` is the digest
/// of the raw arguments; it is the only one for arguments that are no valid JSON.
pub(crate) fn call_signature(
    proposal: &Proposal<'_>,
    loops: &LoopSettings,
    written: Option<Digest128>,
) -> Digest128 {
    let tool = proposal.tool;
    // A name cannot contain control characters, so it cannot imitate a separator.
    let mut parts = Vec::with_capacity(PARTS_BYTES_USUAL);
    parts.push(tool.kind as u8);
    parts.extend(tool.name.as_bytes());
    parts.push(b'\n');
    if is_only_waiting(proposal) {
        // The duration and the directory of a sleep do not matter.
        parts.extend(b"sleep");
        return Digest128::of(&parts);
    }
    let args = proposal.args.map(|args| mask_arguments(proposal, args, loops));
    if let ProposedRun::Line(line) = &proposal.run {
        // The same command line does something else in another directory.
        parts.extend(proposal.cwd.as_bytes());
        parts.push(b'\n');
        if let Some(args) = args.as_deref() {
            add_other_arguments(tool, args, &mut parts);
        }
        add_plain_command_line(line.text, &mut parts);
        return Digest128::of(&parts);
    }
    let args = match args {
        Some(Cow::Owned(masked)) => Some(json::canonical_digest(&masked)),
        Some(Cow::Borrowed(args)) => Some(written.unwrap_or_else(|| json::canonical_digest(args))),
        None => written,
    };
    parts.push(u8::from(args.is_some()));
    parts.extend(args.iter().flat_map(Digest128::as_bytes));
    let paths = proposal.touches.iter().filter_map(|touch| touch.target.path());
    let unseen = matches!(proposal.run, ProposedRun::Unseen).then_some(proposal.cwd.as_str());
    for path in paths.chain(unseen) {
        parts.push(b'\n');
        parts.extend(path.as_bytes());
    }
    Digest128::of(&parts)
}

/// Returns whether a call only waits.
pub(crate) fn is_only_waiting(proposal: &Proposal<'_>) -> bool {
    let commands = proposal.commands();
    let is_sleep = |command: &ShellCommand<'_>| command.program() == "sleep";
    !commands.is_empty() && commands.iter().all(is_sleep) && proposal.touches.is_empty()
}

/// Adds the arguments beside the command line, except for those that do not matter.
fn add_other_arguments(tool: ResolvedTool<'_>, args: &Value, parts: &mut Vec<u8>) {
    let line = tool.command_line_pointer(args).strip_prefix('/').unwrap_or_default();
    let fields = args.as_object().into_iter().flatten();
    let mut relevant: Vec<_> = fields
        .filter(|(key, value)| {
            *key != line && !IGNORED_ARGUMENTS.contains(&key.as_str()) && !value.is_null()
        })
        .collect();
    relevant.sort_unstable_by_key(|(key, _)| *key);
    for (key, value) in relevant {
        parts.extend(json::canonical_digest(&Value::from(key.as_str())).as_bytes());
        parts.extend(json::canonical_digest(value).as_bytes());
    }
}

/// Adds a command line without comments and extra spaces. If it contains quotes or a here document,
/// only the spaces at both ends are removed.
fn add_plain_command_line(line: &str, parts: &mut Vec<u8>) {
    let line = line.trim();
    if line.contains(['\'', '"', '\\', '`', '$']) || line.contains("<<") {
        parts.extend(line.as_bytes());
        return;
    }
    for line in line.lines() {
        let words = line.split_ascii_whitespace().take_while(|word| !word.starts_with('#'));
        words.for_each(|word| {
            parts.extend(word.as_bytes());
            parts.push(b' ');
        });
        parts.push(b'\n');
    }
}

/// Returns the arguments without volatile values and without file names: the canonical path
/// matters, not the spelling.
fn mask_arguments<'v>(
    proposal: &Proposal<'_>,
    args: &'v Value,
    loops: &LoopSettings,
) -> Cow<'v, Value> {
    let has_files = matches!(proposal.run, ProposedRun::Nothing) && !proposal.touches.is_empty();
    let declared = proposal.tool.declared.map(|tool| &tool.paths);
    let declared_pointers =
        declared.into_iter().flat_map(|paths| paths.read.iter().chain(&paths.write));
    let names = declared_pointers
        .map(String::as_str)
        .chain(path_pointers(proposal.tool.name))
        .filter(|_| has_files);
    let mut args = Cow::Borrowed(args);
    for pointer in loops.volatile.iter().map(String::as_str).chain(names) {
        if json::value_at(&args, pointer).is_some_and(|value| !value.is_null())
            && let Some(value) = args.to_mut().pointer_mut(pointer)
        {
            value.take();
        }
    }
    args
}

/// Returns a digest that is equal for results with the same text and the same status.
pub(crate) fn outcome_signature(
    result: Option<&ObservedResult>,
    status: CallStatus,
    exit_code: Option<i64>,
    background: bool,
) -> Digest128 {
    match (result, status, exit_code) {
        (Some(result), CallStatus::Ok, None | Some(0)) if !background => result.content_digest(),
        (result, status, exit_code) => {
            let says = result.map(ObservedResult::content_digest);
            Digest128::of(format!("{status:?} {exit_code:?} {background} {says:?}").as_bytes())
        }
    }
}

/// Returns what a call is about. It is equal for calls about the same file or program:
/// `Edit(foo.py)`, `Bash(pytest tests/*)`. `None` if a call names neither a file nor a program.
pub(crate) fn coarse_subject(proposal: &Proposal<'_>) -> Option<CoarseSubject> {
    let name = proposal.tool.name;
    let mut text = String::with_capacity(PARTS_BYTES_USUAL);
    text.extend([name, "("]);
    let empty = text.len();
    if let ProposedRun::Line(line) = &proposal.run {
        for command in line.commands.iter().filter(|command| !command.words.is_empty()) {
            separate(&mut text, empty, "; ");
            add_coarse_command(command, &mut text);
        }
    }
    let named = text.len() > empty;
    let files = proposal.touches.iter().filter(|touch| !named || touch.changes());
    for path in files.filter_map(|touch| touch.target.path()) {
        separate(&mut text, empty, " ");
        add_coarse_path(path, &mut text);
    }
    if text.len() == empty {
        return None;
    }
    text.push(')');
    Some(CoarseSubject { hash: short_hash(&text), shown: shorten_call(text) })
}

/// Adds a separator after the first part of a text.
fn separate(text: &mut String, empty: usize, separator: &str) {
    if text.len() > empty {
        text.push_str(separator);
    }
}

/// Adds a program, its subcommand and its paths.
fn add_coarse_command(command: &ShellCommand<'_>, text: &mut String) {
    text.push_str(command.program());
    let plain = command.words.iter().skip(1).map(|word| &*word.text);
    for (at, word) in plain.filter(|word| !word.starts_with('-')).enumerate() {
        let is_path = word.contains('/') || is_file_name(word);
        let is_subcommand = at == 0 && word.bytes().all(|byte| byte.is_ascii_lowercase());
        if is_path {
            text.push(' ');
            add_coarse_path(word, text);
        } else if is_subcommand {
            text.extend([" ", word]);
        }
    }
}

/// Returns whether a word looks like a file name: a name with an extension, without characters of
/// code or prose.
fn is_file_name(word: &str) -> bool {
    let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"._-*".contains(&byte);
    word.split_once('.').is_some_and(|(name, _)| !name.is_empty()) && word.bytes().all(is_name_byte)
}

/// Adds the first directory of a path, or the file name if there is none. An address is shortened
/// to its host.
fn add_coarse_path(path: &str, text: &mut String) {
    if let Some((scheme, rest)) = path.split_once("://") {
        let host = rest.split('/').next().unwrap_or(rest);
        text.extend([scheme, "://", host, "/*"]);
        return;
    }
    let path = path.trim_start_matches("./");
    let below = path.strip_prefix('/').unwrap_or(path);
    match below.split_once('/') {
        Some((directory, _)) => text.extend([directory, "/*"]),
        None => text.push_str(below),
    }
}

/// Formats a call for people: `Bash(pytest tests/unit)`.
pub(crate) fn format_call(proposal: &Proposal<'_>) -> String {
    let (name, does) = (proposal.tool.name, proposal.does());
    let mut shown = String::with_capacity(name.len() + does.len() + 2);
    shown.extend([name, "(", does, ")"]);
    shown
}

#[cfg(test)]
mod tests;
