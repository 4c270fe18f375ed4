//! What is known about models: their prices and the sizes of their context windows.
//!
//! Both come from a dated table that is part of the definition, so a replay of a journal gives the
//! same costs on every machine. A model that is not in the table has no price. That is not the same
//! as costing nothing.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::state::UsageTotals;

/// Millionths of a dollar in one dollar.
const MICROS_PER_USD: u64 = 1_000_000;

/// Prices are given for this number of tokens.
const TOKENS_PER_PRICE: u128 = 1_000_000;

/// The suffix of a model that is used with the long context window.
const LONG_WINDOW_SUFFIX: &str = "[1m]";

/// The size of the long context window, in tokens.
const LONG_WINDOW_TOKENS: u64 = 1_000_000;

/// The servers that may precede the name of a model, separated by a slash.
const SERVER_PREFIXES: [&str; 8] =
    ["anthropic", "openai", "google", "gemini", "models", "qwen", "alibaba", "dashscope"];

/// The prefix of a model name in the provider's cloud, possibly after a region: `us.anthropic.`.
const CLOUD_PREFIX: &str = "anthropic.";
const CLOUD_REGIONS: [&str; 8] = ["", "global.", "us.", "us-gov.", "eu.", "apac.", "au.", "jp."];

/// The minimum number of digits of a date or a version: `model-5-5` is not a version of `model-5`.
const VERSION_DIGITS_MIN: usize = 3;

/// The tables of one date; empty if no part of the definition needs them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelTables {
    /// The date of the built-in tables.
    pub dated: String,
    /// The prices of models.
    pub prices: Vec<ModelPrice>,
    /// The prices of some models for long prompts.
    #[serde(default)]
    pub long: Vec<LongPromptPrice>,
    /// The context windows of models, by the beginning of their names.
    pub windows: Vec<(String, u64)>,
}

/// The price of a model for a whole request, if the prompt of the request is long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongPromptPrice {
    /// A prompt with more tokens than this is long.
    pub above: u64,
    /// The price for such a request.
    pub price: ModelPrice,
}

/// The price of a model, in millionths of a dollar for a million tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelPrice {
    /// The name of the model. A model with this name and a date or version also matches.
    pub model: String,
    /// Input tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input tokens that come from the provider's cache.
    pub cache_read: u64,
    /// Input tokens that are written to the provider's cache.
    pub cache_creation: u64,
}

impl ModelTables {
    /// The price of a model. If several servers have their own prices, the entry that names the
    /// server counts.
    pub fn price(&self, model: &str) -> Option<&ModelPrice> {
        let served = self.prices_of(model).find(|price| is_version_of(model, &price.model));
        served.or_else(|| self.prices_of(model).next())
    }

    /// All prices under the longest name that matches a model, for any server.
    pub fn prices_of(&self, model: &str) -> impl Iterator<Item = &ModelPrice> {
        let model = without_server(model);
        let fits = move |price: &&ModelPrice| is_version_of(model, without_server(&price.model));
        let length = |price: &ModelPrice| without_server(&price.model).len();
        let longest = self.prices.iter().filter(fits).map(length).max();
        self.prices.iter().filter(fits).filter(move |price| Some(length(price)) == longest)
    }

    /// The cost of a request; `None` if the model has no price.
    pub(crate) fn cost(&self, model: &str, used: &UsageTotals) -> Option<u64> {
        let price = self.price(model)?;
        let prompt = used.in_context().saturating_sub(used.output);
        let long = self.long.iter().filter(|long| prompt > long.above);
        let long = long.map(|long| &long.price);
        let long =
            long.filter(|long| is_version_of(without_server(model), without_server(&long.model)));
        // A price that the definition adds to the table must not make a long prompt cheaper.
        long.chain([price]).map(|price| price.of(used)).max()
    }

    /// The context window of a request's model. A client that uses the main agent's model with the
    /// long window reports that only at the start of the session, not with each request. A request
    /// that is larger than the window in the table shows that the table is wrong.
    pub(crate) fn window_of(
        &self,
        model: Option<&str>,
        of_main: Option<&str>,
        used: u64,
    ) -> Option<u64> {
        let long = of_main.and_then(|main| main.strip_suffix(LONG_WINDOW_SUFFIX)).filter(|main| {
            model.is_none_or(|model| model.starts_with(main) || main.starts_with(model))
        });
        if long.is_some() {
            return Some(LONG_WINDOW_TOKENS);
        }
        let window = self.window(model.or(of_main)?)?;
        Some(if used > window { window.max(LONG_WINDOW_TOKENS) } else { window })
    }

