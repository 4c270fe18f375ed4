//! The process that runs a verification by command to its end.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::World;

/// Puts a task where the gate would, and gives its directory.
fn task(world: &World, line: &str, timeout_seconds: u32) -> PathBuf {
    let directory = world.directory("s").join("checks/0-1");
    fs::create_dir_all(&directory).unwrap();
    let task = json!({"line": line, "workspace": world.work(), "timeout_seconds": timeout_seconds});
    fs::write(directory.join("task"), task.to_string()).unwrap();
    directory
}

/// Runs a line to its end and gives the result.
fn verified(line: &str, timeout_seconds: u32) -> Value {
    let world = World::new("");
    let directory = task(&world, line, timeout_seconds);
    let run = world.jackline(&["verification", directory.to_str().unwrap()]);
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "", ""));
    let mut left: Vec<String> = fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["result", "task"]);
    let result = fs::read_to_string(directory.join("result")).unwrap();
    serde_json::from_str(&result.replace(world.work().to_str().unwrap(), "WORK")).unwrap()
}

#[test]
fn a_command_is_run_in_the_workspace_and_its_end_is_left_behind() {
    assert_eq!(verified("test -f jackline.yaml", 60), json!({"answer": "passed"}));
    assert_eq!(
        verified("pwd; echo no >&2; exit 4", 60),
        json!({"answer": "failed", "exit": 4, "tail": "WORK\nno\n"})
    );
}

#[test]
fn a_command_that_takes_too_long_is_ended_with_all_it_started() {
    let world = World::new("");
    let line = "trap '' TERM; sleep 1000 & echo $! > started; echo begun; wait";
    let directory = task(&world, line, 1);
    let run = world.jackline(&["verification", directory.to_str().unwrap()]);
    assert_eq!(run.code, Some(0));
    let result = fs::read_to_string(directory.join("result")).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&result).unwrap(),
        json!({"answer": "timed_out", "tail": "begun\n"})
    );
    let pid = fs::read_to_string(world.work().join("started")).unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    assert!(stat.as_ref().map_or(true, |stat| stat.contains(") Z ")), "{stat:?}");
}

/// Whatever is done to the gate and its terminal is not done to it.
#[test]
fn it_has_a_session_of_its_own() {
    let line = r#"test "$(cut -d ' ' -f 6 "/proc/$PPID/stat")" = "$PPID""#;
    assert_eq!(verified(line, 60), json!({"answer": "passed"}));
}

#[test]
fn where_there_is_no_task_it_says_so() {
    let world = World::new("");
    let run = world.jackline(&["verification", "nowhere"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("no verification to run in `nowhere`: "), "{}", run.stderr);
}

#[test]
fn it_is_not_for_people() {
    let run = World::new("").jackline(&["--help"]);
    assert!(run.stdout.contains("verify") && !run.stdout.contains("verification"));
}
