//! Tests of `jackline reload`: a session continues under the current definition, and every command
//! that shows the session shows that definition.

use std::fs;

use jackline_engine::Digest;
use jackline_journal::{check_line, seal};
use serde_json::json;

use crate::support::{CliOutput, CliWorld, run_with_input};

const STRICT: &str = "version: 1\nname: a/strict\nlimits: { steps: 2 }\n";
const LOOSE: &str = "version: 1\nname: a/loose\nlimits: { steps: 4 }\n";

fn propose(world: &CliWorld, call: u32) -> String {
    let line = format!(
        r#"{{"session":"s","event":"tool_proposed","call":"c{call}","tool":"search","args":{{"n":{call}}}}}"#
    );
    let done =
        format!(r#"{{"session":"s","event":"tool_finished","call":"c{call}","status":"ok"}}"#);
    world.stdio(&[line, done]).decisions()[0].clone()
}

fn assert_output(run: &CliOutput, code: i32, fragment: &str) {
    let text = format!("{}{}", run.stdout, run.stderr);
    assert!(
        run.code == Some(code) && text.contains(fragment),
        "expected {code} and `{fragment}`: {run:#?}"
    );
}

impl CliWorld {
    fn define(&self, source: &str) {
        fs::write(self.workspace().join("jackline.yaml"), source).unwrap();
    }
}

#[test]
fn a_budget_is_raised_while_the_session_runs() {
    let world = CliWorld::new(STRICT);
    assert_eq!(propose(&world, 1), "allow");
    world.define(LOOSE);
    assert_output(
        &world.jackline(&["reload", "s", "--by", "dana", "--why", "more to do"]),
        0,
        "session `s` uses the current definition",
    );
    for call in 2..=4 {
        assert_eq!(propose(&world, call), "allow", "call {call}");
    }
    assert_eq!(propose(&world, 5), "stop", "used steps stay used");
    assert_output(&world.jackline(&["reload", "s"]), 1, "this session has ended: BUDGET_EXCEEDED");
    let safety = fs::read_to_string(world.workspace().join(".jackline/safety_log.json")).unwrap();
    assert!(safety.contains("reloaded") && safety.contains("more to do"), "{safety}");
    world.verify_and_replay("s");
}

#[test]
fn every_command_shows_the_reloaded_definition() {
    let world = CliWorld::new(STRICT);
    assert_eq!(propose(&world, 1), "allow");
    world.define(LOOSE);
    let run = world.jackline(&["reload", "--json"]);
    assert_eq!(
        (run.code, &run.json_lines()[0]),
        (
            Some(0),
            &json!({"session": "s", "action": "reload", "done": true, "record": 3, "objections": []})
        )
    );
    let checksum = Digest::of(LOOSE.as_bytes()).to_string();
    assert_output(&world.jackline(&["status"]), 0, "a/loose");
    assert_output(&world.jackline(&["status"]), 0, "1 of 4");
    let status = &world.jackline(&["status", "--json"]).json_lines()[0];
    assert_eq!(
        status["definition"],
        json!({"name": "a/loose", "checksum": checksum, "mode": "enforce"})
    );
    assert_output(
        &world.jackline(&["log"]),
        0,
        &format!("from here on, the definition is a/loose {checksum}"),
    );
    assert_output(&world.jackline(&["show", "3"]), 0, &format!(r#""checksum": "{checksum}""#));
    assert_output(&world.jackline(&["watch", "--once"]), 0, "a/loose");
    let explained = &world.jackline(&["explain", "--session", "s", "--json", "ls"]).json_lines()[0];
    assert_eq!(explained["definition"]["checksum"], json!(checksum), "{explained}");
    assert_output(&world.jackline(&["verify", "s"]), 0, "clean");
    assert_output(&world.jackline(&["replay", "s"]), 0, "proven");
    assert_output(&world.jackline(&["backtest", "s", "-d", "jackline.yaml"]), 0, "");

    // An export contains everything, also without the state home.
    let away = world.root().join("away.json");
    assert_output(&world.jackline(&["export", "s", "--out", away.to_str().unwrap()]), 0, "");
    fs::remove_dir_all(world.home()).unwrap();
    assert_output(&world.jackline(&["replay", away.to_str().unwrap()]), 0, "proven");
    assert_output(&world.jackline(&["status", away.to_str().unwrap()]), 0, "a/loose");
}

#[test]
fn a_failed_reload_changes_nothing() {
    let world = CliWorld::new(STRICT);
    assert_eq!(propose(&world, 1), "allow");
    assert_output(&world.jackline(&["reload", "unknown"]), 2, "no session `unknown`");
    assert_output(&world.jackline(&["reload"]), 1, "nothing to do; change the definition first");
    world.define("version: 1\nlimit: { steps: 9 }\n");
    assert_output(&world.jackline(&["reload"]), 1, "jackline.yaml:2:1");
    assert_output(
        &world.jackline(&["reload"]),
        1,
        "nothing was changed; solve that (`jackline check` shows errors of a definition), then reload",
    );
    fs::remove_file(world.workspace().join("jackline.yaml")).unwrap();
    assert_output(&world.jackline(&["reload"]), 1, "no `jackline.yaml` in");
    let run = world.jackline(&["reload", "--json"]);
    let answer = &run.json_lines()[0];
    assert_eq!((run.code, &answer["done"]), (Some(1), &json!(false)));
    assert_eq!(answer["objections"][0]["subtype"], "definition");
    fs::rename(world.workspace(), world.root().join("moved")).unwrap();
    let run = run_with_input(
        world.person_command().current_dir(world.root().join("moved")).args(["reload", "s"]),
        b"",
    );
    assert_output(&run, 1, "no longer exists");
    fs::rename(world.root().join("moved"), world.workspace()).unwrap();
    assert_eq!(propose(&world, 2), "allow");
    assert_eq!(propose(&world, 3), "stop");
    world.verify_and_replay("s");
}

#[test]
fn a_definition_from_an_option_must_be_named_again() {
    let world = CliWorld::new("version: 1\n");
    fs::write(world.workspace().join("own.yaml"), STRICT).unwrap();
    let line = r#"{"session":"s","event":"session_started"}"#;
    run_with_input(world.person_command().args(["stdio", "-d", "own.yaml"]), line.as_bytes());
    fs::write(world.workspace().join("own.yaml"), LOOSE).unwrap();
    assert_output(
        &world.jackline(&["reload"]),
        1,
        "pass the definition again: `jackline reload -d",
    );
    assert_output(&world.jackline(&["reload", "-d", "own.yaml"]), 0, "uses the current definition");
    assert_output(
        &world.jackline(&["reload", "-d", "gone.yaml"]),
        1,
        "can't read the definition `gone.yaml`",
    );
    assert_output(&world.jackline(&["status"]), 0, "a/loose");
    world.verify_and_replay("s");
}

#[test]
fn a_reload_event_has_the_same_effect_as_the_command() {
    let world = CliWorld::new(STRICT);
    assert_eq!(propose(&world, 1), "allow");
    world.define(LOOSE);
    let reload = r#"{"session":"s","event":"control","action":"reload","by":"dana"}"#;
    let run = world.stdio(&[reload, reload]);
    assert_eq!((run.code, run.decisions()), (Some(0), vec!["allow".to_owned(), "deny".to_owned()]));
    assert_eq!(run.json_lines()[1]["violations"][0]["subtype"], "no_effect");
    let facts = world.records("s")[2].facts.clone();
    assert_eq!(
        facts.reload.map(|fact| serde_json::to_value(fact).unwrap()["new"]["checksum"].clone()),
        Some(json!(Digest::of(LOOSE.as_bytes())))
    );
    world.verify_and_replay("s");
}

/// Removes the definition from the last record and seals the record again.
#[test]
fn a_record_without_its_definition_is_detected_and_denies_every_call() {
    let world = CliWorld::new(STRICT);
    assert_eq!(propose(&world, 1), "allow");
    world.define(LOOSE);
    assert_output(&world.jackline(&["reload"]), 0, "uses the current definition");
    let journal = fs::read_to_string(world.journal_path("s")).unwrap();
    let (before, last) = journal.trim_end().rsplit_once('\n').unwrap();
    let prev = check_line(last.as_bytes()).unwrap().prev;
    let (body, _) = last.rsplit_once(r#","prev":""#).unwrap();
    let (head, rest) = body.split_once(r#","reload":"#).unwrap();
    let (_, tail) = rest.split_once(r#"},"verdict":"#).unwrap();
    let (line, _) = seal(format!(r#"{head}}},"verdict":{tail}"#).as_bytes(), &prev);
    fs::write(world.journal_path("s"), [before.as_bytes(), b"\n", &line].concat()).unwrap();
    fs::remove_file(world.session_directory("s").join("state")).unwrap();
    let missing = "the definition that it puts in force is missing";
    assert_output(&world.jackline(&["verify", "s"]), 1, &format!("record 3 unreadable: {missing}"));
    assert_output(&world.jackline(&["status", "s"]), 3, missing);
    let run = world.stdio(&[r#"{"session":"s","event":"stop_proposed"}"#]);
    assert_output(&run, 3, "the guard is broken, not the call: can't parse record 3");
    assert_output(&run, 3, missing);
}

/// A change by `jackline enforce` counts as a change by the person, even during a call.
#[test]
fn a_change_by_our_own_command_can_be_reloaded_during_a_call() {
    let world = CliWorld::new("version: 1\nmode: observe\nlimits: { steps: 9 }\n");
    let call = r#"{"session":"s","event":"tool_proposed","call":"c1","tool":"Bash","args":{"command":"./build.sh"}}"#;
    assert_eq!(world.stdio(&[call]).decisions(), ["allow"]);
    assert_output(&world.jackline(&["enforce"]), 0, "");
    assert_output(&world.jackline(&["reload"]), 0, "uses the current definition");
    let status = &world.jackline(&["status", "--json"]).json_lines()[0];
    assert_eq!(status["definition"]["mode"], "enforce");
    let done = r#"{"session":"s","event":"tool_finished","call":"c1","status":"ok"}"#;
    assert_eq!(world.stdio(&[done]).decisions(), ["allow"], "the change must not be reverted");
    world.define("version: 1\n");
    assert_eq!(world.stdio(&[call.replace("c1", "c2")]).decisions(), ["allow"]);
    world.define("version: 1\nmode: observe\n");
    assert_output(&world.jackline(&["reload"]), 1, "was changed while a call was running");
    world.verify_and_replay("s");
}
