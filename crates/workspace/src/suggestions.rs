//! Finds suggestions after an empty answer, with a bounded amount of work.
//!
//! Every suggestion is verified: a path that is listed really contains the match. One thread walks
//! in sorted order, so that the same tree always gives the same suggestions.

mod names;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use grep_regex::RegexMatcher;
use rustix::fs::FileType;
use serde_json::json;

use crate::find::FileFinder;
use crate::glob::{CaseSensitivity, GlobFilter, literal_name_part};
use crate::guidance::{Guidance, NAMED_MAX, join_names};
use crate::jail::WorkspacePath;
use crate::search::{FileSearcher, compile, escape};
use crate::time::SearchDeadline;
use crate::tools::Workspace;
use crate::walk::{TreeWalk, WalkScope, WalkVisitor};
pub(crate) use names::{similar_names, suggest_for_missing};

/// How many skipped paths are remembered and searched for suggestions.
const SKIPPED_MAX: usize = 32;

/// The largest file that is searched for suggestions.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The time limit of one search for a suggestion.
const HINT_MS_MAX: u64 = 2000;

/// How many bytes all searches for one answer may read together.
const HINT_BYTES_MAX: u64 = 64 << 20;

/// The entries that a walk skipped, the first ones by path. The value tells whether it is a
/// directory.
#[derive(Default)]
pub(crate) struct SkippedEntries(BTreeMap<PathBuf, bool>);

impl SkippedEntries {
    pub(crate) fn insert(&mut self, path: &Path, kind: FileType) {
        if path.file_name() == Some(OsStr::new(".git")) {
            return;
        }
        self.0.insert(path.to_owned(), kind == FileType::Directory);
        if self.0.len() > SKIPPED_MAX {
            self.0.pop_last();
        }
    }

    pub(crate) fn merge(&mut self, other: SkippedEntries) {
        self.0.extend(other.0);
        while self.0.len() > SKIPPED_MAX {
            self.0.pop_last();
        }
    }
}

/// The search that found nothing.
pub(crate) struct SearchRequest<'s> {
    pub(crate) pattern: &'s str,
    pub(crate) glob: Option<&'s str>,
    pub(crate) path: &'s WorkspacePath,
    /// The real path of `path`.
    pub(crate) start: &'s Path,
}

