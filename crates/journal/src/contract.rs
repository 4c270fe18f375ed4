//! What every store must do: the suite that says whether something is a store.
//!
//! A store that passes keeps the promises the runtime rests on. The suite is
//! library code, so that stores of other crates run it too; it names the
//! clause that is broken instead of panicking.

use std::sync::Arc;

use jackline_engine::definition::StoredDefinition;
use jackline_engine::observe::Blob;
use jackline_engine::{
    Decision, Definition, Digest, Event, EventId, Facts, Now, SessionId, Timestamp, Verdict, wire,
};
use serde_json::value::{RawValue, to_raw_value};

use crate::chain::check_line;
use crate::error::StoreError;
use crate::head::Head;
use crate::record::{
    Body, Line, Note, Opened, OpenedDefinition, ReloadedDefinition, Snapshot, parse_record,
};
use crate::session_entry::SessionFilter;
use crate::verify::Verifier;
use crate::{Log, Reading, Store};

/// Makes an empty store.
pub type Make<'a> = &'a dyn Fn() -> Box<dyn Store>;

/// One clause: what must hold, and what shows that it does.
type Clause = (&'static str, fn(&dyn Store) -> Result<(), Broken>);

const CLAUSES: &[Clause] = &[
    ("an empty log has nothing", an_empty_log_has_nothing),
    ("an append moves the head", an_append_moves_the_head),
    ("records are chained by their hashes", records_are_chained),
    ("several records are appended as one", several_records_are_appended_as_one),
    ("reading begins at a record", reading_begins_at_a_record),
    ("reading ends where the reader says", reading_ends_early),
    ("the first line stays the first", the_first_line_stays),
    ("two handles see each other's records", two_handles_see_each_other),
    ("a log outlives its handle", a_log_outlives_its_handle),
    ("sessions are separate", sessions_are_separate),
    ("an event is found by its id", an_event_is_found_by_its_id),
    ("the first event of an id stays", the_first_event_of_an_id_stays),
    ("many ids are all found", many_ids_are_all_found),
    ("the latest state is kept", the_latest_state_is_kept),
    ("a journal is listed and viewed", a_journal_is_listed_and_viewed),
    ("a definition is kept with its journal", a_definition_is_kept_with_its_journal),
    ("an append behind another head is refused", an_append_behind_another_head_is_refused),
    ("the latest snapshot is found", the_latest_snapshot_is_found),
    ("a payload is kept once", a_payload_is_kept_once),
];

/// Runs every clause, each on a store of its own, and names those that are
/// broken, one a line.
pub fn run(make: Make<'_>) -> Result<(), String> {
    let broken: Vec<String> = CLAUSES
        .iter()
        .filter_map(|(name, clause)| {
            clause(make().as_ref()).err().map(|Broken(how)| format!("broken: {name}: {how}"))
        })
        .collect();
    if broken.is_empty() { Ok(()) } else { Err(broken.join("\n")) }
}

/// How a clause is broken.
struct Broken(String);

impl From<StoreError> for Broken {
    fn from(error: StoreError) -> Self {
        Self(error.to_string())
    }
}

/// Compares what is there with what must be.
fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, expected: &T) -> Result<(), Broken> {
    if found == expected {
        return Ok(());
    }
    Err(Broken(format!("{what} is {found:?} and must be {expected:?}")))
}

fn impossible(error: impl std::fmt::Display) -> Broken {
    Broken(format!("the suite itself is broken: {error}"))
}

fn session(name: &str) -> Result<SessionId, Broken> {
    SessionId::parse(name).map_err(impossible)
}

fn id(name: &str) -> Result<EventId, Broken> {
    EventId::parse(name).map_err(impossible)
}

/// Opens the log of a session and takes it.
fn locked(store: &dyn Store, name: &str) -> Result<Box<dyn Log>, Broken> {
    let mut log = store.open(&session(name)?)?;
    log.lock()?;
    Ok(log)
}

fn opened(name: &str) -> Result<Body, Broken> {
    Ok(Body::opened(&Opened {
        session: session(name)?,
        at: Timestamp::from_ms(1),
        place: jackline_engine::Place::default(),
        definition: definition("a/b"),
    }))
}

fn definition(name: &str) -> OpenedDefinition {
    let definition = Definition { name: name.to_owned(), ..Definition::default() };
    let lowered = StoredDefinition::new(Arc::new(definition));
    OpenedDefinition { checksum: Digest::of(name.as_bytes()), lowered }
}

