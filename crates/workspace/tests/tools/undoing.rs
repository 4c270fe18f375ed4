//! An undone attempt leaves no trace, wherever it was interrupted.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use jackline_workspace::undo::{self, UndoError, UndoLogState};
use jackline_workspace::{Workspace, WorkspaceLimits};
use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;

/// A complete description of a tree: contents, modes and modification times.
pub(crate) type TreeSnapshot = BTreeMap<PathBuf, (u32, i64, i64, Vec<u8>)>;

pub(crate) fn tree(root: &Path) -> TreeSnapshot {
    let mut tree = TreeSnapshot::new();
    let mut todo = vec![root.to_owned()];
    while let Some(directory) = todo.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let look = path.symlink_metadata().unwrap();
            let (mut time, mut content) = ((0, 0), Vec::new());
            if look.is_dir() {
                todo.push(path.clone());
            } else if look.is_symlink() {
                content = fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes();
            } else if look.is_file() {
                (time, content) = ((look.mtime(), look.mtime_nsec()), fs::read(&path).unwrap());
            }
            let name = path.strip_prefix(root).unwrap().to_owned();
            tree.insert(name, (look.mode(), time.0, time.1, content));
        }
    }
    tree
}

/// The contents of a tree without modes and times, which a crash may lose.
fn contents(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    tree(root).into_iter().map(|(path, (.., content))| (path, content)).collect()
}

pub(crate) struct AttemptFixture {
    pub(crate) home: TempDir,
}

impl AttemptFixture {
    pub(crate) fn new() -> Self {
        let home = TempDir::new().unwrap();
        let root = home.path().join("work");
        fs::create_dir_all(root.join("src/deep")).unwrap();
        for (name, content) in [("a.txt", "one"), ("src/b.txt", "two"), ("src/deep/c.txt", "three")]
        {
            fs::write(root.join(name), content).unwrap();
        }
        // Too long to be stored in the log itself.
        fs::write(root.join("long.txt"), "long\n".repeat(5000)).unwrap();
        fs::set_permissions(root.join("src/b.txt"), fs::Permissions::from_mode(0o640)).unwrap();
        symlink("src/b.txt", root.join("link")).unwrap();
        Self { home }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.home.path().join("work")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.home.path().join("state/undo/1")
    }

    fn workspace(&self) -> Workspace {
        Workspace::open(self.root(), WorkspaceLimits::default()).unwrap()
    }
}

fn write(workspace: &Workspace, path: &str, content: &str) {
    let args = json!({ "path": path, "content": content });
    workspace.call("write_file", &args).unwrap();
}

#[test]
fn undoing_restores_contents_modes_and_times() {
    let place = AttemptFixture::new();
    let before = tree(&place.root());
    let workspace = place.workspace();
    workspace.begin_attempt(&place.log()).unwrap();
    write(&workspace, "a.txt", "changed");
    write(&workspace, "a.txt", "changed again");
    write(&workspace, "link", "through a link");
    write(&workspace, "new/far/away.txt", "made");
    let edit = json!({ "path": "src/deep/c.txt", "old": "three", "new": "3" });
    workspace.call("edit_file", &edit).unwrap();
    assert_ne!(tree(&place.root()), before);
    let undone = workspace.roll_back_attempt().unwrap();
    assert_eq!(tree(&place.root()), before);
    assert_eq!(undone.restored.len(), 6, "{undone:?}");
    assert!(undone.changed_since.is_empty());
    assert_eq!(undo::log_state(&place.log()).unwrap(), UndoLogState::RolledBack);
    assert!(
        undo::roll_back(&place.log()).unwrap().restored.is_empty(),
        "a second rollback changes nothing"
    );
}

#[test]
fn a_nested_attempt_is_undone_alone_or_with_the_outer_one() {
    let place = AttemptFixture::new();
    let before = tree(&place.root());
    let workspace = place.workspace();
    let inner = |name: &str| place.home.path().join("state/undo").join(name);
    workspace.begin_attempt(&place.log()).unwrap();
    write(&workspace, "a.txt", "outer");
    workspace.begin_attempt(&inner("2")).unwrap();
    write(&workspace, "a.txt", "inner");
    write(&workspace, "new/b.txt", "inner");
    assert_eq!(workspace.roll_back_attempt().unwrap().restored, ["new/b.txt", "new", "a.txt"]);
    assert_eq!(fs::read_to_string(place.root().join("a.txt")).unwrap(), "outer");
    workspace.begin_attempt(&inner("3")).unwrap();
    write(&workspace, "new/c.txt", "inner");
    write(&workspace, "src/b.txt", "inner");
    workspace.commit_attempt().unwrap();
    write(&workspace, "new/c.txt", "outer again");
    let undone = workspace.roll_back_attempt().unwrap();
    assert!(undone.changed_since.is_empty(), "{undone:?}");
    assert_eq!(tree(&place.root()), before);
}

