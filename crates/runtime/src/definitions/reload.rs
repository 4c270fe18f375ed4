//! The definition for a session that is already running.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jackline_definition::FILE_NAME;
use jackline_engine::Digest;
use jackline_engine::definition::StoredDefinition;

use super::survey::real_path;
use super::{DefinitionError, DefinitionOrigin, Definitions, ResolvedDefinition, find_file};

/// A definition as its files are now.
#[derive(Debug, Clone)]
pub(crate) struct ReloadCandidate {
    pub(crate) definition: StoredDefinition,
    pub(crate) checksum: Digest,
    /// The files as in [`ResolvedDefinition`], each with the SHA-256 of its contents.
    pub(crate) files: Vec<(PathBuf, Digest)>,
}

impl Definitions {
    /// The definition for a session that was opened in a directory with other `files`. This is the
    /// definition with which a new session would start now. It never falls back to an older one.
    pub(crate) fn reload(
        &self,
        directory: &Path,
        files: &[String],
    ) -> Result<ReloadCandidate, DefinitionError> {
        if !directory.is_dir() {
            return Err(DefinitionError::NoWorkspace(directory.to_owned()));
        }
        let repository = match &self.source {
            DefinitionOrigin::Made(ResolvedDefinition { definition, stored, checksum, .. }) => {
                let definition = StoredDefinition::with_digest(*stored, Arc::clone(definition));
                let checksum = *checksum;
                return Ok(ReloadCandidate { definition, checksum, files: Vec::new() });
            }
            DefinitionOrigin::File(file) => Some(file.clone()),
            DefinitionOrigin::Workspace => {
                let first = Path::new(files.first().ok_or(DefinitionError::BuiltInCode)?);
                self.find_repository_file(first, directory)?
            }
        };
        let paths = self.layer_paths(repository);
        if paths.is_empty() {
            return Err(DefinitionError::NotFound(directory.to_owned()));
        }
        let (survey, definition, checksum) =
            self.load(&paths, &self.last_good_key(&paths, directory))?;
        let files = survey.read().into_iter().map(|(path, bytes)| (path, Digest::of(bytes)));
        Ok(ReloadCandidate { definition, checksum, files: files.collect() })
    }

    /// Finds the repository's file for a session whose first file was `first`. A session without
    /// one may get one. A session that had one must not lose it without an error.
    fn find_repository_file(
        &self,
        first: &Path,
        directory: &Path,
    ) -> Result<Option<PathBuf>, DefinitionError> {
        let is_first = |file: &Path| file == first || real_path(file) == first;
        let layers = [&self.host.layers.user, &self.host.layers.managed].into_iter().flatten();
        let had_none = { layers }.any(|file| is_first(file));
        let mut above = directory.ancestors().map(|above| above.join(FILE_NAME));
        if !had_none && !above.any(|file| is_first(&file)) {
            return Err(DefinitionError::OutsideWorkspace(first.to_owned()));
        }
        match find_file(directory) {
            None if !had_none => Err(DefinitionError::NotFound(directory.to_owned())),
            file => Ok(file),
        }
    }
}
