//! Tests of the reasons for which `jackline run` refuses to start or to resume. Each reason is
//! reported before anything runs, with the action that helps, to programs and to people.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Command;

use serde_json::{Value, json};

use crate::run_support::{
    REPORT_COMPLETION, REPORT_SCRIPT, TaskDirectory, create_control_file, ended_event,
    events_named, session_id, stop_code,
};
use crate::support::{CliOutput, CliWorld, JACKLINE, run_with_input};

/// A worker that finishes the task.
const WORKER: &str = "worker: [sh, -c, 'echo done > report.md']";

/// A task with a worker that has this command line.
fn task_with_worker_command<'w>(world: &'w CliWorld, command: &Value) -> TaskDirectory<'w> {
    TaskDirectory::with_models(world, REPORT_COMPLETION, &[format!("worker: {command}")])
}

/// Checks that nothing was started, and the kind and the text of the reason.
fn assert_refused(world: &CliWorld, run: &CliOutput, (exit, kind): (i32, &str), parts: &[&str]) {
    assert_eq!(run.code, Some(exit), "{run:?}");
    let ended = ended_event(run);
    assert_eq!(ended["error"]["kind"], kind, "{run:?}");
    assert_eq!((&ended["stop"], &ended["outcome"]["status"]), (&Value::Null, &"error".into()));
    for part in parts {
        assert!(run.stderr.contains(part), "{part}: {run:?}");
        assert!(ended["error"]["message"].as_str().unwrap().contains(part), "{part}: {run:?}");
    }
    assert!(!world.workspace().join("report.md").exists(), "{run:?}");
}

#[test]
fn a_program_that_cannot_be_started_is_named_before_anything_runs() {
    let world = CliWorld::new("");
    fs::write(world.workspace().join("plain.sh"), "#!/bin/sh\n").unwrap();
    for (command, part) in [
        (json!(["no-such-agent", "--yes"]), "`no-such-agent` can't be started: program"),
        (json!(["./worker.sh"]), "a relative path starts at the workspace"),
        (json!(["/nowhere/agent"]), "program `/nowhere/agent` does not exist"),
        (json!(["./plain.sh"]), "is not executable"),
        (json!(["."]), "program `.` is not in PATH"),
    ] {
        let run = task_with_worker_command(&world, &command).run(&[]);
        assert_refused(&world, &run, (2, "program"), &[part]);
        assert_eq!(run.stdout.lines().count(), 1, "{run:?}");
    }
    assert!(!world.home().join("sessions").exists(), "no session may be started");
    // A program after the first one is checked, too.
    let models = [WORKER, "worker: [no-such-agent]"].map(str::to_owned);
    let run = TaskDirectory::with_models(&world, REPORT_COMPLETION, &models).run(&[]);
    assert_refused(&world, &run, (2, "program"), &["`no-such-agent` can't be started"]);
}

