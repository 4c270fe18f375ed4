//! A command within an attempt runs in an overlay layer, if the kernel supports it. Its changes are
//! applied to the workspace afterwards, and undone with the attempt. Without layers, the command
//! runs as usual and its answer does not claim to be undoable. Each test prints which case it has
//! tested.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use jackline_workspace::shell::ShellLimits;
use jackline_workspace::undo::{self, UndoLogState};
use jackline_workspace::{ToolError, ToolErrorCode, Workspace, WorkspaceLimits};
use serde_json::{Value, json};

use crate::undoing::{AttemptFixture, test_variable, tree};

fn workspace(root: &Path, timeout_ms: u64) -> Workspace {
    let supervisor = Some(env!("CARGO_BIN_EXE_jackline-shell-child").into());
    let shell = ShellLimits { timeout_ms, supervisor, ..ShellLimits::default() };
    Workspace::open(root, WorkspaceLimits { shell, ..WorkspaceLimits::default() }).unwrap()
}

fn shell(workspace: &Workspace, command: &str) -> Result<Value, ToolError> {
    workspace.call("shell", &json!({ "command": command })).map(|output| output.structured)
}

/// Whether the command ran in a layer.
#[expect(clippy::print_stderr, reason = "the test output shows which case was tested")]
fn is_layered(output: &Value) -> bool {
    let is_layered = output.get("undoable") == Some(&Value::Bool(true));
    eprintln!("{}", if is_layered { "in a layer" } else { "this kernel has no layers" });
    is_layered
}

/// The contents and modes of a tree.
fn tree_shape(root: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    tree(root).into_iter().map(|(path, (mode, _, _, content))| (path, (mode, content))).collect()
}

/// Runs a command in an attempt: the workspace must look as without an attempt, and undoing must
/// restore it.
#[track_caller]
fn check_undone(command: &str) -> Value {
    let plain = AttemptFixture::new();
    shell(&workspace(&plain.root(), 60_000), command).unwrap();
    let place = AttemptFixture::new();
    let before = tree(&place.root());
    let workspace = workspace(&place.root(), 60_000);
    workspace.begin_attempt(&place.log()).unwrap();
    let output = shell(&workspace, command).unwrap();
    let is_layered = is_layered(&output);
    if output.get("left_out").is_none() {
        assert_eq!(tree_shape(&place.root()), tree_shape(&plain.root()), "{command}");
    }
    let undone = workspace.roll_back_attempt().unwrap();
    if is_layered {
        assert_eq!(tree(&place.root()), before, "{command}: {undone:?}");
    } else {
        assert_eq!(undone.restored, [""; 0], "{command}: nothing was recorded");
    }
    assert!(undone.changed_since.is_empty(), "{command}: {undone:?}");
    let leftovers: Vec<_> =
        fs::read_dir(place.log()).unwrap().map(|it| it.unwrap().path()).collect();
    assert!(leftovers.iter().all(|path| path.is_file()), "{leftovers:?}");
    output
}

#[test]
fn created_changed_and_removed_files_are_undone() {
    check_undone("echo new > n.txt; echo more >> a.txt; rm src/b.txt");
    check_undone("mkdir -p x/y; echo 1 > x/y/z; chmod 500 x/y; echo 2 > x/w; chmod 700 src");
    check_undone("chmod 755 long.txt; printf '\\377\\000' > binary; cp binary a.txt");
    check_undone("truncate -s 0 long.txt; echo shorter > src/deep/c.txt");
}

#[test]
fn links_and_renamed_directories_are_undone() {
    check_undone("ln -s a.txt l2; ln -sfn nowhere link");
    check_undone("mv src/deep moved; mv a.txt src/a.txt; mv src other");
    check_undone("rm link; mkdir link; echo in > link/it");
}

#[test]
fn replaced_files_and_directories_are_undone() {
    check_undone("rm -rf src; mkdir src; echo q > src/b.txt");
    check_undone("rm -rf src; echo file > src");
    check_undone("rm a.txt; mkdir a.txt; echo 1 > a.txt/in");
    check_undone("rm -rf src; ln -s a.txt src");
    check_undone("rm -rf -- *");
}

