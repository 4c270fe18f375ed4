//! What a person sees of `jackline run` on a terminal: lines that stay, and below them what is
//! going on right now, of which nothing is left at the end.

use std::fs;

use crate::run_support::{REPORT, Task, WORKS, mark};
use crate::support::World;
use crate::watch_terminal::OnTerminal;

/// The line above the foot.
const FOOT: &str = "──────";

fn on_terminal(task: &Task<'_>, columns: u16, args: &[&str]) -> OnTerminal {
    let mut command = task.command(args);
    OnTerminal::by_lines(command.arg(&task.directory).env("TERM", "xterm"), columns, 60)
}

/// Nothing is left of the foot, and all of these are there, in this order.
fn shows(screen: &str, parts: &[&str]) {
    assert!(!screen.contains(FOOT) && !screen.contains(" · step "), "{screen}");
    let mut rest = screen;
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { panic!("{part}:\n{screen}") };
        rest = after;
    }
}

#[test]
fn a_run_that_waits_says_so_at_its_foot_and_leaves_only_lines() {
    let world = World::new("");
    let task = Task::new(&world, REPORT, &[("main", WORKS)]);
    // The narrow one would break the lines of the foot.
    for columns in [120, 40] {
        let _ = fs::remove_file(world.work().join("report.md"));
        mark(&world, "PAUSE");
        let mut terminal = on_terminal(&task, columns, &[]);
        let waits = terminal.wait_for("waiting: waits").text;
        let (_, foot) = waits.split_once(FOOT).unwrap();
        assert!(foot.contains("iteration 0 · step 0"), "{waits}");
        fs::remove_file(world.work().join(".jackline/PAUSE")).unwrap();
        let (status, screen) = terminal.last();
        assert_eq!(status.code(), Some(0), "{screen}");
        let parts = ["session run-", "goes on", "iteration 1", "write_file", "OBJECTIVE_ACHIEVED"];
        shows(&screen, &parts);
        assert_eq!(screen.matches("session run-").count(), 1, "{screen}");
    }
}

#[test]
fn a_warning_stays_on_the_screen_and_the_foot_does_not() {
    let world = World::new("");
    let scripts = [("main", "steps:\n  - status: 401\nrepeat: true\n"), ("second", WORKS)];
    let (status, screen) = on_terminal(&Task::new(&world, REPORT, &scripts), 160, &[]).last();
    assert_eq!(status.code(), Some(0), "{screen}");
    let parts = ["iteration 1", "warning: scripted/main: ", "takes over", "OBJECTIVE_ACHIEVED"];
    shows(&screen, &parts);
}

#[test]
fn what_keeps_a_run_from_going_on_is_the_last_that_is_seen() {
    let world = World::new("");
    let home = world.home().display().to_string();
    let line = format!("rm {home}/sessions/run-*/journal.jsonl; echo done > report.md");
    let task = Task::worker(&world, REPORT, &line);
    let (status, screen) = on_terminal(&task, 199, &["--no-wait"]).last();
    assert_eq!(status.code(), Some(3), "{screen}");
    shows(&screen, &["iteration 1", "error: ", "was removed", "begins a new one"]);
}
