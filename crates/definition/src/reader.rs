//! Reads typed values from the YAML tree. A reader reports an error and continues, so that one
//! run finds every mistake.

use jackline_engine::nearest_name;

use crate::diagnostic::{Diagnostics, SourcePosition};
use crate::keys::MappingSpec;
use crate::manifest_keys::manifest_key_hint;
use crate::source::{Origin, SourceFiles};
use crate::yaml::{YamlKey, YamlNode, YamlValue};

pub(crate) struct NodeReader<'a> {
    sources: &'a SourceFiles,
    diagnostics: &'a mut Diagnostics,
}

impl<'a> NodeReader<'a> {
    pub(crate) fn new(sources: &'a SourceFiles, diagnostics: &'a mut Diagnostics) -> Self {
        Self { sources, diagnostics }
    }

    /// Returns the origin of the text at a position.
    pub(crate) fn origin(&self, at: SourcePosition) -> &'a Origin {
        self.sources.origin(at)
    }

    /// Returns the position of a character inside a text, as exactly as the file allows.
    pub(crate) fn position_in_text(&self, node: &YamlNode, offset: usize) -> SourcePosition {
        // A problem that is only counted needs no exact position.
        if self.diagnostics.is_full() {
            node.position
        } else {
            self.sources.position_in_text(node, offset)
        }
    }

    pub(crate) fn report(&mut self, at: SourcePosition, message: impl Into<String>) {
        self.diagnostics.push(at, message, None);
    }

    pub(crate) fn report_with_hint(
        &mut self,
        at: SourcePosition,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.diagnostics.push(at, message, Some(hint.into()));
    }

    /// Returns "did you mean `b`?", or the other hint if no known name is near.
    pub(crate) fn suggest<'k>(
        &self,
        name: &str,
        known: impl IntoIterator<Item = &'k str>,
        fallback: impl FnOnce() -> String,
    ) -> String {
        // The search takes time, and a problem that is only counted needs no hint.
        if self.diagnostics.is_full() {
            return String::new();
        }
        nearest_name(name, known).map_or_else(fallback, |meant| format!("did you mean `{meant}`?"))
    }

    fn report_wrong_type(&mut self, node: &YamlNode, what: &str, expected: &str) {
        self.report(node.position, format!("{what} must be {expected}, not {}", node.describe()));
    }

    /// Returns the entries of a mapping with any keys; a null value is an empty mapping.
    pub(crate) fn map<'n>(&mut self, node: &'n YamlNode, what: &str) -> &'n [(YamlKey, YamlNode)] {
        match &node.value {
            YamlValue::Map(entries) => entries,
            YamlValue::Null => &[],
            _ => {
                self.report_wrong_type(node, what, "a mapping");
                &[]
            }
        }
    }

    /// Returns the entries of a mapping with known keys and reports all other keys.
    pub(crate) fn fields<'n>(
        &mut self,
        node: &'n YamlNode,
        keys: &MappingSpec,
    ) -> impl Iterator<Item = (&'n str, &'n YamlNode)> + use<'n> {
        let entries = self.map(node, keys.label);
        let mut recognised = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let name = key.text.as_str();
            if keys.names().any(|known| known == name) {
                recognised.push((name, value));
            } else {
                let message = format!("unknown key `{name}` in {}", keys.label);
                let known = || match keys.entries {
                    [] => "this mapping has no keys".to_owned(),
                    _ => format!("known keys: {}", quoted(keys.names())),
                };
                let hint = match manifest_key_hint(keys.label, name) {
                    Some(hint) => hint.to_owned(),
                    None => self.suggest(name, keys.names(), known),
                };
                self.report_with_hint(key.position, message, hint);
            }
        }
        recognised.into_iter()
    }

    /// Returns the only entry of a mapping such as `files: […]`.
    pub(crate) fn single_field<'n>(
        &mut self,
        node: &'n YamlNode,
        keys: &MappingSpec,
    ) -> Option<(&'n str, &'n YamlNode)> {
        let entries = self.map(node, keys.label);
        if entries.len() == 1 {
            return self.fields(node, keys).next();
        }
        if matches!(node.value, YamlValue::Map(_) | YamlValue::Null) {
            // Also report unknown keys if there are too many keys.
            let _ = self.fields(node, keys).count();
            let message =
                format!("{} must have exactly one key, not {}", keys.label, entries.len());
            self.report_with_hint(
                node.position,
                message,
                format!("use one of {}", quoted(keys.names())),
            );
        }
        None
    }

    pub(crate) fn list<'n>(&mut self, node: &'n YamlNode, what: &str) -> &'n [YamlNode] {
        match &node.value {
            YamlValue::List(items) => items,
            YamlValue::Null => &[],
            _ => {
                self.report_wrong_type(node, what, "a list");
                &[]
            }
        }
    }

    pub(crate) fn text<'n>(&mut self, node: &'n YamlNode, what: &str) -> Option<&'n str> {
        match &node.value {
            YamlValue::Text(text) if !text.is_empty() => Some(text),
            YamlValue::Text(_) => {
                self.report(node.position, format!("{what} must not be empty"));
                None
            }
            _ => {
                self.report_wrong_type(node, what, "text");
                None
            }
        }
    }

    pub(crate) fn flag(&mut self, node: &YamlNode, what: &str) -> Option<bool> {
        match node.value {
            YamlValue::Bool(flag) => Some(flag),
            _ => {
                self.report_wrong_type(node, what, "true or false");
                None
            }
        }
    }

    pub(crate) fn count<T: TryFrom<i64>>(&mut self, node: &YamlNode, what: &str) -> Option<T> {
        match node.value {
            YamlValue::Integer(number) => {
                let fits = T::try_from(number).ok().filter(|_| number >= 0);
                if fits.is_none() {
                    let message = format!("{what} can't be {number}");
                    self.report_with_hint(
                        node.position,
                        message,
                        "whole numbers from 0 are accepted",
                    );
                }
                fits
            }
            YamlValue::Text(ref text) => {
                let text: String = text.chars().take(40).collect();
                self.report(node.position, format!("{what} must be a whole number, not `{text}`"));
                None
            }
            _ => {
                self.report_wrong_type(node, what, "a whole number");
                None
            }
        }
    }

    /// Reads a number greater than 0.
    pub(crate) fn positive<T: TryFrom<i64> + Default + PartialEq>(
        &mut self,
        node: &YamlNode,
        what: &str,
    ) -> Option<T> {
        let number = self.count(node, what)?;
        if number == T::default() {
            self.report(node.position, format!("{what} can't be 0"));
            return None;
        }
        Some(number)
    }

    /// Reads a number into `slot` if it is in the range of its key.
    pub(crate) fn bounded<T: TryFrom<u64>>(
        &mut self,
        key: &str,
        node: &YamlNode,
        keys: &MappingSpec,
        slot: &mut T,
    ) {
        self.bounded_with_hint(key, node, keys, slot, |least, most| {
            format!("use a number from {least} to {most}")
        });
    }

    /// Like `bounded`, with a hint for a number outside the range.
    pub(crate) fn bounded_with_hint<T: TryFrom<u64>>(
        &mut self,
        key: &str,
        node: &YamlNode,
        keys: &MappingSpec,
        slot: &mut T,
        hint: impl FnOnce(u64, u64) -> String,
    ) {
        let what = format!("`{}.{key}`", keys.label.trim_matches('`'));
        let Some(number) = self.count::<u64>(node, &what) else { return };
        let Some((least, most)) = keys.range(key) else { return };
        match T::try_from(number) {
            Ok(fitting) if (least..=most).contains(&number) => *slot = fitting,
            _ => {
                let message = format!("{what} can't be {number}");
                self.report_with_hint(node.position, message, hint(least, most));
            }
        }
    }

    /// Reads dollars with up to six decimals, in millionths of a dollar.
    pub(crate) fn usd(&mut self, node: &YamlNode, what: &str) -> Option<u64> {
        let text = match &node.value {
            YamlValue::Integer(number) => number.to_string(),
            YamlValue::Text(text) => text.clone(),
            _ => {
                self.report_wrong_type(node, what, "an amount of dollars");
                return None;
            }
        };
        let micros = parse_decimal(&text, 6);
        if micros.is_none() {
            let text: String = text.chars().take(40).collect();
            let message = format!("{what} can't be `{text}`");
            let hint = "amounts from 0 with up to six decimals are accepted, such as 2.50";
            self.report_with_hint(node.position, message, hint);
        }
        micros
    }

    /// Reads seconds with up to three decimals, in milliseconds. The time is greater than 0.
    pub(crate) fn seconds_as_ms(&mut self, node: &YamlNode, what: &str) -> Option<u64> {
        let text = match &node.value {
            YamlValue::Integer(number) => number.to_string(),
            YamlValue::Text(text) => text.clone(),
            _ => {
                self.report_wrong_type(node, what, "a number of seconds");
                return None;
            }
        };
        match parse_decimal(&text, 3) {
            Some(0) => {
                self.report(node.position, format!("{what} can't be 0"));
                None
            }
            None => {
                let text: String = text.chars().take(40).collect();
                let message = format!("{what} can't be `{text}`");
                let hint = "seconds with up to three decimals are accepted, such as 30 or 0.5";
                self.report_with_hint(node.position, message, hint);
                None
            }
            ms => ms,
        }
    }

    pub(crate) fn word<T: Copy>(
        &mut self,
        node: &YamlNode,
        what: &str,
        words: &[(&'static str, T)],
    ) -> Option<T> {
        let text = self.text(node, what)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        if found.is_none() {
            let known = words.iter().map(|(word, _)| *word);
            let message = format!("{what} can't be `{text}`");
            let hint =
                self.suggest(text, known.clone(), || format!("use one of {}", quoted(known)));
            self.report_with_hint(node.position, message, hint);
        }
        found
    }
}

/// Parses a number with at most `places` decimals into a whole number of its smallest unit, such as
/// dollars into millionths of a dollar.
fn parse_decimal(text: &str, places: u8) -> Option<u64> {
    let width = usize::from(places);
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(decimals) || decimals.len() > width {
        return None;
    }
    let rest: u64 = format!("{decimals:0<width$}").parse().ok()?;
    let unit = 10_u64.checked_pow(places.into())?;
    let all = whole.parse::<u64>().ok()?.checked_mul(unit)?.checked_add(rest)?;
    i64::try_from(all).is_ok().then_some(all)
}

/// Writes milliseconds as seconds, without zeros at the end: `0.5`.
pub(crate) fn format_seconds(ms: u64) -> String {
    let text = format!("{}.{:03}", ms / 1000, ms % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Lists names, each in backticks.
pub fn quoted<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::{format_seconds, parse_decimal};

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
            assert_eq!(parse_decimal(text, 6), micros, "{text}");
        }
    }

    #[test]
    fn seconds_are_read_and_written_without_a_float() {
        for (text, ms, written) in [
            ("30", Some(30_000), "30"),
            ("0.5", Some(500), "0.5"),
            ("0.50", Some(500), "0.5"),
            ("1.005", Some(1005), "1.005"),
            ("100.0", Some(100_000), "100"),
            ("0.0005", None, ""),
            ("-0.5", None, ""),
            ("1e3", None, ""),
        ] {
            assert_eq!(parse_decimal(text, 3), ms, "{text}");
            assert_eq!(ms.map(format_seconds).unwrap_or_default(), written);
        }
    }
}
