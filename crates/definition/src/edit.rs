//! A mode set in the text of a definition, and nothing else touched.
//!
//! The file is a person's: comments, order, quotes and line ends stay as they
//! are. The tree says where things stand; the change is one splice, and the
//! result has to mean exactly what the old text meant, the mode aside.

use std::ops::Range;

use jackline_engine::Mode;
use serde_json::{Value, json};

use crate::diagnostic::{At, Diagnostics};
use crate::words;
use crate::yaml::{self, Key, Node, NodeValue};

/// Why a text was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// It is no definition.
    #[error("{0}")]
    Unreadable(Diagnostics),
    /// It is written in a way that can't be changed in place.
    #[error("this file is written in a way that can't be changed in place; write `{0}` yourself")]
    Unfamiliar(String),
}

/// Sets the mode of a definition, or of a rule or pack in it.
pub fn set_mode(source: &str, name: Option<&str>, mode: Mode) -> Result<String, EditError> {
    let old = read(source)?;
    let edit = Edit { text: Text::new(source), word: words::mode(mode) };
    let written = match name {
        None => format!("mode: {}", edit.word),
        Some(name) => format!("modes: {{ {name}: {} }}", edit.word),
    };
    let Some(wanted) = with_mode(old.to_json(), name, edit.word) else {
        return Err(EditError::Unfamiliar(written));
    };
    if old.to_json() == wanted {
        return Ok(source.to_owned());
    }
    let changed = match name {
        None => edit.mode(&old),
        Some(name) => edit.named(&old, name),
    };
    let fits = |changed: &String| read(changed).is_ok_and(|new| new.to_json() == wanted);
    changed.filter(fits).ok_or(EditError::Unfamiliar(written))
}

fn read(source: &str) -> Result<Node, EditError> {
    let mut diagnostics = Diagnostics::new("the definition");
    match yaml::parse(source.as_bytes(), &mut diagnostics) {
        Some(mut tree) if diagnostics.is_empty() => {
            if tree.value == NodeValue::Null {
                tree.value = NodeValue::Map(Vec::new());
            }
            Ok(tree)
        }
        _ => Err(EditError::Unreadable(diagnostics)),
    }
}

/// The same tree with the mode, where it has room for one.
fn with_mode(mut tree: Value, name: Option<&str>, word: &str) -> Option<Value> {
    let root = tree.as_object_mut()?;
    let Some(name) = name else {
        root.insert("mode".to_owned(), json!(word));
        return Some(tree);
    };
    let modes = root.entry("modes").or_insert_with(|| json!({}));
    if modes.is_null() {
        *modes = json!({});
    }
    modes.as_object_mut()?.insert(name.to_owned(), json!(word));
    Some(tree)
}

/// A change to one text.
struct Edit<'s> {
    text: Text<'s>,
    word: &'static str,
}

