//! Commands in attempts: undone with them if the kernel supports an overlay of the workspace,
//! otherwise listed.

use std::fs;

use jackline_engine::Decision;
use jackline_journal::JournalNote;
use jackline_task::{AttemptEventKind, run_task};
use serde_json::json;

use crate::world::{FinishedTask, TaskWorld, supervisor, task};

const COMMAND: &str = "echo made > made.txt; rm old.txt; mkdir -p d; mv kept.txt d/; chmod 700 d";

/// Runs a task whose programs may run commands.
fn run_with_shell(world: &TaskWorld, programs: &[&str]) -> FinishedTask {
    fs::write(world.work().join("old.txt"), "old").unwrap();
    fs::write(world.work().join("kept.txt"), "kept").unwrap();
    let mut task = task(programs);
    task.tools.push("shell".to_owned());
    let mut told = Vec::new();
    let opening = jackline_task::TaskOptions { program: Some(supervisor()), ..world.options() };
    let report = run_task(&task, opening, &mut |it| told.push(it.clone())).unwrap();
    FinishedTask { report, events_seen: told }
}

#[test]
fn effects_of_commands_in_a_failed_attempt_are_undone_or_listed() {
    let world = TaskWorld::new("");
    let program = format!("tool('shell')(command='{COMMAND}')\n1/0");
    let done = run_with_shell(&world, &[&program, "ok(1)"]);
    assert_eq!(done.value(), Some(&json!(1)), "{:?}", done.report.internal);
    let named = done.events_seen.iter().find_map(|told| match &told.kind {
        AttemptEventKind::RolledBack { not_undoable, .. } => Some(not_undoable.clone()),
        _ => None,
    });
    let outside = format!("effects of the command `{COMMAND}` outside the workspace");
    if named.as_deref() == Some(&[outside]) {
        eprintln!("the kernel supports an overlay");
        let files = world.files();
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        assert_eq!(files, [("kept.txt", "kept"), ("old.txt", "old")]);
    } else {
        eprintln!("the kernel supports no overlay");
        assert_eq!(named.unwrap(), [format!("effects of the command `{COMMAND}`")]);
        assert!(world.work().join("made.txt").exists());
    }
}

#[test]
fn effects_of_a_command_in_a_successful_attempt_stay() {
    let world = TaskWorld::new("");
    let program = format!(
        "tool('shell')(command='{COMMAND}')\nok(tool('read_file')(path='made.txt')['content'])"
    );
    let done = run_with_shell(&world, &[&program]);
    assert_eq!(done.value(), Some(&json!("made\n")), "{:?}", done.report.internal);
    let files: Vec<String> = world.files().into_keys().collect();
    assert_eq!(files, ["d/", "d/kept.txt", "made.txt"]);
}

#[test]
fn a_command_that_secretly_changes_a_protected_file_pauses_the_session_and_is_undone() {
    let world = TaskWorld::new("");
    let guarded = world.work().join("jackline.yaml");
    fs::write(&guarded, "version: 1\n").unwrap();
    // The guard would refuse a path on the command line, but it can't see into a script.
    fs::write(world.work().join("tidy.sh"), "echo spoiled > jackline.yaml; echo x > other.txt\n")
        .unwrap();
    let program = "tool('shell')(command='sh tidy.sh')\nok(1)";
    let done = run_with_shell(&world, &[program, "ok(2)"]);
    assert_eq!(fs::read_to_string(&guarded).unwrap(), "version: 1\n");
    let records = world.records(&done.report.session);
    let given_back = |note: &JournalNote| matches!(note, JournalNote::GivenBack { path, .. } if path == "jackline.yaml");
    assert!(records.iter().any(|it| it.notes.iter().any(given_back)));
    assert!(records.iter().any(|it| it.verdict.is_enforced(Decision::Pause)));
    assert_eq!((done.requests(), done.value()), (1, None), "the attempt does not continue");
    assert_eq!(done.internal()["error_type"], "cancelled");
    // Without an overlay, the effects of the command are listed instead.
    if is_in_overlay(&done) {
        let files: Vec<String> = world.files().into_keys().collect();
        assert_eq!(files, ["jackline.yaml", "kept.txt", "old.txt", "tidy.sh"]);
    }
}

#[test]
fn a_program_that_catches_the_pause_of_the_session_is_undone_as_well() {
    let world = TaskWorld::new("");
    fs::write(world.work().join("jackline.yaml"), "version: 1\n").unwrap();
    fs::write(world.work().join("tidy.sh"), "echo spoiled > jackline.yaml\n").unwrap();
    let program = "tool('write_file')(path='a.txt', content='x')\n\
                   try:\n    tool('shell')(command='sh tidy.sh')\n\
                   except PermissionError:\n    pass\nok(1)";
    let done = run_with_shell(&world, &[program, "ok(2)"]);
    assert_eq!((done.requests(), done.value()), (1, None), "the attempt does not continue");
    assert_eq!(done.internal()["error_type"], "cancelled");
    let files: Vec<String> = world.files().into_keys().collect();
    assert!(!files.contains(&"a.txt".to_owned()), "{files:?}");
}

/// Whether the effects of commands in the workspace were undone with their attempt.
fn is_in_overlay(done: &FinishedTask) -> bool {
    let named = done.events_seen.iter().find_map(|told| match &told.kind {
        AttemptEventKind::RolledBack { not_undoable, .. } => Some(not_undoable),
        _ => None,
    });
    named.is_some_and(|named| named.iter().all(|it| it.ends_with(" outside the workspace")))
}
