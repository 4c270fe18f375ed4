//! A store that keeps nothing beyond the process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jackline_engine::{Blob, Digest, EventId, SessionId};

use crate::chain::seal;
use crate::error::StoreError;
use crate::head::Head;
use crate::record::{Body, Line, parse_record};
use crate::{Log, Store};

/// Sessions in memory; clones share them.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    sessions: Arc<Mutex<BTreeMap<SessionId, Arc<Mutex<Kept>>>>>,
    blobs: Arc<Mutex<BTreeMap<Digest, Vec<u8>>>>,
}

#[derive(Debug, Default)]
struct Kept {
    lines: Vec<Vec<u8>>,
    head: Option<Head>,
    state: Option<(Head, Vec<u8>)>,
    ids: BTreeMap<EventId, usize>,
}

/// Whoever panicked while holding the lock has changed nothing half-way.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store for MemoryStore {
    fn open(&self, session: &SessionId) -> Result<Box<dyn Log>, StoreError> {
        let kept = Arc::clone(held(&self.sessions).entry(session.clone()).or_default());
        Ok(Box::new(MemoryLog { kept }))
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
    kept: Arc<Mutex<Kept>>,
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

    fn take_repaired(&mut self) -> Option<u64> {
        None
    }

    fn load_state(&mut self) -> Result<Option<(Head, Vec<u8>)>, StoreError> {
        Ok(held(&self.kept).state.clone())
    }

    fn append(&mut self, bodies: &[Body]) -> Result<Head, StoreError> {
        let mut kept = held(&self.kept);
        for body in bodies {
            let before = kept.head;
            let (line, hash) = seal(&body.json, &before.map_or(Digest::ZERO, |head| head.hash));
            let bytes = before.map_or(0, |head| head.bytes) + line.len() as u64;
            kept.head = Some(Head { seq: body.seq, hash, bytes });
            let number = kept.lines.len();
            if let Some(id) = &body.id {
                kept.ids.entry(id.clone()).or_insert(number);
            }
            kept.lines.push(line);
        }
        Ok(kept.head.unwrap_or(Head { seq: 0, hash: Digest::ZERO, bytes: 0 }))
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
        let mut offset = 0;
        for line in lines {
            if offset >= from {
                each(line.strip_suffix(b"\n").unwrap_or(&line))?;
            }
            offset += line.len() as u64;
        }
        Ok(())
    }

    fn line_at(&mut self, from: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let mut offset = 0;
        let kept = held(&self.kept);
        let line = kept.lines.iter().find(|line| {
            let begins = offset;
            offset += line.len() as u64;
            begins == from
        });
        Ok(line.map(|line| line.strip_suffix(b"\n").unwrap_or(line).to_vec()))
    }

    fn latest_snapshot(&mut self) -> Result<Option<u64>, StoreError> {
        let (mut offset, mut found) = (0, None);
        for line in &held(&self.kept).lines {
            if matches!(parse_record(line), Ok(Line::Event(record)) if record.snapshot.is_some()) {
                found = Some(offset);
            }
            offset += line.len() as u64;
        }
        Ok(found)
    }

    fn find(&mut self, id: &EventId) -> Result<Option<Vec<u8>>, StoreError> {
        let kept = held(&self.kept);
        let line = kept.ids.get(id).and_then(|number| kept.lines.get(*number));
        Ok(line.map(|line| line.strip_suffix(b"\n").unwrap_or(line).to_vec()))
    }
}