impl Edit<'_> {
    /// The definition's own mode.
    fn mode(&self, root: &Node) -> Option<String> {
        let entries = entries(root)?;
        match find(entries, "mode") {
            Some((_, value)) => self.replaced(value),
            None => self.insert_key(root, entries, "mode", &[]),
        }
    }

    /// The mode of something with a name.
    fn named(&self, root: &Node, name: &str) -> Option<String> {
        let root_entries = entries(root)?;
        let Some((key, modes)) = find(root_entries, "modes") else {
            return self.insert_key(root, root_entries, "modes", &[name]);
        };
        if modes.value == NodeValue::Null {
            return self.fill(key, name);
        }
        let entries = entries(modes)?;
        if let Some((_, value)) = find(entries, name) {
            return self.replaced(value);
        }
        let Some((last, value)) = entries.last() else {
            // `{}`
            let at = self.text.offset(modes.at)?;
            let inside = self.text.source.get(at..)?.strip_prefix('{').map(|_| at + 1)?;
            return Some(self.text.splice(inside..inside, &self.pair(name)));
        };
        let end = self.scalar(value)?.end;
        if self.is_flow(modes)? {
            return Some(self.text.splice(end..end, &format!(", {}", self.pair(name))));
        }
        let indent = self.text.before(last.at)?;
        let line = format!("{indent}{}", self.pair(name));
        Some(self.text.insert_line(self.text.line_end(end), &line))
    }

    fn pair(&self, name: &str) -> String {
        let plain = name.starts_with(|c: char| c.is_ascii_alphanumeric());
        if plain { format!("{name}: {}", self.word) } else { format!("'{name}': {}", self.word) }
    }

    /// Another word in the place of a scalar, in the same quotes.
    fn replaced(&self, value: &Node) -> Option<String> {
        let range = self.scalar(value)?;
        let quote = self.text.source.get(range.clone())?.chars().next();
        let quote = quote.filter(|c| "\"'".contains(*c)).map(String::from).unwrap_or_default();
        Some(self.text.splice(range, &format!("{quote}{}{quote}", self.word)))
    }

    /// Where a word stands, with its quotes.
    fn scalar(&self, value: &Node) -> Option<Range<usize>> {
        let NodeValue::Text(text) = &value.value else { return None };
        let at = self.text.offset(value.at)?;
        let rest = self.text.source.get(at..)?;
        let found = [format!("\"{text}\""), format!("'{text}'"), text.clone()];
        let found = found.iter().find(|found| rest.starts_with(found.as_str()))?;
        Some(at..at + found.len())
    }

    fn is_flow(&self, map: &Node) -> Option<bool> {
        Some(self.text.source.get(self.text.offset(map.at)?..)?.starts_with('{'))
    }

    /// The first entry of `modes:` that says nothing yet.
    fn fill(&self, key: &Key, name: &str) -> Option<String> {
        let end = self.text.line_end(self.text.offset(key.at)?);
        let line = format!("{}  {}", self.text.before(key.at)?, self.pair(name));
        Some(self.text.insert_line(end, &line))
    }

    /// A new key of the definition: after its name and what it extends, for
    /// that is what people look for first.
    fn insert_key(
        &self,
        root: &Node,
        entries: &[(Key, Node)],
        key: &str,
        below: &[&str],
    ) -> Option<String> {
        let Some((first, _)) = entries.first() else { return self.first_key(root, key, below) };
        if self.is_flow(root)? && self.text.offset(root.at) != self.text.offset(first.at) {
            let at = self.text.offset(root.at)? + 1;
            let new = self.flow(key, below);
            let quoted = self.text.source.get(self.text.offset(first.at)?..)?.starts_with('"');
            let new = if quoted { self.json(key, below) } else { new };
            return Some(self.text.splice(at..at, &format!("{new}, ")));
        }
        let indent = self.text.before(first.at)?;
        let head = ["version", "name", "extends", "mode"];
        let after = entries.iter().take_while(|(key, _)| head.contains(&key.text.as_str())).count();
        let lines = self.block(&indent, key, below);
        match entries.get(after) {
            Some((next, _)) if after == 0 => {
                let start = self.text.line_start(self.text.offset(next.at)?);
                let eol = self.text.eol;
                Some(self.text.splice(start..start, &format!("{lines}{eol}")))
            }
            Some((next, _)) => {
                let start = self.text.line_start(self.text.offset(next.at)?);
                Some(self.text.insert_line(self.text.last_content_before(start)?, &lines))
            }
            None => {
                let end = self.text.last_content_before(self.text.source.len())?;
                Some(self.text.insert_line(end, &lines))
            }
        }
    }

    /// The first key of a definition that says nothing.
    fn first_key(&self, root: &Node, key: &str, below: &[&str]) -> Option<String> {
        let at = self.text.offset(root.at)?;
        if self.text.source.get(at..)?.starts_with("{}") {
            let new = self.flow(key, below);
            return Some(self.text.splice(at + 1..at + 1, &new));
        }
        let lines = self.block("", key, below);
        let text = &self.text;
        let ends_open = !text.source.is_empty() && !text.source.ends_with(['\n', '\r']);
        let before = if ends_open { text.eol } else { "" };
        let end = text.source.len();
        Some(text.splice(end..end, &format!("{before}{lines}{}", text.eol)))
    }

    fn flow(&self, key: &str, below: &[&str]) -> String {
        match below.first() {
            None => format!("{key}: {}", self.word),
            Some(name) => format!("{key}: {{ {} }}", self.pair(name)),
        }
    }

    fn json(&self, key: &str, below: &[&str]) -> String {
        match below.first() {
            None => format!("\"{key}\": \"{}\"", self.word),
            Some(name) => format!("\"{key}\": {{ \"{name}\": \"{}\" }}", self.word),
        }
    }

    fn block(&self, indent: &str, key: &str, below: &[&str]) -> String {
        match below.first() {
            None => format!("{indent}{key}: {}", self.word),
            Some(name) => {
                let eol = self.text.eol;
                format!("{indent}{key}:{eol}{indent}  {}", self.pair(name))
            }
        }
    }
}

fn entries(node: &Node) -> Option<&[(Key, Node)]> {
    match &node.value {
        NodeValue::Map(entries) => Some(entries),
        _ => None,
    }
}

