//! Which paths are protected.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::definition::Definition;
use crate::path::is_within;
use crate::place::Place;

/// The directory in a workspace that is for people.
pub(crate) const MARKERS: &str = ".jackline/";

/// Protected wherever they lie. A slash at the end stands for a directory with
/// everything in it.
const ANYWHERE: [&str; 12] = [
    "jackline.yaml",
    MARKERS,
    ".claude/settings*.json",
    ".claude/scheduled_tasks.json",
    ".codex/",
    ".gemini/settings.json",
    ".qwen/settings.json",
    ".github/hooks/",
    ".opencode/plugins/",
    ".opencode/plugin/",
    "opencode/plugins/",
    ".cursor/hooks.json",
];

/// What those begin with that begin with no dot.
const BEGIN: [&str; 2] = ["jackline.yaml", "opencode"];

/// Where an administrator keeps definitions.
const MANAGED: &str = "/etc/jackline";

/// Where a person keeps theirs, below their home.
const USER: &str = ".config/jackline";

/// Compared at every gate, where they are there. A client's own choices that it
/// writes down while a call waits for a person are not among them.
const COMPARED: [&str; 6] = [
    "jackline.yaml",
    ".claude/settings.json",
    ".codex/hooks.json",
    ".gemini/settings.json",
    ".qwen/settings.json",
    ".cursor/hooks.json",
];

/// How many files are compared at a gate.
const COMPARED_MAX: usize = 32;

/// How a script would have to name what is protected.
const NAMES: [&str; 9] = [
    "jackline.yaml",
    ".jackline",
    ".claude/settings",
    ".codex/",
    ".gemini/settings.json",
    ".qwen/settings.json",
    ".github/hooks",
    ".opencode/plugin",
    ".cursor/hooks.json",
];

/// The files that are compared at every gate.
pub(crate) fn watch_list(place: &Place, definition: &Definition) -> Vec<String> {
    let mut paths: Vec<String> =
        place.definition.iter().map(|path| place.locate(path, ".")).collect();
    if place.workspace.is_some() {
        paths.extend(COMPARED.iter().map(ToString::to_string));
    }
    let plain =
        definition.protected.iter().filter(|path| !path.ends_with('/') && !path.contains('*'));
    paths.extend(plain.map(|path| place.locate(path, ".")));
    paths.sort_unstable();
    paths.dedup();
    paths.truncate(COMPARED_MAX);
    paths
}

/// What a session protects.
pub(crate) struct Guarded<'a> {
    pub(crate) place: &'a Place,
    pub(crate) definition: &'a Definition,
}

