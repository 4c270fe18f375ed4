//! Predictions for real repositories, also odd ones.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;
use crate::git::GitProgram;
use crate::git::test_repository::TestRepository;

const HOOK: &str = r#"{"hooks": "jackline hook gemini"}"#;
const FILES: [&str; 2] = ["jackline.yaml", ".gemini/settings.json"];

/// A repository with the branches `old`, without the guard, and `work`, with the guard.
fn repository_with_branches() -> TestRepository {
    let world = TestRepository::without_git();
    world.git("init -q -b old");
    world.write("a.txt", "1");
    world.commit();
    world.git("switch -q -c work");
    world.write("jackline.yaml", "version: 1\n");
    world.write(".gemini/settings.json", HOOK);
    world.commit();
    world
}

impl TestRepository {
    fn predict_in(&self, directory: &str, change: &GitChange) -> Option<String> {
        let path = |name: &str| self.path().join(name);
        let asked = FILES.map(|name| AskedFile { name: name.to_owned(), path: path(name) });
        let git = GitProgram { timeout_ms: 60_000, ..GitProgram::default() };
        let question = GitQuestion::begin(&git);
        match question.predict(&path(directory), change, &asked) {
            GitChangeFact::Unknown => None,
            GitChangeFact::Known { files } => {
                let shown = files.iter().map(|(name, change)| {
                    let did = if change.removed { "removed" } else { "changed" };
                    let kept = if change.kept { " kept" } else { "" };
                    format!("{name} {did}{kept}")
                });
                Some(shown.collect::<Vec<_>>().join(", "))
            }
        }
    }

    fn predict(&self, change: &GitChange) -> Option<String> {
        self.predict_in(".", change)
    }
}

fn moved(to: &str) -> GitChange {
    GitChange::Move { to: to.to_owned(), discards: false }
}

fn discarded(to: &str) -> GitChange {
    GitChange::Move { to: to.to_owned(), discards: true }
}

fn checked_out(operand: &str) -> GitChange {
    GitChange::Checkout { operands: vec![operand.to_owned()], discards: false }
}

fn restored(paths: &[&str]) -> GitChange {
    let paths = paths.iter().map(ToString::to_string).collect();
    GitChange::Restore { from: None, paths, removes: true }
}

fn stashed() -> GitChange {
    GitChange::Stash { paths: Vec::new(), untracked: true, ignored: false }
}

fn cleaned(args: &[&str]) -> GitChange {
    GitChange::Clean { args: args.iter().map(ToString::to_string).collect() }
}

const BOTH_KEPT: &str = ".gemini/settings.json removed kept, jackline.yaml removed kept";
const BOTH: &str = ".gemini/settings.json removed, jackline.yaml removed";

#[test]
fn a_move_changes_files_that_differ() {
    let world = repository_with_branches();
    assert_eq!(world.predict(&moved("old")).unwrap(), BOTH_KEPT);
    assert_eq!(world.predict(&discarded("HEAD~1")).unwrap(), BOTH_KEPT);
    assert_eq!(world.predict(&checked_out("old")).unwrap(), BOTH_KEPT);
    for change in [moved("work"), discarded("HEAD"), checked_out("."), restored(&["."]), stashed()]
    {
        assert_eq!(world.predict(&change).unwrap(), "", "{change:?}");
    }
    assert_eq!(world.predict(&moved("nowhere")), None);
    world.write("jackline.yaml", "version: 1\n# later\n");
    assert_eq!(world.predict(&checked_out(".")).unwrap(), "jackline.yaml changed");
    assert_eq!(world.predict(&restored(&["a.txt", ".gemini"])).unwrap(), "");
    assert_eq!(world.predict(&restored(&["*.yaml"])).unwrap(), "jackline.yaml changed");
    assert_eq!(world.predict(&restored(&[":(exclude)*.yaml", "."])).unwrap(), "");
    assert_eq!(world.predict(&moved("work")).unwrap(), "");
    assert_eq!(world.predict(&discarded("HEAD")).unwrap(), "jackline.yaml changed");
}

