//! What undoing would do, without doing it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::log::{Log, Told};
use super::points::{Point, Points};
use super::{Image, UndoError, image};
use crate::jail::Jail;

/// What would become of one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Would {
    /// What was there is put back.
    PutBack,
    /// Nothing was there, so it is taken away.
    TakeAway,
    /// It stays: somebody else has changed it since.
    KeepChanged,
    /// It stays away: somebody else has removed it since.
    KeepGone,
    /// It stays: there is something in it that was not there.
    KeepFilled,
}

/// One path, and what would become of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The path, relative to the root.
    pub path: String,
    /// What would become of it.
    pub would: Would,
    /// Where that lies which was there, if it was a file.
    pub copy: Option<PathBuf>,
    /// Whether somebody else has put that there between two calls.
    pub is_moved: bool,
    /// Where that lies which was there at first, if it was a file and something else is put
    /// back.
    pub first: Option<PathBuf>,
}

/// What undoing would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// What the paths are relative to.
    pub root: PathBuf,
    /// What is not as it was, in the order in which it would be undone.
    pub steps: Vec<Step>,
    /// What was not kept, and why.
    pub not_kept: Vec<(String, String)>,
    /// Lines of the log that nobody can read.
    pub unreadable: usize,
    /// Whether the log was full, so that nothing is known of what came later.
    pub is_full: bool,
}

/// Looks at what undoing would do.
pub fn plan(directory: &Path) -> Result<Plan, UndoError> {
    let told = Log::read(directory)?;
    let jail = Jail::open(&told.root)?;
    let points = Points::of(&told.entries);
    let mut goes = BTreeSet::new();
    let mut steps = Vec::new();
    for point in points.order.iter().rev() {
        let Some(would) = would(&jail, &told.root, point, &goes)? else { continue };
        if would == Would::TakeAway {
            goes.insert(told.root.join(point.path));
        }
        let lies = |image: &Image, copy: usize| {
            matches!(image, Image::File { .. }).then(|| directory.join(copy.to_string()))
        };
        let first = point.first.and_then(|(image, copy)| lies(image, copy));
        let copy = lies(point.before, point.copy).filter(|_| point.text.is_none());
        let is_moved = point.first.is_some();
        steps.push(Step { path: point.path.to_owned(), would, copy, is_moved, first });
    }
    let owned = |(path, why): &(&str, &str)| ((*path).to_owned(), (*why).to_owned());
    let not_kept = points.not_kept.iter().map(owned).collect();
    let Told { root, unreadable, is_full, .. } = told;
    Ok(Plan { root, steps, not_kept, unreadable, is_full })
}

/// What would become of a path; nothing where it is as it was.
fn would(
    jail: &Jail,
    root: &Path,
    point: &Point<'_>,
    goes: &BTreeSet<PathBuf>,
) -> Result<Option<Would>, UndoError> {
    let now = image::look(jail, point.path)?;
    if now.is_like(point.before) {
        return Ok(None);
    }
    Ok(Some(if !point.becomes.iter().any(|image| now.is_like(image)) {
        if now == Image::Missing { Would::KeepGone } else { Would::KeepChanged }
    } else if matches!(now, Image::Directory { .. }) && is_filled(&root.join(point.path), goes) {
        Would::KeepFilled
    } else if *point.before == Image::Missing {
        Would::TakeAway
    } else {
        Would::PutBack
    }))
}

/// Whether there is something in a directory that does not go.
fn is_filled(directory: &Path, goes: &BTreeSet<PathBuf>) -> bool {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    entries.flatten().any(|entry| !goes.contains(&entry.path()))
}
