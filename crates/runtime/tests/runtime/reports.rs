//! Tests whether a missing report counts as removed by a person.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use jackline_runtime::Runtime;
use serde_json::Value;

use crate::support::{RuntimeTest, send};

const BLOCKER: &str = ".jackline/BLOCKER_REPORT.md";

const PROGRESS: &str = "version: 1\nprogress: {}\n";

/// Sends an event of a session.
fn say(runtime: &mut Runtime, session: &str, event: &str) -> Value {
    send(runtime, &event.replacen('{', &format!(r#"{{"session":"{session}","#), 1))
}

fn propose(runtime: &mut Runtime, session: &str, call: &str) -> Value {
    let event = format!(
        r#"{{"event":"tool_proposed","call":"{call}","tool":"Bash","args":{{"command":"./work"}}}}"#
    );
    say(runtime, session, &event)
}

fn finish(runtime: &mut Runtime, session: &str, call: &str) -> Value {
    let event = format!(r#"{{"event":"tool_finished","call":"{call}","status":"ok"}}"#);
    say(runtime, session, &event)
}

/// Pauses a session by iterations without progress.
fn block(runtime: &mut Runtime, session: &str) {
    say(runtime, session, r#"{"event":"prompt_submitted","text":"go"}"#);
    for _ in 0..3 {
        say(runtime, session, r#"{"event":"iteration_ended","files_changed":0}"#);
    }
    assert_eq!(propose(runtime, session, "blocked")["decision"], "pause");
}

/// Times have a resolution of milliseconds, and these events need different times.
fn pass_time() {
    std::thread::sleep(std::time::Duration::from_millis(5));
}

fn names(world: &RuntimeTest, session: &str) -> bool {
    let text = fs::read_to_string(world.workspace().join(BLOCKER)).unwrap_or_default();
    text.contains(&format!("Session `{session}`"))
}

#[test]
fn a_report_that_vanishes_during_another_sessions_call_is_written_again() {
    for comes_back in [false, true] {
        let world = RuntimeTest::new(PROGRESS);
        let mut runtime = world.runtime();
        block(&mut runtime, "s1");
        assert_eq!(propose(&mut runtime, "s2", "c1")["decision"], "allow");
        pass_time();
        fs::remove_file(world.workspace().join(BLOCKER)).unwrap();
        if comes_back {
            finish(&mut runtime, "s2", "c1");
        }
        let verdict = propose(&mut runtime, "s1", "c2");
        assert_eq!(verdict["decision"], "pause");
        let message = verdict["violations"][0]["message"].as_str().unwrap();
        assert!(message.contains("the session `s2` of this workspace was active"), "{message}");
        assert!(names(&world, "s1"));
        // Once no session is active, a person removed the report.
        finish(&mut runtime, "s2", "c1");
        pass_time();
        propose(&mut runtime, "s1", "c3");
        fs::remove_file(world.workspace().join(BLOCKER)).unwrap();
        assert_eq!(propose(&mut runtime, "s1", "c4")["decision"], "allow", "{comes_back}");
        world.prove("s1");
    }
}

#[test]
fn a_removed_report_concerns_its_own_session() {
    for order in [["s1", "s2"], ["s2", "s1"]] {
        let world = RuntimeTest::new(PROGRESS);
        let mut runtime = world.runtime();
        block(&mut runtime, "s1");
        block(&mut runtime, "s2");
        assert!(names(&world, "s2"));
        fs::remove_file(world.workspace().join(BLOCKER)).unwrap();
        for session in order {
            let expected = if session == "s2" { "allow" } else { "pause" };
            assert_eq!(propose(&mut runtime, session, "c1")["decision"], expected, "{order:?}");
        }
        assert!(names(&world, "s1"), "{order:?}");
        finish(&mut runtime, "s2", "c1");
        pass_time();
        assert_eq!(propose(&mut runtime, "s1", "c2")["decision"], "pause");
        fs::remove_file(world.workspace().join(BLOCKER)).unwrap();
        assert_eq!(propose(&mut runtime, "s1", "c3")["decision"], "allow", "{order:?}");
        world.prove("s1");
        world.prove("s2");
    }
}

#[test]
fn a_report_at_an_obstructed_path_does_not_count_as_removed() {
    type Change = fn(&RuntimeTest);
    let changes: [(&str, Change, Change); 5] = [
        (
            "`.jackline` is not a directory",
            |world| {
                fs::rename(world.workspace(), world.workspace().with_extension("away")).unwrap();
            },
            |world| {
                fs::rename(world.workspace().with_extension("away"), world.workspace()).unwrap();
            },
        ),
        (
            "its path can't be read",
            |world| {
                fs::remove_dir_all(world.workspace().join(".jackline")).unwrap();
                fs::write(world.workspace().join(".jackline"), "").unwrap();
            },
            |world| fs::remove_file(world.workspace().join(".jackline")).unwrap(),
        ),
        (
            "a directory is at its path",
            |world| {
                fs::remove_file(world.workspace().join(BLOCKER)).unwrap();
                fs::create_dir(world.workspace().join(BLOCKER)).unwrap();
            },
            |_| {},
        ),
        (
            "a link is at its path",
            |world| {
                fs::remove_file(world.workspace().join(BLOCKER)).unwrap();
                symlink("nowhere", world.workspace().join(BLOCKER)).unwrap();
            },
            |_| {},
        ),
        (
            "`.jackline` is not a directory",
            |world| fs::remove_dir_all(world.workspace().join(".jackline")).unwrap(),
            |_| {},
        ),
    ];
    for (why, change, undo) in changes {
        let world = RuntimeTest::new(PROGRESS);
        let mut runtime = world.runtime();
        block(&mut runtime, "s1");
        change(&world);
        let verdict = propose(&mut runtime, "s1", "c1");
        assert_eq!(verdict["decision"], "pause", "{why}");
        let message = verdict["violations"][0]["message"].as_str().unwrap();
        assert!(message.contains(why), "{why}: {message}");
        undo(&world);
        assert_eq!(propose(&mut runtime, "s1", "c2")["decision"], "pause", "{why}");
        let mode = fs::symlink_metadata(world.workspace().join(BLOCKER)).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o600, "{why}: the report was written again");
        fs::remove_file(world.workspace().join(BLOCKER)).unwrap();
        assert_eq!(propose(&mut runtime, "s1", "c3")["decision"], "allow", "{why}");
        world.prove("s1");
    }
}
