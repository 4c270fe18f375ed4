//! A definition as journals name it: by the sha256 of its stored form.
//! The stored form is JSON, so that a later version can still read it. The store saves it once,
//! however many sessions run under the definition.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Definition;
use crate::digest::Digest;

/// A definition and the digest that names it. Only the digest is serialised, so a value that is
/// read back must be loaded before it can be used.
#[derive(Clone)]
pub struct StoredDefinition {
    digest: Digest,
    definition: Option<Arc<Definition>>,
}

/// Why bytes are not the stored form of a definition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoredDefinitionError {
    /// The bytes do not have the digest that was asked for.
    #[error("its content does not match the sha256 in its name")]
    Digest,
    /// The bytes are not a definition that this version can read.
    #[error("this version of jackline can't read it: {0}")]
    Unreadable(alloc::string::String),
}

impl StoredDefinition {
    /// Names a definition. This serialises it, which takes a millisecond for many rules.
    pub fn new(definition: Arc<Definition>) -> Self {
        let digest = Digest::of(&stored_form(&definition));
        Self { digest, definition: Some(definition) }
    }

    /// A definition whose digest was computed before.
    pub fn with_digest(digest: Digest, definition: Arc<Definition>) -> Self {
        Self { digest, definition: Some(definition) }
    }

    /// Reads a stored form that was looked up by its digest.
    pub fn parse(digest: Digest, bytes: &[u8]) -> Result<Self, StoredDefinitionError> {
        if Digest::of(bytes) != digest {
            return Err(StoredDefinitionError::Digest);
        }
        let definition = serde_json::from_slice(bytes).map_err(|error| {
            StoredDefinitionError::Unreadable(alloc::string::ToString::to_string(&error))
        })?;
        Ok(Self { digest, definition: Some(Arc::new(definition)) })
    }

    /// The sha256 of the stored form.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The definition, once it is loaded.
    pub fn definition(&self) -> Option<&Arc<Definition>> {
        self.definition.as_ref()
    }

    /// The stored form, once the definition is loaded.
    pub fn stored_form(&self) -> Option<Vec<u8>> {
        self.definition.as_deref().map(stored_form)
    }
}

fn stored_form(definition: &Definition) -> Vec<u8> {
    // Plain data with text keys can always be written as JSON.
    serde_json::to_vec(definition).unwrap_or_default()
}

impl fmt::Debug for StoredDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.definition.as_ref().map(|definition| definition.name.as_str());
        f.debug_struct("StoredDefinition")
            .field("digest", &self.digest)
            .field("name", &name)
            .finish_non_exhaustive()
    }
}

impl PartialEq for StoredDefinition {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for StoredDefinition {}

impl Serialize for StoredDefinition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.digest.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for StoredDefinition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self { digest: Digest::deserialize(deserializer)?, definition: None })
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;

    #[test]
    fn a_stored_form_is_read_back_and_changed_bytes_are_refused() {
        let definition = Definition { name: "a/b".to_string(), ..Definition::default() };
        let stored = StoredDefinition::new(Arc::new(definition.clone()));
        let bytes = stored.stored_form().unwrap();
        let read = StoredDefinition::parse(stored.digest(), &bytes).unwrap();
        assert_eq!(read.definition().unwrap().as_ref(), &definition);
        let mut changed = bytes.clone();
        changed[3] ^= 1;
        let refused = StoredDefinition::parse(stored.digest(), &changed);
        assert_eq!(refused.unwrap_err(), StoredDefinitionError::Digest);
        let other = StoredDefinition::parse(Digest::of(b"{}"), b"{}");
        assert!(matches!(other, Err(StoredDefinitionError::Unreadable(_))));
    }

    #[test]
    fn only_the_digest_is_serialised() {
        let stored = StoredDefinition::new(Arc::default());
        let json = serde_json::to_string(&stored).unwrap();
        assert_eq!(json, alloc::format!("\"{}\"", stored.digest()));
        let read: StoredDefinition = serde_json::from_str(&json).unwrap();
        assert_eq!(read, stored);
        assert!(read.definition().is_none());
    }
}
