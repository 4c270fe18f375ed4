//! Sets a mode in the text of a definition and leaves the rest of the text unchanged.
//!
//! A person maintains the file, so comments, order, quotes and line ends must stay. The tree gives
//! the positions, and the change is one splice. Afterwards the new text is parsed and compared: it
//! must have the same content as the old text, except for the mode.

use std::ops::Range;

use jackline_engine::Mode;
use serde_json::{Value, json};

use crate::diagnostic::{Diagnostics, SourcePosition};
use crate::words;
use crate::yaml::{self, YamlKey, YamlNode, YamlValue};

/// The reason why a text was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The text is not a valid definition.
    #[error("{0}")]
    InvalidDefinition(Diagnostics),
    /// The text has a layout that can't be changed in place.
    #[error("the layout of this file can't be changed automatically; add `{0}` yourself")]
    UnsupportedLayout(String),
}

/// Sets the mode of a definition, or of a rule or pack in it.
pub fn set_mode(source: &str, name: Option<&str>, mode: Mode) -> Result<String, EditError> {
    let old = parse_definition(source)?;
    let edit = ModeEdit { text: SourceText::new(source), word: words::mode(mode) };
    let written = match name {
        None => format!("mode: {}", edit.word),
        Some(name) => format!("modes: {{ {name}: {} }}", edit.word),
    };
    let Some(wanted) = tree_with_mode(old.to_json(), name, edit.word) else {
        return Err(EditError::UnsupportedLayout(written));
    };
    if old.to_json() == wanted {
        return Ok(source.to_owned());
    }
    let changed = match name {
        None => edit.set_definition_mode(&old),
        Some(name) => edit.set_named_mode(&old, name),
    };
    let fits =
        |changed: &String| parse_definition(changed).is_ok_and(|new| new.to_json() == wanted);
    changed.filter(fits).ok_or(EditError::UnsupportedLayout(written))
}

fn parse_definition(source: &str) -> Result<YamlNode, EditError> {
    let mut diagnostics = Diagnostics::new("the definition");
    match yaml::parse(source.as_bytes(), &mut diagnostics) {
        Some(mut tree) if diagnostics.is_empty() => {
            if tree.value == YamlValue::Null {
                tree.value = YamlValue::Map(Vec::new());
            }
            Ok(tree)
        }
        _ => Err(EditError::InvalidDefinition(diagnostics)),
    }
}

/// Returns the tree with the mode set, or `None` if the tree can't hold a mode.
fn tree_with_mode(mut tree: Value, name: Option<&str>, word: &str) -> Option<Value> {
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
struct ModeEdit<'s> {
    text: SourceText<'s>,
    word: &'static str,
}

