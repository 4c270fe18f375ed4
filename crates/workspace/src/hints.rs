//! Finds out where to go from an empty answer, with bounded work.
//!
//! Every hint was looked up: a place that is named has what was asked for. The
//! walks for that go by one thread, in order, so that the same tree gives the same hints.

mod names;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use grep_regex::RegexMatcher;
use rustix::fs::FileType;
use serde_json::json;

use crate::find::Finder;
use crate::glob::{Case, Filter, stem};
use crate::guidance::{Guidance, NAMED_MAX, listed};
use crate::jail::Inside;
use crate::search::{Looker, compile, escape};
use crate::time::Deadline;
use crate::tools::Workspace;
use crate::walk::{Scope, Visitor, Walk};
pub(crate) use names::{for_missing, like};

/// How many skipped places are remembered, and how many of them are looked into.
const SKIPPED_MAX: usize = 32;

/// The largest file that is looked into for a hint.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// How long is looked for one hint.
const HINT_MS: u64 = 2000;

/// How much is read for all hints of one answer.
const BYTES_MAX: u64 = 64 << 20;

/// What a walk passed by, the first by path.
#[derive(Default)]
pub(crate) struct Skipped(BTreeMap<PathBuf, bool>);

impl Skipped {
    pub(crate) fn keep(&mut self, path: &Path, kind: FileType) {
        if path.file_name() == Some(OsStr::new(".git")) {
            return;
        }
        self.0.insert(path.to_owned(), kind == FileType::Directory);
        if self.0.len() > SKIPPED_MAX {
            self.0.pop_last();
        }
    }

    pub(crate) fn join(&mut self, other: Skipped) {
        self.0.extend(other.0);
        while self.0.len() > SKIPPED_MAX {
            self.0.pop_last();
        }
    }
}

/// What a search without a result looked for.
pub(crate) struct Searched<'s> {
    pub(crate) pattern: &'s str,
    pub(crate) glob: Option<&'s str>,
    pub(crate) path: &'s Inside,
    /// Where that really is.
    pub(crate) start: &'s Path,
}

/// What to try after a search that found nothing.
pub(crate) fn for_search(
    workspace: &Workspace,
    asked: &Searched<'_>,
    looked: u64,
    skipped: &Skipped,
) -> Guidance {
    let mut guidance = Guidance::default();
    let mut room = BYTES_MAX;
    let filter = asked.glob.and_then(|glob| Filter::new(glob, Case::Sensitive).ok());
    let filter = filter.as_ref();
    let args = |pattern: &str, path: Option<&str>, glob: Option<&str>| {
        let mut args = json!({ "pattern": pattern });
        if let Some(fields) = args.as_object_mut() {
            path.map(|path| fields.insert("path".to_owned(), json!(path)));
            glob.map(|glob| fields.insert("glob".to_owned(), json!(glob)));
        }
        args
    };
    let within = (!asked.path.is_root()).then_some(asked.path.as_str());
    if looked == 0 {
        guidance.say("No file was searched: none is there that fits the path and the glob.");
    }
    if asked.pattern.chars().any(char::is_alphabetic)
        && let Ok(matcher) = compile(asked.pattern, Case::Insensitive)
    {
        guidance.other_case =
            probe(workspace, &matcher, filter, (asked.start, Scope::Usual), &mut room);
        if !guidance.other_case.is_empty() {
            let at = listed(&guidance.other_case);
            guidance.say(&format!("In another case it is at {at}."));
            guidance.propose("search", args(&format!("(?i){}", asked.pattern), within, asked.glob));
        }
    }
    let escaped = escape(asked.pattern);
    if escaped != asked.pattern
        && let Ok(matcher) = compile(&escaped, Case::Sensitive)
    {
        guidance.literal =
            probe(workspace, &matcher, filter, (asked.start, Scope::Usual), &mut room);
        if !guidance.literal.is_empty() {
            let at = listed(&guidance.literal);
            guidance.say(&format!("As plain text it is at {at}; escape it."));
            guidance.propose("search", args(&escaped, within, asked.glob));
        }
    }
    let Ok(matcher) = compile(asked.pattern, Case::Sensitive) else { return guidance };
    if filter.is_some() || within.is_some() {
        guidance.elsewhere =
            probe(workspace, &matcher, None, (Path::new(""), Scope::Usual), &mut room);
        if guidance.elsewhere.is_empty() {
            guidance.say("It is not elsewhere either, as far as that was looked at.");
        } else {
            let at = listed(&guidance.elsewhere);
            let without = match (asked.glob, within) {
                (Some(glob), None) => format!("Without the glob `{glob}`"),
                (None, Some(path)) => format!("Outside of `{path}`"),
                _ => "Without the path and the glob".to_owned(),
            };
            guidance.say(&format!("{without} it is at {at}."));
            guidance.propose("search", args(asked.pattern, None, None));
        }
    }
    for (path, is_dir) in &skipped.0 {
        if guidance.ignored.len() >= NAMED_MAX || room == 0 {
            break;
        }
        let found = if *is_dir {
            probe(workspace, &matcher, filter, (path, Scope::Everything), &mut room)
        } else {
            look_into(workspace, &matcher, filter, path)
        };
        if !found.is_empty() {
            guidance.ignored.push(path.to_string_lossy().into_owned());
        }
    }
    say_ignored(&mut guidance);
    if let Some(first) = guidance.ignored.first() {
        let args = args(asked.pattern, Some(first), asked.glob);
        guidance.propose("search", args);
    }
    guidance.near = names::files_like(workspace, asked.pattern);
    if !guidance.near.is_empty() {
        let near = listed(&guidance.near);
        guidance.say(&format!("Files of such a name: {near}."));
        let first = guidance.near.first().cloned().unwrap_or_default();
        guidance.propose("read_file", json!({ "path": first }));
    }
    broaden(&mut guidance, within);
    guidance.finish()
}

