//! The session front-end of every adapter: rulings, texts, and a guard that is broken or off.

use std::sync::Arc;

use jackline_engine::event::{Control, PromptSource};
use jackline_engine::{
    Arguments, CallStatus, ControlAction, Decision, SessionEnded, SessionId, SessionStarted,
    StopProposed,
};
use jackline_host::{OffPeriod, OffSwitch};
use jackline_journal::JournalNote;
use jackline_runtime::open_questions::approval_code;
use jackline_runtime::{
    CallResult, CallRuling, Gate, ProposedCall, RefusalCode, SessionRole, StopRuling,
};
use serde_json::{Value, json};

use crate::disturbed_store::{AppendFailure, Disturbances, DisturbedStore};
use crate::support::RuntimeTest;

const RULES: &str = "version: 1
rules:
  - { name: ask-ship, command: ship, ask: A person decides., examples: { ask: [ship] } }
  - { name: no-rm, command: rm, deny: Use trash., examples: { deny: [rm] } }
";

fn gate(world: &RuntimeTest) -> Gate {
    Gate::new(world.runtime(), SessionId::parse("s").unwrap())
}

/// A gate on a store whose next append can be made to fail.
fn breakable(world: &RuntimeTest) -> (Gate, Arc<Disturbances>) {
    let meddler = Arc::new(Disturbances::default());
    let store = DisturbedStore { inner: world.store.clone(), disturbances: Arc::clone(&meddler) };
    (Gate::new(world.runtime_on(store), SessionId::parse("s").unwrap()), meddler)
}

fn fail_next(meddler: &Disturbances) {
    *meddler.next_append.lock().unwrap() = Some(AppendFailure::Fails(28));
}

fn propose(gate: &mut Gate, tool: &str, args: Value) -> CallRuling {
    gate.propose(ProposedCall::new(tool, Arguments::Parsed(args)))
}

fn command(gate: &mut Gate, shell_line: &str) -> CallRuling {
    propose(gate, "Bash", json!({ "command": shell_line }))
}

#[track_caller]
fn runs(ruling: CallRuling) -> u64 {
    ruling.permit().unwrap().number
}

#[test]
fn a_call_without_violations_runs_and_is_reported_under_its_number() {
    let world = RuntimeTest::new(RULES);
    let mut gate = gate(&world);
    assert!(gate.start(SessionStarted::default(), Some(json!({ "by": "test" }))).is_allowed());
    let number = runs(command(&mut gate, "ls"));
    let text = Some("a.txt".to_owned());
    let answer = gate.finish(CallResult { text, ..CallResult::new(number, CallStatus::Ok) });
    assert!(answer.is_decision() && !answer.blocks_session());
    assert_eq!((gate.take_texts(), gate.take_person_texts()), (None, Vec::new()));
    let records = world.records("s");
    assert_eq!(records[0].event.meta, Some(json!({ "by": "test" })));
    let kinds: Vec<&str> = records.iter().map(|record| record.event.kind.name()).collect();
    assert_eq!(kinds, ["session_started", "tool_proposed", "tool_finished"]);
    assert_eq!(world.summary("s").invocations.proposed, 1);
    world.prove("s");
}

#[test]
fn a_denied_call_has_a_code_and_a_reason() {
    let world = RuntimeTest::new(RULES);
    let mut gate = gate(&world);
    let CallRuling::Refuse(refusal) = command(&mut gate, "rm a") else { panic!("the call runs") };
    assert_eq!((refusal.code, refusal.decision), (RefusalCode::Denied, Decision::Deny));
    assert_eq!(refusal.text(), format!("jackline: {}", refusal.reason));
    assert!(refusal.reason.contains("Use trash."), "{}", refusal.reason);
    assert_eq!(refusal.violations[0].subtype.as_str(), "no-rm");
    assert_eq!(refusal.stop_code, None);
    assert_eq!(gate.take_person_texts(), Vec::<String>::new());
}

