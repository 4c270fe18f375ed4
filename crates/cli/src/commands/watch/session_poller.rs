//! Polls the sessions of a store. Each poll costs one `stat` per session and takes no lock. Only
//! changed journals are read.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jackline_host::clock::from_system;
use jackline_journal::{
    FileStore, JournalLine, ReadMode, SessionEntry, Store as _, StoreError, parse_record,
};
use jackline_runtime::load_session_from;

use super::watched_session::{RecentRecord, SessionStatus, WatchedSession};

/// The maximum number of shown sessions.
const SESSIONS_SHOWN_MAX: usize = 100;

/// How many of the latest sessions are searched for those of a workspace.
const SESSIONS_SEARCHED_MAX: usize = 2000;

/// How many of the last records of a session are read.
const RECENT_RECORDS_MAX: usize = 200;

/// The sessions of a store at the last poll.
pub(super) struct SessionPoller {
    store: FileStore,
    /// The directory whose sessions are shown; `None` for all.
    here: Option<PathBuf>,
    cached: BTreeMap<PathBuf, CachedSession>,
    recent: Option<(PathBuf, JournalStamp, Vec<RecentRecord>)>,
}

/// The time and size of a journal file. They change with each write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct JournalStamp {
    modified: SystemTime,
    bytes: u64,
}

struct CachedSession {
    stamp: JournalStamp,
    entry: SessionEntry,
    /// `None` if the session is in another workspace.
    session: Option<WatchedSession>,
}

impl SessionPoller {
    pub(super) fn new(store: FileStore, here: Option<PathBuf>) -> Self {
        Self { store, here, cached: BTreeMap::new(), recent: None }
    }

    pub(super) fn store(&self) -> &FileStore {
        &self.store
    }

    /// Polls the sessions and returns them, the latest first.
    pub(super) fn refresh(&mut self) -> Result<Vec<WatchedSession>, StoreError> {
        let directories = self.store.directories()?.into_iter();
        let marked = |directory: PathBuf| Some((journal_stamp(&directory)?, directory));
        let mut marked: Vec<(JournalStamp, PathBuf)> = directories.filter_map(marked).collect();
        marked.sort_by_key(|(mark, _)| Reverse(mark.modified));
        marked.truncate(SESSIONS_SEARCHED_MAX);
        let mut before = std::mem::take(&mut self.cached);
        let mut shown = Vec::new();
        for (mark, directory) in marked {
            if shown.len() == SESSIONS_SHOWN_MAX {
                break;
            }
            let Some(known) = self.refresh_one(before.remove(&directory), mark, &directory) else {
                continue;
            };
            shown.extend(known.session.clone());
            self.cached.insert(directory, known);
        }
        Ok(shown)
    }

    fn refresh_one(
        &self,
        known: Option<CachedSession>,
        mark: JournalStamp,
        directory: &Path,
    ) -> Option<CachedSession> {
        let found = match known {
            Some(known) if known.stamp == mark => return Some(known),
            // A journal only grows, so the cached first record is still valid.
            Some(known) if known.stamp.bytes <= mark.bytes && known.entry.opening().is_ok() => {
                known.entry
            }
            _ => self.store.entry_at(directory)?,
        };
        let is_here = self.here.as_ref().is_none_or(|here| found.distance_from(here).is_some());
        let seen = is_here.then(|| WatchedSession {
            name: found.name.clone(),
            modified: Some(from_system(mark.modified)),
            status: load_status(&self.store, &found)
                .map_err(|error| format!("{error}; {}", error.remedy())),
        });
        Some(CachedSession { stamp: mark, entry: found, session: seen })
    }

    /// The recent records of a session, the latest last.
    pub(super) fn recent(&mut self, name: &str) -> Result<&[RecentRecord], StoreError> {
        let named = |(_, known): &(&PathBuf, &CachedSession)| known.entry.name == name;
        let Some((at, known)) = self.cached.iter().find(named) else { return Ok(&[]) };
        let current = self.recent.as_ref();
        if !current.is_some_and(|(last, mark, _)| last == at && *mark == known.stamp) {
            self.recent =
                Some((at.clone(), known.stamp, read_recent_records(&self.store, &known.entry)?));
        }
        Ok(self.recent.as_ref().map_or(&[], |(_, _, lately)| lately))
    }
}

fn journal_stamp(directory: &Path) -> Option<JournalStamp> {
    let metadata = directory.join("journal.jsonl").metadata().ok()?;
    Some(JournalStamp { modified: metadata.modified().ok()?, bytes: metadata.len() })
}

fn load_status(store: &FileStore, found: &SessionEntry) -> Result<SessionStatus, StoreError> {
    let opened = found.opening()?;
    let session = load_session_from(found, &store.view(found, ReadMode::Unlocked)?)?;
    Ok(SessionStatus::new(opened, session.definition(), &session.summary()))
}

fn read_recent_records(
    store: &FileStore,
    found: &SessionEntry,
) -> Result<Vec<RecentRecord>, StoreError> {
    let mut lately = Vec::new();
    store.view(found, ReadMode::Unlocked)?.for_each_of_last(RECENT_RECORDS_MAX as u64, |line| {
        if let JournalLine::Event(record) = parse_record(line)? {
            lately.push(RecentRecord::new(&record));
        }
        Ok::<(), StoreError>(())
    })?;
    Ok(lately)
}