/// What to try after a glob that no file matches.
pub(crate) fn for_glob(
    workspace: &Workspace,
    glob: &str,
    start: &Path,
    skipped: &Skipped,
) -> Guidance {
    let mut guidance = Guidance::default();
    if let Ok(filter) = Filter::new(glob, Case::Insensitive) {
        guidance.other_case = find(workspace, &filter, start, start, Scope::Usual);
    }
    if let Some(first) = guidance.other_case.first().cloned() {
        guidance.say(&format!("In another case: {}.", listed(&guidance.other_case)));
        guidance.propose("read_file", json!({ "path": first }));
    }
    let Ok(filter) = Filter::new(glob, Case::Sensitive) else { return guidance };
    if !start.as_os_str().is_empty() {
        guidance.elsewhere = find(workspace, &filter, Path::new(""), Path::new(""), Scope::Usual);
        if !guidance.elsewhere.is_empty() {
            guidance.say(&format!("Outside of the path: {}.", listed(&guidance.elsewhere)));
            guidance.propose("find_files", json!({ "glob": glob }));
        }
    }
    for (path, is_dir) in &skipped.0 {
        if guidance.ignored.len() >= NAMED_MAX {
            break;
        }
        let fits = if *is_dir {
            !find(workspace, &filter, start, path, Scope::Everything).is_empty()
        } else {
            filter.wants(path.strip_prefix(start).unwrap_or(path))
        };
        if fits {
            guidance.ignored.push(path.to_string_lossy().into_owned());
        }
    }
    say_ignored(&mut guidance);
    if let Some(first) = guidance.ignored.first() {
        let args = json!({ "path": first });
        guidance.propose("list_dir", args);
    }
    if let Some(stem) = stem(glob) {
        guidance.near = names::files_like(workspace, stem);
        if let Some(first) = guidance.near.first().cloned() {
            guidance.say(&format!("Similar names: {}.", listed(&guidance.near)));
            guidance.propose("read_file", json!({ "path": first }));
        }
    }
    broaden(&mut guidance, (!start.as_os_str().is_empty()).then_some(&*start.to_string_lossy()));
    guidance.finish()
}

fn say_ignored(guidance: &mut Guidance) {
    if !guidance.ignored.is_empty() {
        let places = listed(&guidance.ignored);
        guidance.say(&format!("It is in {places}, hidden or ignored by git, and was skipped."));
    }
}

/// The last resort: a look around.
fn broaden(guidance: &mut Guidance, within: Option<&str>) {
    if guidance.next.is_none() {
        guidance.say("Try a shorter or more general name, or look around.");
        guidance.propose("list_dir", json!({ "path": within.unwrap_or(".") }));
    }
}

/// The first places that match, as `path:line`. What is read for it is taken from `room`.
fn probe(
    workspace: &Workspace,
    matcher: &RegexMatcher,
    filter: Option<&Filter>,
    (start, scope): (&Path, Scope),
    room: &mut u64,
) -> Vec<String> {
    let looker =
        Looker::new(matcher.clone(), filter, start, &workspace.limits, hint_time(workspace));
    let looker = looker.first(NAMED_MAX as u64, FILE_BYTES_MAX, *room);
    let Some(looker) = walk(workspace, scope, start, looker) else { return Vec::new() };
    *room = looker.bytes_left;
    places(&looker)
}

fn look_into(
    workspace: &Workspace,
    matcher: &RegexMatcher,
    filter: Option<&Filter>,
    path: &Path,
) -> Vec<String> {
    if filter.is_some_and(|filter| !filter.wants(path)) {
        return Vec::new();
    }
    let Some(text) = path.to_str() else { return Vec::new() };
    let opened = workspace.jail.locate(text).and_then(|path| workspace.jail.open_file(&path));
    let mut looker =
        Looker::new(matcher.clone(), None, path, &workspace.limits, hint_time(workspace));
    let small = |look: &rustix::fs::Stat| u64::try_from(look.st_size).unwrap_or(u64::MAX);
    if let Ok((file, look)) = opened
        && small(&look) <= FILE_BYTES_MAX
    {
        looker.look(&file, path);
    }
    places(&looker)
}

fn places(looker: &Looker<'_>) -> Vec<String> {
    let place = |(path, hits): (&PathBuf, &Vec<_>)| {
        let line = hits.first().map_or(0, |hit: &crate::search::Hit| hit.line);
        format!("{}:{line}", path.to_string_lossy())
    };
    looker.kept.iter().map(place).take(NAMED_MAX).collect()
}

/// The first files that a filter wants, seen from `base`.
fn find(
    workspace: &Workspace,
    filter: &Filter,
    base: &Path,
    start: &Path,
    scope: Scope,
) -> Vec<String> {
    let finder = Finder::first(filter, base, NAMED_MAX);
    let finder = walk(workspace, scope, start, finder);
    let paths = finder.map_or_else(Default::default, |finder| finder.paths);
    paths.iter().map(|path| path.to_string_lossy().into_owned()).collect()
}

fn hint_time(workspace: &Workspace) -> Deadline {
    Deadline::after_ms(workspace.limits.search_ms_max.min(HINT_MS))
}

/// A short walk, in order.
fn walk<V: Visitor>(workspace: &Workspace, scope: Scope, start: &Path, visitor: V) -> Option<V> {
    let entries_max = workspace.limits.hint_entries_max;
    let deadline = hint_time(workspace);
    let walk = Walk { jail: &workspace.jail, scope, threads: 1, entries_max, deadline };
    walk.run(start, vec![visitor]).0.pop()
}