#[test]
fn more_files_than_one_batch_are_all_restored() {
    let place = AttemptFixture::new();
    for number in 0..300 {
        fs::create_dir_all(place.root().join(format!("many/{}", number % 7))).unwrap();
        let content = format!("{number}\n").repeat(number * 20);
        fs::write(place.root().join(format!("many/{}/{number}", number % 7)), content).unwrap();
    }
    let before = tree(&place.root());
    let workspace = place.workspace();
    workspace.begin_attempt(&place.log()).unwrap();
    for number in 0..300 {
        write(&workspace, &format!("many/{}/{number}", number % 7), "changed");
        write(&workspace, &format!("many/{}/new/{number}", number % 5), "new");
    }
    workspace.roll_back_attempt().unwrap();
    assert_eq!(tree(&place.root()), before);
}

#[test]
fn a_committed_attempt_stays_and_can_still_be_undone() {
    let place = AttemptFixture::new();
    let before = tree(&place.root());
    let workspace = place.workspace();
    workspace.begin_attempt(&place.log()).unwrap();
    write(&workspace, "a.txt", "good");
    workspace.commit_attempt().unwrap();
    assert_eq!(fs::read_to_string(place.root().join("a.txt")).unwrap(), "good");
    assert_eq!(undo::log_state(&place.log()).unwrap(), UndoLogState::Committed);
    write(&workspace, "later.txt", "of no attempt");
    let undone = undo::roll_back(&place.log()).unwrap();
    assert_eq!(undone.restored, ["a.txt"]);
    fs::remove_file(place.root().join("later.txt")).unwrap();
    assert_eq!(tree(&place.root()), before);
}

#[test]
fn changes_of_another_program_are_kept_and_reported() {
    let place = AttemptFixture::new();
    let workspace = place.workspace();
    workspace.begin_attempt(&place.log()).unwrap();
    write(&workspace, "a.txt", "the attempt's");
    write(&workspace, "made/here.txt", "the attempt's");
    fs::write(place.root().join("a.txt"), "a person's").unwrap();
    fs::write(place.root().join("made/theirs.txt"), "a person's").unwrap();
    fs::write(place.root().join("src/b.txt"), "a person's, untouched by the attempt").unwrap();
    let undone = workspace.roll_back_attempt().unwrap();
    assert_eq!(undone.changed_since, ["made", "a.txt"]);
    assert_eq!(fs::read_to_string(place.root().join("a.txt")).unwrap(), "a person's");
    assert!(!place.root().join("made/here.txt").exists());
    assert!(place.root().join("made/theirs.txt").exists());
    assert!(fs::read_to_string(place.root().join("src/b.txt")).unwrap().contains("untouched"));
}

#[test]
fn a_file_that_cannot_be_copied_is_not_changed_and_a_failed_undo_is_reported() {
    let place = AttemptFixture::new();
    let workspace = place.workspace();
    workspace.begin_attempt(&place.log()).unwrap();
    assert!(
        matches!(workspace.begin_attempt(&place.log()), Err(UndoError::Storage { .. })),
        "the log must be in its own directory"
    );
    // Too long to be stored in the log itself.
    fs::write(place.root().join("a.txt"), "x".repeat(20_000)).unwrap();
    write(&workspace, "a.txt", "changed");
    // The copy is missing, so the file can't be restored.
    fs::remove_file(place.log().join("0")).unwrap();
    let error = workspace.roll_back_attempt().unwrap_err();
    assert!(error.to_string().contains("`a.txt` was not restored"), "{error}");
    assert_eq!(
        undo::log_state(&place.log()).unwrap(),
        UndoLogState::Open,
        "the rollback can be finished later"
    );

    let workspace = place.workspace();
    let second = place.home.path().join("state/undo/2");
    workspace.begin_attempt(&second).unwrap();
    fs::remove_dir_all(&second).unwrap();
    let args = json!({ "path": "src/b.txt", "content": "x" });
    let error = workspace.call("write_file", &args).unwrap_err();
    assert_eq!(error.code.as_str(), "not_undoable", "{error}");
    assert_eq!(fs::read_to_string(place.root().join("src/b.txt")).unwrap(), "two");
}

#[test]
fn an_unknown_log_is_refused_and_an_incomplete_line_is_ignored() {
    let place = AttemptFixture::new();
    let workspace = place.workspace();
    workspace.begin_attempt(&place.log()).unwrap();
    write(&workspace, "a.txt", "changed");
    drop(workspace);
    let path = place.log().join("log");
    let text = fs::read_to_string(&path).unwrap();
    let complete = text.trim_end_matches('\0');
    assert!(
        complete.len() < text.len() && complete.ends_with('\n'),
        "the log has preallocated space for the next line"
    );
    // An incomplete last line; and a line of which only the second block has reached the disk.
    for torn in ["{\"becomes\":{\"path\":\"src/b.tx", "\0\0\0\0\0src/b.txt\"}}\n\0\0", "\0\0"] {
        fs::write(&path, format!("{complete}{torn}")).unwrap();
        write(&place.workspace(), "a.txt", "changed");
        assert_eq!(undo::roll_back(&place.log()).unwrap().restored, ["a.txt"]);
        assert_eq!(undo::log_state(&place.log()).unwrap(), UndoLogState::RolledBack);
        let ended = fs::read_to_string(&path).unwrap();
        assert_eq!(ended, format!("{complete}\"rolled_back\"\n"), "nothing follows the last line");
    }
    fs::write(&path, "{\"undo\":2,\"root\":\"/\"}\n").unwrap();
    assert!(matches!(undo::roll_back(&place.log()), Err(UndoError::UnknownFormat { .. })));
}

