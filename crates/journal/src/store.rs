//! The traits that a journal store implements.
//!
//! Callers address records by number. Each store decides how to find them.

use std::path::Path;
use std::sync::Arc;

use jackline_engine::definition::StoredDefinition;
use jackline_engine::observe::Blob;
use jackline_engine::{Definition, Digest, EventId, SessionId, Timestamp};

use crate::error::StoreError;
use crate::head::JournalHead;
use crate::record::RecordBody;
use crate::retention::Retention;
use crate::session_entry::{SessionEntry, SessionFilter};
use crate::view::JournalView;

/// A store for the journals of many sessions.
///
/// # Example
///
/// ```
/// use jackline_engine::SessionId;
/// use jackline_journal::{MemoryStore, Store as _};
///
/// let store = MemoryStore::default();
/// let session = SessionId::parse("s1")?;
/// let mut log = store.open(&session)?;
/// log.lock()?;
/// assert_eq!(log.head()?, None);
/// log.unlock();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Store: Send + Sync {
    /// Opens the log of a new or existing session. Does not access any file yet.
    fn open(&self, session: &SessionId) -> Result<Box<dyn SessionLog>, StoreError>;

    /// The sessions with a journal, the most recently written first.
    fn list(&self, filter: &SessionFilter) -> Result<Vec<SessionEntry>, StoreError>;

    /// One session of the list; `None` if it has no journal.
    fn entry(&self, session: &SessionId) -> Result<Option<SessionEntry>, StoreError>;

    /// The journal of a listed session, as it is now.
    fn view(&self, entry: &SessionEntry, reading: ReadMode) -> Result<JournalView, StoreError>;

    /// The journal of a session; `None` if it has none.
    fn view_session(
        &self,
        session: &SessionId,
        reading: ReadMode,
    ) -> Result<Option<JournalView>, StoreError> {
        let entry = self.entry(session)?;
        entry.map(|entry| self.view(&entry, reading)).transpose()
    }

    /// Stores payloads durably. A payload that exists already is not stored twice.
    fn put_blobs(&self, blobs: &[Blob]) -> Result<(), StoreError>;

    /// A payload, unless it has expired.
    fn blob(&self, sha256: &Digest) -> Result<Option<Vec<u8>>, StoreError>;

    /// Removes old or excess data, at most once an hour. Returns the removed sessions.
    fn prune(&self, _keep: &Retention, _now: Timestamp) -> Result<Vec<SessionId>, StoreError> {
        Ok(Vec::new())
    }
}

/// How to read a journal while another process may write to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadMode {
    /// Waits until no record is being written.
    Consistent,
    /// Does not wait, and leaves out a half-written record. Use this to read often.
    Unlocked,
}

/// The journal of one session.
///
/// Callers must call all methods except [`SessionLog::directory`], [`SessionLog::is_behind`],
/// [`SessionLog::load_state`], [`SessionLog::first_record`] and [`SessionLog::definitions`] between
/// [`SessionLog::lock`] and [`SessionLog::unlock`].
pub trait SessionLog: Send {
    /// The session's own directory on this machine, if it has one.
    fn directory(&self) -> Option<&Path> {
        None
    }

    /// Locks the session; waits for a bounded time.
    fn lock(&mut self) -> Result<(), StoreError>;

    /// Releases the lock.
    fn unlock(&mut self);

    /// The end of the journal, after an incomplete record at its end was removed; `None` if the
    /// journal is empty. Fails for a journal that was truncated or tampered with.
    fn head(&mut self) -> Result<Option<JournalHead>, StoreError>;

    /// Whether there may be records after a head. A store that can't know this without the lock
    /// returns `true`.
    fn is_behind(&self, _head: &JournalHead) -> bool {
        true
    }

    /// How many bytes of incomplete records were removed since the last call.
    fn take_repaired_bytes(&mut self) -> Option<u64>;

    /// The last saved state, and the head to which it belongs. Without the lock, it may be
    /// outdated.
    fn load_state(&mut self) -> Result<Option<(JournalHead, Vec<u8>)>, StoreError>;

    /// Appends records durably after the head that the caller expects. Fails with
    /// [`StoreError::HeadChanged`] if the journal has another end.
    fn append(
        &mut self,
        expected: Option<JournalHead>,
        bodies: &[RecordBody],
    ) -> Result<JournalHead, StoreError>;

    /// Saves the state that belongs to a head. It is a cache: losing it costs time, but no records.
    fn save_state(&mut self, head: &JournalHead, state: &[u8]) -> Result<(), StoreError>;

    /// Calls `each` for every record from a number on, without its newline.
    fn read(
        &mut self,
        from: u64,
        each: &mut dyn FnMut(&[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError>;

    /// The opening record of the session.
    fn first_record(&mut self) -> Result<Option<Vec<u8>>, StoreError>;

    /// The number of the latest record with a snapshot.
    fn latest_snapshot(&mut self) -> Result<Option<u64>, StoreError>;

    /// The record of an event that was sent before.
    fn find_event(&mut self, id: &EventId) -> Result<Option<Vec<u8>>, StoreError>;

    /// Stores a definition that a record is about to refer to, for as long as this journal exists.
    fn store_definition(&mut self, definition: &StoredDefinition) -> Result<(), StoreError>;

    /// The definitions that records of this journal refer to. Loading them needs no lock, and is
    /// possible while the journal is read.
    fn definitions(&self) -> Box<dyn DefinitionSource>;
}

/// Loads definitions by the digest of their stored form.
pub trait DefinitionSource {
    /// Loads one definition.
    fn load(&self, digest: &Digest) -> Result<Arc<Definition>, StoreError>;
}
