//! Small files of people that are no definition: tasks and scripts.
//!
//! Values are taken out of the tree one by one. What is wrong is complained about, and the
//! next one is looked at, so that one run finds every mistake.

use std::path::Path;

use jackline_engine::nearest;

use crate::diagnostic::{At, Diagnostics};
pub use crate::reader::quoted;
use crate::yaml::{self, Key, Node, NodeValue};

/// How long a file may be.
pub const FILE_BYTES_MAX: u64 = 4 << 20;

/// The longest time that can be waited: a day.
const SECONDS_MAX: i64 = 86_400;

/// A file that is read, and what is wrong with it.
#[derive(Debug)]
pub struct Form {
    diagnostics: Diagnostics,
}

impl Form {
    /// For a file of this name.
    pub fn of(file: &Path) -> Self {
        Self { diagnostics: Diagnostics::new(&file.display().to_string()) }
    }

    /// The tree of its text.
    pub fn parse(&mut self, source: &[u8]) -> Option<Node> {
        yaml::parse(source, &mut self.diagnostics)
    }

    /// Whether nothing was wrong so far.
    pub fn is_right(&self) -> bool {
        self.diagnostics.is_empty()
    }

    /// Everything that was wrong.
    pub fn wrong(self) -> Diagnostics {
        self.diagnostics.sorted()
    }

    /// Says that something is wrong, and what would be right.
    pub fn complain(&mut self, at: At, message: impl Into<String>, hint: Option<String>) {
        self.diagnostics.push(at, message, hint);
    }

    /// The entries of a mapping whose keys are known.
    pub fn fields<'n>(
        &mut self,
        node: &'n Node,
        what: &str,
        known: &[&str],
    ) -> Vec<&'n (Key, Node)> {
        let NodeValue::Map(entries) = &node.value else {
            let message = format!("{what} must be a mapping, not {}", node.describe());
            self.complain(node.at, message, None);
            return Vec::new();
        };
        let mut kept = Vec::new();
        for entry in entries {
            let name = entry.0.text.as_str();
            if known.contains(&name) {
                kept.push(entry);
                continue;
            }
            let hint = match nearest(name, known.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("known are {}", quoted(known.iter().copied())),
            };
            self.complain(entry.0.at, format!("unknown key `{name}` in {what}"), Some(hint));
        }
        kept
    }

    /// A text that says something.
    pub fn text(&mut self, node: &Node, what: &str) -> Option<String> {
        match &node.value {
            NodeValue::Text(text) if !text.trim().is_empty() => return Some(text.clone()),
            NodeValue::Text(_) => self.complain(node.at, format!("{what} must not be empty"), None),
            _ => {
                let message = format!("{what} must be text, not {}", node.describe());
                self.complain(node.at, message, None);
            }
        }
        None
    }

    /// One of a few words.
    pub fn word<'k>(&mut self, node: &Node, what: &str, known: &[&'k str]) -> Option<&'k str> {
        let said = self.text(node, what)?;
        let found = known.iter().copied().find(|word| *word == said);
        if found.is_none() {
            let hint = match nearest(&said, known.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("known are {}", quoted(known.iter().copied())),
            };
            self.complain(node.at, format!("{what} can't be `{said}`"), Some(hint));
        }
        found
    }

    /// Yes or no.
    pub fn flag(&mut self, node: &Node, what: &str) -> bool {
        if let NodeValue::Bool(flag) = node.value {
            return flag;
        }
        let message = format!("{what} must be true or false, not {}", node.describe());
        self.complain(node.at, message, None);
        false
    }

    /// A list.
    pub fn list<'n>(&mut self, node: &'n Node, what: &str) -> &'n [Node] {
        if let NodeValue::List(items) = &node.value {
            return items;
        }
        let message = format!("{what} must be a list, not {}", node.describe());
        self.complain(node.at, message, None);
        &[]
    }

    /// A list of names that are known, each of them once.
    pub fn names<'k, K: Iterator<Item = &'k str>>(
        &mut self,
        node: &Node,
        (what, one): (&str, &str),
        known: impl Fn() -> K,
    ) -> Vec<String> {
        let mut names = Vec::new();
        for item in self.list(node, what) {
            let Some(name) = self.text(item, &format!("a {one}")) else { continue };
            if names.contains(&name) {
                self.complain(item.at, format!("`{name}` is given twice"), None);
            } else if known().any(|known| known == name) {
                names.push(name);
            } else {
                let hint = match nearest(&name, known()) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => format!("there are {}", quoted(known())),
                };
                self.complain(item.at, format!("there is no {one} `{name}`"), Some(hint));
            }
        }
        names
    }

    /// Whole seconds from 1 to a day.
    pub fn seconds(&mut self, node: &Node, what: &str, usual: u64) -> u64 {
        if let NodeValue::Integer(number @ 1..=SECONDS_MAX) = node.value {
            return number.unsigned_abs();
        }
        let hint = format!("whole seconds from 1 to {SECONDS_MAX} are accepted");
        self.complain(node.at, format!("{what} is no time to wait"), Some(hint));
        usual
    }
}
