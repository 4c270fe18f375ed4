//! Looks at sessions again and again without being in anybody's way: a `stat` a
//! session, no lock, and only what has changed is read.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jackline_host::clock::from_system;
use jackline_journal::{
    FileStore, Line, Reading, SessionEntry, Store as _, StoreError, parse_record,
};
use jackline_runtime::session_of;

use super::seen::{Happened, Seen, Standing};

/// How many sessions are shown.
const SHOWN_MAX: usize = 100;

/// How many, the latest first, are looked through for those of a workspace.
const SEARCHED_MAX: usize = 2000;

/// How many of the last records are shown.
const LATELY_MAX: usize = 200;

/// The sessions of a store, as they were looked at last.
pub(super) struct Look {
    store: FileStore,
    /// The directory whose sessions are meant; none for all.
    here: Option<PathBuf>,
    known: BTreeMap<PathBuf, Known>,
    lately: Option<(PathBuf, Mark, Vec<Happened>)>,
}

/// By what a change shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    modified: SystemTime,
    bytes: u64,
}

struct Known {
    mark: Mark,
    found: SessionEntry,
    /// None where it is another workspace's.
    seen: Option<Seen>,
}

impl Look {
    pub(super) fn new(store: FileStore, here: Option<PathBuf>) -> Self {
        Self { store, here, known: BTreeMap::new(), lately: None }
    }

    pub(super) fn store(&self) -> &FileStore {
        &self.store
    }

    /// Looks again. The sessions, latest first.
    pub(super) fn refresh(&mut self) -> Result<Vec<Seen>, StoreError> {
        let directories = self.store.directories()?.into_iter();
        let marked = |directory: PathBuf| Some((mark(&directory)?, directory));
        let mut marked: Vec<(Mark, PathBuf)> = directories.filter_map(marked).collect();
        marked.sort_by_key(|(mark, _)| Reverse(mark.modified));
        marked.truncate(SEARCHED_MAX);
        let mut before = std::mem::take(&mut self.known);
        let mut shown = Vec::new();
        for (mark, directory) in marked {
            if shown.len() == SHOWN_MAX {
                break;
            }
            let Some(known) = self.look(before.remove(&directory), mark, &directory) else {
                continue;
            };
            shown.extend(known.seen.clone());
            self.known.insert(directory, known);
        }
        Ok(shown)
    }

    fn look(&self, known: Option<Known>, mark: Mark, directory: &Path) -> Option<Known> {
        let found = match known {
            Some(known) if known.mark == mark => return Some(known),
            // A journal only ever grows, so its first record stays what it was.
            Some(known) if known.mark.bytes <= mark.bytes && known.found.opened().is_ok() => {
                known.found
            }
            _ => self.store.entry_at(directory)?,
        };
        let is_here = self.here.as_ref().is_none_or(|here| found.distance_from(here).is_some());
        let seen = is_here.then(|| Seen {
            name: found.name.clone(),
            modified: Some(from_system(mark.modified)),
            standing: standing(&self.store, &found)
                .map_err(|error| format!("{error}; {}", error.remedy())),
        });
        Some(Known { mark, found, seen })
    }

    /// What happened lately in a session, the latest last.
    pub(super) fn lately(&mut self, name: &str) -> Result<&[Happened], StoreError> {
        let named = |(_, known): &(&PathBuf, &Known)| known.found.name == name;
        let Some((at, known)) = self.known.iter().find(named) else { return Ok(&[]) };
        let current = self.lately.as_ref();
        if !current.is_some_and(|(last, mark, _)| last == at && *mark == known.mark) {
            self.lately = Some((at.clone(), known.mark, read_lately(&self.store, &known.found)?));
        }
        Ok(self.lately.as_ref().map_or(&[], |(_, _, lately)| lately))
    }
}

fn mark(directory: &Path) -> Option<Mark> {
    let metadata = directory.join("journal.jsonl").metadata().ok()?;
    Some(Mark { modified: metadata.modified().ok()?, bytes: metadata.len() })
}

fn standing(store: &FileStore, found: &SessionEntry) -> Result<Standing, StoreError> {
    let opened = found.opened()?;
    let session = session_of(found, &store.view(found, Reading::Glance)?)?;
    Ok(Standing::new(opened, session.definition(), &session.summary()))
}

fn read_lately(store: &FileStore, found: &SessionEntry) -> Result<Vec<Happened>, StoreError> {
    let mut lately = Vec::new();
    store.view(found, Reading::Glance)?.for_each_of_last(LATELY_MAX as u64, |line| {
        if let Line::Event(record) = parse_record(line)? {
            lately.push(Happened::new(&record));
        }
        Ok::<(), StoreError>(())
    })?;
    Ok(lately)
}
