//! A file store that a test can disturb: an append fails, reads are recorded, or another action
//! runs just before the lock is taken.

use std::io;
use std::sync::{Arc, Mutex};

use jackline_engine::definition::StoredDefinition;
use jackline_engine::observe::Blob;
use jackline_engine::{Digest, EventId, SessionId};
use jackline_journal::{
    DefinitionSource, FileStore, JournalHead, JournalView, ReadMode, RecordBody, SessionEntry,
    SessionFilter, SessionLog, Store, StoreError,
};

/// How the next append fails.
#[derive(Clone, Copy)]
pub(crate) enum AppendFailure {
    Panics,
    /// Fails with this error number of the operating system.
    Fails(i32),
}

/// An action of another process.
pub(crate) type ConcurrentAction = Box<dyn FnOnce() + Send>;

/// The disturbances of a test, and the reads it has observed.
#[derive(Default)]
pub(crate) struct Disturbances {
    /// Runs once, before the next lock is taken.
    pub(crate) before_lock: Mutex<Option<ConcurrentAction>>,
    /// How the next append fails, once.
    pub(crate) next_append: Mutex<Option<AppendFailure>>,
    /// The first record number of each read.
    pub(crate) reads: Mutex<Vec<u64>>,
}

pub(crate) struct DisturbedStore {
    pub(crate) inner: FileStore,
    pub(crate) disturbances: Arc<Disturbances>,
}

struct DisturbedLog {
    inner: Box<dyn SessionLog>,
    disturbances: Arc<Disturbances>,
}

impl Store for DisturbedStore {
    fn open(&self, session: &SessionId) -> Result<Box<dyn SessionLog>, StoreError> {
        let inner = self.inner.open(session)?;
        Ok(Box::new(DisturbedLog { inner, disturbances: Arc::clone(&self.disturbances) }))
    }

    fn list(&self, filter: &SessionFilter) -> Result<Vec<SessionEntry>, StoreError> {
        self.inner.list(filter)
    }

    fn entry(&self, session: &SessionId) -> Result<Option<SessionEntry>, StoreError> {
        self.inner.entry(session)
    }

    fn view(&self, entry: &SessionEntry, reading: ReadMode) -> Result<JournalView, StoreError> {
        self.inner.view(entry, reading)
    }

    fn put_blobs(&self, blobs: &[Blob]) -> Result<(), StoreError> {
        self.inner.put_blobs(blobs)
    }

    fn blob(&self, sha256: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.blob(sha256)
    }
}

impl SessionLog for DisturbedLog {
    fn lock(&mut self) -> Result<(), StoreError> {
        let meanwhile = self.disturbances.before_lock.lock().unwrap().take();
        if let Some(meanwhile) = meanwhile {
            meanwhile();
        }
        self.inner.lock()
    }

    fn unlock(&mut self) {
        self.inner.unlock();
    }

    fn head(&mut self) -> Result<Option<JournalHead>, StoreError> {
        self.inner.head()
    }

    fn take_repaired_bytes(&mut self) -> Option<u64> {
        self.inner.take_repaired_bytes()
    }

    fn load_state(&mut self) -> Result<Option<(JournalHead, Vec<u8>)>, StoreError> {
        self.inner.load_state()
    }

    fn append(
        &mut self,
        expected: Option<JournalHead>,
        bodies: &[RecordBody],
    ) -> Result<JournalHead, StoreError> {
        let next = self.disturbances.next_append.lock().unwrap().take();
        match next {
            None => self.inner.append(expected, bodies),
            Some(AppendFailure::Panics) => panic!("a bug in a store"),
            Some(AppendFailure::Fails(number)) => Err(StoreError::Io {
                what: "append to the journal",
                source: io::Error::from_raw_os_error(number),
            }),
        }
    }

    fn save_state(&mut self, head: &JournalHead, state: &[u8]) -> Result<(), StoreError> {
        self.inner.save_state(head, state)
    }

    fn read(
        &mut self,
        from: u64,
        each: &mut dyn FnMut(&[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.disturbances.reads.lock().unwrap().push(from);
        self.inner.read(from, each)
    }

    fn first_record(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.first_record()
    }

    fn store_definition(&mut self, definition: &StoredDefinition) -> Result<(), StoreError> {
        self.inner.store_definition(definition)
    }

    fn definitions(&self) -> Box<dyn DefinitionSource> {
        self.inner.definitions()
    }

    fn latest_snapshot(&mut self) -> Result<Option<u64>, StoreError> {
        self.inner.latest_snapshot()
    }

    fn find_event(&mut self, id: &EventId) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.find_event(id)
    }
}
