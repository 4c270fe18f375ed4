//! Finds the session a person means.

use std::path::{Path, PathBuf};

use jackline_engine::{SessionId, Timestamp};
use jackline_journal::{
    FileStore, Opened, RecordError, StoreError, read_first, read_parent, read_started_in,
};

use crate::clock::from_system;

/// A session that has a journal.
#[derive(Debug, Clone)]
pub struct Found {
    /// Its id, or its directory where the journal can't say.
    pub name: String,
    /// Its file of records.
    pub journal: PathBuf,
    opened: Option<Opened>,
    /// Why it can't be read what it was opened with.
    unreadable: Option<RecordError>,
    bytes: u64,
    /// Whether there is no complete line at all.
    torn: bool,
    /// When it was last written to.
    pub modified: Option<Timestamp>,
}

impl Found {
    /// The session of a journal file.
    pub fn at(journal: &Path) -> Option<Self> {
        Self::read(journal, read_first(journal))
    }

    /// The session of a file that a person named: a journal, or an export. One that means to
    /// be an export and is none says what is wrong with it.
    fn named(journal: &Path) -> Result<Option<Self>, StoreError> {
        match read_first(journal) {
            Err(error @ StoreError::Export { .. }) => Err(error),
            first => Ok(Self::read(journal, first)),
        }
    }

    fn read(journal: &Path, first: Result<Option<Opened>, StoreError>) -> Option<Self> {
        let metadata = journal.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let torn = matches!(first, Ok(None));
        let (opened, unreadable) = match first {
            Ok(opened) => (opened, None),
            // A first record that another version wrote; anything else is no first record.
            Err(StoreError::Record(error)) if error.seq == "0" => (None, Some(error)),
            Err(_) => (None, None),
        };
        let name = match &opened {
            Some(opened) => opened.session.to_string(),
            None => journal.parent()?.file_name()?.to_string_lossy().into_owned(),
        };
        let modified = metadata.modified().ok().map(from_system);
        let bytes = metadata.len();
        Some(Self { name, journal: journal.to_owned(), opened, unreadable, bytes, torn, modified })
    }

    /// Whether its workspace is this directory, which is canonical, or around it.
    pub fn works_in(&self, directory: &Path) -> bool {
        let opened = self.opened.as_ref();
        let workspace = opened.and_then(|opened| opened.place.workspace.as_ref());
        workspace.is_some_and(|workspace| directory.starts_with(workspace))
    }

    /// How far a directory, which is canonical, is below the one that the session belongs to;
    /// none where it belongs elsewhere. A run belongs to the directory that it was started in,
    /// too, wherever it works.
    pub fn distance_from(&self, directory: &Path) -> Option<usize> {
        let opened = self.opened.as_ref();
        let workspace = opened.and_then(|opened| opened.place.workspace.as_ref());
        let below = workspace.and_then(|workspace| directory.strip_prefix(workspace).ok());
        match below.map(|below| below.components().count()) {
            Some(0) => Some(0),
            _ if read_started_in(&self.journal).as_deref() == Some(directory) => Some(0),
            distance => distance,
        }
    }

    /// The session it belongs to: that of the client whose tools it guards.
    pub fn parent(&self) -> Option<SessionId> {
        read_parent(&self.journal)
    }

    /// What it was opened with, unless that can't be read any more.
    pub fn opened(&self) -> Result<&Opened, StoreError> {
        self.opened.as_ref().ok_or_else(|| match &self.unreadable {
            _ if self.bytes == 0 || self.torn => StoreError::Unopened,
            Some(error) => error.clone().into(),
            None => StoreError::Tampered {
                record: "0".to_owned(),
                reason: "it does not open a session".to_owned(),
            },
        })
    }
}

/// Why no session was found.
#[derive(Debug, thiserror::Error)]
pub enum SelectError {
    /// No session has that id or prefix.
    #[error("no session `{0}`; `jackline status --all` lists them")]
    Unknown(String),
    /// Several have that prefix.
    #[error("`{prefix}` could be {}", .candidates.join(", "))]
    Ambiguous {
        /// What was asked for.
        prefix: String,
        /// What it could be.
        candidates: Vec<String>,
    },
    /// Nothing happened here yet.
    #[error("no session has worked in `{}` yet; name one, or see `jackline status --all`", .0.display())]
    NoneHere(PathBuf),
    /// The store can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The sessions of a state home.
pub struct Sessions {
    store: FileStore,
}

impl Sessions {
    /// The sessions of a store.
    pub fn new(store: FileStore) -> Self {
        Self { store }
    }

