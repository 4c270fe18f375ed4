//! Definitions by checksum: read once, compiled once, pinned for a session.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jackline_definition::{Diagnostics, FILE_NAME, decode, encode, load};
use jackline_engine::definition::{Policy, PolicyRule};
use jackline_engine::{CUSTOM_POLICIES_MAX, Definition, Digest};
use jackline_journal::{FileStore, OpenedDefinition, write_private};

/// Why there is no definition.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    /// No file was found.
    #[error("no `{FILE_NAME}` in `{}` or above it; write one, or name one with -d", .0.display())]
    NotFound(PathBuf),
    /// The file can't be read.
    #[error("can't read the definition `{}`: {source}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the file system said.
        source: std::io::Error,
    },
    /// The file is wrong.
    #[error("{0}")]
    Invalid(Diagnostics),
    /// A policy that is never asked looks like a guard and is none.
    #[error("`{0}` is registered, and the definition does not name it")]
    NeverAsked(String),
    /// State is bounded, and so is what custom policies can remember.
    #[error("a definition may have {CUSTOM_POLICIES_MAX} custom policies")]
    TooManyPolicies,
}

/// A definition and where it came from.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// What the engine runs on.
    pub definition: Arc<Definition>,
    /// The sha256 of its source.
    pub checksum: Digest,
    /// The file, unless it was made in Rust.
    pub file: Option<PathBuf>,
}

/// Finds and keeps definitions.
pub struct Definitions {
    source: Source,
    cache: Option<PathBuf>,
    known: BTreeMap<Digest, Arc<Definition>>,
}

/// Where the definition of a new session comes from.
enum Source {
    /// `jackline.yaml` in the workspace or above it.
    Workspace,
    /// One file.
    File(PathBuf),
    /// One that was made in Rust.
    Made(Resolved),
}

impl Definitions {
    /// Definitions from `flag`, or else from the workspace; compiled ones are
    /// kept in the state home of `store`.
    pub fn new(flag: Option<PathBuf>, store: Option<&FileStore>) -> Self {
        let source = flag.map_or(Source::Workspace, Source::File);
        Self { source, cache: cache_of(store), known: BTreeMap::new() }
    }

    /// One definition that was made in Rust, for every session.
    pub fn made(
        definition: Definition,
        store: Option<&FileStore>,
    ) -> Result<Self, DefinitionError> {
        let is_custom = |policy: &&Policy| matches!(policy.rule, PolicyRule::Custom { .. });
        if definition.policies.iter().filter(is_custom).count() > CUSTOM_POLICIES_MAX {
            return Err(DefinitionError::TooManyPolicies);
        }
        let checksum = Digest::of(&encode(&definition, &Digest::ZERO));
        let made = Resolved { definition: Arc::new(definition), checksum, file: None };
        Ok(Self { source: Source::Made(made), cache: cache_of(store), known: BTreeMap::new() })
    }

    /// The definition for a new session in a directory.
    pub fn resolve(&mut self, directory: &Path) -> Result<Resolved, DefinitionError> {
        let file = match &self.source {
            Source::Made(made) => return Ok(made.clone()),
            Source::File(file) => file.clone(),
            Source::Workspace => find_file(directory)
                .ok_or_else(|| DefinitionError::NotFound(directory.to_owned()))?,
        };
        let source = std::fs::read(&file)
            .map_err(|source| DefinitionError::Unreadable { path: file.clone(), source })?;
        let checksum = Digest::of(&source);
        let definition = match self.cached(&checksum) {
            Some(definition) => definition,
            None => {
                let loaded =
                    load(&source, &file.display().to_string()).map_err(DefinitionError::Invalid)?;
                self.keep(checksum, loaded)
            }
        };
        let file = std::fs::canonicalize(&file).unwrap_or(file);
        Ok(Resolved { definition, checksum, file: Some(file) })
    }

    /// The file that was named for all sessions.
    pub(crate) fn named(&self) -> Option<&Path> {
        match &self.source {
            Source::File(file) => Some(file),
            Source::Workspace | Source::Made(_) => None,
        }
    }

    /// The definition a session was opened with; `opened` is read only where
    /// the compiled one is gone.
    pub(crate) fn pinned<E>(
        &mut self,
        checksum: &Digest,
        opened: impl FnOnce() -> Result<OpenedDefinition, E>,
    ) -> Result<Arc<Definition>, E> {
        match self.cached(checksum) {
            Some(definition) => Ok(definition),
            None => opened().map(|opened| self.keep(*checksum, opened.lowered)),
        }
    }

    fn cached(&mut self, checksum: &Digest) -> Option<Arc<Definition>> {
        if let Some(known) = self.known.get(checksum) {
            return Some(Arc::clone(known));
        }
        let bytes = std::fs::read(self.compiled_path(checksum)?).ok()?;
        let definition = Arc::new(decode(&bytes, checksum)?);
        self.known.insert(*checksum, Arc::clone(&definition));
        Some(definition)
    }

    fn keep(&mut self, checksum: Digest, definition: Definition) -> Arc<Definition> {
        if let Some(path) = self.compiled_path(&checksum) {
            // A cache that can't be written costs time, nothing else.
            let _ = write_private(&path, &encode(&definition, &checksum));
        }
        let definition = Arc::new(definition);
        self.known.insert(checksum, Arc::clone(&definition));
        definition
    }

    fn compiled_path(&self, checksum: &Digest) -> Option<PathBuf> {
        self.cache.as_ref().map(|cache| cache.join(format!("{checksum}.compiled")))
    }
}

fn cache_of(store: Option<&FileStore>) -> Option<PathBuf> {
    store.map(|store| store.home().join("definitions"))
}

/// `jackline.yaml` here or in a parent.
pub fn find_file(directory: &Path) -> Option<PathBuf> {
    directory.ancestors().map(|above| above.join(FILE_NAME)).find(|file| file.is_file())
}
