//! This machine as a source of facts: its files, repositories, definitions and checks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jackline_engine::facts::{
    DefinitionFact, FileDetails, TrackedFile, VerificationFact, WatchedFact,
};
use jackline_engine::{Digest, Fact, Query};

use super::file_search::find_file;
use super::files::FileInspector;
use super::missing_paths::MissingPathCache;
use super::{FactContext, FactDeadline, FactError, FactSource};
use crate::git::{self, GitProgram, GitQuestion};
use crate::restore;
use crate::verification::{VerificationRun, VerificationRunner};
use crate::vouched_edits::{REMOVED, is_vouched_for};
use jackline_host::clock;

/// Answers queries from this machine.
#[derive(Default)]
pub(crate) struct LocalMachine {
    pub(crate) verifications: VerificationRunner,
    /// A cache of paths that do not exist.
    absences: MissingPathCache,
}

impl FactSource for LocalMachine {
    fn answer(
        &mut self,
        scene: &FactContext<'_>,
        queries: &[Query],
        _deadline: FactDeadline,
    ) -> Result<Vec<Fact>, FactError> {
        let path_of = |query: &'_ Query| match query {
            Query::Ignored { path } => Some(path.clone()),
            _ => None,
        };
        // One `git` process answers all these queries.
        let paths: Vec<String> = queries.iter().filter_map(path_of).collect();
        let ignored = scene.ignored(&paths);
        // All questions about what git changes share one time limit.
        let git = GitProgram::default();
        let question = GitQuestion::begin(&git);
        Ok(queries.iter().map(|query| self.fact(scene, query, &ignored, question)).collect())
    }
}

impl LocalMachine {
    fn fact(
        &self,
        scene: &FactContext<'_>,
        query: &Query,
        ignored: &BTreeMap<String, bool>,
        question: GitQuestion<'_>,
    ) -> Fact {
        match query {
            Query::File { path, wants } => Fact::File(scene.files().inspect(path, *wants)),
            Query::Changed { files } => Fact::Changed(scene.files().changed(files).collect()),
            Query::Definition => Fact::Definition(scene.definition_fact()),
            Query::Pins { definition, workflow } => {
                Fact::Pins(scene.definitions.pins(definition, workflow.as_deref()))
            }
            Query::Reload => Fact::Reload(scene.reload()),
            Query::Protect { files } => Fact::Protect(self.changed_files(scene, files)),
            Query::Git { dir } => Fact::Git(match scene.files().absolute_path(dir) {
                Some(directory) => GitProgram::default().status(&directory),
                None => git::unsaved_fact(),
            }),
            Query::GitChange { dir, change, files, .. } => {
                Fact::GitChange(scene.predict(question, dir, change, files))
            }
            Query::Hook { path } => Fact::Hook(scene.hook_state(path)),
            Query::FileSearch { search } => Fact::FileSearch(find_file(&scene.files(), search)),
            Query::FileChanges { files } => Fact::FileChanges(scene.file_changes(question, files)),
            Query::Ignored { path } => {
                Fact::Ignored(ignored.get(path).copied().unwrap_or_default())
            }
            Query::Verification { run, line, timeout_seconds } => {
                Fact::Verification(self.verification(scene, *run, line, *timeout_seconds))
            }
            Query::Watched { files, since } => {
                let mut watched = self.changed_files(scene, files);
                let since = since.unwrap_or_else(|| clock::now().wall);
                for (path, fact) in &mut watched {
                    scene.reports().explain_change(path, fact, since);
                }
                Fact::Watched(watched)
            }
            // Extensions written in Rust answer these queries, not the machine.
            Query::Feedback { .. }
            | Query::PolicyCheck { .. }
            | Query::PolicyResult { .. }
            | Query::Checker { .. } => Fact::Unknown,
        }
    }