fn find<'n>(entries: &'n [(Key, Node)], name: &str) -> Option<&'n (Key, Node)> {
    entries.iter().find(|(key, _)| key.text == name)
}

/// A text with where its lines begin.
struct Text<'s> {
    source: &'s str,
    starts: Vec<usize>,
    /// How its lines end.
    eol: &'static str,
}

impl<'s> Text<'s> {
    fn new(source: &'s str) -> Self {
        // A mark at the beginning belongs to no line.
        let mark = source.len() - source.trim_start_matches('\u{feff}').len();
        let mut starts = vec![mark];
        let bytes = source.as_bytes();
        for (at, byte) in bytes.iter().enumerate() {
            let alone = *byte == b'\r' && bytes.get(at + 1) != Some(&b'\n');
            if *byte == b'\n' || alone {
                starts.push(at + 1);
            }
        }
        let eol = if source.contains("\r\n") { "\r\n" } else { "\n" };
        Self { source, starts, eol }
    }

    /// The byte at a place.
    fn offset(&self, at: At) -> Option<usize> {
        let start = *self.starts.get((at.line as usize).checked_sub(1)?)?;
        let letters = (at.column as usize).checked_sub(1)?;
        let line = self.source.get(start..)?;
        let skipped: usize = line.chars().take(letters).map(char::len_utf8).sum();
        Some(start + skipped)
    }

    /// What stands before a place in its line; only where that is nothing but space.
    fn before(&self, at: At) -> Option<String> {
        let offset = self.offset(at)?;
        let before = self.source.get(self.line_start(offset)..offset)?;
        before.chars().all(|c| c == ' ').then(|| before.to_owned())
    }

    fn line_start(&self, offset: usize) -> usize {
        self.starts.iter().rev().find(|start| **start <= offset).copied().unwrap_or(0)
    }

    /// Where the line of a byte ends, before its line end.
    fn line_end(&self, offset: usize) -> usize {
        let rest = self.source.get(offset..).unwrap_or_default();
        offset + rest.find(['\r', '\n']).unwrap_or(rest.len())
    }

    /// Where the last line before a byte ends that is neither empty nor a comment.
    fn last_content_before(&self, offset: usize) -> Option<usize> {
        let starts = self.starts.iter().rev().filter(|start| **start < offset);
        let mut ends = starts.map(|start| (*start, self.line_end(*start)));
        let has_content = |(start, end): &(usize, usize)| {
            let line = self.source.get(*start..*end).unwrap_or_default().trim_start();
            !line.is_empty() && !line.starts_with('#') && line.trim_end() != "..."
        };
        ends.find(has_content).map(|(_, end)| end)
    }

    /// The text with a new line after the one that ends at `end`.
    fn insert_line(&self, end: usize, line: &str) -> String {
        self.splice(end..end, &format!("{}{line}", self.eol))
    }

