//! Commands in attempts: undone with them where the kernel lays a layer over the workspace,
//! else named.

use std::fs;

use jackline_engine::Decision;
use jackline_journal::Note;
use jackline_task::{What, run};
use serde_json::json;

use crate::world::{Done, World, supervisor, task};

const COMMAND: &str = "echo made > made.txt; rm old.txt; mkdir -p d; mv kept.txt d/; chmod 700 d";

/// Runs programs that may run commands.
fn commanding(world: &World, programs: &[&str]) -> Done {
    fs::write(world.work().join("old.txt"), "old").unwrap();
    fs::write(world.work().join("kept.txt"), "kept").unwrap();
    let mut task = task(programs);
    task.tools.push("shell".to_owned());
    let mut told = Vec::new();
    let opening = jackline_task::Opening { program: Some(supervisor()), ..world.opening() };
    let report = run(&task, opening, &mut |it| told.push(it.clone())).unwrap();
    Done { report, told }
}

#[test]
fn a_failed_attempt_leaves_nothing_of_its_commands_or_names_them() {
    let world = World::new("");
    let program = format!("tool('shell')(command='{COMMAND}')\n1/0");
    let done = commanding(&world, &[&program, "ok(1)"]);
    assert_eq!(done.value(), Some(&json!(1)), "{:?}", done.report.internal);
    let named = done.told.iter().find_map(|told| match &told.what {
        What::RolledBack { not_undoable, .. } => Some(not_undoable.clone()),
        _ => None,
    });
    let outside = format!("what the command `{COMMAND}` did outside of the workspace");
    if named.as_deref() == Some(&[outside]) {
        eprintln!("in a layer");
        let files = world.files();
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        assert_eq!(files, [("kept.txt", "kept"), ("old.txt", "old")]);
    } else {
        eprintln!("this kernel has no layers");
        assert_eq!(named.unwrap(), [format!("what the command `{COMMAND}` did")]);
        assert!(world.work().join("made.txt").exists());
    }
}

#[test]
fn what_a_command_did_in_an_attempt_that_succeeds_stays() {
    let world = World::new("");
    let program = format!(
        "tool('shell')(command='{COMMAND}')\nok(tool('read_file')(path='made.txt')['content'])"
    );
    let done = commanding(&world, &[&program]);
    assert_eq!(done.value(), Some(&json!("made\n")), "{:?}", done.report.internal);
    let files: Vec<String> = world.files().into_keys().collect();
    assert_eq!(files, ["d/", "d/kept.txt", "made.txt"]);
}

#[test]
fn a_command_that_changes_a_protected_file_in_secret_holds_the_session_and_all_else_is_undone() {
    let world = World::new("");
    let guarded = world.work().join("jackline.yaml");
    fs::write(&guarded, "version: 1\n").unwrap();
    // What a line names is refused beforehand; a script nobody sees into.
    fs::write(world.work().join("tidy.sh"), "echo spoiled > jackline.yaml; echo x > other.txt\n")
        .unwrap();
    let program = "tool('shell')(command='sh tidy.sh')\nok(1)";
    let done = commanding(&world, &[program, "ok(2)"]);
    assert_eq!(fs::read_to_string(&guarded).unwrap(), "version: 1\n");
    let records = world.records(&done.report.session);
    let given_back =
        |note: &Note| matches!(note, Note::GivenBack { path, .. } if path == "jackline.yaml");
    assert!(records.iter().any(|it| it.notes.iter().any(given_back)));
    assert!(records.iter().any(|it| it.verdict.is_enforced(Decision::Pause)));
    assert_eq!((done.asked(), done.value()), (1, None), "nobody goes on");
    assert_eq!(done.internal()["error_type"], "cancelled");
    // Where the kernel has no layers, what the command did is named instead.
    if in_a_layer(&done) {
        let files: Vec<String> = world.files().into_keys().collect();
        assert_eq!(files, ["jackline.yaml", "kept.txt", "old.txt", "tidy.sh"]);
    }
}

#[test]
fn a_program_that_catches_what_holds_the_session_is_undone_all_the_same() {
    let world = World::new("");
    fs::write(world.work().join("jackline.yaml"), "version: 1\n").unwrap();
    fs::write(world.work().join("tidy.sh"), "echo spoiled > jackline.yaml\n").unwrap();
    let program = "tool('write_file')(path='a.txt', content='x')\n\
                   try:\n    tool('shell')(command='sh tidy.sh')\n\
                   except PermissionError:\n    pass\nok(1)";
    let done = commanding(&world, &[program, "ok(2)"]);
    assert_eq!((done.asked(), done.value()), (1, None), "nobody goes on");
    assert_eq!(done.internal()["error_type"], "cancelled");
    let files: Vec<String> = world.files().into_keys().collect();
    assert!(!files.contains(&"a.txt".to_owned()), "{files:?}");
}

/// Whether what commands did in the workspace was undone with their attempt.
fn in_a_layer(done: &Done) -> bool {
    let named = done.told.iter().find_map(|told| match &told.what {
        What::RolledBack { not_undoable, .. } => Some(not_undoable),
        _ => None,
    });
    named.is_some_and(|named| named.iter().all(|it| it.ends_with(" outside of the workspace")))
}
