//! From the tree to the definition that the engine runs on.

mod completion;
mod feedback;
mod policies;
mod tools;

use jackline_engine::definition::{Journal, Limit, Limits, Per, Redact};
use jackline_engine::{Definition, Mode};

use crate::diagnostic::Diagnostics;
use crate::keys;
use crate::reader::Reader;
use crate::yaml::{Node, NodeValue};

/// Lowers a tree; what is wrong with it is in `diagnostics`.
pub(crate) fn lower(root: &Node, diagnostics: &mut Diagnostics) -> Definition {
    let reader = &mut Reader::new(diagnostics);
    let mut definition = Definition::default();
    let mut tools = tools::Tools::default();
    // Policies name tools, so they wait until all tools are known.
    let (mut sections, mut top_level) = (None, None);
    let mut warning_threshold_seconds = 120;
    let mut providers = None;
    for (key, node) in reader.fields(root, &keys::ROOT) {
        match key {
            "version" => version(node, reader),
            "name" => {
                if let Some(name) = name(node, reader) {
                    definition.name = name;
                }
            }
            "mode" => {
                let modes = [("enforce", Mode::Enforce), ("observe", Mode::Observe)];
                if let Some(mode) = reader.word(node, "`mode`", &modes) {
                    definition.mode = mode;
                }
            }
            "tools" => tools.declare(node, reader),
            "sections" => sections = Some(node),
            "policies" => top_level = Some(node),
            "completion" => definition.completion = completion::lower(node, reader),
            "completion_cap" => completion::lower_cap(node, &mut definition.completion_cap, reader),
            "limits" => definition.limits = limits(node, reader),
            "feedback" => providers = Some(node),
            "feedback_bytes_max" => {
                if let Some(bytes) = reader.count(node, "`feedback_bytes_max`") {
                    definition.feedback_bytes_max = bytes;
                }
            }
            "deadline" => {
                warning_threshold_seconds =
                    feedback::threshold(node, warning_threshold_seconds, reader);
            }
            "journal" => journal(node, &mut definition.journal, reader),
            _ => {}
        }
    }
    if let Some(node) = providers {
        definition.feedback = feedback::lower(node, warning_threshold_seconds, reader);
    }
    definition.policies = policies::lower(sections, top_level, &mut tools, reader);
    definition.tools = tools.finish();
    definition
}

fn version(node: &Node, reader: &mut Reader<'_>) {
    if let Some(version) = reader.count::<u32>(node, "`version`")
        && version != 1
    {
        let message = format!("version {version} is not known");
        reader.complain_hint(node.at, message, "this jackline reads `version: 1`");
    }
}

fn name(node: &Node, reader: &mut Reader<'_>) -> Option<String> {
    let text = reader.text(node, "`name`")?;
    let part = |part: &str| {
        !part.is_empty()
            && part.len() <= 64
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    let fits = text.split_once('/').is_some_and(|(space, key)| part(space) && part(key));
    if !fits {
        let message = format!("`{text}` is not a name");
        reader.complain_hint(node.at, message, "write it as namespace/key, such as acme/coder");
    }
    fits.then(|| text.to_owned())
}

fn limits(node: &Node, reader: &mut Reader<'_>) -> Limits {
    let mut limits = Limits::default();
    for (key, node) in reader.fields(node, &keys::LIMITS) {
        let slot = match key {
            "steps" => &mut limits.steps,
            "wall_seconds" => &mut limits.wall_seconds,
            "input_tokens" => &mut limits.input_tokens,
            "output_tokens" => &mut limits.output_tokens,
            _ => &mut limits.total_tokens,
        };
        *slot = limit(key, node, reader);
    }
    limits
}

fn limit(key: &str, node: &Node, reader: &mut Reader<'_>) -> Option<Limit> {
    if node.value == NodeValue::Null {
        return None;
    }
    if let NodeValue::Map(_) = node.value {
        let (mut max, mut soft, mut per) = (None, false, Per::Session);
        let mut given = false;
        for (key, node) in reader.fields(node, &keys::LIMIT) {
            match key {
                "max" => {
                    given = true;
                    max = reader.count(node, "`max`");
                }
                "soft" => soft = reader.flag(node, "`soft`").unwrap_or(soft),
                _ => {
                    let words = [("session", Per::Session), ("turn", Per::Turn)];
                    per = reader.word(node, "`per`", &words).unwrap_or(per);
                }
            }
        }
        if !given {
            reader.complain(node.at, format!("`limits.{key}` has no `max`"));
        }
        return max.map(|max| Limit { max, soft, per });
    }
    let max = reader.count(node, &format!("`limits.{key}`"))?;
    Some(Limit { max, soft: false, per: Per::Session })
}

fn journal(node: &Node, journal: &mut Journal, reader: &mut Reader<'_>) {
    for (key, node) in reader.fields(node, &keys::JOURNAL) {
        match key {
            "redact" => {
                let words = [("built-in", Redact::BuiltIn), ("off", Redact::Off)];
                if let Some(redact) = reader.word(node, "`journal.redact`", &words) {
                    journal.redact = redact;
                }
            }
            "retain_days" => {
                if let Some(days) = reader.count(node, "`journal.retain_days`") {
                    journal.retain_days = days;
                    if days == 0 {
                        reader.complain(node.at, "`journal.retain_days` can't be 0");
                    }
                }
            }
            _ => {
                if let Some(bytes) = reader.count(node, "`journal.retain_bytes`") {
                    journal.retain_bytes = bytes;
                }
            }
        }
    }
}
