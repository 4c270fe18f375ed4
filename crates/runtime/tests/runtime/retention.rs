//! Old sessions make room for new ones, and no session that runs is removed.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use jackline_engine::{Digest, SessionId, Timestamp};
use jackline_journal::{Retention, Store as _};

use crate::support::{RuntimeTest, answer, send};

/// The list without any removed session.
const NONE: [SessionId; 0] = [];

fn id(session: &str) -> SessionId {
    SessionId::parse(session).unwrap()
}

const DAY: u64 = 24 * 60 * 60;

/// A day far from the wall clock, which must not matter.
const TODAY: u64 = 1_000 * DAY;

fn now() -> Timestamp {
    Timestamp::from_ms(i64::try_from(TODAY * 1000).unwrap())
}

fn retention(world: &RuntimeTest, bytes: u64) -> Retention {
    let workspace = world.workspace().canonicalize().unwrap().display().to_string();
    Retention { workspace, bytes, days: 30 }
}

/// Sets the modification time of a file.
fn set_modified(path: &PathBuf, days_ago: u64) {
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(TODAY - days_ago * DAY);
    File::options().write(true).open(path).unwrap().set_modified(at).unwrap();
}

/// A session with one large record, written some days ago.
fn session(world: &RuntimeTest, name: &str, days_ago: u64) {
    let line = format!(
        r#"{{"session":"{name}","event":"prompt_submitted","text":"{}"}}"#,
        "x".repeat(30_000)
    );
    send(&mut world.runtime(), &line);
    set_modified(&world.journal(name), days_ago);
}

#[test]
fn a_session_beyond_its_retention_is_removed() {
    let world = RuntimeTest::new("journal: { retain_days: 7 }");
    session(&world, "old", 8);
    session(&world, "young", 6);
    let removed = world.store.prune(&retention(&world, u64::MAX), now()).unwrap();
    assert_eq!(removed, [id("old")]);
    assert!(!world.directory("old").exists());
    world.prove("young");
}

#[test]
fn the_oldest_sessions_make_room_above_a_size() {
    let world = RuntimeTest::new("");
    for (name, days_ago) in [("a", 4), ("b", 3), ("c", 2), ("d", 1)] {
        session(&world, name, days_ago);
    }
    let bytes = |name: &str| -> u64 {
        std::fs::read_dir(world.directory(name))
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap())
            // A definition is shared with other sessions.
            .filter(|metadata| metadata.nlink() == 1)
            .map(|metadata| metadata.blocks() * 512)
            .sum()
    };
    let room = bytes("c") + bytes("d");
    let removed = world.store.prune(&retention(&world, room), now()).unwrap();
    assert_eq!(removed, [id("a"), id("b")]);
    world.prove("c");
    world.prove("d");
}

#[test]
fn the_newest_session_stays_whatever_its_size() {
    let world = RuntimeTest::new("");
    session(&world, "a", 2);
    session(&world, "b", 1);
    let removed = world.store.prune(&retention(&world, 1), now()).unwrap();
    assert_eq!(removed, [id("a")]);
    assert!(world.is_opened("b"));
}

#[test]
fn another_workspace_is_not_asked_to_make_room() {
    let world = RuntimeTest::new("");
    session(&world, "a", 2);
    session(&world, "b", 1);
    let elsewhere = Retention { workspace: "/elsewhere".to_owned(), bytes: 1, days: 30 };
    assert_eq!(world.store.prune(&elsewhere, now()).unwrap(), NONE);
}

#[test]
fn a_locked_session_is_not_removed() {
    let world = RuntimeTest::new("");
    for name in ["held", "free", "new"] {
        session(&world, name, 40);
    }
    let mut log = world.store.open(&id("held")).unwrap();
    log.lock().unwrap();
    set_modified(&world.journal("new"), 1);
    let removed = world.store.prune(&retention(&world, 1), now()).unwrap();
    assert_eq!(removed, [id("free")]);
    drop(log);
    world.prove("held");
}

