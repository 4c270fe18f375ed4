//! The saved state is a cache: losing it, or half of it, changes nothing.

use std::fs;
use std::sync::Arc;

use jackline_journal::JournalNote;
use jackline_runtime::Runtime;
use serde_json::json;

use crate::disturbed_store::{Disturbances, DisturbedStore};
use crate::support::{RuntimeTest, send};

const DEFINITION: &str = "\
policies: [ sequential_dependency: { deploy: [ { tool: lint, fresh: true } ] } ]
completion: { files: [report.md] }
limits: { steps: { max: 1000000 }, total_tokens: { max: 100000000, soft: true } }
";

/// How often a record contains a snapshot.
const SNAPSHOT_EVERY: u64 = 4096;

/// Sends `count` events that affect every part of the state.
fn play(runtime: &mut Runtime, count: u64) {
    let tools = ["lint", "write_file", "deploy", "read_file", "bash"];
    for n in 0..count {
        let tool = tools[usize::try_from(n / 2 % 5).unwrap()];
        let line = match n % 20 {
            18 => {
                format!(r#"{{"event":"usage_reported","request":"r{n}","input":{n},"output":3}}"#)
            }
            19 => r#"{"event":"stop_proposed"}"#.to_owned(),
            at if at % 2 == 0 => format!(
                r#"{{"event":"tool_proposed","call":"c{n}","tool":"{tool}","args":{{"n":{n}}}}}"#
            ),
            at => format!(
                r#"{{"event":"tool_finished","call":"c{}","status":"{}"}}"#,
                n - 1,
                if at == 9 { "error" } else { "ok" }
            ),
        };
        send(runtime, &line);
    }
}

#[test]
fn a_missing_state_is_rebuilt_the_same_after_ten_thousand_events() {
    let world = RuntimeTest::new(DEFINITION);
    play(&mut world.runtime(), 10_000);
    let summary = world.summary("s");
    assert_eq!(summary.seq, 10_000);
    let state = world.directory("s").join("state");
    fs::remove_file(&state).unwrap();
    // For readers.
    assert_eq!(world.summary("s"), summary);

    // And for the next event: a copy with its saved state decides the same.
    let verdict = send(&mut world.runtime(), r#"{"event":"stop_proposed"}"#);
    assert_eq!(verdict["seq"], 10_001);
    let rebuilt = world.summary("s");
    fs::remove_file(&state).unwrap();
    assert_eq!(world.summary("s"), rebuilt);
    assert_eq!(world.records("s").last().unwrap().notes, []);
    world.prove("s");
}

#[test]
fn a_state_whose_slots_are_both_damaged_is_rebuilt() {
    let world = RuntimeTest::new(DEFINITION);
    play(&mut world.runtime(), 40);
    let summary = world.summary("s");
    let path = world.directory("s").join("state");
    let whole = fs::read(&path).unwrap();
    for at in [0, 20, 70, 150] {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        damaged[256 * 1024 + at] ^= 1;
        fs::write(&path, &damaged).unwrap();
        assert_eq!(world.summary("s"), summary, "byte {at}");
    }
    let verdict = send(&mut world.runtime(), r#"{"event":"stop_proposed"}"#);
    assert_eq!(verdict["seq"], 41);
    world.prove("s");
}

#[test]
fn one_damaged_slot_costs_one_record_of_folding() {
    let world = RuntimeTest::new(DEFINITION);
    play(&mut world.runtime(), 41);
    let summary = world.summary("s");
    let path = world.directory("s").join("state");
    let whole = fs::read(&path).unwrap();
    for slot in [0, 256 * 1024] {
        let mut damaged = whole.clone();
        damaged[slot + 100] ^= 1;
        fs::write(&path, &damaged).unwrap();
        assert_eq!(world.summary("s"), summary, "slot at {slot}");
    }
    assert_eq!(send(&mut world.runtime(), r#"{"event":"stop_proposed"}"#)["seq"], 42);
    world.prove("s");
}

#[test]
fn a_torn_tail_is_repaired_and_noted_with_the_next_record() {
    use std::io::Write as _;
    let world = RuntimeTest::new(DEFINITION);
    play(&mut world.runtime(), 10);
    let before = world.lines("s");
    let mut journal = fs::OpenOptions::new().append(true).open(world.journal("s")).unwrap();
    journal.write_all(&before[5][..before[5].len() / 2]).unwrap();
    let torn = before[5].len() as u64 / 2;
    send(&mut world.runtime(), r#"{"event":"session_ended"}"#);
    assert_eq!(world.lines("s")[..11], before);
    assert_eq!(world.records("s").last().unwrap().notes, [JournalNote::Repaired { bytes: torn }]);
    world.prove("s");
}

#[test]
fn a_resend_is_answered_from_the_journal_without_the_caches() {
    let world = RuntimeTest::new(DEFINITION);
    let line = r#"{"event":"tool_proposed","id":"e1","call":"c1","tool":"deploy","args":{}}"#;
    let first = send(&mut world.runtime(), line);
    play(&mut world.runtime(), 30);
    let lines = world.lines("s");
    for cache in ["ids", "state"] {
        fs::remove_file(world.directory("s").join(cache)).unwrap();
        assert_eq!(send(&mut world.runtime(), line), first, "without `{cache}`");
    }
    fs::remove_dir_all(world.store.home().join("definitions")).unwrap();
    assert_eq!(send(&mut world.runtime(), line), first, "without compiled definitions");
    assert_eq!(world.lines("s"), lines, "there is no second decision");
    world.prove("s");
}

/// A recorded number is read back as the same number, for all digits.
#[test]
fn a_resend_of_any_number_is_recognised() {
    let world = RuntimeTest::new("");
    let mut runtime = world.runtime();
    for (n, number) in [
        "0.1",
        "209311365701183.675762534",
        "7.437306552931983e+112",
        "1e308",
        "18446744073709551615",
        "-0.0",
    ]
    .iter()
    .enumerate()
    {
        let line = format!(
            r#"{{"event":"tool_proposed","id":"e{n}","call":"c{n}","tool":"t","args":{{"n":{number}}}}}"#
        );
        let first = send(&mut runtime, &line);
        assert_eq!(first["decision"], "allow");
        assert_eq!(send(&mut runtime, &line), first, "{number}");
    }
}

#[test]
fn an_id_of_another_event_is_refused() {
    let world = RuntimeTest::new("");
    let mut runtime = world.runtime();
    send(&mut runtime, r#"{"event":"tool_proposed","id":"e1","call":"c1","tool":"t","args":{}}"#);
    let other = r#"{"event":"tool_proposed","id":"e1","call":"c2","tool":"t","args":{}}"#;
    let verdict = send(&mut runtime, other);
    assert_eq!(verdict["decision"], "deny");
    assert_eq!(
        verdict["error"],
        json!({"kind": "id_reused", "reason": "event id `e1` was already used for another event; give every event its own id"})
    );
    assert_eq!(world.records("s").len(), 1);
}

/// A snapshot in every 4,096th record bounds a rebuild: earlier records are not read or applied.
#[test]
fn a_rebuild_begins_at_the_latest_snapshot() {
    let world = RuntimeTest::new(DEFINITION);
    play(&mut world.runtime(), SNAPSHOT_EVERY + 20);
    let snapshots: Vec<u64> = world
        .records("s")
        .iter()
        .filter(|record| record.snapshot.is_some())
        .map(|record| record.seq)
        .collect();
    assert_eq!(snapshots, [SNAPSHOT_EVERY]);
    let summary = world.summary("s");
    fs::remove_file(world.directory("s").join("state")).unwrap();

    let at = SNAPSHOT_EVERY;
    let meddler = Arc::new(Disturbances::default());
    let disturbed =
        DisturbedStore { inner: world.store.clone(), disturbances: Arc::clone(&meddler) };
    let verdict = send(&mut world.runtime_on(disturbed), r#"{"event":"session_started"}"#);
    assert_eq!(verdict["seq"], summary.seq + 1);
    world.prove("s");
    let reads = meddler.reads.lock().unwrap().clone();
    assert!(!reads.is_empty());
    assert!(
        reads.iter().all(|from| *from >= at),
        "the snapshot is at {at}, but reads began at {reads:?}"
    );
}
