//! Definitions that journals name, each read once by a process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jackline_engine::definition::StoredDefinition;
use jackline_engine::{Definition, Digest};

use crate::error::StoreError;

/// How many definitions are held at once.
const LOADED_MAX: usize = 64;

/// Definitions by the digest of their stored form; clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct LoadedDefinitions {
    loaded: Arc<Mutex<BTreeMap<Digest, Arc<Definition>>>>,
}

impl LoadedDefinitions {
    /// A definition; `read` gives its stored form where it is not loaded yet.
    pub(crate) fn load(
        &self,
        digest: &Digest,
        read: impl FnOnce() -> Result<Option<Vec<u8>>, StoreError>,
    ) -> Result<Arc<Definition>, StoreError> {
        if let Some(known) = self.lock().get(digest) {
            return Ok(Arc::clone(known));
        }
        let bytes = read()?.ok_or(StoreError::DefinitionMissing { digest: *digest })?;
        let unreadable = |error: jackline_engine::definition::StoredDefinitionError| {
            StoreError::DefinitionUnreadable { digest: *digest, reason: error.to_string() }
        };
        let stored = StoredDefinition::parse(*digest, &bytes).map_err(unreadable)?;
        let missing = StoreError::DefinitionMissing { digest: *digest };
        let definition = Arc::clone(stored.definition().ok_or(missing)?);
        let mut loaded = self.lock();
        if loaded.len() >= LOADED_MAX {
            loaded.clear();
        }
        loaded.insert(*digest, Arc::clone(&definition));
        Ok(definition)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Digest, Arc<Definition>>> {
        // A panic while the lock is held leaves a map that is whole.
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
