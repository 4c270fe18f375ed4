//! What a person says from outside: the guard is off for a while, one call may
//! pass.

use std::sync::Arc;

use jackline_engine::wire::parse_recorded;
use jackline_engine::{FaultKind, SessionPhase};
use jackline_host::{Off, Switch};
use jackline_journal::Note;
use jackline_runtime::Outcome;
use jackline_runtime::asks::{AskError, ask_code, find_ask, pending};
use serde_json::{Value, json};

use crate::meddling::{How, Meddler, Meddling};
use crate::support::{World, send};

const ASKS: &str = "version: 1
rules:
  - { name: ask-ship, command: ship, ask: A person decides., examples: { ask: [ship] } }
";

fn ship(call: &str, target: &str) -> String {
    format!(
        r#"{{"event":"tool_proposed","call":"{call}","tool":"Bash","args":{{"command":"ship {target}"}}}}"#
    )
}

fn switch(world: &World) -> Switch {
    Switch::of(Some(world.store.home()))
}

#[test]
fn while_it_is_off_everything_is_written_down_and_nothing_holds() {
    let world = World::new("version: 1\nlimits: { steps: 1 }\n");
    let mut runtime = world.runtime();
    let off = Off::lasting(60_000, "dana", "a migration", Some(&world.workspace()));
    switch(&world).off(&off).unwrap();
    for call in ["c1", "c2", "c3"] {
        let line = format!(
            r#"{{"event":"tool_proposed","call":"{call}","tool":"Write","args":{{"file_path":"jackline.yaml","content":"x"}}}}"#
        );
        let verdict = send(&mut runtime, &line);
        assert_eq!(verdict["enforced"], false, "{verdict}");
        assert_eq!(verdict["context"], Value::Null);
    }
    assert_eq!(world.summary("s").phase, SessionPhase::Running, "no stop was reached");
    let facts = &world.records("s")[0].facts;
    assert_eq!(facts.off.as_ref().unwrap().why, "a migration");

    switch(&world).on(None).unwrap();
    let verdict = send(&mut runtime, &ship("c4", "x"));
    assert_eq!((&verdict["decision"], &verdict["enforced"]), (&json!("stop"), &json!(true)));
    world.prove("s");
}

#[test]
fn another_workspace_is_not_off() {
    let world = World::new("version: 1\nlimits: { steps: 0 }\n");
    let other = tempfile::tempdir().unwrap();
    let off = Off::lasting(60_000, "dana", "why", Some(other.path()));
    switch(&world).off(&off).unwrap();
    assert_eq!(send(&mut world.runtime(), &ship("c1", "x"))["enforced"], true);
}

