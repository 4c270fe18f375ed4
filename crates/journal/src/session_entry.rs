//! A session as a list of journals shows it.

use std::path::{Path, PathBuf};

use jackline_engine::{Event, EventKind, SessionId, SessionStarted, Timestamp};

use crate::error::StoreError;
use crate::record::{Opened, RecordError};

/// Which sessions a list has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Only those that were written to since then.
    pub since: Option<Timestamp>,
}

/// A session that has a journal.
#[derive(Debug, Clone)]
pub struct SessionEntry {
    /// Its id, or the name of its directory where the journal can't be read.
    pub name: String,
    /// When it was last written to.
    pub modified: Option<Timestamp>,
    pub(crate) location: Location,
    pub(crate) beginning: Beginning,
}

/// Where the journal of an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Location {
    /// In a session's directory of the file store.
    Directory(PathBuf),
    /// A file of its own: a journal or an export that a person named.
    File(PathBuf),
    /// In a store that keeps no files.
    Stored(SessionId),
}

/// The first two records of a journal.
#[derive(Debug, Clone, Default)]
pub(crate) struct Beginning {
    pub(crate) opened: Option<Opened>,
    /// Why the first record can't be understood although it is one.
    pub(crate) unreadable: Option<RecordError>,
    /// Whether there is no complete line at all.
    pub(crate) is_empty: bool,
    pub(crate) first_event: Option<Event>,
}

impl SessionEntry {
    pub(crate) fn new(
        location: Location,
        beginning: Beginning,
        modified: Option<Timestamp>,
    ) -> Self {
        let name = match (&beginning.opened, &location) {
            (Some(opened), _) => opened.session.to_string(),
            (None, Location::Stored(session)) => session.to_string(),
            (None, Location::Directory(directory)) => file_name(Some(directory)),
            (None, Location::File(file)) => file_name(file.parent()),
        };
        Self { name, modified, location, beginning }
    }

    /// The entry of a session in a store that keeps no files; none where it has no record. The
    /// records come in order, without newlines; two of them are enough.
    pub fn of_records<'a>(
        session: &SessionId,
        records: impl Iterator<Item = &'a [u8]>,
        modified: Option<Timestamp>,
    ) -> Option<Self> {
        let beginning = Beginning::of(records);
        let location = Location::Stored(session.clone());
        (!beginning.is_empty).then(|| Self::new(location, beginning, modified))
    }

    /// The session of an entry that a store without files has listed.
    pub fn stored_session(&self) -> Option<&SessionId> {
        match &self.location {
            Location::Stored(session) => Some(session),
            Location::Directory(_) | Location::File(_) => None,
        }
    }

    /// What it was opened with, unless that can't be read any more.
    pub fn opened(&self) -> Result<&Opened, StoreError> {
        let Beginning { opened, unreadable, is_empty, .. } = &self.beginning;
        opened.as_ref().ok_or_else(|| match unreadable {
            _ if *is_empty => StoreError::Unopened,
            Some(error) => error.clone().into(),
            None => StoreError::Tampered {
                record: "0".to_owned(),
                reason: "it does not open a session".to_owned(),
            },
        })
    }

    /// The session that this one belongs to: that of the client whose tools it guards.
    pub fn parent(&self) -> Option<SessionId> {
        match &self.beginning.first_event.as_ref()?.kind {
            EventKind::SessionStarted(SessionStarted { parent, .. }) => parent.clone(),
            _ => None,
        }
    }

    /// Whether its workspace is this directory, which is canonical, or around it.
    pub fn works_in(&self, directory: &Path) -> bool {
        self.workspace().is_some_and(|workspace| directory.starts_with(workspace))
    }

    /// How far a directory, which is canonical, is below the one that the session belongs to; none
    /// where it belongs elsewhere. A run also belongs to the directory that it was started in,
    /// wherever it works.
    pub fn distance_from(&self, directory: &Path) -> Option<usize> {
        let below = self.workspace().and_then(|workspace| directory.strip_prefix(workspace).ok());
        match below.map(|below| below.components().count()) {
            Some(0) => Some(0),
            _ if self.started_in().as_deref() == Some(directory) => Some(0),
            distance => distance,
        }
    }

    /// The directory of this machine that belongs to the session alone, where it has one.
    pub fn directory(&self) -> Option<&Path> {
        match &self.location {
            Location::Directory(directory) => Some(directory),
            Location::File(file) => file.parent(),
            Location::Stored(_) => None,
        }
    }

    /// The file of the journal, where it is on this machine.
    pub fn file(&self) -> Option<PathBuf> {
        match &self.location {
            Location::Directory(directory) => Some(crate::file_store::journal_file(directory)),
            Location::File(file) => Some(file.clone()),
            Location::Stored(_) => None,
        }
    }

    /// Whether it is a file that a person named, and not a session of a store.
    pub fn is_lone_file(&self) -> bool {
        matches!(self.location, Location::File(_))
    }

    fn workspace(&self) -> Option<&str> {
        self.beginning.opened.as_ref()?.place.workspace.as_deref()
    }

    /// The directory that a run was started in, where its first event says so.
    fn started_in(&self) -> Option<PathBuf> {
        let meta = self.beginning.first_event.as_ref()?.meta.as_ref()?;
        meta.get("started_in")?.as_str().map(PathBuf::from)
    }
}

fn file_name(path: Option<&Path>) -> String {
    let name = path.and_then(Path::file_name).unwrap_or_default();
    name.to_string_lossy().into_owned()
}
