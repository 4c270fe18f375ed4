//! Names that are close to one that is not there.

use std::ffi::OsStr;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use jackline_engine::nearest;
use serde_json::json;

use super::walk;
use crate::error::{Code, ToolError};
use crate::guidance::{Guidance, NAMED_MAX, listed};
use crate::jail::Inside;
use crate::list::names_like;
use crate::tools::Workspace;
use crate::walk::{Directory, Scope, Visitor};

/// The nearest of some names, and those that contain it.
pub(crate) fn like<'n>(name: &str, known: impl Iterator<Item = &'n str> + Clone) -> Vec<String> {
    let mut near: Vec<String> = Vec::new();
    near.extend(nearest(name, known.clone()).map(ToOwned::to_owned));
    let stem = |name: &str| {
        let bare = name
            .rsplit_once('.')
            .map_or(name, |(bare, _)| if bare.is_empty() { name } else { bare });
        bare.to_lowercase()
    };
    let wanted = stem(name);
    if wanted.chars().count() >= 3 {
        for other in known {
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

/// Adds to an error about a missing path what is there instead.
pub(crate) fn for_missing(workspace: &Workspace, path: &Inside, error: ToolError) -> ToolError {
    if error.code == Code::NotDirectory {
        return error.advice("It may be a file: `read_file` shows it.");
    }
    if error.code != Code::NotFound {
        return error;
    }
    let mut guidance = Guidance::default();
    let (mut parent, name) = path.split();
    let mut missing = name.to_owned();
    // Up to what does exist; the name that is missing there is the one that is wrong.
    let opened = loop {
        match workspace.jail.open_dir(&parent) {
            Ok(opened) => break Some(opened),
            Err(_) if parent.is_root() => break None,
            Err(_) => {
                let above = parent.split();
                above.1.clone_into(&mut missing);
                let above = above.0;
                parent = above;
            }
        }
    };
    let within = |name: &String| {
        if parent.is_root() { name.clone() } else { format!("{}/{name}", parent.as_str()) }
    };
    if let Some(opened) = opened {
        let near = names_like(opened.as_fd(), &missing, workspace.limits.hint_entries_max);
        guidance.near = near.iter().map(within).collect();
    }
    let same = Same { name: name.to_lowercase(), found: Vec::new() };
    let same = walk(workspace, Scope::Usual, Path::new(""), same);
    let same = same.map_or_else(Vec::new, |same| same.found);
    guidance.elsewhere = same
        .iter()
        .map(|path| path.to_string_lossy().into_owned())
        .filter(|path| !guidance.near.contains(path))
        .collect();
    if !guidance.near.is_empty() {
        guidance.say(&format!("Did you mean {}?", listed(&guidance.near)));
    }
    if !guidance.elsewhere.is_empty() {
        guidance.say(&format!("Files of this name: {}.", listed(&guidance.elsewhere)));
    }
    guidance.propose("list_dir", json!({ "path": parent.as_str() }));
    error.with(guidance.finish())
}

/// Files anywhere in the workspace whose names are like this.
pub(super) fn files_like(workspace: &Workspace, name: &str) -> Vec<String> {
    let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.');
    if !name.chars().all(plain) || name.chars().count() < 3 {
        return Vec::new();
    }
    let all = walk(workspace, Scope::Usual, Path::new(""), All { names: Vec::new() });
    let all = all.map_or_else(Vec::new, |all| all.names);
    let known = || all.iter().map(|(name, _)| name.as_str());
    let bare = || {
        all.iter().map(|(name, _)| name.rsplit_once('.').map_or(name.as_str(), |(bare, _)| bare))
    };
    let mut near = like(name, known());
    // `readme` is near to `README.md` without its ending.
    near.extend(nearest(name, bare()).map(ToOwned::to_owned));
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

/// Looks for files of a name, whatever its case.
struct Same {
    name: String,
    found: Vec<PathBuf>,
}

impl Visitor for Same {
    fn file(&mut self, directory: &Directory, name: &OsStr) -> bool {
        if name.to_string_lossy().to_lowercase() == self.name {
            self.found.push(directory.path.join(name));
        }
        self.found.len() < NAMED_MAX
    }
}

/// Collects names, as many as a short walk comes by.
struct All {
    names: Vec<(String, PathBuf)>,
}

impl Visitor for All {
    fn file(&mut self, directory: &Directory, name: &OsStr) -> bool {
        self.names.push((name.to_string_lossy().into_owned(), directory.path.join(name)));
        true
    }
}