#[test]
fn a_question_gives_the_person_a_code_and_tells_the_agent_to_wait() {
    let world = RuntimeTest::new(RULES);
    let mut gate = gate(&world);
    let args = Arguments::Parsed(json!({ "command": "ship now" }));
    let once_allowed = Some("start the task again");
    let call = ProposedCall { once_allowed, ..ProposedCall::new("Bash", args) };
    let CallRuling::Ask(refusal, ask) = gate.propose(call) else {
        panic!("the call is not asked about")
    };
    assert_eq!(refusal.code, RefusalCode::WaitsForPerson);
    assert!(refusal.text().contains("\n-> a person was notified"), "{}", refusal.text());
    let code = approval_code(gate.session(), 1);
    let question = "A person decides. (rule `ask-ship`, at `ship now`)";
    assert_eq!((&ask.code, ask.question.as_str()), (&code, question));
    assert!(!refusal.text().contains(&code), "the agent can't use it");
    let note = format!(
        "a call of `Bash` waits for a person: {question}; `jackline allow {code}` allows exactly \
         this call once, `jackline refuse {code}` refuses it; then start the task again"
    );
    assert_eq!(gate.take_person_texts(), [note]);
    assert_eq!(gate.take_person_texts(), Vec::<String>::new(), "the text is taken once");
}

#[test]
fn a_paused_or_stopped_session_runs_no_call() {
    let world = RuntimeTest::new("version: 1\nlimits: { steps: 1 }\n");
    let mut gate = gate(&world);
    gate.start(SessionStarted::default(), None);
    let pause = Control { action: ControlAction::Pause, ..Control::default() };
    gate.report(pause);
    let CallRuling::Stop(refusal) = command(&mut gate, "ls") else { panic!("the call runs") };
    assert_eq!((refusal.code, refusal.stop_code), (RefusalCode::Paused, None));
    gate.report(Control { action: ControlAction::Resume, ..Control::default() });
    let CallRuling::Stop(refusal) = command(&mut gate, "ls") else { panic!("the call runs") };
    assert_eq!(refusal.code, RefusalCode::Stopped);
    assert!(refusal.stop_code.is_some(), "this call has ended the session");
    let CallRuling::Stop(refusal) = command(&mut gate, "ls") else { panic!("the call runs") };
    assert_eq!((refusal.code, refusal.stop_code), (RefusalCode::Stopped, None));
    assert!(matches!(gate.propose_stop(StopProposed::default()), StopRuling::Blocked(_)));
}

#[test]
fn an_invalid_tool_name_is_refused_and_noted_with_the_next_record() {
    let world = RuntimeTest::new(RULES);
    let mut gate = gate(&world);
    gate.start(SessionStarted::default(), None);
    let CallRuling::Refuse(refusal) = propose(&mut gate, "a\u{7}b", json!({})) else {
        panic!("the call runs")
    };
    assert_eq!(refusal.code, RefusalCode::InvalidTool);
    let reason = "the name of the tool contains a control character";
    assert_eq!(refusal.text(), format!("jackline: {reason}"));
    assert_eq!(world.records("s").len(), 1, "it does not count as a call");
    assert_eq!(runs(command(&mut gate, "ls")), 2);
    let notes = &world.records("s")[1].notes;
    assert_eq!(*notes, [JournalNote::Malformed { line: 1, reason: reason.to_owned() }]);
    world.prove("s");
}

#[test]
fn a_text_for_the_agent_is_delivered_once() {
    let feedback = "version: 1\nfeedback: [ { static: Read the warnings., every_n_calls: 1 } ]\n";
    let world = RuntimeTest::new(feedback);
    let mut gate = gate(&world);
    gate.prompt(PromptSource::Human, "go");
    let number = runs(propose(&mut gate, "lint", json!({})));
    assert!(gate.finish(CallResult::new(number, CallStatus::Ok)).is_decision());
    gate.add_text("and this".to_owned());
    let texts = gate.take_texts().unwrap();
    assert!(texts.contains("Read the warnings."), "{texts}");
    assert!(texts.ends_with("\n\nand this"), "{texts}");
    assert_eq!(gate.take_texts(), None);
}

