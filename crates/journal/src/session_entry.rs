//! A session in a list of sessions.

use std::path::{Path, PathBuf};

use jackline_engine::{Event, EventKind, SessionId, SessionStarted, Timestamp};

use crate::error::StoreError;
use crate::record::{OpeningRecord, RecordError};

/// Selects sessions for a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Selects only sessions that were written to since then.
    pub since: Option<Timestamp>,
}

/// A session with a journal.
#[derive(Debug, Clone)]
pub struct SessionEntry {
    /// The session id, or the directory name if the journal can't be read.
    pub name: String,
    /// When the journal was last written to.
    pub modified: Option<Timestamp>,
    pub(crate) location: JournalLocation,
    pub(crate) beginning: JournalBeginning,
}

/// The location of an entry's journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JournalLocation {
    /// In a session's directory of the file store.
    Directory(PathBuf),
    /// A separate file: a journal or an export that a person passed.
    File(PathBuf),
    /// In a store without files.
    Stored(SessionId),
}

/// The first two records of a journal.
#[derive(Debug, Clone, Default)]
pub(crate) struct JournalBeginning {
    pub(crate) opened: Option<OpeningRecord>,
    /// Why the first record can't be parsed, although it is a record.
    pub(crate) unreadable: Option<RecordError>,
    /// Whether there is no complete line.
    pub(crate) is_empty: bool,
    pub(crate) first_event: Option<Event>,
}

impl SessionEntry {
    pub(crate) fn new(
        location: JournalLocation,
        beginning: JournalBeginning,
        modified: Option<Timestamp>,
    ) -> Self {
        let name = match (&beginning.opened, &location) {
            (Some(opened), _) => opened.session.to_string(),
            (None, JournalLocation::Stored(session)) => session.to_string(),
            (None, JournalLocation::Directory(directory)) => file_name(Some(directory)),
            (None, JournalLocation::File(file)) => file_name(file.parent()),
        };
        Self { name, modified, location, beginning }
    }

    /// The entry of a session in a store without files; `None` if it has no record. The records
    /// come in order, without newlines; the first two are enough.
    pub fn of_records<'a>(
        session: &SessionId,
        records: impl Iterator<Item = &'a [u8]>,
        modified: Option<Timestamp>,
    ) -> Option<Self> {
        let beginning = JournalBeginning::of(records);
        let location = JournalLocation::Stored(session.clone());
        (!beginning.is_empty).then(|| Self::new(location, beginning, modified))
    }

    /// The session of an entry from a store without files.
    pub fn stored_session(&self) -> Option<&SessionId> {
        match &self.location {
            JournalLocation::Stored(session) => Some(session),
            JournalLocation::Directory(_) | JournalLocation::File(_) => None,
        }
    }

    /// The opening of the session, unless it can't be read.
    pub fn opening(&self) -> Result<&OpeningRecord, StoreError> {
        let JournalBeginning { opened, unreadable, is_empty, .. } = &self.beginning;
        opened.as_ref().ok_or_else(|| match unreadable {
            _ if *is_empty => StoreError::Empty,
            Some(error) => error.clone().into(),
            None => StoreError::Tampered {
                record: "0".to_owned(),
                reason: "it is not the opening of a session".to_owned(),
            },
        })
    }

    /// The parent session: that of the client whose tools this session guards.
    pub fn parent(&self) -> Option<SessionId> {
        match &self.beginning.first_event.as_ref()?.kind {
            EventKind::SessionStarted(SessionStarted { parent, .. }) => parent.clone(),
            _ => None,
        }
    }

    /// The client whose agent the session guards, as its first event names it.
    pub fn client(&self) -> Option<&str> {
        match &self.beginning.first_event.as_ref()?.kind {
            EventKind::SessionStarted(SessionStarted { client, .. }) => client.as_deref(),
            _ => None,
        }
    }

    /// Whether its workspace is this canonical directory or a parent of it.
    pub fn is_workspace_of(&self, directory: &Path) -> bool {
        self.workspace().is_some_and(|workspace| directory.starts_with(workspace))
    }

    /// How many levels a canonical directory is below the session's workspace; `None` if it is not
    /// below it. The directory in which a run was started also has distance 0.
    pub fn distance_from(&self, directory: &Path) -> Option<usize> {
        let below = self.workspace().and_then(|workspace| directory.strip_prefix(workspace).ok());
        match below.map(|below| below.components().count()) {
            Some(0) => Some(0),
            _ if self.started_in().as_deref() == Some(directory) => Some(0),
            distance => distance,
        }
    }

    /// The session's own directory on this machine, if it has one.
    pub fn directory(&self) -> Option<&Path> {
        match &self.location {
            JournalLocation::Directory(directory) => Some(directory),
            JournalLocation::File(file) => file.parent(),
            JournalLocation::Stored(_) => None,
        }
    }

    /// The journal file, if it is on this machine.
    pub fn file(&self) -> Option<PathBuf> {
        match &self.location {
            JournalLocation::Directory(directory) => {
                Some(crate::file_store::journal_file(directory))
            }
            JournalLocation::File(file) => Some(file.clone()),
            JournalLocation::Stored(_) => None,
        }
    }

    /// Whether this is a file that a person passed, and not a session of a store.
    pub fn is_separate_file(&self) -> bool {
        matches!(self.location, JournalLocation::File(_))
    }

    fn workspace(&self) -> Option<&str> {
        self.beginning.opened.as_ref()?.place.workspace.as_deref()
    }

    /// The directory in which a run was started, if its first event contains it.
    fn started_in(&self) -> Option<PathBuf> {
        let meta = self.beginning.first_event.as_ref()?.meta.as_ref()?;
        meta.get("started_in")?.as_str().map(PathBuf::from)
    }
}

fn file_name(path: Option<&Path>) -> String {
    let name = path.and_then(Path::file_name).unwrap_or_default();
    name.to_string_lossy().into_owned()
}