impl ModeEdit<'_> {
    /// Sets the mode of the definition.
    fn set_definition_mode(&self, root: &YamlNode) -> Option<String> {
        let entries = entries(root)?;
        match find_entry(entries, "mode") {
            Some((_, value)) => self.replace_scalar(value),
            None => self.insert_key(root, entries, "mode", &[]),
        }
    }

    /// Sets the mode of a rule or pack by name.
    fn set_named_mode(&self, root: &YamlNode, name: &str) -> Option<String> {
        let root_entries = entries(root)?;
        let Some((key, modes)) = find_entry(root_entries, "modes") else {
            return self.insert_key(root, root_entries, "modes", &[name]);
        };
        if modes.value == YamlValue::Null {
            return self.fill_empty_modes(key, name);
        }
        let entries = entries(modes)?;
        if let Some((_, value)) = find_entry(entries, name) {
            return self.replace_scalar(value);
        }
        let Some((last, value)) = entries.last() else {
            // `{}`
            let at = self.text.offset(modes.position)?;
            let inside = self.text.source.get(at..)?.strip_prefix('{').map(|_| at + 1)?;
            return Some(self.text.splice(inside..inside, &self.mode_entry(name)));
        };
        let end = self.scalar_range(value)?.end;
        if self.is_flow(modes)? {
            return Some(self.text.splice(end..end, &format!(", {}", self.mode_entry(name))));
        }
        let indent = self.text.indent_before(last.position)?;
        let line = format!("{indent}{}", self.mode_entry(name));
        Some(self.text.insert_line(self.text.line_end(end), &line))
    }

    fn mode_entry(&self, name: &str) -> String {
        let plain = name.starts_with(|c: char| c.is_ascii_alphanumeric());
        if plain { format!("{name}: {}", self.word) } else { format!("'{name}': {}", self.word) }
    }

    /// Replaces a scalar by the word of the mode, in the same quotes.
    fn replace_scalar(&self, value: &YamlNode) -> Option<String> {
        let range = self.scalar_range(value)?;
        let quote = self.text.source.get(range.clone())?.chars().next();
        let quote = quote.filter(|c| "\"'".contains(*c)).map(String::from).unwrap_or_default();
        Some(self.text.splice(range, &format!("{quote}{}{quote}", self.word)))
    }

    /// Returns the range of a scalar in the text, including its quotes.
    fn scalar_range(&self, value: &YamlNode) -> Option<Range<usize>> {
        let YamlValue::Text(text) = &value.value else { return None };
        let at = self.text.offset(value.position)?;
        let rest = self.text.source.get(at..)?;
        let found = [format!("\"{text}\""), format!("'{text}'"), text.clone()];
        let found = found.iter().find(|found| rest.starts_with(found.as_str()))?;
        Some(at..at + found.len())
    }

    fn is_flow(&self, map: &YamlNode) -> Option<bool> {
        Some(self.text.source.get(self.text.offset(map.position)?..)?.starts_with('{'))
    }

    /// Adds the first entry to an empty `modes:`.
    fn fill_empty_modes(&self, key: &YamlKey, name: &str) -> Option<String> {
        let end = self.text.line_end(self.text.offset(key.position)?);
        let line = format!("{}  {}", self.text.indent_before(key.position)?, self.mode_entry(name));
        Some(self.text.insert_line(end, &line))
    }

    /// Inserts a new key of the definition after `name` and `extends`, which people read first.
    fn insert_key(
        &self,
        root: &YamlNode,
        entries: &[(YamlKey, YamlNode)],
        key: &str,
        below: &[&str],
    ) -> Option<String> {
        let Some((first, _)) = entries.first() else {
            return self.insert_first_key(root, key, below);
        };
        if self.is_flow(root)?
            && self.text.offset(root.position) != self.text.offset(first.position)
        {
            let at = self.text.offset(root.position)? + 1;
            let new = self.flow_entry(key, below);
            let quoted =
                self.text.source.get(self.text.offset(first.position)?..)?.starts_with('"');
            let new = if quoted { self.json_entry(key, below) } else { new };
            return Some(self.text.splice(at..at, &format!("{new}, ")));
        }
        let indent = self.text.indent_before(first.position)?;
        let head = ["version", "name", "extends", "mode"];
        let after = entries.iter().take_while(|(key, _)| head.contains(&key.text.as_str())).count();
        let lines = self.block_entry(&indent, key, below);
        match entries.get(after) {
            Some((next, _)) if after == 0 => {
                let start = self.text.line_start(self.text.offset(next.position)?);
                let eol = self.text.eol;
                Some(self.text.splice(start..start, &format!("{lines}{eol}")))
            }
            Some((next, _)) => {
                let start = self.text.line_start(self.text.offset(next.position)?);
                Some(self.text.insert_line(self.text.last_content_before(start)?, &lines))
            }
            None => {
                let end = self.text.last_content_before(self.text.source.len())?;
                Some(self.text.insert_line(end, &lines))
            }
        }
    }

    /// Inserts the first key of an empty definition.
    fn insert_first_key(&self, root: &YamlNode, key: &str, below: &[&str]) -> Option<String> {
        let at = self.text.offset(root.position)?;
        if self.text.source.get(at..)?.starts_with("{}") {
            let new = self.flow_entry(key, below);
            return Some(self.text.splice(at + 1..at + 1, &new));
        }
        let lines = self.block_entry("", key, below);
        let text = &self.text;
        let ends_open = !text.source.is_empty() && !text.source.ends_with(['\n', '\r']);
        let before = if ends_open { text.eol } else { "" };
        let end = text.source.len();
        Some(text.splice(end..end, &format!("{before}{lines}{}", text.eol)))
    }

    fn flow_entry(&self, key: &str, below: &[&str]) -> String {
        match below.first() {
            None => format!("{key}: {}", self.word),
            Some(name) => format!("{key}: {{ {} }}", self.mode_entry(name)),
        }
    }

    fn json_entry(&self, key: &str, below: &[&str]) -> String {
        match below.first() {
            None => format!("\"{key}\": \"{}\"", self.word),
            Some(name) => format!("\"{key}\": {{ \"{name}\": \"{}\" }}", self.word),
        }
    }

    fn block_entry(&self, indent: &str, key: &str, below: &[&str]) -> String {
        match below.first() {
            None => format!("{indent}{key}: {}", self.word),
            Some(name) => {
                let eol = self.text.eol;
                format!("{indent}{key}:{eol}{indent}  {}", self.mode_entry(name))
            }
        }
    }
}

