//! Allowances, and what is known of models to count them by.

use std::sync::LazyLock;

use jackline_engine::definition::{Limit, Limits, LongPrice, Models, Per, Price};

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
            "long" => models.long = long_prices(node, reader),
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
    let is_own = |price: &Price| own.iter().any(|own| own.model == price.model);
    models.prices.retain(|price| !is_own(price));
    models.long.retain(|long| !is_own(&long.price));
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

/// Prices of long prompts: by model, then by how long a prompt is not yet.
fn long_prices(node: &Node, reader: &mut Reader<'_>) -> Vec<LongPrice> {
    let mut long = Vec::new();
    for (model, node) in reader.map(node, "`long`") {
        for price in prices(node, reader) {
            match price.model.parse() {
                Ok(above) => {
                    let model = model.text.clone();
                    long.push(LongPrice { above, price: Price { model, ..price } });
                }
                Err(_) => reader.complain(node.at, format!("`{}` is no number", price.model)),
            }
        }
    }
    long
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_table_is_whole() {
        let models = models(Vec::new());
        let sizes = (models.prices.len(), models.long.len(), models.windows.len());
        assert_eq!((models.dated.as_str(), sizes), ("2026-10-27", (86, 30, 33)));
        for long in &models.long {
            let short = models.prices.iter().find(|price| price.model == long.price.model);
            assert!(short.is_some_and(|short| long.price.is_at_least(short)), "{long:?}");
        }
    }

    #[test]
    fn models_cost_what_their_makers_say() {
        let models = models(Vec::new());
        let price = |model: &str| {
            let price = models.price(model)?;
            Some([price.input, price.output, price.cache_read, price.cache_creation])
        };
        for (model, thousandths) in [
            ("claude-opus-5-5", [4000, 20000, 200, 5000]),
            ("claude-opus-5", [5000, 25000, 500, 6250]),
            ("us.anthropic.claude-opus-4-6-v1:0", [5000, 25000, 500, 6250]),
            ("claude-opus-4-20250514", [15000, 75000, 1500, 18750]),
            ("claude-sonnet-5-5", [2000, 10000, 100, 2500]),
            ("claude-sonnet-4-5-20250929", [3000, 15000, 300, 3750]),
            ("claude-sonnet-4-5[1m]", [3000, 15000, 300, 3750]),
            ("claude-sonnet-4-5@20250929", [3000, 15000, 300, 3750]),
            ("claude-haiku-5-5", [100, 500, 10, 125]),
            ("claude-haiku-4-5-20251001", [1000, 5000, 100, 1250]),
            ("gpt-6.1-sol-2026-09-29", [2000, 10000, 100, 2500]),
            ("openai/gpt-5.4", [2500, 15000, 250, 2500]),
            ("gpt-5-nano", [50, 400, 5, 50]),
            ("gpt-4o-2024-05-13", [5000, 15000, 5000, 5000]),
            ("models/gemini-3.1-pro-preview", [2000, 12000, 200, 2000]),
            ("gemini-3.8-flash", [1500, 7500, 150, 1500]),
            ("qwen3-coder-plus", [1000, 5000, 100, 1000]),
        ] {
            assert_eq!(price(model), Some(thousandths.map(|price| price * 1000)), "{model}");
        }
        for unknown in [
            "claude-opus-9",
            "claude-opus-5-7",
            "claude-sonnet-4-50",
            "gpt-4o-realtime",
            "gpt-5.3-codex-spark",
            "gpt-7",
            "qwen3-coder",
            "opus",
        ] {
            assert_eq!(price(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn an_own_price_has_no_surcharge_but_its_own() {
        let own = |model: &str| {
            let model = model.to_owned();
            Price { model, input: 1, output: 1, cache_read: 1, cache_creation: 1 }
        };
        let surcharges = |models: Models| {
            models.long.iter().filter(|long| long.price.model == "qwen3-coder-plus").count()
        };
        assert_eq!(surcharges(models(vec![own("qwen3-coder-plus")])), 0);
        assert_eq!(surcharges(models(vec![own("qwen3-coder")])), 3);
    }

    #[test]
    fn models_hold_what_their_makers_say() {
        let models = models(Vec::new());
        for (model, window) in [
            ("claude-opus-4-8", 200_000),
            ("claude-opus-5-5", 1_000_000),
            ("claude-haiku-4-5-20251001", 200_000),
            ("gpt-6.1-terra", 1_050_000),
            ("gpt-5.4-mini", 400_000),
            ("gpt-5-chat-latest", 128_000),
            ("models/gemini-3-flash-preview", 1_048_576),
        ] {
            assert_eq!(models.window(model), Some(window), "{model}");
        }
        assert_eq!(models.window("claude-opus-9"), Some(200_000));
        assert_eq!(models.window("claude-opus-4-5[1m]"), Some(1_000_000));
    }
}
