//! What makes two calls the same, and what makes them about the same.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use jackline_shell::Command;
use serde_json::Value;

use super::Loops;
use crate::definition::Resolved;
use crate::digest::Digest128;
use crate::event::Status;
use crate::json;
use crate::observe::ObservedResult;
use crate::proposal::{Proposal, Run};
use crate::state::short;
use crate::tool::path_keys;

/// How long that is which makes a call, in most of them.
const PARTS_BYTES_MOSTLY: usize = 128;

/// What agents tell of a command line besides: it does the same without.
const ASIDES: [&str; 8] = [
    "description",
    "timeout",
    "timeout_ms",
    "timeout_seconds",
    "explanation",
    "justification",
    "reason",
    "yield_time_ms",
];

/// The same for calls that do the same: one tool, the same arguments but for
/// what is declared to say nothing, the same files however they are written.
/// `written` is the fingerprint of the arguments as they came, which is all that
/// is known of arguments that are none.
pub(crate) fn call_signature(
    proposal: &Proposal<'_>,
    loops: &Loops,
    written: Option<Digest128>,
) -> Digest128 {
    let tool = proposal.tool;
    // A name can hold no control characters, so nothing can pretend to be a part.
    let mut parts = Vec::with_capacity(PARTS_BYTES_MOSTLY);
    parts.push(tool.kind as u8);
    parts.extend(tool.name.as_bytes());
    parts.push(b'\n');
    if only_waits(proposal) {
        // How long does not matter, nor where.
        parts.extend(b"sleep");
        return Digest128::of(&parts);
    }
    let args = proposal.args.map(|args| masked(proposal, args, loops));
    if let Run::Line(line) = &proposal.run {
        // The same line does something else in another directory.
        parts.extend(proposal.cwd.as_bytes());
        parts.push(b'\n');
        if let Some(args) = args.as_deref() {
            beside_line(tool, args, &mut parts);
        }
        plain_line(line.text, &mut parts);
        return Digest128::of(&parts);
    }
    let args = match args {
        Some(Cow::Owned(masked)) => Some(json::digest(&masked)),
        Some(Cow::Borrowed(args)) => Some(written.unwrap_or_else(|| json::digest(args))),
        None => written,
    };
    parts.push(u8::from(args.is_some()));
    parts.extend(args.iter().flat_map(Digest128::as_bytes));
    let paths = proposal.touches.iter().filter_map(|touch| touch.target.path());
    let unseen = matches!(proposal.run, Run::Unseen).then_some(proposal.cwd.as_str());
    for path in paths.chain(unseen) {
        parts.push(b'\n');
        parts.extend(path.as_bytes());
    }
    Digest128::of(&parts)
}

/// Whether a call does nothing but wait.
pub(crate) fn only_waits(proposal: &Proposal<'_>) -> bool {
    let commands = proposal.commands();
    let sleeps = |command: &Command<'_>| command.program() == "sleep";
    !commands.is_empty() && commands.iter().all(sleeps) && proposal.touches.is_empty()
}

/// What a call says besides its command line and what is only said about it.
fn beside_line(tool: Resolved<'_>, args: &Value, parts: &mut Vec<u8>) {
    let line = tool.line_pointer(args).strip_prefix('/').unwrap_or_default();
    let fields = args.as_object().into_iter().flatten();
    let mut said: Vec<_> = fields
        .filter(|(key, value)| *key != line && !ASIDES.contains(&key.as_str()) && !value.is_null())
        .collect();
    said.sort_unstable_by_key(|(key, _)| *key);
    for (key, value) in said {
        parts.extend(json::digest(&Value::from(key.as_str())).as_bytes());
        parts.extend(json::digest(value).as_bytes());
    }
}

