//! What a person sees of runs: from where they are found, and what is said of them.

use std::fs;

use crate::run_support::{REPORT, Task, WORKS, code, session, sleepers, until};
use crate::support::{Run, World, feed};

/// A run that works elsewhere than in the directory it was started in, and that directory.
fn elsewhere(world: &World) -> (String, std::path::PathBuf) {
    let (started_in, works_in) = (world.root().join("begun"), world.root().join("far"));
    [&started_in, &works_in].iter().for_each(|it| fs::create_dir(it).unwrap());
    let task = Task::new(world, REPORT, &[("main", WORKS)]);
    let mut command = task.command(&["--json", "--no-wait", "-w"]);
    let run = feed(command.arg(works_in).arg(&task.directory).current_dir(&started_in), b"");
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    (session(&run), started_in)
}

fn from(world: &World, directory: &std::path::Path, args: &[&str]) -> Run {
    let run = feed(world.person().current_dir(directory).args(args), b"");
    assert_eq!(run.code, Some(0), "{run:?}");
    run
}

#[test]
fn every_command_finds_a_run_where_it_was_started() {
    let world = World::new("");
    let (id, started_in) = elsewhere(&world);
    for args in [&["status"][..], &["log"], &["replay"], &["watch", "--once"]] {
        let run = from(&world, &started_in, args);
        let found = run.stdout.contains(&id) || run.stdout.contains("session_started");
        assert!(found, "{args:?}: {}", run.stdout);
    }
    let below = started_in.join("below");
    fs::create_dir(&below).unwrap();
    let run = feed(world.person().current_dir(&below).args(["status"]), b"");
    assert!(run.stderr.contains("no session has worked in"), "{run:?}");
    let run = from(&world, &below, &["watch", "--once"]);
    assert!(run.stdout.contains("no session has worked here yet"), "{run:?}");
}

#[test]
fn what_is_printed_once_has_no_empty_rows_and_no_keys() {
    let world = World::new("");
    let nothing = from(&world, &world.work(), &["watch", "--once"]);
    assert_eq!(nothing.stdout.lines().count(), 3, "{}", nothing.stdout);
    let (_, started_in) = elsewhere(&world);
    let run = from(&world, &started_in, &["watch", "--once"]);
    let is_empty = |line: &str| matches!(line.trim(), "" | "│");
    assert!(!run.stdout.lines().any(is_empty), "{}", run.stdout);
    assert!(run.stdout.contains("1 session") && run.stdout.contains("lately"), "{}", run.stdout);
    assert!(!run.stdout.contains("q quit"), "{}", run.stdout);
}

/// Somebody who works in a directory means what works there, whatever goes on above it.
#[test]
fn the_session_of_the_nearest_directory_is_meant() {
    let world = World::new("");
    let below = world.work().join("below/deep");
    fs::create_dir_all(&below).unwrap();
    fs::write(world.work().join("below/jackline.yaml"), "").unwrap();
    let play = |session: &str, directory: &std::path::Path| {
        let line = format!(
            r#"{{"session":"{session}","event":"session_started","workspace":"{}"}}"#,
            directory.display()
        );
        let run = feed(world.person().arg("stdio"), format!("{line}\n").as_bytes());
        assert_eq!(run.answers(), ["allow"], "{run:?}");
    };
    play("near", &world.work().join("below"));
    play("above", &world.work());
    for directory in [world.work().join("below"), below.clone()] {
        let run = from(&world, &directory, &["pause"]);
        assert!(run.stdout.contains("session `near` is paused"), "{run:?}");
        from(&world, &directory, &["resume"]);
        // The other one is the latest again.
        play("above", &world.work());
    }
    let run = from(&world, &world.work(), &["pause"]);
    assert!(run.stdout.contains("session `above` is paused"), "{run:?}");
    let listed = world.jackline(&["status", "--all", "--json"]).sessions();
    assert_eq!(listed, ["above", "near"]);
}

/// A run that is killed while its command is at work.
fn killed(world: &World, seconds: u32) -> Task<'_> {
    let script = format!(
        "steps:\n  - calls: [{{ tool: shell, args: {{ command: 'test -e began || {{ touch began; sleep {seconds}; }}' }} }}]\n{}",
        WORKS.trim_start_matches("steps:\n")
    );
    let task = Task::new(world, REPORT, &[("main", &script)]);
    let mut child = task.start(&[]);
    until("the command", || world.work().join("began").exists());
    let status = world.jackline(&["status"]);
    assert!(status.code == Some(0) && !status.stdout.contains("nobody drives it"), "{status:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    until("the end of the command", || sleepers(seconds) == 0);
    task
}

