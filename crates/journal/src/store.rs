//! What a place has to do that keeps journals.
//!
//! Records are addressed by their number. How a store finds them is its own matter.

use std::path::Path;
use std::sync::Arc;

use jackline_engine::definition::StoredDefinition;
use jackline_engine::observe::Blob;
use jackline_engine::{Definition, Digest, EventId, SessionId, Timestamp};

use crate::error::StoreError;
use crate::head::Head;
use crate::record::Body;
use crate::retention::Retention;
use crate::session_entry::{SessionEntry, SessionFilter};
use crate::view::JournalView;

/// Keeps the journals of many sessions.
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
    /// Opens the log of a session, new or not. Touches nothing yet.
    fn open(&self, session: &SessionId) -> Result<Box<dyn Log>, StoreError>;

    /// The sessions that have a journal, the one that was written to last first.
    fn list(&self, filter: &SessionFilter) -> Result<Vec<SessionEntry>, StoreError>;

    /// One session of the list; none where it has no journal.
    fn entry(&self, session: &SessionId) -> Result<Option<SessionEntry>, StoreError>;

    /// The journal of a listed session, as it is at this moment.
    fn view(&self, entry: &SessionEntry, reading: Reading) -> Result<JournalView, StoreError>;

    /// The journal of a session; none where it has none.
    fn view_session(
        &self,
        session: &SessionId,
        reading: Reading,
    ) -> Result<Option<JournalView>, StoreError> {
        let entry = self.entry(session)?;
        entry.map(|entry| self.view(&entry, reading)).transpose()
    }

    /// Keeps payloads durably; what is there already is kept once.
    fn put_blobs(&self, blobs: &[Blob]) -> Result<(), StoreError>;

    /// A payload, unless it has expired.
    fn blob(&self, sha256: &Digest) -> Result<Option<Vec<u8>>, StoreError>;

    /// Removes what is too old or too much, now and then; gives the sessions that were removed.
    fn prune(&self, _keep: &Retention, _now: Timestamp) -> Result<Vec<SessionId>, StoreError> {
        Ok(Vec::new())
    }
}

/// How a journal is read while another process may write to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Waits until no record is half written.
    Consistent,
    /// Waits for nothing; a record that is half written is left out. For readers that look often.
    Glance,
}

/// The journal of one session.
///
/// Everything but [`Log::directory`], [`Log::is_behind`], [`Log::load_state`],
/// [`Log::first_record`] and [`Log::definitions`] is called between [`Log::lock`] and
/// [`Log::unlock`].
pub trait Log: Send {
    /// A directory of this machine that belongs to this session alone, where there is one.
    fn directory(&self) -> Option<&Path> {
        None
    }

    /// Waits for the session, for a bounded time.
    fn lock(&mut self) -> Result<(), StoreError>;

    /// Lets others in.
    fn unlock(&mut self);

    /// Where the journal ends, after a torn tail was repaired; none if it is empty. Refuses a
    /// journal that was truncated or tampered with.
    fn head(&mut self) -> Result<Option<Head>, StoreError>;

    /// Whether there may be records behind a head. A store that can't tell without the lock
    /// answers yes.
    fn is_behind(&self, _head: &Head) -> bool {
        true
    }

    /// How many bytes of a torn tail were removed since the last call.
    fn take_repaired(&mut self) -> Option<u64>;

    /// The latest state that was saved, and the head it belongs to. Without the lock it is
    /// perhaps not the latest.
    fn load_state(&mut self) -> Result<Option<(Head, Vec<u8>)>, StoreError>;

    /// Appends records durably behind the head that the caller expects. Refuses with
    /// [`StoreError::Moved`] where the journal ends elsewhere.
    fn append(&mut self, expected: Option<Head>, bodies: &[Body]) -> Result<Head, StoreError>;

    /// Saves the state that belongs to the head. It is a cache: losing it costs time, not records.
    fn save_state(&mut self, head: &Head, state: &[u8]) -> Result<(), StoreError>;

    /// Calls `each` for every record from a number on, without its newline.
    fn read(
        &mut self,
        from: u64,
        each: &mut dyn FnMut(&[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError>;

    /// The record that says what the session was opened with.
    fn first_record(&mut self) -> Result<Option<Vec<u8>>, StoreError>;

    /// The number of the latest record that carries a snapshot.
    fn latest_snapshot(&mut self) -> Result<Option<u64>, StoreError>;

    /// The record of an event that was sent before.
    fn find(&mut self, id: &EventId) -> Result<Option<Vec<u8>>, StoreError>;

    /// Keeps a definition that a record is about to name, for as long as this journal exists.
    fn keep_definition(&mut self, definition: &StoredDefinition) -> Result<(), StoreError>;

    /// The definitions that records of this journal name. They can be loaded without the lock, and
    /// while the journal is read.
    fn definitions(&self) -> Box<dyn DefinitionSource>;
}

/// Loads definitions by the digest of their stored form.
pub trait DefinitionSource {
    /// One definition.
    fn load(&self, digest: &Digest) -> Result<Arc<Definition>, StoreError>;
}
