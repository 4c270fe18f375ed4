//! A command within an attempt runs in a layer over the workspace, where the kernel has one:
//! what it did is there afterwards, and is undone with the attempt. Where it has none, the
//! command runs as ever, and says nothing of being undoable. Each test says which way it went.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use jackline_workspace::shell::ShellLimits;
use jackline_workspace::undo::{self, Left};
use jackline_workspace::{Code, Limits, ToolError, Workspace};
use serde_json::{Value, json};

use crate::undoing::{Place, told, tree};

fn workspace(root: &Path, timeout_ms: u64) -> Workspace {
    let supervisor = Some(env!("CARGO_BIN_EXE_jackline-shell-child").into());
    let shell = ShellLimits { timeout_ms, supervisor, ..ShellLimits::default() };
    Workspace::open(root, Limits { shell, ..Limits::default() }).unwrap()
}

fn shell(workspace: &Workspace, command: &str) -> Result<Value, ToolError> {
    workspace.call("shell", &json!({ "command": command })).map(|output| output.structured)
}

/// Whether it ran in a layer.
#[expect(clippy::print_stderr, reason = "whoever runs the test is told what it has tested")]
fn is_layered(output: &Value) -> bool {
    let is_layered = output.get("undoable") == Some(&Value::Bool(true));
    eprintln!("{}", if is_layered { "in a layer" } else { "this kernel has no layers" });
    is_layered
}

/// What is where, in which mode.
fn shape(root: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    tree(root).into_iter().map(|(path, (mode, _, _, content))| (path, (mode, content))).collect()
}

/// Runs a command in an attempt: it leaves what it leaves in no attempt, and that is undone.
#[track_caller]
fn check(command: &str) -> Value {
    let plain = Place::new();
    shell(&workspace(&plain.root(), 60_000), command).unwrap();
    let place = Place::new();
    let before = tree(&place.root());
    let workspace = workspace(&place.root(), 60_000);
    workspace.begin(&place.log()).unwrap();
    let output = shell(&workspace, command).unwrap();
    let is_layered = is_layered(&output);
    if output.get("left_out").is_none() {
        assert_eq!(shape(&place.root()), shape(&plain.root()), "{command}");
    }
    let undone = workspace.roll_back().unwrap();
    if is_layered {
        assert_eq!(tree(&place.root()), before, "{command}: {undone:?}");
    } else {
        assert_eq!(undone.restored, [""; 0], "{command}: nothing was written down");
    }
    assert!(undone.kept.is_empty(), "{command}: {undone:?}");
    let left: Vec<_> = fs::read_dir(place.log()).unwrap().map(|it| it.unwrap().path()).collect();
    assert!(left.iter().all(|path| path.is_file()), "{left:?}");
    output
}

#[test]
fn files_that_come_change_and_go_are_undone() {
    check("echo new > n.txt; echo more >> a.txt; rm src/b.txt");
    check("mkdir -p x/y; echo 1 > x/y/z; chmod 500 x/y; echo 2 > x/w; chmod 700 src");
    check("chmod 755 long.txt; printf '\\377\\000' > binary; cp binary a.txt");
    check("truncate -s 0 long.txt; echo shorter > src/deep/c.txt");
}

#[test]
fn links_and_renamed_directories_are_undone() {
    check("ln -s a.txt l2; ln -sfn nowhere link");
    check("mv src/deep moved; mv a.txt src/a.txt; mv src other");
    check("rm link; mkdir link; echo in > link/it");
}

#[test]
fn what_takes_the_place_of_something_else_is_undone() {
    check("rm -rf src; mkdir src; echo q > src/b.txt");
    check("rm -rf src; echo file > src");
    check("rm a.txt; mkdir a.txt; echo 1 > a.txt/in");
    check("rm -rf src; ln -s a.txt src");
    check("rm -rf -- *");
}

#[test]
fn what_nobody_can_put_back_is_left_out_and_named() {
    let output = check("mkfifo pipe; echo x > ok.txt");
    if output.get("undoable").is_some() {
        assert_eq!(output["left_out"], json!(["pipe"]));
    }
}

#[test]
fn a_command_that_changes_nothing_writes_nothing_down() {
    let output = check("cat a.txt >/dev/null; : >> a.txt; true");
    assert_eq!(output["exit_code"], json!(0));
}

#[test]
fn what_a_command_did_before_it_was_ended_is_undone() {
    let place = Place::new();
    let before = tree(&place.root());
    let workspace = workspace(&place.root(), 400);
    workspace.begin(&place.log()).unwrap();
    let output = shell(&workspace, "echo half > half.txt; sleep 600").unwrap();
    assert_eq!(output["timed_out"], json!(true));
    assert_eq!(fs::read_to_string(place.root().join("half.txt")).unwrap(), "half\n");
    let is_layered = is_layered(&output);
    workspace.roll_back().unwrap();
    assert_eq!(tree(&place.root()) == before, is_layered);
}

#[test]
fn nobody_writes_any_more_when_it_is_told() {
    let place = Place::new();
    let before = tree(&place.root());
    let workspace = workspace(&place.root(), 60_000);
    workspace.begin(&place.log()).unwrap();
    let line = "(while :; do echo x >> busy.txt; done) & \
                until test -s busy.txt; do sleep 0.01; done";
    let output = shell(&workspace, line).unwrap();
    assert_eq!(output["processes_left"], json!(0));
    let busy = place.root().join("busy.txt");
    let bytes = busy.metadata().unwrap().len();
    assert!(bytes > 0 && bytes == busy.metadata().unwrap().len());
    let is_layered = is_layered(&output);
    workspace.roll_back().unwrap();
    assert_eq!(tree(&place.root()) == before, is_layered);
}

