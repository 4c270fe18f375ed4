//! The contract suite: the requirements that every store must meet.
//!
//! The runtime depends on these requirements. The suite is library code, so that stores of other
//! crates can run it too. It reports the broken clauses instead of panicking.

use std::sync::Arc;

use jackline_engine::definition::StoredDefinition;
use jackline_engine::observe::Blob;
use jackline_engine::{
    Decision, Definition, Digest, Event, EventId, Facts, Now, SessionId, Timestamp, Verdict, wire,
};
use serde_json::value::{RawValue, to_raw_value};

use crate::chain::check_line;
use crate::error::StoreError;
use crate::head::JournalHead;
use crate::record::{
    JournalLine, JournalNote, OpenedDefinition, OpeningRecord, RecordBody, ReloadedDefinition,
    Snapshot, parse_record,
};
use crate::session_entry::SessionFilter;
use crate::verify::Verifier;
use crate::{ReadMode, SessionLog, Store};

/// Creates an empty store.
pub type StoreFactory<'a> = &'a dyn Fn() -> Box<dyn Store>;

/// One clause: the requirement as text, and the function that checks it.
type Clause = (&'static str, fn(&dyn Store) -> Result<(), BrokenClause>);

const CLAUSES: &[Clause] = &[
    ("an empty log has nothing", an_empty_log_has_nothing),
    ("an append moves the head", an_append_moves_the_head),
    ("records are chained by their hashes", records_are_chained),
    ("several records are appended as one", several_records_are_appended_as_one),
    ("reading begins at a record", reading_begins_at_a_record),
    ("reading ends when the reader stops", reading_ends_early),
    ("the first line stays the first", the_first_line_stays),
    ("two handles see each other's records", two_handles_see_each_other),
    ("a log outlives its handle", a_log_outlives_its_handle),
    ("sessions are separate", sessions_are_separate),
    ("an event is found by its id", an_event_is_found_by_its_id),
    ("the first event of an id stays", the_first_event_of_an_id_stays),
    ("many ids are all found", many_ids_are_all_found),
    ("the latest state is stored", the_latest_state_is_stored),
    ("a journal is listed and viewed", a_journal_is_listed_and_viewed),
    ("a definition is stored with its journal", a_definition_is_stored_with_its_journal),
    ("an append after an outdated head is refused", an_append_after_an_outdated_head_is_refused),
    ("the latest snapshot is found", the_latest_snapshot_is_found),
    ("a payload is stored once", a_payload_is_stored_once),
];

/// Runs every clause on its own store, and returns the broken clauses, one per line.
pub fn run(make: StoreFactory<'_>) -> Result<(), String> {
    let broken: Vec<String> = CLAUSES
        .iter()
        .filter_map(|(name, clause)| {
            clause(make().as_ref()).err().map(|BrokenClause(how)| format!("broken: {name}: {how}"))
        })
        .collect();
    if broken.is_empty() { Ok(()) } else { Err(broken.join("\n")) }
}

/// The explanation of a broken clause.
struct BrokenClause(String);

impl From<StoreError> for BrokenClause {
    fn from(error: StoreError) -> Self {
        Self(error.to_string())
    }
}

/// Fails if a value differs from the expected one.
fn check_equal<T: PartialEq + std::fmt::Debug>(
    what: &str,
    found: &T,
    expected: &T,
) -> Result<(), BrokenClause> {
    if found == expected {
        return Ok(());
    }
    Err(BrokenClause(format!("{what} is {found:?}, but must be {expected:?}")))
}

fn suite_error(error: impl std::fmt::Display) -> BrokenClause {
    BrokenClause(format!("the suite itself is broken: {error}"))
}

fn session(name: &str) -> Result<SessionId, BrokenClause> {
    SessionId::parse(name).map_err(suite_error)
}

fn id(name: &str) -> Result<EventId, BrokenClause> {
    EventId::parse(name).map_err(suite_error)
}

/// Opens and locks the log of a session.
fn open_locked(store: &dyn Store, name: &str) -> Result<Box<dyn SessionLog>, BrokenClause> {
    let mut log = store.open(&session(name)?)?;
    log.lock()?;
    Ok(log)
}

fn opened(name: &str) -> Result<RecordBody, BrokenClause> {
    Ok(RecordBody::opened(&OpeningRecord {
        session: session(name)?,
        at: Timestamp::from_ms(1),
        place: jackline_engine::SessionLocation::default(),
        definition: definition("a/b"),
    }))
}

fn definition(name: &str) -> OpenedDefinition {
    let definition = Definition { name: name.to_owned(), ..Definition::default() };
    let lowered = StoredDefinition::new(Arc::new(definition));
    OpenedDefinition { checksum: Digest::of(name.as_bytes()), lowered }
}

fn event(name: &str, id: Option<&str>) -> Result<Event, BrokenClause> {
    let id = id.map_or_else(String::new, |id| format!(r#","id":"{id}""#));
    let line = format!(r#"{{"session":"{name}","event":"stop_proposed"{id}}}"#);
    wire::parse_line(line.as_bytes(), None).map_err(suite_error)
}

fn verdict(seq: u64) -> Result<Box<RawValue>, BrokenClause> {
    let verdict = Verdict { seq: Some(seq), decision: Decision::Allow, ..Verdict::allow() };
    to_raw_value(&verdict).map_err(suite_error)
}

fn body(seq: u64, event: &Event, state: Option<&[u8]>) -> Result<RecordBody, BrokenClause> {
    let facts = Facts::at(Now::wall(Timestamp::from_ms(1)));
    let notes: &[JournalNote] = &[];
    let snapshot = state.map(snapshot);
    Ok(RecordBody::event(seq, event, &facts, verdict(seq)?.as_ref(), notes, snapshot.as_ref()))
}

fn snapshot(state: &[u8]) -> Snapshot {
    let place = jackline_engine::SessionLocation::default();
    let reloaded = Some(ReloadedDefinition { place, definition: definition("c/d") });
    Snapshot { state: state.to_vec(), reloaded }
}

/// Appends an opening and `count` events one by one, and returns the heads. The ids of the events
/// are `e1`, `e2`, ….
fn append_events(
    log: &mut dyn SessionLog,
    name: &str,
    count: u64,
) -> Result<Vec<JournalHead>, BrokenClause> {
    let mut heads = vec![append(log, &[opened(name)?])?];
    for seq in 1..=count {
        let event = event(name, Some(&format!("e{seq}")))?;
        heads.push(append(log, &[body(seq, &event, None)?])?);
    }
    Ok(heads)
}

/// Appends at the end of the journal.
fn append(log: &mut dyn SessionLog, bodies: &[RecordBody]) -> Result<JournalHead, BrokenClause> {
    let end = log.head()?;
    Ok(log.append(end, bodies)?)
}

fn read_lines(log: &mut dyn SessionLog, from: u64) -> Result<Vec<Vec<u8>>, BrokenClause> {
    let mut lines = Vec::new();
    log.read(from, &mut |line| {
        lines.push(line.to_vec());
        Ok(())
    })?;
    Ok(lines)
}

/// The sequence number of the record in a line, after checking its hash.
fn record_number(line: Option<Vec<u8>>) -> Result<Option<u64>, BrokenClause> {
    let Some(line) = line else { return Ok(None) };
    check_line(&line).map_err(|fault| BrokenClause(fault.to_string()))?;
    match parse_record(&line).map_err(StoreError::from)? {
        JournalLine::Opened(_) => Ok(Some(0)),
        JournalLine::Event(record) => Ok(Some(record.seq)),
    }
}

fn an_empty_log_has_nothing(store: &dyn Store) -> Result<(), BrokenClause> {
    let mut log = open_locked(store, "s")?;
    check_equal("the head", &log.head()?, &None)?;
    check_equal("the number of repaired bytes", &log.take_repaired_bytes(), &None)?;
    check_equal("the state", &log.load_state()?, &None)?;
    check_equal("the first line", &log.first_record()?, &None)?;
    check_equal("the latest snapshot", &log.latest_snapshot()?, &None)?;
    check_equal("an event", &log.find_event(&id("e1")?)?, &None)?;
    check_equal("the lines read", &read_lines(log.as_mut(), 0)?, &Vec::new())
}

fn an_append_moves_the_head(store: &dyn Store) -> Result<(), BrokenClause> {
    let mut log = open_locked(store, "s")?;
    let first = append(log.as_mut(), &[opened("s")?])?;
    check_equal("the head", &log.head()?, &Some(first))?;
    check_equal("its number", &first.seq, &0)?;
    let second = append(log.as_mut(), &[body(1, &event("s", None)?, None)?])?;
    check_equal("the head", &log.head()?, &Some(second))?;
    check_equal("its number", &second.seq, &1)?;
    check_equal("the number of lines", &read_lines(log.as_mut(), 0)?.len(), &2)
}

fn records_are_chained(store: &dyn Store) -> Result<(), BrokenClause> {
    let mut log = open_locked(store, "s")?;
    let heads = append_events(log.as_mut(), "s", 5)?;
    let mut prev = Digest::ZERO;
    let mut verifier = Verifier::new(heads.last().copied());
    let lines = read_lines(log.as_mut(), 0)?;
    check_equal("the number of lines", &lines.len(), &heads.len())?;
    for (line, head) in lines.iter().zip(&heads) {
        let sealed = check_line(line).map_err(|fault| BrokenClause(fault.to_string()))?;
        check_equal("the hash before", &sealed.prev, &prev)?;
        check_equal("the hash", &sealed.hash, &head.hash)?;
        prev = sealed.hash;
        verifier.check_line(line);
    }
    check_equal("the findings of a check", &verifier.finish(0).findings, &Vec::new())
}

fn several_records_are_appended_as_one(store: &dyn Store) -> Result<(), BrokenClause> {
    let mut log = open_locked(store, "s")?;
    let events = [event("s", Some("a"))?, event("s", Some("b"))?];
    let [first, second] = &events;
    let head =
        append(log.as_mut(), &[opened("s")?, body(1, first, None)?, body(2, second, None)?])?;
    check_equal("the head", &log.head()?, &Some(head))?;
    check_equal("its number", &head.seq, &2)?;
    check_equal("the number of lines", &read_lines(log.as_mut(), 0)?.len(), &3)?;
    check_equal("the event `a`", &record_number(log.find_event(&id("a")?)?)?, &Some(1))?;
    check_equal("the event `b`", &record_number(log.find_event(&id("b")?)?)?, &Some(2))
}

fn reading_begins_at_a_record(store: &dyn Store) -> Result<(), BrokenClause> {
    let mut log = open_locked(store, "s")?;
    let heads = append_events(log.as_mut(), "s", 4)?;
    let all = read_lines(log.as_mut(), 0)?;
    for (passed, head) in heads.iter().enumerate() {
        let rest = all.get(passed + 1..).unwrap_or(&[]).to_vec();
        check_equal("the lines read", &read_lines(log.as_mut(), head.seq + 1)?, &rest)?;
    }
    Ok(())
}

fn reading_ends_early(store: &dyn Store) -> Result<(), BrokenClause> {
    let mut log = open_locked(store, "s")?;
    append_events(log.as_mut(), "s", 4)?;
    let mut read = 0;
    let ended = log.read(0, &mut |_| {
        read += 1;
        if read == 2 { Err(StoreError::Busy { seconds: 77 }) } else { Ok(()) }
    });
    check_equal("the number of lines", &read, &2)?;
    match ended {
        Err(StoreError::Busy { seconds: 77 }) => Ok(()),
        other => Err(BrokenClause(format!("the reader's error became {other:?}"))),
    }
}

fn the_first_line_stays(store: &dyn Store) -> Result<(), BrokenClause> {
    let mut log = open_locked(store, "s")?;
    append_events(log.as_mut(), "s", 3)?;
    check_equal(
        "the first line",
        &log.first_record()?,
        &read_lines(log.as_mut(), 0)?.first().cloned(),
    )?;
    check_equal("its number", &record_number(log.first_record()?)?, &Some(0))
}

fn a_journal_is_listed_and_viewed(store: &dyn Store) -> Result<(), BrokenClause> {
    let everything = SessionFilter::default();
    check_equal("an empty list", &store.list(&everything)?.len(), &0)?;
    check_equal("an unknown session", &store.entry(&session("s")?)?.is_some(), &false)?;
    let mut log = open_locked(store, "s")?;
    log.store_definition(&definition("a/b").lowered)?;
    let heads = append_events(log.as_mut(), "s", 300)?;
    let middle = heads.get(150).copied().ok_or_else(|| BrokenClause("no head 150".to_owned()))?;
    let last = heads.last().copied().ok_or_else(|| BrokenClause("no head".to_owned()))?;
    log.save_state(&last, b"state")?;
    let all = read_lines(log.as_mut(), 0)?;
    log.unlock();

    let names: Vec<String> = store.list(&everything)?.into_iter().map(|it| it.name).collect();
    check_equal("the list", &names, &vec!["s".to_owned()])?;
    let entry = store.entry(&session("s")?)?.ok_or_else(|| BrokenClause("no entry".to_owned()))?;
    check_equal("the session in the opening", &entry.opening()?.session, &session("s")?)?;
    for reading in [ReadMode::Consistent, ReadMode::Unlocked] {
        let view = store.view(&entry, reading)?;
        check_equal("the saved head", &view.saved_head(), &Some(last))?;
        check_equal("the saved state", &view.saved_state(), &Some((last, b"state".as_slice())))?;
        for seq in [0, 1, 150, 300] {
            check_equal("a record", &record_number(view.record(seq)?)?, &Some(seq))?;
        }
        check_equal("a record behind the end", &view.record(301)?, &None)?;
        let mut read = Vec::new();
        view.read_from(middle.seq + 1, |line| {
            read.push(line.to_vec());
            Ok::<(), StoreError>(())
        })?;
        check_equal("the records from the middle on", &Some(read.as_slice()), &all.get(151..))?;
        let first = view.record(0)?.ok_or_else(|| BrokenClause("no first record".to_owned()))?;
        match view.parse(&first)? {
            JournalLine::Opened(opened) => {
                let name = opened.definition.lowered.definition().map(|it| it.name.clone());
                check_equal("the definition", &name, &Some("a/b".to_owned()))?;
            }
            JournalLine::Event(_) => {
                return Err(BrokenClause("the first record is an event".to_owned()));
            }
        }
    }
    Ok(())
}

fn a_definition_is_stored_with_its_journal(store: &dyn Store) -> Result<(), BrokenClause> {
    let (one, other) = (definition("a/b").lowered, definition("c/d").lowered);
    let mut log = open_locked(store, "s")?;
    match log.definitions().load(&one.digest()) {
        Err(StoreError::DefinitionMissing { digest }) => {
            check_equal("the digest in the error", &digest, &one.digest())?;
        }
        found => {
            return Err(BrokenClause(format!(
                "loading a definition that was never stored gave {found:?}"
            )));
        }
    }
    log.store_definition(&one)?;
    log.store_definition(&one)?;
    log.store_definition(&other)?;
    append_events(log.as_mut(), "s", 1)?;
    drop(log);
    let log = store.open(&session("s")?)?;
    for (definition, name) in [(one, "a/b"), (other, "c/d")] {
        check_equal(
            "its name",
            &log.definitions().load(&definition.digest())?.name.as_str(),
            &name,
        )?;
    }
    Ok(())
}

fn an_append_after_an_outdated_head_is_refused(store: &dyn Store) -> Result<(), BrokenClause> {
    let mut log = open_locked(store, "s")?;
    let heads = append_events(log.as_mut(), "s", 2)?;
    let third = body(3, &event("s", None)?, None)?;
    for expected in [None, heads.first().copied()] {
        match log.append(expected, std::slice::from_ref(&third)) {
            Err(StoreError::HeadChanged) => {}
            other => return Err(BrokenClause(format!("the append returned {other:?}"))),
        }
    }
    check_equal("the head", &log.head()?, &heads.last().copied())?;
    check_equal("the number of lines", &read_lines(log.as_mut(), 0)?.len(), &3)
}

fn two_handles_see_each_other(store: &dyn Store) -> Result<(), BrokenClause> {
    let (mut one, mut other) = (store.open(&session("s")?)?, store.open(&session("s")?)?);
    one.lock()?;
    append_events(one.as_mut(), "s", 1)?;
    one.unlock();
    let mut head = None;
    // Each handle appends in turn, and the other one finds the record.
    for seq in 2..8_u64 {
        let (writer, reader) =
            if seq % 2 == 0 { (&mut other, &mut one) } else { (&mut one, &mut other) };
        let name = format!("e{seq}");
        writer.lock()?;
        let seen = writer.head()?.map(|head| head.seq);
        check_equal("the head of the other handle", &seen, &Some(seq - 1))?;
        head = Some(append(writer.as_mut(), &[body(seq, &event("s", Some(&name))?, None)?])?);
        writer.unlock();
        reader.lock()?;
        check_equal("the head", &reader.head()?, &head)?;
        check_equal("the event", &record_number(reader.find_event(&id(&name)?)?)?, &Some(seq))?;
        reader.unlock();
    }
    one.lock()?;
    let mut verifier = Verifier::new(head);
    for line in read_lines(one.as_mut(), 0)? {
        verifier.check_line(&line);
    }
    one.unlock();
    check_equal("the findings of a check", &verifier.finish(0).findings, &Vec::new())
}

fn a_log_outlives_its_handle(store: &dyn Store) -> Result<(), BrokenClause> {
    let mut log = open_locked(store, "s")?;
    let heads = append_events(log.as_mut(), "s", 3)?;
    let all = read_lines(log.as_mut(), 0)?;
    // Dropped without `unlock`, as after a panic.
    drop(log);
    let mut log = open_locked(store, "s")?;
    check_equal("the head", &log.head()?, &heads.last().copied())?;
    check_equal("the lines read", &read_lines(log.as_mut(), 0)?, &all)?;
    check_equal("the number of repaired bytes", &log.take_repaired_bytes(), &None)
}

fn sessions_are_separate(store: &dyn Store) -> Result<(), BrokenClause> {
    // Names that a careless store would treat as equal, or as a path out of its directory.
    let names = ["s", "S", "s/1", "s/../s", "..", "s\0"];
    for (count, name) in (1..).zip(names) {
        let mut log = open_locked(store, name)?;
        check_equal("the head of a new session", &log.head()?, &None)?;
        append(log.as_mut(), &[opened("s")?])?;
        for seq in 1..=count {
            append(log.as_mut(), &[body(seq, &event("s", Some(&format!("e{seq}")))?, None)?])?;
        }
        let head = log.head()?.ok_or_else(|| BrokenClause("there is no head".to_owned()))?;
        log.save_state(&head, name.as_bytes())?;
        log.unlock();
    }
    for (count, name) in (1_u64..).zip(names) {
        let mut log = open_locked(store, name)?;
        check_equal("the last record", &log.head()?.map(|head| head.seq), &Some(count))?;
        let state = log.load_state()?.map(|(_, state)| state);
        check_equal("the state", &state, &Some(name.as_bytes().to_vec()))?;
        let other = format!("e{}", count + 1);
        check_equal("an event of another session", &log.find_event(&id(&other)?)?, &None)?;
        log.unlock();
    }
    Ok(())
}

fn an_event_is_found_by_its_id(store: &dyn Store) -> Result<(), BrokenClause> {
    let mut log = open_locked(store, "s")?;
    append_events(log.as_mut(), "s", 3)?;
    append(log.as_mut(), &[body(4, &event("s", None)?, None)?])?;
    for seq in 1..=3 {
        check_equal(
            "the event",
            &record_number(log.find_event(&id(&format!("e{seq}"))?)?)?,
            &Some(seq),
        )?;
    }
    for unknown in ["e4", "e", "E1", "s"] {
        check_equal("an unknown event", &log.find_event(&id(unknown)?)?, &None)?;
    }
    Ok(())
}

fn the_first_event_of_an_id_stays(store: &dyn Store) -> Result<(), BrokenClause> {
    let mut log = open_locked(store, "s")?;
    append_events(log.as_mut(), "s", 2)?;
    append(log.as_mut(), &[body(3, &event("s", Some("e1"))?, None)?])?;
    check_equal("the event", &record_number(log.find_event(&id("e1")?)?)?, &Some(1))
}

fn many_ids_are_all_found(store: &dyn Store) -> Result<(), BrokenClause> {
    const MANY: u64 = 3000;
    let mut log = open_locked(store, "s")?;
    let mut bodies = vec![opened("s")?];
    for seq in 1..=MANY {
        bodies.push(body(seq, &event("s", Some(&format!("e{seq}")))?, None)?);
    }
    append(log.as_mut(), &bodies)?;
    for seq in 1..=MANY {
        check_equal(
            "the event",
            &record_number(log.find_event(&id(&format!("e{seq}"))?)?)?,
            &Some(seq),
        )?;
    }
    check_equal("an unknown event", &log.find_event(&id("e0")?)?, &None)
}

fn the_latest_state_is_stored(store: &dyn Store) -> Result<(), BrokenClause> {
    let mut log = open_locked(store, "s")?;
    let heads = append_events(log.as_mut(), "s", 4)?;
    let mut length = 10;
    for head in &heads {
        let state = vec![b'x'; length];
        log.save_state(head, &state)?;
        check_equal("the state", &log.load_state()?, &Some((*head, state)))?;
        length = (length * 37) % 9000;
    }
    drop(log);
    // Loading the state needs no lock.
    let state = store.open(&session("s")?)?.load_state()?;
    check_equal("the head of the state", &state.map(|(head, _)| head), &heads.last().copied())
}

fn the_latest_snapshot_is_found(store: &dyn Store) -> Result<(), BrokenClause> {
    let mut log = open_locked(store, "s")?;
    let heads = append_events(log.as_mut(), "s", 2)?;
    check_equal("the latest snapshot", &log.latest_snapshot()?, &None)?;
    // Text in an event must not count as a snapshot.
    let decoy = br#"{"session":"s","event":"stop_proposed","meta":{"a":1,"snapshot":"00"}}"#;
    let decoy = wire::parse_line(decoy, None).map_err(suite_error)?;
    let after = append(log.as_mut(), &[body(3, &decoy, None)?])?;
    check_equal("the latest snapshot", &log.latest_snapshot()?, &None)?;
    append(log.as_mut(), &[body(4, &event("s", None)?, Some(b"one"))?])?;
    check_equal("the latest snapshot", &log.latest_snapshot()?, &Some(after.seq + 1))?;
    let before = append(log.as_mut(), &[body(5, &decoy, None)?])?;
    append(log.as_mut(), &[body(6, &event("s", None)?, Some(b"two"))?])?;
    append(log.as_mut(), &[body(7, &decoy, None)?])?;
    check_equal("the latest snapshot", &log.latest_snapshot()?, &Some(before.seq + 1))?;
    let found = read_lines(log.as_mut(), before.seq + 1)?.into_iter().next();
    let found = found.ok_or_else(|| BrokenClause("no line begins at the snapshot".to_owned()))?;
    match parse_record(&found).map_err(StoreError::from)? {
        JournalLine::Event(record) => {
            check_equal("the snapshot", &record.snapshot, &Some(snapshot(b"two")))?;
        }
        JournalLine::Opened(_) => return Err(BrokenClause("the record is the opening".to_owned())),
    }
    check_equal("the number of heads", &heads.len(), &3)
}

fn a_payload_is_stored_once(store: &dyn Store) -> Result<(), BrokenClause> {
    let blob = |bytes: &[u8]| Blob { sha256: Digest::of(bytes), bytes: bytes.to_vec() };
    let (one, two, never) = (blob(b"one"), blob(b""), blob(b"never"));
    store.put_blobs(&[])?;
    store.put_blobs(&[one.clone(), two.clone(), one.clone()])?;
    store.put_blobs(std::slice::from_ref(&one))?;
    check_equal("a payload", &store.blob(&one.sha256)?, &Some(one.bytes))?;
    check_equal("an empty payload", &store.blob(&two.sha256)?, &Some(Vec::new()))?;
    check_equal("an unknown payload", &store.blob(&never.sha256)?, &None)
}
