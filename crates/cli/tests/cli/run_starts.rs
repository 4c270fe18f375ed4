//! What keeps `jackline run` from beginning or from going on is said before anything is done,
//! with what to do about it, and to programs as well as to people.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Command;

use serde_json::{Value, json};

use crate::run_support::{REPORT, Task, WORKS, code, ended, mark, session, told};
use crate::support::{JACKLINE, Run, World, feed};

/// One that would do it.
const WORKER: &str = "worker: [sh, -c, 'echo done > report.md']";

/// A task whose worker has these words.
fn by_words<'w>(world: &'w World, words: &Value) -> Task<'w> {
    Task::of(world, REPORT, &[format!("worker: {words}")])
}

/// Nothing was begun; why, by its kind and in words.
fn refused(world: &World, run: &Run, (exit, kind): (i32, &str), parts: &[&str]) {
    assert_eq!(run.code, Some(exit), "{run:?}");
    let ended = ended(run);
    assert_eq!(ended["error"]["kind"], kind, "{run:?}");
    assert_eq!((&ended["stop"], &ended["outcome"]["status"]), (&Value::Null, &"error".into()));
    for part in parts {
        assert!(run.stderr.contains(part), "{part}: {run:?}");
        assert!(ended["error"]["message"].as_str().unwrap().contains(part), "{part}: {run:?}");
    }
    assert!(!world.work().join("report.md").exists(), "{run:?}");
}

#[test]
fn a_program_that_can_not_be_started_is_named_before_anything_begins() {
    let world = World::new("");
    fs::write(world.work().join("dull.sh"), "#!/bin/sh\n").unwrap();
    for (words, part) in [
        (
            json!(["no-such-agent", "--yes"]),
            "`no-such-agent` can't be started: there is no program",
        ),
        (json!(["./worker.sh"]), "a relative one is looked for in the workspace"),
        (json!(["/nowhere/agent"]), "there is no program `/nowhere/agent`"),
        (json!(["./dull.sh"]), "is not executable"),
        (json!(["."]), "there is no program `.` in PATH"),
    ] {
        let run = by_words(&world, &words).run(&[]);
        refused(&world, &run, (2, "program"), &[part]);
        assert_eq!(run.stdout.lines().count(), 1, "{run:?}");
    }
    assert!(!world.home().join("sessions").exists(), "nothing was begun");
    // One that stands behind another is looked for as well.
    let models = [WORKER, "worker: [no-such-agent]"].map(str::to_owned);
    let run = Task::of(&world, REPORT, &models).run(&[]);
    refused(&world, &run, (2, "program"), &["`no-such-agent` can't be started"]);
}

