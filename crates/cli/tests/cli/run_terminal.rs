//! Tests of `jackline run` on a terminal: lines that stay, and below them a footer with the current
//! state, which disappears at the end.

use std::fs;

use crate::pseudo_terminal::PseudoTerminal;
use crate::run_support::{REPORT_COMPLETION, REPORT_SCRIPT, TaskDirectory, create_control_file};
use crate::support::CliWorld;

/// The line above the footer.
const FOOTER_LINE: &str = "──────";

fn run_on_terminal(task: &TaskDirectory<'_>, columns: u16, args: &[&str]) -> PseudoTerminal {
    let mut command = task.run_command(args);
    PseudoTerminal::start_wrapping(command.arg(&task.directory).env("TERM", "xterm"), columns, 60)
}

/// Checks that no part of the footer remains, and that the screen contains all parts in this order.
fn assert_final_screen(screen: &str, parts: &[&str]) {
    assert!(!screen.contains(FOOTER_LINE) && !screen.contains(" · step "), "{screen}");
    let mut rest = screen;
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { panic!("{part}:\n{screen}") };
        rest = after;
    }
}

#[test]
fn a_waiting_run_shows_it_in_the_footer_and_leaves_only_lines() {
    let world = CliWorld::new("");
    let task = TaskDirectory::new(&world, REPORT_COMPLETION, &[("main", REPORT_SCRIPT)]);
    // In the narrow terminal, the footer would wrap without truncation.
    for columns in [120, 40] {
        let _ = fs::remove_file(world.workspace().join("report.md"));
        create_control_file(&world, "PAUSE");
        let mut terminal = run_on_terminal(&task, columns, &[]);
        terminal.wait_for("waiting for a person");
        let screen = terminal.wait_for("iteration 0 · step 0").text;
        let (_, footer) = screen.split_once(FOOTER_LINE).unwrap();
        assert!(footer.contains("iteration 0 · step 0"), "{screen}");
        fs::remove_file(world.workspace().join(".jackline/PAUSE")).unwrap();
        let (status, screen) = terminal.final_screen();
        assert_eq!(status.code(), Some(0), "{screen}");
        let parts = ["session run-", "continues", "iteration 1", "write_file", "finished"];
        assert_final_screen(&screen, &parts);
        assert_eq!(screen.matches("session run-").count(), 1, "{screen}");
    }
}

#[test]
fn a_warning_stays_on_the_screen_and_the_footer_does_not() {
    let world = CliWorld::new("");
    let scripts = [("main", "steps:\n  - status: 401\nrepeat: true\n"), ("second", REPORT_SCRIPT)];
    let (status, screen) =
        run_on_terminal(&TaskDirectory::new(&world, REPORT_COMPLETION, &scripts), 160, &[])
            .final_screen();
    assert_eq!(status.code(), Some(0), "{screen}");
    let parts = ["iteration 1", "warning: scripted/main: ", "takes over", "finished"];
    assert_final_screen(&screen, &parts);
}

#[test]
fn the_error_that_ends_a_run_is_the_last_line() {
    let world = CliWorld::new("");
    let home = world.home().display().to_string();
    let line = format!("rm {home}/sessions/run-*/journal.jsonl; echo done > report.md");
    let task = TaskDirectory::with_worker(&world, REPORT_COMPLETION, &line);
    let (status, screen) = run_on_terminal(&task, 199, &["--no-wait"]).final_screen();
    assert_eq!(status.code(), Some(3), "{screen}");
    assert_final_screen(&screen, &["iteration 1", "error: ", "was removed", "start a new one"]);
}
