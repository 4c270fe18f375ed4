//! Broken stores: the answer is a denial by a broken guard, nothing is recorded, and the session
//! continues.

use std::sync::Arc;

use jackline_engine::FaultKind;
use jackline_journal::JournalNote;
use serde_json::{Value, json};

use crate::disturbed_store::{AppendFailure, Disturbances, DisturbedStore};
use crate::support::{RuntimeTest, send};

const PROPOSED: &str = r#"{"event":"tool_proposed","id":"e2","call":"c2","tool":"t","args":{}}"#;

/// The end of every text about a broken guard.
const HOW_TO_TURN_OFF: &str = "a person can check with `jackline status`, or turn the guard \
                       off for a while with `jackline off --for 30m --why …`";

fn denial(kind: &str, reason: &str, remedy: &str) -> Value {
    let remedy = format!("{remedy}; {HOW_TO_TURN_OFF}");
    let message = format!("the guard is broken, not the call: {reason}");
    json!({"v": 1, "session": "s", "call": "c2", "decision": "deny", "enforced": true,
        "violations": [{"id": "v0.1", "guard": "runtime", "type": "guard_fault", "subtype": kind,
            "class": "terminal_guardrail", "message": message, "correction": remedy,
            "decision": "deny", "enforced": true}],
        "context": format!("{message}\n-> {remedy}"),
        "error": {"kind": kind, "reason": format!("{message}; {remedy}")}})
}

/// Breaks the second append of a session, or its first one.
fn check(how: AppendFailure, first: bool, kind: &str, reason: &str, remedy: &str) {
    let world = RuntimeTest::new("");
    let meddler = Arc::new(Disturbances::default());
    let store = DisturbedStore { inner: world.store.clone(), disturbances: Arc::clone(&meddler) };
    let mut runtime = world.runtime_on(store);
    if !first {
        send(&mut runtime, r#"{"event":"session_started"}"#);
    }
    let before = world.journal("s").exists().then(|| world.lines("s"));

    *meddler.next_append.lock().unwrap() = Some(how);
    assert_eq!(send(&mut runtime, PROPOSED), denial(kind, reason, remedy));
    assert_eq!(world.lines("s"), before.unwrap_or_default(), "something was recorded");

    // The same event counts as new, because the first one was not recorded.
    let seq = if first { 1 } else { 2 };
    assert_eq!(
        send(&mut runtime, PROPOSED),
        json!({"v": 1, "session": "s", "seq": seq, "step": 1, "call": "c2", "decision": "allow"})
    );
    let notes = world.records("s").last().unwrap().notes.clone();
    assert_eq!(
        notes,
        [JournalNote::Fault { kind: FaultKind::parse(kind), reason: reason.to_owned() }]
    );
    send(&mut runtime, r#"{"event":"stop_proposed"}"#);
    assert_eq!(world.records("s").last().unwrap().notes, [], "a note is written once");
    world.prove("s");
}

#[test]
fn a_store_that_panics_denies_and_the_session_continues() {
    let (reason, remedy) =
        ("an internal fault: a bug in a store", "report this with the journal of the session");
    check(AppendFailure::Panics, false, "internal", reason, remedy);
    check(AppendFailure::Panics, true, "internal", reason, remedy);
}

#[test]
fn a_full_disk_denies_and_the_session_continues() {
    let reason = "can't append to the journal: No space left on device (os error 28)";
    let remedy = "free some space, then send the event again";
    check(AppendFailure::Fails(28), false, "store_full", reason, remedy);
    check(AppendFailure::Fails(28), true, "store_full", reason, remedy);
}

#[test]
fn a_read_only_disk_denies_and_the_session_continues() {
    let reason = "can't append to the journal: Read-only file system (os error 30)";
    let remedy = "make the state home writable or set JACKLINE_HOME to a writable directory, then send the event again";
    check(AppendFailure::Fails(30), false, "store_read_only", reason, remedy);
}

#[test]
fn a_failing_disk_denies_and_the_session_continues() {
    let reason = "can't append to the journal: Input/output error (os error 5)";
    let remedy = "check the state home, then send the event again";
    check(AppendFailure::Fails(5), false, "store", reason, remedy);
}

/// A repair is noted with the next written record, even if the append that should have carried the
/// note failed.
#[test]
fn a_repair_is_noted_although_the_append_after_it_failed() {
    use std::io::Write as _;
    let world = RuntimeTest::new("");
    send(&mut world.runtime(), r#"{"event":"session_started"}"#);
    let mut journal = std::fs::OpenOptions::new().append(true).open(world.journal("s")).unwrap();
    journal.write_all(b"{\"v\":1,\"seq\":2").unwrap();

    let meddler = Arc::new(Disturbances::default());
    *meddler.next_append.lock().unwrap() = Some(AppendFailure::Fails(28));
    let store = DisturbedStore { inner: world.store.clone(), disturbances: meddler };
    let mut runtime = world.runtime_on(store);
    assert_eq!(send(&mut runtime, PROPOSED)["error"]["kind"], "store_full");
    assert_eq!(send(&mut runtime, PROPOSED)["decision"], "allow");
    let notes = world.records("s").last().unwrap().notes.clone();
    let reason = "can't append to the journal: No space left on device (os error 28)".to_owned();
    assert_eq!(
        notes,
        [
            JournalNote::Repaired { bytes: 14 },
            JournalNote::Fault { kind: FaultKind::StoreFull, reason }
        ]
    );
    world.prove("s");
}