#[test]
fn a_fault_while_it_is_off_is_no_denial_and_is_noted() {
    let world = World::new("");
    let meddler = Arc::new(Meddler::default());
    let store = Meddling { inner: world.store.clone(), meddler: Arc::clone(&meddler) };
    let mut runtime = world.runtime_on(store);
    switch(&world).off(&Off::lasting(60_000, "dana", "full disk", None)).unwrap();
    *meddler.next.lock().unwrap() = Some(How::Fails(28));
    let verdict = send(&mut runtime, &ship("c1", "x"));
    assert_eq!(verdict["decision"], "allow");
    assert_eq!(verdict["violations"][0]["type"], "guard_fault");
    assert_eq!(verdict["violations"][0]["enforced"], false);
    assert_eq!((&verdict["error"], &verdict["context"]), (&Value::Null, &Value::Null));
    send(&mut runtime, r#"{"event":"stop_proposed"}"#);
    let notes = world.records("s")[0].notes.clone();
    assert!(
        matches!(&notes[..], [Note::Fault { kind, .. }] if *kind == FaultKind::StoreFull),
        "{notes:?}"
    );

    switch(&world).on(None).unwrap();
    *meddler.next.lock().unwrap() = Some(How::Fails(28));
    assert_eq!(send(&mut runtime, &ship("c2", "x"))["decision"], "deny");
    world.prove("s");
}

#[test]
fn what_was_asked_is_found_by_each_of_its_codes() {
    let world = World::new(ASKS);
    let mut runtime = world.runtime();
    assert_eq!(send(&mut runtime, &ship("c1", "a"))["decision"], "ask");
    assert_eq!(send(&mut runtime, &ship("c2", "b"))["decision"], "ask");
    assert_eq!(send(&mut runtime, &ship("c3", "a"))["decision"], "ask");
    let session = world.records("s")[0].event.session.clone();

    let asking = pending(&world.store).unwrap();
    let listed: Vec<(u64, &str)> =
        asking.asked.iter().map(|asked| (asked.waiting.seq, asked.waiting.does.as_str())).collect();
    assert_eq!(listed, [(3, "ship a"), (2, "ship b")]);
    assert!(asking.asked[0].waiting.why.starts_with("A person decides."));
    for seq in [1, 3] {
        let asked = find_ask(&world.store, &ask_code(&session, seq)).unwrap();
        assert_eq!(asked.waiting.seq, 3, "asked in {seq}");
        assert_eq!(asked.session, session);
    }

    let grant = r#"{"event":"control","action":"grant","ask":1,"by":"dana"}"#;
    assert_eq!(send(&mut runtime, grant)["decision"], "allow");
    let gone = find_ask(&world.store, &ask_code(&session, 3));
    assert!(matches!(gone, Err(AskError::Unknown(_))), "{gone:?}");
    assert_eq!(send(&mut runtime, &ship("c4", "b"))["decision"], "ask", "the other one waits");
    assert_eq!(send(&mut runtime, &ship("c5", "a"))["decision"], "allow");
    assert!(matches!(find_ask(&world.store, "ship a"), Err(AskError::NoCode(_))));
    world.prove("s");
}

#[test]
fn a_session_that_was_stopped_asks_nobody() {
    let world = World::new(ASKS);
    let mut runtime = world.runtime();
    send(&mut runtime, &ship("c1", "a"));
    assert_eq!(pending(&world.store).unwrap().asked.len(), 1);
    send(&mut runtime, r#"{"event":"control","action":"stop"}"#);
    assert_eq!(pending(&world.store).unwrap().asked, []);
}

#[test]
fn a_session_that_cannot_be_read_does_not_hide_the_others() {
    let world = World::new(ASKS);
    let mut runtime = world.runtime();
    send(&mut runtime, &ship("c1", "a"));
    let other = ship("c1", "a").replace('{', r#"{"session":"t","#).replacen(
        r#"args":{"session":"t","#,
        r#"args":{"#,
        1,
    );
    send(&mut runtime, &other);
    std::fs::write(world.journal("t"), "no journal\n").unwrap();
    let asking = pending(&world.store).unwrap();
    assert_eq!((asking.asked.len(), asking.unreadable.len()), (1, 1));
}

/// A program that embeds the runtime makes its events itself.
#[test]
fn an_event_that_no_line_could_be_is_refused_and_nothing_is_written() {
    let world = World::new("");
    let mut runtime = world.runtime();
    let said = |why: &str| {
        let event = json!({"session": "s", "event": "control", "action": "pause", "why": why});
        parse_recorded(event).unwrap()
    };
    let answer = runtime.answer_safely(said(&"x".repeat(16_385)));
    assert_eq!(answer.outcome, Outcome::Refused);
    let verdict: Value = serde_json::from_str(&answer.json).unwrap();
    assert_eq!(
        verdict["error"]["reason"],
        "invalid event: `why` must be at most 16384 bytes long, not 16385 bytes; nothing was written"
    );
    assert!(!world.directory("s").exists());
    // Redaction makes it longer than a line may say, and it is read all the same.
    let secrets = "password=abc1def2 ".repeat(900);
    let answer = runtime.answer_safely(said(&secrets));
    assert_eq!(answer.outcome, Outcome::Decided);
    assert_eq!(world.records("s").len(), 1);
    world.prove("s");
}
