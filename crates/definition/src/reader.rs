//! Takes typed values out of the tree, and complains instead of failing, so
//! that one run finds every mistake.

use jackline_engine::nearest;

use crate::diagnostic::{At, Diagnostics};
use crate::keys::Keys;
use crate::source::{Origin, Sources};
use crate::yaml::{Key, Node, NodeValue};

pub(crate) struct Reader<'a> {
    sources: &'a Sources,
    diagnostics: &'a mut Diagnostics,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(sources: &'a Sources, diagnostics: &'a mut Diagnostics) -> Self {
        Self { sources, diagnostics }
    }

    /// Where what stands at a place comes from.
    pub(crate) fn origin(&self, at: At) -> &'a Origin {
        self.sources.origin(at)
    }

    /// The place of a letter inside a text, as exactly as the file shows it.
    pub(crate) fn inside(&self, node: &Node, offset: usize) -> At {
        // What is only counted needs no exact place.
        if self.diagnostics.is_full() { node.at } else { self.sources.inside(node, offset) }
    }

    pub(crate) fn complain(&mut self, at: At, message: impl Into<String>) {
        self.diagnostics.push(at, message, None);
    }

    pub(crate) fn complain_hint(
        &mut self,
        at: At,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.diagnostics.push(at, message, Some(hint.into()));
    }

    /// "did you mean `b`?", or another hint where nothing is near.
    pub(crate) fn meant<'k>(
        &self,
        name: &str,
        known: impl IntoIterator<Item = &'k str>,
        otherwise: impl FnOnce() -> String,
    ) -> String {
        // Looking takes its time, and what is only counted needs no hint.
        if self.diagnostics.is_full() {
            return String::new();
        }
        nearest(name, known).map_or_else(otherwise, |meant| format!("did you mean `{meant}`?"))
    }

    fn wrong(&mut self, node: &Node, what: &str, expected: &str) {
        self.complain(node.at, format!("{what} must be {expected}, not {}", node.describe()));
    }

    /// The entries of a mapping with any keys; nothing is an empty mapping.
    pub(crate) fn map<'n>(&mut self, node: &'n Node, what: &str) -> &'n [(Key, Node)] {
        match &node.value {
            NodeValue::Map(entries) => entries,
            NodeValue::Null => &[],
            _ => {
                self.wrong(node, what, "a mapping");
                &[]
            }
        }
    }

    /// The entries of a mapping whose keys are known; the others are complained about.
    pub(crate) fn fields<'n>(
        &mut self,
        node: &'n Node,
        keys: &Keys,
    ) -> impl Iterator<Item = (&'n str, &'n Node)> + use<'n> {
        let entries = self.map(node, keys.of);
        let mut kept = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let name = key.text.as_str();
            if keys.names().any(|known| known == name) {
                kept.push((name, value));
            } else {
                let message = format!("unknown key `{name}` in {}", keys.of);
                let known = || match keys.known {
                    [] => "it has nothing to set".to_owned(),
                    _ => format!("known are {}", quoted(keys.names())),
                };
                let hint = self.meant(name, keys.names(), known);
                self.complain_hint(key.at, message, hint);
            }
        }
        kept.into_iter()
    }

    /// The one entry of a mapping such as `files: […]`.
    pub(crate) fn single<'n>(
        &mut self,
        node: &'n Node,
        keys: &Keys,
    ) -> Option<(&'n str, &'n Node)> {
        let entries = self.map(node, keys.of);
        if entries.len() == 1 {
            return self.fields(node, keys).next();
        }
        if matches!(node.value, NodeValue::Map(_) | NodeValue::Null) {
            // Unknown keys among too many are worth knowing too.
            let _ = self.fields(node, keys).count();
            let message = format!("{} has exactly one key, not {}", keys.of, entries.len());
            self.complain_hint(node.at, message, format!("one of {}", quoted(keys.names())));
        }
        None
    }

    pub(crate) fn list<'n>(&mut self, node: &'n Node, what: &str) -> &'n [Node] {
        match &node.value {
            NodeValue::List(items) => items,
            NodeValue::Null => &[],
            _ => {
                self.wrong(node, what, "a list");
                &[]
            }
        }
    }

    pub(crate) fn text<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n str> {
        match &node.value {
            NodeValue::Text(text) if !text.is_empty() => Some(text),
            NodeValue::Text(_) => {
                self.complain(node.at, format!("{what} must not be empty"));
                None
            }
            _ => {
                self.wrong(node, what, "text");
                None
            }
        }
    }

    pub(crate) fn flag(&mut self, node: &Node, what: &str) -> Option<bool> {
        match node.value {
            NodeValue::Bool(flag) => Some(flag),
            _ => {
                self.wrong(node, what, "true or false");
                None
            }
        }
    }

    pub(crate) fn count<T: TryFrom<i64>>(&mut self, node: &Node, what: &str) -> Option<T> {
        match node.value {
            NodeValue::Integer(number) => {
                let fits = T::try_from(number).ok().filter(|_| number >= 0);
                if fits.is_none() {
                    let message = format!("{what} can't be {number}");
                    self.complain_hint(node.at, message, "whole numbers from 0 are accepted");
                }
                fits
            }
            NodeValue::Text(ref text) => {
                let text: String = text.chars().take(40).collect();
                self.complain(node.at, format!("{what} must be a whole number, not `{text}`"));
                None
            }
            _ => {
                self.wrong(node, what, "a whole number");
                None
            }
        }
    }

    /// A number that is not 0.
    pub(crate) fn positive<T: TryFrom<i64> + Default + PartialEq>(
        &mut self,
        node: &Node,
        what: &str,
    ) -> Option<T> {
        let number = self.count(node, what)?;
        if number == T::default() {
            self.complain(node.at, format!("{what} can't be 0"));
            return None;
        }
        Some(number)
    }

    /// Reads a number into `slot`, if it is in the range that the row of its key gives.
    pub(crate) fn bounded<T: TryFrom<u64>>(
        &mut self,
        key: &str,
        node: &Node,
        keys: &Keys,
        slot: &mut T,
    ) {
        self.bounded_with_hint(key, node, keys, slot, |least, most| {
            format!("from {least} to {most}")
        });
    }

    /// The same, with the hint for a number outside of the range.
    pub(crate) fn bounded_with_hint<T: TryFrom<u64>>(
        &mut self,
        key: &str,
        node: &Node,
        keys: &Keys,
        slot: &mut T,
        hint: impl FnOnce(u64, u64) -> String,
    ) {
        let what = format!("`{}.{key}`", keys.of.trim_matches('`'));
        let Some(number) = self.count::<u64>(node, &what) else { return };
        let Some((least, most)) = keys.range(key) else { return };
        match T::try_from(number) {
            Ok(fitting) if (least..=most).contains(&number) => *slot = fitting,
            _ => {
                let message = format!("{what} can't be {number}");
                self.complain_hint(node.at, message, hint(least, most));
            }
        }
    }

    /// Dollars, with up to six decimals, in millionths.
    pub(crate) fn usd(&mut self, node: &Node, what: &str) -> Option<u64> {
        let text = match &node.value {
            NodeValue::Integer(number) => number.to_string(),
            NodeValue::Text(text) => text.clone(),
            _ => {
                self.wrong(node, what, "an amount of dollars");
                return None;
            }
        };
        let micros = parse_usd(&text);
        if micros.is_none() {
            let text: String = text.chars().take(40).collect();
            let message = format!("{what} can't be `{text}`");
            let hint = "amounts from 0 with up to six decimals are accepted, such as 2.50";
            self.complain_hint(node.at, message, hint);
        }
        micros
    }

    pub(crate) fn word<T: Copy>(
        &mut self,
        node: &Node,
        what: &str,
        words: &[(&'static str, T)],
    ) -> Option<T> {
        let text = self.text(node, what)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        if found.is_none() {
            let known = words.iter().map(|(word, _)| *word);
            let message = format!("{what} can't be `{text}`");
            let hint = self.meant(text, known.clone(), || format!("one of {}", quoted(known)));
            self.complain_hint(node.at, message, hint);
        }
        found
    }
}

/// Millionths of a dollar.
fn parse_usd(text: &str) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(decimals) || decimals.len() > 6 {
        return None;
    }
    let rest: u64 = format!("{decimals:0<6}").parse().ok()?;
    let micros = whole.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(rest)?;
    i64::try_from(micros).is_ok().then_some(micros)
}

/// Names, each in backticks.
pub fn quoted<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::parse_usd;

    #[test]
    fn dollars_are_read_without_a_float() {
        for (text, micros) in [
            ("0", Some(0)),
            ("2", Some(2_000_000)),
            ("2.5", Some(2_500_000)),
            ("2.50", Some(2_500_000)),
            ("0.000001", Some(1)),
            ("0.0000001", None),
            ("9223372036854.775807", Some(9_223_372_036_854_775_807)),
            ("9223372036854.775808", None),
            ("-1", None),
            ("1e3", None),
            (".5", None),
            ("5.", None),
            ("1,5", None),
            ("", None),
        ] {
            assert_eq!(parse_usd(text), micros, "{text}");
        }
    }
}
