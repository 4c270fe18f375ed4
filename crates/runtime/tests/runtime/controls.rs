//! A person's controls from outside: the guard is off for a while, or one call is allowed.

use std::sync::Arc;

use jackline_engine::wire::parse_recorded;
use jackline_engine::{FaultKind, SessionPhase};
use jackline_host::{OffPeriod, OffSwitch};
use jackline_journal::JournalNote;
use jackline_runtime::AnswerKind;
use jackline_runtime::open_questions::{
    QuestionError, approval_code, find_question, list_open_questions,
};
use serde_json::{Value, json};

use crate::disturbed_store::{AppendFailure, Disturbances, DisturbedStore};
use crate::support::{RuntimeTest, send};

const ASKS: &str = "version: 1
rules:
  - { name: ask-ship, command: ship, ask: A person decides., examples: { ask: [ship] } }
";

fn ship(call: &str, target: &str) -> String {
    format!(
        r#"{{"event":"tool_proposed","call":"{call}","tool":"Bash","args":{{"command":"ship {target}"}}}}"#
    )
}

fn switch(world: &RuntimeTest) -> OffSwitch {
    OffSwitch::for_state_home(Some(world.store.home()))
}

#[test]
fn while_the_guard_is_off_events_are_recorded_and_not_enforced() {
    let world = RuntimeTest::new("version: 1\nlimits: { steps: 1 }\n");
    let mut runtime = world.runtime();
    let off = OffPeriod::starting_now(60_000, "dana", "a migration", Some(&world.workspace()));
    switch(&world).turn_off(&off).unwrap();
    for call in ["c1", "c2", "c3"] {
        let line = format!(
            r#"{{"event":"tool_proposed","call":"{call}","tool":"Write","args":{{"file_path":"jackline.yaml","content":"x"}}}}"#
        );
        let verdict = send(&mut runtime, &line);
        assert_eq!(verdict["enforced"], false, "{verdict}");
        assert_eq!(verdict["context"], Value::Null);
    }
    assert_eq!(world.summary("s").phase, SessionPhase::Running, "the session is not stopped");
    let facts = &world.records("s")[0].facts;
    assert_eq!(facts.off.as_ref().unwrap().why, "a migration");

    switch(&world).turn_on(None).unwrap();
    let verdict = send(&mut runtime, &ship("c4", "x"));
    assert_eq!((&verdict["decision"], &verdict["enforced"]), (&json!("stop"), &json!(true)));
    world.prove("s");
}

#[test]
fn turning_the_guard_off_affects_one_workspace() {
    let world = RuntimeTest::new("version: 1\nlimits: { steps: 0 }\n");
    let other = tempfile::tempdir().unwrap();
    let off = OffPeriod::starting_now(60_000, "dana", "why", Some(other.path()));
    switch(&world).turn_off(&off).unwrap();
    assert_eq!(send(&mut world.runtime(), &ship("c1", "x"))["enforced"], true);
}

