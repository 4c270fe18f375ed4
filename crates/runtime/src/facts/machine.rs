//! This machine as a source of facts: its files, repositories, definitions and checks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jackline_engine::facts::{DefinitionFact, Tracked, VerificationFact, Wants, WatchedFact};
use jackline_engine::{Digest, Fact, Query};

use super::absences::Absences;
use super::files::Files;
use super::{Deadline, FactError, FactSource, Scene};
use crate::edits::{REMOVED, is_vouched_for};
use crate::git::{self, Git};
use crate::restore;
use crate::verification::{Check, Verifications};
use jackline_host::clock;

/// Looks at this machine.
#[derive(Default)]
pub(crate) struct Machine {
    pub(crate) verifications: Verifications,
    /// Names that were not there before.
    absences: Absences,
}

impl FactSource for Machine {
    fn answer(
        &mut self,
        scene: &Scene<'_>,
        queries: &[Query],
        _deadline: Deadline,
    ) -> Result<Vec<Fact>, FactError> {
        let path_of = |query: &'_ Query| match query {
            Query::Ignored { path } => Some(path.clone()),
            _ => None,
        };
        // One process answers them all.
        let paths: Vec<String> = queries.iter().filter_map(path_of).collect();
        let ignored = scene.ignored(&paths);
        Ok(queries.iter().map(|query| self.fact(scene, query, &ignored)).collect())
    }
}

impl Machine {
    fn fact(&self, scene: &Scene<'_>, query: &Query, ignored: &BTreeMap<String, bool>) -> Fact {
        match query {
            Query::File { path, wants } => Fact::File(scene.files().look_at(path, *wants)),
            Query::Changed { files } => Fact::Changed(scene.files().changed(files).collect()),
            Query::Definition => Fact::Definition(scene.definition_fact()),
            Query::Pins { definition, workflow } => {
                Fact::Pins(scene.definitions.pins(definition, workflow.as_deref()))
            }
            Query::Reload => Fact::Reload(scene.reload()),
            Query::Protect { files } => Fact::Protect(self.watched(scene, files)),
            Query::Git { dir } => Fact::Git(match scene.files().absolute(dir) {
                Some(directory) => Git::default().status(&directory),
                None => git::unsaved(),
            }),
            Query::Ignored { path } => {
                Fact::Ignored(ignored.get(path).copied().unwrap_or_default())
            }
            Query::Verification { run, line, timeout_seconds } => {
                Fact::Verification(self.verification(scene, *run, line, *timeout_seconds))
            }
            Query::Watched { files, since } => {
                let mut watched = self.watched(scene, files);
                let since = since.unwrap_or_else(|| clock::now().wall);
                for (path, fact) in &mut watched {
                    scene.reports().explain(path, fact, since);
                }
                Fact::Watched(watched)
            }
            // Guards written in Rust are asked, not the machine.
            Query::Feedback { .. }
            | Query::PolicyCheck { .. }
            | Query::PolicyResult { .. }
            | Query::Checker { .. } => Fact::Unknown,
        }
    }

    /// Those of the protected files that look different. What they hold is kept
    /// before a call can change it.
    pub(crate) fn watched(
        &self,
        scene: &Scene<'_>,
        tracked: &[Tracked],
    ) -> BTreeMap<String, WatchedFact> {
        let files = scene.files();
        let (mut seen, mut absent) = (BTreeMap::new(), self.absences.look());
        for file in tracked {
            if file.look == 0 && files.named(&file.path).is_some_and(|path| absent.lacks(&path)) {
                continue;
            }
            if files.glance(&file.path) == Some(file.look) {
                continue;
            }
            // What lies outside has no look by its name here, and is there all the same.
            let look = files.look_at(&file.path, Wants::default()).look;
            let look = look.or_else(|| files.glance(&file.path)).unwrap_or(0);
            if look == file.look {
                continue;
            }
            let path = files.absolute(&file.path);
            let kept = path.as_ref().and_then(|path| restore::keep(scene.store, path).ok());
            // What can't be kept, as a link or a huge file, is known by how it looks.
            let sha256 = kept.or_else(|| (look != 0).then(|| unkept(look)));
            let contents = if look == 0 { Some(Digest::of(REMOVED)) } else { sha256 };
            let by_person =
                path.zip(contents).is_some_and(|(path, it)| scene.is_vouched(&path, &it));
            let fact = WatchedFact { look, sha256, by_person, ..WatchedFact::default() };
            seen.insert(file.path.clone(), fact);
        }
        seen
    }

    fn verification(
        &self,
        scene: &Scene<'_>,
        run: u64,
        line: &str,
        timeout_seconds: u32,
    ) -> VerificationFact {
        let (Some(directory), Some(workspace)) = (scene.session_directory, scene.workspace) else {
            let reason = "it needs a store of files and a workspace".to_owned();
            return VerificationFact::Broken { reason };
        };
        let checks = &directory.join("checks");
        let check = Check { checks, workspace, run, line, timeout_seconds };
        self.verifications.look(&check)
    }
}

impl Scene<'_> {
    pub(super) fn files(&self) -> Files<'_> {
        Files::of(self.workspace)
    }

    /// Whether a person had one of our own commands write these contents.
    pub(super) fn is_vouched(&self, path: &Path, contents: &Digest) -> bool {
        let home = self.definitions.given_home();
        home.is_some_and(|home| is_vouched_for(home, path, contents, clock::now().wall))
    }

    fn ignored(&self, paths: &[String]) -> BTreeMap<String, bool> {
        let files = self.files();
        let named: Vec<(&str, PathBuf)> = paths
            .iter()
            // What is around the workspace has no say about all of it.
            .filter(|path| *path != ".")
            .filter_map(|path| files.absolute(path).map(|absolute| (path.as_str(), absolute)))
            .collect();
        let absolute: Vec<&Path> = named.iter().map(|(_, path)| path.as_path()).collect();
        let ignored =
            if absolute.is_empty() { Vec::new() } else { Git::default().ignored(&absolute) };
        let is_ignored = |path: &str| {
            named
                .iter()
                .any(|(name, absolute)| *name == path && ignored.contains(&absolute.as_path()))
        };
        paths.iter().map(|path| (path.clone(), is_ignored(path))).collect()
    }

    fn definition_fact(&self) -> DefinitionFact {
        let (files, checksum) = (self.definition_files, self.definition_checksum);
        self.definitions.look(files, self.workspace, checksum)
    }
}

/// Stands for the contents of a file that is not kept.
fn unkept(look: u64) -> Digest {
    Digest::of(format!("not kept, looks like {look}").as_bytes())
}

#[cfg(test)]
mod tests;
