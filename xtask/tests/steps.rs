//! Tests the steps of the gate: a step that fails or takes too long ends the run, and its row in
//! the table shows that.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs;
use std::process::Command;

/// CI ends the gate after 90 minutes. Two of them are reserved for the start and for the table.
const TIMEOUTS_MAX_MINUTES: u32 = 88;

/// Runs a script with the functions of the gate. Returns its exit code and its output.
fn play(script: &str) -> (i32, String) {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let script = format!("set -euo pipefail; source .ci/steps.sh\n{script}");
    let output = Command::new("bash").args(["-c", &script]).current_dir(root).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

/// The rows of the table at the end, without the header and the sum.
fn rows(printed: &str) -> Vec<&str> {
    let table = printed.lines().skip_while(|line| !line.starts_with("step, in seconds"));
    table.skip(1).take_while(|line| !line.starts_with("all ")).collect()
}

#[test]
fn steps_that_succeed_are_in_the_table_with_their_budgets() {
    let (code, printed) =
        play("first() { echo here; }; step one 1 2 3 first; step two 4 5 6 first");
    assert_eq!(code, 0, "{printed}");
    assert_eq!(printed.matches("here\n").count(), 2, "{printed}");
    let rows = rows(&printed);
    assert_eq!(rows.len(), 2, "{printed}");
    let words: Vec<&str> = rows[1].split_whitespace().collect();
    assert_eq!((words[0], &words[2..]), ("two", &["240", "300", "ok"][..]), "{printed}");
}

#[test]
fn a_failing_command_ends_its_step_and_the_gate() {
    let (code, printed) = play(
        "fails() { false | cat; echo unreachable; }; other() { echo other; }
         step one 1 2 3 fails; step two 1 2 3 other",
    );
    assert_eq!(code, 1, "{printed}");
    assert!(!printed.contains("unreachable") && !printed.contains("other"), "{printed}");
    assert!(printed.contains("== one: FAILED with 1 after"), "{printed}");
    assert_eq!(rows(&printed).len(), 1, "{printed}");
}

#[test]
fn a_step_that_exceeds_its_timeout_is_killed_with_its_children() {
    // The output is complete only when all processes that can write to it have ended.
    let (code, printed) = play(
        "slow() { { sleep 2; echo survived; } & sleep 300; }
         step one 1 2 0.005 slow",
    );
    assert_eq!(code, 124, "{printed}");
    assert!(!printed.contains("survived"), "{printed}");
    assert!(printed.contains("== one: TIMED OUT after"), "{printed}");
    assert_eq!(rows(&printed).len(), 1, "{printed}");
}

#[test]
fn the_sum_of_all_timeouts_is_below_the_limit_of_ci() {
    let gate = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../.ci/run")).unwrap();
    let steps: Vec<&str> = gate.lines().filter(|line| line.starts_with("step '")).collect();
    let minutes = |line: &&str| {
        let numbers: Vec<u32> = line.split_whitespace().filter_map(|it| it.parse().ok()).collect();
        let [warm, cold, timeout] = numbers[..] else { panic!("{line}") };
        assert!(warm <= cold && cold < timeout, "{line}");
        timeout
    };
    let sum: u32 = steps.iter().map(minutes).sum();
    assert!((1..TIMEOUTS_MAX_MINUTES).contains(&sum), "{sum} minutes of {} steps", steps.len());
}
