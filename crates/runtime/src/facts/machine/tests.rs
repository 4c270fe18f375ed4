//! Files, links and repositories of a workspace, asked as queries.

use std::collections::BTreeMap;
use std::{fs, slice};

use jackline_engine::digest::Digest128;
use jackline_engine::facts::{FileFact, FileKind};
use jackline_engine::{Definition, Facts, Now, SessionId, Timestamp};
use jackline_journal::MemoryStore;

use super::*;
use crate::definitions::Definitions;
use crate::facts::FactSources;
use jackline_host::HostAccess;

const CONTENTS: FileDetails = FileDetails { json: false, contents: true, declares_tests: false };
const BOTH: FileDetails = FileDetails { json: true, contents: true, declares_tests: false };

fn facts() -> Facts {
    Facts::at(Now::wall(Timestamp::from_ms(0)))
}

fn ask(sources: &mut FactSources, scene: &FactContext<'_>, facts: &mut Facts, query: &Query) {
    let deadline = sources.deadline();
    let answers = sources.answer(scene, slice::from_ref(query), deadline).unwrap();
    let [fact] = answers.try_into().unwrap();
    facts.add_answer(query, fact).unwrap();
}

fn file(path: &str, wants: FileDetails) -> Query {
    Query::File { path: path.to_owned(), wants }
}

/// Runs a test with the fact context of one workspace.
fn in_workspace(test: impl FnOnce(&Path, &FactContext<'_>, &mut FactSources)) {
    let root = tempfile::tempdir().unwrap();
    let scene = FactContext {
        session: &SessionId::parse("s").unwrap(),
        workspace: Some(root.path()),
        definitions: &Definitions::new(None, HostAccess::default()),
        definition: &Definition::default(),
        definition_files: &[],
        guard_links: &BTreeMap::new(),
        definition_checksum: Digest::ZERO,
        definition_digest: Digest::ZERO,
        store: &MemoryStore::default(),
        session_directory: None,
    };
    test(root.path(), &scene, &mut FactSources::default());
}

#[test]
fn a_file_that_changed_while_waiting_for_the_lock_is_read_again() {
    in_workspace(|root, scene, sources| {
        for name in ["same", "other", "gone"] {
            fs::write(root.join(name), "[]").unwrap();
        }
        let mut facts = facts();
        for name in ["same", "other", "gone", "new"] {
            ask(sources, scene, &mut facts, &file(name, CONTENTS));
        }
        ask(sources, scene, &mut facts, &file("other", BOTH));
        let before = facts.clone();
        let deadline = sources.deadline();
        sources.recheck(scene, &mut facts, deadline).unwrap();
        assert_eq!(facts, before);

        fs::write(root.join("other"), "[").unwrap();
        fs::remove_file(root.join("gone")).unwrap();
        fs::write(root.join("new"), "[1]").unwrap();
        let deadline = sources.deadline();
        sources.recheck(scene, &mut facts, deadline).unwrap();
        assert_eq!(facts.files["same"], before.files["same"]);
        assert_eq!(facts.files["other"].json, Some(false));
        assert_eq!(facts.files["other"].digest, Some(Digest128::of(b"[")));
        assert_eq!(facts.files["gone"], FileFact::without_details(FileKind::Missing));
        // All facts were requested for the missing file, so all are present now.
        let all = FileDetails { declares_tests: true, ..BOTH };
        assert_eq!(FileDetails::contained_in(&facts.files["new"]), all);
    });
}

#[test]
fn a_changed_link_is_noticed_before_the_decision() {
    in_workspace(|root, scene, sources| {
        fs::create_dir(root.join("safe")).unwrap();
        fs::create_dir(root.join("kept")).unwrap();
        std::os::unix::fs::symlink("safe", root.join("dir")).unwrap();
        let mut facts = facts();
        ask(sources, scene, &mut facts, &file("dir/f", FileDetails::default()));
        assert_eq!(facts.files["dir/f"].real.as_deref(), Some("safe/f"));
        fs::remove_file(root.join("dir")).unwrap();
        std::os::unix::fs::symlink("kept", root.join("dir")).unwrap();
        let deadline = sources.deadline();
        sources.recheck(scene, &mut facts, deadline).unwrap();
        assert_eq!(facts.files["dir/f"].real.as_deref(), Some("kept/f"));
    });
}

#[test]
fn a_query_for_changes_is_answered_again_only_when_asked() {
    in_workspace(|root, scene, sources| {
        fs::write(root.join("f"), "x").unwrap();
        let mut facts = facts();
        let files = vec![TrackedFile { path: "f".to_owned(), stamp: 0 }];
        ask(sources, scene, &mut facts, &Query::Changed { files });
        let changed = facts.changed.clone().unwrap();
        assert_eq!(changed["f"].digest, Some(Digest128::of(b"x")));
        fs::write(root.join("f"), "xyz").unwrap();
        let deadline = sources.deadline();
        sources.recheck(scene, &mut facts, deadline).unwrap();
        assert_eq!(facts.changed, Some(changed));
        ask(sources, scene, &mut facts, &Query::Changed { files: Vec::new() });
        assert_eq!(facts.changed.map(|changed| changed.len()), Some(0));
    });
}

#[test]
fn the_repository_around_the_path_is_asked() {
    in_workspace(|root, scene, sources| {
        let git = |dir: &Path| {
            let made = std::process::Command::new("git").args(["init", "-q"]).arg(dir).status();
            assert!(made.unwrap().success());
        };
        git(&root.join("sub"));
        fs::write(root.join("sub/.gitignore"), "*.log\n").unwrap();
        let mut facts = facts();
        for dir in [".", "sub"] {
            ask(sources, scene, &mut facts, &Query::Git { dir: dir.to_owned() });
        }
        for path in [".", "a.log", "sub/a.log", "sub/a.txt"] {
            ask(sources, scene, &mut facts, &Query::Ignored { path: path.to_owned() });
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
    in_workspace(|root, scene, sources| {
        let mut verify = |scene: &FactContext<'_>| {
            let mut facts = facts();
            let (line, timeout_seconds) = ("true".to_owned(), 1);
            let query = Query::Verification { run: 8, line, timeout_seconds };
            ask(sources, scene, &mut facts, &query);
            facts.verifications.remove(&8).unwrap()
        };
        assert!(matches!(verify(scene), VerificationFact::Broken { .. }));
        let session = root.join("session");
        fs::create_dir_all(session.join("checks/8")).unwrap();
        fs::write(session.join("checks/8/task"), "{}").unwrap();
        fs::write(session.join("checks/8/result"), r#"{"answer":"passed"}"#).unwrap();
        let scene = FactContext { session_directory: Some(&session), ..*scene };
        assert_eq!(verify(&scene), VerificationFact::Passed);
    });
}