    /// The context window of a model. All models of a family have the same window, so a prefix of
    /// the name is enough.
    pub fn window(&self, model: &str) -> Option<u64> {
        if model.ends_with(LONG_WINDOW_SUFFIX) {
            return Some(LONG_WINDOW_TOKENS);
        }
        let model = without_server(model);
        let fits = self.windows.iter().filter(|(name, _)| model.starts_with(name.as_str()));
        fits.max_by_key(|(name, _)| name.len()).map(|(_, window)| *window)
    }
}

impl ModelPrice {
    /// The cost of a request, rounded up, so that used tokens are never free.
    pub(crate) fn of(&self, used: &UsageTotals) -> u64 {
        let parts = [
            (used.input, self.input),
            (used.output, self.output),
            (used.cache_read, self.cache_read),
            (used.cache_creation, self.cache_creation),
        ];
        let sum = parts.iter().fold(0_u128, |sum, (tokens, price)| {
            sum.saturating_add(u128::from(*tokens).saturating_mul(u128::from(*price)))
        });
        u64::try_from(sum.div_ceil(TOKENS_PER_PRICE)).unwrap_or(u64::MAX)
    }

    /// Whether no kind of token is cheaper than in the other price.
    pub fn is_at_least(&self, other: &Self) -> bool {
        self.input >= other.input
            && self.output >= other.output
            && self.cache_read >= other.cache_read
            && self.cache_creation >= other.cache_creation
    }
}

/// The name of a model without its server: `anthropic/`, `models/`, `us.anthropic.`.
fn without_server(model: &str) -> &str {
    let (path, name) = model.rsplit_once('/').unwrap_or(("", model));
    if let Some((region, name)) = name.split_once(CLOUD_PREFIX)
        && CLOUD_REGIONS.contains(&region)
    {
        return name;
    }
    let server = path.rsplit('/').next().unwrap_or_default();
    if SERVER_PREFIXES.contains(&server) { name } else { model }
}

/// Whether a model has this name, possibly followed by a date, a version or a suffix. `gpt-4o-mini`
/// is not a `gpt-4o`.
fn is_version_of(model: &str, name: &str) -> bool {
    let Some(rest) = model.strip_prefix(name) else { return false };
    let mut letters = rest.chars();
    match letters.next() {
        None | Some('[') => true,
        Some('-' | '@' | ':') => is_version(letters.as_str()),
        Some(_) => false,
    }
}

/// Whether a text begins with a date or a version: `20250929`, `001`, `v1:0`, `latest`.
fn is_version(text: &str) -> bool {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    digits(text) >= VERSION_DIGITS_MIN
        || text.strip_prefix('v').is_some_and(|rest| digits(rest) > 0)
        || text.starts_with("latest")
        || text.starts_with("default")
}