#[test]
fn line_endings_are_no_change() {
    let world = repository_with_branches();
    world.write("jackline.yaml", "version: 1\r\n");
    assert_eq!(world.predict(&checked_out(".")).unwrap(), "");
}

#[test]
fn merges_and_picked_commits_change_what_they_contain() {
    let world = repository_with_branches();
    let merged = |with: &str| GitChange::Merge { with: vec![with.to_owned()] };
    assert_eq!(world.predict(&merged("old")).unwrap(), "");
    world.git("switch -q -c less");
    world.git("rm -q jackline.yaml");
    world.commit();
    world.git("switch -q work");
    world.write("b.txt", "1");
    world.commit();
    assert_eq!(world.predict(&merged("less")).unwrap(), "jackline.yaml removed kept");
    let pick =
        |commit: &str, reverts: bool| GitChange::Pick { commits: vec![commit.to_owned()], reverts };
    assert_eq!(world.predict(&pick("less", false)).unwrap(), "jackline.yaml removed kept");
    assert_eq!(world.predict(&pick("HEAD~1", true)).unwrap(), BOTH_KEPT);
    assert_eq!(world.predict(&pick("HEAD", true)).unwrap(), "");
    assert_eq!(world.predict(&merged("@{upstream}")), None);
}

#[test]
fn stashes_patches_and_cleans_are_read() {
    let world = repository_with_branches();
    world.git("rm -q --cached jackline.yaml .gemini/settings.json");
    world.git("commit -q -m x");
    assert_eq!(world.predict(&stashed()).unwrap(), BOTH);
    assert_eq!(world.predict(&cleaned(&["-f", "-d", "--"])).unwrap(), BOTH);
    assert_eq!(world.predict(&cleaned(&["-f", "--"])).unwrap(), "jackline.yaml removed");
    assert_eq!(
        world.predict(&cleaned(&["-f", "-d", "--exclude=*.yaml", "--"])).unwrap(),
        ".gemini/settings.json removed"
    );
    world.write(".git/info/exclude", "jackline.yaml\n.gemini/\n");
    assert_eq!(world.predict(&stashed()).unwrap(), "");
    assert_eq!(world.predict(&cleaned(&["-f", "-d", "--"])).unwrap(), "");
    assert_eq!(world.predict(&cleaned(&["-f", "-d", "-x", "--"])).unwrap(), BOTH);
    let patch = "--- a/jackline.yaml\n+++ b/jackline.yaml\n@@ -1 +1 @@\n-version: 1\n+version: 2\n";
    world.write("x.patch", patch);
    let patched = |file: &str| GitChange::Patch { files: vec![file.to_owned()] };
    assert_eq!(world.predict(&patched("x.patch")).unwrap(), "jackline.yaml changed");
    assert_eq!(world.predict(&patched("a.txt")), None);
}

#[test]
fn a_popped_stash_changes_what_it_contains() {
    let world = repository_with_branches();
    world.write("jackline.yaml", "version: 1\n# later\n");
    world.git("stash -q");
    let unstashed = GitChange::Unstash { entry: "stash@{0}".to_owned() };
    assert_eq!(world.predict(&unstashed).unwrap(), "jackline.yaml changed kept");
    world.git("stash drop -q");
    assert_eq!(world.predict(&unstashed), None);
}

#[test]
fn a_repository_without_commits_has_nothing_to_check_out() {
    let world = TestRepository::without_git();
    world.git("init -q -b main");
    world.write("jackline.yaml", "version: 1\n");
    assert_eq!(world.predict(&checked_out(".")).unwrap(), "");
    assert_eq!(world.predict(&stashed()).unwrap(), "");
    assert_eq!(world.predict(&moved("old")), None);
    assert_eq!(world.predict(&cleaned(&["-f", "--"])).unwrap(), "jackline.yaml removed");
    world.git("add jackline.yaml");
    assert_eq!(world.predict(&cleaned(&["-f", "--"])).unwrap(), "");
}