    fn splice(&self, range: Range<usize>, new: &str) -> String {
        let (before, after) = (self.source.get(..range.start), self.source.get(range.end..));
        [before.unwrap_or_default(), new, after.unwrap_or_default()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::{PACKS, PRESETS};

    fn set(source: &str, name: Option<&str>) -> String {
        set_mode(source, name, Mode::Enforce).unwrap_or_else(|error| format!("error: {error}"))
    }

    /// The mode of a file, in every way it is written.
    #[test]
    fn the_word_is_replaced_and_everything_else_stays() {
        for (before, after) in [
            ("mode: observe\n", "mode: enforce\n"),
            ("mode: observe", "mode: enforce"),
            (
                "a: 1\r\nmode:   observe   # why\r\nb: 2\r\n",
                "a: 1\r\nmode:   enforce   # why\r\nb: 2\r\n",
            ),
            ("mode: \"observe\"\n", "mode: \"enforce\"\n"),
            ("mode: 'observe' # x", "mode: 'enforce' # x"),
            ("{mode: observe}", "{mode: enforce}"),
            (
                "{\"mode\": \"observe\", \"name\": \"a/b\"}\n",
                "{\"mode\": \"enforce\", \"name\": \"a/b\"}\n",
            ),
            ("---\n# top\n'mode' : observe\n...\n", "---\n# top\n'mode' : enforce\n...\n"),
            ("\u{feff}mode: observe\n", "\u{feff}mode: enforce\n"),
            ("name: ä/ö # ü\nmode: observe\n", "name: ä/ö # ü\nmode: enforce\n"),
            ("mode: >-\n  observe\n", "mode: >-\n  enforce\n"),
        ] {
            assert_eq!(set(before, None), after, "{before:?}");
        }
    }

    #[test]
    fn a_mode_that_is_missing_comes_after_the_name_and_what_is_extended() {
        for (before, after) in [
            ("", "mode: enforce\n"),
            ("# nothing yet\n", "# nothing yet\nmode: enforce\n"),
            ("# nothing yet", "# nothing yet\nmode: enforce\n"),
            ("---\n", "---\nmode: enforce\n"),
            ("{}", "{mode: enforce}"),
            ("name: a/b", "name: a/b\nmode: enforce"),
            ("name: a/b\n# the end\n", "name: a/b\nmode: enforce\n# the end\n"),
            ("name: a/b\n...\n", "name: a/b\nmode: enforce\n...\n"),
            (
                "version: 1\r\nextends:\r\n  - pack/git # all of it\r\n\r\n# Rules.\r\nrules: []\r\n",
                "version: 1\r\nextends:\r\n  - pack/git # all of it\r\nmode: enforce\r\n\r\n# Rules.\r\nrules: []\r\n",
            ),
            ("# Rules.\nrules: []\nname: a/b\n", "# Rules.\nmode: enforce\nrules: []\nname: a/b\n"),
            ("  name: a/b\n  rules: []\n", "  name: a/b\n  mode: enforce\n  rules: []\n"),
            ("{name: a/b,\n rules: []}", "{mode: enforce, name: a/b,\n rules: []}"),
            ("{\"name\": \"a/b\"}", "{\"mode\": \"enforce\", \"name\": \"a/b\"}"),
        ] {
            assert_eq!(set(before, None), after, "{before:?}");
        }
    }

    #[test]
    fn a_rule_is_named_in_modes_where_it_is_or_comes() {
        for (before, after) in [
            ("name: a/b\nrules: []\n", "name: a/b\nmodes:\n  git/clean: enforce\nrules: []\n"),
            ("mode: observe # soon\n", "mode: observe # soon\nmodes:\n  git/clean: enforce\n"),
            ("mode: observe", "mode: observe\nmodes:\n  git/clean: enforce"),
            ("modes:\n", "modes:\n  git/clean: enforce\n"),
            ("modes: # mine\nname: a/b\n", "modes: # mine\n  git/clean: enforce\nname: a/b\n"),
            ("modes: {}\n", "modes: {git/clean: enforce}\n"),
            ("modes: { a: observe } # x\n", "modes: { a: observe, git/clean: enforce } # x\n"),
            (
                "modes:\n    a: observe # x\n    # y\nb: 1\n",
                "modes:\n    a: observe # x\n    git/clean: enforce\n    # y\nb: 1\n",
            ),
            (
                "modes:\r\n  git/clean: observe # why\r\n  b: enforce",
                "modes:\r\n  git/clean: enforce # why\r\n  b: enforce",
            ),
            (
                "modes: {a: 'observe', 'git/clean': 'observe'}",
                "modes: {a: 'observe', 'git/clean': 'enforce'}",
            ),
            ("{name: a/b}", "{modes: { git/clean: enforce }, name: a/b}"),
            (
                "{\"name\": \"a/b\"}",
                "{\"modes\": { \"git/clean\": \"enforce\" }, \"name\": \"a/b\"}",
            ),
        ] {
            assert_eq!(set(before, Some("git/clean")), after, "{before:?}");
        }
    }

    #[test]
    fn what_says_so_already_stays_as_it_is() {
        for source in ["mode: enforce # x", "{mode: \"enforce\"}"] {
            assert_eq!(set(source, None), source);
        }
        assert_eq!(set("modes: {a: enforce}", Some("a")), "modes: {a: enforce}");
    }

    #[test]
    fn what_is_no_definition_is_refused() {
        for source in ["mode: [", "mode: observe\nmode: observe\n", "a: &b 1", "- a"] {
            assert!(set_mode(source, None, Mode::Enforce).is_err(), "{source}");
            assert!(set_mode(source, Some("a"), Mode::Enforce).is_err(), "{source}");
        }
    }

    #[test]
    fn what_comes_with_the_product_survives_there_and_back() {
        for built_in in PRESETS.iter().chain(PACKS) {
            for name in [None, Some("pack/git"), Some("own")] {
                let observed = set_mode(built_in.source, name, Mode::Observe).unwrap();
                let enforced = set_mode(&observed, name, Mode::Enforce).unwrap();
                assert_eq!(set_mode(&enforced, name, Mode::Observe).unwrap(), observed);
                let kept: String = built_in.source.lines().filter(|l| l.contains('#')).collect();
                let now: String = enforced.lines().filter(|l| l.contains('#')).collect();
                assert_eq!(now, kept, "{}", built_in.name);
            }
        }
    }
}
