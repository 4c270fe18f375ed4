//! What a person does about a run: takes back what it wrote, changes its definition, lets it
//! go on.

use std::fs;

use serde_json::{Value, json};

use crate::run_support::{REPORT, Task, code, ended, session};
use crate::support::{World, feed};

/// A script that makes these calls, and is done.
fn script(calls: &[(&str, Value)]) -> String {
    let call = |(tool, args): &(&str, Value)| json!({ "calls": [{ "tool": tool, "args": args }] });
    let mut steps: Vec<Value> = calls.iter().map(call).collect();
    steps.push(json!({ "text": "done" }));
    json!({ "steps": steps }).to_string()
}

#[test]
fn what_a_run_wrote_by_tools_is_taken_back() {
    let world = World::new("");
    let keep = world.work().join("keep.txt");
    fs::write(&keep, "as it was\n").unwrap();
    let script = script(&[
        ("read_file", json!({ "path": "keep.txt" })),
        ("edit_file", json!({ "path": "keep.txt", "old": "was", "new": "is" })),
        ("write_file", json!({ "path": "keep.txt", "content": "gone" })),
        ("write_file", json!({ "path": "report.md", "content": "x" })),
        ("write_file", json!({ "path": "a/../b/new", "content": "x" })),
    ]);
    let run = Task::new(&world, REPORT, &[("main", &script)]).run(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(fs::read_to_string(&keep).unwrap(), "gone");
    let undone = feed(world.person().args(["undo", &session(&run)]), b"");
    assert_eq!(undone.code, Some(0), "{undone:?}");
    assert_eq!(fs::read_to_string(&keep).unwrap(), "as it was\n");
    for made in ["report.md", "b/new", "b"] {
        assert!(!world.work().join(made).exists(), "{made}: {undone:?}");
    }
}

#[test]
fn a_run_is_reloaded_by_the_definition_that_it_was_begun_under() {
    let world = World::new("");
    let script = script(&[("write_file", json!({ "path": "report.md", "content": "x" }))]);
    let demands = "completion: { command: \"true\" }\nlimits: { iterations: 1 }\n";
    let task = Task::new(&world, demands, &[("main", &script)]);
    fs::create_dir_all(world.work().join(".jackline")).unwrap();
    fs::write(world.work().join(".jackline/PAUSE"), "").unwrap();
    let run = task.run(&[]);
    let left = code(&run);
    assert!(left.contains("; first remove .jackline/PAUSE"), "{left}");
    let id = session(&run);
    let file = task.directory.join("jackline.yaml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("iterations: 1", "iterations: 9")).unwrap();
    let reloaded = feed(world.person().args(["reload", &id]), b"");
    assert_eq!(reloaded.code, Some(0), "{reloaded:?}");
    fs::remove_file(world.work().join(".jackline/PAUSE")).unwrap();
    // What held it was the file, and a word lifts what a word has put there.
    let word = |word: &str| feed(world.person().args([word, &id]), b"");
    let resumed = word("resume");
    assert_eq!(resumed.code, Some(1), "{resumed:?}");
    assert!(resumed.stderr.contains("the session is not paused; nothing to do"), "{resumed:?}");
    assert_eq!(word("pause").code, Some(0));
    let resumed = word("resume");
    assert_eq!((resumed.code, resumed.stderr.as_str()), (Some(0), ""), "{resumed:?}");
    let again = format!("one that was left, by `jackline run --resume {id}`");
    assert!(resumed.stdout.contains(&again), "{resumed:?}");
    // The command of a definition that a person has named is run without a further word.
    let run = task.resume(&[&id]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
}

/// What is kept of a run may be of an older program, or not readable at all.
#[test]
fn no_other_definition_is_taken_for_that_of_a_run() {
    let world = World::new("");
    let task = Task::new(&world, REPORT, &[("main", &script(&[]))]);
    fs::create_dir_all(world.work().join(".jackline")).unwrap();
    fs::write(world.work().join(".jackline/PAUSE"), "").unwrap();
    let named = world.root().join("named.yaml");
    let own = fs::read_to_string(task.directory.join("jackline.yaml")).unwrap();
    fs::write(&named, format!("{own}limits: {{ iterations: 1 }}\n")).unwrap();
    let id = session(&task.run(&["-d", named.to_str().unwrap()]));
    let file = world.directory(&id).join("run.json");
    let mut kept: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    kept.as_object_mut().unwrap().remove("defined_by").unwrap();
    fs::write(&file, kept.to_string()).unwrap();
    let same = world.jackline(&["reload", &id]);
    assert_ne!(same.code, Some(0), "nothing has changed: {same:?}");
    fs::write(&named, format!("{own}limits: {{ iterations: 9 }}\n")).unwrap();
    assert_eq!(world.jackline(&["reload", &id]).code, Some(0));
    fs::write(&file, "{").unwrap();
    let broken = world.jackline(&["reload", &id]);
    assert_eq!(broken.code, Some(3), "{broken:?}");
    assert!(broken.stderr.contains("name its definition with `-d`"), "{broken:?}");
}

#[test]
fn a_key_that_a_task_names_has_to_be_there() {
    let world = World::new("");
    let model = "provider: openai-chat, model: m, url: \"http://127.0.0.1:9/v1\", key_env: NO_SUCH";
    let run = Task::of(&world, REPORT, &[model.to_owned()]).run(&[]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("the variable `NO_SUCH`, which `key_env` names"), "{run:?}");
}

#[test]
fn where_nothing_says_when_it_is_done_that_is_said() {
    let world = World::new("");
    let task = Task::new(&world, "", &[("main", &script(&[]))]);
    let run = feed(task.command(&["--no-wait"]).arg(&task.directory), b"");
    assert!(run.stdout.contains("NO_EVIDENCE"), "{run:?}");
    assert!(run.stdout.contains("give the definition a `completion`"), "{run:?}");
    let run = task.run(&[]);
    assert_eq!(ended(&run)["stop"]["code"], "NO_EVIDENCE");
}
