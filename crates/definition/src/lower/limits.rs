//! Allowances, and what is known of models to count them by.

use std::sync::LazyLock;

use jackline_engine::definition::{Limit, Limits, Models, Per, Price};

use super::Tools;
use super::tools::check_name;
use crate::diagnostic::Diagnostics;
use crate::keys::{self, Keys};
use crate::reader::Reader;
use crate::source::Sources;
use crate::yaml::{self, Node, NodeValue};

/// How many tools may have a limit of their own: each has counters in the state.
const TOOL_LIMITS_MAX: usize = 32;

/// How many models may have a price.
const PRICES_MAX: usize = 256;

/// The table that comes with the product.
static BUILT_IN: LazyLock<Models> = LazyLock::new(|| {
    let mut diagnostics = Diagnostics::new("data/models.yaml");
    let tree = yaml::parse(include_bytes!("../../data/models.yaml"), &mut diagnostics);
    let sources = Sources::default();
    let reader = &mut Reader::new(&sources, &mut diagnostics);
    let mut models = Models::default();
    let entries = tree.as_ref().map_or(&[][..], |tree| reader.map(tree, "the table"));
    for (key, node) in entries {
        match key.text.as_str() {
            "prices" => models.prices = prices(node, reader),
            "windows" => {
                for (name, node) in reader.map(node, "`windows`") {
                    let window = reader.count(node, "a window");
                    models.windows.extend(window.map(|window| (name.text.clone(), window)));
                }
            }
            _ => {
                models.dated =
                    reader.text(node, "`dated`").map(ToOwned::to_owned).unwrap_or_default();
            }
        }
    }
    models
});

/// The built-in table with a file's own prices over it.
pub(super) fn models(own: Vec<Price>) -> Models {
    let mut models = BUILT_IN.clone();
    models.prices.retain(|price| !own.iter().any(|own| own.model == price.model));
    models.prices.extend(own);
    models
}

pub(super) fn lower(node: &Node, tools: &Tools, reader: &mut Reader<'_>) -> Limits {
    let mut limits = Limits::default();
    for (key, node) in reader.fields(node, &keys::LIMITS) {
        let slot = match key {
            "tool_calls" => {
                limits.tool_calls = tool_calls(node, tools, reader);
                continue;
            }
            "steps" => &mut limits.steps,
            "wall_seconds" => &mut limits.wall_seconds,
            "cost_usd" => &mut limits.cost_usd,
            "input_tokens" => &mut limits.input_tokens,
            "output_tokens" => &mut limits.output_tokens,
            "iterations" => &mut limits.iterations,
            _ => &mut limits.total_tokens,
        };
        *slot = match key {
            "cost_usd" => limit(key, node, Unit::Usd, reader),
            _ => limit(key, node, Unit::Count, reader),
        };
    }
    limits
}

fn tool_calls(node: &Node, tools: &Tools, reader: &mut Reader<'_>) -> Vec<(String, Limit)> {
    let mut limited: Vec<(String, Limit)> = Vec::new();
    for (key, value) in reader.map(node, "`limits.tool_calls`") {
        let known = tools.find(&key.text).map(ToOwned::to_owned);
        if known.is_none() && tools.is_closed() {
            let message =
                format!("this limit can never see `{}`: no such tool is declared", key.text);
            let hint = reader.meant(&key.text, tools.names(), || "add it to `tools`".to_owned());
            reader.complain_hint(key.at, message, hint);
            continue;
        }
        let name = known.unwrap_or_else(|| check_name(&key.text, key.at, reader));
        let what = format!("tool_calls.{}", key.text);
        let Some(limit) = limit(&what, value, Unit::Count, reader) else {
            continue;
        };
        if limited.iter().any(|(known, _)| *known == name) {
            reader.complain(key.at, format!("`{name}` has two limits, by different names"));
        }
        limited.push((name, limit));
    }
    if limited.len() > TOOL_LIMITS_MAX {
        let message = format!("{} tools have limits; at most {TOOL_LIMITS_MAX} may", limited.len());
        reader.complain(node.at, message);
    }
    limited
}

