//! A store that is lost when the process ends.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jackline_engine::definition::StoredDefinition;
use jackline_engine::observe::Blob;
use jackline_engine::{Definition, Digest, EventId, SessionId};

use crate::chain::seal;
use crate::definitions::LoadedDefinitions;
use crate::error::{IoContext as _, StoreError};
use crate::head::JournalHead;
use crate::record::{JournalLine, RecordBody, parse_record};
use crate::session_entry::{SessionEntry, SessionFilter};
use crate::store::DefinitionSource;
use crate::view::JournalView;
use crate::{ReadMode, SessionLog, Store};

/// Sessions in memory. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    sessions: Arc<Mutex<BTreeMap<SessionId, Arc<Mutex<MemorySession>>>>>,
    blobs: Arc<Mutex<BTreeMap<Digest, Vec<u8>>>>,
    definitions: SharedForms,
    loaded: LoadedDefinitions,
}

/// The stored forms of definitions.
type SharedForms = Arc<Mutex<BTreeMap<Digest, Vec<u8>>>>;

#[derive(Debug, Default)]
struct MemorySession {
    /// Records with their newlines. A record's index is its number.
    lines: Vec<Vec<u8>>,
    head: Option<JournalHead>,
    state: Option<(JournalHead, Vec<u8>)>,
    ids: BTreeMap<EventId, usize>,
}

/// Locks a mutex. A panic while it is locked does not leave a half-made change.
fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn without_newline(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap_or(line)
}

impl MemorySession {
    fn entry(&self, session: &SessionId) -> Option<SessionEntry> {
        let records = self.lines.iter().map(|line| without_newline(line));
        SessionEntry::of_records(session, records, None)
    }
}

impl Store for MemoryStore {
    fn open(&self, session: &SessionId) -> Result<Box<dyn SessionLog>, StoreError> {
        let memory_session =
            Arc::clone(lock_mutex(&self.sessions).entry(session.clone()).or_default());
        let (definitions, loaded) = (Arc::clone(&self.definitions), self.loaded.clone());
        Ok(Box::new(MemoryLog { session: memory_session, definitions, loaded }))
    }

    /// Lists the sessions in the order of their ids, because this store has no times.
    fn list(&self, _filter: &SessionFilter) -> Result<Vec<SessionEntry>, StoreError> {
        let sessions = lock_mutex(&self.sessions);
        Ok(sessions.iter().filter_map(|(id, session)| lock_mutex(session).entry(id)).collect())
    }

    fn entry(&self, session: &SessionId) -> Result<Option<SessionEntry>, StoreError> {
        Ok(lock_mutex(&self.sessions)
            .get(session)
            .and_then(|memory_session| lock_mutex(memory_session).entry(session)))
    }

    fn view(&self, entry: &SessionEntry, _reading: ReadMode) -> Result<JournalView, StoreError> {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let sessions = lock_mutex(&self.sessions);
        let session = entry.stored_session().and_then(|session| sessions.get(session));
        let session = session.ok_or_else(missing).context("find the session in this store")?;
        let session = lock_mutex(session);
        let (stored, loaded) = (lock_mutex(&self.definitions).clone(), self.loaded.clone());
        let records = session.lines.iter().map(|line| without_newline(line));
        Ok(JournalView::in_memory(records, session.state.clone(), stored, loaded))
    }

    fn put_blobs(&self, blobs: &[Blob]) -> Result<(), StoreError> {
        let mut stored = lock_mutex(&self.blobs);
        for blob in blobs {
            stored.entry(blob.sha256).or_insert_with(|| blob.bytes.clone());
        }
        Ok(())
    }

    fn blob(&self, sha256: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(lock_mutex(&self.blobs).get(sha256).cloned())
    }
}

struct MemoryLog {
    session: Arc<Mutex<MemorySession>>,
    definitions: SharedForms,
    loaded: LoadedDefinitions,
}