/// Suggestions after a search without matches.
pub(crate) fn suggest_after_search(
    workspace: &Workspace,
    request: &SearchRequest<'_>,
    files_searched: u64,
    skipped: &SkippedEntries,
) -> Guidance {
    let mut guidance = Guidance::default();
    let mut room = HINT_BYTES_MAX;
    let filter =
        request.glob.and_then(|glob| GlobFilter::new(glob, CaseSensitivity::Sensitive).ok());
    let filter = filter.as_ref();
    let args = |pattern: &str, path: Option<&str>, glob: Option<&str>| {
        let mut args = json!({ "pattern": pattern });
        if let Some(fields) = args.as_object_mut() {
            path.map(|path| fields.insert("path".to_owned(), json!(path)));
            glob.map(|glob| fields.insert("glob".to_owned(), json!(glob)));
        }
        args
    };
    let within = (!request.path.is_root()).then_some(request.path.as_str());
    if files_searched == 0 {
        guidance
            .add_sentence("No file was searched, because no file matches the path and the glob.");
    }
    if request.pattern.chars().any(char::is_alphabetic)
        && let Ok(matcher) = compile(request.pattern, CaseSensitivity::Insensitive)
    {
        guidance.other_case = find_matches(
            workspace,
            &matcher,
            filter,
            (request.start, WalkScope::Visible),
            &mut room,
        );
        if !guidance.other_case.is_empty() {
            let at = join_names(&guidance.other_case);
            guidance.add_sentence(&format!("With different letter case it matches at {at}."));
            guidance.suggest_call(
                "search",
                args(&format!("(?i){}", request.pattern), within, request.glob),
            );
        }
    }
    let escaped = escape(request.pattern);
    if escaped != request.pattern
        && let Ok(matcher) = compile(&escaped, CaseSensitivity::Sensitive)
    {
        guidance.literal = find_matches(
            workspace,
            &matcher,
            filter,
            (request.start, WalkScope::Visible),
            &mut room,
        );
        if !guidance.literal.is_empty() {
            let at = join_names(&guidance.literal);
            guidance
                .add_sentence(&format!("As plain text the pattern matches at {at}; escape it."));
            guidance.suggest_call("search", args(&escaped, within, request.glob));
        }
    }
    let Ok(matcher) = compile(request.pattern, CaseSensitivity::Sensitive) else { return guidance };
    if filter.is_some() || within.is_some() {
        guidance.elsewhere =
            find_matches(workspace, &matcher, None, (Path::new(""), WalkScope::Visible), &mut room);
        if guidance.elsewhere.is_empty() {
            guidance.add_sentence("No match was found elsewhere either, as far as was searched.");
        } else {
            let at = join_names(&guidance.elsewhere);
            let without = match (request.glob, within) {
                (Some(glob), None) => format!("Without the glob `{glob}`"),
                (None, Some(path)) => format!("Outside of `{path}`"),
                _ => "Without the path and the glob".to_owned(),
            };
            guidance.add_sentence(&format!("{without} it matches at {at}."));
            guidance.suggest_call("search", args(request.pattern, None, None));
        }
    }
    for (path, is_dir) in &skipped.0 {
        if guidance.ignored.len() >= NAMED_MAX || room == 0 {
            break;
        }
        let hits = if *is_dir {
            find_matches(workspace, &matcher, filter, (path, WalkScope::All), &mut room)
        } else {
            find_matches_in_file(workspace, &matcher, filter, path)
        };
        if !hits.is_empty() {
            guidance.ignored.push(path.to_string_lossy().into_owned());
        }
    }
    add_ignored_sentence(&mut guidance);
    if let Some(first) = guidance.ignored.first() {
        let args = args(request.pattern, Some(first), request.glob);
        guidance.suggest_call("search", args);
    }
    guidance.near = names::files_with_similar_names(workspace, request.pattern);
    if !guidance.near.is_empty() {
        let near = join_names(&guidance.near);
        guidance.add_sentence(&format!("Files with a similar name: {near}."));
        let first = guidance.near.first().cloned().unwrap_or_default();
        guidance.suggest_call("read_file", json!({ "path": first }));
    }
    suggest_listing(&mut guidance, within);
    guidance.finish_with_call()
}

/// Suggestions after a glob that matches no file.
pub(crate) fn suggest_after_glob(
    workspace: &Workspace,
    glob: &str,
    start: &Path,
    skipped: &SkippedEntries,
) -> Guidance {
    let mut guidance = Guidance::default();
    if let Ok(filter) = GlobFilter::new(glob, CaseSensitivity::Insensitive) {
        guidance.other_case = find_file_names(workspace, &filter, start, start, WalkScope::Visible);
    }
    if let Some(first) = guidance.other_case.first().cloned() {
        guidance.add_sentence(&format!(
            "With different letter case: {}.",
            join_names(&guidance.other_case)
        ));
        guidance.suggest_call("read_file", json!({ "path": first }));
    }
    let Ok(filter) = GlobFilter::new(glob, CaseSensitivity::Sensitive) else { return guidance };
    if !start.as_os_str().is_empty() {
        guidance.elsewhere =
            find_file_names(workspace, &filter, Path::new(""), Path::new(""), WalkScope::Visible);
        if !guidance.elsewhere.is_empty() {
            guidance.add_sentence(&format!(
                "Outside of the path: {}.",
                join_names(&guidance.elsewhere)
            ));
            guidance.suggest_call("find_files", json!({ "glob": glob }));
        }
    }
    for (path, is_dir) in &skipped.0 {
        if guidance.ignored.len() >= NAMED_MAX {
            break;
        }
        let fits = if *is_dir {
            !find_file_names(workspace, &filter, start, path, WalkScope::All).is_empty()
        } else {
            filter.matches_path(path.strip_prefix(start).unwrap_or(path))
        };
        if fits {
            guidance.ignored.push(path.to_string_lossy().into_owned());
        }
    }
    add_ignored_sentence(&mut guidance);
    if let Some(first) = guidance.ignored.first() {
        let args = json!({ "path": first });
        guidance.suggest_call("list_dir", args);
    }
    if let Some(stem) = literal_name_part(glob) {
        guidance.near = names::files_with_similar_names(workspace, stem);
        if let Some(first) = guidance.near.first().cloned() {
            guidance.add_sentence(&format!("Similar names: {}.", join_names(&guidance.near)));
            guidance.suggest_call("read_file", json!({ "path": first }));
        }
    }
    suggest_listing(
        &mut guidance,
        (!start.as_os_str().is_empty()).then_some(&*start.to_string_lossy()),
    );
    guidance.finish_with_call()
}

