//! Small documents that outlast a process: trust, approvals, compiled definitions.
//!
//! Data of a session belongs to the store, with its journal. The documents here belong to a person
//! or to a machine.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jackline_engine::Digest;
use jackline_journal::{StoreError, write_private};

/// One document of a state home.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StateDocument {
    /// The definitions that a person trusts, one JSON object per line.
    Trust,
    /// The agents that a person approved, one JSON object per line.
    Approvals,
    /// The compiled form of the definition with this digest.
    Compiled(Digest),
    /// The digest of the definition that sources with this checksum produce.
    Source(Digest),
    /// The files that a file with this key extends.
    Extended(Digest),
    /// The definition that last loaded at this place.
    LastGood(Digest),
}

impl StateDocument {
    /// The path below the directory of a state home.
    fn path(&self) -> PathBuf {
        match self {
            Self::Trust => PathBuf::from("trust"),
            Self::Approvals => PathBuf::from("approvals"),
            Self::Compiled(digest) => PathBuf::from(format!("definitions/{digest}.compiled")),
            Self::Source(checksum) => PathBuf::from(format!("definitions/{checksum}.source")),
            Self::Extended(key) => PathBuf::from(format!("definitions/{key}.files")),
            Self::LastGood(place) => PathBuf::from(format!("definitions/last-good/{place}")),
        }
    }
}

/// Computes the new contents of a document; `None` leaves it unchanged.
pub type DocumentChange<'a> = &'a mut dyn FnMut(Option<&[u8]>) -> Option<Vec<u8>>;

/// Stores documents. A reader sees a document completely or not at all.
pub trait StateHome: Send + Sync {
    /// Reads a document; `None` if it does not exist.
    fn read(&self, document: &StateDocument) -> io::Result<Option<Vec<u8>>>;

    /// Replaces a document durably.
    fn write(&self, document: &StateDocument, bytes: &[u8]) -> Result<(), StoreError>;

    /// Changes a document while no other process changes one.
    fn change(
        &self,
        document: &StateDocument,
        change: DocumentChange<'_>,
    ) -> Result<(), StoreError>;

    /// The directory of the documents on this machine, if there is one.
    fn directory(&self) -> Option<&Path> {
        None
    }
}

impl fmt::Debug for dyn StateHome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateHome").field("directory", &self.directory()).finish()
    }
}

/// A state home in a directory of this machine.
#[derive(Debug, Clone)]
pub struct FileStateHome {
    directory: PathBuf,
}

impl FileStateHome {
    /// The state home in a directory, which need not exist yet.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    fn path(&self, document: &StateDocument) -> PathBuf {
        self.directory.join(document.path())
    }
}

impl StateHome for FileStateHome {
    fn read(&self, document: &StateDocument) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.path(document)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn write(&self, document: &StateDocument, bytes: &[u8]) -> Result<(), StoreError> {
        Ok(write_private(&self.path(document), bytes)?)
    }

    fn change(
        &self,
        document: &StateDocument,
        change: DocumentChange<'_>,
    ) -> Result<(), StoreError> {
        // Two concurrent changes must not overwrite each other. If there is no directory to lock
        // yet, there is nothing to lose.
        let lock = File::open(&self.directory).ok();
        if let Some(lock) = &lock {
            let _ = lock.lock();
        }
        let before = self.read(document).ok().flatten();
        change(before.as_deref()).map_or(Ok(()), |after| self.write(document, &after))
    }

    fn directory(&self) -> Option<&Path> {
        Some(&self.directory)
    }
}

/// Documents in memory, for programs that persist nothing. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct MemoryStateHome {
    documents: Arc<Mutex<BTreeMap<StateDocument, Vec<u8>>>>,
}

impl MemoryStateHome {
    fn with<T>(&self, work: impl FnOnce(&mut BTreeMap<StateDocument, Vec<u8>>) -> T) -> T {
        // A panic while the lock is held leaves the map in a valid state.
        work(&mut self.documents.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl StateHome for MemoryStateHome {
    fn read(&self, document: &StateDocument) -> io::Result<Option<Vec<u8>>> {
        Ok(self.with(|documents| documents.get(document).cloned()))
    }

    fn write(&self, document: &StateDocument, bytes: &[u8]) -> Result<(), StoreError> {
        self.with(|documents| documents.insert(*document, bytes.to_vec()));
        Ok(())
    }

    fn change(
        &self,
        document: &StateDocument,
        change: DocumentChange<'_>,
    ) -> Result<(), StoreError> {
        self.with(|documents| {
            if let Some(after) = change(documents.get(document).map(Vec::as_slice)) {
                documents.insert(*document, after);
            }
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tests that every state home must pass.
    fn check(home: &dyn StateHome) {
        let (one, other) = (StateDocument::Trust, StateDocument::Compiled(Digest::of(b"x")));
        assert_eq!(home.read(&one).unwrap(), None);
        home.write(&one, b"a").unwrap();
        home.write(&other, b"b").unwrap();
        assert_eq!(home.read(&one).unwrap().as_deref(), Some(b"a".as_slice()));
        home.change(&one, &mut |before| Some([before.unwrap(), b"c"].concat())).unwrap();
        assert_eq!(home.read(&one).unwrap().as_deref(), Some(b"ac".as_slice()));
        home.change(&one, &mut |_| None).unwrap();
        assert_eq!(home.read(&one).unwrap().as_deref(), Some(b"ac".as_slice()));
        assert_eq!(home.read(&other).unwrap().as_deref(), Some(b"b".as_slice()));
    }

    #[test]
    fn both_state_homes_store_documents() {
        let directory = tempfile::tempdir().unwrap();
        check(&FileStateHome::new(directory.path().join("state")));
        check(&MemoryStateHome::default());
    }
}
