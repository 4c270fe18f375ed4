//! Tests of a person's actions on a run: undo its changes, reload its definition, and resume it.

use std::fs;

use serde_json::{Value, json};

use crate::run_support::{REPORT_COMPLETION, TaskDirectory, ended_event, session_id, stop_code};
use crate::support::{CliWorld, run_with_input};

/// A model script that makes these calls and then stops.
fn script_with_calls(calls: &[(&str, Value)]) -> String {
    let call = |(tool, args): &(&str, Value)| json!({ "calls": [{ "tool": tool, "args": args }] });
    let mut steps: Vec<Value> = calls.iter().map(call).collect();
    steps.push(json!({ "text": "done" }));
    json!({ "steps": steps }).to_string()
}

#[test]
fn changes_of_a_run_are_undone() {
    let world = CliWorld::new("");
    let keep = world.workspace().join("keep.txt");
    fs::write(&keep, "as it was\n").unwrap();
    let script = script_with_calls(&[
        ("read_file", json!({ "path": "keep.txt" })),
        ("edit_file", json!({ "path": "keep.txt", "old": "was", "new": "is" })),
        ("write_file", json!({ "path": "keep.txt", "content": "gone" })),
        ("write_file", json!({ "path": "report.md", "content": "x" })),
        ("write_file", json!({ "path": "a/../b/new", "content": "x" })),
    ]);
    let run = TaskDirectory::new(&world, REPORT_COMPLETION, &[("main", &script)]).run(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(fs::read_to_string(&keep).unwrap(), "gone");
    let undone = run_with_input(world.person_command().args(["undo", &session_id(&run)]), b"");
    assert_eq!(undone.code, Some(0), "{undone:?}");
    assert_eq!(fs::read_to_string(&keep).unwrap(), "as it was\n");
    for path in ["report.md", "b/new", "b"] {
        assert!(!world.workspace().join(path).exists(), "{path}: {undone:?}");
    }
}

#[test]
fn a_run_is_reloaded_from_the_definition_under_which_it_started() {
    let world = CliWorld::new("");
    let script =
        script_with_calls(&[("write_file", json!({ "path": "report.md", "content": "x" }))]);
    let definition = "completion: { command: \"true\" }\nlimits: { iterations: 1 }\n";
    let task = TaskDirectory::new(&world, definition, &[("main", &script)]);
    fs::create_dir_all(world.workspace().join(".jackline")).unwrap();
    fs::write(world.workspace().join(".jackline/PAUSE"), "").unwrap();
    let run = task.run(&[]);
    let reason = stop_code(&run);
    assert!(reason.contains("; to continue: remove .jackline/PAUSE"), "{reason}");
    let id = session_id(&run);
    let file = task.directory.join("jackline.yaml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("iterations: 1", "iterations: 9")).unwrap();
    let reloaded = run_with_input(world.person_command().args(["reload", &id]), b"");
    assert_eq!(reloaded.code, Some(0), "{reloaded:?}");
    fs::remove_file(world.workspace().join(".jackline/PAUSE")).unwrap();
    // The control file paused the run, so the `resume` command has nothing to do. It ends only a
    // pause by a command.
    let send = |action: &str| run_with_input(world.person_command().args([action, &id]), b"");
    let resumed = send("resume");
    assert_eq!(resumed.code, Some(1), "{resumed:?}");
    assert!(resumed.stderr.contains("the session is not paused; nothing to do"), "{resumed:?}");
    assert_eq!(send("pause").code, Some(0));
    let resumed = send("resume");
    assert_eq!((resumed.code, resumed.stderr.as_str()), (Some(0), ""), "{resumed:?}");
    let again = format!("resume an interrupted one with `jackline run --resume {id}`");
    assert!(resumed.stdout.contains(&again), "{resumed:?}");
    // A person named the definition, so its command runs without another confirmation.
    let run = task.resume(&[&id]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
}

/// The saved state of a run may come from an older program, or may be unreadable.
#[test]
fn a_run_is_not_reloaded_from_another_definition() {
    let world = CliWorld::new("");
    let task = TaskDirectory::new(&world, REPORT_COMPLETION, &[("main", &script_with_calls(&[]))]);
    fs::create_dir_all(world.workspace().join(".jackline")).unwrap();
    fs::write(world.workspace().join(".jackline/PAUSE"), "").unwrap();
    let named = world.root().join("named.yaml");
    let own = fs::read_to_string(task.directory.join("jackline.yaml")).unwrap();
    fs::write(&named, format!("{own}limits: {{ iterations: 1 }}\n")).unwrap();
    let id = session_id(&task.run(&["-d", named.to_str().unwrap()]));
    let file = world.session_directory(&id).join("run.json");
    let mut saved: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    saved.as_object_mut().unwrap().remove("defined_by").unwrap();
    fs::write(&file, saved.to_string()).unwrap();
    let same = world.jackline(&["reload", &id]);
    assert_ne!(same.code, Some(0), "an unchanged definition is not reloaded: {same:?}");
    fs::write(&named, format!("{own}limits: {{ iterations: 9 }}\n")).unwrap();
    assert_eq!(world.jackline(&["reload", &id]).code, Some(0));
    fs::write(&file, "{").unwrap();
    let broken = world.jackline(&["reload", &id]);
    assert_eq!(broken.code, Some(3), "{broken:?}");
    assert!(broken.stderr.contains("jackline reload"), "{broken:?}");
}

#[test]
fn a_missing_key_variable_of_a_definition_is_an_error() {
    let world = CliWorld::new("");
    let model = "provider: openai-chat, model: m, url: \"http://127.0.0.1:9/v1\", key_env: NO_SUCH";
    let run = TaskDirectory::with_models(&world, REPORT_COMPLETION, &[model.to_owned()]).run(&[]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("the variable `NO_SUCH`, which `key_env` names"), "{run:?}");
}

#[test]
fn a_check_that_did_not_pass_in_observe_mode_is_reported_as_such() {
    let world = CliWorld::new("");
    let definition = "mode: observe\ncompletion: { files: [never.md] }\n";
    let task = TaskDirectory::new(&world, definition, &[("main", &script_with_calls(&[]))]);
    let run = run_with_input(task.run_command(&["--no-wait"]).arg(&task.directory), b"");
    assert!(run.stdout.contains("finished (completion check not passed)"), "{run:?}");
    assert!(run.stdout.contains("the completion check did not pass"), "{run:?}");
    assert!(!run.stdout.contains("add a `completion` section"), "{run:?}");
    let run = task.run(&[]);
    assert_eq!(stop_code(&run), "NO_EVIDENCE{completion}");
    let log = world.jackline(&["log", &session_id(&run)]);
    assert!(log.stdout.contains("completion check not passed"), "{log:?}");
}

#[test]
fn an_observed_limit_does_not_end_a_run() {
    let world = CliWorld::new("");
    let definition = "mode: observe\nlimits: { steps: 1 }\ncompletion: { files: [b] }\n";
    let write = |path: &str| ("write_file", json!({ "path": path, "content": "1" }));
    let calls = script_with_calls(&[write("a"), write("b")]);
    let task = TaskDirectory::new(&world, definition, &[("main", &calls)]);
    let run = task.run(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(run.code, Some(0), "{run:?}");
}

#[test]
fn a_run_without_a_completion_check_is_reported_as_such() {
    let world = CliWorld::new("");
    let task = TaskDirectory::new(&world, "", &[("main", &script_with_calls(&[]))]);
    let run = run_with_input(task.run_command(&["--no-wait"]).arg(&task.directory), b"");
    assert!(run.stdout.contains("finished (no completion check)"), "{run:?}");
    assert!(run.stdout.contains("add a `completion` section"), "{run:?}");
    let run = task.run(&[]);
    assert_eq!(ended_event(&run)["stop"]["code"], "NO_EVIDENCE");
}

#[test]
fn a_run_without_a_terminal_does_not_wait_for_a_person() {
    let world = CliWorld::new("");
    let idle = "steps:\n  - text: I am done.\nrepeat: true\n";
    let task = TaskDirectory::new(&world, REPORT_COMPLETION, &[("main", idle)]);
    let run = run_with_input(task.run_command(&[]).arg(&task.directory), b"");
    assert_eq!(run.code, Some(1), "{run:?}");
    for part in [
        "not finished: it waits for a person: ",
        "read .jackline/BLOCKER_REPORT.md, then `jackline clear`",
        "resume with jackline run --resume run-",
    ] {
        assert!(run.stdout.contains(part), "{part}: {run:?}");
    }
    let run = run_with_input(task.run_command(&["--json"]).arg(&task.directory), b"");
    let resume = ended_event(&run)["resume"].as_str().unwrap().to_owned();
    assert_eq!(resume, format!("jackline run --resume {}", session_id(&run)));
    let refused =
        run_with_input(task.run_command(&["--wait", "--no-wait"]).arg(&task.directory), b"");
    assert_eq!(refused.code, Some(2), "{refused:?}");
}
