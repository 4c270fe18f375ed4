//! What is known of models: what they cost, and how much they hold.
//!
//! Both come from a table with a date, which travels in the definition: a
//! journal is priced the same wherever it is replayed. A model that is not in
//! the table has no price, and that is never the same as costing nothing.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::state::UsageTotals;

/// Millionths of a dollar in one.
const MICROS: u64 = 1_000_000;

/// Prices are given for so many tokens.
const PER_TOKENS: u128 = 1_000_000;

/// What marks a model that is used with the long window.
const LONG: &str = "[1m]";

/// The long window.
const LONG_WINDOW: u64 = 1_000_000;

/// Who may stand before the name of a model, with a slash between.
const SERVERS: [&str; 8] =
    ["anthropic", "openai", "google", "gemini", "models", "qwen", "alibaba", "dashscope"];

/// What stands before a name in one of their clouds, perhaps behind a region:
/// `us.anthropic.`.
const IN_CLOUD: &str = "anthropic.";
const REGIONS: [&str; 8] = ["", "global.", "us.", "us-gov.", "eu.", "apac.", "au.", "jp."];

/// How many digits a date or a version has at least: `model-5-5` is not a version of
/// `model-5`.
const VERSION_DIGITS: usize = 3;

/// The tables of one date; empty where nothing asks for them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Models {
    /// When the built-in part was true.
    pub dated: String,
    /// What models cost.
    pub prices: Vec<Price>,
    /// What some of them cost where the prompt is long.
    #[serde(default)]
    pub long: Vec<LongPrice>,
    /// How much models hold, by the beginning of their names.
    pub windows: Vec<(String, u64)>,
}

/// What a model costs, all of a request, once its prompt is long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongPrice {
    /// A prompt with more tokens than this is.
    pub above: u64,
    /// What it costs then.
    pub price: Price,
}

/// What a model costs, in millionths of a dollar for a million tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    /// The model, with or without a date or version behind.
    pub model: String,
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Tokens read from the provider's cache.
    pub cache_read: u64,
    /// Tokens written to the provider's cache.
    pub cache_creation: u64,
}

impl Models {
    /// The price of a model. Where it has several, because of who serves it, the
    /// one that says so.
    pub fn price(&self, model: &str) -> Option<&Price> {
        let served = self.prices_of(model).find(|price| is_of(model, &price.model));
        served.or_else(|| self.prices_of(model).next())
    }

    /// What stands under the longest name that fits a model, whoever serves it.
    pub fn prices_of(&self, model: &str) -> impl Iterator<Item = &Price> {
        let model = plain(model);
        let fits = move |price: &&Price| is_of(model, plain(&price.model));
        let length = |price: &Price| plain(&price.model).len();
        let longest = self.prices.iter().filter(fits).map(length).max();
        self.prices.iter().filter(fits).filter(move |price| Some(length(price)) == longest)
    }

    /// What a request costs; none where the model has no price.
    pub(crate) fn cost(&self, model: &str, used: &UsageTotals) -> Option<u64> {
        let price = self.price(model)?;
        let prompt = used.in_context().saturating_sub(used.output);
        let long = self.long.iter().filter(|long| prompt > long.above);
        let long = long.map(|long| &long.price);
        let long = long.filter(|long| is_of(plain(model), plain(&long.model)));
        // No name that is added beside the table makes a long prompt cheaper.
        long.chain([price]).map(|price| price.of(used)).max()
    }

    /// How much the model of a request holds. A client that marks the main
    /// agent's model as the long one does so at its start, and not in reports;
    /// and a request that was larger than the table says proves it wrong.
    pub(crate) fn window_of(
        &self,
        model: Option<&str>,
        of_main: Option<&str>,
        used: u64,
    ) -> Option<u64> {
        let marked = of_main.and_then(|main| main.strip_suffix(LONG)).filter(|main| {
            model.is_none_or(|model| model.starts_with(main) || main.starts_with(model))
        });
        if marked.is_some() {
            return Some(LONG_WINDOW);
        }
        let window = self.window(model.or(of_main)?)?;
        Some(if used > window { window.max(LONG_WINDOW) } else { window })
    }

    /// How much a model holds: families share a window, so any beginning fits.
    pub fn window(&self, model: &str) -> Option<u64> {
        if model.ends_with(LONG) {
            return Some(LONG_WINDOW);
        }
        let model = plain(model);
        let fits = self.windows.iter().filter(|(name, _)| model.starts_with(name.as_str()));
        fits.max_by_key(|(name, _)| name.len()).map(|(_, window)| *window)
    }
}

