//! The cache of definitions in the state home: compiled forms, lists of extended files, and the
//! last good definition of a workspace.
//!
//! This is only a cache. Missing or invalid entries are computed again.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use jackline_definition::{decode, encode};
use jackline_engine::definition::StoredDefinition;
use jackline_engine::{Definition, Digest, ENGINE_VERSION, SEMANTICS, Timestamp};
use serde::{Deserialize, Serialize};

use jackline_host::{StateDocument, StateHome};

const FILES_MAGIC: &[u8] = b"JLFILES1\0";

/// The cache in memory and in the state home.
#[derive(Default)]
pub(crate) struct CompiledDefinitions {
    home: Option<Arc<dyn StateHome>>,
    /// Whether nothing is written to the state home.
    is_read_only: bool,
    /// Compiled definitions by the digest of their stored form.
    compiled: BTreeMap<Digest, Arc<Definition>>,
    /// The digest of the stored form, by the checksum of the sources.
    sources: BTreeMap<Digest, Digest>,
    extended: BTreeMap<Digest, Vec<PathBuf>>,
}

/// The definition that last loaded in a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LastGoodDefinition {
    pub(crate) checksum: Digest,
    pub(crate) at: Timestamp,
    /// The checksum of the trusted file on which it depends.
    pub(crate) trusted: Option<Digest>,
    /// The source files.
    pub(crate) files: Vec<PathBuf>,
}

impl CompiledDefinitions {
    pub(crate) fn new(home: Option<Arc<dyn StateHome>>) -> Self {
        Self { home, ..Self::default() }
    }

    /// Stops all writing to the state home.
    pub(crate) fn make_read_only(&mut self) {
        self.is_read_only = true;
    }

    /// The cached definition for a source checksum.
    pub(crate) fn find_by_sources(&mut self, checksum: &Digest) -> Option<StoredDefinition> {
        let digest = self.digest_of_sources(checksum)?;
        let definition = self.definition(&digest)?;
        self.sources.insert(*checksum, digest);
        Some(StoredDefinition::with_digest(digest, definition))
    }

    /// Whether sources with this checksum have loaded before.
    pub(crate) fn has_sources(&self, checksum: &Digest) -> bool {
        let digest = self.digest_of_sources(checksum);
        digest.is_some_and(|digest| {
            self.compiled.contains_key(&digest) || self.decoded(&digest).is_some()
        })
    }

    /// Reads the digest for a source checksum. An entry in the state home is valid for one version
    /// only: another version may compile the same sources differently.
    fn digest_of_sources(&self, checksum: &Digest) -> Option<Digest> {
        if let Some(cached) = self.sources.get(checksum) {
            return Some(*cached);
        }
        let bytes = self.read(&StateDocument::Source(*checksum))?;
        let text = std::str::from_utf8(&bytes).ok()?;
        Digest::parse(text.strip_prefix(&source_prefix())?.trim_end())
    }

    /// A definition by the digest of its stored form.
    pub(crate) fn definition(&mut self, digest: &Digest) -> Option<Arc<Definition>> {
        if let Some(cached) = self.compiled.get(digest) {
            return Some(Arc::clone(cached));
        }
        let definition = Arc::new(self.decoded(digest)?);
        self.compiled.insert(*digest, Arc::clone(&definition));
        Some(definition)
    }

    fn decoded(&self, digest: &Digest) -> Option<Definition> {
        decode(self.read(&StateDocument::Compiled(*digest))?, digest)
    }

    /// Adds a definition to memory, without writing it to the state home.
    pub(crate) fn remember(&mut self, checksum: Digest, stored: &StoredDefinition) {
        self.sources.insert(checksum, stored.digest());
        if let Some(definition) = stored.definition() {
            self.compiled.insert(stored.digest(), Arc::clone(definition));
        }
    }

    /// Caches the definition that the sources compile to.
    pub(crate) fn store(&mut self, checksum: Digest, definition: Definition) -> StoredDefinition {
        let stored = StoredDefinition::new(Arc::new(definition));
        self.remember(checksum, &stored);
        self.store_compiled(&stored);
        let source = format!("{}{}\n", source_prefix(), stored.digest());
        self.write(&StateDocument::Source(checksum), source.as_bytes());
        stored
    }

    /// Caches a definition that a journal refers to.
    pub(crate) fn store_compiled(&mut self, stored: &StoredDefinition) {
        if let Some(definition) = stored.definition() {
            let digest = stored.digest();
            self.write(&StateDocument::Compiled(digest), &encode(definition, &digest));
            self.compiled.insert(digest, Arc::clone(definition));
        }
    }

    /// The files that a file extends.
    pub(crate) fn extended(&self, key: &Digest) -> Option<Vec<PathBuf>> {
        if let Some(cached) = self.extended.get(key) {
            return Some(cached.clone());
        }
        let bytes = self.read(&StateDocument::Extended(*key))?;
        let mut parts = bytes.strip_prefix(FILES_MAGIC)?.split(|byte| *byte == 0);
        let count: usize = std::str::from_utf8(parts.next()?).ok()?.parse().ok()?;
        let mut paths: Vec<&[u8]> = parts.collect();
        // Every path ends with a zero byte, so a truncated list is detected.
        paths.pop().filter(|rest| rest.is_empty() && paths.len() == count)?;
        Some(paths.into_iter().map(|path| PathBuf::from(OsStr::from_bytes(path))).collect())
    }

    /// Caches which files a file extends.
    pub(crate) fn store_extended(&mut self, key: Digest, paths: Vec<PathBuf>) {
        let mut bytes = FILES_MAGIC.to_vec();
        bytes.extend_from_slice(format!("{}\0", paths.len()).as_bytes());
        for path in &paths {
            bytes.extend_from_slice(path.as_os_str().as_bytes());
            bytes.push(0);
        }
        self.write(&StateDocument::Extended(key), &bytes);
        self.extended.insert(key, paths);
    }

    /// The last good definition for a key.
    pub(crate) fn last_good(&self, place: &Digest) -> Option<LastGoodDefinition> {
        serde_json::from_slice(&self.read(&StateDocument::LastGood(*place))?).ok()
    }

    /// Stores the last good definition for a key, if it differs from the stored one.
    pub(crate) fn store_last_good(&self, place: &Digest, good: &LastGoodDefinition) {
        let before = self.last_good(place);
        let same = |before: &LastGoodDefinition| {
            LastGoodDefinition { at: good.at, ..before.clone() } == *good
        };
        if !before.as_ref().is_some_and(same)
            && let Ok(bytes) = serde_json::to_vec(good)
        {
            self.write(&StateDocument::LastGood(*place), &bytes);
        }
    }

    fn read(&self, document: &StateDocument) -> Option<Vec<u8>> {
        self.home.as_ref()?.read(document).ok().flatten()
    }

    fn write(&self, document: &StateDocument, bytes: &[u8]) {
        if let Some(home) = &self.home
            && !self.is_read_only
        {
            // A failed write to the cache only costs time later.
            let _ = home.write(document, bytes);
        }
    }
}

/// The text before the digest in a source entry.
fn source_prefix() -> String {
    format!("jackline {ENGINE_VERSION} {SEMANTICS} ")
}