#[test]
fn a_missing_client_is_named_before_anything_runs() {
    let world = CliWorld::new("");
    let models = [WORKER, "worker: claude"].map(str::to_owned);
    let task = TaskDirectory::with_models(&world, REPORT_COMPLETION, &models);
    let bin = world.root().join("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink("/bin/sh", bin.join("sh")).unwrap();
    let mut command = task.run_command(&["--json", "--no-wait"]);
    let run = run_with_input(command.arg(&task.directory).env("PATH", &bin), b"");
    assert_refused(&world, &run, (2, "program"), &["`claude` can't be started"]);
    assert!(!world.home().join("sessions").exists(), "no session may be started");
}

#[test]
fn a_relative_program_path_starts_at_the_workspace() {
    let world = CliWorld::new("");
    let program = world.workspace().join("worker.sh");
    fs::write(&program, "#!/bin/sh\necho \"$1\" > report.md\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let task = task_with_worker_command(&world, &json!(["./worker.sh"]));
    let work = world.workspace();
    let mut command = task.run_command(&["--json", "--no-wait", "-w", work.to_str().unwrap()]);
    let command = command.arg(&task.directory).current_dir(world.root());
    let run = run_with_input(command, b"");
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert_eq!(fs::read_to_string(work.join("report.md")).unwrap(), "write report.md\n");
}

#[test]
fn a_prompt_too_long_for_a_command_line_is_refused_for_a_worker_but_not_for_a_model() {
    let long = "x".repeat(128 << 10);
    for (prompt, parts) in [
        (long.as_str(), ["131074 bytes", "a file of the workspace"]),
        ("nul \\0 byte", ["the prompt can't be passed to `sh`", "NUL"]),
    ] {
        let world = CliWorld::new("");
        let text = format!("prompt: \"{prompt}\"\ndefinition: jackline.yaml\n");
        let task = TaskDirectory::with_worker(&world, REPORT_COMPLETION, "echo done > report.md");
        fs::write(task.directory.join("task.yaml"), &text).unwrap();
        assert_refused(&world, &task.run(&[]), (2, "prompt"), &parts);
        assert!(!world.home().join("sessions").exists(), "no session may be started");
        let task = TaskDirectory::new(&world, REPORT_COMPLETION, &[("main", REPORT_SCRIPT)]);
        fs::write(task.directory.join("task.yaml"), text + "scripts: { main: main.yaml }\n")
            .unwrap();
        let run = task.run(&[]);
        assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    }
}

#[test]
fn with_an_iteration_limit_of_0_nothing_starts_until_a_person_acknowledges() {
    let definition = format!("{REPORT_COMPLETION}limits: {{ iterations: 0 }}\n");
    let world = CliWorld::new("");
    let worker =
        TaskDirectory::with_worker(&world, &definition, "touch started; echo done > report.md");
    let run = worker.run(&[]);
    assert_eq!(run.code, Some(1), "{run:?}");
    let reason = "left: it waits for a person: `limits.iterations` is 0, so no iteration may start";
    assert!(
        stop_code(&run).starts_with(reason) && stop_code(&run).contains("jackline ack"),
        "{run:?}"
    );
    assert_eq!(ended_event(&run)["evidence"]["iterations"], 0);
    assert!(
        !world.workspace().join("started").exists() && events_named(&run, "asking").is_empty(),
        "{run:?}"
    );
    let id = session_id(&run);
    assert_eq!(world.jackline(&["ack", &id]).code, Some(0));
    let run = worker.resume(&[&id]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    world.verify_and_replay(&id);
    let world = CliWorld::new("");
    let run = TaskDirectory::new(&world, &definition, &[("main", REPORT_SCRIPT)]).run(&[]);
    assert!(
        stop_code(&run).starts_with(reason) && events_named(&run, "asking").is_empty(),
        "{run:?}"
    );
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn the_tools_of_a_run_are_known_in_a_strict_definition() {
    let world = CliWorld::new("");
    let script = "steps:\n  - calls: [{ tool: unknown, args: {} }]\n".to_owned()
        + REPORT_SCRIPT.trim_start_matches("steps:\n");
    let strict = format!("extends: [strict]\n{REPORT_COMPLETION}");
    let run = TaskDirectory::new(&world, &strict, &[("main", &script)]).run(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let decisions: Vec<_> =
        events_named(&run, "called").iter().map(|it| it["decision"].clone()).collect();
    assert_eq!(decisions, ["deny", "allow"], "{run:?}");
    world.verify_and_replay(&session_id(&run));
    // A definition that denies undeclared tools allows only those that it declares.
    let world = CliWorld::new("");
    let listed = format!("{strict}unknown_tools: deny\ntools: {{ read_file: {{}} }}\n");
    let run = TaskDirectory::new(&world, &listed, &[("main", REPORT_SCRIPT)]).run(&[]);
    assert_eq!(events_named(&run, "called")[0]["decision"], "deny", "{run:?}");
    assert!(!world.workspace().join("report.md").exists(), "{run:?}");
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn every_end_of_a_run_prints_a_final_object() {
    let world = CliWorld::new("");
    let task = TaskDirectory::new(&world, REPORT_COMPLETION, &[("main", REPORT_SCRIPT)]);
    let refusal = task.run(&["-d", "/nowhere/jackline.yaml"]);
    assert_refused(&world, &refusal, (2, "usage"), &["no definition `/nowhere/jackline.yaml`"]);
    let refusal = task.resume(&["run-0"]);
    assert_refused(&world, &refusal, (2, "usage"), &["run-0"]);
    let home = world.home().display().to_string();
    let line = format!("rm {home}/sessions/run-*/journal.jsonl");
    let run = TaskDirectory::with_worker(&world, REPORT_COMPLETION, &line).run(&[]);
    assert_refused(
        &world,
        &run,
        (3, "records"),
        &["was removed", "start a new one with `jackline run TASK`"],
    );
    assert!(!run.stderr.contains("--resume"), "the run cannot be resumed: {run:?}");
    let id = &events_named(&run, "started")[0]["session"];
    assert_eq!(&ended_event(&run)["session"], id);
}

/// A run that a person paused. The tests then damage one of its files.
fn paused_run(world: &CliWorld) -> (TaskDirectory<'_>, String) {
    create_control_file(world, "PAUSE");
    let task = TaskDirectory::new(world, REPORT_COMPLETION, &[("main", REPORT_SCRIPT)]);
    let id = session_id(&task.run(&[]));
    fs::remove_file(world.workspace().join(".jackline/PAUSE")).unwrap();
    (task, id)
}

#[test]
fn a_damaged_conversation_is_named_and_can_be_deleted() {
    let world = CliWorld::new("");
    let (task, id) = paused_run(&world);
    let file = world.session_directory(&id).join("conversation.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{text}{{\"half\n")).unwrap();
    let run = task.resume(&[&id]);
    let line = format!("line {} is not a valid message", text.lines().count() + 1);
    let parts = ["conversation.jsonl`", line.as_str(), "move that file away"];
    assert_refused(&world, &run, (3, "conversation"), &parts);
    assert!(!run.stderr.contains("free some space"), "{run:?}");
    fs::remove_file(&file).unwrap();
    let run = task.resume(&[&id]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    assert!(fs::read_to_string(&file).unwrap().contains("State of the work"));
    world.verify_and_replay(&id);
}

#[test]
fn a_damaged_run_file_is_named_in_every_resume() {
    let world = CliWorld::new("");
    let (task, id) = paused_run(&world);
    fs::write(world.session_directory(&id).join("run.json"), "{").unwrap();
    for args in [&[id.as_str()][..], &[]] {
        let run = task.resume(args);
        let parts = ["run.json`", "can't read", "restore this file or start a new run"];
        assert_refused(&world, &run, (3, "kept"), &parts);
        assert_eq!(ended_event(&run)["session"], id.as_str());
    }
    fs::remove_file(world.session_directory(&id).join("run.json")).unwrap();
    let run = task.resume(&[&id]);
    assert_refused(&world, &run, (2, "usage"), &["is not a run"]);
}

/// A pipe without a writer would block, and a device has no end.
#[test]
fn a_task_that_is_not_a_regular_file_does_not_block() {
    let world = CliWorld::new("");
    let task = TaskDirectory::new(&world, REPORT_COMPLETION, &[("main", REPORT_SCRIPT)]);
    let run_within_20_seconds = || {
        let mut command = world.command("timeout");
        run_with_input(command.args(["20", JACKLINE, "run", "--json"]).arg(&task.directory), b"")
    };
    for name in ["task.yaml", "main.yaml"] {
        let path = task.directory.join(name);
        let content = fs::read(&path).unwrap();
        for kind in ["pipe", "endless", "huge"] {
            fs::remove_file(&path).unwrap();
            match kind {
                "pipe" => assert!(Command::new("mkfifo").arg(&path).status().unwrap().success()),
                "endless" => symlink("/dev/zero", &path).unwrap(),
                _ => fs::File::create(&path).unwrap().set_len(1 << 40).unwrap(),
            }
            let run = run_within_20_seconds();
            assert_eq!(run.code, Some(2), "{name} {kind}: {run:?}");
            let reason = match kind {
                "pipe" => "it is a pipe; give the path of a regular file instead",
                "endless" => "it is a device; give the path of a regular file instead",
                _ => "it has more than",
            };
            assert!(run.stderr.contains(&format!("{name}`: {reason}")), "{name} {kind}: {run:?}");
        }
        fs::remove_file(&path).unwrap();
        fs::write(&path, content).unwrap();
    }
    assert_eq!(stop_code(&run_within_20_seconds()), "OBJECTIVE_ACHIEVED");
}

#[test]
fn one_iteration_and_one_step_are_printed_in_the_singular() {
    let world = CliWorld::new("");
    let task = TaskDirectory::new(&world, REPORT_COMPLETION, &[("main", REPORT_SCRIPT)]);
    let run = run_with_input(task.run_command(&["--no-wait"]).arg(&task.directory), b"");
    assert!(run.stdout.contains("1 iteration (0 of them ended), 1 step, "), "{run:?}");
}
