//! Tests of how a person finds runs in the commands that show sessions, and of what these commands
//! print.

use std::fs;

use crate::run_support::{
    REPORT_COMPLETION, REPORT_SCRIPT, TaskDirectory, count_sleepers, poll_until, session_id,
    stop_code,
};
use crate::support::{CliOutput, CliWorld, run_with_input};

/// A finished run with different start and work directories. Returns the session and the start
/// directory.
fn run_in_other_directory(world: &CliWorld) -> (String, std::path::PathBuf) {
    let (started_in, works_in) = (world.root().join("start"), world.root().join("far"));
    [&started_in, &works_in].iter().for_each(|it| fs::create_dir(it).unwrap());
    let task = TaskDirectory::new(world, REPORT_COMPLETION, &[("main", REPORT_SCRIPT)]);
    let mut command = task.run_command(&["--json", "--no-wait", "-w"]);
    let run =
        run_with_input(command.arg(works_in).arg(&task.directory).current_dir(&started_in), b"");
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    (session_id(&run), started_in)
}

fn run_in_directory(world: &CliWorld, directory: &std::path::Path, args: &[&str]) -> CliOutput {
    let run = run_with_input(world.person_command().current_dir(directory).args(args), b"");
    assert_eq!(run.code, Some(0), "{run:?}");
    run
}

#[test]
fn every_command_finds_a_run_from_its_start_directory() {
    let world = CliWorld::new("");
    let (id, started_in) = run_in_other_directory(&world);
    for args in [&["status"][..], &["log"], &["replay"], &["watch", "--once"]] {
        let run = run_in_directory(&world, &started_in, args);
        let found = run.stdout.contains(&id) || run.stdout.contains("session_started");
        assert!(found, "{args:?}: {}", run.stdout);
    }
    let below = started_in.join("below");
    fs::create_dir(&below).unwrap();
    let run = run_with_input(world.person_command().current_dir(&below).args(["status"]), b"");
    let elsewhere = "`jackline status --all` lists those elsewhere";
    assert!(run.stdout.contains("no session has worked here yet"), "{run:?}");
    assert!(run.stdout.contains(elsewhere), "{run:?}");
    let run = run_in_directory(&world, &below, &["watch", "--once"]);
    assert!(run.stdout.contains("no session has worked here yet"), "{run:?}");
}

#[test]
fn watch_once_prints_no_empty_rows_and_no_keys() {
    let world = CliWorld::new("");
    let nothing = run_in_directory(&world, &world.workspace(), &["watch", "--once"]);
    assert_eq!(nothing.stdout.lines().count(), 3, "{}", nothing.stdout);
    let (_, started_in) = run_in_other_directory(&world);
    let run = run_in_directory(&world, &started_in, &["watch", "--once"]);
    let is_empty = |line: &str| matches!(line.trim(), "" | "│");
    assert!(!run.stdout.lines().any(is_empty), "{}", run.stdout);
    assert!(run.stdout.contains("1 session") && run.stdout.contains("recent"), "{}", run.stdout);
    assert!(!run.stdout.contains("q quit"), "{}", run.stdout);
}

/// A person who works in a directory means the session of that directory, not one above it.
#[test]
fn the_session_of_the_nearest_directory_is_used() {
    let world = CliWorld::new("");
    let below = world.workspace().join("below/deep");
    fs::create_dir_all(&below).unwrap();
    fs::write(world.workspace().join("below/jackline.yaml"), "").unwrap();
    let play = |session: &str, directory: &std::path::Path| {
        let line = format!(
            r#"{{"session":"{session}","event":"session_started","workspace":"{}"}}"#,
            directory.display()
        );
        let run =
            run_with_input(world.person_command().arg("stdio"), format!("{line}\n").as_bytes());
        assert_eq!(run.decisions(), ["allow"], "{run:?}");
    };
    play("near", &world.workspace().join("below"));
    play("above", &world.workspace());
    for directory in [world.workspace().join("below"), below.clone()] {
        let run = run_in_directory(&world, &directory, &["pause"]);
        assert!(run.stdout.contains("session `near` is paused"), "{run:?}");
        run_in_directory(&world, &directory, &["resume"]);
        // Makes the other session the latest again.
        play("above", &world.workspace());
    }
    let run = run_in_directory(&world, &world.workspace(), &["pause"]);
    assert!(run.stdout.contains("session `above` is paused"), "{run:?}");
    let listed = world.jackline(&["status", "--all", "--json"]).session_ids();
    assert_eq!(listed, ["above", "near"]);
}

/// Starts a run and kills it while its command is running.
fn killed_run(world: &CliWorld, seconds: u32) -> TaskDirectory<'_> {
    let script = format!(
        "steps:\n  - calls: [{{ tool: shell, args: {{ command: 'test -e started || {{ touch started; sleep {seconds}; }}' }} }}]\n{}",
        REPORT_SCRIPT.trim_start_matches("steps:\n")
    );
    let task = TaskDirectory::new(world, REPORT_COMPLETION, &[("main", &script)]);
    let mut child = task.start(&[]);
    poll_until("the command", || world.workspace().join("started").exists());
    let status = world.jackline(&["status"]);
    assert!(
        status.code == Some(0) && !status.stdout.contains("supervisor process is gone"),
        "{status:?}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    poll_until("the end of the command", || count_sleepers(seconds) == 0);
    task
}

