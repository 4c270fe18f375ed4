//! What the state home remembers of definitions: compiled forms, what files
//! extend, and the last good definition of a workspace.
//!
//! All of it is a cache: what is missing or odd is made again.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use jackline_definition::{decode, encode};
use jackline_engine::definition::StoredDefinition;
use jackline_engine::{Definition, Digest, ENGINE_VERSION, SEMANTICS, Timestamp};
use serde::{Deserialize, Serialize};

use jackline_host::{Document, StateHome};

const FILES_MAGIC: &[u8] = b"JLFILES1\0";

/// What is remembered, in memory and in the state home.
#[derive(Default)]
pub(crate) struct CompiledDefinitions {
    home: Option<Arc<dyn StateHome>>,
    /// Whether nothing is written there.
    only_looks: bool,
    /// Definitions by the digest of their stored form.
    compiled: BTreeMap<Digest, Arc<Definition>>,
    /// The digest that the sources with a checksum make.
    sources: BTreeMap<Digest, Digest>,
    extended: BTreeMap<Digest, Vec<PathBuf>>,
}

/// The definition that last loaded in a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LastGood {
    pub(crate) checksum: Digest,
    pub(crate) at: Timestamp,
    /// The grant it rests on.
    pub(crate) trusted: Option<Digest>,
    /// The files it was made of.
    pub(crate) files: Vec<PathBuf>,
}

impl CompiledDefinitions {
    pub(crate) fn new(home: Option<Arc<dyn StateHome>>) -> Self {
        Self { home, ..Self::default() }
    }

    /// Writes nothing from now on.
    pub(crate) fn only_look(&mut self) {
        self.only_looks = true;
    }

    /// The definition that the sources with a checksum make, where that is known.
    pub(crate) fn of_sources(&mut self, checksum: &Digest) -> Option<StoredDefinition> {
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

    /// The digest in the state home holds for one version: another may make something else of the
    /// same sources.
    fn digest_of_sources(&self, checksum: &Digest) -> Option<Digest> {
        if let Some(known) = self.sources.get(checksum) {
            return Some(*known);
        }
        let bytes = self.read(&Document::Source(*checksum))?;
        let text = std::str::from_utf8(&bytes).ok()?;
        Digest::parse(text.strip_prefix(&source_prefix())?.trim_end())
    }

    /// A definition by the digest of its stored form.
    pub(crate) fn definition(&mut self, digest: &Digest) -> Option<Arc<Definition>> {
        if let Some(known) = self.compiled.get(digest) {
            return Some(Arc::clone(known));
        }
        let definition = Arc::new(self.decoded(digest)?);
        self.compiled.insert(*digest, Arc::clone(&definition));
        Some(definition)
    }

    fn decoded(&self, digest: &Digest) -> Option<Definition> {
        decode(self.read(&Document::Compiled(*digest))?, digest)
    }

    /// Has a definition at hand that is not in the state home.
    pub(crate) fn know(&mut self, checksum: Digest, stored: &StoredDefinition) {
        self.sources.insert(checksum, stored.digest());
        if let Some(definition) = stored.definition() {
            self.compiled.insert(stored.digest(), Arc::clone(definition));
        }
    }

    /// Remembers the definition that sources make.
    pub(crate) fn keep(&mut self, checksum: Digest, definition: Definition) -> StoredDefinition {
        let stored = StoredDefinition::new(Arc::new(definition));
        self.know(checksum, &stored);
        self.keep_compiled(&stored);
        let source = format!("{}{}\n", source_prefix(), stored.digest());
        self.write(&Document::Source(checksum), source.as_bytes());
        stored
    }

    /// Remembers a definition that a journal names.
    pub(crate) fn keep_compiled(&mut self, stored: &StoredDefinition) {
        if let Some(definition) = stored.definition() {
            let digest = stored.digest();
            self.write(&Document::Compiled(digest), &encode(definition, &digest));
            self.compiled.insert(digest, Arc::clone(definition));
        }
    }

    /// What a file extends.
    pub(crate) fn extended(&self, key: &Digest) -> Option<Vec<PathBuf>> {
        if let Some(known) = self.extended.get(key) {
            return Some(known.clone());
        }
        let bytes = self.read(&Document::Extended(*key))?;
        let mut parts = bytes.strip_prefix(FILES_MAGIC)?.split(|byte| *byte == 0);
        let count: usize = std::str::from_utf8(parts.next()?).ok()?.parse().ok()?;
        let mut paths: Vec<&[u8]> = parts.collect();
        // Every path ends with a zero, so that a torn list is no list.
        paths.pop().filter(|rest| rest.is_empty() && paths.len() == count)?;
        Some(paths.into_iter().map(|path| PathBuf::from(OsStr::from_bytes(path))).collect())
    }

    /// Remembers what a file extends.
    pub(crate) fn keep_extended(&mut self, key: Digest, paths: Vec<PathBuf>) {
        let mut bytes = FILES_MAGIC.to_vec();
        bytes.extend_from_slice(format!("{}\0", paths.len()).as_bytes());
        for path in &paths {
            bytes.extend_from_slice(path.as_os_str().as_bytes());
            bytes.push(0);
        }
        self.write(&Document::Extended(key), &bytes);
        self.extended.insert(key, paths);
    }

    /// The definition that last loaded at a place.
    pub(crate) fn last_good(&self, place: &Digest) -> Option<LastGood> {
        serde_json::from_slice(&self.read(&Document::LastGood(*place))?).ok()
    }

    /// Remembers the definition that loaded at a place, where it is another
    /// than before.
    pub(crate) fn keep_last_good(&self, place: &Digest, good: &LastGood) {
        let before = self.last_good(place);
        let same = |before: &LastGood| LastGood { at: good.at, ..before.clone() } == *good;
        if !before.as_ref().is_some_and(same)
            && let Ok(bytes) = serde_json::to_vec(good)
        {
            self.write(&Document::LastGood(*place), &bytes);
        }
    }

    fn read(&self, document: &Document) -> Option<Vec<u8>> {
        self.home.as_ref()?.read(document).ok().flatten()
    }

    fn write(&self, document: &Document, bytes: &[u8]) {
        if let Some(home) = &self.home
            && !self.only_looks
        {
            // What can't be remembered costs time, nothing else.
            let _ = home.write(document, bytes);
        }
    }
}

/// What stands before the digest that sources make.
fn source_prefix() -> String {
    format!("jackline {ENGINE_VERSION} {SEMANTICS} ")
}
