//! A person and a blocker can pause a session at the same time. Each pause has its own command that
//! ends it, and a command that does not apply changes nothing.

use std::fs;

use crate::run_support::{REPORT_COMPLETION, REPORT_SCRIPT, TaskDirectory, session_id, stop_code};
use crate::support::{CliOutput, CliWorld};

fn assert_output(run: &CliOutput, code: i32, fragment: &str) {
    let text = format!("{}{}", run.stdout, run.stderr);
    assert!(
        run.code == Some(code) && text.contains(fragment),
        "expected {code} and `{fragment}`: {run:#?}"
    );
}

/// A run that is blocked after three failed iterations, and would finish the task after that.
fn blocked_run(world: &CliWorld) -> (TaskDirectory<'_>, String) {
    let idle = "  - text: I am done.\n".repeat(3);
    let script = format!("steps:\n{idle}{}", REPORT_SCRIPT.trim_start_matches("steps:\n"));
    let task = TaskDirectory::new(
        world,
        &format!("{REPORT_COMPLETION}progress: {{}}\n"),
        &[("main", &script)],
    );
    let run = task.run(&[]);
    assert!(stop_code(&run).contains("3 iterations in a row failed"), "{run:?}");
    let id = session_id(&run);
    (task, id)
}

fn has_blocker_report(world: &CliWorld) -> bool {
    world.workspace().join(".jackline/BLOCKER_REPORT.md").is_file()
}