impl SessionLog for MemoryLog {
    // A memory store has one process, and each operation locks the mutex. Runtimes that share a
    // session in memory must be in the same thread.
    fn lock(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn unlock(&mut self) {}

    fn head(&mut self) -> Result<Option<JournalHead>, StoreError> {
        Ok(lock_mutex(&self.session).head)
    }

    fn is_behind(&self, head: &JournalHead) -> bool {
        lock_mutex(&self.session).head != Some(*head)
    }

    fn take_repaired_bytes(&mut self) -> Option<u64> {
        None
    }

    fn load_state(&mut self) -> Result<Option<(JournalHead, Vec<u8>)>, StoreError> {
        Ok(lock_mutex(&self.session).state.clone())
    }

    fn append(
        &mut self,
        expected: Option<JournalHead>,
        bodies: &[RecordBody],
    ) -> Result<JournalHead, StoreError> {
        let mut session = lock_mutex(&self.session);
        if session.head != expected {
            return Err(StoreError::HeadChanged);
        }
        for body in bodies {
            let prev = session.head.map_or(Digest::ZERO, |head| head.hash);
            let (line, hash) = seal(&body.json, &prev);
            session.head = Some(JournalHead { seq: body.seq, hash });
            let number = session.lines.len();
            if let Some(id) = &body.id {
                session.ids.entry(id.clone()).or_insert(number);
            }
            session.lines.push(line);
        }
        let nothing = || io::Error::other("there is nothing to append");
        session.head.ok_or_else(nothing).context("append to the journal")
    }

    fn save_state(&mut self, head: &JournalHead, state: &[u8]) -> Result<(), StoreError> {
        lock_mutex(&self.session).state = Some((*head, state.to_vec()));
        Ok(())
    }

    fn read(
        &mut self,
        from: u64,
        each: &mut dyn FnMut(&[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let lines = lock_mutex(&self.session).lines.clone();
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        lines.iter().skip(from).try_for_each(|line| each(without_newline(line)))
    }

    fn first_record(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(lock_mutex(&self.session).lines.first().map(|line| without_newline(line).to_vec()))
    }

    fn latest_snapshot(&mut self) -> Result<Option<u64>, StoreError> {
        let session = lock_mutex(&self.session);
        let snapshot = |line: &Vec<u8>| match parse_record(without_newline(line)) {
            Ok(JournalLine::Event(record)) if record.snapshot.is_some() => Some(record.seq),
            _ => None,
        };
        Ok(session.lines.iter().rev().find_map(snapshot))
    }

    fn find_event(&mut self, id: &EventId) -> Result<Option<Vec<u8>>, StoreError> {
        let session = lock_mutex(&self.session);
        let line = session.ids.get(id).and_then(|number| session.lines.get(*number));
        Ok(line.map(|line| without_newline(line).to_vec()))
    }

    fn store_definition(&mut self, definition: &StoredDefinition) -> Result<(), StoreError> {
        let digest = definition.digest();
        let mut definitions = lock_mutex(&self.definitions);
        if let Entry::Vacant(vacant) = definitions.entry(digest) {
            let missing = StoreError::DefinitionMissing { digest };
            vacant.insert(definition.stored_form().ok_or(missing)?);
        }
        Ok(())
    }

    fn definitions(&self) -> Box<dyn DefinitionSource> {
        let (forms, loaded) = (Arc::clone(&self.definitions), self.loaded.clone());
        Box::new(MemoryDefinitions { forms, loaded })
    }
}

/// The definitions of a memory store.
struct MemoryDefinitions {
    forms: SharedForms,
    loaded: LoadedDefinitions,
}

impl DefinitionSource for MemoryDefinitions {
    fn load(&self, digest: &Digest) -> Result<Arc<Definition>, StoreError> {
        self.loaded.load(digest, || Ok(lock_mutex(&self.forms).get(digest).cloned()))
    }
}
