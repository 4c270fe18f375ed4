//! The definition for a session that runs already.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jackline_definition::FILE_NAME;
use jackline_engine::Digest;
use jackline_engine::definition::StoredDefinition;

use super::survey::real;
use super::{DefinitionError, Definitions, Resolved, Source, find_file};

/// A definition as its files are now.
#[derive(Debug, Clone)]
pub(crate) struct Reloaded {
    pub(crate) definition: StoredDefinition,
    pub(crate) checksum: Digest,
    /// Its files as in [`Resolved`], each with the sha256 of what was in it.
    pub(crate) files: Vec<(PathBuf, Digest)>,
}

impl Definitions {
    /// The definition for a session that was opened in a directory with other
    /// `files`: what a session would begin with that starts now, and nothing
    /// older in its stead.
    pub(crate) fn reload(
        &self,
        directory: &Path,
        files: &[String],
    ) -> Result<Reloaded, DefinitionError> {
        if !directory.is_dir() {
            return Err(DefinitionError::NoWorkspace(directory.to_owned()));
        }
        let repository = match &self.source {
            Source::Made(Resolved { definition, stored, checksum, .. }) => {
                let definition = StoredDefinition::with_digest(*stored, Arc::clone(definition));
                let checksum = *checksum;
                return Ok(Reloaded { definition, checksum, files: Vec::new() });
            }
            Source::File(file) => Some(file.clone()),
            Source::Workspace => {
                let first = Path::new(files.first().ok_or(DefinitionError::Made)?);
                self.find_again(first, directory)?
            }
        };
        let found = self.found(repository);
        if found.is_empty() {
            return Err(DefinitionError::NotFound(directory.to_owned()));
        }
        let (survey, definition, checksum) = self.load(&found, &self.place(&found, directory))?;
        let files = survey.read().into_iter().map(|(path, bytes)| (path, Digest::of(bytes)));
        Ok(Reloaded { definition, checksum, files: files.collect() })
    }

    /// The repository's file, for a session whose first file was `first`. One
    /// that had none may get one; one that had one must not lose it unsaid.
    fn find_again(
        &self,
        first: &Path,
        directory: &Path,
    ) -> Result<Option<PathBuf>, DefinitionError> {
        let is_first = |file: &Path| file == first || real(file) == first;
        let layers = [&self.host.layers.user, &self.host.layers.managed].into_iter().flatten();
        let had_none = { layers }.any(|file| is_first(file));
        let mut above = directory.ancestors().map(|above| above.join(FILE_NAME));
        if !had_none && !above.any(|file| is_first(&file)) {
            return Err(DefinitionError::Named(first.to_owned()));
        }
        match find_file(directory) {
            None if !had_none => Err(DefinitionError::NotFound(directory.to_owned())),
            found => Ok(found),
        }
    }
}