#[test]
fn a_broken_guard_refuses_and_does_not_blame_the_call() {
    let world = RuntimeTest::new(RULES);
    let (mut gate, meddler) = breakable(&world);
    gate.start(SessionStarted::default(), None);
    assert_eq!(gate.fault(), None);
    fail_next(&meddler);
    let CallRuling::Refuse(refusal) = command(&mut gate, "ls") else { panic!("the call runs") };
    assert_eq!(refusal.code, RefusalCode::GuardBroken);
    assert!(refusal.text().starts_with("jackline: the guard is broken, not the call: "));
    let fault = gate.fault().unwrap();
    assert_eq!((&fault.reason, fault.is_permanent()), (&refusal.reason, false));
    fail_next(&meddler);
    assert!(matches!(gate.propose_stop(StopProposed::default()), StopRuling::Blocked(_)));
    // A fault that a person must fix is not told to the agent with a result.
    let number = runs(command(&mut gate, "ls"));
    fail_next(&meddler);
    assert!(gate.finish(CallResult::new(number, CallStatus::Ok)).is_broken());
    assert_eq!(gate.take_texts(), None);
}

#[test]
fn missing_records_are_a_permanent_fault() {
    let world = RuntimeTest::new(RULES);
    let mut gate = gate(&world);
    gate.start(SessionStarted::default(), None);
    std::fs::remove_dir_all(world.directory("s")).unwrap();
    assert!(command(&mut gate, "ls").permit().is_err());
    assert!(gate.fault().unwrap().is_permanent());
}

#[test]
fn a_broken_guard_that_is_off_allows_everything() {
    let world = RuntimeTest::new(RULES);
    let (mut gate, meddler) = breakable(&world);
    gate.start(SessionStarted::default(), None);
    let off = OffPeriod::starting_now(60_000, "dana", "why", Some(&world.workspace()));
    OffSwitch::for_state_home(Some(world.store.home())).turn_off(&off).unwrap();
    fail_next(&meddler);
    let permit = command(&mut gate, "rm a").permit().unwrap();
    assert_eq!((permit.number, permit.args), (1, None));
    fail_next(&meddler);
    let answer = gate.finish(CallResult::new(1, CallStatus::Ok));
    assert!(answer.is_accepted() && !answer.is_decision());
    fail_next(&meddler);
    let ruling = gate.propose_stop(StopProposed::default());
    assert!(matches!(ruling, StopRuling::End(None)), "{ruling:?}");
    assert_eq!(gate.fault(), None);
    assert_eq!(gate.take_texts(), None);
}

#[test]
fn a_stop_is_denied_with_the_missing_file() {
    let world = RuntimeTest::new("version: 1\ncompletion: { files: [report.md] }\n");
    let mut gate = gate(&world);
    gate.prompt(PromptSource::Human, "go");
    let ruling = gate.propose_stop(StopProposed::default());
    let StopRuling::Continue(text) = &ruling else { panic!("{ruling:?}") };
    assert!(text.contains("report.md"), "{text}");
    assert_eq!(ruling.refusal_reason(), Some(text.as_str()));
    std::fs::write(world.workspace().join("report.md"), "done").unwrap();
    let ruling = gate.propose_stop(StopProposed::default());
    assert_eq!(ruling.refusal_reason(), None, "{ruling:?}");
}

#[test]
fn a_guest_joins_a_session_with_its_own_call_ids() {
    let world = RuntimeTest::new(RULES);
    let mut first = gate(&world);
    let started = || SessionStarted { client: Some("mcp".to_owned()), ..Default::default() };
    assert_eq!(first.start_or_join(started()), SessionRole::Owner);
    runs(command(&mut first, "ls"));
    let mut second = gate(&world);
    assert_eq!(second.start_or_join(started()), SessionRole::Guest);
    let number = runs(command(&mut second, "ls"));
    assert!(second.finish(CallResult::new(number, CallStatus::Ok)).is_decision());
    let records = world.records("s");
    let calls: Vec<Value> = records
        .iter()
        .map(|record| serde_json::to_value(&record.event).unwrap()["call"].clone())
        .collect();
    assert_eq!(calls[..2], [Value::Null, json!("c1")]);
    assert!(calls[2].as_str().unwrap().starts_with("mcp-"), "{calls:?}");
    assert_eq!(calls[2], calls[3]);
    // An ended session is started again, and its call numbers continue.
    first.report(SessionEnded::default());
    let mut third = gate(&world);
    assert_eq!(third.start_or_join(started()), SessionRole::Owner);
    assert_eq!(runs(command(&mut third, "ls")), 3);
}