    /// Every session, latest first.
    pub fn list(&self) -> Result<Vec<Found>, StoreError> {
        let mut found: Vec<Found> = self
            .store
            .directories()?
            .into_iter()
            .filter_map(|directory| Found::at(&directory.join("journal.jsonl")))
            .collect();
        found.sort_by_key(|session| std::cmp::Reverse(session.modified));
        Ok(found)
    }

    /// The sessions that were written to since some time, latest first.
    pub fn since(&self, since: Timestamp) -> Result<Vec<Found>, StoreError> {
        let is_recent = |journal: &PathBuf| {
            let modified = journal.metadata().and_then(|metadata| metadata.modified());
            modified.is_ok_and(|modified| from_system(modified) >= since)
        };
        let journals = self.store.directories()?.into_iter();
        let journals = journals.map(|directory| directory.join("journal.jsonl"));
        let mut found: Vec<Found> =
            journals.filter(is_recent).filter_map(|journal| Found::at(&journal)).collect();
        found.sort_by_key(|session| std::cmp::Reverse(session.modified));
        Ok(found)
    }

    /// The sessions that belong to another one, latest first.
    pub fn parts_of(
        &self,
        session: &SessionId,
        since: Timestamp,
    ) -> Result<Vec<Found>, StoreError> {
        let mut parts = self.since(since)?;
        parts.retain(|found| found.parent().as_ref() == Some(session));
        Ok(parts)
    }

    /// An id, a unique prefix, a journal file or an export; or the latest session of `directory`, or
    /// else of the nearest one above it, that is no part of another one there.
    pub fn select(&self, name: Option<&str>, directory: &Path) -> Result<Found, SelectError> {
        let Some(name) = name else {
            let here = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
            let near = |found: Found| Some((found.distance_from(&here)?, found));
            let mut all: Vec<(usize, Found)> = self.list()?.into_iter().filter_map(near).collect();
            // It is stable, so that of two that are as near the latest comes first.
            all.sort_by_key(|(distance, _)| *distance);
            let all: Vec<Found> = all.into_iter().map(|(_, found)| found).collect();
            let mine = all.iter().position(|found| !is_part(found, &all)).unwrap_or_default();
            return all.into_iter().nth(mine).ok_or(SelectError::NoneHere(here));
        };
        if let Ok(id) = SessionId::parse(name)
            && let Some(found) = Found::at(&self.store.directory(&id).join("journal.jsonl"))
        {
            return Ok(found);
        }
        let path = Path::new(name);
        if let Some(found) = Found::named(path)? {
            return Ok(found);
        }
        let mut matching: Vec<Found> =
            self.list()?.into_iter().filter(|found| found.name.starts_with(name)).collect();
        match (matching.pop(), matching.len()) {
            (None, _) => Err(SelectError::Unknown(name.to_owned())),
            (Some(found), 0) => Ok(found),
            (Some(last), _) => {
                let all = matching.iter().chain([&last]).take(5);
                let candidates = all.map(|found| format!("`{}`", found.name)).collect();
                Err(SelectError::Ambiguous { prefix: name.to_owned(), candidates })
            }
        }
    }
}

/// Sessions with those below them that belong to them; true says that one does.
pub fn arranged(all: &[Found]) -> Vec<(&Found, bool)> {
    let parents: Vec<Option<SessionId>> = all.iter().map(Found::parent).collect();
    let place = |parent: &Option<SessionId>| {
        let parent = parent.as_ref()?;
        all.iter().position(|found| found.name == parent.as_str())
    };
    let above: Vec<Option<usize>> = parents.iter().map(place).collect();
    // One level is enough: what is below a part, or in a circle, stands by itself.
    let is_top = |at: usize| above.get(at).copied().flatten().is_none();
    let above: Vec<Option<usize>> = above.iter().map(|at| at.filter(|at| is_top(*at))).collect();
    let mut rows = Vec::new();
    for (at, (found, _)) in all.iter().zip(&above).enumerate().filter(|(_, it)| it.1.is_none()) {
        rows.push((found, false));
        let parts = all.iter().zip(&above).filter(|(_, of)| **of == Some(at));
        rows.extend(parts.map(|(part, _)| (part, true)));
    }
    rows
}

/// Whether a session belongs to one of these.
fn is_part(found: &Found, all: &[Found]) -> bool {
    let parent = found.parent();
    parent.is_some_and(|parent| all.iter().any(|other| other.name == parent.as_str()))
}
