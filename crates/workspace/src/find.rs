//! `find_files`: finds files by a glob, sorted by path.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use serde_json::{Value, json};

use crate::error::ToolError;
use crate::glob::{CaseSensitivity, GlobFilter};
use crate::suggestions::{self, SkippedEntries};
use crate::time::SearchDeadline;
use crate::tool_arguments::ToolArguments;
use crate::tools::{ToolAnswer, ToolSpec, Workspace, schema};
use crate::walk::{TreeWalk, WalkDirectory, WalkEnd, WalkScope, WalkVisitor};

pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: "find_files",
        description: "Finds files by a glob, such as `*.rs` (a name, at any depth) or \
                      `src/**/*.ts` (a path). Hidden files and files that git ignores are left \
                      out, unless `path` names them.",
        input_schema: schema(
            &["glob"],
            &[
                ("glob", "string", "The glob; `!` in front finds the files that do not match."),
                ("path", "string", "The directory to search; default: the whole workspace."),
            ],
        ),
        read_only: true,
    }
}

pub(crate) fn call(workspace: &Workspace, args: &Value) -> Result<ToolAnswer, ToolError> {
    let mut args = ToolArguments::new(args)?;
    let glob = args.text("glob")?;
    let path = args.optional_text("path")?.unwrap_or(".");
    args.reject_unknown()?;
    let filter = GlobFilter::new(glob, CaseSensitivity::Sensitive)?;
    let inside = workspace.jail.to_workspace_path(path)?;
    let opened = workspace.jail.open_dir(&inside);
    let opened =
        opened.map_err(|error| suggestions::suggest_for_missing(workspace, &inside, error))?;
    let start = workspace.jail.real_relative_path(opened, &inside);
    let limits = &workspace.limits;
    let threads = limits.threads();
    let finder = || FileFinder::new(&filter, &start, limits.entries_max);
    let walk = TreeWalk {
        jail: &workspace.jail,
        scope: WalkScope::Visible,
        threads,
        entries_max: limits.walk_entries_max,
        deadline: SearchDeadline::after_ms(limits.search_ms_max),
    };
    let (finders, reached) = walk.run(&start, (0..threads).map(|_| finder()).collect());
    let mut merged = finder();
    finders.into_iter().for_each(|finder| merged.merge(finder));
    let mut text = String::new();
    let mut files = Vec::new();
    for path in &merged.paths {
        let path = path.to_string_lossy();
        if !files.is_empty() && text.len() + path.len() >= limits.output_bytes_max {
            break;
        }
        text.push_str(&path);
        text.push('\n');
        files.push(path);
    }
    let has_more = merged.total > files.len() as u64;
    let structured = json!({
        "glob": glob,
        "path": inside.as_str(),
        "files_shown": files.len(),
        "total_files": merged.total,
        "has_more": has_more,
        "complete": reached == WalkEnd::Complete,
        "timed_out": reached == WalkEnd::TimedOut,
        "files": files,
    });
    let mut output = ToolAnswer { text, structured };
    if has_more {
        let (shown, total) = (files.len(), merged.total);
        output.add_note(&format!("{shown} of {total} files; use a narrower glob or a `path`"));
    }
    if merged.total == 0 && reached == WalkEnd::TimedOut {
        output.add_note("no files found so far");
    } else if merged.total == 0 {
        let guidance = suggestions::suggest_after_glob(workspace, glob, &start, &merged.skipped);
        output.add_guidance("no files found.", &guidance);
    }
    match reached {
        WalkEnd::Complete => {}
        WalkEnd::Stopped => {
            output.add_note("the tree is too large and was searched only in part; give a `path`");
        }
        WalkEnd::TimedOut => output.add_note(&format!(
            "the search stopped after {} ms and is incomplete; give a `path`",
            limits.search_ms_max
        )),
    }
    Ok(output)
}

/// Collects the first files by path, and counts all others.
pub(crate) struct FileFinder<'f> {
    filter: &'f GlobFilter,
    start: &'f Path,
    max: usize,
    /// How many matches end the search.
    stop_after: u64,
    pub(crate) paths: BTreeSet<PathBuf>,
    pub(crate) total: u64,
    skipped: SkippedEntries,
}

impl<'f> FileFinder<'f> {
    pub(crate) fn new(filter: &'f GlobFilter, start: &'f Path, max: usize) -> FileFinder<'f> {
        let (paths, skipped) = (BTreeSet::new(), SkippedEntries::default());
        FileFinder { filter, start, max, stop_after: u64::MAX, paths, total: 0, skipped }
    }

    /// A finder that stops after `max` matches.
    pub(crate) fn stopping_after_max(
        filter: &'f GlobFilter,
        start: &'f Path,
        max: usize,
    ) -> FileFinder<'f> {
        FileFinder { stop_after: max as u64, ..FileFinder::new(filter, start, max) }
    }

    fn merge(&mut self, other: FileFinder<'_>) {
        self.total += other.total;
        self.skipped.merge(other.skipped);
        other.paths.into_iter().for_each(|path| self.insert_path(path));
    }

    fn insert_path(&mut self, path: PathBuf) {
        if self.paths.len() >= self.max && self.paths.last().is_some_and(|last| *last < path) {
            return;
        }
        self.paths.insert(path);
        if self.paths.len() > self.max {
            self.paths.pop_last();
        }
    }
}

impl WalkVisitor for FileFinder<'_> {
    fn visit_file(&mut self, directory: &WalkDirectory, name: &OsStr) -> bool {
        let path = directory.path.join(name);
        if self.filter.matches_path(path.strip_prefix(self.start).unwrap_or(&path)) {
            self.total += 1;
            self.insert_path(path);
        }
        self.total < self.stop_after
    }

    fn visit_skipped(&mut self, path: &Path, kind: FileType) {
        self.skipped.insert(path, kind);
    }
}
