//! A cache of the definitions that journals refer to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jackline_engine::definition::StoredDefinition;
use jackline_engine::{Definition, Digest};

use crate::error::StoreError;

/// The largest number of cached definitions.
const CACHED_DEFINITIONS_MAX: usize = 64;

/// Definitions by the digest of their stored form. Clones share the cache.
#[derive(Debug, Clone, Default)]
pub(crate) struct LoadedDefinitions {
    loaded: Arc<Mutex<BTreeMap<Digest, Arc<Definition>>>>,
}

impl LoadedDefinitions {
    /// A definition; `read` returns its stored form if it is not cached yet.
    pub(crate) fn load(
        &self,
        digest: &Digest,
        read: impl FnOnce() -> Result<Option<Vec<u8>>, StoreError>,
    ) -> Result<Arc<Definition>, StoreError> {
        if let Some(cached) = self.lock().get(digest) {
            return Ok(Arc::clone(cached));
        }
        let bytes = read()?.ok_or(StoreError::DefinitionMissing { digest: *digest })?;
        let unreadable = |error: jackline_engine::definition::StoredDefinitionError| {
            StoreError::DefinitionUnreadable { digest: *digest, reason: error.to_string() }
        };
        let stored = StoredDefinition::parse(*digest, &bytes).map_err(unreadable)?;
        let missing = StoreError::DefinitionMissing { digest: *digest };
        let definition = Arc::clone(stored.definition().ok_or(missing)?);
        let mut loaded = self.lock();
        if loaded.len() >= CACHED_DEFINITIONS_MAX {
            loaded.clear();
        }
        loaded.insert(*digest, Arc::clone(&definition));
        Ok(definition)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Digest, Arc<Definition>>> {
        // A panic while the lock is held does not leave a half-changed map.
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
