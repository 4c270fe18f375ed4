//! Which paths are protected.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::super::path_patterns::{matches_pattern, matches_segment};
use crate::definition::Definition;
use crate::path::is_within;
use crate::session_location::SessionLocation;

/// The directory in a workspace for reports and control files.
pub(crate) const JACKLINE_DIRECTORY: &str = ".jackline/";

/// Protected in every directory. A slash at the end means a directory with all its contents.
const PROTECTED_ANYWHERE: [&str; 12] = [
    "jackline.yaml",
    JACKLINE_DIRECTORY,
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

/// Settings in a workspace to which the client writes the choices of its person, also while a call
/// waits. A change counts only if it removes the guard.
const CLIENT_WRITTEN_SETTINGS: [&str; 1] = [".claude/settings.local.json"];

/// The first segments of those patterns that do not start with a dot.
const UNDOTTED_FIRST_SEGMENTS: [&str; 2] = ["jackline.yaml", "opencode"];

/// The directory for definitions of an administrator.
const MANAGED_DIRECTORY: &str = "/etc/jackline";

/// The directory for definitions of a user, below the home directory.
const USER_DIRECTORY: &str = ".config/jackline";

/// Files that are compared at every gate, if they exist.
const COMPARED_FILES: [&str; 7] = [
    "jackline.yaml",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".codex/hooks.json",
    ".gemini/settings.json",
    ".qwen/settings.json",
    ".cursor/hooks.json",
];

/// Returns the files in a workspace that are compared at every gate, if they exist.
pub(crate) fn compared_files() -> impl Iterator<Item = &'static str> {
    COMPARED_FILES.into_iter()
}

/// How many files are compared at a gate.
const COMPARED_FILES_MAX: usize = 32;

/// Returns the patterns of files that are protected in every directory.
pub(super) fn anywhere_patterns() -> impl Iterator<Item = &'static str> {
    PROTECTED_ANYWHERE.into_iter().filter(|pattern| !pattern.ends_with('/'))
}

/// Texts by which a script would name a protected path.
const SCRIPT_NAMES: [&str; 9] = [
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

/// Returns the files that are compared at every gate.
pub(crate) fn watch_list(place: &SessionLocation, definition: &Definition) -> Vec<String> {
    let mut paths: Vec<String> =
        place.definition.iter().map(|path| place.resolve_path(path, ".")).collect();
    if place.workspace.is_some() {
        paths.extend(COMPARED_FILES.iter().map(ToString::to_string));
    }
    let plain =
        definition.protected.iter().filter(|path| !path.ends_with('/') && !path.contains('*'));
    paths.extend(plain.map(|path| place.resolve_path(path, ".")));
    paths.sort_unstable();
    paths.dedup();
    paths.truncate(COMPARED_FILES_MAX);
    paths
}

/// The paths that a session protects.
pub(crate) struct ProtectedPaths<'a> {
    pub(crate) place: &'a SessionLocation,
    pub(crate) definition: &'a Definition,
}

