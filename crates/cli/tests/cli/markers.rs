//! Files for people, through the binary: markers, and the safety log.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Run, World};

fn call(session: &str, call: u32) -> String {
    json!({"session": session, "event": "tool_proposed", "call": format!("c{call}"), "tool": "Bash",
        "args": {"command": "ls"}})
    .to_string()
}

fn decision(world: &World, number: u32) -> String {
    let run = world.stdio(&[call("s", number)]);
    run.verdicts()[0]["decision"].as_str().unwrap().to_owned()
}

fn ends(run: &Run, code: i32, said: &str) {
    let text = format!("{}{}", run.stdout, run.stderr);
    assert!(
        run.code == Some(code) && text.contains(said),
        "expected {code} and `{said}`: {run:#?}"
    );
}

fn log(world: &World) -> Vec<Value> {
    let text = fs::read(world.work().join(".jackline/safety_log.json")).unwrap();
    let log: Value = serde_json::from_slice(&text).unwrap();
    log["events"].as_array().unwrap().clone()
}

#[test]
fn touch_stop_stops_at_the_next_gate() {
    let world = World::new("");
    let people = world.work().join(".jackline");
    assert_eq!(decision(&world, 1), "allow");
    assert!(!people.exists(), "nothing is there while nothing is to be said");
    fs::create_dir(&people).unwrap();
    fs::write(people.join("STOP"), "").unwrap();
    let run = world.stdio(&[call("s", 2)]);
    let verdict = &run.verdicts()[0];
    assert_eq!(verdict["stop"]["code"], "HUMAN_REQUESTED");
    let said = verdict["context"].as_str().unwrap();
    assert!(
        said.contains("`.jackline/STOP` is there") && said.contains("`jackline reset`"),
        "{said}"
    );
    ends(&world.jackline(&["reset", "s"]), 1, "remove it first: `rm -r .jackline/STOP`");
    fs::remove_file(people.join("STOP")).unwrap();
    assert_eq!(decision(&world, 3), "stop");
    ends(&world.jackline(&["reset", "s", "--by", "dana"]), 0, "is open again");
    assert_eq!(decision(&world, 4), "allow");
    world.prove("s");
}

#[test]
fn a_pause_file_of_any_kind_holds_while_it_is_there() {
    let world = World::new("mode: observe");
    let people = world.work().join(".jackline");
    fs::create_dir(&people).unwrap();
    let marker = people.join("PAUSE");
    fs::create_dir(&marker).unwrap();
    assert_eq!(decision(&world, 1), "pause");
    ends(&world.jackline(&["status"]), 0, "`.jackline/PAUSE` is there");
    ends(&world.jackline(&["status"]), 0, "remove `.jackline/PAUSE`");
    ends(&world.jackline(&["resume"]), 1, "`.jackline/PAUSE` is there, and holds this session");
    fs::remove_dir(&marker).unwrap();
    ends(&world.jackline(&["status"]), 0, "it goes on with the next call");
    assert_eq!(decision(&world, 2), "allow");
    // While it runs, it could be the one who takes the file away.
    let done = json!({"session": "s", "event": "tool_finished", "call": "c2", "status": "ok"});
    world.stdio(&[done.to_string()]);
    symlink("/nowhere/at/all", &marker).unwrap();
    assert_eq!(decision(&world, 3), "pause");
    fs::remove_file(&marker).unwrap();
    assert_eq!(decision(&world, 4), "allow");
    world.prove("s");
}

#[test]
fn a_directory_that_nobody_can_look_into_shuts_the_gate() {
    let world = World::new("");
    let people = world.work().join(".jackline");
    symlink(".jackline", &people).unwrap();
    let run = world.stdio(&[call("s", 1)]);
    let verdict = &run.verdicts()[0];
    assert_eq!(verdict["decision"], "deny");
    assert_eq!(verdict["violations"][0]["type"], "guard_fault");
    fs::remove_file(&people).unwrap();
    assert_eq!(decision(&world, 2), "allow");
    world.prove("s");
}