#[test]
fn a_killed_run_is_shown_without_a_supervisor() {
    let world = CliWorld::new("");
    let task = killed_run(&world, 297);
    let status = world.jackline(&["status", "--json"]).json_lines().remove(0);
    assert_eq!(
        (&status["summary"]["phase"], &status["driven"]),
        (&"running".into(), &false.into())
    );
    let id = status["session"].as_str().unwrap().to_owned();
    let hint = format!("the supervisor process is gone; resume with `jackline run --resume {id}`");
    let status = world.jackline(&["status"]);
    assert!(status.stdout.contains(&hint), "{status:?}");
    assert!(world.jackline(&["status", "--all"]).stdout.contains("running, supervisor gone"));

    // Another run in this directory is a new session, and warns about the unfinished one.
    let second = task.run(&[]);
    assert_ne!(session_id(&second), id);
    assert!(second.stderr.contains(&format!("`{id}` is not finished")), "{second:?}");
    // The second run has ended, so `--resume` continues the first one.
    assert_eq!(stop_code(&second), "OBJECTIVE_ACHIEVED", "{second:?}");
    let run = task.resume(&[]);
    assert_eq!(
        (session_id(&run), stop_code(&run).as_str()),
        (id.clone(), "OBJECTIVE_ACHIEVED"),
        "{run:?}"
    );
    let status = world.jackline(&["status", &id]);
    assert!(!status.stdout.contains("supervisor process is gone"), "{status:?}");
    // Now no run is unfinished.
    let third = task.run(&[]);
    assert_eq!(third.stderr, "", "{third:?}");
}

#[test]
fn status_shows_a_loop_row_only_for_a_session_in_a_loop() {
    let world = CliWorld::new("");
    let circles = "steps:\n  - calls: [{ tool: list_dir, args: {} }]\nrepeat: true\n";
    let task = TaskDirectory::new(
        &world,
        &format!("{REPORT_COMPLETION}loops: {{}}\n"),
        &[("main", circles)],
    );
    let run = task.run(&[]);
    assert!(stop_code(&run).starts_with("left: it waits for a person"), "{run:?}");
    let status = world.jackline(&["status"]).stdout;
    let row = status.lines().find(|line| line.trim_start().starts_with("loop ")).unwrap();
    assert!(row.contains("5 times, hard: list_dir"), "{row}");
    let finished =
        TaskDirectory::new(&world, REPORT_COMPLETION, &[("main", REPORT_SCRIPT)]).run(&[]);
    let status = world.jackline(&["status", &session_id(&finished)]).stdout;
    assert!(!status.lines().any(|line| line.trim_start().starts_with("loop")), "{status}");
}

#[test]
fn a_failed_command_is_shown_with_its_exit_code() {
    let world = CliWorld::new("");
    let script = format!(
        "steps:\n  - calls: [{{ tool: shell, args: {{ command: exit 3 }} }}]\n{}",
        REPORT_SCRIPT.trim_start_matches("steps:\n")
    );
    let run = TaskDirectory::new(&world, REPORT_COMPLETION, &[("main", &script)]).run(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let log = world.jackline(&["log", "--all"]).stdout;
    let finished: Vec<&str> = log.lines().filter(|line| line.contains("tool_finished")).collect();
    assert!(finished[0].contains("c1 exit code 3") && finished[1].contains("c2 ok"), "{log}");
    let status = world.jackline(&["status"]).stdout;
    assert!(status.contains("2: 1 ok, 1 failed"), "{status}");
    let status = world.jackline(&["status", "--json"]).json_lines().remove(0);
    let actions = &status["summary"]["last_actions"];
    assert_eq!((&actions[0]["ended"], &actions[0]["exit_code"]), (&"failed".into(), &3.into()));
    assert_eq!(
        (&actions[1]["ended"], &actions[1]["exit_code"]),
        (&"ok".into(), &serde_json::Value::Null)
    );
    world.verify_and_replay(&session_id(&run));
}

#[test]
fn a_checkpoint_names_the_files_and_repeats_nothing() {
    let world = CliWorld::new("");
    let step = |n: u32| {
        format!(
            "  - calls: [{{ tool: write_file, args: {{ path: n{n}, content: x }} }}]\n  - text: Done {n}.\n"
        )
    };
    let script = format!("steps:\n{}{}", step(0), step(1));
    let definition = format!(
        "{REPORT_COMPLETION}limits: {{ iterations: 2 }}\nprogress: {{}}\niterations_extension: 7\n"
    );
    let run = TaskDirectory::new(&world, &definition, &[("main", &script)]).run(&[]);
    assert!(stop_code(&run).starts_with("left: it waits for a person"), "{run:?}");
    let text = fs::read_to_string(world.workspace().join(".jackline/CHECKPOINT.md")).unwrap();
    assert!(text.contains("## Reason\n- Reached iteration cap: 2/2\n"), "{text}");
    assert!(text.contains("- Files modified: 2: `n0`, `n1`\n"), "{text}");
    assert!(text.contains("- Tests run: none seen\n- Tests passing: unknown\n"), "{text}");
    let tests = text.lines().filter(|line| line.to_lowercase().contains("tests run"));
    assert_eq!(tests.count(), 1, "{text}");
    // The extension comes from the definition, or is 25 iterations. The help text says so.
    let max = |world: &CliWorld| {
        let status = world.jackline(&["status", "--json"]).json_lines().remove(0);
        status["safety"]["max_iterations"].as_u64().unwrap()
    };
    assert_eq!(max(&world), 2);
    assert_eq!(world.jackline(&["ack"]).code, Some(0));
    assert_eq!(max(&world), 9);
    let help = world.jackline(&["ack", "--help"]).stdout;
    assert!(help.contains("25 more iterations") && help.contains("iterations_extension"), "{help}");
}