    /// The protected files whose stamp changed. Their contents are stored before a call can change
    /// them.
    pub(crate) fn changed_files(
        &self,
        scene: &FactContext<'_>,
        tracked: &[TrackedFile],
    ) -> BTreeMap<String, WatchedFact> {
        let files = scene.files();
        let (mut seen, mut absent) = (BTreeMap::new(), self.absences.begin_check());
        for file in tracked {
            if file.stamp == 0
                && files.system_path(&file.path).is_some_and(|path| absent.is_surely_missing(&path))
            {
                continue;
            }
            if files.stamp(&file.path) == Some(file.stamp) {
                continue;
            }
            // A file outside the workspace has no stamp under this path, so the stamp is read
            // through its link.
            let look = files.inspect(&file.path, FileDetails::default()).stamp;
            let look = look.or_else(|| files.stamp(&file.path)).unwrap_or(0);
            if look == file.stamp {
                continue;
            }
            let path = files.absolute_path(&file.path);
            let stored = path
                .as_ref()
                .and_then(|path| restore::store_file(scene.store, &scene.known_target(path)).ok());
            // A file that can't be stored, such as a link or a huge file, is identified by its
            // stamp.
            let sha256 = stored.or_else(|| (look != 0).then(|| stamp_digest(look)));
            let contents = if look == 0 { Some(Digest::of(REMOVED)) } else { sha256 };
            let by_person =
                path.zip(contents).is_some_and(|(path, it)| scene.is_vouched_edit(&path, &it));
            let fact = WatchedFact { stamp: look, sha256, by_person, ..WatchedFact::default() };
            seen.insert(file.path.clone(), fact);
        }
        seen
    }

    fn verification(
        &self,
        scene: &FactContext<'_>,
        run: u64,
        line: &str,
        timeout_seconds: u32,
    ) -> VerificationFact {
        let (Some(directory), Some(workspace)) = (scene.session_directory, scene.workspace) else {
            let reason = "a verification needs a session directory and a workspace".to_owned();
            return VerificationFact::Broken { reason };
        };
        let checks = &directory.join("checks");
        let check = VerificationRun { checks, workspace, run, line, timeout_seconds };
        self.verifications.check_state(&check)
    }
}

impl FactContext<'_> {
    pub(super) fn files(&self) -> FileInspector<'_> {
        FileInspector::of(self.workspace)
    }

    /// Whether a person wrote these contents with one of our own commands.
    pub(super) fn is_vouched_edit(&self, path: &Path, contents: &Digest) -> bool {
        let home = self.definitions.state_directory();
        home.is_some_and(|home| is_vouched_for(home, path, contents, clock::now().wall))
    }

    fn ignored(&self, paths: &[String]) -> BTreeMap<String, bool> {
        let files = self.files();
        let named: Vec<(&str, PathBuf)> = paths
            .iter()
            // Ignore rules above the workspace do not apply to the workspace as a whole.
            .filter(|path| *path != ".")
            .filter_map(|path| files.absolute_path(path).map(|absolute| (path.as_str(), absolute)))
            .collect();
        let absolute: Vec<&Path> = named.iter().map(|(_, path)| path.as_path()).collect();
        let ignored =
            if absolute.is_empty() { Vec::new() } else { GitProgram::default().ignored(&absolute) };
        let is_ignored = |path: &str| {
            named
                .iter()
                .any(|(name, absolute)| *name == path && ignored.contains(&absolute.as_path()))
        };
        paths.iter().map(|path| (path.clone(), is_ignored(path))).collect()
    }

    fn definition_fact(&self) -> DefinitionFact {
        let (files, checksum) = (self.definition_files, self.definition_checksum);
        self.definitions.current_fact(files, self.workspace, checksum)
    }
}

/// A digest in place of the contents of a file that is not stored.
fn stamp_digest(look: u64) -> Digest {
    Digest::of(format!("not kept, looks like {look}").as_bytes())
}

#[cfg(test)]
mod tests;