fn add_ignored_sentence(guidance: &mut Guidance) {
    if !guidance.ignored.is_empty() {
        let places = join_names(&guidance.ignored);
        guidance.add_sentence(&format!(
            "Matches are in {places}, which was skipped because it is hidden or ignored by git."
        ));
    }
}

/// The last suggestion, if there is no better one: list a directory.
fn suggest_listing(guidance: &mut Guidance, within: Option<&str>) {
    if guidance.next.is_none() {
        guidance.add_sentence("Try a shorter or more general name, or list the directory.");
        guidance.suggest_call("list_dir", json!({ "path": within.unwrap_or(".") }));
    }
}

/// The first matches, as `path:line`. The bytes that the search reads are subtracted from `room`.
fn find_matches(
    workspace: &Workspace,
    matcher: &RegexMatcher,
    filter: Option<&GlobFilter>,
    (start, scope): (&Path, WalkScope),
    room: &mut u64,
) -> Vec<String> {
    let looker = FileSearcher::new(
        matcher.clone(),
        filter,
        start,
        &workspace.limits,
        hint_deadline(workspace),
    );
    let looker = looker.stopping_early(NAMED_MAX as u64, FILE_BYTES_MAX, *room);
    let Some(looker) = walk_for_hint(workspace, scope, start, looker) else { return Vec::new() };
    *room = looker.bytes_left;
    match_locations(&looker)
}

fn find_matches_in_file(
    workspace: &Workspace,
    matcher: &RegexMatcher,
    filter: Option<&GlobFilter>,
    path: &Path,
) -> Vec<String> {
    if filter.is_some_and(|filter| !filter.matches_path(path)) {
        return Vec::new();
    }
    let Some(text) = path.to_str() else { return Vec::new() };
    let opened =
        workspace.jail.to_workspace_path(text).and_then(|path| workspace.jail.open_file(&path));
    let mut looker =
        FileSearcher::new(matcher.clone(), None, path, &workspace.limits, hint_deadline(workspace));
    let small = |stat: &rustix::fs::Stat| u64::try_from(stat.st_size).unwrap_or(u64::MAX);
    if let Ok((file, stat)) = opened
        && small(&stat) <= FILE_BYTES_MAX
    {
        looker.search_file(&file, path);
    }
    match_locations(&looker)
}

fn match_locations(looker: &FileSearcher<'_>) -> Vec<String> {
    let place = |(path, hits): (&PathBuf, &Vec<_>)| {
        let line = hits.first().map_or(0, |hit: &crate::search::SearchHit| hit.line);
        format!("{}:{line}", path.to_string_lossy())
    };
    looker.hits_by_path.iter().map(place).take(NAMED_MAX).collect()
}

/// The first files that match a filter. Paths are matched relative to `base`.
fn find_file_names(
    workspace: &Workspace,
    filter: &GlobFilter,
    base: &Path,
    start: &Path,
    scope: WalkScope,
) -> Vec<String> {
    let finder = FileFinder::stopping_after_max(filter, base, NAMED_MAX);
    let finder = walk_for_hint(workspace, scope, start, finder);
    let paths = finder.map_or_else(Default::default, |finder| finder.paths);
    paths.iter().map(|path| path.to_string_lossy().into_owned()).collect()
}

fn hint_deadline(workspace: &Workspace) -> SearchDeadline {
    SearchDeadline::after_ms(workspace.limits.search_ms_max.min(HINT_MS_MAX))
}

/// A short walk with one thread.
fn walk_for_hint<V: WalkVisitor>(
    workspace: &Workspace,
    scope: WalkScope,
    start: &Path,
    visitor: V,
) -> Option<V> {
    let entries_max = workspace.limits.hint_entries_max;
    let deadline = hint_deadline(workspace);
    let walk = TreeWalk { jail: &workspace.jail, scope, threads: 1, entries_max, deadline };
    walk.run(start, vec![visitor]).0.pop()
}