impl Guarded<'_> {
    /// Whether a canonical path is protected.
    pub(crate) fn contains(&self, path: &str) -> bool {
        let path = self.inside(path);
        is_anywhere(path)
            || lies_within(path, MANAGED)
            || self.is_users(path)
            || self.homes().any(|home| self.is_in(path, home))
            || self
                .place
                .definition
                .iter()
                .any(|file| self.may_name(path, file) && self.is_file(path, file))
            || self.definition.protected.iter().any(|entry| self.is_in(path, entry))
    }

    /// Where the guard keeps what is its own.
    fn homes(&self) -> impl Iterator<Item = &String> {
        self.place.state_home.iter().chain(&self.place.own)
    }

    /// A path of the workspace that is written with other capitals.
    fn inside<'p>(&self, path: &'p str) -> &'p str {
        let root = self.place.workspace.as_deref().filter(|root| lies_within(path, root));
        root.and_then(|root| path.get(root.len() + 1..)).unwrap_or(path)
    }

    /// Whether a text that holds an expansion may become a protected path: what
    /// is known at its end is the end of one, or an expansion names one.
    pub(crate) fn may_be(&self, text: &str) -> bool {
        if is_anywhere(text) {
            return true;
        }
        let known = known_end(text);
        let mut own = self.definition.protected.iter();
        let absolute = |entry: &str| self.place.absolute(&self.place.locate(entry, "."));
        let ends = own.any(|entry| ends_alike(known, entry, &absolute(entry)));
        ends || self.names().any(|name| {
            let text = text.to_ascii_lowercase();
            let found = text.match_indices(&name.to_ascii_lowercase()).next();
            found.is_some_and(|(at, _)| text.get(..at).is_some_and(is_open))
        })
    }

    /// The protected path that a script names which works in `base`.
    pub(crate) fn named_in(&self, script: &str, base: &str) -> Option<String> {
        if script.trim().is_empty() {
            return None;
        }
        if self.contains(base) {
            return Some(String::from(base));
        }
        let lower = script.to_ascii_lowercase();
        let mut names = self.names().filter(|name| !name.is_empty());
        let named = names.find(|name| lower.contains(&name.to_ascii_lowercase()));
        named.map(String::from).or_else(|| {
            let paths = script.split(|letter: char| !is_of_a_path(letter));
            let paths = paths.filter(|path| path.contains(['.', '/']));
            paths.map(|path| self.place.locate(path, base)).find(|path| self.contains(path))
        })
    }

    /// How a script would name what is protected.
    fn names(&self) -> impl Iterator<Item = &str> {
        let own = self.definition.protected.iter().map(|entry| entry.trim_end_matches('/'));
        let homes = self.homes().chain(&self.place.definition).map(String::as_str);
        NAMES.into_iter().chain(homes).chain(own.filter(|entry| !entry.contains('*')))
    }

    fn is_users(&self, path: &str) -> bool {
        let home = || self.place.home.as_deref().map(|home| self.place.locate(USER, home));
        path.starts_with('/') && home().is_some_and(|home| lies_within(path, &home))
    }

    /// Whether an entry may be about a path at all: one that is given from the root of
    /// the machine is about the workspace only where it leads there. Most don't, and
    /// every text of every call is asked about.
    fn may_name(&self, path: &str, entry: &str) -> bool {
        if !entry.starts_with('/') || path.starts_with('/') {
            return true;
        }
        let Some(root) = self.place.workspace.as_deref() else { return false };
        let plain = root != "/" && !entry.contains("/.") && !entry.contains("//");
        !plain || lies_within(entry, root)
    }

    fn is_file(&self, path: &str, file: &str) -> bool {
        self.place.locate(file, ".").eq_ignore_ascii_case(path)
    }

    /// Whether a path is what an entry names, or lies in it.
    fn is_in(&self, path: &str, entry: &str) -> bool {
        if !self.may_name(path, entry) {
            return false;
        }
        let directory = entry.ends_with('/') || !entry.contains('*');
        let entry = self.place.locate(entry, ".");
        if directory && !entry.contains('*') {
            return lies_within(path, &entry);
        }
        let mut segments = path.match_indices('/').map(|(at, _)| path.get(..at).unwrap_or(path));
        matches_pattern(path, &entry) || segments.any(|above| matches_pattern(above, &entry))
    }
}

/// Whether a letter may stand in a path without quotes around it.
fn is_of_a_path(letter: char) -> bool {
    letter.is_alphanumeric() || "._-+@~/".contains(letter)
}

/// The segments of a text behind the last one with an expansion.
fn known_end(text: &str) -> &str {
    let behind = text.rfind(['$', '`', ')', '}', '~', ':']);
    let rest = behind.map_or(text, |at| text.get(at..).unwrap_or_default());
    match (behind, rest.split_once('/')) {
        (None, _) => rest,
        (Some(_), Some((_, known))) => known,
        (Some(_), None) => "",
    }
}

/// Whether a text breaks off inside an expansion.
fn is_open(text: &str) -> bool {
    let count = |mark: &str| text.matches(mark).count();
    count("$(") > count(")") || count("${") > count("}") || count("`") % 2 == 1
}

/// Whether a path of which only the end is known may be an entry, given from
/// the root of the machine, or lie in a directory that is one.
fn ends_alike(known: &str, entry: &str, absolute: &str) -> bool {
    let segments = |path| str::split(path, '/').filter(|one| !matches!(*one, "" | "."));
    let known: Vec<&str> = segments(known).collect();
    let known = known.rsplit(|segment| *segment == "..").next().unwrap_or_default();
    let absolute: Vec<&str> = segments(absolute).collect();
    let alike = |one: &[&str], two: &[&str]| {
        one.iter().zip(two).all(|(have, want)| matches_segment(have, want))
    };
    let shared = known.len().min(absolute.len());
    let end = |path: &[&str]| path.len() - shared;
    let ends = match (known.get(end(known)..), absolute.get(end(&absolute)..)) {
        (Some(known), Some(absolute)) => shared > 0 && alike(known, absolute),
        _ => false,
    };
    let entry: Vec<&str> = segments(entry.strip_suffix('/').unwrap_or_default()).collect();
    ends || (!entry.is_empty() && known.windows(entry.len()).any(|window| alike(window, &entry)))
}

/// Whether a path is a directory or lies below it, on a file system that may
/// not care for capitals: it is better to protect too much.
pub(crate) fn lies_within(path: &str, directory: &str) -> bool {
    let alike = || {
        let (head, rest) = path.split_at_checked(directory.len())?;
        let ends = rest.is_empty() || rest.starts_with('/');
        Some(ends && head.eq_ignore_ascii_case(directory))
    };
    is_within(path, directory) || alike() == Some(true)
}