impl Price {
    /// What a request costs, rounded up: what was used is never free.
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
        u64::try_from(sum.div_ceil(PER_TOKENS)).unwrap_or(u64::MAX)
    }

    /// Whether nothing costs less here than there.
    pub fn is_at_least(&self, other: &Self) -> bool {
        self.input >= other.input
            && self.output >= other.output
            && self.cache_read >= other.cache_read
            && self.cache_creation >= other.cache_creation
    }
}

/// A model without who serves it: `anthropic/`, `models/`, `us.anthropic.`.
fn plain(model: &str) -> &str {
    let (path, name) = model.rsplit_once('/').unwrap_or(("", model));
    if let Some((region, name)) = name.split_once(IN_CLOUD)
        && REGIONS.contains(&region)
    {
        return name;
    }
    let server = path.rsplit('/').next().unwrap_or_default();
    if SERVERS.contains(&server) { name } else { model }
}

/// Whether a model goes by a name: the rest is a date, a version or a mark.
/// `gpt-4o-mini` is not a `gpt-4o`.
fn is_of(model: &str, name: &str) -> bool {
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
    digits(text) >= VERSION_DIGITS
        || text.strip_prefix('v').is_some_and(|rest| digits(rest) > 0)
        || text.starts_with("latest")
        || text.starts_with("default")
}

/// "2.50", for people: dollars with at least two decimals.
pub fn usd(micros: u64) -> String {
    let (whole, rest) = (micros / MICROS, micros % MICROS);
    let decimals = format!("{rest:06}");
    let short = decimals.trim_end_matches('0');
    let kept = decimals.get(..short.len().max(2)).unwrap_or(&decimals);
    format!("{whole}.{kept}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn price(model: &str, input: u64) -> Price {
        Price { model: model.to_string(), input, output: 0, cache_read: 0, cache_creation: 0 }
    }

    #[test]
    fn the_longest_name_that_fits_counts() {
        let prices = Vec::from([price("gpt-4o", 1), price("gpt-4o-2024-05-13", 2), price("o3", 3)]);
        let models = Models { prices, ..Models::default() };
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
    fn who_serves_a_model_is_passed_over() {
        let prices = Vec::from([
            price("opus-5", 1),
            price("azure/opus-5", 2),
            price("mine/x", 3),
            price("openai/o", 4),
            price("o", 5),
        ]);
        let windows = Vec::from([("opus-".to_string(), 7)]);
        let models = Models { prices, windows, ..Models::default() };
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
    fn a_long_prompt_costs_what_long_prompts_do() {
        let long = |model, above, input| LongPrice { above, price: price(model, input) };
        let models = Models {
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
            ..Models::default()
        };
        let cost = |model, input, cache_read, output| {
            models.cost(model, &UsageTotals { input, output, cache_read, ..UsageTotals::default() })
        };
        assert_eq!(cost("m", 100, 0, 900), Some(100));
        assert_eq!(cost("m", 101, 0, 0), Some(202));
        // What came from a cache is part of the prompt.
        assert_eq!(cost("m-2026-01-01", 1, 100, 0), Some(2));
        assert_eq!(cost("m", 201, 0, 0), Some(1206));
        assert_eq!(cost("dear", 101, 0, 0), Some(909));
        assert_eq!(cost("openai/m-001", 101, 0, 0), Some(202));
        assert_eq!(cost("mystery", 1, 0, 0), None);
    }

    #[test]
    fn a_window_is_the_familys_and_a_mark_makes_it_long() {
        let windows = Vec::from([("claude-".to_string(), 200_000), ("gpt-5".to_string(), 400_000)]);
        let models = Models { windows, ..Models::default() };
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
        let dear = Price { output: u64::MAX, ..price("m", u64::MAX) };
        assert_eq!(dear.of(&huge), u64::MAX);
    }

    #[test]
    fn dollars_keep_the_decimals_that_matter() {
        for (micros, text) in [
            (0, "0.00"),
            (2_500_000, "2.50"),
            (2_512_300, "2.5123"),
            (1, "0.000001"),
            (u64::MAX, "18446744073709.551615"),
        ] {
            assert_eq!(usd(micros), text);
        }
    }
}
