//! What must be true before the agent may stop.

use jackline_engine::canonical;
use jackline_engine::definition::{Cap, Checker, RequiredFile};

use crate::keys;
use crate::reader::Reader;
use crate::yaml::{Node, NodeValue};

/// How deep `all` and `any` may nest.
const DEPTH_MAX: usize = 8;

/// How many commands a definition may ask for: each is a process.
pub(crate) const COMMANDS_MAX: u16 = 64;

/// How long a command may take unless the definition says otherwise.
const TIMEOUT_SECONDS: u32 = 600;

pub(crate) fn lower(node: &Node, reader: &mut Reader<'_>) -> Option<Checker> {
    if node.value == NodeValue::Null {
        return None;
    }
    let mut commands = 0;
    let checker = checker(node, 0, &mut commands, reader);
    if commands > COMMANDS_MAX {
        reader.complain(node.at, format!("{commands} commands; at most {COMMANDS_MAX} are run"));
    }
    checker
}

/// A check; `commands` counts those that run a command.
fn checker(
    node: &Node,
    depth: usize,
    commands: &mut u16,
    reader: &mut Reader<'_>,
) -> Option<Checker> {
    if depth > DEPTH_MAX {
        reader.complain(node.at, format!("`all` and `any` nest deeper than {DEPTH_MAX}"));
        return None;
    }
    if let NodeValue::Map(entries) = &node.value
        && entries.len() > 1
    {
        // What else is wrong in there is worth knowing too.
        let fields: Vec<_> = reader.fields(node, &keys::CHECKER).collect();
        fields.iter().for_each(|(key, body)| drop(one(key, body, depth, commands, reader)));
        let message = format!("a completion check has exactly one key, not {}", entries.len());
        reader.complain_hint(node.at, message, "combine several with `all` or `any`");
        return None;
    }
    let (key, body) = reader.single(node, &keys::CHECKER)?;
    one(key, body, depth, commands, reader)
}

fn one(
    key: &str,
    body: &Node,
    depth: usize,
    commands: &mut u16,
    reader: &mut Reader<'_>,
) -> Option<Checker> {
    if key == "command" {
        let number = *commands;
        *commands = commands.saturating_add(1);
        return command(body, number, reader);
    }
    if key == "clean" {
        // It has nothing to set, and says so to whoever tries.
        let _ = reader.fields(body, &keys::CLEAN).count();
        return Some(Checker::Clean);
    }
    let items = reader.list(body, &format!("`{key}`"));
    if items.is_empty() && matches!(body.value, NodeValue::List(_) | NodeValue::Null) {
        let message = format!("`{key}` is empty, so it demands nothing");
        reader.complain_hint(body.at, message, "list what must be there, or remove it");
        return None;
    }
    if key == "files" {
        let files: Vec<_> = items.iter().map(|item| required_file(item, reader)).collect();
        return files.into_iter().collect::<Option<_>>().map(Checker::Files);
    }
    let parts: Vec<_> =
        items.iter().map(|item| checker(item, depth + 1, commands, reader)).collect();
    let parts = parts.into_iter().collect::<Option<_>>()?;
    Some(if key == "all" { Checker::All(parts) } else { Checker::Any(parts) })
}

/// A command that must succeed. Whether it may run here is another matter, and
/// decided where it is known whose file this is.
fn command(node: &Node, number: u16, reader: &mut Reader<'_>) -> Option<Checker> {
    let mut timeout_seconds = TIMEOUT_SECONDS;
    let mut line = None;
    if matches!(node.value, NodeValue::Map(_)) {
        for (key, node) in reader.fields(node, &keys::COMMAND) {
            if key == "run" {
                line = Some(reader.text(node, "`run`"));
            } else if let Some(seconds) = reader.count(node, "`timeout_seconds`") {
                timeout_seconds = seconds;
                if seconds == 0 {
                    reader.complain(node.at, "`timeout_seconds` can't be 0");
                }
            }
        }
        if line.is_none() {
            reader.complain(node.at, "a command has a `run`");
        }
    } else {
        line = Some(reader.text(node, "`command`"));
    }
    let line = line.flatten()?.to_owned();
    Some(Checker::Command { number, line, timeout_seconds, trusted: true })
}

fn required_file(node: &Node, reader: &mut Reader<'_>) -> Option<RequiredFile> {
    let mut file =
        RequiredFile { path: String::new(), min_bytes: 0, json: false, newer_than_start: false };
    if !matches!(node.value, NodeValue::Map(_)) {
        file.path = path(node, reader)?;
        return Some(file);
    }
    let mut given = None;
    let mut non_empty = false;
    for (key, node) in reader.fields(node, &keys::FILE) {
        match key {
            "path" => given = Some(path(node, reader)),
            "non_empty" => non_empty = reader.flag(node, "`non_empty`").unwrap_or(false),
            "min_bytes" => file.min_bytes = reader.count(node, "`min_bytes`").unwrap_or(0),
            "json" => file.json = reader.flag(node, "`json`").unwrap_or(false),
            _ => {
                file.newer_than_start = reader.flag(node, "`newer_than_start`").unwrap_or(false);
            }
        }
    }
    if given.is_none() {
        reader.complain(node.at, "a required file has a `path`");
    }
    file.path = given.flatten()?;
    if non_empty {
        file.min_bytes = file.min_bytes.max(1);
    }
    Some(file)
}

/// A path inside the workspace.
pub(crate) fn path(node: &Node, reader: &mut Reader<'_>) -> Option<String> {
    let text = reader.text(node, "a path")?;
    // An absolute path is kept: whether it lies in the workspace shows when
    // there is one.
    let root = text.starts_with('/').then_some("/");
    match canonical(text, root) {
        Ok(path) if path == "." => {
            reader.complain(node.at, format!("`{text}` is the workspace, not a file"));
            None
        }
        Ok(path) => Some(if root.is_some() { format!("/{path}") } else { path }),
        Err(error) => {
            reader.complain(node.at, error.to_string());
            None
        }
    }
}

pub(crate) fn lower_cap(node: &Node, cap: &mut Cap, reader: &mut Reader<'_>) {
    for (key, node) in reader.fields(node, &keys::CAP) {
        let what = format!("`completion_cap.{key}`");
        let Some(count) = reader.count::<u32>(node, &what) else { continue };
        if count == 0 {
            reader.complain_hint(
                node.at,
                format!("{what} is 0, so the gate would never block"),
                "remove `completion` instead",
            );
        } else if key == "blocks" {
            cap.blocks = count;
        } else {
            cap.same = count;
        }
    }
}
