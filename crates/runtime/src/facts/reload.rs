//! The definition with which a new session would start now.

use std::path::{Path, PathBuf};

use jackline_engine::Digest;
use jackline_engine::facts::{DefinitionFile, NewDefinition, ReloadFact};

use super::FactContext;
use crate::definitions::{DefinitionError, ReloadCandidate};

impl FactContext<'_> {
    /// The current definition, if it differs from the one in force.
    pub(super) fn reload(&self) -> ReloadFact {
        match self.reloaded() {
            Ok(new) if self.is_in_force(&new) => ReloadFact::Same,
            Ok(ReloadCandidate { definition: lowered, checksum, files }) => {
                let files = files.into_iter().map(|file| self.file(file)).collect();
                ReloadFact::New(Box::new(NewDefinition { checksum, files, lowered }))
            }
            Err(error) => ReloadFact::Broken { reason: error.brief() },
        }
    }

    fn reloaded(&self) -> Result<ReloadCandidate, DefinitionError> {
        let workspace = self.workspace.unwrap_or_else(|| Path::new(""));
        self.definitions.reload(workspace, self.definition_files)
    }

    /// The same files may compile to another definition in another version of the program.
    fn is_in_force(&self, new: &ReloadCandidate) -> bool {
        new.checksum == self.definition_checksum
            && new.definition.digest() == self.definition_digest
    }

    fn file(&self, (path, sha256): (PathBuf, Digest)) -> DefinitionFile {
        let by_person = self.is_vouched_edit(&path, &sha256);
        DefinitionFile { path: path.display().to_string(), sha256, by_person }
    }
}