#[test]
fn in_the_middle_of_a_rebase_the_commit_that_is_checked_out_counts() {
    let world = repository_with_branches();
    world.write("a.txt", "2");
    world.commit();
    world.git("switch -q old");
    world.write("a.txt", "3");
    world.commit();
    world.git("switch -q work");
    assert!(!world.try_git("rebase -q old"));
    assert!(world.path().join(".git/rebase-merge").exists());
    assert_eq!(world.predict(&restored(&["."])).unwrap(), "");
    assert_eq!(world.predict(&discarded("old")).unwrap(), BOTH_KEPT);
    assert_eq!(world.predict(&discarded("ORIG_HEAD")).unwrap(), "");
}

#[test]
fn another_repository_has_its_own_files() {
    let world = repository_with_branches();
    world.git("init -q sub");
    world.write("sub/jackline.yaml", "version: 1\n");
    for change in [checked_out("."), cleaned(&["-f", "-d", "-x", "--"])] {
        assert_eq!(world.predict_in("sub", &change), None, "{change:?}");
    }
    // A linked work tree shares the commits, and has its own files.
    world.git("worktree add -q tree old");
    assert_eq!(world.predict_in("tree", &discarded("old")), None);
    let git = GitProgram { timeout_ms: 60_000, ..GitProgram::default() };
    let tree = world.path().join("tree");
    fs::write(tree.join("jackline.yaml"), "version: 1\n").unwrap();
    let asked = [AskedFile { name: "jackline.yaml".to_owned(), path: tree.join("jackline.yaml") }];
    let change = cleaned(&["-f", "--"]);
    let GitChangeFact::Known { files } = GitQuestion::begin(&git).predict(&tree, &change, &asked)
    else {
        panic!("unknown")
    };
    assert_eq!(files.len(), 1);
}

#[test]
fn settings_behind_a_link_are_what_the_client_reads() {
    let world = repository_with_branches();
    fs::remove_file(world.path().join(".gemini/settings.json")).unwrap();
    world.write("shared.json", HOOK);
    symlink("../shared.json", world.path().join(".gemini/settings.json")).unwrap();
    world.commit();
    assert_eq!(world.predict(&checked_out(".")).unwrap(), "");
    assert_eq!(world.predict(&moved("HEAD~1")).unwrap(), ".gemini/settings.json changed kept");
}

#[test]
fn a_broken_or_bare_repository_is_unknown() {
    let world = TestRepository::without_git();
    world.write("jackline.yaml", "version: 1\n");
    assert_eq!(world.predict(&checked_out(".")), None);
    world.write(".git", "gitdir: /nowhere/at/all\n");
    assert_eq!(world.predict(&checked_out(".")), None);
    let bare = TestRepository::without_git();
    bare.git("init -q --bare");
    bare.write("jackline.yaml", "version: 1\n");
    assert_eq!(bare.predict(&checked_out(".")), None);
}

#[test]
fn asking_runs_nothing_of_the_repository() {
    let world = repository_with_branches();
    let mark = world.path().join(".git/ran");
    let script = world.path().join(".git/run.sh");
    fs::write(&script, format!("#!/bin/sh\ntouch {}\ncat\n", mark.display())).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    for key in
        ["filter.x.clean", "filter.x.smudge", "diff.x.textconv", "core.fsmonitor", "diff.external"]
    {
        world.git(&format!("config {key} {}", script.display()));
    }
    world.write(".git/info/attributes", "* filter=x diff=x\n");
    world.write("jackline.yaml", "version: 2\n");
    for change in [
        moved("old"),
        discarded("HEAD"),
        checked_out("."),
        restored(&["*.yaml"]),
        stashed(),
        cleaned(&["-f", "-d", "-x", "--"]),
        GitChange::Merge { with: vec!["old".to_owned()] },
    ] {
        assert!(world.predict(&change).is_some(), "{change:?}");
        assert!(!mark.exists(), "{change:?}");
    }
}
