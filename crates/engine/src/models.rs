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

/// The tables of one date; empty where nothing asks for them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Models {
    /// When the built-in part was true.
    pub dated: String,
    /// What models cost.
    pub prices: Vec<Price>,
    /// How much models hold, by the beginning of their names.
    pub windows: Vec<(String, u64)>,
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
    /// The price of a model: of all names that fit, the longest.
    pub fn price(&self, model: &str) -> Option<&Price> {
        let fits = self.prices.iter().filter(|price| is_of(model, &price.model));
        fits.max_by_key(|price| price.model.len())
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

/// Whether a model goes by a name: the rest is a date, a version or a mark.
/// `gpt-4o-mini` is not a `gpt-4o`.
fn is_of(model: &str, name: &str) -> bool {
    let Some(rest) = model.strip_prefix(name) else { return false };
    let mut letters = rest.chars();
    match letters.next() {
        None | Some('[') => true,
        Some('-' | '@' | ':') => {
            let rest = letters.as_str();
            rest.starts_with(|c: char| c.is_ascii_digit()) || rest.starts_with("latest")
        }
        Some(_) => false,
    }
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
            ("o3-pro", None),
            ("o3.5", None),
            ("", None),
        ] {
            assert_eq!(models.price(model).map(|price| price.input), input, "{model}");
        }
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
