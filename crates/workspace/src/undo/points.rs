//! Reduces an undo log to one entry per path, with the state to restore.

use std::collections::BTreeMap;

use super::PathImage;
use super::log::UndoLogEntry;

/// One path and the state to restore.
pub(super) struct UndoPoint<'l> {
    pub(super) path: &'l str,
    pub(super) before: &'l PathImage,
    /// The number of the copy of that state.
    pub(super) copy: usize,
    /// The text of that state, if there is no copy.
    pub(super) text: Option<&'l str>,
    /// The very first state and the number of its copy, if another program changed the path in
    /// between.
    pub(super) first_state: Option<(&'l PathImage, usize)>,
    /// All states that the calls created since.
    pub(super) becomes: Vec<&'l PathImage>,
}

impl UndoPoint<'_> {
    /// The entries from which this point can be read again.
    pub(super) fn entries(&self) -> Vec<UndoLogEntry> {
        let path = self.path.to_owned();
        let text = self.text.map(str::to_owned);
        let image = self.before.clone();
        // The bytes of the copy count only once.
        let before = UndoLogEntry::Before { path, image, copy: self.copy, bytes: 0, text };
        let becomes = self.becomes.iter().map(|image| UndoLogEntry::Becomes {
            path: self.path.to_owned(),
            image: (*image).clone(),
            temporary: None,
        });
        [before].into_iter().chain(becomes).collect()
    }
}

/// All points, in the order in which their paths were first changed.
#[derive(Default)]
pub(super) struct UndoPoints<'l> {
    pub(super) in_order: Vec<UndoPoint<'l>>,
    /// Temporary files that may have been left next to a path.
    pub(super) temporaries: Vec<(&'l str, &'l str)>,
    /// The files that were not copied, with the reasons.
    pub(super) not_kept: Vec<(&'l str, &'l str)>,
}

impl<'l> UndoPoints<'l> {
    /// Collects the entries after the last rollback.
    pub(super) fn of(entries: &'l [UndoLogEntry]) -> Self {
        let undone = entries.iter().rposition(|entry| matches!(entry, UndoLogEntry::RolledBack));
        let entries = entries.get(undone.map_or(0, |at| at + 1)..).unwrap_or_default();
        let mut points = Self::default();
        let mut index_by_path: BTreeMap<&str, usize> = BTreeMap::new();
        for entry in entries {
            match entry {
                // If two processes recorded the path at the same time, the first one saw its
                // original state.
                UndoLogEntry::Before { path, image, copy, text, .. } => {
                    index_by_path.entry(path).or_insert_with(|| {
                        points.in_order.push(UndoPoint {
                            path,
                            before: image,
                            copy: *copy,
                            text: text.as_deref(),
                            first_state: None,
                            becomes: Vec::new(),
                        });
                        points.in_order.len() - 1
                    });
                }
                UndoLogEntry::Moved { path, image, copy, .. } => {
                    if let Some(point) =
                        index_by_path.get(&**path).and_then(|at| points.in_order.get_mut(*at))
                    {
                        point.first_state.get_or_insert((point.before, point.copy));
                        (point.before, point.copy, point.text) = (image, *copy, None);
                        point.becomes.clear();
                    }
                }
                UndoLogEntry::Becomes { path, image, temporary } => {
                    if let Some(point) =
                        index_by_path.get(&**path).and_then(|at| points.in_order.get_mut(*at))
                    {
                        point.becomes.push(image);
                    }
                    let temporary = temporary.as_deref();
                    points.temporaries.extend(temporary.map(|name| (path.as_str(), name)));
                }
                UndoLogEntry::NotKept { path, why } => points.not_kept.push((path, why)),
                UndoLogEntry::Committed | UndoLogEntry::RolledBack => {}
            }
        }
        points
    }
}