/// What a limit is given in.
#[derive(Clone, Copy)]
enum Unit {
    Count,
    Usd,
}

impl Unit {
    fn keys(self) -> &'static Keys {
        match self {
            Self::Count => &keys::LIMIT,
            Self::Usd => &keys::COST_LIMIT,
        }
    }

    fn read(self, node: &Node, what: &str, reader: &mut Reader<'_>) -> Option<u64> {
        match self {
            Self::Count => reader.count(node, what),
            Self::Usd => reader.usd(node, what),
        }
    }
}

fn limit(key: &str, node: &Node, unit: Unit, reader: &mut Reader<'_>) -> Option<Limit> {
    if node.value == NodeValue::Null {
        return None;
    }
    if let NodeValue::Map(_) = node.value {
        let (mut max, mut soft, mut per) = (None, false, Per::Session);
        let mut given = false;
        for (key, node) in reader.fields(node, unit.keys()) {
            match key {
                "max" => {
                    given = true;
                    max = unit.read(node, "`max`", reader);
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
    let max = unit.read(node, &format!("`limits.{key}`"), reader)?;
    Some(Limit { max, soft: false, per: Per::Session })
}

/// Prices by model.
pub(super) fn prices(node: &Node, reader: &mut Reader<'_>) -> Vec<Price> {
    let entries = reader.map(node, "`prices`");
    if entries.len() > PRICES_MAX {
        let message = format!("{} prices; at most {PRICES_MAX} are kept", entries.len());
        reader.complain(node.at, message);
    }
    let mut prices = Vec::new();
    for (key, value) in entries {
        let (mut input, mut output, mut cached, mut created) = (None, None, None, None);
        let mut given: Vec<&str> = Vec::new();
        for (name, node) in reader.fields(value, &keys::PRICE) {
            let slot = match name {
                "input" => &mut input,
                "output" => &mut output,
                "cache_read" => &mut cached,
                _ => &mut created,
            };
            *slot = reader.usd(node, &format!("`{name}`"));
            given.push(name);
        }
        for name in ["input", "output"].iter().filter(|name| !given.contains(name)) {
            reader.complain(value.at, format!("the price of `{}` has no `{name}`", key.text));
        }
        if let (Some(input), Some(output)) = (input, output) {
            let (cache_read, cache_creation) = (cached.unwrap_or(input), created.unwrap_or(input));
            let model = key.text.clone();
            prices.push(Price { model, input, output, cache_read, cache_creation });
        }
    }
    prices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_table_is_whole() {
        let models = models(Vec::new());
        assert_eq!((models.dated.as_str(), models.windows.len()), ("2026-01-31", 9));
        assert_eq!(models.prices.len(), 31);
        let price = |model: &str| models.price(model).map(|price| (price.input, price.cache_read));
        assert_eq!(price("claude-sonnet-4-5-20250929"), Some((3_000_000, 300_000)));
        assert_eq!(price("claude-sonnet-4-5[1m]"), Some((3_000_000, 300_000)));
        assert_eq!(price("claude-opus-4-20250514"), Some((15_000_000, 1_500_000)));
        assert_eq!(price("gpt-4o-2024-05-13"), Some((5_000_000, 5_000_000)));
        assert_eq!(price("gpt-5-nano"), Some((50_000, 5_000)));
        for unknown in ["claude-opus-9", "claude-sonnet-4-50", "gpt-4o-realtime", "o3-pro"] {
            assert_eq!(price(unknown), None, "{unknown}");
        }
        assert_eq!(models.window("claude-opus-9"), Some(200_000));
        assert_eq!(models.window("claude-opus-4-5[1m]"), Some(1_000_000));
    }
}
