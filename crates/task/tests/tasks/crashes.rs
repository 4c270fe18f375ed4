//! What can't be undone is not begun, what was cut off is finished, and what can't be
//! finished is said.

use std::fs;

use jackline_task::TaskError;
use jackline_workspace::{Limits, Workspace};
use serde_json::json;

use crate::world::{World, task};

#[test]
fn a_snapshot_that_cannot_be_taken_begins_nothing() {
    let world = World::new("");
    // Its program would write, but the place of the log is taken.
    let task = task(&["tool('write_file')(path='a.txt', content='x')\nok(1)"]);
    let opening = world.opening();
    let home = world.home();
    let report = jackline_task::run(&task, opening, &mut |told| {
        if matches!(told.what, jackline_task::What::Generated { .. }) {
            for session in fs::read_dir(home.join("sessions")).unwrap() {
                let undo = session.unwrap().path().join("undo");
                fs::write(undo, "no directory").unwrap();
            }
        }
    })
    .unwrap();
    let internal = serde_json::to_value(&report.internal).unwrap();
    assert_eq!(internal["error_type"], "snapshot_failed", "{internal}");
    assert!(world.files().is_empty());
    assert!(report.public.normalized);
}

#[test]
fn an_attempt_that_a_crash_cut_off_is_undone_at_the_next_start() {
    let world = World::new("");
    fs::write(world.work().join("a.txt"), "as it was").unwrap();
    let earlier = world.programs(&["ok(1)"]).report.session;
    let workspace = Workspace::open(world.work(), Limits::default()).unwrap();
    workspace.begin(&world.directory(&earlier).join("undo/2")).unwrap();
    workspace.call("write_file", &json!({ "path": "a.txt", "content": "half" })).unwrap();
    workspace.call("write_file", &json!({ "path": "b.txt", "content": "new" })).unwrap();
    drop(workspace);

    let done = world.programs(&["ok(tool('read_file')(path='a.txt')['content'])"]);
    assert_eq!(done.value(), Some(&json!("as it was")));
    assert_eq!(world.files().len(), 1);
    let recovered = &done.report.recovery.done;
    assert_eq!(recovered.len(), 1);
    assert_eq!((recovered[0].session.as_str(), recovered[0].attempt), (earlier.as_str(), 2));
    assert!(world.programs(&["ok(1)"]).report.recovery.done.is_empty(), "once");
}

#[test]
fn a_rollback_that_cannot_finish_stops_the_session_and_names_the_file() {
    let world = World::new("");
    // Too long to stand in the log itself.
    fs::write(world.work().join("a.txt"), "as it was\n".repeat(2000)).unwrap();
    let home = world.home();
    let task = task(&["tool('write_file')(path='a.txt', content='half')\n1/0", "ok(1)"]);
    let report = jackline_task::run(&task, world.opening(), &mut |told| {
        if matches!(told.what, jackline_task::What::Failed { .. }) {
            for session in fs::read_dir(home.join("sessions")).unwrap() {
                // The copy of what was is gone, so nobody can put it back.
                fs::remove_file(session.unwrap().path().join("undo/1/0")).unwrap();
            }
        }
    })
    .unwrap();
    let stuck = report.stuck.unwrap();
    assert!(stuck.contains("`a.txt` is as the attempt left it"), "{stuck}");
    assert_eq!(report.trace.lanes.asked, 1, "nothing goes on");
    let internal = serde_json::to_value(&report.internal).unwrap();
    assert_eq!(internal["error_type"], "rollback_failed");
    assert!(report.public.normalized);
    let records = world.records(&report.session);
    let last = &records.last().unwrap().verdict_json;
    assert!(last.contains(r#""code":"SYSTEM_ERROR","detail":"rollback""#), "{last}");
    // And no other task begins before a person has looked.
    let refused = world.try_run(&self::task(&["ok(1)"]));
    assert!(matches!(refused, Err(TaskError::Unfinished(why)) if why.contains("a.txt")));
}

#[test]
fn a_missing_worker_is_said_before_anything_begins() {
    let world = World::new("");
    let mut opening = world.opening();
    opening.sandbox.path = Some(world.work().join("nowhere"));
    let refused = jackline_task::run(&task(&["ok(1)"]), opening, &mut |_| {}).unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("cargo build --release -p jackline-sandbox"), "{text}");
    assert!(!world.home().join("sessions").exists());
}
