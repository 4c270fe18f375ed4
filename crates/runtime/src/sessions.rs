//! Finds the session a person means.

use std::path::{Path, PathBuf};

use jackline_engine::{SessionId, Timestamp};
use jackline_journal::{SessionEntry, SessionFilter, Store, StoreError};

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

/// Finds sessions in a store.
pub struct Sessions<S> {
    store: S,
}

impl<S: Store> Sessions<S> {
    /// The sessions of a store.
    pub fn new(store: S) -> Self {
        Self { store }
    }

    /// Every session, latest first.
    pub fn list(&self) -> Result<Vec<SessionEntry>, StoreError> {
        self.store.list(&SessionFilter::default())
    }

    /// The sessions that belong to another one, latest first.
    pub fn parts_of(
        &self,
        session: &SessionId,
        since: Timestamp,
    ) -> Result<Vec<SessionEntry>, StoreError> {
        let mut parts = self.store.list(&SessionFilter { since: Some(since) })?;
        parts.retain(|entry| entry.parent().as_ref() == Some(session));
        Ok(parts)
    }

    /// An id, a unique prefix, a journal file or an export; or the latest session of `directory`, or
    /// else of the nearest one above it, that is no part of another one there.
    pub fn select(
        &self,
        name: Option<&str>,
        directory: &Path,
    ) -> Result<SessionEntry, SelectError> {
        let Some(name) = name else {
            let here = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
            let near = |entry: SessionEntry| Some((entry.distance_from(&here)?, entry));
            let mut all: Vec<(usize, SessionEntry)> =
                self.list()?.into_iter().filter_map(near).collect();
            // It is stable, so that of two that are as near the latest comes first.
            all.sort_by_key(|(distance, _)| *distance);
            let all: Vec<SessionEntry> = all.into_iter().map(|(_, entry)| entry).collect();
            let mine = all.iter().position(|entry| !is_part(entry, &all)).unwrap_or_default();
            return all.into_iter().nth(mine).ok_or(SelectError::NoneHere(here));
        };
        if let Ok(id) = SessionId::parse(name)
            && let Some(entry) = self.store.entry(&id)?
        {
            return Ok(entry);
        }
        if let Some(entry) = SessionEntry::of_file(Path::new(name))? {
            return Ok(entry);
        }
        let mut matching: Vec<SessionEntry> =
            self.list()?.into_iter().filter(|entry| entry.name.starts_with(name)).collect();
        match (matching.pop(), matching.len()) {
            (None, _) => Err(SelectError::Unknown(name.to_owned())),
            (Some(entry), 0) => Ok(entry),
            (Some(last), _) => {
                let all = matching.iter().chain([&last]).take(5);
                let candidates = all.map(|entry| format!("`{}`", entry.name)).collect();
                Err(SelectError::Ambiguous { prefix: name.to_owned(), candidates })
            }
        }
    }
}

/// Sessions with those below them that belong to them; true says that one does.
pub fn arranged(all: &[SessionEntry]) -> Vec<(&SessionEntry, bool)> {
    let parents: Vec<Option<SessionId>> = all.iter().map(SessionEntry::parent).collect();
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
fn is_part(found: &SessionEntry, all: &[SessionEntry]) -> bool {
    let parent = found.parent();
    parent.is_some_and(|parent| all.iter().any(|other| other.name == parent.as_str()))
}
