//! What a log comes to: each path once, with what is to be put back there.

use std::collections::BTreeMap;

use super::Image;
use super::log::Entry;

/// One path, and what is to be put back there.
pub(super) struct Point<'l> {
    pub(super) path: &'l str,
    pub(super) before: &'l Image,
    /// The number of the copy of that.
    pub(super) copy: usize,
    /// That itself, where there is no copy.
    pub(super) text: Option<&'l str>,
    /// What was there at first, and the number of its copy, where somebody else has put
    /// something there in between.
    pub(super) first: Option<(&'l Image, usize)>,
    /// Everything that was made of it since.
    pub(super) becomes: Vec<&'l Image>,
}

/// All of them, in the order in which they were first touched.
#[derive(Default)]
pub(super) struct Points<'l> {
    pub(super) order: Vec<Point<'l>>,
    /// Files beside a path that may have been left behind.
    pub(super) temporaries: Vec<(&'l str, &'l str)>,
    /// What was not kept, and why.
    pub(super) not_kept: Vec<(&'l str, &'l str)>,
}

impl<'l> Points<'l> {
    /// What was undone is done with.
    pub(super) fn of(entries: &'l [Entry]) -> Self {
        let undone = entries.iter().rposition(|entry| matches!(entry, Entry::RolledBack));
        let entries = entries.get(undone.map_or(0, |at| at + 1)..).unwrap_or_default();
        let mut points = Self::default();
        let mut known: BTreeMap<&str, usize> = BTreeMap::new();
        for entry in entries {
            match entry {
                // Of two processes that came at once, the first has seen it as it was.
                Entry::Before { path, image, copy, text, .. } => {
                    known.entry(path).or_insert_with(|| {
                        points.order.push(Point {
                            path,
                            before: image,
                            copy: *copy,
                            text: text.as_deref(),
                            first: None,
                            becomes: Vec::new(),
                        });
                        points.order.len() - 1
                    });
                }
                Entry::Moved { path, image, copy, .. } => {
                    if let Some(point) = known.get(&**path).and_then(|at| points.order.get_mut(*at))
                    {
                        point.first.get_or_insert((point.before, point.copy));
                        (point.before, point.copy, point.text) = (image, *copy, None);
                        point.becomes.clear();
                    }
                }
                Entry::Becomes { path, image, temporary } => {
                    if let Some(point) = known.get(&**path).and_then(|at| points.order.get_mut(*at))
                    {
                        point.becomes.push(image);
                    }
                    let temporary = temporary.as_deref();
                    points.temporaries.extend(temporary.map(|name| (path.as_str(), name)));
                }
                Entry::NotKept { path, why } => points.not_kept.push((path, why)),
                Entry::Committed | Entry::RolledBack => {}
            }
        }
        points
    }
}
