//! Tests of the process that runs a completion check by command.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::CliWorld;

/// Writes a task for a check in the same place as the gate does, and returns its directory.
fn write_check_task(world: &CliWorld, line: &str, timeout_seconds: u32) -> PathBuf {
    let directory = world.session_directory("s").join("checks/0-1");
    fs::create_dir_all(&directory).unwrap();
    let task =
        json!({"line": line, "workspace": world.workspace(), "timeout_seconds": timeout_seconds});
    fs::write(directory.join("task"), task.to_string()).unwrap();
    directory
}

/// Runs a check command and returns the result.
fn run_check(line: &str, timeout_seconds: u32) -> Value {
    let world = CliWorld::new("");
    let directory = write_check_task(&world, line, timeout_seconds);
    let run = world.jackline(&["gate-verification", directory.to_str().unwrap()]);
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "", ""));
    let mut names: Vec<String> = fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["result", "task"]);
    let result = fs::read_to_string(directory.join("result")).unwrap();
    serde_json::from_str(&result.replace(world.workspace().to_str().unwrap(), "WORK")).unwrap()
}

#[test]
fn a_check_runs_in_the_workspace_and_writes_its_result() {
    assert_eq!(run_check("test -f jackline.yaml", 60), json!({"answer": "passed"}));
    assert_eq!(
        run_check("pwd; echo no >&2; exit 4", 60),
        json!({"answer": "failed", "exit": 4, "tail": "WORK\nno\n"})
    );
}

#[test]
fn a_check_that_takes_too_long_is_ended_with_its_children() {
    let world = CliWorld::new("");
    let line = "trap '' TERM; sleep 1000 & echo $! > started; echo running; wait";
    let directory = write_check_task(&world, line, 1);
    let run = world.jackline(&["gate-verification", directory.to_str().unwrap()]);
    assert_eq!(run.code, Some(0));
    let result = fs::read_to_string(directory.join("result")).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&result).unwrap(),
        json!({"answer": "timed_out", "tail": "running\n"})
    );
    let pid = fs::read_to_string(world.workspace().join("started")).unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    assert!(stat.as_ref().map_or(true, |stat| stat.contains(") Z ")), "{stat:?}");
}

/// A signal to the gate, or to its terminal, does not reach the check.
#[test]
fn a_check_runs_in_its_own_session() {
    let line = r#"test "$(cut -d ' ' -f 6 "/proc/$PPID/stat")" = "$PPID""#;
    assert_eq!(run_check(line, 60), json!({"answer": "passed"}));
}

#[test]
fn a_missing_check_task_is_an_error() {
    let world = CliWorld::new("");
    let run = world.jackline(&["gate-verification", "nowhere"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("no verification to run in `nowhere`: "), "{}", run.stderr);
}

#[test]
fn the_verification_command_is_not_in_the_help() {
    let run = CliWorld::new("").jackline(&["--help"]);
    assert!(run.stdout.contains("verify") && !run.stdout.contains("verification"));
}
