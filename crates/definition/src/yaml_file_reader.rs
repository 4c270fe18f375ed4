//! Reads small YAML files that are not definitions: tasks and scripts.
//!
//! The caller takes values from the tree one by one. An invalid value is reported and the next
//! one is read, so that one run finds every mistake.

use std::path::Path;

use jackline_engine::nearest_name;

use crate::diagnostic::{Diagnostics, SourcePosition};
pub use crate::reader::quoted;
use crate::yaml::{self, YamlKey, YamlNode, YamlValue};

/// The maximum size of a file in bytes.
pub const FILE_BYTES_MAX: u64 = 4 << 20;

/// The longest accepted time in seconds: one day.
const SECONDS_MAX: i64 = 86_400;

/// Reads one YAML file and collects its errors.
#[derive(Debug)]
pub struct YamlFileReader {
    diagnostics: Diagnostics,
}

impl YamlFileReader {
    /// Creates a reader for a file of this name.
    pub fn for_file(file: &Path) -> Self {
        Self { diagnostics: Diagnostics::new(&file.display().to_string()) }
    }

    /// Parses the text of the file to a tree.
    pub fn parse(&mut self, source: &[u8]) -> Option<YamlNode> {
        yaml::parse(source, &mut self.diagnostics)
    }

    /// Whether the reader found no errors so far.
    pub fn is_valid(&self) -> bool {
        self.diagnostics.is_empty()
    }

    /// Returns all errors, sorted by position.
    pub fn into_diagnostics(self) -> Diagnostics {
        self.diagnostics.sorted()
    }

    /// Reports an error, with a hint how to fix it.
    pub fn report(&mut self, at: SourcePosition, message: impl Into<String>, hint: Option<String>) {
        self.diagnostics.push(at, message, hint);
    }

    /// Returns the entries of a mapping with known keys and reports all other keys.
    pub fn fields<'n>(
        &mut self,
        node: &'n YamlNode,
        what: &str,
        known: &[&str],
    ) -> Vec<&'n (YamlKey, YamlNode)> {
        let YamlValue::Map(entries) = &node.value else {
            let message = format!("{what} must be a mapping, not {}", node.describe());
            self.report(node.position, message, None);
            return Vec::new();
        };
        let mut recognised = Vec::new();
        for entry in entries {
            let name = entry.0.text.as_str();
            if known.contains(&name) {
                recognised.push(entry);
                continue;
            }
            let hint = match nearest_name(name, known.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("known keys: {}", quoted(known.iter().copied())),
            };
            self.report(entry.0.position, format!("unknown key `{name}` in {what}"), Some(hint));
        }
        recognised
    }

    /// Reads text that is not empty or blank.
    pub fn text(&mut self, node: &YamlNode, what: &str) -> Option<String> {
        match &node.value {
            YamlValue::Text(text) if !text.trim().is_empty() => return Some(text.clone()),
            YamlValue::Text(_) => {
                self.report(node.position, format!("{what} must not be empty"), None);
            }
            _ => {
                let message = format!("{what} must be text, not {}", node.describe());
                self.report(node.position, message, None);
            }
        }
        None
    }

    /// Reads one of a few known words.
    pub fn word<'k>(&mut self, node: &YamlNode, what: &str, known: &[&'k str]) -> Option<&'k str> {
        let text = self.text(node, what)?;
        let found = known.iter().copied().find(|word| *word == text);
        if found.is_none() {
            let hint = match nearest_name(&text, known.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("known words: {}", quoted(known.iter().copied())),
            };
            self.report(node.position, format!("{what} can't be `{text}`"), Some(hint));
        }
        found
    }

    /// Reads `true` or `false`. An invalid value counts as `false`.
    pub fn flag(&mut self, node: &YamlNode, what: &str) -> bool {
        if let YamlValue::Bool(flag) = node.value {
            return flag;
        }
        let message = format!("{what} must be true or false, not {}", node.describe());
        self.report(node.position, message, None);
        false
    }

    /// Reads a list. An invalid value counts as an empty list.
    pub fn list<'n>(&mut self, node: &'n YamlNode, what: &str) -> &'n [YamlNode] {
        if let YamlValue::List(items) = &node.value {
            return items;
        }
        let message = format!("{what} must be a list, not {}", node.describe());
        self.report(node.position, message, None);
        &[]
    }

    /// Reads a list of known names, each at most once.
    pub fn names<'k, K: Iterator<Item = &'k str>>(
        &mut self,
        node: &YamlNode,
        (what, one): (&str, &str),
        known: impl Fn() -> K,
    ) -> Vec<String> {
        let mut names = Vec::new();
        for item in self.list(node, what) {
            let Some(name) = self.text(item, &format!("a {one}")) else { continue };
            if names.contains(&name) {
                self.report(item.position, format!("`{name}` occurs twice"), None);
            } else if known().any(|known| known == name) {
                names.push(name);
            } else {
                let hint = match nearest_name(&name, known()) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => format!("available: {}", quoted(known())),
                };
                self.report(item.position, format!("there is no {one} `{name}`"), Some(hint));
            }
        }
        names
    }

    /// Reads whole seconds from 1 to one day. An invalid value counts as `default`.
    pub fn seconds(&mut self, node: &YamlNode, what: &str, default: u64) -> u64 {
        if let YamlValue::Integer(number @ 1..=SECONDS_MAX) = node.value {
            return number.unsigned_abs();
        }
        let hint = format!("whole seconds from 1 to {SECONDS_MAX} are accepted");
        self.report(node.position, format!("{what} is not a valid number of seconds"), Some(hint));
        default
    }
}
