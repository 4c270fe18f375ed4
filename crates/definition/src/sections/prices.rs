//! `prices`: the prices of models, which override the built-in table.

use std::sync::LazyLock;

use jackline_engine::definition::{LongPromptPrice, ModelPrice, ModelTables};
use jackline_engine::models::format_usd;

use super::prelude::*;
use crate::diagnostic::Diagnostics;
use crate::source::SourceFiles;
use crate::yaml;

static KEYS: [KeySpec; 1] = [key(
    "prices",
    Names(0, "model", &Map(&PRICE)),
    "a built-in table with a date",
    "Prices of models for `limits.cost_usd`. They override the built-in table.",
)];

static PRICE: MappingSpec = MappingSpec {
    id: "price",
    label: "a price",
    doc: "Prices are in dollars per million tokens. A name matches a model if only a date, a version of three digits or with a \
          `v`, `latest`, `default` or a mark such as `[1m]` follows it; if several names match, the longest wins. A provider \
          prefix such as `anthropic/…` or `us.anthropic.…` is ignored. Your own prices apply to prompts of any length; some \
          built-in prices are higher for long prompts.",
    entries: &[
        key("input", Usd, "required", "Tokens read."),
        key("output", Usd, "required", "Tokens written."),
        key("cache_read", Usd, "as `input`", "Tokens read from the provider's cache."),
        key("cache_creation", Usd, "as `input`", "Tokens written to the provider's cache."),
    ],
    required: &[RequiredKeys::All(&["input", "output"])],
};

/// The maximum number of models with a price.
const PRICES_MAX: usize = 256;

/// The built-in table.
static BUILT_IN: LazyLock<ModelTables> = LazyLock::new(|| {
    let mut diagnostics = Diagnostics::new("data/models.yaml");
    let tree = yaml::parse(include_bytes!("../../data/models.yaml"), &mut diagnostics);
    let sources = SourceFiles::default();
    let reader = &mut NodeReader::new(&sources, &mut diagnostics);
    let mut models = ModelTables::default();
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

/// The demands of one layer on models: its prices, and the built-in tables if the layer needs
/// them.
#[derive(Clone)]
pub(crate) struct PriceDemands {
    prices: Vec<Demand<ModelPrice>>,
    /// Empty in a layer without tables. All layers with tables have the same tables.
    tables: ModelTables,
}

pub(crate) struct PricesSection;

impl Section for PricesSection {
    type Part = PriceDemands;

    const KEYS: &'static [KeySpec] = &KEYS;
    const MAPPINGS: &'static [&'static MappingSpec] = &[&PRICE];

    #[cfg(test)]
    const LOOSER: &'static [Looser] = tests::LOOSER;

    fn take(source: &LayerSource<'_>) -> Self::Part {
        let ModelTables { dated, prices, long, windows } = source.definition.models.clone();
        let prices = source.list(prices);
        PriceDemands { prices, tables: ModelTables { dated, prices: Vec::new(), long, windows } }
    }

    /// A lower layer can add a price for a model without one, and can raise a price.
    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        let (above, below) = (&high.prices, &low.prices);
        let table = ModelTables { prices: values(above.prices.clone()), ..ModelTables::default() };
        let mut prices = above.prices.clone();
        for price in &below.prices {
            let named = prices.iter().position(|known| known.value.model == price.value.model);
            let dearer = table
                .prices_of(&price.value.model)
                .find(|known| !price.value.is_at_least(known))
                .and_then(|known| above.prices.iter().find(|demand| demand.value == *known));
            if let Some(dearer) = dearer
                && !join.overrides()
            {
                let text = text(&price.value);
                let why = "has a higher price";
                join.report_ignored(DemandSubject::Setting, text, price.layer, dearer.layer, why);
                continue;
            }
            match named.and_then(|at| prices.get_mut(at)) {
                Some(known) if known.value == price.value => {}
                Some(known) => *known = price.clone(),
                None => prices.push(price.clone()),
            }
        }
        let tables = if above.tables.dated.is_empty() { &below.tables } else { &above.tables };
        PriceDemands { prices, tables: tables.clone() }
    }

    fn put(part: Self::Part, definition: &mut Definition) {
        definition.models = ModelTables { prices: values(part.prices), ..part.tables };
    }
}

/// Adds the tables to the definition only if prices, a limit on cost or the context gate need
/// them.
pub(crate) fn lower(lowering: &mut LoweringState<'_>, reader: &mut NodeReader<'_>) {
    let own = lowering.node("prices").map(|node| prices(node, reader));
    let definition = &mut lowering.definition;
    if own.is_some() || definition.limits.cost_usd.is_some() || definition.context.is_some() {
        definition.models = models(own.unwrap_or_default());
    }
}

