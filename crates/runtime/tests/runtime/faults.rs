//! A store that breaks: the answer is a denial that blames the guard, nothing
//! is recorded, and the session goes on.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use jackline_engine::{Blob, Digest, EventId, SessionId};
use jackline_journal::{Body, FileStore, Head, Log, Note, Store, StoreError};
use serde_json::{Value, json};

use crate::support::{World, send};

/// How the next append goes wrong.
#[derive(Clone, Copy)]
enum How {
    Panics,
    /// With the number of an operating system's error.
    Fails(i32),
}

/// A file store whose next append goes wrong, once.
struct Breaking {
    inner: FileStore,
    next: Arc<Mutex<Option<How>>>,
}

struct BreakingLog {
    inner: Box<dyn Log>,
    next: Arc<Mutex<Option<How>>>,
}

impl Store for Breaking {
    fn open(&self, session: &SessionId) -> Result<Box<dyn Log>, StoreError> {
        let inner = self.inner.open(session)?;
        Ok(Box::new(BreakingLog { inner, next: Arc::clone(&self.next) }))
    }

    fn put_blobs(&self, blobs: &[Blob]) -> Result<(), StoreError> {
        self.inner.put_blobs(blobs)
    }

    fn blob(&self, sha256: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.blob(sha256)
    }
}

impl Log for BreakingLog {
    fn lock(&mut self) -> Result<(), StoreError> {
        self.inner.lock()
    }

    fn unlock(&mut self) {
        self.inner.unlock();
    }

    fn head(&mut self) -> Result<Option<Head>, StoreError> {
        self.inner.head()
    }

    fn take_repaired(&mut self) -> Option<u64> {
        self.inner.take_repaired()
    }

    fn load_state(&mut self) -> Result<Option<(Head, Vec<u8>)>, StoreError> {
        self.inner.load_state()
    }

    fn append(&mut self, bodies: &[Body]) -> Result<Head, StoreError> {
        let next = self.next.lock().unwrap().take();
        match next {
            None => self.inner.append(bodies),
            Some(How::Panics) => panic!("a bug in a store"),
            Some(How::Fails(number)) => Err(StoreError::Io {
                what: "append to",
                path: PathBuf::from("j"),
                source: io::Error::from_raw_os_error(number),
            }),
        }
    }

    fn save_state(&mut self, head: &Head, state: &[u8]) -> Result<(), StoreError> {
        self.inner.save_state(head, state)
    }

    fn read(
        &mut self,
        from: u64,
        each: &mut dyn FnMut(&[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.inner.read(from, each)
    }

    fn first(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.first()
    }

    fn latest_snapshot(&mut self) -> Result<Option<u64>, StoreError> {
        self.inner.latest_snapshot()
    }

    fn find(&mut self, id: &EventId) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.find(id)
    }
}

const PROPOSED: &str = r#"{"event":"tool_proposed","id":"e2","call":"c2","tool":"t","args":{}}"#;

fn denial(kind: &str, reason: &str, remedy: &str) -> Value {
    let message = format!("the guard is broken, not the call: {reason}");
    json!({"v": 1, "session": "s", "call": "c2", "decision": "deny", "enforced": true,
        "violations": [{"id": "v0.1", "guard": "runtime", "type": "guard_fault", "subtype": kind,
            "class": "terminal_guardrail", "message": message, "correction": remedy,
            "decision": "deny", "enforced": true}],
        "context": format!("{message}\n-> {remedy}"),
        "error": {"kind": kind, "reason": format!("{message}; {remedy}")}})
}

/// Breaks the second append of a session, or its first one.
fn check(how: How, first: bool, kind: &str, reason: &str, remedy: &str) {
    let world = World::new("");
    let next = Arc::new(Mutex::new(None));
    let store = Breaking { inner: world.store.clone(), next: Arc::clone(&next) };
    let mut runtime = world.runtime_on(store);
    if !first {
        send(&mut runtime, r#"{"event":"session_started"}"#);
    }
    let before = world.journal("s").exists().then(|| world.lines("s"));

    *next.lock().unwrap() = Some(how);
    assert_eq!(send(&mut runtime, PROPOSED), denial(kind, reason, remedy));
    assert_eq!(world.lines("s"), before.unwrap_or_default(), "something was recorded");

    // The same event again is a new one: nobody has decided on it.
    let seq = if first { 1 } else { 2 };
    assert_eq!(
        send(&mut runtime, PROPOSED),
        json!({"v": 1, "session": "s", "seq": seq, "step": 1, "call": "c2", "decision": "allow"})
    );
    let notes = world.records("s").last().unwrap().notes.clone();
    assert_eq!(notes, [Note::Fault { kind: kind.to_owned(), reason: reason.to_owned() }]);
    send(&mut runtime, r#"{"event":"stop_proposed"}"#);
    assert_eq!(world.records("s").last().unwrap().notes, [], "a note is written once");
    world.prove("s");
}

#[test]
fn a_store_that_panics_denies_and_the_session_goes_on() {
    let (reason, remedy) =
        ("an internal fault: a bug in a store", "report this with the journal of the session");
    check(How::Panics, false, "internal", reason, remedy);
    check(How::Panics, true, "internal", reason, remedy);
}

#[test]
fn a_full_disk_denies_and_the_session_goes_on() {
    let reason = "can't append to `j`: No space left on device (os error 28)";
    let remedy = "free some space, then send it again";
    check(How::Fails(28), false, "store_full", reason, remedy);
    check(How::Fails(28), true, "store_full", reason, remedy);
}

#[test]
fn a_disk_that_became_read_only_denies_and_the_session_goes_on() {
    let reason = "can't append to `j`: Read-only file system (os error 30)";
    let remedy = "make the state home writable or set JACKLINE_HOME to a directory that is, then send it again";
    check(How::Fails(30), false, "store_read_only", reason, remedy);
}

#[test]
fn a_disk_that_fails_denies_and_the_session_goes_on() {
    let reason = "can't append to `j`: Input/output error (os error 5)";
    let remedy = "look at the state home, then send it again";
    check(How::Fails(5), false, "store", reason, remedy);
}

/// A repair is noted with the next record that is written, even if the one
/// that should have carried the note was not.
#[test]
fn a_repair_is_noted_although_the_append_after_it_failed() {
    use std::io::Write as _;
    let world = World::new("");
    send(&mut world.runtime(), r#"{"event":"session_started"}"#);
    let mut journal = std::fs::OpenOptions::new().append(true).open(world.journal("s")).unwrap();
    journal.write_all(b"{\"v\":1,\"seq\":2").unwrap();

    let next = Arc::new(Mutex::new(Some(How::Fails(28))));
    let store = Breaking { inner: world.store.clone(), next };
    let mut runtime = world.runtime_on(store);
    assert_eq!(send(&mut runtime, PROPOSED)["error"]["kind"], "store_full");
    assert_eq!(send(&mut runtime, PROPOSED)["decision"], "allow");
    let notes = world.records("s").last().unwrap().notes.clone();
    let reason = "can't append to `j`: No space left on device (os error 28)".to_owned();
    assert_eq!(
        notes,
        [Note::Repaired { bytes: 14 }, Note::Fault { kind: "store_full".to_owned(), reason }]
    );
    world.prove("s");
}
