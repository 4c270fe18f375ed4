//! A command whose standard output can't be written has not succeeded.

use std::fs::File;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::support::{CliWorld, JACKLINE};

const CALL: &str =
    r#"{"session":"s","event":"tool_proposed","call":"c1","tool":"Bash","args":{"command":"ls"}}"#;

/// Runs a command with a full device as its output. Returns its exit code and its errors.
fn run_on_full_device(command: &mut Command, input: &str) -> (Option<i32>, String) {
    let full = File::options().write(true).open("/dev/full").unwrap();
    command.stdin(Stdio::piped()).stdout(full).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_command_that_can_not_write_its_output_fails() {
    let world = CliWorld::new("");
    world.stdio(&[CALL]);
    for (args, input) in [
        (&["export", "s"][..], ""),
        (&["verify", "s", "--json"], ""),
        (&["verify", "s"], ""),
        (&["log", "s"], ""),
        (&["replay", "s"], ""),
        (&["status", "s"], ""),
        (&["violations", "--json"], ""),
        (&["check"], ""),
        (&["stdio"], CALL),
        (&["stdio", "--session", "s"], CALL),
    ] {
        let mut command = world.command(JACKLINE);
        let (code, errors) = run_on_full_device(command.args(args), input);
        assert_eq!(code, Some(3), "{args:?}: {errors}");
        assert!(errors.contains("can't write to standard output: "), "{args:?}: {errors}");
    }
}

/// A reader such as `head` takes what it needs.
#[test]
fn a_reader_that_closes_the_pipe_early_is_no_failure() {
    let world = CliWorld::new("");
    world.stdio(&[CALL]);
    let mut command = world.command("sh");
    let script = format!("({JACKLINE} export s; echo \"code $?\" >&2) | true");
    let run = crate::support::run_with_input(command.args(["-c", &script]), b"");
    assert!(run.stderr.contains("code 0"), "{run:?}");
}
