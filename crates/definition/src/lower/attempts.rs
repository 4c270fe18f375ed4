//! How often something is tried again, and when a forged tool is good.

use jackline_engine::definition::{Budgets, HealthLimits};

use super::io::bounded;
use crate::keys;
use crate::reader::Reader;
use crate::yaml::Node;

/// How many subtypes may end a call at once.
const TERMINAL_MAX: usize = 64;

/// Reads `attempts`.
pub(super) fn lower(node: &Node, reader: &mut Reader<'_>) -> Budgets {
    let mut budgets = Budgets::default();
    for (key, node) in reader.fields(node, &keys::ATTEMPTS) {
        let slot = match key {
            "provider" => &mut budgets.provider,
            "guardrail" => &mut budgets.guardrail,
            "execution" => &mut budgets.execution,
            "outcome" => &mut budgets.outcome,
            "ceiling" => &mut budgets.ceiling,
            _ => {
                budgets.terminal = terminal(node, reader);
                continue;
            }
        };
        bounded(key, node, &keys::ATTEMPTS, slot, reader);
    }
    budgets
}

fn terminal(node: &Node, reader: &mut Reader<'_>) -> Vec<String> {
    let items = reader.list(node, "`attempts.terminal`");
    if items.len() > TERMINAL_MAX {
        let message = format!("{} in `attempts.terminal`; at most {TERMINAL_MAX}", items.len());
        reader.complain(node.at, message);
    }
    let mut subtypes: Vec<String> = Vec::new();
    for item in items {
        let Some(text) = reader.text(item, "a subtype") else { continue };
        if !text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_') {
            let hint = "write it as `missing_credentials`";
            reader.complain_hint(item.at, format!("`{text}` is no subtype"), hint);
        } else if !subtypes.iter().any(|known| known == text) {
            subtypes.push(text.to_owned());
        }
    }
    subtypes
}

/// Reads `health`.
pub(super) fn lower_health(node: &Node, reader: &mut Reader<'_>) -> HealthLimits {
    let mut health = HealthLimits::default();
    for (key, node) in reader.fields(node, &keys::HEALTH) {
        let slot = match key {
            "window" => &mut health.window,
            "min_samples" => &mut health.min_samples,
            "degrade_above_pct" => &mut health.degrade_above_pct,
            _ => &mut health.recover_below_pct,
        };
        bounded(key, node, &keys::HEALTH, slot, reader);
    }
    if health.min_samples > health.window {
        let message = "`health.min_samples` is more than `health.window`, so nothing would ever be said of a tool";
        reader.complain(node.at, message);
    }
    if health.recover_below_pct > health.degrade_above_pct {
        let message = "`health.recover_below_pct` is above `health.degrade_above_pct`, so a tool could be both";
        reader.complain(node.at, message);
    }
    health
}
