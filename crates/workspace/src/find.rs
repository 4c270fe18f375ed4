//! `find_files`: files by a glob, in the order of their paths.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::error::ToolError;
use crate::glob::{Case, Filter};
use crate::hints::{self, Skipped};
use crate::time::Deadline;
use crate::tools::{ToolOutput, ToolSpec, Workspace, schema};
use crate::walk::{Directory, Reached, Scope, Visitor, Walk};

pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: "find_files",
        description: "Finds files by a glob, such as `*.rs` (a name, at any depth) or \
                      `src/**/*.ts` (a path). Hidden files and what git ignores are left out, \
                      unless `path` names them.",
        input_schema: schema(
            &["glob"],
            &[
                ("glob", "string", "The glob; with `!` before it, what it does not match."),
                ("path", "string", "The directory to look in; the whole workspace if left out."),
            ],
        ),
        read_only: true,
    }
}

pub(crate) fn call(workspace: &Workspace, args: &Value) -> Result<ToolOutput, ToolError> {
    let mut args = Arguments::new(args)?;
    let glob = args.text("glob")?;
    let path = args.text_if("path")?.unwrap_or(".");
    args.finish()?;
    let filter = Filter::new(glob, Case::Sensitive)?;
    let inside = workspace.jail.locate(path)?;
    let opened = workspace.jail.open_dir(&inside);
    let opened = opened.map_err(|error| hints::for_missing(workspace, &inside, error))?;
    let start = workspace.jail.really(opened, &inside);
    let limits = &workspace.limits;
    let threads = limits.threads();
    let finder = || Finder::new(&filter, &start, limits.entries_max);
    let walk = Walk {
        jail: &workspace.jail,
        scope: Scope::Usual,
        threads,
        entries_max: limits.walk_entries_max,
        deadline: Deadline::after_ms(limits.search_ms_max),
    };
    let (finders, reached) = walk.run(&start, (0..threads).map(|_| finder()).collect());
    let mut found = finder();
    finders.into_iter().for_each(|finder| found.join(finder));
    let mut text = String::new();
    let mut files = Vec::new();
    for path in &found.paths {
        let path = path.to_string_lossy();
        if !files.is_empty() && text.len() + path.len() >= limits.output_bytes_max {
            break;
        }
        text.push_str(&path);
        text.push('\n');
        files.push(path);
    }
    let has_more = found.total > files.len() as u64;
    let structured = json!({
        "glob": glob,
        "path": inside.as_str(),
        "files_shown": files.len(),
        "total_files": found.total,
        "has_more": has_more,
        "complete": reached == Reached::End,
        "timed_out": reached == Reached::Time,
        "files": files,
    });
    let mut output = ToolOutput { text, structured };
    if has_more {
        let (shown, total) = (files.len(), found.total);
        output.note(&format!("{shown} of {total} files; narrow the glob, or give a path"));
    }
    if found.total == 0 && reached == Reached::Time {
        output.note("no files found so far");
    } else if found.total == 0 {
        let guidance = hints::for_glob(workspace, glob, &start, &found.skipped);
        output.guide("no files found.", &guidance);
    }
    match reached {
        Reached::End => {}
        Reached::Bound => {
            output.note("the tree is too large, only a part was looked at; give a path");
        }
        Reached::Time => output.note(&format!(
            "the time was up after {} ms, only a part was looked at; give a path",
            limits.search_ms_max
        )),
    }
    Ok(output)
}

/// Collects the first files by path, and counts the others.
pub(crate) struct Finder<'f> {
    filter: &'f Filter,
    start: &'f Path,
    max: usize,
    /// Where to stop looking.
    stop_after: u64,
    pub(crate) paths: BTreeSet<PathBuf>,
    pub(crate) total: u64,
    skipped: Skipped,
}

impl<'f> Finder<'f> {
    pub(crate) fn new(filter: &'f Filter, start: &'f Path, max: usize) -> Finder<'f> {
        let (paths, skipped) = (BTreeSet::new(), Skipped::default());
        Finder { filter, start, max, stop_after: u64::MAX, paths, total: 0, skipped }
    }

    /// One that stops when it has found enough.
    pub(crate) fn first(filter: &'f Filter, start: &'f Path, max: usize) -> Finder<'f> {
        Finder { stop_after: max as u64, ..Finder::new(filter, start, max) }
    }

    fn join(&mut self, other: Finder<'_>) {
        self.total += other.total;
        self.skipped.join(other.skipped);
        other.paths.into_iter().for_each(|path| self.keep(path));
    }

    fn keep(&mut self, path: PathBuf) {
        if self.paths.len() >= self.max && self.paths.last().is_some_and(|last| *last < path) {
            return;
        }
        self.paths.insert(path);
        if self.paths.len() > self.max {
            self.paths.pop_last();
        }
    }
}

impl Visitor for Finder<'_> {
    fn file(&mut self, directory: &Directory, name: &OsStr) -> bool {
        let path = directory.path.join(name);
        if self.filter.wants(path.strip_prefix(self.start).unwrap_or(&path)) {
            self.total += 1;
            self.keep(path);
        }
        self.total < self.stop_after
    }

    fn skipped(&mut self, path: &Path, kind: FileType) {
        self.skipped.keep(path, kind);
    }
}
