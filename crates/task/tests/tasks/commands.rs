//! Commands in attempts: undone with them where the kernel lays a layer over the workspace,
//! else named.

use std::fs;

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