/// A command line without comments, and without spaces that say nothing. Where
/// something is quoted in it, or handed over as a text, only its ends are bare.
fn plain_line(line: &str, parts: &mut Vec<u8>) {
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

/// Arguments without what is declared to say nothing, and without the names of
/// files: where they lead counts, not how they are written.
fn masked<'v>(proposal: &Proposal<'_>, args: &'v Value, loops: &Loops) -> Cow<'v, Value> {
    let named = matches!(proposal.run, Run::Nothing) && !proposal.touches.is_empty();
    let declared = proposal.tool.declared.map(|tool| &tool.paths);
    let told = declared.into_iter().flat_map(|paths| paths.read.iter().chain(&paths.write));
    let names = told.map(String::as_str).chain(path_keys(proposal.tool.name)).filter(|_| named);
    let mut args = Cow::Borrowed(args);
    for pointer in loops.volatile.iter().map(String::as_str).chain(names) {
        if json::at(&args, pointer).is_some_and(|value| !value.is_null())
            && let Some(value) = args.to_mut().pointer_mut(pointer)
        {
            value.take();
        }
    }
    args
}

/// The same for results that say the same and ended in the same way.
pub(crate) fn outcome_signature(
    result: Option<&ObservedResult>,
    status: Status,
    exit_code: Option<i64>,
    background: bool,
) -> Digest128 {
    match (result, status, exit_code) {
        (Some(result), Status::Ok, None | Some(0)) if !background => result.says(),
        (result, status, exit_code) => {
            let says = result.map(ObservedResult::says);
            Digest128::of(format!("{status:?} {exit_code:?} {background} {says:?}").as_bytes())
        }
    }
}

/// The same for calls that are about the same: `Edit(foo.py)`, `pytest tests/*`.
/// Nothing where a call names neither a file nor a program.
pub(crate) fn coarse_signature(proposal: &Proposal<'_>) -> Option<u64> {
    let mut text = match &proposal.run {
        Run::Line(line) => {
            let mut text = String::with_capacity(PARTS_BYTES_MOSTLY);
            line.commands.iter().filter(|command| !command.words.is_empty()).for_each(|command| {
                coarse_command(command, &mut text);
            });
            text
        }
        Run::Nothing | Run::Unseen => String::new(),
    };
    let named = !text.is_empty();
    let files = proposal.touches.iter().filter(|touch| !named || touch.changes());
    for path in files.filter_map(|touch| touch.target.path()) {
        text.push(' ');
        text.push_str(coarse_path(path));
    }
    if text.is_empty() {
        return None;
    }
    text.push('\n');
    text.push_str(proposal.tool.name);
    Some(short(&text))
}

/// A program, what it is told to do, and where.
fn coarse_command(command: &Command<'_>, text: &mut String) {
    text.push_str(command.program());
    let plain = command.words.iter().skip(1).map(|word| &*word.text);
    for (at, word) in plain.filter(|word| !word.starts_with('-')).enumerate() {
        let is_path = word.contains('/') || is_file_name(word);
        let is_subcommand = at == 0 && word.bytes().all(|byte| byte.is_ascii_lowercase());
        if is_path || is_subcommand {
            text.push(' ');
            text.push_str(if is_path { coarse_path(word) } else { word });
        }
    }
    text.push(';');
}

/// A name with an ending, and nothing that code or prose would have in it.
fn is_file_name(word: &str) -> bool {
    let named = |byte: u8| byte.is_ascii_alphanumeric() || b"._-*".contains(&byte);
    word.split_once('.').is_some_and(|(name, _)| !name.is_empty()) && word.bytes().all(named)
}

/// The first directory of a path; the file itself where there is none.
fn coarse_path(path: &str) -> &str {
    let path = path.trim_start_matches("./");
    let below = path.strip_prefix('/').unwrap_or(path);
    below.split('/').next().unwrap_or(below)
}

/// A call as people read it: `Bash(pytest tests/unit)`.
pub(crate) fn shown(proposal: &Proposal<'_>) -> String {
    let (name, does) = (proposal.tool.name, proposal.does());
    let mut shown = String::with_capacity(name.len() + does.len() + 2);
    shown.extend([name, "(", does, ")"]);
    shown
}

#[cfg(test)]
mod tests;
