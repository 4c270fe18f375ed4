//! Attempts that can't start, were interrupted, or can't be undone.

use std::fs;

use jackline_task::TaskError;
use jackline_workspace::{Workspace, WorkspaceLimits};
use serde_json::json;

use crate::world::{TaskWorld, task};

#[test]
fn without_a_snapshot_no_attempt_starts() {
    let world = TaskWorld::new("");
    // The program would write, but a file blocks the path of the undo log.
    let task = task(&["tool('write_file')(path='a.txt', content='x')\nok(1)"]);
    let opening = world.options();
    let home = world.home();
    let report = jackline_task::run_task(&task, opening, &mut |told| {
        if matches!(told.kind, jackline_task::AttemptEventKind::Generated { .. }) {
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
fn an_attempt_that_a_crash_interrupted_is_undone_at_the_next_start() {
    let world = TaskWorld::new("");
    fs::write(world.work().join("a.txt"), "as it was").unwrap();
    let earlier = world.programs(&["ok(1)"]).report.session;
    let workspace = Workspace::open(world.work(), WorkspaceLimits::default()).unwrap();
    workspace.begin_attempt(&world.directory(&earlier).join("undo/2")).unwrap();
    workspace.call("write_file", &json!({ "path": "a.txt", "content": "half" })).unwrap();
    workspace.call("write_file", &json!({ "path": "b.txt", "content": "new" })).unwrap();
    drop(workspace);

    let done = world.programs(&["ok(tool('read_file')(path='a.txt')['content'])"]);
    assert_eq!(done.value(), Some(&json!("as it was")));
    assert_eq!(world.files().len(), 1);
    let recovered = &done.report.recovery.done;
    assert_eq!(recovered.len(), 1);
    assert_eq!((recovered[0].session.as_str(), recovered[0].attempt), (earlier.as_str(), 2));
    assert!(world.programs(&["ok(1)"]).report.recovery.done.is_empty(), "it is undone once");
}

#[test]
fn a_rollback_that_cannot_finish_stops_the_session_and_names_the_file() {
    let world = TaskWorld::new("");
    // Too long to be stored in the log itself.
    fs::write(world.work().join("a.txt"), "as it was\n".repeat(2000)).unwrap();
    let home = world.home();
    let task = task(&["tool('write_file')(path='a.txt', content='half')\n1/0", "ok(1)"]);
    let report = jackline_task::run_task(&task, world.options(), &mut |told| {
        if matches!(told.kind, jackline_task::AttemptEventKind::Failed { .. }) {
            for session in fs::read_dir(home.join("sessions")).unwrap() {
                // The copy of the old file is deleted, so it can't be restored.
                fs::remove_file(session.unwrap().path().join("undo/1/0")).unwrap();
            }
        }
    })
    .unwrap();
    let stuck = report.rollback_failure.unwrap();
    assert!(stuck.contains("`a.txt` was not restored"), "{stuck}");
    assert_eq!(report.trace.lanes.asked, 1, "there is no retry");
    let internal = serde_json::to_value(&report.internal).unwrap();
    assert_eq!(internal["error_type"], "rollback_failed");
    assert!(report.public.normalized);
    let records = world.records(&report.session);
    let last = &records.last().unwrap().verdict_json;
    assert!(last.contains(r#""code":"SYSTEM_ERROR","detail":"rollback""#), "{last}");
    // No other task starts before a person has fixed the files.
    let refused = world.try_run(&self::task(&["ok(1)"]));
    assert!(matches!(refused, Err(TaskError::UnfinishedAttempt(why)) if why.contains("a.txt")));
}

#[test]
fn a_missing_worker_is_reported_before_the_session_starts() {
    let world = TaskWorld::new("");
    let mut opening = world.options();
    opening.sandbox.path = Some(world.work().join("nowhere"));
    let refused = jackline_task::run_task(&task(&["ok(1)"]), opening, &mut |_| {}).unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("cargo build --release -p jackline-sandbox"), "{text}");
    assert!(!world.home().join("sessions").exists());
}
