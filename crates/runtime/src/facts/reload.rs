//! What a session would run under that starts now.

use std::path::{Path, PathBuf};

use jackline_engine::Digest;
use jackline_engine::facts::{DefinitionFile, NewDefinition, ReloadFact};

use super::Scene;
use crate::definitions::{DefinitionError, Reloaded};

impl Scene<'_> {
    /// The definition as it is now, if it is another.
    pub(super) fn reload(&self) -> ReloadFact {
        match self.reloaded() {
            Ok(new) if self.is_in_force(&new) => ReloadFact::Same,
            Ok(Reloaded { definition: lowered, checksum, files }) => {
                let files = files.into_iter().map(|file| self.file(file)).collect();
                ReloadFact::New(Box::new(NewDefinition { checksum, files, lowered }))
            }
            Err(error) => ReloadFact::Broken { reason: error.brief() },
        }
    }

    fn reloaded(&self) -> Result<Reloaded, DefinitionError> {
        let workspace = self.workspace.unwrap_or_else(|| Path::new(""));
        self.definitions.reload(workspace, self.definition_files)
    }

    /// The same files may make another definition where the program is another.
    fn is_in_force(&self, new: &Reloaded) -> bool {
        new.checksum == self.definition_checksum
            && new.definition.digest() == self.definition_digest
    }

    fn file(&self, (path, sha256): (PathBuf, Digest)) -> DefinitionFile {
        let by_person = self.is_vouched(&path, &sha256);
        DefinitionFile { path: path.display().to_string(), sha256, by_person }
    }
}
