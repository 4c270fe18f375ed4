//! The journal: every verdict, hash-chained, durable before it is shown.
//!
//! A [`Store`] keeps one [`Log`] a session. [`FileStore`] is the embedded one,
//! an append-only file a session; [`MemoryStore`] is for tests and for library
//! users who keep nothing. [`contract`] is what every store must pass.

mod chain;
pub mod contract;
mod error;
mod export;
mod file;
mod file_log;
mod head;
mod ids;
mod lines;
mod lock;
mod memory;
mod names;
mod reader;
mod record;
mod retention;
mod slots;
mod verify;

pub use chain::{LineFault, Sealed, check_line, seal};
pub use error::StoreError;
pub use export::{Export, ExportError, Redacted};
pub use file::{FileStore, create_directory, write_private};
pub use file_log::FileLog;
pub use head::Head;
pub use lock::{exclusive as lock_exclusive, shared as lock_shared};
pub use memory::MemoryStore;
pub use names::directory_name;
pub use reader::{JournalFile, read_first, read_parent, read_started_in};
pub use record::{
    Body, EventRecord, Line, Note, Opened, OpenedDefinition, RecordError, Snapshot, parse_record,
};
pub use retention::Retention;
pub use verify::{Finding, FindingKind, Report, Verifier};

use std::path::{Path, PathBuf};

use jackline_engine::{Blob, Digest, EventId, SessionId, Timestamp};

/// A place that keeps the journals of many sessions.
pub trait Store: Send {
    /// Opens the log of a session, new or not. Touches nothing yet.
    fn open(&self, session: &SessionId) -> Result<Box<dyn Log>, StoreError>;

    /// Keeps payloads durably; what is there already is kept once.
    fn put_blobs(&self, blobs: &[Blob]) -> Result<(), StoreError>;

    /// A payload, unless it has expired.
    fn blob(&self, sha256: &Digest) -> Result<Option<Vec<u8>>, StoreError>;

    /// Removes what is too old or too much, now and then; gives the sessions
    /// that were removed.
    fn prune(&self, _keep: &Retention, _now: Timestamp) -> Result<Vec<PathBuf>, StoreError> {
        Ok(Vec::new())
    }
}

/// The journal of one session.
///
/// Everything but [`Log::directory`], [`Log::is_behind`], [`Log::load_state`] and [`Log::line_at`] is
/// called between [`Log::lock`] and [`Log::unlock`].
pub trait Log: Send {
    /// The directory that belongs to this session alone, where there is one.
    fn directory(&self) -> Option<&Path> {
        None
    }

    /// Waits for the session, for a bounded time.
    fn lock(&mut self) -> Result<(), StoreError>;

    /// Lets others in.
    fn unlock(&mut self);

    /// Where the journal ends, after a torn tail was repaired; none if it is
    /// empty. Refuses a journal that was truncated or tampered with.
    fn head(&mut self) -> Result<Option<Head>, StoreError>;

    /// Whether there may be records behind a head. Whoever can't say without the lock
    /// says yes.
    fn is_behind(&self, _head: &Head) -> bool {
        true
    }

    /// How many bytes of a torn tail were removed since this was last asked.
    fn take_repaired(&mut self) -> Option<u64>;

    /// The latest state that was saved, and the head it belongs to. May be
    /// called without the lock, and is then perhaps not the latest.
    fn load_state(&mut self) -> Result<Option<(Head, Vec<u8>)>, StoreError>;

    /// Appends records durably. Each is a JSON object without its last brace,
    /// with the id that a resend of its event would carry.
    fn append(&mut self, bodies: &[Body]) -> Result<Head, StoreError>;

    /// Saves the state that belongs to the head. It is a cache: losing it
    /// costs time, not records.
    fn save_state(&mut self, head: &Head, state: &[u8]) -> Result<(), StoreError>;

    /// Calls `each` for every line that begins at or after byte `from`.
    fn read(
        &mut self,
        from: u64,
        each: &mut dyn FnMut(&[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError>;

    /// The line that begins at a byte; the first one, at 0, says what the
    /// session was opened with.
    fn line_at(&mut self, from: u64) -> Result<Option<Vec<u8>>, StoreError>;

    /// Where the latest record that carries a snapshot begins.
    fn latest_snapshot(&mut self) -> Result<Option<u64>, StoreError>;

    /// The record of an event that was sent before.
    fn find(&mut self, id: &EventId) -> Result<Option<Vec<u8>>, StoreError>;
}