#[derive(Debug, Clone)]
struct RandomWrite {
    path: String,
    content: String,
}

fn writes() -> impl Strategy<Value = Vec<RandomWrite>> {
    let name = || {
        prop::sample::select(vec!["a.txt", "b.txt", "link", "src", "deep", "new", "x", "long.txt"])
    };
    let path = prop::collection::vec(name(), 1..4).prop_map(|parts| parts.join("/"));
    let one = (path, "[a-z]{0,8}").prop_map(|(path, content)| RandomWrite { path, content });
    prop::collection::vec(one, 1..10)
}

/// Makes an attempt, in which some writes fail.
fn carry_out(workspace: &Workspace, writes: &[RandomWrite]) {
    for RandomWrite { path, content } in writes {
        let args = json!({ "path": path, "content": content });
        let _ = workspace.call("write_file", &args);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_writes_is_undone(writes in writes()) {
        let place = AttemptFixture::new();
        let before = tree(&place.root());
        let workspace = place.workspace();
        workspace.begin_attempt(&place.log()).unwrap();
        carry_out(&workspace, &writes);
        let undone = workspace.roll_back_attempt().unwrap();
        prop_assert_eq!(tree(&place.root()), before);
        prop_assert!(undone.changed_since.is_empty());
    }
}

/// The child process of the next test: one attempt, committed or rolled back.
#[test]
#[ignore = "run by the test below, to be killed"]
fn attempt_to_be_killed() {
    let Some(home) = test_variable("UNDO_HOME").map(PathBuf::from) else { return };
    let seed: u64 = test_variable("UNDO_SEED").unwrap().parse().unwrap();
    let workspace = Workspace::open(home.join("work"), WorkspaceLimits::default()).unwrap();
    workspace.begin_attempt(&home.join("state/undo/1")).unwrap();
    carry_out(&workspace, &seeded(seed));
    if seed.is_multiple_of(2) {
        workspace.commit_attempt().unwrap();
    } else {
        workspace.roll_back_attempt().unwrap();
    }
}

/// The value of an environment variable.
pub(crate) fn test_variable(name: &str) -> Option<String> {
    std::env::vars().find(|(key, _)| key == name).map(|(_, value)| value)
}

fn seeded(seed: u64) -> Vec<RandomWrite> {
    let names = [
        "a.txt",
        "long.txt",
        "src/b.txt",
        "src/deep/c.txt",
        "new/one.txt",
        "new/two/three.txt",
        "link",
    ];
    let mut number = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = |below: usize| {
        number ^= number << 13;
        number ^= number >> 7;
        number ^= number << 17;
        usize::try_from(number % below as u64).unwrap()
    };
    let one = |next: &mut dyn FnMut(usize) -> usize| RandomWrite {
        path: names[next(names.len())].to_owned(),
        content: "x".repeat(next(4000)),
    };
    (0..6).map(|_| one(&mut next)).collect()
}

#[test]
fn an_attempt_killed_at_any_moment_is_done_or_undone() {
    // Each process is killed a little later than the one before.
    let rounds = test_variable("UNDO_KILLS").and_then(|it| it.parse().ok()).unwrap_or(60);
    let (mut open, mut over) = (0, 0);
    for seed in 0..rounds {
        let place = AttemptFixture::new();
        let before = contents(&place.root());
        let after = {
            let other = AttemptFixture::new();
            carry_out(&other.workspace(), &seeded(seed));
            contents(&other.root())
        };
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "undoing::attempt_to_be_killed", "--ignored"])
            .env("UNDO_HOME", place.home.path())
            .env("UNDO_SEED", seed.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while !place.log().join("log").exists() {
            std::thread::sleep(Duration::from_micros(50));
        }
        std::thread::sleep(Duration::from_micros(seed * 37 % 6000));
        child.kill().unwrap();
        child.wait().unwrap();
        match undo::log_state(&place.log()) {
            Ok(UndoLogState::Open) => {
                open += 1;
                undo::roll_back(&place.log()).unwrap();
            }
            Ok(UndoLogState::Committed | UndoLogState::RolledBack) => over += 1,
            // The first line is incomplete, so no file was changed.
            Err(UndoError::UnknownFormat { .. }) => open += 1,
            Err(error) => panic!("{error}"),
        }
        let now = contents(&place.root());
        let done = matches!(undo::log_state(&place.log()), Ok(UndoLogState::Committed));
        assert_eq!(now, if done { after } else { before }, "{seed}");
    }
    assert!(open > 0, "no process was killed in the middle: {open} open, {over} ended");
}