#[test]
fn a_fault_while_the_guard_is_off_is_noted_and_not_denied() {
    let world = RuntimeTest::new("");
    let meddler = Arc::new(Disturbances::default());
    let store = DisturbedStore { inner: world.store.clone(), disturbances: Arc::clone(&meddler) };
    let mut runtime = world.runtime_on(store);
    switch(&world).turn_off(&OffPeriod::starting_now(60_000, "dana", "full disk", None)).unwrap();
    *meddler.next_append.lock().unwrap() = Some(AppendFailure::Fails(28));
    let verdict = send(&mut runtime, &ship("c1", "x"));
    assert_eq!(verdict["decision"], "allow");
    assert_eq!(verdict["violations"][0]["type"], "guard_fault");
    assert_eq!(verdict["violations"][0]["enforced"], false);
    assert_eq!((&verdict["error"], &verdict["context"]), (&Value::Null, &Value::Null));
    send(&mut runtime, r#"{"event":"stop_proposed"}"#);
    let notes = world.records("s")[0].notes.clone();
    assert!(
        matches!(&notes[..], [JournalNote::Fault { kind, .. }] if *kind == FaultKind::StoreFull),
        "{notes:?}"
    );

    switch(&world).turn_on(None).unwrap();
    *meddler.next_append.lock().unwrap() = Some(AppendFailure::Fails(28));
    assert_eq!(send(&mut runtime, &ship("c2", "x"))["decision"], "deny");
    world.prove("s");
}

#[test]
fn a_question_is_found_by_each_of_its_codes() {
    let world = RuntimeTest::new(ASKS);
    let mut runtime = world.runtime();
    assert_eq!(send(&mut runtime, &ship("c1", "a"))["decision"], "ask");
    assert_eq!(send(&mut runtime, &ship("c2", "b"))["decision"], "ask");
    assert_eq!(send(&mut runtime, &ship("c3", "a"))["decision"], "ask");
    let session = world.records("s")[0].event.session.clone();

    let pending_questions = list_open_questions(&world.store, None).unwrap();
    let listed: Vec<(u64, &str)> = pending_questions
        .open
        .iter()
        .map(|question| (question.waiting.seq, question.waiting.does.as_str()))
        .collect();
    assert_eq!(listed, [(3, "ship a"), (2, "ship b")]);
    assert!(pending_questions.open[0].waiting.why.starts_with("A person decides."));
    for seq in [1, 3] {
        let question = find_question(&world.store, &approval_code(&session, seq)).unwrap();
        assert_eq!(question.waiting.seq, 3, "code of record {seq}");
        assert_eq!(question.session, session);
    }

    let grant = r#"{"event":"control","action":"grant","ask":1,"by":"dana"}"#;
    assert_eq!(send(&mut runtime, grant)["decision"], "allow");
    let answered = find_question(&world.store, &approval_code(&session, 3));
    assert!(matches!(answered, Err(QuestionError::UnknownCode(_))), "{answered:?}");
    assert_eq!(send(&mut runtime, &ship("c4", "b"))["decision"], "ask", "the other question waits");
    assert_eq!(send(&mut runtime, &ship("c5", "a"))["decision"], "allow");
    assert!(matches!(find_question(&world.store, "ship a"), Err(QuestionError::InvalidCode(_))));
    world.prove("s");
}

#[test]
fn a_stopped_session_has_no_open_questions() {
    let world = RuntimeTest::new(ASKS);
    let mut runtime = world.runtime();
    send(&mut runtime, &ship("c1", "a"));
    assert_eq!(list_open_questions(&world.store, None).unwrap().open.len(), 1);
    send(&mut runtime, r#"{"event":"control","action":"stop"}"#);
    assert_eq!(list_open_questions(&world.store, None).unwrap().open, []);
}

#[test]
fn a_session_that_cannot_be_read_does_not_hide_the_others() {
    let world = RuntimeTest::new(ASKS);
    let mut runtime = world.runtime();
    send(&mut runtime, &ship("c1", "a"));
    let other = ship("c1", "a").replace('{', r#"{"session":"t","#).replacen(
        r#"args":{"session":"t","#,
        r#"args":{"#,
        1,
    );
    send(&mut runtime, &other);
    std::fs::write(world.journal("t"), "no journal\n").unwrap();
    let questions = list_open_questions(&world.store, None).unwrap();
    assert_eq!((questions.open.len(), questions.unreadable.len()), (1, 1));
}

/// A program that embeds the runtime creates its events itself.
#[test]
fn an_event_that_a_line_could_not_express_is_refused_without_a_record() {
    let world = RuntimeTest::new("");
    let mut runtime = world.runtime();
    let pause_event = |why: &str| {
        let event = json!({"session": "s", "event": "control", "action": "pause", "why": why});
        parse_recorded(event).unwrap()
    };
    let answer = runtime.answer_safely(pause_event(&"x".repeat(16_385)));
    assert_eq!(answer.outcome, AnswerKind::Refused);
    let verdict: Value = serde_json::from_str(&answer.json).unwrap();
    assert_eq!(
        verdict["error"]["reason"],
        "invalid event: `why` must be at most 16384 bytes long, not 16385 bytes; nothing was recorded; correct the event"
    );
    assert!(!world.directory("s").exists());
    // Redaction makes the text longer than a line may be. A journal can still read it.
    let secrets = "password=abc1def2 ".repeat(900);
    let answer = runtime.answer_safely(pause_event(&secrets));
    assert_eq!(answer.outcome, AnswerKind::Decided);
    assert_eq!(world.records("s").len(), 1);
    world.prove("s");
}