#[test]
fn a_run_that_was_killed_is_not_shown_as_if_somebody_drove_it() {
    let world = World::new("");
    let task = killed(&world, 297);
    let status = world.jackline(&["status", "--json"]).verdicts().remove(0);
    assert_eq!(
        (&status["summary"]["phase"], &status["driven"]),
        (&"running".into(), &false.into())
    );
    let id = status["session"].as_str().unwrap().to_owned();
    let said = format!("nobody drives it any more; `jackline run --resume {id}` goes on");
    let shown = world.jackline(&["status"]);
    assert!(shown.stdout.contains(&said), "{shown:?}");
    assert!(world.jackline(&["status", "--all"]).stdout.contains("running, left"));

    // Another run in this place is another run, and says so.
    let second = task.run(&[]);
    assert_ne!(session(&second), id);
    assert!(second.stderr.contains(&format!("`{id}` was left here")), "{second:?}");
    // That one is over, so what goes on is what was left.
    assert_eq!(code(&second), "OBJECTIVE_ACHIEVED", "{second:?}");
    let run = task.resume(&[]);
    assert_eq!((session(&run), code(&run).as_str()), (id.clone(), "OBJECTIVE_ACHIEVED"), "{run:?}");
    let over = world.jackline(&["status", &id]);
    assert!(!over.stdout.contains("nobody drives it"), "{over:?}");
    // Now all of them are over.
    let third = task.run(&[]);
    assert_eq!(third.stderr, "", "{third:?}");
}

#[test]
fn loops_have_a_row_while_somebody_goes_in_circles() {
    let world = World::new("");
    let circles = "steps:\n  - calls: [{ tool: list_dir, args: {} }]\nrepeat: true\n";
    let task = Task::new(&world, &format!("{REPORT}loops: {{}}\n"), &[("main", circles)]);
    let run = task.run(&[]);
    assert!(code(&run).starts_with("left: it waits for a person"), "{run:?}");
    let status = world.jackline(&["status"]).stdout;
    let row = status.lines().find(|line| line.trim_start().starts_with("loop ")).unwrap();
    assert!(row.contains("5 times, hard: list_dir"), "{row}");
    let calm = Task::new(&world, REPORT, &[("main", WORKS)]).run(&[]);
    let status = world.jackline(&["status", &session(&calm)]).stdout;
    assert!(!status.lines().any(|line| line.trim_start().starts_with("loop")), "{status}");
}

#[test]
fn a_command_that_failed_is_shown_with_its_exit_code() {
    let world = World::new("");
    let script = format!(
        "steps:\n  - calls: [{{ tool: shell, args: {{ command: exit 3 }} }}]\n{}",
        WORKS.trim_start_matches("steps:\n")
    );
    let run = Task::new(&world, REPORT, &[("main", &script)]).run(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let log = world.jackline(&["log"]).stdout;
    let finished: Vec<&str> = log.lines().filter(|line| line.contains("tool_finished")).collect();
    assert!(finished[0].contains("c1 exit code 3") && finished[1].contains("c2 ok"), "{log}");
    let status = world.jackline(&["status"]).stdout;
    assert!(status.contains("2: 1 ok, 1 failed"), "{status}");
    let status = world.jackline(&["status", "--json"]).verdicts().remove(0);
    let did = &status["summary"]["last_actions"];
    assert_eq!((&did[0]["ended"], &did[0]["exit_code"]), (&"failed".into(), &3.into()));
    assert_eq!((&did[1]["ended"], &did[1]["exit_code"]), (&"ok".into(), &serde_json::Value::Null));
    world.prove(&session(&run));
}

#[test]
fn a_checkpoint_names_the_files_and_says_nothing_twice() {
    let world = World::new("");
    let step = |n: u32| {
        format!(
            "  - calls: [{{ tool: write_file, args: {{ path: n{n}, content: x }} }}]\n  - text: Done {n}.\n"
        )
    };
    let script = format!("steps:\n{}{}", step(0), step(1));
    let definition =
        format!("{REPORT}limits: {{ iterations: 2 }}\nprogress: {{}}\niterations_extension: 7\n");
    let run = Task::new(&world, &definition, &[("main", &script)]).run(&[]);
    assert!(code(&run).starts_with("left: it waits for a person"), "{run:?}");
    let text = fs::read_to_string(world.work().join(".jackline/CHECKPOINT.md")).unwrap();
    assert!(text.contains("- Files modified: 2: `n0`, `n1`\n"), "{text}");
    assert!(text.contains("- Tests run: none that was seen\n- Tests passing: unknown\n"), "{text}");
    let tests = text.lines().filter(|line| line.to_lowercase().contains("tests run"));
    assert_eq!(tests.count(), 1, "{text}");
    // How many more there are is what the definition says, or 25; the help says that.
    let max = |world: &World| {
        let status = world.jackline(&["status", "--json"]).verdicts().remove(0);
        status["safety"]["max_iterations"].as_u64().unwrap()
    };
    assert_eq!(max(&world), 2);
    assert_eq!(world.jackline(&["ack"]).code, Some(0));
    assert_eq!(max(&world), 9);
    let help = world.jackline(&["ack", "--help"]).stdout;
    assert!(help.contains("25 more iterations") && help.contains("iterations_extension"), "{help}");
}
