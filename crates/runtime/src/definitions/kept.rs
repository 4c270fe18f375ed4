//! What the state home remembers of definitions: compiled forms, what files
//! extend, and the last good definition of a workspace.
//!
//! ```text
//! definitions/<checksum>.compiled     a definition, checked and lowered
//! definitions/<key of a file>.files   what that file extends
//! definitions/last-good/<place>       what last loaded there
//! ```
//!
//! All of it is a cache: what is missing or odd is made again.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jackline_definition::{decode, encode};
use jackline_engine::{Definition, Digest, Timestamp};
use jackline_journal::{FileStore, write_private};
use serde::{Deserialize, Serialize};

const FILES_MAGIC: &[u8] = b"JLFILES1\0";

/// What is remembered, in memory and on disk.
#[derive(Default)]
pub(crate) struct Kept {
    directory: Option<PathBuf>,
    /// Whether nothing is written there.
    only_looks: bool,
    compiled: BTreeMap<Digest, Arc<Definition>>,
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

impl Kept {
    pub(crate) fn new(store: Option<&FileStore>) -> Self {
        let directory = store.map(|store| store.home().join("definitions"));
        Self { directory, ..Self::default() }
    }

    /// Writes nothing from now on.
    pub(crate) fn only_look(&mut self) {
        self.only_looks = true;
    }

    /// A definition by its checksum.
    pub(crate) fn definition(&mut self, checksum: &Digest) -> Option<Arc<Definition>> {
        if let Some(known) = self.compiled.get(checksum) {
            return Some(Arc::clone(known));
        }
        let definition = Arc::new(self.decoded(checksum)?);
        self.compiled.insert(*checksum, Arc::clone(&definition));
        Some(definition)
    }

    /// Has a definition at hand that is not on disk.
    pub(crate) fn know(&mut self, checksum: Digest, definition: Arc<Definition>) {
        self.compiled.insert(checksum, definition);
    }

    /// Whether a definition with this checksum has loaded before.
    pub(crate) fn has(&self, checksum: &Digest) -> bool {
        self.compiled.contains_key(checksum) || self.decoded(checksum).is_some()
    }

    fn decoded(&self, checksum: &Digest) -> Option<Definition> {
        let bytes = fs::read(self.path(&format!("{checksum}.compiled"))?).ok()?;
        decode(bytes, checksum)
    }

    /// Remembers a definition.
    pub(crate) fn keep(&mut self, checksum: Digest, definition: Definition) -> Arc<Definition> {
        self.write(&format!("{checksum}.compiled"), &encode(&definition, &checksum));
        let definition = Arc::new(definition);
        self.compiled.insert(checksum, Arc::clone(&definition));
        definition
    }

    /// What a file extends.
    pub(crate) fn extended(&self, key: &Digest) -> Option<Vec<PathBuf>> {
        if let Some(known) = self.extended.get(key) {
            return Some(known.clone());
        }
        let bytes = fs::read(self.path(&format!("{key}.files"))?).ok()?;
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
        self.write(&format!("{key}.files"), &bytes);
        self.extended.insert(key, paths);
    }

    /// The definition that last loaded at a place.
    pub(crate) fn last_good(&self, place: &Digest) -> Option<LastGood> {
        let bytes = fs::read(self.path(&format!("last-good/{place}"))?).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Remembers the definition that loaded at a place, where it is another
    /// than before.
    pub(crate) fn keep_last_good(&self, place: &Digest, good: &LastGood) {
        let before = self.last_good(place);
        let same = |before: &LastGood| LastGood { at: good.at, ..before.clone() } == *good;
        if !before.as_ref().is_some_and(same)
            && let Ok(bytes) = serde_json::to_vec(good)
        {
            self.write(&format!("last-good/{place}"), &bytes);
        }
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        self.directory.as_deref().map(|directory: &Path| directory.join(name))
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        if let Some(path) = self.path(name)
            && !self.only_looks
        {
            // What can't be remembered costs time, nothing else.
            let _ = write_private(&path, bytes);
        }
    }
}