fn entries(node: &YamlNode) -> Option<&[(YamlKey, YamlNode)]> {
    match &node.value {
        YamlValue::Map(entries) => Some(entries),
        _ => None,
    }
}

fn find_entry<'n>(
    entries: &'n [(YamlKey, YamlNode)],
    name: &str,
) -> Option<&'n (YamlKey, YamlNode)> {
    entries.iter().find(|(key, _)| key.text == name)
}

/// A text with the offsets of its lines.
struct SourceText<'s> {
    source: &'s str,
    line_starts: Vec<usize>,
    /// The line ending of the text.
    eol: &'static str,
}

impl<'s> SourceText<'s> {
    fn new(source: &'s str) -> Self {
        // A byte order mark at the start belongs to no line.
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
        Self { source, line_starts: starts, eol }
    }

    /// Returns the offset in bytes of a position.
    fn offset(&self, at: SourcePosition) -> Option<usize> {
        let start = *self.line_starts.get((at.line as usize).checked_sub(1)?)?;
        let letters = (at.column as usize).checked_sub(1)?;
        let line = self.source.get(start..)?;
        let skipped: usize = line.chars().take(letters).map(char::len_utf8).sum();
        Some(start + skipped)
    }

    /// Returns the text before a position in its line, if it contains only spaces.
    fn indent_before(&self, at: SourcePosition) -> Option<String> {
        let offset = self.offset(at)?;
        let before = self.source.get(self.line_start(offset)..offset)?;
        before.chars().all(|c| c == ' ').then(|| before.to_owned())
    }

    fn line_start(&self, offset: usize) -> usize {
        self.line_starts.iter().rev().find(|start| **start <= offset).copied().unwrap_or(0)
    }

    /// Returns the end of the line that contains an offset, without the line ending.
    fn line_end(&self, offset: usize) -> usize {
        let rest = self.source.get(offset..).unwrap_or_default();
        offset + rest.find(['\r', '\n']).unwrap_or(rest.len())
    }

    /// Returns the end of the last line before an offset that is neither empty nor a comment.
    fn last_content_before(&self, offset: usize) -> Option<usize> {
        let starts = self.line_starts.iter().rev().filter(|start| **start < offset);
        let mut ends = starts.map(|start| (*start, self.line_end(*start)));
        let has_content = |(start, end): &(usize, usize)| {
            let line = self.source.get(*start..*end).unwrap_or_default().trim_start();
            !line.is_empty() && !line.starts_with('#') && line.trim_end() != "..."
        };
        ends.find(has_content).map(|(_, end)| end)
    }

    /// Returns the text with a new line after the line that ends at `end`.
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

    /// The mode of a file, in every form that YAML allows.
    #[test]
    fn only_the_word_of_the_mode_is_replaced() {
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
    fn a_missing_mode_is_inserted_after_name_and_extends() {
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
    fn a_rule_gets_its_entry_in_modes() {
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
    fn a_text_that_already_has_the_mode_stays_unchanged() {
        for source in ["mode: enforce # x", "{mode: \"enforce\"}"] {
            assert_eq!(set(source, None), source);
        }
        assert_eq!(set("modes: {a: enforce}", Some("a")), "modes: {a: enforce}");
    }

    #[test]
    fn an_invalid_definition_is_refused() {
        for source in ["mode: [", "mode: observe\nmode: observe\n", "a: &b 1", "- a"] {
            assert!(set_mode(source, None, Mode::Enforce).is_err(), "{source}");
            assert!(set_mode(source, Some("a"), Mode::Enforce).is_err(), "{source}");
        }
    }

    #[test]
    fn presets_and_packs_keep_their_comments() {
        for built_in in PRESETS.iter().chain(PACKS) {
            for name in [None, Some("pack/git"), Some("own")] {
                let observed = set_mode(built_in.source, name, Mode::Observe).unwrap();
                let enforced = set_mode(&observed, name, Mode::Enforce).unwrap();
                assert_eq!(set_mode(&enforced, name, Mode::Observe).unwrap(), observed);
                let comments: String =
                    built_in.source.lines().filter(|l| l.contains('#')).collect();
                let now: String = enforced.lines().filter(|l| l.contains('#')).collect();
                assert_eq!(now, comments, "{}", built_in.name);
            }
        }
    }
}
