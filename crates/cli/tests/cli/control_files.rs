//! Tests of the files for people: the control files `STOP` and `PAUSE`, and the safety log.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{CliOutput, CliWorld};

fn call_event(session: &str, call: u32) -> String {
    json!({"session": session, "event": "tool_proposed", "call": format!("c{call}"), "tool": "Bash",
        "args": {"command": "ls"}})
    .to_string()
}

fn decision(world: &CliWorld, number: u32) -> String {
    let run = world.stdio(&[call_event("s", number)]);
    run.json_lines()[0]["decision"].as_str().unwrap().to_owned()
}

fn assert_output(run: &CliOutput, code: i32, fragment: &str) {
    let text = format!("{}{}", run.stdout, run.stderr);
    assert!(
        run.code == Some(code) && text.contains(fragment),
        "expected {code} and `{fragment}`: {run:#?}"
    );
}

fn safety_log_events(world: &CliWorld) -> Vec<Value> {
    let text = fs::read(world.workspace().join(".jackline/safety_log.json")).unwrap();
    let log: Value = serde_json::from_slice(&text).unwrap();
    log["events"].as_array().unwrap().clone()
}

#[test]
fn a_stop_file_stops_the_session_at_the_next_call() {
    let world = CliWorld::new("");
    let directory = world.workspace().join(".jackline");
    assert_eq!(decision(&world, 1), "allow");
    assert!(!directory.exists(), "the directory is created only when it is needed");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("STOP"), "").unwrap();
    let run = world.stdio(&[call_event("s", 2)]);
    let verdict = &run.json_lines()[0];
    assert_eq!(verdict["stop"]["code"], "HUMAN_REQUESTED");
    let context = verdict["context"].as_str().unwrap();
    assert!(
        context.contains("`.jackline/STOP` exists") && context.contains("`jackline reset`"),
        "{context}"
    );
    assert_output(&world.jackline(&["reset", "s"]), 1, "remove it first: `rm -r .jackline/STOP`");
    fs::remove_file(directory.join("STOP")).unwrap();
    assert_eq!(decision(&world, 3), "stop");
    assert_output(&world.jackline(&["reset", "s", "--by", "dana"]), 0, "is open again");
    assert_eq!(decision(&world, 4), "allow");
    world.verify_and_replay("s");
}

#[test]
fn a_pause_file_of_any_kind_pauses_the_session_while_it_exists() {
    let world = CliWorld::new("mode: observe");
    let directory = world.workspace().join(".jackline");
    fs::create_dir(&directory).unwrap();
    let marker = directory.join("PAUSE");
    fs::create_dir(&marker).unwrap();
    assert_eq!(decision(&world, 1), "pause");
    assert_output(&world.jackline(&["status"]), 0, "`.jackline/PAUSE` exists");
    assert_output(&world.jackline(&["status"]), 0, "remove `.jackline/PAUSE`");
    assert_output(
        &world.jackline(&["resume"]),
        1,
        "`.jackline/PAUSE` exists and blocks this session",
    );
    fs::remove_dir(&marker).unwrap();
    assert_output(&world.jackline(&["status"]), 0, "the next call continues");
    assert_eq!(decision(&world, 2), "allow");
    // While a call runs, it could be the call that removes the file.
    let done = json!({"session": "s", "event": "tool_finished", "call": "c2", "status": "ok"});
    world.stdio(&[done.to_string()]);
    symlink("/nowhere/at/all", &marker).unwrap();
    assert_eq!(decision(&world, 3), "pause");
    fs::remove_file(&marker).unwrap();
    assert_eq!(decision(&world, 4), "allow");
    world.verify_and_replay("s");
}

#[test]
fn a_directory_that_cannot_be_read_denies_every_call() {
    let world = CliWorld::new("");
    let directory = world.workspace().join(".jackline");
    symlink(".jackline", &directory).unwrap();
    let run = world.stdio(&[call_event("s", 1)]);
    let verdict = &run.json_lines()[0];
    assert_eq!(verdict["decision"], "deny");
    assert_eq!(verdict["violations"][0]["type"], "guard_fault");
    fs::remove_file(&directory).unwrap();
    assert_eq!(decision(&world, 2), "allow");
    world.verify_and_replay("s");
}

