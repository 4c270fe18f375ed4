//! Feedback providers and when they speak.

use jackline_engine::definition::{FeedbackProvider, FileCreated, Speech, Trigger};

use super::completion::path;
use crate::keys;
use crate::reader::Reader;
use crate::yaml::{Node, NodeValue};

/// How many providers a definition may have: each takes room in the state.
pub(crate) const PROVIDERS_MAX: usize = 64;

/// From how many seconds left on a `deadline` warns.
pub(crate) const THRESHOLD: u64 = 120;

pub(crate) fn lower(
    node: &Node,
    warning_threshold_seconds: u64,
    reader: &mut Reader<'_>,
) -> Vec<FeedbackProvider> {
    let items = reader.list(node, "`feedback`");
    if items.len() > PROVIDERS_MAX {
        let count = items.len();
        reader.complain(node.at, format!("{count} providers; at most {PROVIDERS_MAX} are kept"));
    }
    let lowered: Vec<_> =
        items.iter().map(|item| provider(item, warning_threshold_seconds, reader)).collect();
    lowered.into_iter().flatten().collect()
}

/// The `warning_threshold_seconds` of a `deadline`.
pub(crate) fn threshold(node: &Node, default: u64, reader: &mut Reader<'_>) -> u64 {
    let mut threshold = default;
    for (_, node) in reader.fields(node, &keys::DEADLINE) {
        threshold = reader.count(node, "`warning_threshold_seconds`").unwrap_or(threshold);
    }
    threshold
}

fn provider(node: &Node, default: u64, reader: &mut Reader<'_>) -> Option<FeedbackProvider> {
    let mut speech = None;
    let mut trigger = Trigger::default();
    let mut given = 0;
    for (key, node) in reader.fields(node, &keys::PROVIDER) {
        match key {
            "deadline" => {
                given += 1;
                let warning_threshold_seconds = threshold(node, default, reader);
                speech = Some(Speech::Deadline { warning_threshold_seconds });
            }
            "static" => {
                given += 1;
                let text = reader.text(node, "`static`");
                speech = text.map(|text| Speech::Static { text: text.to_owned() });
            }
            "every_n_calls" => trigger.every_n_calls = cadence(node, key, reader),
            "every_n_seconds" => trigger.every_n_seconds = cadence(node, key, reader),
            _ => trigger.on_file_created = file_created(node, reader),
        }
    }
    if !matches!(node.value, NodeValue::Map(_) | NodeValue::Null) {
        return None;
    }
    if given != 1 {
        let message = format!("a feedback provider says one thing, not {given}");
        reader.complain_hint(node.at, message, "give it `deadline` or `static`");
    }
    if trigger == Trigger::default() {
        reader.complain_hint(
            node.at,
            "this provider would never speak",
            "give it `every_n_calls`, `every_n_seconds` or `on_file_created`",
        );
    }
    speech.map(|speech| FeedbackProvider { speech, trigger })
}

fn cadence(node: &Node, key: &str, reader: &mut Reader<'_>) -> Option<u64> {
    let count = reader.count(node, &format!("`{key}`"))?;
    if count == 0 {
        reader.complain(node.at, format!("`{key}` can't be 0"));
        return None;
    }
    Some(count)
}

fn file_created(node: &Node, reader: &mut Reader<'_>) -> Option<FileCreated> {
    if !matches!(node.value, NodeValue::Map(_)) {
        return path(node, reader).map(|path| FileCreated { path, since_start: false });
    }
    let (mut file, mut since_start) = (None, false);
    for (key, node) in reader.fields(node, &keys::FILE_CREATED) {
        if key == "path" {
            file = path(node, reader);
        } else {
            let words = [("session_start", true), ("ever", false)];
            since_start = reader.word(node, "`since`", &words).unwrap_or(since_start);
        }
    }
    if file.is_none() {
        reader.complain(node.at, "`on_file_created` has a `path`");
    }
    file.map(|path| FileCreated { path, since_start })
}
