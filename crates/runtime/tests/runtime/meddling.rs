//! A file store with which a test can meddle: break an append, watch a read,
//! come between a look at the world and the lock.

use std::io;
use std::sync::{Arc, Mutex};

use jackline_engine::definition::StoredDefinition;
use jackline_engine::observe::Blob;
use jackline_engine::{Digest, EventId, SessionId};
use jackline_journal::{
    Body, DefinitionSource, FileStore, Head, JournalView, Log, Reading, SessionEntry,
    SessionFilter, Store, StoreError,
};

/// How the next append goes wrong.
#[derive(Clone, Copy)]
pub(crate) enum How {
    Panics,
    /// With the number of an operating system's error.
    Fails(i32),
}

/// Something that somebody else does meanwhile.
pub(crate) type Meanwhile = Box<dyn FnOnce() + Send>;

/// What a test wants and learns.
#[derive(Default)]
pub(crate) struct Meddler {
    /// What happens before the next lock is taken, once.
    pub(crate) before_lock: Mutex<Option<Meanwhile>>,
    /// How the next append goes wrong, once.
    pub(crate) next: Mutex<Option<How>>,
    /// From where logs were read.
    pub(crate) reads: Mutex<Vec<u64>>,
}

pub(crate) struct Meddling {
    pub(crate) inner: FileStore,
    pub(crate) meddler: Arc<Meddler>,
}

struct MeddlingLog {
    inner: Box<dyn Log>,
    meddler: Arc<Meddler>,
}

impl Store for Meddling {
    fn open(&self, session: &SessionId) -> Result<Box<dyn Log>, StoreError> {
        let inner = self.inner.open(session)?;
        Ok(Box::new(MeddlingLog { inner, meddler: Arc::clone(&self.meddler) }))
    }

    fn list(&self, filter: &SessionFilter) -> Result<Vec<SessionEntry>, StoreError> {
        self.inner.list(filter)
    }

    fn entry(&self, session: &SessionId) -> Result<Option<SessionEntry>, StoreError> {
        self.inner.entry(session)
    }

    fn view(&self, entry: &SessionEntry, reading: Reading) -> Result<JournalView, StoreError> {
        self.inner.view(entry, reading)
    }

    fn put_blobs(&self, blobs: &[Blob]) -> Result<(), StoreError> {
        self.inner.put_blobs(blobs)
    }

    fn blob(&self, sha256: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.blob(sha256)
    }
}

impl Log for MeddlingLog {
    fn lock(&mut self) -> Result<(), StoreError> {
        let meanwhile = self.meddler.before_lock.lock().unwrap().take();
        if let Some(meanwhile) = meanwhile {
            meanwhile();
        }
        self.inner.lock()
    }

    fn unlock(&mut self) {
        self.inner.unlock();
    }

    fn head(&mut self) -> Result<Option<Head>, StoreError> {
        self.inner.head()
    }

    fn take_repaired(&mut self) -> Option<u64> {
        self.inner.take_repaired()
    }

    fn load_state(&mut self) -> Result<Option<(Head, Vec<u8>)>, StoreError> {
        self.inner.load_state()
    }

    fn append(&mut self, expected: Option<Head>, bodies: &[Body]) -> Result<Head, StoreError> {
        let next = self.meddler.next.lock().unwrap().take();
        match next {
            None => self.inner.append(expected, bodies),
            Some(How::Panics) => panic!("a bug in a store"),
            Some(How::Fails(number)) => Err(StoreError::Io {
                what: "append to the journal",
                source: io::Error::from_raw_os_error(number),
            }),
        }
    }

    fn save_state(&mut self, head: &Head, state: &[u8]) -> Result<(), StoreError> {
        self.inner.save_state(head, state)
    }

    fn read(
        &mut self,
        from: u64,
        each: &mut dyn FnMut(&[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.meddler.reads.lock().unwrap().push(from);
        self.inner.read(from, each)
    }

    fn first_record(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.first_record()
    }

    fn keep_definition(&mut self, definition: &StoredDefinition) -> Result<(), StoreError> {
        self.inner.keep_definition(definition)
    }

    fn definitions(&self) -> Box<dyn DefinitionSource> {
        self.inner.definitions()
    }

    fn latest_snapshot(&mut self) -> Result<Option<u64>, StoreError> {
        self.inner.latest_snapshot()
    }

    fn find(&mut self, id: &EventId) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.find(id)
    }
}
