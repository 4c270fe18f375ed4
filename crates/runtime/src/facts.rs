//! Answers the engine's questions about the world.

mod absences;
mod files;
mod links;
mod reload;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jackline_engine::{
    Definition, DefinitionFact, Digest, Event, Facts, FileFact, FileKind, Queries, Query,
    ROUNDS_MAX, Session, SessionId, Tracked, VerificationFact, Wants, WatchedFact,
};

use jackline_journal::Store;

use crate::clock;
use crate::definitions::Definitions;
use crate::edits::{REMOVED, is_vouched_for};
use crate::extensions::Extensions;
use crate::git::{self, Git};
use crate::reports::Reports;
use crate::restore;
use crate::verification::{Check, Verifications};
pub(crate) use absences::Absences;
use files::Files;

/// Where to look.
pub(crate) struct World<'a> {
    pub(crate) session: &'a SessionId,
    pub(crate) workspace: Option<&'a Path>,
    pub(crate) definitions: &'a Definitions,
    /// The definition in force, its files and its checksum.
    pub(crate) definition: &'a Definition,
    pub(crate) definition_files: &'a [String],
    pub(crate) definition_checksum: Digest,
    pub(crate) extensions: &'a Extensions,
    /// Where protected files are kept.
    pub(crate) store: &'a dyn Store,
    pub(crate) verifications: &'a Verifications,
    /// The directory of the session, where it has one.
    pub(crate) session_directory: Option<&'a Path>,
    /// What was not there before.
    pub(crate) absences: &'a Absences,
}

/// Asks until nothing is open, for a bounded number of rounds.
pub(crate) fn gather(session: &Session, event: &Event, facts: &mut Facts, world: &World<'_>) {
    session.ground().understand(event, |understood| {
        for _ in 0..ROUNDS_MAX {
            let queries = session.needs_of(understood, facts);
            if queries.is_empty() {
                return;
            }
            world.answer_all(&queries, facts);
        }
    });
}

impl World<'_> {
    fn answer_all(&self, queries: &Queries, facts: &mut Facts) {
        let mut paths = Vec::new();
        for query in queries {
            match query {
                // One process answers them all.
                Query::Ignored { path } => paths.push(path.as_str()),
                query => self.answer(query, facts),
            }
        }
        facts.ignored.extend(self.ignored(&paths));
    }

    fn answer(&self, query: &Query, facts: &mut Facts) {
        match query {
            Query::File { path, wants } => {
                // One file may be asked about twice, once of them thoroughly.
                let known = facts.files.get(path).map(known).unwrap_or_default();
                let wants = Wants {
                    json: wants.json || known.json,
                    contents: wants.contents || known.contents,
                };
                facts.files.insert(path.clone(), self.files().look_at(path, wants));
            }
            Query::Changed { files } => {
                facts.changed = Some(self.files().changed(files).collect());
            }
            Query::PolicyCheck { number, name, state, call } => {
                facts.policies.insert(*number, self.extensions.check(name, state, call));
            }
            Query::PolicyResult { number, name, state, call } => {
                facts.policies.insert(*number, self.extensions.on_result(name, state, call));
            }
            Query::Checker { name } => {
                facts.checkers.insert(name.clone(), self.extensions.complete(name));
            }
            Query::Definition => facts.definition = Some(self.definition()),
            Query::Pins { definition, workflow } => {
                facts.pins = Some(self.definitions.pins(definition, workflow.as_deref()));
            }
            Query::Reload => facts.reload = Some(self.reload()),
            Query::Protect { files } => facts.protects = Some(self.watched(files)),
            Query::Git { dir } => {
                let fact = match self.files().absolute(dir) {
                    Some(directory) => Git::default().status(&directory),
                    None => git::unsaved(),
                };
                facts.git.insert(dir.clone(), fact);
            }
            Query::Ignored { path } => facts.ignored.extend(self.ignored(&[path])),
            Query::Verification { run, line, timeout_seconds } => {
                let fact = self.verification(*run, line, *timeout_seconds);
                facts.verifications.insert(*run, fact);
            }
            Query::Watched { files, since } => {
                facts.watched = Some(self.watched(files));
                let since = since.unwrap_or(facts.now.wall);
                for (path, fact) in facts.watched.iter_mut().flatten() {
                    self.reports().explain(path, fact, since);
                }
            }
            Query::Feedback { number, name, view } => {
                facts.feedback.insert(*number, self.extensions.speak(name, view));
            }
        }
    }

    /// Looks again at the files, which may have changed while the session was
    /// waited for. One that looks the same is not read again.
    pub(crate) fn recheck(&self, facts: &mut Facts) {
        let files = self.files();
        for (path, fact) in &mut facts.files {
            let now = files.look_at(path, Wants::default());
            let is_same = (now.kind, now.look, &now.real) == (fact.kind, fact.look, &fact.real);
            if !is_same {
                *fact = files.look_at(path, wanted(fact));
            }
        }
    }

    /// Those of the protected files that look different. What they hold is kept
    /// before anybody can change it.
    pub(crate) fn watched(&self, tracked: &[Tracked]) -> BTreeMap<String, WatchedFact> {
        let files = self.files();
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
            let kept = path.as_ref().and_then(|path| restore::keep(self.store, path).ok());
            // What can't be kept, as a link or a huge file, is known by how it looks.
            let sha256 = kept.or_else(|| (look != 0).then(|| unkept(look)));
            let contents = if look == 0 { Some(Digest::of(REMOVED)) } else { sha256 };
            let by_person =
                path.zip(contents).is_some_and(|(path, it)| self.is_vouched(&path, &it));
            let fact = WatchedFact { look, sha256, by_person, ..WatchedFact::default() };
            seen.insert(file.path.clone(), fact);
        }
        seen
    }

    /// Whether a person had one of our own commands write these contents.
    fn is_vouched(&self, path: &Path, contents: &Digest) -> bool {
        let home = self.definitions.given_home();
        home.is_some_and(|home| is_vouched_for(home, path, contents, clock::now().wall))
    }

    fn verification(&self, run: u64, line: &str, timeout_seconds: u32) -> VerificationFact {
        let (Some(directory), Some(workspace)) = (self.session_directory, self.workspace) else {
            let reason = "it needs a store of files and a workspace".to_owned();
            return VerificationFact::Broken { reason };
        };
        let checks = &directory.join("checks");
        let check = Check { checks, workspace, run, line, timeout_seconds };
        self.verifications.look(&check)
    }

    fn ignored(&self, paths: &[&str]) -> BTreeMap<String, bool> {
        let files = self.files();
        let named: Vec<(&str, PathBuf)> = paths
            .iter()
            // What is around the workspace has no say about all of it.
            .filter(|path| **path != ".")
            .filter_map(|path| files.absolute(path).map(|absolute| (*path, absolute)))
            .collect();
        let absolute: Vec<&Path> = named.iter().map(|(_, path)| path.as_path()).collect();
        let ignored =
            if absolute.is_empty() { Vec::new() } else { Git::default().ignored(&absolute) };
        let is_ignored = |path: &str| {
            named
                .iter()
                .any(|(name, absolute)| *name == path && ignored.contains(&absolute.as_path()))
        };
        paths.iter().map(|path| ((*path).to_owned(), is_ignored(path))).collect()
    }

    /// What is known of the reports of this workspace.
    pub(crate) fn reports(&self) -> Reports<'_> {
        let Self { workspace, session, .. } = *self;
        Reports { home: self.definitions.given_home(), workspace, session }
    }

    fn files(&self) -> Files<'_> {
        Files::of(self.workspace)
    }

    fn definition(&self) -> DefinitionFact {
        let (files, checksum) = (self.definition_files, self.definition_checksum);
        self.definitions.look(files, self.workspace, checksum)
    }
}