/// Between two events the session is not locked, but still in use.
#[test]
fn an_open_session_is_not_removed() {
    let world = RuntimeTest::new("");
    let mut at_work = world.runtime();
    send(&mut at_work, r#"{"session":"idle","event":"session_started"}"#);
    set_modified(&world.journal("idle"), 40);
    assert_eq!(world.store.prune(&retention(&world, 1), now()).unwrap(), NONE);
    send(&mut at_work, r#"{"session":"idle","event":"prompt_submitted"}"#);
    world.prove("idle");
}

/// A missing journal must not give its session new budgets.
#[test]
fn a_session_that_was_removed_under_a_process_stays_blocked() {
    for removed in [true, false] {
        let world = RuntimeTest::new("limits: { steps: 1 }");
        let mut at_work = world.runtime();
        let call = r#"{"session":"gone","event":"tool_proposed","call":"c1","tool":"t","args":{}}"#;
        assert_eq!(send(&mut at_work, call)["decision"], "allow");
        if removed {
            std::fs::remove_dir_all(world.directory("gone")).unwrap();
        } else {
            std::fs::rename(world.directory("gone"), world.directory("elsewhere")).unwrap();
        }
        for _ in 0..2 {
            let verdict = send(&mut at_work, call);
            assert_eq!(verdict["error"]["kind"], "store_removed", "{verdict}");
        }
    }
}

#[test]
fn an_unreadable_journal_is_not_removed() {
    let world = RuntimeTest::new("");
    session(&world, "bad", 2);
    std::fs::write(world.journal("bad"), "not a record\n").unwrap();
    set_modified(&world.journal("bad"), 400);
    assert_eq!(world.store.prune(&retention(&world, 1), now()).unwrap(), NONE);
}

#[test]
fn payloads_expire_without_breaking_replay() {
    let world = RuntimeTest::new("");
    let text = "z".repeat(100_000);
    let line = format!(r#"{{"event":"prompt_submitted","text":"{text}"}}"#);
    send(&mut world.runtime(), &line);
    set_modified(&world.journal("s"), 1);
    let sha256 = Digest::of(text.as_bytes());
    let blob = world.store.home().join("blobs").join(sha256.to_string());
    set_modified(&blob, 29);
    world.store.prune(&retention(&world, u64::MAX), now()).unwrap();
    assert_eq!(world.store.blob(&sha256).unwrap(), Some(text.into_bytes()));

    set_modified(&blob, 31);
    let tomorrow = Timestamp::from_ms(now().as_ms() + 24 * 60 * 60 * 1000);
    set_modified(&world.store.home().join("pruned"), 1);
    world.store.prune(&retention(&world, u64::MAX), tomorrow).unwrap();
    assert_eq!(world.store.blob(&sha256).unwrap(), None);
    world.prove("s");
}

#[test]
fn a_store_is_pruned_at_most_once_an_hour() {
    let world = RuntimeTest::new("");
    session(&world, "new", 1);
    session(&world, "old", 40);
    let stamp = world.store.home().join("pruned");
    File::create(&stamp).unwrap();
    set_modified(&stamp, 0);
    assert_eq!(world.store.prune(&retention(&world, u64::MAX), now()).unwrap(), NONE);
    let later = Timestamp::from_ms(now().as_ms() + 60 * 60 * 1000);
    let removed = world.store.prune(&retention(&world, u64::MAX), later).unwrap();
    assert_eq!(removed, [id("old")]);
}

#[test]
fn a_runtime_prunes_after_a_new_session() {
    let world = RuntimeTest::new("journal: { retain_days: 7 }");
    send(&mut world.runtime(), r#"{"session":"old","event":"session_started"}"#);
    set_modified(&world.journal("old"), 0);
    let mut runtime = world.runtime();
    // Only opening a new session triggers pruning; continuing one does not.
    let opened = answer(&mut runtime, r#"{"session":"new","event":"session_started"}"#);
    assert!(world.is_opened("old"), "not before the answer");
    runtime.finish(opened.deferred);
    assert!(!world.is_opened("old"));
    assert!(world.is_opened("new"));
}

/// The definition of a workspace is stored once, and is removed with the last session that refers
/// to it.
#[test]
fn a_definition_is_stored_while_a_journal_refers_to_it() {
    let world = RuntimeTest::new("limits: { steps: 9 }");
    session(&world, "one", 8);
    session(&world, "two", 40);
    let definitions = || {
        let all = std::fs::read_dir(world.store.home().join("definitions")).unwrap();
        let names = all.map(|entry| entry.unwrap().path());
        names.filter(|path| path.extension().is_some_and(|it| it == "json")).collect::<Vec<_>>()
    };
    assert_eq!(definitions().len(), 1, "one definition for all sessions");
    set_modified(&definitions()[0], 40);
    assert_eq!(world.store.prune(&retention(&world, u64::MAX), now()).unwrap(), [id("two")]);
    assert_eq!(definitions().len(), 1);
    world.prove("one");

    set_modified(&world.journal("one"), 40);
    set_modified(&world.store.home().join("pruned"), 1);
    assert_eq!(world.store.prune(&retention(&world, u64::MAX), now()).unwrap(), [id("one")]);
    assert!(definitions().is_empty());
}