impl ProtectedPaths<'_> {
    /// Returns whether a canonical path is protected.
    pub(crate) fn contains(&self, path: &str) -> bool {
        let path = self.relative_to_workspace(path);
        is_protected_anywhere(path)
            || lies_within(path, MANAGED_DIRECTORY)
            || self.is_users(path)
            || self.homes().any(|home| self.is_in(path, home))
            || self
                .place
                .definition
                .iter()
                .any(|file| self.may_name(path, file) && self.is_file(path, file))
            || self.definition.protected.iter().any(|entry| self.is_in(path, entry))
    }

    /// Returns the directories with Jackline's own state.
    pub(super) fn homes(&self) -> impl Iterator<Item = &String> {
        self.place.state_home.iter().chain(&self.place.own)
    }

    /// Returns a path relative to the workspace, also if it spells the workspace with other capital
    /// letters.
    fn relative_to_workspace<'p>(&self, path: &'p str) -> &'p str {
        let root = self.place.workspace.as_deref().filter(|root| lies_within(path, root));
        root.and_then(|root| path.get(root.len() + 1..)).unwrap_or(path)
    }

    /// Returns whether a text with an expansion may become a protected path: the literal end of the
    /// text is the end of a protected path, or an expansion names one.
    pub(crate) fn may_be(&self, text: &str) -> bool {
        if is_protected_anywhere(text) {
            return true;
        }
        let literal_end = literal_end_of(text);
        let mut own = self.definition.protected.iter();
        let absolute = |entry: &str| self.place.absolute(&self.place.resolve_path(entry, "."));
        let matches_end = own.any(|entry| matches_end(literal_end, entry, &absolute(entry)));
        matches_end
            || self.names().any(|name| {
                let text = text.to_ascii_lowercase();
                let found = text.match_indices(&name.to_ascii_lowercase()).next();
                found.is_some_and(|(at, _)| text.get(..at).is_some_and(ends_in_expansion))
            })
    }

    /// Returns the protected path that a script names if it runs in `base`.
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
            let paths = script.split(|letter: char| !is_path_character(letter));
            let paths = paths.filter(|path| path.contains(['.', '/']));
            paths.map(|path| self.place.resolve_path(path, base)).find(|path| self.contains(path))
        })
    }

    /// Returns the texts by which a script would name a protected path.
    fn names(&self) -> impl Iterator<Item = &str> {
        let own = self.definition.protected.iter().map(|entry| entry.trim_end_matches('/'));
        let homes = self.homes().chain(&self.place.definition).map(String::as_str);
        SCRIPT_NAMES.into_iter().chain(homes).chain(own.filter(|entry| !entry.contains('*')))
    }

    fn is_users(&self, path: &str) -> bool {
        let home =
            || self.place.home.as_deref().map(|home| self.place.resolve_path(USER_DIRECTORY, home));
        path.starts_with('/') && home().is_some_and(|home| lies_within(path, &home))
    }

    /// Returns whether an entry can match a path at all. An absolute entry matches a workspace path
    /// only if it leads into the workspace. This check is a fast path, because every text of every
    /// call is tested.
    fn may_name(&self, path: &str, entry: &str) -> bool {
        if !entry.starts_with('/') || path.starts_with('/') {
            return true;
        }
        let Some(root) = self.place.workspace.as_deref() else { return false };
        let plain = root != "/" && !entry.contains("/.") && !entry.contains("//");
        !plain || lies_within(entry, root)
    }

    fn is_file(&self, path: &str, file: &str) -> bool {
        self.place.resolve_path(file, ".").eq_ignore_ascii_case(path)
    }

    /// Returns whether a path matches an entry or is below it.
    fn is_in(&self, path: &str, entry: &str) -> bool {
        if !self.may_name(path, entry) {
            return false;
        }
        let directory = entry.ends_with('/') || !entry.contains('*');
        let entry = self.place.resolve_path(entry, ".");
        if directory && !entry.contains('*') {
            return lies_within(path, &entry);
        }
        let mut segments = path.match_indices('/').map(|(at, _)| path.get(..at).unwrap_or(path));
        matches_pattern(path, &entry) || segments.any(|above| matches_pattern(above, &entry))
    }
}

/// Returns whether a character may be in an unquoted path.
fn is_path_character(letter: char) -> bool {
    letter.is_alphanumeric() || "._-+@~/".contains(letter)
}

/// Returns the segments of a text after the last expansion.
fn literal_end_of(text: &str) -> &str {
    let behind = text.rfind(['$', '`', ')', '}', '~', ':']);
    let rest = behind.map_or(text, |at| text.get(at..).unwrap_or_default());
    match (behind, rest.split_once('/')) {
        (None, _) => rest,
        (Some(_), Some((_, literal))) => literal,
        (Some(_), None) => "",
    }
}

/// Returns whether a text ends inside an expansion.
fn ends_in_expansion(text: &str) -> bool {
    let count = |mark: &str| text.matches(mark).count();
    count("$(") > count(")") || count("${") > count("}") || count("`") % 2 == 1
}

/// Returns whether a path with only its end known may be an entry, as an absolute path, or may be
/// below an entry.
fn matches_end(tail: &str, entry: &str, absolute: &str) -> bool {
    let segments = |path| str::split(path, '/').filter(|one| !matches!(*one, "" | "."));
    let tail: Vec<&str> = segments(tail).collect();
    let tail = tail.rsplit(|segment| *segment == "..").next().unwrap_or_default();
    let absolute: Vec<&str> = segments(absolute).collect();
    let alike = |one: &[&str], two: &[&str]| {
        one.iter().zip(two).all(|(have, want)| matches_segment(have, want))
    };
    let shared = tail.len().min(absolute.len());
    let end = |path: &[&str]| path.len() - shared;
    let matches_end = match (tail.get(end(tail)..), absolute.get(end(&absolute)..)) {
        (Some(tail), Some(absolute)) => shared > 0 && alike(tail, absolute),
        _ => false,
    };
    let entry: Vec<&str> = segments(entry.strip_suffix('/').unwrap_or_default()).collect();
    matches_end
        || (!entry.is_empty() && tail.windows(entry.len()).any(|window| alike(window, &entry)))
}

/// Returns whether a path is the directory or below it. Letter case is ignored, because the file
/// system may ignore it; it is better to protect too much.
pub(crate) fn lies_within(path: &str, directory: &str) -> bool {
    let alike = || {
        let (head, rest) = path.split_at_checked(directory.len())?;
        let is_complete = rest.is_empty() || rest.starts_with('/');
        Some(is_complete && head.eq_ignore_ascii_case(directory))
    };
    is_within(path, directory) || alike() == Some(true)
}