/// Whether a path is protected by its name, wherever it lies.
pub(crate) fn is_anywhere(path: &str) -> bool {
    // Nearly no path has a segment with which one of them begins.
    let begins = |segment: &str| {
        segment.starts_with('.') || BEGIN.iter().any(|name| segment.eq_ignore_ascii_case(name))
    };
    if !path.split('/').any(begins) {
        return false;
    }
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    ANYWHERE.iter().any(|pattern| lies_in(&segments, pattern))
}

/// Whether the last segments of a path are those of a pattern, or, for a
/// directory, any segments in a row.
fn lies_in(segments: &[&str], pattern: &str) -> bool {
    let (pattern, directory) = match pattern.strip_suffix('/') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let wanted = pattern.split('/').count();
    let matches = |window: &[&str]| {
        window.iter().zip(pattern.split('/')).all(|(have, want)| matches_segment(have, want))
    };
    if directory {
        segments.windows(wanted).any(matches)
    } else {
        segments.windows(wanted).next_back().is_some_and(matches)
    }
}

/// Whether a path matches a pattern in which `**` stands for any depth.
pub(crate) fn matches_pattern(path: &str, pattern: &str) -> bool {
    let path: Vec<&str> = path.split('/').collect();
    let pattern: Vec<&str> = pattern.split('/').collect();
    let (mut at, mut want) = (0, 0);
    // Where to go on if the latest `**` has to take one segment more.
    let mut again: Option<(usize, usize)> = None;
    while at < path.len() {
        match pattern.get(want) {
            Some(&"**") => {
                again = Some((at, want));
                want += 1;
            }
            Some(segment) if path.get(at).is_some_and(|have| matches_segment(have, segment)) => {
                at += 1;
                want += 1;
            }
            _ => {
                let Some((from, star)) = again else { return false };
                again = Some((from + 1, star));
                (at, want) = (from + 1, star + 1);
            }
        }
    }
    pattern.get(want..).is_some_and(|rest| rest.iter().all(|segment| *segment == "**"))
}

/// Whether a name matches a pattern with `*`, `?` and sets; a set is taken to
/// match any letter, because it is better to protect too much.
fn matches_segment(name: &str, pattern: &str) -> bool {
    if !pattern.contains(['*', '?', '[']) {
        return name.eq_ignore_ascii_case(pattern);
    }
    let name: Vec<char> = name.chars().collect();
    let pattern = pieces(pattern);
    let (mut at, mut want) = (0, 0);
    let mut again: Option<(usize, usize)> = None;
    while at < name.len() {
        match pattern.get(want) {
            Some(Piece::Any) => {
                again = Some((at, want));
                want += 1;
            }
            Some(Piece::One) => {
                at += 1;
                want += 1;
            }
            Some(Piece::Letter(letter))
                if name.get(at).is_some_and(|have| have.eq_ignore_ascii_case(letter)) =>
            {
                at += 1;
                want += 1;
            }
            _ => {
                let Some((from, star)) = again else { return false };
                again = Some((from + 1, star));
                (at, want) = (from + 1, star + 1);
            }
        }
    }
    pattern.get(want..).is_some_and(|rest| rest.iter().all(|piece| matches!(piece, Piece::Any)))
}

enum Piece {
    Any,
    One,
    Letter(char),
}

