//! Finds the session that a person means.

use std::path::{Path, PathBuf};

use jackline_engine::{SessionId, Timestamp};
use jackline_journal::{SessionEntry, SessionFilter, Store, StoreError};

/// Why no session was found.
#[derive(Debug, thiserror::Error)]
pub enum SelectError {
    /// No session has this id or prefix.
    #[error("no session `{0}`; `jackline status --all` lists all sessions")]
    Unknown(String),
    /// The name is the path of something that can't be a journal.
    #[error("`{name}` is neither a session nor a journal: {source}")]
    NotAJournal {
        /// The name that a person gave.
        name: String,
        /// What it is.
        source: std::io::Error,
    },
    /// Several sessions have this prefix.
    #[error("several sessions begin with `{prefix}`: {}", .candidates.join(", "))]
    Ambiguous {
        /// The prefix.
        prefix: String,
        /// Some of the matching sessions.
        candidates: Vec<String>,
    },
    /// No session has worked in this directory.
    #[error("no session has worked in `{}` yet; pass a session id; `jackline status --all` lists them", .0.display())]
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

    /// Every session, the latest first.
    pub fn list(&self) -> Result<Vec<SessionEntry>, StoreError> {
        self.store.list(&SessionFilter::default())
    }

    /// The sessions of `directory`, or else of its nearest parent with sessions, the latest first.
    pub fn list_near(&self, directory: &Path) -> Result<Vec<SessionEntry>, SelectError> {
        let (here, near) = self.by_distance(directory)?;
        let nearest = near.first().map(|(distance, _)| *distance);
        let nearest = nearest.ok_or(SelectError::NoneHere(here))?;
        let is_nearest = |(distance, _): &(usize, SessionEntry)| *distance == nearest;
        Ok(near.into_iter().take_while(is_nearest).map(|(_, entry)| entry).collect())
    }

    /// The sessions whose workspace contains `directory`, the nearest workspace first, and the
    /// canonical path of the directory. Of two sessions at the same distance, the latest comes
    /// first, because the sort is stable.
    fn by_distance(
        &self,
        directory: &Path,
    ) -> Result<(PathBuf, Vec<(usize, SessionEntry)>), StoreError> {
        let here = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        let distance = |entry: SessionEntry| Some((entry.distance_from(&here)?, entry));
        let mut near: Vec<(usize, SessionEntry)> =
            self.list()?.into_iter().filter_map(distance).collect();
        near.sort_by_key(|(distance, _)| *distance);
        Ok((here, near))
    }

    /// The sub-sessions of a session, the latest first.
    pub fn sub_sessions(
        &self,
        session: &SessionId,
        since: Timestamp,
    ) -> Result<Vec<SessionEntry>, StoreError> {
        let mut parts = self.store.list(&SessionFilter { since: Some(since) })?;
        parts.retain(|entry| entry.parent().as_ref() == Some(session));
        Ok(parts)
    }

    /// Finds a session by id, unique prefix, journal file or export. Without a name, this is the
    /// latest session of `directory`, or else of its nearest parent with sessions. Sub-sessions of
    /// another found session come last.
    pub fn select(
        &self,
        name: Option<&str>,
        directory: &Path,
    ) -> Result<SessionEntry, SelectError> {
        let Some(name) = name else {
            let (here, near) = self.by_distance(directory)?;
            let all: Vec<SessionEntry> = near.into_iter().map(|(_, entry)| entry).collect();
            let at = all.iter().position(|entry| !is_sub_session(entry, &all)).unwrap_or_default();
            return all.into_iter().nth(at).ok_or(SelectError::NoneHere(here));
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
            (None, _) => Err(match jackline_host::ensure_regular(Path::new(name)) {
                Err(source) if source.kind() == std::io::ErrorKind::InvalidInput => {
                    SelectError::NotAJournal { name: name.to_owned(), source }
                }
                _ => SelectError::Unknown(name.to_owned()),
            }),
            (Some(entry), 0) => Ok(entry),
            (Some(last), _) => {
                let all = matching.iter().chain([&last]).take(5);
                let candidates = all.map(|entry| format!("`{}`", entry.name)).collect();
                Err(SelectError::Ambiguous { prefix: name.to_owned(), candidates })
            }
        }
    }
}

/// Orders sessions so that sub-sessions follow their parent; `true` marks a sub-session.
pub fn group_sub_sessions(all: &[SessionEntry]) -> Vec<(&SessionEntry, bool)> {
    let parents: Vec<Option<SessionId>> = all.iter().map(SessionEntry::parent).collect();
    let parent_index = |parent: &Option<SessionId>| {
        let parent = parent.as_ref()?;
        all.iter().position(|entry| entry.name == parent.as_str())
    };
    let above: Vec<Option<usize>> = parents.iter().map(parent_index).collect();
    // One level is enough. A sub-session of a sub-session, or in a cycle, counts as top level.
    let is_top = |at: usize| above.get(at).copied().flatten().is_none();
    let above: Vec<Option<usize>> = above.iter().map(|at| at.filter(|at| is_top(*at))).collect();
    let mut rows = Vec::new();
    for (at, (entry, _)) in all.iter().zip(&above).enumerate().filter(|(_, it)| it.1.is_none()) {
        rows.push((entry, false));
        let parts = all.iter().zip(&above).filter(|(_, of)| **of == Some(at));
        rows.extend(parts.map(|(part, _)| (part, true)));
    }
    rows
}

/// Whether a session is a sub-session of one of these.
fn is_sub_session(entry: &SessionEntry, all: &[SessionEntry]) -> bool {
    let parent = entry.parent();
    parent.is_some_and(|parent| all.iter().any(|other| other.name == parent.as_str()))
}