/// Returns whether a path is protected by its name, in any directory.
pub(crate) fn is_protected_anywhere(path: &str) -> bool {
    // Fast path: few paths have a segment that starts like a pattern.
    let begins = |segment: &str| {
        segment.starts_with('.')
            || UNDOTTED_FIRST_SEGMENTS.iter().any(|name| segment.eq_ignore_ascii_case(name))
    };
    if !path.split('/').any(begins) {
        return false;
    }
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    PROTECTED_ANYWHERE.iter().any(|pattern| matches_segments(&segments, pattern))
}

/// Returns whether a path is a file by which an agent client runs hooks.
pub(super) fn is_client_settings(path: &str) -> bool {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let is_ours = |pattern: &&&str| **pattern != "jackline.yaml" && **pattern != JACKLINE_DIRECTORY;
    is_protected_anywhere(path)
        && PROTECTED_ANYWHERE
            .iter()
            .filter(is_ours)
            .any(|pattern| matches_segments(&segments, pattern))
}

/// Returns whether the client itself may write a path while a call waits.
pub(super) fn is_client_written(path: &str) -> bool {
    CLIENT_WRITTEN_SETTINGS.contains(&path)
}

/// Returns whether a path ends with the segments of a pattern or, for a directory pattern, contains
/// them.
fn matches_segments(segments: &[&str], pattern: &str) -> bool {
    let (pattern, directory) = match pattern.strip_suffix('/') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let length = pattern.split('/').count();
    let matches = |window: &[&str]| {
        window.iter().zip(pattern.split('/')).all(|(have, want)| matches_segment(have, want))
    };
    if directory {
        segments.windows(length).any(matches)
    } else {
        segments.windows(length).next_back().is_some_and(matches)
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use super::*;

    #[test]
    fn every_anywhere_pattern_starts_with_a_checked_segment() {
        for pattern in PROTECTED_ANYWHERE {
            let first = pattern.split('/').next().unwrap_or_default();
            assert!(
                first.starts_with('.') || UNDOTTED_FIRST_SEGMENTS.contains(&first),
                "{pattern}"
            );
            let path = pattern.trim_end_matches('/').replace('*', ".local").to_uppercase();
            assert!(
                is_protected_anywhere(&path) && is_protected_anywhere(&alloc::format!("/x/{path}")),
                "{path}"
            );
        }
    }

    fn place() -> SessionLocation {
        SessionLocation {
            workspace: Some("/w".into()),
            home: Some("/home/u".into()),
            state_home: Some("/home/u/.local/state/jackline".into()),
            own: Vec::from(["/run/user/7/jackline".into()]),
            links: BTreeMap::new(),
            definition: Vec::from(["/w/team/base.yaml".into()]),
        }
    }

    #[test]
    fn own_files_are_protected_in_every_directory() {
        let place = place();
        let definition = Definition {
            protected: ["secrets/", "*.lock", "/srv/keys"].map(String::from).to_vec(),
            ..Definition::default()
        };
        let guarded = ProtectedPaths { place: &place, definition: &definition };
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
    fn the_fast_path_never_skips_a_matching_entry() {
        let definition = Definition::default();
        let entries = ["/w", "/w/", "/W/a", "/w/a", "/w2/a", "//w/a", "/x/../w/a", "/./w/a", "/a"];
        let paths = ["a", "a/b", ".", "/a", "/w2/a/b", "w/a", "A"];
        for workspace in [None, Some("/"), Some("/w"), Some("/w/a")] {
            let place = SessionLocation {
                workspace: workspace.map(String::from),
                ..SessionLocation::default()
            };
            let guarded = ProtectedPaths { place: &place, definition: &definition };
            for (entry, path) in entries.iter().flat_map(|entry| paths.map(|path| (entry, path))) {
                let located = place.resolve_path(entry, ".");
                if lies_within(path, &located) {
                    assert!(guarded.may_name(path, entry), "{entry} {path} in {workspace:?}");
                }
            }
        }
    }

    #[test]
    fn letter_case_does_not_matter() {
        let place = place();
        let definition =
            Definition { protected: Vec::from(["Secrets/".into()]), ..Definition::default() };
        let guarded = ProtectedPaths { place: &place, definition: &definition };
        for path in ["JackLine.yaml", "/W/jackline.YAML", ".Claude/settings.json", "secrets/A"] {
            assert!(guarded.contains(path), "{path}");
        }
    }

    #[test]
    fn the_literal_end_of_an_expansion_can_name_a_protected_path() {
        let place = place();
        let definition = Definition {
            protected: ["config.yaml", "ops/key", "secrets/"].map(String::from).to_vec(),
            ..Definition::default()
        };
        let guarded = ProtectedPaths { place: &place, definition: &definition };
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
    fn names_in_a_script_are_relative_to_its_directory() {
        let place = place();
        let definition =
            Definition { protected: Vec::from(["ops/*.key".into()]), ..Definition::default() };
        let guarded = ProtectedPaths { place: &place, definition: &definition };
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
}