#[test]
fn a_file_that_cannot_be_restored_is_left_out_and_reported() {
    let output = check_undone("mkfifo pipe; echo x > ok.txt");
    if output.get("undoable").is_some() {
        assert_eq!(output["left_out"], json!(["pipe"]));
    }
}

#[test]
fn a_command_without_changes_records_nothing() {
    let output = check_undone("cat a.txt >/dev/null; : >> a.txt; true");
    assert_eq!(output["exit_code"], json!(0));
}

#[test]
fn the_changes_of_a_timed_out_command_are_undone() {
    let place = AttemptFixture::new();
    let before = tree(&place.root());
    let workspace = workspace(&place.root(), 400);
    workspace.begin_attempt(&place.log()).unwrap();
    let output = shell(&workspace, "echo half > half.txt; sleep 600").unwrap();
    assert_eq!(output["timed_out"], json!(true));
    assert_eq!(fs::read_to_string(place.root().join("half.txt")).unwrap(), "half\n");
    let is_layered = is_layered(&output);
    workspace.roll_back_attempt().unwrap();
    assert_eq!(tree(&place.root()) == before, is_layered);
}

#[test]
fn no_process_writes_after_the_answer() {
    let place = AttemptFixture::new();
    let before = tree(&place.root());
    let workspace = workspace(&place.root(), 60_000);
    workspace.begin_attempt(&place.log()).unwrap();
    let line = "(while :; do echo x >> busy.txt; done) & \
                until test -s busy.txt; do sleep 0.01; done";
    let output = shell(&workspace, line).unwrap();
    assert_eq!(output["processes_left"], json!(0));
    let busy = place.root().join("busy.txt");
    let bytes = busy.metadata().unwrap().len();
    assert!(bytes > 0 && bytes == busy.metadata().unwrap().len());
    let is_layered = is_layered(&output);
    workspace.roll_back_attempt().unwrap();
    assert_eq!(tree(&place.root()) == before, is_layered);
}

#[test]
fn other_tools_see_the_changes_and_a_commit_keeps_them() {
    let place = AttemptFixture::new();
    let before = tree(&place.root());
    let workspace = workspace(&place.root(), 60_000);
    workspace.begin_attempt(&place.log()).unwrap();
    let output = shell(&workspace, "echo made > made.txt; echo more >> a.txt").unwrap();
    let read = workspace.call("read_file", &json!({ "path": "made.txt" })).unwrap();
    assert!(read.text.contains("made"), "{read:?}");
    let args = json!({ "path": "made.txt", "content": "written over it" });
    workspace.call("write_file", &args).unwrap();
    let is_layered = is_layered(&output);
    workspace.commit_attempt().unwrap();
    assert_eq!(undo::log_state(&place.log()).unwrap(), UndoLogState::Committed);
    assert_eq!(fs::read_to_string(place.root().join("a.txt")).unwrap(), "onemore\n");
    undo::roll_back(&place.log()).unwrap();
    assert_eq!(tree(&place.root()) == before, is_layered);
}

#[test]
fn too_many_changes_are_refused_and_change_nothing() {
    let place = AttemptFixture::new();
    let before = tree(&place.root());
    let workspace = workspace(&place.root(), 60_000);
    workspace.begin_attempt(&place.log()).unwrap();
    match shell(&workspace, "echo 1 >> a.txt; mkdir m; cd m; seq 20001 | xargs touch") {
        Err(error) => {
            eprintln!("in a layer");
            assert_eq!(error.code, ToolErrorCode::NotUndoable);
            assert!(error.message.contains("more than 20000"), "{error}");
            assert_eq!(tree(&place.root()), before);
        }
        Ok(output) => assert!(!is_layered(&output)),
    }
}

