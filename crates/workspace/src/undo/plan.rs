//! Computes what undoing would do, without doing it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::log::{UndoLog, UndoLogContents};
use super::points::{UndoPoint, UndoPoints};
use super::{PathImage, UndoError, path_image};
use crate::jail::Jail;

/// What undoing would do to one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoEffect {
    /// It restores the previous state.
    Restore,
    /// It removes the path, because nothing was there before.
    Remove,
    /// It leaves the path alone, because another program has changed it since.
    LeaveChanged,
    /// It does not recreate the path, because another program has removed it since.
    LeaveRemoved,
    /// It leaves the directory, because it contains new entries.
    LeaveFilled,
}

/// One path, and what undoing would do to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoStep {
    /// The path, relative to the root.
    pub path: String,
    /// The effect on the path.
    pub effect: UndoEffect,
    /// The copy of the previous file.
    pub copy: Option<PathBuf>,
    /// Whether another program changed the path between two calls.
    pub is_changed_between: bool,
    /// The copy of the very first file, if undoing restores a later state.
    pub first_copy: Option<PathBuf>,
}

/// The effects of undoing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UndoPlan {
    /// The directory that the paths are relative to.
    pub root: PathBuf,
    /// The paths that differ from their previous state, in the order of undoing.
    pub steps: Vec<UndoStep>,
    /// The files that were not copied, with the reasons.
    pub not_kept: Vec<(String, String)>,
    /// How many lines of the log can't be parsed.
    pub unreadable: usize,
    /// Whether the log was full, so that later changes are not recorded.
    pub is_full: bool,
}

/// Computes what undoing would do.
pub fn plan_undo(directory: &Path) -> Result<UndoPlan, UndoError> {
    let contents = UndoLog::read(directory)?;
    let jail = Jail::open(&contents.root)?;
    let points = UndoPoints::of(&contents.entries);
    let mut removed = BTreeSet::new();
    let mut steps = Vec::new();
    for point in points.in_order.iter().rev() {
        let Some(would) = effect_of(&jail, &contents.root, point, &removed)? else { continue };
        if would == UndoEffect::Remove {
            removed.insert(contents.root.join(point.path));
        }
        let path_of_copy = |image: &PathImage, copy: usize| {
            matches!(image, PathImage::File { .. }).then(|| directory.join(copy.to_string()))
        };
        let first = point.first_state.and_then(|(image, copy)| path_of_copy(image, copy));
        let copy = path_of_copy(point.before, point.copy).filter(|_| point.text.is_none());
        let is_moved = point.first_state.is_some();
        steps.push(UndoStep {
            path: point.path.to_owned(),
            effect: would,
            copy,
            is_changed_between: is_moved,
            first_copy: first,
        });
    }
    let owned = |(path, why): &(&str, &str)| ((*path).to_owned(), (*why).to_owned());
    let not_kept = points.not_kept.iter().map(owned).collect();
    let UndoLogContents { root, unreadable, is_full, .. } = contents;
    Ok(UndoPlan { root, steps, not_kept, unreadable, is_full })
}

/// The effect of undoing on a path; `None` if its state is the previous one.
fn effect_of(
    jail: &Jail,
    root: &Path,
    point: &UndoPoint<'_>,
    removed: &BTreeSet<PathBuf>,
) -> Result<Option<UndoEffect>, UndoError> {
    let now = path_image::read_image(jail, point.path)?;
    if now.is_same_as(point.before) {
        return Ok(None);
    }
    Ok(Some(if !point.becomes.iter().any(|image| now.is_same_as(image)) {
        if now == PathImage::Missing { UndoEffect::LeaveRemoved } else { UndoEffect::LeaveChanged }
    } else if matches!(now, PathImage::Directory { .. })
        && has_other_entries(&root.join(point.path), removed)
    {
        UndoEffect::LeaveFilled
    } else if *point.before == PathImage::Missing {
        UndoEffect::Remove
    } else {
        UndoEffect::Restore
    }))
}

/// Whether a directory contains an entry that undoing would not remove.
fn has_other_entries(directory: &Path, removed: &BTreeSet<PathBuf>) -> bool {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    entries.flatten().any(|entry| !removed.contains(&entry.path()))
}