fn pieces(pattern: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        pieces.push(match letter {
            '*' => Piece::Any,
            '?' => Piece::One,
            '[' if letters.as_str().get(1..).is_some_and(|rest| rest.contains(']')) => {
                // The first letter of a set may be the bracket that would end it.
                letters.next();
                let _ = letters.by_ref().find(|letter| *letter == ']');
                Piece::One
            }
            letter => Piece::Letter(letter),
        });
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_protected_anywhere_begins_as_is_looked_for() {
        for pattern in ANYWHERE {
            let first = pattern.split('/').next().unwrap_or_default();
            assert!(first.starts_with('.') || BEGIN.contains(&first), "{pattern}");
            let path = pattern.trim_end_matches('/').replace('*', ".local").to_uppercase();
            assert!(is_anywhere(&path) && is_anywhere(&alloc::format!("/x/{path}")), "{path}");
        }
    }

    fn place() -> Place {
        Place {
            workspace: Some("/w".into()),
            home: Some("/home/u".into()),
            state_home: Some("/home/u/.local/state/jackline".into()),
            own: Vec::from(["/run/user/7/jackline".into()]),
            definition: Vec::from(["/w/team/base.yaml".into()]),
        }
    }

    #[test]
    fn the_guards_own_files_are_protected_wherever_they_lie() {
        let place = place();
        let definition = Definition {
            protected: ["secrets/", "*.lock", "/srv/keys"].map(String::from).to_vec(),
            ..Definition::default()
        };
        let guarded = Guarded { place: &place, definition: &definition };
        for path in [
            "jackline.yaml",
            "sub/jackline.yaml",
            ".jackline/STOP",
            ".claude/settings.local.json",
            "/home/u/.claude/settings.json",
            ".codex/config.toml",
            "/home/u/.local/state/jackline/sessions/x/journal.jsonl",
            "/run/user/7/jackline/off-0",
            "/home/u/.config/jackline/jackline.yaml",
            "/etc/jackline/jackline.yaml",
            "team/base.yaml",
            "secrets/a/b",
            "Cargo.lock",
            "/srv/keys/id",
        ] {
            assert!(guarded.contains(path), "{path}");
        }
        for path in ["jackline.yml", "src/main.rs", ".claude/agents/x.md", "a/Cargo.lock", ".", "/"]
        {
            assert!(!guarded.contains(path), "{path}");
        }
    }

    #[test]
    fn what_may_not_be_about_a_path_is_not() {
        let definition = Definition::default();
        let entries = ["/w", "/w/", "/W/a", "/w/a", "/w2/a", "//w/a", "/x/../w/a", "/./w/a", "/a"];
        let paths = ["a", "a/b", ".", "/a", "/w2/a/b", "w/a", "A"];
        for workspace in [None, Some("/"), Some("/w"), Some("/w/a")] {
            let place = Place { workspace: workspace.map(String::from), ..Place::default() };
            let guarded = Guarded { place: &place, definition: &definition };
            for (entry, path) in entries.iter().flat_map(|entry| paths.map(|path| (entry, path))) {
                let located = place.locate(entry, ".");
                if lies_within(path, &located) {
                    assert!(guarded.may_name(path, entry), "{entry} {path} in {workspace:?}");
                }
            }
        }
    }

    #[test]
    fn capitals_make_no_other_file() {
        let place = place();
        let definition =
            Definition { protected: Vec::from(["Secrets/".into()]), ..Definition::default() };
        let guarded = Guarded { place: &place, definition: &definition };
        for path in ["JackLine.yaml", "/W/jackline.YAML", ".Claude/settings.json", "secrets/A"] {
            assert!(guarded.contains(path), "{path}");
        }
    }

    #[test]
    fn what_is_known_of_an_expansion_may_be_enough() {
        let place = place();
        let definition = Definition {
            protected: ["config.yaml", "ops/key", "secrets/"].map(String::from).to_vec(),
            ..Definition::default()
        };
        let guarded = Guarded { place: &place, definition: &definition };
        for text in [
            "$D/config.yaml",
            "config.yaml",
            "${D}/../config.yaml",
            "$D/w/config.yaml",
            "~+/config.yaml",
            ":/config.yaml",
            "$(echo config.yaml)",
            "`echo ./config.yaml`",
            "${x:-config.yaml}",
            "$D/key",
            "$D/secrets/a",
            "$D/jackline.yaml",
        ] {
            assert!(guarded.may_be(text), "{text}");
        }
        for text in ["$D", "$D/x", "$D/sub/config.yaml", "$D/config.yaml.bak", "$D/ops", "$x.yaml"]
        {
            assert!(!guarded.may_be(text), "{text}");
        }
    }

    #[test]
    fn a_script_names_files_from_where_it_works() {
        let place = place();
        let definition =
            Definition { protected: Vec::from(["ops/*.key".into()]), ..Definition::default() };
        let guarded = Guarded { place: &place, definition: &definition };
        for (script, base) in [
            ("open('JACKLINE.yaml')", "."),
            ("open('ops/a.key')", "."),
            ("open('a.key')", "ops"),
            ("open('../ops/a.key')", "src"),
            ("open('settings.json')", ".claude"),
            ("open(x)", ".codex"),
        ] {
            assert!(guarded.named_in(script, base).is_some(), "{script} in {base}");
        }
        for (script, base) in
            [("open('a.key')", "."), ("open('settings.json')", "."), ("", ".codex")]
        {
            assert_eq!(guarded.named_in(script, base), None, "{script} in {base}");
        }
    }

    #[test]
    fn patterns_match_as_a_shell_would() {
        for (path, pattern) in [
            ("jackline.yaml", "*.yaml"),
            ("jackline.yaml", "j?ckline.[xy]aml"),
            ("a/b/jackline.yaml", "**/jackline.yaml"),
            ("jackline.yaml", "**/jackline.yaml"),
            ("a/b/c", "a/**"),
            (".claude/settings.json", ".*/*"),
        ] {
            assert!(matches_pattern(path, pattern), "{path} {pattern}");
        }
        for (path, pattern) in [("a/b", "*"), ("jackline.yaml", "*.yml"), ("a", "a/**/b")] {
            assert!(!matches_pattern(path, pattern), "{path} {pattern}");
        }
    }
}
