//! The guard of `jackline attempt` breaks, or its journal changes, while an attempt runs.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::attempt::sandbox;
use crate::support::{CliOutput, CliWorld, JACKLINE, run_with_input};

/// Runs an attempt that commits, and calls `change` with its journal while a command of it runs.
fn attempt_during(world: &CliWorld, more: &[&str], change: impl FnOnce(&Path) + Send) -> CliOutput {
    let (started, go) = (world.root().join("started"), world.root().join("go"));
    let directory = world.root().join("task");
    fs::create_dir_all(&directory).unwrap();
    let text = "prompt: do it\ntools: [write_file, shell]\nmodel: { script: script.yaml }\n";
    fs::write(directory.join("task.yaml"), text).unwrap();
    let line = format!(
        "touch {}; for i in $(seq 300); do test -e {} && exit 0; sleep 0.1; done",
        started.display(),
        go.display()
    );
    let program = format!(
        "tool('write_file')(path='y', content='1')\ntool('shell')(command={})\nok(1)",
        json!(line)
    );
    fs::write(directory.join("script.yaml"), json!({ "steps": [program] }).to_string()).unwrap();
    let mut command = world.command(JACKLINE);
    command.args(["attempt", "--sandbox", sandbox()]).arg(&directory).args(more);
    command.stdin(Stdio::null());
    std::thread::scope(|scope| {
        let sessions = world.home().join("sessions");
        scope.spawn(move || {
            while !started.exists() {
                std::thread::sleep(Duration::from_millis(10));
            }
            let session = fs::read_dir(sessions).unwrap().next().unwrap().unwrap();
            change(&session.path().join("journal.jsonl"));
            fs::write(go, "").unwrap();
        });
        run_with_input(&mut command, b"")
    })
}

#[track_caller]
fn check_broken(run: &CliOutput, kinds: &[&str]) {
    assert_eq!(run.code, Some(3), "{run:?}");
    let last: Value = run.json_lines().pop().unwrap();
    assert!(kinds.contains(&last["error"]["kind"].as_str().unwrap()), "{last}");
    assert_eq!(last["outcome"]["error_type"], "request_not_completed", "{last}");
    assert_eq!(last["outcome"]["normalized"], true, "{last}");
}

#[test]
fn a_journal_that_is_emptied_during_an_attempt_ends_it_as_broken() {
    let world = CliWorld::new("");
    let run = attempt_during(&world, &["--json"], |journal| fs::write(journal, "").unwrap());
    check_broken(&run, &["records", "guard"]);
    assert!(!world.workspace().join("y").exists(), "the attempt is undone");
}

#[test]
fn a_record_that_is_changed_during_an_attempt_ends_it_as_broken() {
    let change = |journal: &Path| {
        let text = fs::read_to_string(journal).unwrap();
        fs::write(journal, text.replacen("do it", "no it", 1)).unwrap();
    };
    let world = CliWorld::new("");
    let run = attempt_during(&world, &["--json"], change);
    check_broken(&run, &["tampered"]);
    assert!(run.stderr.contains("was changed (record "), "{run:?}");

    let world = CliWorld::new("");
    let run = attempt_during(&world, &["--public"], change);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.stdout.contains(r#""error_type":"request_not_completed""#), "{run:?}");
}

#[test]
fn an_attempt_with_an_unchanged_journal_succeeds() {
    let world = CliWorld::new("");
    let run = attempt_during(&world, &["--json"], |_| ());
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.json_lines().pop().unwrap()["error"], Value::Null);
}