#[test]
fn without_a_layer_a_command_runs_as_usual() {
    let place = AttemptFixture::new();
    let workspace = workspace(&place.root(), 60_000);
    // A layer can't be inside of the directory that it covers.
    workspace.begin_attempt(&place.root().join("state/undo")).unwrap();
    let output = shell(&workspace, "echo made > made.txt").unwrap();
    assert!(!is_layered(&output));
    assert_eq!(fs::read_to_string(place.root().join("made.txt")).unwrap(), "made\n");
    workspace.roll_back_attempt().unwrap();
    assert!(place.root().join("made.txt").exists());
}

#[test]
fn a_read_only_directory_is_changed_only_for_the_superuser() {
    let place = AttemptFixture::new();
    let closed = place.root().join("src");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
    let before = tree(&place.root());
    let workspace = workspace(&place.root(), 60_000);
    workspace.begin_attempt(&place.log()).unwrap();
    let line = "chmod u+w src; echo new > src/new.txt; chmod u-w src";
    match shell(&workspace, line) {
        Err(error) => {
            eprintln!("in a layer, refused");
            assert_eq!(error.code, ToolErrorCode::NotUndoable);
            assert_eq!(tree(&place.root()), before);
        }
        Ok(output) => {
            let is_layered = is_layered(&output);
            workspace.roll_back_attempt().unwrap();
            assert_eq!(tree(&place.root()) == before, is_layered);
        }
    }
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn outside_of_an_attempt_a_command_has_no_layer() {
    let place = AttemptFixture::new();
    let output = shell(&workspace(&place.root(), 60_000), "echo made > made.txt").unwrap();
    assert!(!is_layered(&output));
}

/// Many changes of every kind.
const MANY_CHANGES: &str = "for i in $(seq 30); do echo $i > n$i; mkdir d$i; ln -s n$i d$i/l; done; \
                    rm -rf src; echo file > src; rm link; mkdir link; echo more >> long.txt";

/// The child process of the next test: one attempt with one command, committed.
#[test]
#[ignore = "run by the test below, to be killed"]
fn command_to_be_killed() {
    let Some(home) = test_variable("UNDO_HOME").map(PathBuf::from) else { return };
    let workspace = workspace(&home.join("work"), 60_000);
    workspace.begin_attempt(&home.join("state/undo/1")).unwrap();
    shell(&workspace, MANY_CHANGES).unwrap();
    workspace.commit_attempt().unwrap();
}

#[test]
fn a_command_killed_at_any_moment_is_done_or_undone() {
    let plain = AttemptFixture::new();
    shell(&workspace(&plain.root(), 60_000), MANY_CHANGES).unwrap();
    let after = tree_shape(&plain.root());
    if !is_layered(&check_undone(MANY_CHANGES)) {
        return;
    }
    let rounds: u32 = test_variable("UNDO_KILLS").and_then(|it| it.parse().ok()).unwrap_or(40);
    let (mut open, mut steps) = (0, 0);
    for seed in 0..rounds {
        let place = AttemptFixture::new();
        let before = tree_shape(&place.root());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "layers::command_to_be_killed", "--ignored"])
            .env("UNDO_HOME", place.home.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Most kills happen while the changes are applied to the workspace, each a little later.
        let begun = if seed % 8 == 0 { place.log().join("log") } else { place.root().join("d1") };
        while !begun.exists() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(50));
        }
        std::thread::sleep(Duration::from_micros(u64::from(seed) * 997 % 40_000));
        child.kill().unwrap();
        child.wait().unwrap();
        let state = undo::log_state(&place.log());
        if matches!(state, Ok(UndoLogState::Open)) {
            steps += u32::from(tree_shape(&place.root()) != before);
            undo::roll_back(&place.log()).unwrap();
            open += 1;
        }
        let is_done = matches!(state, Ok(UndoLogState::Committed));
        assert_eq!(
            tree_shape(&place.root()),
            if is_done { after.clone() } else { before },
            "{seed}"
        );
    }
    assert!(
        open > 0 && steps > 0,
        "no process was killed in the middle: {open} open, {steps} started"
    );
}