fn event(name: &str, id: Option<&str>) -> Result<Event, Broken> {
    let id = id.map_or_else(String::new, |id| format!(r#","id":"{id}""#));
    let line = format!(r#"{{"session":"{name}","event":"stop_proposed"{id}}}"#);
    wire::parse_line(line.as_bytes(), None).map_err(impossible)
}

fn verdict(seq: u64) -> Result<Box<RawValue>, Broken> {
    let verdict = Verdict { seq: Some(seq), decision: Decision::Allow, ..Verdict::allow() };
    to_raw_value(&verdict).map_err(impossible)
}

fn body(seq: u64, event: &Event, state: Option<&[u8]>) -> Result<Body, Broken> {
    let facts = Facts::at(Now::wall(Timestamp::from_ms(1)));
    let notes: &[Note] = &[];
    let snapshot = state.map(snapshot);
    Ok(Body::event(seq, event, &facts, verdict(seq)?.as_ref(), notes, snapshot.as_ref()))
}

fn snapshot(state: &[u8]) -> Snapshot {
    let place = jackline_engine::Place::default();
    let reloaded = Some(ReloadedDefinition { place, definition: definition("c/d") });
    Snapshot { state: state.to_vec(), reloaded }
}

/// Appends an opening and `count` events, each with the id `e` and its number,
/// one at a time; gives the heads.
fn fill(log: &mut dyn Log, name: &str, count: u64) -> Result<Vec<Head>, Broken> {
    let mut heads = vec![append(log, &[opened(name)?])?];
    for seq in 1..=count {
        let event = event(name, Some(&format!("e{seq}")))?;
        heads.push(append(log, &[body(seq, &event, None)?])?);
    }
    Ok(heads)
}

/// Appends where the journal ends.
fn append(log: &mut dyn Log, bodies: &[Body]) -> Result<Head, Broken> {
    let end = log.head()?;
    Ok(log.append(end, bodies)?)
}

fn lines(log: &mut dyn Log, from: u64) -> Result<Vec<Vec<u8>>, Broken> {
    let mut lines = Vec::new();
    log.read(from, &mut |line| {
        lines.push(line.to_vec());
        Ok(())
    })?;
    Ok(lines)
}

/// The number of the record in a line, with its hash checked.
fn number(line: Option<Vec<u8>>) -> Result<Option<u64>, Broken> {
    let Some(line) = line else { return Ok(None) };
    check_line(&line).map_err(|fault| Broken(fault.to_string()))?;
    match parse_record(&line).map_err(StoreError::from)? {
        Line::Opened(_) => Ok(Some(0)),
        Line::Event(record) => Ok(Some(record.seq)),
    }
}

fn an_empty_log_has_nothing(store: &dyn Store) -> Result<(), Broken> {
    let mut log = locked(store, "s")?;
    same("the head", &log.head()?, &None)?;
    same("what was repaired", &log.take_repaired(), &None)?;
    same("the state", &log.load_state()?, &None)?;
    same("the first line", &log.first_record()?, &None)?;
    same("the latest snapshot", &log.latest_snapshot()?, &None)?;
    same("an event", &log.find(&id("e1")?)?, &None)?;
    same("what is read", &lines(log.as_mut(), 0)?, &Vec::new())
}

fn an_append_moves_the_head(store: &dyn Store) -> Result<(), Broken> {
    let mut log = locked(store, "s")?;
    let first = append(log.as_mut(), &[opened("s")?])?;
    same("the head", &log.head()?, &Some(first))?;
    same("its number", &first.seq, &0)?;
    let second = append(log.as_mut(), &[body(1, &event("s", None)?, None)?])?;
    same("the head", &log.head()?, &Some(second))?;
    same("its number", &second.seq, &1)?;
    same("the number of lines", &lines(log.as_mut(), 0)?.len(), &2)
}

fn records_are_chained(store: &dyn Store) -> Result<(), Broken> {
    let mut log = locked(store, "s")?;
    let heads = fill(log.as_mut(), "s", 5)?;
    let mut prev = Digest::ZERO;
    let mut verifier = Verifier::new(heads.last().copied());
    let lines = lines(log.as_mut(), 0)?;
    same("the number of lines", &lines.len(), &heads.len())?;
    for (line, head) in lines.iter().zip(&heads) {
        let sealed = check_line(line).map_err(|fault| Broken(fault.to_string()))?;
        same("the hash before", &sealed.prev, &prev)?;
        same("the hash", &sealed.hash, &head.hash)?;
        prev = sealed.hash;
        verifier.line(line);
    }
    same("what a check finds", &verifier.finish(0).findings, &Vec::new())
}

fn several_records_are_appended_as_one(store: &dyn Store) -> Result<(), Broken> {
    let mut log = locked(store, "s")?;
    let events = [event("s", Some("a"))?, event("s", Some("b"))?];
    let [first, second] = &events;
    let head =
        append(log.as_mut(), &[opened("s")?, body(1, first, None)?, body(2, second, None)?])?;
    same("the head", &log.head()?, &Some(head))?;
    same("its number", &head.seq, &2)?;
    same("the number of lines", &lines(log.as_mut(), 0)?.len(), &3)?;
    same("the event `a`", &number(log.find(&id("a")?)?)?, &Some(1))?;
    same("the event `b`", &number(log.find(&id("b")?)?)?, &Some(2))
}

fn reading_begins_at_a_record(store: &dyn Store) -> Result<(), Broken> {
    let mut log = locked(store, "s")?;
    let heads = fill(log.as_mut(), "s", 4)?;
    let all = lines(log.as_mut(), 0)?;
    for (passed, head) in heads.iter().enumerate() {
        let rest = all.get(passed + 1..).unwrap_or(&[]).to_vec();
        same("what is read", &lines(log.as_mut(), head.seq + 1)?, &rest)?;
    }
    Ok(())
}

fn reading_ends_early(store: &dyn Store) -> Result<(), Broken> {
    let mut log = locked(store, "s")?;
    fill(log.as_mut(), "s", 4)?;
    let mut read = 0;
    let ended = log.read(0, &mut |_| {
        read += 1;
        if read == 2 { Err(StoreError::Busy { seconds: 77 }) } else { Ok(()) }
    });
    same("the number of lines", &read, &2)?;
    match ended {
        Err(StoreError::Busy { seconds: 77 }) => Ok(()),
        other => Err(Broken(format!("the reader's error became {other:?}"))),
    }
}

fn the_first_line_stays(store: &dyn Store) -> Result<(), Broken> {
    let mut log = locked(store, "s")?;
    fill(log.as_mut(), "s", 3)?;
    same("the first line", &log.first_record()?, &lines(log.as_mut(), 0)?.first().cloned())?;
    same("its number", &number(log.first_record()?)?, &Some(0))
}

fn a_journal_is_listed_and_viewed(store: &dyn Store) -> Result<(), Broken> {
    let everything = SessionFilter::default();
    same("an empty list", &store.list(&everything)?.len(), &0)?;
    same("an unknown session", &store.entry(&session("s")?)?.is_some(), &false)?;
    let mut log = locked(store, "s")?;
    log.keep_definition(&definition("a/b").lowered)?;
    let heads = fill(log.as_mut(), "s", 300)?;
    let middle = heads.get(150).copied().ok_or_else(|| Broken("no head 150".to_owned()))?;
    let last = heads.last().copied().ok_or_else(|| Broken("no head".to_owned()))?;
    log.save_state(&last, b"state")?;
    let all = lines(log.as_mut(), 0)?;
    log.unlock();

    let names: Vec<String> = store.list(&everything)?.into_iter().map(|it| it.name).collect();
    same("the list", &names, &vec!["s".to_owned()])?;
    let entry = store.entry(&session("s")?)?.ok_or_else(|| Broken("no entry".to_owned()))?;
    same("what it was opened with", &entry.opened()?.session, &session("s")?)?;
    for reading in [Reading::Consistent, Reading::Glance] {
        let view = store.view(&entry, reading)?;
        same("the saved head", &view.saved(), &Some(last))?;
        same("the saved state", &view.saved_state(), &Some((last, b"state".as_slice())))?;
        for seq in [0, 1, 150, 300] {
            same("a record", &number(view.record(seq)?)?, &Some(seq))?;
        }
        same("a record behind the end", &view.record(301)?, &None)?;
        let mut read = Vec::new();
        view.read_from(middle.seq + 1, |line| {
            read.push(line.to_vec());
            Ok::<(), StoreError>(())
        })?;
        same("the records from the middle on", &Some(read.as_slice()), &all.get(151..))?;
        let first = view.record(0)?.ok_or_else(|| Broken("no first record".to_owned()))?;
        match view.parse(&first)? {
            Line::Opened(opened) => {
                let name = opened.definition.lowered.definition().map(|it| it.name.clone());
                same("the definition", &name, &Some("a/b".to_owned()))?;
            }
            Line::Event(_) => return Err(Broken("the first record is an event".to_owned())),
        }
    }
    Ok(())
}

fn a_definition_is_kept_with_its_journal(store: &dyn Store) -> Result<(), Broken> {
    let (one, other) = (definition("a/b").lowered, definition("c/d").lowered);
    let mut log = locked(store, "s")?;
    match log.definitions().load(&one.digest()) {
        Err(StoreError::DefinitionMissing { digest }) => {
            same("the digest in the error", &digest, &one.digest())?;
        }
        found => return Err(Broken(format!("a definition that was never kept is {found:?}"))),
    }
    log.keep_definition(&one)?;
    log.keep_definition(&one)?;
    log.keep_definition(&other)?;
    fill(log.as_mut(), "s", 1)?;
    drop(log);
    let log = store.open(&session("s")?)?;
    for (definition, name) in [(one, "a/b"), (other, "c/d")] {
        same("its name", &log.definitions().load(&definition.digest())?.name.as_str(), &name)?;
    }
    Ok(())
}

fn an_append_behind_another_head_is_refused(store: &dyn Store) -> Result<(), Broken> {
    let mut log = locked(store, "s")?;
    let heads = fill(log.as_mut(), "s", 2)?;
    let third = body(3, &event("s", None)?, None)?;
    for expected in [None, heads.first().copied()] {
        match log.append(expected, std::slice::from_ref(&third)) {
            Err(StoreError::Moved) => {}
            other => return Err(Broken(format!("it is answered {other:?}"))),
        }
    }
    same("the head", &log.head()?, &heads.last().copied())?;
    same("the number of lines", &lines(log.as_mut(), 0)?.len(), &3)
}

fn two_handles_see_each_other(store: &dyn Store) -> Result<(), Broken> {
    let (mut one, mut other) = (store.open(&session("s")?)?, store.open(&session("s")?)?);
    one.lock()?;
    fill(one.as_mut(), "s", 1)?;
    one.unlock();
    let mut head = None;
    // Each appends in turn, and each finds what the other did.
    for seq in 2..8_u64 {
        let (writer, reader) =
            if seq % 2 == 0 { (&mut other, &mut one) } else { (&mut one, &mut other) };
        let name = format!("e{seq}");
        writer.lock()?;
        let seen = writer.head()?.map(|head| head.seq);
        same("the head the other left", &seen, &Some(seq - 1))?;
        head = Some(append(writer.as_mut(), &[body(seq, &event("s", Some(&name))?, None)?])?);
        writer.unlock();
        reader.lock()?;
        same("the head", &reader.head()?, &head)?;
        same("the event", &number(reader.find(&id(&name)?)?)?, &Some(seq))?;
        reader.unlock();
    }
    one.lock()?;
    let mut verifier = Verifier::new(head);
    for line in lines(one.as_mut(), 0)? {
        verifier.line(&line);
    }
    one.unlock();
    same("what a check finds", &verifier.finish(0).findings, &Vec::new())
}

fn a_log_outlives_its_handle(store: &dyn Store) -> Result<(), Broken> {
    let mut log = locked(store, "s")?;
    let heads = fill(log.as_mut(), "s", 3)?;
    let all = lines(log.as_mut(), 0)?;
    // Dropped without `unlock`, as after a panic.
    drop(log);
    let mut log = locked(store, "s")?;
    same("the head", &log.head()?, &heads.last().copied())?;
    same("what is read", &lines(log.as_mut(), 0)?, &all)?;
    same("what was repaired", &log.take_repaired(), &None)
}

fn sessions_are_separate(store: &dyn Store) -> Result<(), Broken> {
    // Two names that a careless store would take for one, or for a way out.
    let names = ["s", "S", "s/1", "s/../s", "..", "s\0"];
    for (count, name) in (1..).zip(names) {
        let mut log = locked(store, name)?;
        same("the head of a new session", &log.head()?, &None)?;
        append(log.as_mut(), &[opened("s")?])?;
        for seq in 1..=count {
            append(log.as_mut(), &[body(seq, &event("s", Some(&format!("e{seq}")))?, None)?])?;
        }
        let head = log.head()?.ok_or_else(|| Broken("there is no head".to_owned()))?;
        log.save_state(&head, name.as_bytes())?;
        log.unlock();
    }
    for (count, name) in (1_u64..).zip(names) {
        let mut log = locked(store, name)?;
        same("the last record", &log.head()?.map(|head| head.seq), &Some(count))?;
        let state = log.load_state()?.map(|(_, state)| state);
        same("the state", &state, &Some(name.as_bytes().to_vec()))?;
        let other = format!("e{}", count + 1);
        same("an event of another session", &log.find(&id(&other)?)?, &None)?;
        log.unlock();
    }
    Ok(())
}

fn an_event_is_found_by_its_id(store: &dyn Store) -> Result<(), Broken> {
    let mut log = locked(store, "s")?;
    fill(log.as_mut(), "s", 3)?;
    append(log.as_mut(), &[body(4, &event("s", None)?, None)?])?;
    for seq in 1..=3 {
        same("the event", &number(log.find(&id(&format!("e{seq}"))?)?)?, &Some(seq))?;
    }
    for unknown in ["e4", "e", "E1", "s"] {
        same("an unknown event", &log.find(&id(unknown)?)?, &None)?;
    }
    Ok(())
}

fn the_first_event_of_an_id_stays(store: &dyn Store) -> Result<(), Broken> {
    let mut log = locked(store, "s")?;
    fill(log.as_mut(), "s", 2)?;
    append(log.as_mut(), &[body(3, &event("s", Some("e1"))?, None)?])?;
    same("the event", &number(log.find(&id("e1")?)?)?, &Some(1))
}

fn many_ids_are_all_found(store: &dyn Store) -> Result<(), Broken> {
    const MANY: u64 = 3000;
    let mut log = locked(store, "s")?;
    let mut bodies = vec![opened("s")?];
    for seq in 1..=MANY {
        bodies.push(body(seq, &event("s", Some(&format!("e{seq}")))?, None)?);
    }
    append(log.as_mut(), &bodies)?;
    for seq in 1..=MANY {
        same("the event", &number(log.find(&id(&format!("e{seq}"))?)?)?, &Some(seq))?;
    }
    same("an unknown event", &log.find(&id("e0")?)?, &None)
}

fn the_latest_state_is_kept(store: &dyn Store) -> Result<(), Broken> {
    let mut log = locked(store, "s")?;
    let heads = fill(log.as_mut(), "s", 4)?;
    let mut length = 10;
    for head in &heads {
        let state = vec![b'x'; length];
        log.save_state(head, &state)?;
        same("the state", &log.load_state()?, &Some((*head, state)))?;
        length = (length * 37) % 9000;
    }
    drop(log);
    // Looking at it needs no lock.
    let state = store.open(&session("s")?)?.load_state()?;
    same("the head of the state", &state.map(|(head, _)| head), &heads.last().copied())
}

fn the_latest_snapshot_is_found(store: &dyn Store) -> Result<(), Broken> {
    let mut log = locked(store, "s")?;
    let heads = fill(log.as_mut(), "s", 2)?;
    same("the latest snapshot", &log.latest_snapshot()?, &None)?;
    // Words in an event are no snapshot.
    let decoy = br#"{"session":"s","event":"stop_proposed","meta":{"a":1,"snapshot":"00"}}"#;
    let decoy = wire::parse_line(decoy, None).map_err(impossible)?;
    let after = append(log.as_mut(), &[body(3, &decoy, None)?])?;
    same("the latest snapshot", &log.latest_snapshot()?, &None)?;
    append(log.as_mut(), &[body(4, &event("s", None)?, Some(b"one"))?])?;
    same("the latest snapshot", &log.latest_snapshot()?, &Some(after.seq + 1))?;
    let before = append(log.as_mut(), &[body(5, &decoy, None)?])?;
    append(log.as_mut(), &[body(6, &event("s", None)?, Some(b"two"))?])?;
    append(log.as_mut(), &[body(7, &decoy, None)?])?;
    same("the latest snapshot", &log.latest_snapshot()?, &Some(before.seq + 1))?;
    let found = lines(log.as_mut(), before.seq + 1)?.into_iter().next();
    let found = found.ok_or_else(|| Broken("it begins no line".to_owned()))?;
    match parse_record(&found).map_err(StoreError::from)? {
        Line::Event(record) => same("it", &record.snapshot, &Some(snapshot(b"two")))?,
        Line::Opened(_) => return Err(Broken("it is the opening".to_owned())),
    }
    same("the number of heads", &heads.len(), &3)
}

fn a_payload_is_kept_once(store: &dyn Store) -> Result<(), Broken> {
    let blob = |bytes: &[u8]| Blob { sha256: Digest::of(bytes), bytes: bytes.to_vec() };
    let (one, two, never) = (blob(b"one"), blob(b""), blob(b"never"));
    store.put_blobs(&[])?;
    store.put_blobs(&[one.clone(), two.clone(), one.clone()])?;
    store.put_blobs(std::slice::from_ref(&one))?;
    same("a payload", &store.blob(&one.sha256)?, &Some(one.bytes))?;
    same("an empty payload", &store.blob(&two.sha256)?, &Some(Vec::new()))?;
    same("an unknown payload", &store.blob(&never.sha256)?, &None)
}