#[test]
fn clear_keeps_the_pause_of_a_person() {
    let world = CliWorld::new("");
    let (task, id) = blocked_run(&world);
    assert_output(
        &world.jackline(&["pause", &id, "--by", "dana", "--why", "mine"]),
        0,
        "is paused",
    );
    assert!(has_blocker_report(&world));
    assert_output(&world.jackline(&["status", &id]), 0, "`jackline clear` for the blocker");
    assert_output(&world.jackline(&["clear", &id]), 0, "has no blocker now, but is still paused");
    assert!(!has_blocker_report(&world), "the report of a cleared blocker must be deleted");
    assert_output(&world.jackline(&["status", &id]), 0, "dana: mine");
    let run = task.resume(&[&id]);
    assert!(stop_code(&run).starts_with("left: it waits for a person: mine"), "{run:?}");
    assert_output(&world.jackline(&["clear", &id]), 1, "nothing blocks this session");
    assert_output(&world.jackline(&["resume", &id]), 0, "continues");
    let run = task.resume(&[&id]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    world.verify_and_replay(&id);
}

#[test]
fn resume_keeps_the_blocker_and_its_report() {
    let world = CliWorld::new("");
    let (task, id) = blocked_run(&world);
    let read =
        || fs::read_to_string(world.workspace().join(".jackline/BLOCKER_REPORT.md")).unwrap();
    let before = read();
    assert_output(&world.jackline(&["pause", &id]), 0, "is paused");
    assert_output(&world.jackline(&["resume", &id]), 0, "is still blocked");
    assert_eq!(read(), before);
    assert_output(&world.jackline(&["status", &id]), 0, "or run `jackline clear`");
    let run = task.resume(&[&id]);
    assert!(stop_code(&run).contains("3 iterations in a row failed"), "{run:?}");
    assert_output(&world.jackline(&["clear", &id]), 0, "continues: its blocker is cleared");
    let run = task.resume(&[&id]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    world.verify_and_replay(&id);
}

/// The gate blocks three stops with the same text. After a person clears the blocker, the agent
/// gets more tries.
#[test]
fn after_a_blocker_is_cleared_the_next_blocked_stop_is_not_the_last() {
    let world = CliWorld::new("");
    let idle = "  - text: I am done.\n".repeat(4);
    let script = format!("steps:\n{idle}{}", REPORT_SCRIPT.trim_start_matches("steps:\n"));
    let task = TaskDirectory::new(
        &world,
        &format!("{REPORT_COMPLETION}progress: {{}}\n"),
        &[("main", &script)],
    );
    let id = session_id(&task.run(&[]));
    assert_output(&world.jackline(&["clear", &id]), 0, "continues");
    let run = task.resume(&[&id]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    world.verify_and_replay(&id);
}

#[test]
fn an_ended_session_keeps_its_stop_code_when_a_person_stops_it() {
    let world = CliWorld::new("");
    let task = TaskDirectory::new(&world, REPORT_COMPLETION, &[("main", REPORT_SCRIPT)]);
    let id = session_id(&task.run(&[]));
    assert_output(&world.jackline(&["stop", &id]), 0, "only `jackline reset` reopens it");
    assert_output(&world.jackline(&["status", &id]), 0, "finished");
    // A stopped session cannot be stopped again.
    let events = [r#"{"session":"s","event":"session_started"}"#];
    assert_eq!(world.stdio(&events).decisions(), ["allow"]);
    assert_output(&world.jackline(&["stop", "s"]), 0, "is stopped");
    assert_output(&world.jackline(&["stop", "s"]), 1, "this session has ended: HUMAN_REQUESTED");
    world.verify_and_replay(&id);
    world.verify_and_replay("s");
}

/// Starts a session that waits at a checkpoint.
fn start_at_checkpoint(world: &CliWorld, session: &str) {
    let events = ["session_started", "iteration_ended"];
    let events = events.map(|event| format!(r#"{{"session":"{session}","event":"{event}"}}"#));
    assert_eq!(world.stdio(&events).decisions(), ["allow", "pause"]);
}

#[test]
fn an_ended_session_reports_its_end_and_how_to_reopen_it() {
    let world = CliWorld::new("version: 1\nlimits: { iterations: 1 }\n");
    for id in ["s", "run-x"] {
        start_at_checkpoint(&world, id);
        world.stdio(&[format!(r#"{{"session":"{id}","event":"session_ended"}}"#)]);
        let reopen_hint = format!("reopen it with `jackline reset {id}`");
        let check = |args: &[&str], code: i32, fragment: &str| {
            let run = world.jackline(args);
            assert_output(&run, code, "has ended (stopped: iteration limit)");
            assert_output(&run, code, fragment);
            assert_output(&run, code, &reopen_hint);
            for misleading in
                ["tell the agent", "with `jackline ack`", "with `jackline resume`", "continues:"]
            {
                assert!(!format!("{}{}", run.stdout, run.stderr).contains(misleading), "{run:?}");
            }
        };
        let status = || world.jackline(&["status", id]);
        assert_output(&status(), 0, "it has ended; to reopen it: run `jackline reset`");
        // Only a session that an agent can continue offers to acknowledge the checkpoint.
        assert_eq!(status().stdout.contains("`jackline ack`"), id == "s", "{:?}", status());
        check(&["resume", id], 1, "a checkpoint must be acknowledged");
        let effect = if id == "s" {
            "if its agent comes back, it is paused"
        } else {
            "a pause has no effect on it"
        };
        check(&["pause", id], 0, effect);
        check(&["ack", id], 0, "its checkpoint is acknowledged");
        check(&["resume", id], 0, "its pause is removed");
        assert!(!status().stdout.contains("to continue"), "{:?}", status());
        assert_output(&world.jackline(&["reset", id]), 0, "is open again");
        world.verify_and_replay(id);
    }
}

#[test]
fn a_persons_pause_over_a_checkpoint_is_resumed_separately() {
    let world = CliWorld::new("version: 1\nlimits: { iterations: 1 }\n");
    start_at_checkpoint(&world, "s");
    assert_output(
        &world.jackline(&["pause", "s", "--by", "dana", "--why", "mine"]),
        0,
        "is paused",
    );
    assert_output(&world.jackline(&["status", "s"]), 0, "`jackline ack` for the checkpoint");
    assert_output(&world.jackline(&["resume", "s"]), 0, "continue with `jackline ack`");
    assert_output(&world.jackline(&["resume", "s"]), 1, "a checkpoint must be acknowledged");
    assert_output(&world.jackline(&["pause", "s", "--by", "dana"]), 0, "is paused");
    assert_output(
        &world.jackline(&["ack", "s"]),
        0,
        "has passed its checkpoint, but is still paused",
    );
    assert_output(&world.jackline(&["status", "s"]), 0, "or run `jackline resume`");
    assert_output(&world.jackline(&["resume", "s"]), 0, "continues");
    world.verify_and_replay("s");
}

#[test]
fn a_stop_for_a_loop_replaces_the_report_of_the_pause() {
    let world = CliWorld::new("loops: {}\n");
    let call = |id: String| {
        format!(
            r#"{{"session":"s","event":"tool_proposed","call":"{id}","tool":"Bash","args":{{"command":"make test"}}}}"#
        )
    };
    let mut lines = Vec::new();
    for n in 0..5 {
        lines.push(call(format!("c{n}")));
        lines.push(format!(
            r#"{{"session":"s","event":"tool_finished","call":"c{n}","status":"ok","exit_code":2,"result":"1 failed"}}"#
        ));
    }
    world.stdio(&lines);
    assert!(read_blocker_report(&world).contains("Session `s` is paused and waits for you."));
    let refused: Vec<String> = (0..10).map(|n| call(format!("d{n}"))).collect();
    let run = world.stdio(&refused);
    assert_eq!(run.decisions().last().map(String::as_str), Some("stop"), "{run:?}");
    let report = read_blocker_report(&world);
    assert!(report.contains("Session `s` was stopped: SYSTEM_ERROR{loop}."), "{report}");
    assert!(report.contains("Open the session again: `jackline reset s`"), "{report}");
    assert!(!report.contains("jackline clear"), "{report}");
    assert_output(&world.jackline(&["reset", "s"]), 0, "`s`");
    assert!(!has_blocker_report(&world));
    world.verify_and_replay("s");
}

fn read_blocker_report(world: &CliWorld) -> String {
    fs::read_to_string(world.workspace().join(".jackline/BLOCKER_REPORT.md")).unwrap()
}