/// Stands for the contents of a file that is not kept.
fn unkept(look: u64) -> Digest {
    Digest::of(format!("not kept, looks like {look}").as_bytes())
}

/// What is known of a file.
fn known(fact: &FileFact) -> Wants {
    Wants { json: fact.json.is_some(), contents: fact.digest.is_some() }
}

/// What was wanted of a file. Of one that was not there nobody can tell any
/// more, so it is everything.
fn wanted(fact: &FileFact) -> Wants {
    match fact.kind {
        FileKind::File => known(fact),
        _ => Wants { json: true, contents: true },
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use jackline_engine::{Digest128, Now, Timestamp};
    use jackline_journal::MemoryStore;

    use super::*;
    use crate::home::LayerFiles;

    const CONTENTS: Wants = Wants { json: false, contents: true };
    const JSON: Wants = Wants { json: true, contents: false };

    fn facts() -> Facts {
        Facts::at(Now::wall(Timestamp::from_ms(0)))
    }

    fn ask(world: &World<'_>, facts: &mut Facts, path: &str, wants: Wants) {
        world.answer(&Query::File { path: path.to_owned(), wants }, facts);
    }

    /// A world of one workspace.
    fn in_workspace(test: impl FnOnce(&Path, &World<'_>)) {
        let root = tempfile::tempdir().unwrap();
        let world = World {
            session: &SessionId::parse("s").unwrap(),
            workspace: Some(root.path()),
            definitions: &Definitions::new(None, None).with_layers(LayerFiles::default()),
            definition: &Definition::default(),
            definition_files: &[],
            definition_checksum: Digest::ZERO,
            extensions: &Extensions::default(),
            store: &MemoryStore::default(),
            verifications: &Verifications::default(),
            session_directory: None,
            absences: &Absences::default(),
        };
        test(root.path(), &world);
    }

    #[test]
    fn a_file_that_is_asked_about_twice_is_known_thoroughly() {
        in_workspace(|root, world| {
            fs::write(root.join("f"), "[]").unwrap();
            let mut facts = facts();
            for wants in [CONTENTS, Wants::default(), JSON, Wants::default()] {
                ask(world, &mut facts, "f", wants);
            }
            assert_eq!(known(&facts.files["f"]), Wants { json: true, contents: true });
        });
    }

    #[test]
    fn a_file_that_changed_while_the_session_was_waited_for_is_read_again() {
        in_workspace(|root, world| {
            for name in ["same", "other", "gone"] {
                fs::write(root.join(name), "[]").unwrap();
            }
            let mut facts = facts();
            for name in ["same", "other", "gone", "new"] {
                ask(world, &mut facts, name, CONTENTS);
            }
            ask(world, &mut facts, "other", JSON);
            let before = facts.clone();
            world.recheck(&mut facts);
            assert_eq!(facts, before);

            fs::write(root.join("other"), "[").unwrap();
            fs::remove_file(root.join("gone")).unwrap();
            fs::write(root.join("new"), "[1]").unwrap();
            world.recheck(&mut facts);
            assert_eq!(facts.files["same"], before.files["same"]);
            assert_eq!(facts.files["other"].json, Some(false));
            assert_eq!(facts.files["other"].digest, Some(Digest128::of(b"[")));
            assert_eq!(facts.files["gone"], FileFact::of(FileKind::Missing));
            // Whatever was wanted of it, it is there.
            assert_eq!(known(&facts.files["new"]), Wants { json: true, contents: true });
        });
    }

    #[test]
    fn a_link_that_was_turned_is_noticed_before_the_decision() {
        in_workspace(|root, world| {
            fs::create_dir(root.join("safe")).unwrap();
            fs::create_dir(root.join("kept")).unwrap();
            std::os::unix::fs::symlink("safe", root.join("dir")).unwrap();
            let mut facts = facts();
            ask(world, &mut facts, "dir/f", Wants::default());
            assert_eq!(facts.files["dir/f"].real.as_deref(), Some("safe/f"));
            fs::remove_file(root.join("dir")).unwrap();
            std::os::unix::fs::symlink("kept", root.join("dir")).unwrap();
            world.recheck(&mut facts);
            assert_eq!(facts.files["dir/f"].real.as_deref(), Some("kept/f"));
        });
    }

    #[test]
    fn what_changed_is_answered_once() {
        in_workspace(|root, world| {
            fs::write(root.join("f"), "x").unwrap();
            let mut facts = facts();
            let files = vec![Tracked { path: "f".to_owned(), look: 0 }];
            world.answer(&Query::Changed { files }, &mut facts);
            let changed = facts.changed.clone().unwrap();
            assert_eq!(changed["f"].digest, Some(Digest128::of(b"x")));
            fs::write(root.join("f"), "xyz").unwrap();
            world.recheck(&mut facts);
            assert_eq!(facts.changed, Some(changed));
            world.answer(&Query::Changed { files: Vec::new() }, &mut facts);
            assert_eq!(facts.changed.map(|changed| changed.len()), Some(0));
        });
    }

    #[test]
    fn a_repository_is_asked_where_the_path_is() {
        in_workspace(|root, world| {
            let git = |dir: &Path| {
                let made = std::process::Command::new("git").args(["init", "-q"]).arg(dir).status();
                assert!(made.unwrap().success());
            };
            git(&root.join("sub"));
            fs::write(root.join("sub/.gitignore"), "*.log\n").unwrap();
            let mut facts = facts();
            for dir in [".", "sub"] {
                world.answer(&Query::Git { dir: dir.to_owned() }, &mut facts);
            }
            for path in [".", "a.log", "sub/a.log", "sub/a.txt"] {
                world.answer(&Query::Ignored { path: path.to_owned() }, &mut facts);
            }
            assert!(!facts.git["."].repository);
            assert!(facts.git["sub"].repository && facts.git["sub"].untracked);
            let ignored: Vec<&str> = facts
                .ignored
                .iter()
                .filter(|(_, ignored)| **ignored)
                .map(|(path, _)| path.as_str())
                .collect();
            assert_eq!((facts.ignored.len(), ignored), (4, vec!["sub/a.log"]));
        });
    }

    #[test]
    fn a_verification_belongs_to_the_session() {
        in_workspace(|root, world| {
            let ask = |world: &World<'_>| {
                let mut facts = facts();
                let (line, timeout_seconds) = ("true".to_owned(), 1);
                let query = Query::Verification { run: 8, line, timeout_seconds };
                world.answer(&query, &mut facts);
                facts.verifications.remove(&8).unwrap()
            };
            assert!(matches!(ask(world), VerificationFact::Broken { .. }));
            let session = root.join("session");
            fs::create_dir_all(session.join("checks/8")).unwrap();
            fs::write(session.join("checks/8/task"), "{}").unwrap();
            fs::write(session.join("checks/8/result"), r#"{"answer":"passed"}"#).unwrap();
            let world = World { session_directory: Some(&session), ..*world };
            assert_eq!(ask(&world), VerificationFact::Passed);
        });
    }
}
