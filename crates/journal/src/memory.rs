//! A store that keeps nothing beyond the process.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jackline_engine::definition::StoredDefinition;
use jackline_engine::observe::Blob;
use jackline_engine::{Definition, Digest, EventId, SessionId};

use crate::chain::seal;
use crate::definitions::LoadedDefinitions;
use crate::error::{Context as _, StoreError};
use crate::head::Head;
use crate::record::{Body, Line, parse_record};
use crate::session_entry::{SessionEntry, SessionFilter};
use crate::store::DefinitionSource;
use crate::view::JournalView;
use crate::{Log, Reading, Store};

/// Sessions in memory; clones share them.
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
    /// Records with their newlines. A record stands at the place of its number.
    lines: Vec<Vec<u8>>,
    head: Option<Head>,
    state: Option<(Head, Vec<u8>)>,
    ids: BTreeMap<EventId, usize>,
}

/// A panic while the lock is held leaves nothing half changed.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
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
    fn open(&self, session: &SessionId) -> Result<Box<dyn Log>, StoreError> {
        let kept = Arc::clone(held(&self.sessions).entry(session.clone()).or_default());
        let (definitions, loaded) = (Arc::clone(&self.definitions), self.loaded.clone());
        Ok(Box::new(MemoryLog { kept, definitions, loaded }))
    }

    /// Lists the sessions in the order of their ids: it keeps no times.
    fn list(&self, _filter: &SessionFilter) -> Result<Vec<SessionEntry>, StoreError> {
        let sessions = held(&self.sessions);
        Ok(sessions.iter().filter_map(|(id, session)| held(session).entry(id)).collect())
    }

    fn entry(&self, session: &SessionId) -> Result<Option<SessionEntry>, StoreError> {
        Ok(held(&self.sessions).get(session).and_then(|kept| held(kept).entry(session)))
    }

    fn view(&self, entry: &SessionEntry, _reading: Reading) -> Result<JournalView, StoreError> {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let sessions = held(&self.sessions);
        let session = entry.stored_session().and_then(|session| sessions.get(session));
        let session = session.ok_or_else(missing).context("find the session in this store")?;
        let session = held(session);
        let (stored, loaded) = (held(&self.definitions).clone(), self.loaded.clone());
        let records = session.lines.iter().map(|line| without_newline(line));
        Ok(JournalView::in_memory(records, session.state.clone(), stored, loaded))
    }

    fn put_blobs(&self, blobs: &[Blob]) -> Result<(), StoreError> {
        let mut kept = held(&self.blobs);
        for blob in blobs {
            kept.entry(blob.sha256).or_insert_with(|| blob.bytes.clone());
        }
        Ok(())
    }

    fn blob(&self, sha256: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(held(&self.blobs).get(sha256).cloned())
    }
}

struct MemoryLog {
    kept: Arc<Mutex<MemorySession>>,
    definitions: SharedForms,
    loaded: LoadedDefinitions,
}

impl Log for MemoryLog {
    // One process, and each operation holds the mutex: runtimes that share a
    // session in memory must not share it between threads.
    fn lock(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn unlock(&mut self) {}

    fn head(&mut self) -> Result<Option<Head>, StoreError> {
        Ok(held(&self.kept).head)
    }

    fn is_behind(&self, head: &Head) -> bool {
        held(&self.kept).head != Some(*head)
    }

    fn take_repaired(&mut self) -> Option<u64> {
        None
    }

    fn load_state(&mut self) -> Result<Option<(Head, Vec<u8>)>, StoreError> {
        Ok(held(&self.kept).state.clone())
    }

    fn append(&mut self, expected: Option<Head>, bodies: &[Body]) -> Result<Head, StoreError> {
        let mut kept = held(&self.kept);
        if kept.head != expected {
            return Err(StoreError::Moved);
        }
        for body in bodies {
            let prev = kept.head.map_or(Digest::ZERO, |head| head.hash);
            let (line, hash) = seal(&body.json, &prev);
            kept.head = Some(Head { seq: body.seq, hash });
            let number = kept.lines.len();
            if let Some(id) = &body.id {
                kept.ids.entry(id.clone()).or_insert(number);
            }
            kept.lines.push(line);
        }
        let nothing = || io::Error::other("there is nothing to append");
        kept.head.ok_or_else(nothing).context("append to the journal")
    }

    fn save_state(&mut self, head: &Head, state: &[u8]) -> Result<(), StoreError> {
        held(&self.kept).state = Some((*head, state.to_vec()));
        Ok(())
    }

    fn read(
        &mut self,
        from: u64,
        each: &mut dyn FnMut(&[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let lines = held(&self.kept).lines.clone();
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        lines.iter().skip(from).try_for_each(|line| each(without_newline(line)))
    }

    fn first_record(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(held(&self.kept).lines.first().map(|line| without_newline(line).to_vec()))
    }

    fn latest_snapshot(&mut self) -> Result<Option<u64>, StoreError> {
        let kept = held(&self.kept);
        let snapshot = |line: &Vec<u8>| match parse_record(without_newline(line)) {
            Ok(Line::Event(record)) if record.snapshot.is_some() => Some(record.seq),
            _ => None,
        };
        Ok(kept.lines.iter().rev().find_map(snapshot))
    }

    fn find(&mut self, id: &EventId) -> Result<Option<Vec<u8>>, StoreError> {
        let kept = held(&self.kept);
        let line = kept.ids.get(id).and_then(|number| kept.lines.get(*number));
        Ok(line.map(|line| without_newline(line).to_vec()))
    }

    fn keep_definition(&mut self, definition: &StoredDefinition) -> Result<(), StoreError> {
        let digest = definition.digest();
        let mut definitions = held(&self.definitions);
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

/// The definitions of a store in memory.
struct MemoryDefinitions {
    forms: SharedForms,
    loaded: LoadedDefinitions,
}

impl DefinitionSource for MemoryDefinitions {
    fn load(&self, digest: &Digest) -> Result<Arc<Definition>, StoreError> {
        self.loaded.load(digest, || Ok(held(&self.forms).get(digest).cloned()))
    }
}