#[test]
fn every_control_is_in_the_safety_log() {
    let world = CliWorld::new("");
    assert_eq!(decision(&world, 1), "allow");
    assert_output(&world.jackline(&["status"]), 0, "calls");
    assert_output(&world.jackline(&["pause", "--by", "dana", "--why", "lunch"]), 0, "is paused");
    assert_output(
        &world.jackline(&["pause", "--by", "alex"]),
        1,
        "is already paused by `dana`: lunch",
    );
    assert_output(&world.jackline(&["resume", "--by", "dana"]), 0, "continues");
    let log = safety_log_events(&world);
    let entries: Vec<(&str, &str, &str)> = log
        .iter()
        .map(|it| {
            let text = |value: &'static str| it["details"][value].as_str().unwrap_or_default();
            assert_eq!((&it["type"], text("session")), (&json!("CONTROL"), "s"));
            (text("action"), text("by"), it["action_taken"].as_str().unwrap())
        })
        .collect();
    assert_eq!(
        entries,
        [("pause", "dana", "paused"), ("pause", "alex", "refused"), ("resume", "dana", "resumed")]
    );
    assert_output(&world.jackline(&["status"]), 0, ".jackline/safety_log.json");
    let run = world.jackline(&["status", "--json"]);
    assert_eq!(run.json_lines()[0]["safety_log"], ".jackline/safety_log.json");
}

#[test]
fn an_unwritable_safety_log_blocks_nothing() {
    let world = CliWorld::new("");
    fs::write(world.workspace().join(".jackline"), "in the way").unwrap();
    assert_eq!(decision(&world, 1), "allow");
    assert_output(&world.jackline(&["pause"]), 0, "is paused");
    assert_eq!(decision(&world, 2), "pause");
    assert_output(&world.jackline(&["resume"]), 0, "continues");
    assert_eq!(decision(&world, 3), "allow");
    world.verify_and_replay("s");
}

#[test]
fn the_safety_log_is_valid_even_if_its_writer_is_killed() {
    let world = CliWorld::new("");
    assert_eq!(decision(&world, 1), "allow");
    for round in 0..25 {
        let action = if round % 2 == 0 { "pause" } else { "resume" };
        let mut child = world
            .person_command()
            .args([action, "s"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(round));
        let _ = child.kill();
        child.wait().unwrap();
        if world.workspace().join(".jackline/safety_log.json").exists() {
            let _ = safety_log_events(&world);
        }
    }
    assert_output(&world.jackline(&["stop", "s"]), 0, "is stopped");
    assert_eq!(safety_log_events(&world).last().unwrap()["action_taken"], "stopped");
    world.verify_and_replay("s");
}

#[test]
fn controls_that_do_not_apply_change_nothing() {
    let world = CliWorld::new("");
    assert_eq!(decision(&world, 1), "allow");
    for (args, message) in [
        (&["ack"][..], "no checkpoint is waiting for an acknowledgement"),
        (&["clear"], "nothing blocks this session"),
        (&["resume"], "the session is not paused"),
        (&["reload"], "the session already uses the current definition"),
        (&["constraint", "expire", "k9"], "no constraint `k9` is in force"),
    ] {
        assert_output(&world.jackline(args), 1, message);
    }
    assert_output(&world.jackline(&["skip-tests", "--yes"]), 2, "give a reason with `--why`");
    assert_output(&world.jackline(&["skip-tests", "--why", "x"]), 2, "pass --yes to confirm");
    assert_output(&world.jackline(&["ack", "unknown"]), 2, "no session `unknown`");
    let run = world.jackline(&["ack", "s", "--json"]);
    assert_eq!((run.code, &run.json_lines()[0]["done"]), (Some(1), &json!(false)));
    let run = world.jackline(&["pause", "s", "--json"]);
    assert_eq!((run.code, &run.json_lines()[0]["done"]), (Some(0), &json!(true)));
    assert_eq!(decision(&world, 2), "pause");
    world.verify_and_replay("s");
}
