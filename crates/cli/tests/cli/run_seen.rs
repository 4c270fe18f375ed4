//! What a person sees of runs: from where they are found, and what is said of them.

use std::fs;

use crate::run_support::{REPORT, Task, WORKS, code, session};
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