/// Returns the built-in table with the prices of a file on top.
fn models(own: Vec<ModelPrice>) -> ModelTables {
    let mut models = BUILT_IN.clone();
    let is_own = |price: &ModelPrice| own.iter().any(|own| own.model == price.model);
    models.prices.retain(|price| !is_own(price));
    models.long.retain(|long| !is_own(&long.price));
    models.prices.extend(own);
    models
}

/// Reads prices by model.
pub(super) fn prices(node: &YamlNode, reader: &mut NodeReader<'_>) -> Vec<ModelPrice> {
    let entries = reader.map(node, "`prices`");
    if entries.len() > PRICES_MAX {
        let message = format!("{} prices; at most {PRICES_MAX} are supported", entries.len());
        reader.report(node.position, message);
    }
    let mut prices = Vec::new();
    for (key, value) in entries {
        let (mut input, mut output, mut cached, mut created) = (None, None, None, None);
        let mut given: Vec<&str> = Vec::new();
        for (name, node) in reader.fields(value, &PRICE) {
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
            reader.report(value.position, format!("the price of `{}` needs `{name}`", key.text));
        }
        if let (Some(input), Some(output)) = (input, output) {
            let (cache_read, cache_creation) = (cached.unwrap_or(input), created.unwrap_or(input));
            let model = key.text.clone();
            prices.push(ModelPrice { model, input, output, cache_read, cache_creation });
        }
    }
    prices
}

/// Reads the prices of long prompts: by model, then by the number of tokens that a long prompt
/// exceeds.
fn long_prices(node: &YamlNode, reader: &mut NodeReader<'_>) -> Vec<LongPromptPrice> {
    let mut long = Vec::new();
    for (model, node) in reader.map(node, "`long`") {
        for price in prices(node, reader) {
            match price.model.parse() {
                Ok(above) => {
                    let model = model.text.clone();
                    long.push(LongPromptPrice { above, price: ModelPrice { model, ..price } });
                }
                Err(_) => {
                    reader.report(node.position, format!("`{}` is not a number", price.model));
                }
            }
        }
    }
    long
}

fn text(price: &ModelPrice) -> String {
    let ModelPrice { model, input, output, .. } = price;
    format!(
        "`{model}` costs {} USD for input and {} USD for output",
        format_usd(*input),
        format_usd(*output)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const LOOSER: &[Looser] = &[
        looser(
            "price.input",
            "prices: { m: { input: 2, output: 2 } }",
            "prices: { m: { input: 1, output: 2, cache_read: 2, cache_creation: 2 } }",
        ),
        looser(
            "price.output",
            "prices: { m: { input: 2, output: 2 } }",
            "prices: { m: { input: 2, output: 1 } }",
        ),
        looser(
            "price.cache_read",
            "prices: { m: { input: 2, output: 2 } }",
            "prices: { m: { input: 2, output: 2, cache_read: 1 } }",
        ),
        looser(
            "price.cache_creation",
            "prices: { m: { input: 2, output: 2 } }",
            "prices: { m: { input: 2, output: 2, cache_creation: 1 } }",
        ),
        // A longer name that matches a model with another price.
        looser(
            "price.input",
            "limits: { cost_usd: 1 }",
            "prices: { anthropic/claude-haiku-5-5: { input: 0.05, output: 0.5 } }",
        ),
    ];

    #[test]
    fn the_built_in_table_is_complete() {
        let models = models(Vec::new());
        let sizes = (models.prices.len(), models.long.len(), models.windows.len());
        assert_eq!((models.dated.as_str(), sizes), ("2026-10-27", (86, 30, 33)));
        for long in &models.long {
            let short = models.prices.iter().find(|price| price.model == long.price.model);
            assert!(short.is_some_and(|short| long.price.is_at_least(short)), "{long:?}");
        }
    }

    #[test]
    fn models_have_the_prices_of_their_makers() {
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
    fn an_own_price_removes_only_the_surcharge_of_the_same_model() {
        let own = |model: &str| {
            let model = model.to_owned();
            ModelPrice { model, input: 1, output: 1, cache_read: 1, cache_creation: 1 }
        };
        let surcharges = |models: ModelTables| {
            models.long.iter().filter(|long| long.price.model == "qwen3-coder-plus").count()
        };
        assert_eq!(surcharges(models(vec![own("qwen3-coder-plus")])), 0);
        assert_eq!(surcharges(models(vec![own("qwen3-coder")])), 3);
    }

    #[test]
    fn models_have_the_windows_of_their_makers() {
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
