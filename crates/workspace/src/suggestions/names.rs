//! Finds existing names that are similar to a missing one.

use std::ffi::OsStr;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use jackline_engine::nearest_name;
use serde_json::json;

use super::walk_for_hint;
use crate::error::{ToolError, ToolErrorCode};
use crate::guidance::{Guidance, NAMED_MAX, join_names};
use crate::jail::WorkspacePath;
use crate::list::similar_names_in;
use crate::tools::Workspace;
use crate::walk::{WalkDirectory, WalkScope, WalkVisitor};

/// The most similar of the given names, and those that contain `name`.
pub(crate) fn similar_names<'n>(
    name: &str,
    names: impl Iterator<Item = &'n str> + Clone,
) -> Vec<String> {
    let mut near: Vec<String> = Vec::new();
    near.extend(nearest_name(name, names.clone()).map(ToOwned::to_owned));
    let stem = |name: &str| {
        let bare = name
            .rsplit_once('.')
            .map_or(name, |(bare, _)| if bare.is_empty() { name } else { bare });
        bare.to_lowercase()
    };
    let wanted = stem(name);
    if wanted.chars().count() >= 3 {
        for other in names {
            if near.len() >= NAMED_MAX {
                break;
            }
            let lower = other.to_lowercase();
            if (lower.contains(&wanted) || stem(other) == wanted)
                && !near.iter().any(|near| near == other)
            {
                near.push(other.to_owned());
            }
        }
    }
    near
}

/// Adds suggestions to the error about a missing path.
pub(crate) fn suggest_for_missing(
    workspace: &Workspace,
    path: &WorkspacePath,
    error: ToolError,
) -> ToolError {
    if error.code == ToolErrorCode::NotDirectory {
        return error.with_advice("If it is a file, read it with `read_file`.");
    }
    if error.code != ToolErrorCode::NotFound {
        return error;
    }
    let mut guidance = Guidance::default();
    let (mut parent, name) = path.split();
    let mut missing = name.to_owned();
    // Go up to the first directory that exists; the name that is missing there is the wrong one.
    let opened = loop {
        match workspace.jail.open_dir(&parent) {
            Ok(opened) => break Some(opened),
            Err(_) if parent.is_root() => break None,
            Err(_) => {
                let upper = parent.split();
                upper.1.clone_into(&mut missing);
                let upper = upper.0;
                parent = upper;
            }
        }
    };
    let within = |name: &String| {
        if parent.is_root() { name.clone() } else { format!("{}/{name}", parent.as_str()) }
    };
    if let Some(opened) = opened {
        let near = similar_names_in(opened.as_fd(), &missing, workspace.limits.hint_entries_max);
        guidance.near = near.iter().map(within).collect();
    }
    let same = SameNameFinder { name: name.to_lowercase(), found: Vec::new() };
    let same = walk_for_hint(workspace, WalkScope::Visible, Path::new(""), same);
    let same = same.map_or_else(Vec::new, |same| same.found);
    guidance.elsewhere = same
        .iter()
        .map(|path| path.to_string_lossy().into_owned())
        .filter(|path| !guidance.near.contains(path))
        .collect();
    if !guidance.near.is_empty() {
        guidance.add_sentence(&format!("Did you mean {}?", join_names(&guidance.near)));
    }
    if !guidance.elsewhere.is_empty() {
        guidance
            .add_sentence(&format!("Files with this name: {}.", join_names(&guidance.elsewhere)));
    }
    guidance.suggest_call("list_dir", json!({ "path": parent.as_str() }));
    error.with_guidance(guidance.finish_with_call())
}

/// Paths of files anywhere in the workspace with a similar name.
pub(super) fn files_with_similar_names(workspace: &Workspace, name: &str) -> Vec<String> {
    let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.');
    if !name.chars().all(plain) || name.chars().count() < 3 {
        return Vec::new();
    }
    let all = walk_for_hint(
        workspace,
        WalkScope::Visible,
        Path::new(""),
        NameCollector { names: Vec::new() },
    );
    let all = all.map_or_else(Vec::new, |all| all.names);
    let names = || all.iter().map(|(name, _)| name.as_str());
    let bare = || {
        all.iter().map(|(name, _)| name.rsplit_once('.').map_or(name.as_str(), |(bare, _)| bare))
    };
    let mut near = similar_names(name, names());
    // `readme` is similar to `README.md` without its extension.
    near.extend(nearest_name(name, bare()).map(ToOwned::to_owned));
    let path_of = |near: &String| {
        let same = |(name, _): &&(String, PathBuf)| {
            name == near || name.rsplit_once('.').is_some_and(|(bare, _)| bare == near)
        };
        all.iter().find(same).map(|(_, path)| path.to_string_lossy().into_owned())
    };
    let mut paths: Vec<String> = Vec::new();
    for path in near.iter().filter_map(path_of) {
        if !paths.contains(&path) && paths.len() < NAMED_MAX {
            paths.push(path);
        }
    }
    paths
}

/// Finds files with a given name, ignoring letter case.
struct SameNameFinder {
    name: String,
    found: Vec<PathBuf>,
}

impl WalkVisitor for SameNameFinder {
    fn visit_file(&mut self, directory: &WalkDirectory, name: &OsStr) -> bool {
        if name.to_string_lossy().to_lowercase() == self.name {
            self.found.push(directory.path.join(name));
        }
        self.found.len() < NAMED_MAX
    }
}

/// Collects the file names that a short walk finds.
struct NameCollector {
    names: Vec<(String, PathBuf)>,
}

impl WalkVisitor for NameCollector {
    fn visit_file(&mut self, directory: &WalkDirectory, name: &OsStr) -> bool {
        self.names.push((name.to_string_lossy().into_owned(), directory.path.join(name)));
        true
    }
}
