//! When a session is stuck, and what counts as a test.

use jackline_engine::canonical;
use jackline_engine::definition::{DirtyBits, Progress};

use super::command_words;
use crate::keys;
use crate::reader::Reader;
use crate::yaml::Node;

/// How many phases and patterns there may be of each kind: they are looked at
/// with every call.
const ITEMS_MAX: usize = 64;

pub(super) fn lower(node: &Node, reader: &mut Reader<'_>) -> Progress {
    let mut progress = Progress::default();
    for (key, node) in reader.fields(node, &keys::PROGRESS) {
        let what = format!("`progress.{key}`");
        match key {
            "exempt_phases" => {
                let phases = items(node, &what, reader);
                progress.exempt_phases = phases
                    .iter()
                    .filter_map(|item| reader.text(item, "a phase").map(ToOwned::to_owned))
                    .collect();
            }
            "max_consecutive_failures" => {
                if let Some(count) = positive(node, &what, reader) {
                    progress.max_consecutive_failures = count;
                }
            }
            _ => {
                if let Some(count) = positive(node, &what, reader) {
                    progress.steps_per_iteration = count;
                }
            }
        }
    }
    progress
}

pub(super) fn lower_bits(node: &Node, reader: &mut Reader<'_>) -> DirtyBits {
    let mut bits = DirtyBits::default();
    for (key, node) in reader.fields(node, &keys::DIRTY_BITS) {
        let what = format!("`dirty_bits.{key}`");
        let items = items(node, &what, reader);
        match key {
            "docs" => {
                bits.docs = items.iter().filter_map(|item| pattern(item, reader)).collect();
            }
            _ => {
                let commands =
                    items.iter().filter_map(|item| command_words(item, "a command", reader));
                let commands = commands.collect();
                if key == "tests" { bits.tests = commands } else { bits.builds = commands }
            }
        }
    }
    bits
}

fn items<'n>(node: &'n Node, what: &str, reader: &mut Reader<'_>) -> &'n [Node] {
    let items = reader.list(node, what);
    if items.len() > ITEMS_MAX {
        let message = format!("{} in {what}; at most {ITEMS_MAX} are looked at", items.len());
        reader.complain(node.at, message);
    }
    items
}

fn positive(node: &Node, what: &str, reader: &mut Reader<'_>) -> Option<u32> {
    let count: u32 = reader.count(node, what)?;
    if count == 0 {
        reader.complain_hint(node.at, format!("{what} can't be 0"), "remove `progress` instead");
        return None;
    }
    Some(count)
}

/// A pattern of files in the workspace: a name alone is meant at any depth, and
/// a slash at the end means everything below.
fn pattern(node: &Node, reader: &mut Reader<'_>) -> Option<String> {
    let text = reader.text(node, "a pattern of files")?;
    let below = text.ends_with('/');
    match canonical(text, None) {
        Ok(path) if path == "." => {
            reader.complain(node.at, format!("`{text}` would take everything for documentation"));
            None
        }
        Ok(path) if below => Some(format!("{path}/**")),
        Ok(path) if !path.contains('/') => Some(format!("**/{path}")),
        Ok(path) => Some(path),
        Err(error) => {
            reader.complain_hint(node.at, error.to_string(), "write it as `docs/**` or `*.rst`");
            None
        }
    }
}
