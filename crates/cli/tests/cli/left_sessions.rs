//! Tests of sessions whose process is gone, and of `pending` in one directory.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Stdio};
use std::time::{Duration, UNIX_EPOCH};

use jackline_host::clock::now;
use jackline_runtime::LEFT_AFTER_MS;
use serde_json::{Value, json};

use crate::support::{CliWorld, run_with_input};

const ASK_RULES: &str = "version: 1
rules:
  - { name: ask-ship, command: ship, ask: A person decides., examples: { ask: [ship] } }
";

fn ship(session: &str) -> String {
    json!({
        "session": session, "event": "tool_proposed", "call": "c1", "tool": "Bash",
        "args": { "command": "ship a" },
    })
    .to_string()
}

/// Makes a session look silent for longer than a living one may be.
fn age(world: &CliWorld, session: &str) {
    let now = u64::try_from(now().wall.as_ms()).unwrap();
    let past = UNIX_EPOCH + Duration::from_millis(now - LEFT_AFTER_MS - 60_000);
    let journal = File::options().append(true).open(world.journal_path(session)).unwrap();
    journal.set_modified(past).unwrap();
}

/// Starts a stdio process that has a question and stays alive.
fn start_asking(world: &CliWorld, session: &str) -> Child {
    let mut command = world.person_command();
    let mut child =
        command.arg("stdio").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let line = format!("{}\n", ship(session));
    child.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
    let mut answer = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut answer).unwrap();
    assert!(answer.contains("\"ask\""), "{answer}");
    child
}

fn pending(world: &CliWorld, words: &[&str]) -> Vec<Value> {
    let words = [&["pending", "--json"], words].concat();
    world.jackline(&words).json_lines()
}

#[test]
fn the_question_of_a_killed_process_ages_out_and_stays_answerable() {
    let world = CliWorld::new(ASK_RULES);
    let mut child = start_asking(&world, "s");
    age(&world, "s");
    assert_eq!(pending(&world, &[]).len(), 1, "a silent process that lives is not gone");
    child.kill().unwrap();
    child.wait().unwrap();
    let shown = world.jackline(&["pending"]).stdout;
    assert!(shown.starts_with("no running session in this directory waits for you; "), "{shown}");
    assert!(shown.contains("1 open question of a session whose process is gone"), "{shown}");
    let all = pending(&world, &["--all"]);
    assert_eq!((all.len(), &all[0]["left"], &all[0]["ended"]), (1, &json!(true), &json!(false)));
    for words in [&["status"][..], &["status", "--all"]] {
        let shown = world.jackline(words).stdout;
        assert!(shown.contains("process"), "{shown}");
    }
    // A process that continues the session makes it current again, with the answer.
    let allowed = world.jackline(&["allow", all[0]["code"].as_str().unwrap()]);
    assert_eq!(allowed.code, Some(0), "{allowed:?}");
    let again = world.stdio(&[ship("s").replace("c1", "c2")]);
    assert_eq!(again.json_lines()[0]["decision"], "allow");
    world.verify_and_replay("s");
}

#[test]
fn a_program_may_start_a_process_for_each_event() {
    let world = CliWorld::new(ASK_RULES);
    world.stdio(&[ship("s")]);
    assert_eq!(pending(&world, &[]).len(), 1, "the session was active a moment ago");
    world.verify_and_replay("s");
}

#[test]
fn pending_lists_the_questions_of_this_project() {
    let world = CliWorld::new(ASK_RULES);
    world.stdio(&[ship("here")]);
    let elsewhere = world.root().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let from = |words: &[&str]| {
        run_with_input(world.person_command().current_dir(&elsewhere).args(words), b"")
    };
    let shown = from(&["pending"]).stdout;
    assert!(shown.starts_with("no running session in this directory waits for you; "), "{shown}");
    assert!(
        shown.contains("1 open question in another directory: `jackline pending --all`"),
        "{shown}"
    );
    assert_eq!(from(&["pending", "--json"]).stdout, "");
    assert_eq!(from(&["pending", "--json", "--all"]).json_lines().len(), 1);
    assert_eq!(pending(&world, &[]).len(), 1);
    let below = world.workspace().join("src");
    fs::create_dir(&below).unwrap();
    let run =
        run_with_input(world.person_command().current_dir(&below).args(["pending", "--json"]), b"");
    assert_eq!(run.json_lines().len(), 1, "a directory below belongs to the project");
    world.verify_and_replay("here");
}