#[test]
fn every_control_is_in_the_safety_log() {
    let world = World::new("");
    assert_eq!(decision(&world, 1), "allow");
    ends(&world.jackline(&["status"]), 0, "calls");
    ends(&world.jackline(&["pause", "--by", "dana", "--why", "lunch"]), 0, "is paused");
    ends(&world.jackline(&["pause", "--by", "alex"]), 1, "is paused already, by `dana`: lunch");
    ends(&world.jackline(&["resume", "--by", "dana"]), 0, "goes on");
    let log = log(&world);
    let said: Vec<(&str, &str, &str)> = log
        .iter()
        .map(|it| {
            let text = |value: &'static str| it["details"][value].as_str().unwrap_or_default();
            assert_eq!((&it["type"], text("session")), (&json!("CONTROL"), "s"));
            (text("action"), text("by"), it["action_taken"].as_str().unwrap())
        })
        .collect();
    assert_eq!(
        said,
        [("pause", "dana", "paused"), ("pause", "alex", "refused"), ("resume", "dana", "resumed")]
    );
    ends(&world.jackline(&["status"]), 0, ".jackline/safety_log.json");
    let run = world.jackline(&["status", "--json"]);
    assert_eq!(run.verdicts()[0]["safety_log"], ".jackline/safety_log.json");
}

#[test]
fn a_log_that_cannot_be_written_holds_nothing_up() {
    let world = World::new("");
    fs::write(world.work().join(".jackline"), "in the way").unwrap();
    assert_eq!(decision(&world, 1), "allow");
    ends(&world.jackline(&["pause"]), 0, "is paused");
    assert_eq!(decision(&world, 2), "pause");
    ends(&world.jackline(&["resume"]), 0, "goes on");
    assert_eq!(decision(&world, 3), "allow");
    world.prove("s");
}

#[test]
fn the_safety_log_is_whole_however_often_its_writer_is_killed() {
    let world = World::new("");
    assert_eq!(decision(&world, 1), "allow");
    for round in 0..25 {
        let action = if round % 2 == 0 { "pause" } else { "resume" };
        let mut child = world
            .person()
            .args([action, "s"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(round));
        let _ = child.kill();
        child.wait().unwrap();
        if world.work().join(".jackline/safety_log.json").exists() {
            let _ = log(&world);
        }
    }
    ends(&world.jackline(&["stop", "s"]), 0, "is stopped");
    assert_eq!(log(&world).last().unwrap()["action_taken"], "stopped");
    world.prove("s");
}

#[test]
fn controls_that_make_no_sense_now_change_nothing() {
    let world = World::new("");
    assert_eq!(decision(&world, 1), "allow");
    for (words, said) in [
        (&["ack"][..], "no checkpoint waits to be acknowledged"),
        (&["clear"], "nothing blocks this session"),
        (&["resume"], "the session is not paused"),
        (&["reload"], "the session runs under the definition as it is now"),
        (&["constraint", "expire", "k9"], "no constraint `k9` is in force"),
    ] {
        ends(&world.jackline(words), 1, said);
    }
    ends(&world.jackline(&["skip-tests", "--yes"]), 2, "say why with `--why`");
    ends(&world.jackline(&["skip-tests", "--why", "x"]), 2, "say `--yes` if you mean it");
    ends(&world.jackline(&["ack", "nobody"]), 2, "no session `nobody`");
    let run = world.jackline(&["ack", "s", "--json"]);
    assert_eq!((run.code, &run.verdicts()[0]["done"]), (Some(1), &json!(false)));
    let run = world.jackline(&["pause", "s", "--json"]);
    assert_eq!((run.code, &run.verdicts()[0]["done"]), (Some(0), &json!(true)));
    assert_eq!(decision(&world, 2), "pause");
    world.prove("s");
}