#[test]
fn a_client_that_is_not_there_is_named_before_anything_begins() {
    let world = World::new("");
    let models = [WORKER, "worker: claude"].map(str::to_owned);
    let task = Task::of(&world, REPORT, &models);
    let bin = world.root().join("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink("/bin/sh", bin.join("sh")).unwrap();
    let mut command = task.command(&["--json", "--no-wait"]);
    let run = feed(command.arg(&task.directory).env("PATH", &bin), b"");
    refused(&world, &run, (2, "program"), &["`claude` can't be started"]);
    assert!(!world.home().join("sessions").exists(), "nothing was begun");
}

#[test]
fn a_relative_program_lies_in_the_workspace_wherever_the_run_is_started() {
    let world = World::new("");
    let program = world.work().join("worker.sh");
    fs::write(&program, "#!/bin/sh\necho \"$1\" > report.md\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let task = by_words(&world, &json!(["./worker.sh"]));
    let work = world.work();
    let mut command = task.command(&["--json", "--no-wait", "-w", work.to_str().unwrap()]);
    let command = command.arg(&task.directory).current_dir(world.root());
    let run = feed(command, b"");
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(fs::read_to_string(work.join("report.md")).unwrap(), "write report.md\n");
}

#[test]
fn a_prompt_that_fits_on_no_command_line_is_refused_at_once_and_a_model_takes_it() {
    let long = "x".repeat(128 << 10);
    for (prompt, parts) in [
        (long.as_str(), ["131074 bytes", "a file of the workspace"]),
        ("nul \\0 byte", ["the prompt can't be given to `sh`", "NUL"]),
    ] {
        let world = World::new("");
        let text = format!("prompt: \"{prompt}\"\ndefinition: jackline.yaml\n");
        let task = Task::worker(&world, REPORT, "echo done > report.md");
        fs::write(task.directory.join("task.yaml"), &text).unwrap();
        refused(&world, &task.run(&[]), (2, "prompt"), &parts);
        assert!(!world.home().join("sessions").exists(), "nothing was begun");
        let task = Task::new(&world, REPORT, &[("main", WORKS)]);
        fs::write(task.directory.join("task.yaml"), text + "scripts: { main: main.yaml }\n")
            .unwrap();
        let run = task.run(&[]);
        assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    }
}

#[test]
fn where_no_iteration_is_allowed_nobody_is_started_until_a_person_lets_them() {
    let definition = format!("{REPORT}limits: {{ iterations: 0 }}\n");
    let world = World::new("");
    let worker = Task::worker(&world, &definition, "touch started; echo done > report.md");
    let run = worker.run(&[]);
    assert_eq!(run.code, Some(1), "{run:?}");
    let why = "left: it waits for a person: `limits.iterations` is 0, so nothing is begun";
    assert!(code(&run).starts_with(why) && code(&run).contains("jackline ack"), "{run:?}");
    assert_eq!(ended(&run)["evidence"]["iterations"], 0);
    assert!(!world.work().join("started").exists() && told(&run, "asking").is_empty(), "{run:?}");
    let id = session(&run);
    assert_eq!(world.jackline(&["ack", &id]).code, Some(0));
    let run = worker.resume(&[&id]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    world.prove(&id);
    let world = World::new("");
    let run = Task::new(&world, &definition, &[("main", WORKS)]).run(&[]);
    assert!(code(&run).starts_with(why) && told(&run, "asking").is_empty(), "{run:?}");
    world.prove(&session(&run));
}

#[test]
fn the_tools_of_a_run_are_known_where_unknown_ones_are_denied() {
    let world = World::new("");
    let script = "steps:\n  - calls: [{ tool: nobody, args: {} }]\n".to_owned()
        + WORKS.trim_start_matches("steps:\n");
    let strict = format!("extends: [strict]\n{REPORT}");
    let run = Task::new(&world, &strict, &[("main", &script)]).run(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let decisions: Vec<_> = told(&run, "called").iter().map(|it| it["decision"].clone()).collect();
    assert_eq!(decisions, ["deny", "allow"], "{run:?}");
    world.prove(&session(&run));
    // Whoever lists tools has said which there are.
    let world = World::new("");
    let listed = format!("{strict}tools: {{ read_file: {{}} }}\n");
    let run = Task::new(&world, &listed, &[("main", WORKS)]).run(&[]);
    assert_eq!(told(&run, "called")[0]["decision"], "deny", "{run:?}");
    assert!(!world.work().join("report.md").exists(), "{run:?}");
    world.prove(&session(&run));
}

#[test]
fn every_end_of_a_run_has_a_last_object() {
    let world = World::new("");
    let task = Task::new(&world, REPORT, &[("main", WORKS)]);
    let nowhere = task.run(&["-d", "/nowhere/jackline.yaml"]);
    refused(&world, &nowhere, (2, "usage"), &["no definition `/nowhere/jackline.yaml`"]);
    let nobody = task.resume(&["run-0"]);
    refused(&world, &nobody, (2, "usage"), &["run-0"]);
    let home = world.home().display().to_string();
    let line = format!("rm {home}/sessions/run-*/journal.jsonl");
    let run = Task::worker(&world, REPORT, &line).run(&[]);
    refused(&world, &run, (3, "records"), &["was removed", "`jackline run TASK` begins a new one"]);
    assert!(!run.stderr.contains("--resume"), "it can't be: {run:?}");
    let id = &told(&run, "started")[0]["session"];
    assert_eq!(&ended(&run)["session"], id);
}

/// A run that a person holds, of which something is spoilt.
fn held(world: &World) -> (Task<'_>, String) {
    mark(world, "PAUSE");
    let task = Task::new(world, REPORT, &[("main", WORKS)]);
    let id = session(&task.run(&[]));
    fs::remove_file(world.work().join(".jackline/PAUSE")).unwrap();
    (task, id)
}

#[test]
fn a_conversation_that_is_spoilt_is_named_and_can_be_done_without() {
    let world = World::new("");
    let (task, id) = held(&world);
    let file = world.directory(&id).join("conversation.jsonl");
    let kept = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{kept}{{\"half\n")).unwrap();
    let run = task.resume(&[&id]);
    let line = format!("line {} is no message", kept.lines().count() + 1);
    let parts = ["conversation.jsonl`", line.as_str(), "move that file away"];
    refused(&world, &run, (3, "conversation"), &parts);
    assert!(!run.stderr.contains("make room"), "{run:?}");
    fs::remove_file(&file).unwrap();
    let run = task.resume(&[&id]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert!(fs::read_to_string(&file).unwrap().contains("Where the work stands"));
    world.prove(&id);
}

#[test]
fn what_a_run_was_begun_with_is_missed_by_its_name_and_without() {
    let world = World::new("");
    let (task, id) = held(&world);
    fs::write(world.directory(&id).join("run.json"), "{").unwrap();
    for words in [&[id.as_str()][..], &[]] {
        let run = task.resume(words);
        let parts = ["run.json`", "can't be read", "give that file back, or begin a new run"];
        refused(&world, &run, (3, "kept"), &parts);
        assert_eq!(ended(&run)["session"], id.as_str());
    }
    fs::remove_file(world.directory(&id).join("run.json")).unwrap();
    let run = task.resume(&[&id]);
    refused(&world, &run, (2, "usage"), &["is no run"]);
}

/// Nobody writes to a pipe that is named by mistake, and a device has no end.
#[test]
fn a_task_that_is_no_file_is_not_waited_for() {
    let world = World::new("");
    let task = Task::new(&world, REPORT, &[("main", WORKS)]);
    let in_time = || {
        let mut command = world.command("timeout");
        feed(command.args(["20", JACKLINE, "run", "--json"]).arg(&task.directory), b"")
    };
    for name in ["task.yaml", "main.yaml"] {
        let path = task.directory.join(name);
        let kept = fs::read(&path).unwrap();
        for what in ["pipe", "endless", "huge"] {
            fs::remove_file(&path).unwrap();
            match what {
                "pipe" => assert!(Command::new("mkfifo").arg(&path).status().unwrap().success()),
                "endless" => symlink("/dev/zero", &path).unwrap(),
                _ => fs::File::create(&path).unwrap().set_len(1 << 40).unwrap(),
            }
            let run = in_time();
            assert_eq!(run.code, Some(2), "{name} {what}: {run:?}");
            let why = if what == "huge" { "it has more than" } else { "it is not a regular file" };
            assert!(run.stderr.contains(&format!("{name}`: {why}")), "{name} {what}: {run:?}");
        }
        fs::remove_file(&path).unwrap();
        fs::write(&path, kept).unwrap();
    }
    assert_eq!(code(&in_time()), "OBJECTIVE_ACHIEVED");
}

#[test]
fn one_is_one_step_and_one_iteration() {
    let world = World::new("");
    let task = Task::new(&world, REPORT, &[("main", WORKS)]);
    let run = feed(task.command(&["--no-wait"]).arg(&task.directory), b"");
    assert!(run.stdout.contains("1 iteration (0 of them ended), 1 step, "), "{run:?}");
}