#[test]
fn other_tools_see_it_and_what_is_committed_stays_until_it_is_undone() {
    let place = Place::new();
    let before = tree(&place.root());
    let workspace = workspace(&place.root(), 60_000);
    workspace.begin(&place.log()).unwrap();
    let output = shell(&workspace, "echo made > made.txt; echo more >> a.txt").unwrap();
    let read = workspace.call("read_file", &json!({ "path": "made.txt" })).unwrap();
    assert!(read.text.contains("made"), "{read:?}");
    let args = json!({ "path": "made.txt", "content": "written over it" });
    workspace.call("write_file", &args).unwrap();
    let is_layered = is_layered(&output);
    workspace.commit().unwrap();
    assert_eq!(undo::left(&place.log()).unwrap(), Left::Committed);
    assert_eq!(fs::read_to_string(place.root().join("a.txt")).unwrap(), "onemore\n");
    undo::roll_back(&place.log()).unwrap();
    assert_eq!(tree(&place.root()) == before, is_layered);
}

#[test]
fn more_than_can_be_kept_is_refused_and_nothing_is_changed() {
    let place = Place::new();
    let before = tree(&place.root());
    let workspace = workspace(&place.root(), 60_000);
    workspace.begin(&place.log()).unwrap();
    match shell(&workspace, "echo 1 >> a.txt; mkdir m; cd m; seq 20001 | xargs touch") {
        Err(error) => {
            eprintln!("in a layer");
            assert_eq!(error.code, Code::NotUndoable);
            assert!(error.message.contains("more than 20000"), "{error}");
            assert_eq!(tree(&place.root()), before);
        }
        Ok(output) => assert!(!is_layered(&output)),
    }
}

#[test]
fn where_there_is_no_layer_it_runs_as_ever() {
    let place = Place::new();
    let workspace = workspace(&place.root(), 60_000);
    // A layer can't lie in what it lies over.
    workspace.begin(&place.root().join("state/undo")).unwrap();
    let output = shell(&workspace, "echo made > made.txt").unwrap();
    assert!(!is_layered(&output));
    assert_eq!(fs::read_to_string(place.root().join("made.txt")).unwrap(), "made\n");
    workspace.roll_back().unwrap();
    assert!(place.root().join("made.txt").exists());
}

#[test]
fn a_directory_that_may_not_be_written_to_is_changed_by_nobody_but_the_superuser() {
    let place = Place::new();
    let closed = place.root().join("src");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
    let before = tree(&place.root());
    let workspace = workspace(&place.root(), 60_000);
    workspace.begin(&place.log()).unwrap();
    let line = "chmod u+w src; echo new > src/new.txt; chmod u-w src";
    match shell(&workspace, line) {
        Err(error) => {
            eprintln!("in a layer, refused");
            assert_eq!(error.code, Code::NotUndoable);
            assert_eq!(tree(&place.root()), before);
        }
        Ok(output) => {
            let is_layered = is_layered(&output);
            workspace.roll_back().unwrap();
            assert_eq!(tree(&place.root()) == before, is_layered);
        }
    }
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn outside_of_an_attempt_there_is_no_layer() {
    let place = Place::new();
    let output = shell(&workspace(&place.root(), 60_000), "echo made > made.txt").unwrap();
    assert!(!is_layered(&output));
}

/// Many steps of every kind.
const MUCH: &str = "for i in $(seq 30); do echo $i > n$i; mkdir d$i; ln -s n$i d$i/l; done; \
                    rm -rf src; echo file > src; rm link; mkdir link; echo more >> long.txt";

/// What the child of the next test does: one attempt with one command, committed.
#[test]
#[ignore = "run by the test below, to be killed"]
fn command_to_be_killed() {
    let Some(home) = told("UNDO_HOME").map(PathBuf::from) else { return };
    let workspace = workspace(&home.join("work"), 60_000);
    workspace.begin(&home.join("state/undo/1")).unwrap();
    shell(&workspace, MUCH).unwrap();
    workspace.commit().unwrap();
}

#[test]
fn killed_at_any_moment_a_command_is_done_or_undone() {
    let plain = Place::new();
    shell(&workspace(&plain.root(), 60_000), MUCH).unwrap();
    let after = shape(&plain.root());
    if !is_layered(&check(MUCH)) {
        return;
    }
    let rounds: u32 = told("UNDO_KILLS").and_then(|it| it.parse().ok()).unwrap_or(40);
    let (mut open, mut steps) = (0, 0);
    for seed in 0..rounds {
        let place = Place::new();
        let before = shape(&place.root());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "layers::command_to_be_killed", "--ignored"])
            .env("UNDO_HOME", place.home.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Most of them while it is done to the workspace, each a little later.
        let begun = if seed % 8 == 0 { place.log().join("log") } else { place.root().join("d1") };
        while !begun.exists() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(50));
        }
        std::thread::sleep(Duration::from_micros(u64::from(seed) * 997 % 40_000));
        child.kill().unwrap();
        child.wait().unwrap();
        let left = undo::left(&place.log());
        if matches!(left, Ok(Left::Open)) {
            steps += u32::from(shape(&place.root()) != before);
            undo::roll_back(&place.log()).unwrap();
            open += 1;
        }
        let is_done = matches!(left, Ok(Left::Committed));
        assert_eq!(shape(&place.root()), if is_done { after.clone() } else { before }, "{seed}");
    }
    assert!(open > 0 && steps > 0, "none was killed in the middle: {open} open, {steps} begun");
}