/// An amount in dollars with at least two decimals, such as "2.50", for people.
pub fn format_usd(micros: u64) -> String {
    let (whole, rest) = (micros / MICROS_PER_USD, micros % MICROS_PER_USD);
    let decimals = format!("{rest:06}");
    let short = decimals.trim_end_matches('0');
    let shown = decimals.get(..short.len().max(2)).unwrap_or(&decimals);
    format!("{whole}.{shown}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn price(model: &str, input: u64) -> ModelPrice {
        ModelPrice { model: model.to_string(), input, output: 0, cache_read: 0, cache_creation: 0 }
    }

    #[test]
    fn the_longest_name_that_fits_counts() {
        let prices = Vec::from([price("gpt-4o", 1), price("gpt-4o-2024-05-13", 2), price("o3", 3)]);
        let models = ModelTables { prices, ..ModelTables::default() };
        for (model, input) in [
            ("gpt-4o", Some(1)),
            ("gpt-4o-2024-08-06", Some(1)),
            ("gpt-4o-2024-05-13", Some(2)),
            ("gpt-4o-latest", Some(1)),
            ("gpt-4o[1m]", Some(1)),
            ("gpt-4o@20250101", Some(1)),
            ("gpt-4o-mini", None),
            ("gpt-4o-realtime-preview", None),
            ("gpt-4", None),
            ("gpt-4o-2", None),
            ("gpt-4o-001", Some(1)),
            ("gpt-4o-v1:0", Some(1)),
            ("gpt-4o@default", Some(1)),
            ("gpt-4o-very", None),
            ("o3-pro", None),
            ("o3.5", None),
            ("", None),
        ] {
            assert_eq!(models.price(model).map(|price| price.input), input, "{model}");
        }
    }

    #[test]
    fn the_server_of_a_model_is_ignored() {
        let prices = Vec::from([
            price("opus-5", 1),
            price("azure/opus-5", 2),
            price("mine/x", 3),
            price("openai/o", 4),
            price("o", 5),
        ]);
        let windows = Vec::from([("opus-".to_string(), 7)]);
        let models = ModelTables { prices, windows, ..ModelTables::default() };
        for (model, input) in [
            ("anthropic/opus-5", Some(1)),
            ("openrouter/anthropic/opus-5-20260724", Some(1)),
            ("publishers/anthropic/models/opus-5@20260724", Some(1)),
            ("anthropic.opus-5-v1:0", Some(1)),
            ("us.anthropic.opus-5-20260724-v1:0", Some(1)),
            ("arn:aws:bedrock:us-east-1:1:inference-profile/eu.anthropic.opus-5", Some(1)),
            ("azure/opus-5", Some(2)),
            ("azure/opus-5-20260724", Some(2)),
            ("mine/x-20260724", Some(3)),
            ("openai/o-2026-01-01", Some(4)),
            ("o-2026-01-01", Some(5)),
            ("google/o", Some(4)),
            ("proxy/opus-5", None),
            ("notanthropic.opus-5", None),
            ("anthropic/opus-5-5", None),
        ] {
            assert_eq!(models.price(model).map(|price| price.input), input, "{model}");
        }
        assert_eq!(models.window("us.anthropic.opus-5-v1:0"), Some(7));
        assert_eq!(models.window("google/opus-6"), Some(7));
        assert_eq!(models.window("proxy/opus-5"), None);
    }

    #[test]
    fn a_long_prompt_has_its_own_price() {
        let long = |model, above, input| LongPromptPrice { above, price: price(model, input) };
        let models = ModelTables {
            prices: Vec::from([
                price("m", 1_000_000),
                price("openai/m-001", 1_000_000),
                price("dear", 9_000_000),
            ]),
            long: Vec::from([
                long("m", 100, 2_000_000),
                long("m", 200, 6_000_000),
                long("dear", 100, 2_000_000),
            ]),
            ..ModelTables::default()
        };
        let cost = |model, input, cache_read, output| {
            models.cost(model, &UsageTotals { input, output, cache_read, ..UsageTotals::default() })
        };
        assert_eq!(cost("m", 100, 0, 900), Some(100));
        assert_eq!(cost("m", 101, 0, 0), Some(202));
        // Tokens from the cache are part of the prompt.
        assert_eq!(cost("m-2026-01-01", 1, 100, 0), Some(2));
        assert_eq!(cost("m", 201, 0, 0), Some(1206));
        assert_eq!(cost("dear", 101, 0, 0), Some(909));
        assert_eq!(cost("openai/m-001", 101, 0, 0), Some(202));
        assert_eq!(cost("mystery", 1, 0, 0), None);
    }

    #[test]
    fn models_of_a_family_share_a_window_and_a_suffix_selects_the_long_one() {
        let windows = Vec::from([("claude-".to_string(), 200_000), ("gpt-5".to_string(), 400_000)]);
        let models = ModelTables { windows, ..ModelTables::default() };
        assert_eq!(models.window("claude-sonnet-4-5-20250929"), Some(200_000));
        assert_eq!(models.window("claude-sonnet-4-5[1m]"), Some(1_000_000));
        assert_eq!(models.window("mystery"), None);
    }

    #[test]
    fn a_price_is_rounded_up_and_saturates() {
        let used = UsageTotals { input: 1, ..UsageTotals::default() };
        assert_eq!(price("m", 3_000_000).of(&used), 3);
        assert_eq!(price("m", 1).of(&used), 1);
        assert_eq!(price("m", 0).of(&used), 0);
        let huge = UsageTotals { input: u64::MAX, output: u64::MAX, ..UsageTotals::default() };
        let dear = ModelPrice { output: u64::MAX, ..price("m", u64::MAX) };
        assert_eq!(dear.of(&huge), u64::MAX);
    }

    #[test]
    fn dollars_have_only_significant_decimals() {
        for (micros, text) in [
            (0, "0.00"),
            (2_500_000, "2.50"),
            (2_512_300, "2.5123"),
            (1, "0.000001"),
            (u64::MAX, "18446744073709.551615"),
        ] {
            assert_eq!(format_usd(micros), text);
        }
    }
}
