//! The session front-end of every adapter: rulings, texts, and a guard that is broken or off.

use std::sync::Arc;

use jackline_engine::event::{Control, PromptSource};
use jackline_engine::{
    Action, Arguments, Decision, SessionEnded, SessionId, SessionStarted, Status, StopProposed,
};
use jackline_host::{Off, Switch};
use jackline_journal::Note;
use jackline_runtime::asks::ask_code;
use jackline_runtime::{
    CallResult, CallRuling, Gate, ProposedCall, RefusalCode, SessionRole, StopRuling,
};
use serde_json::{Value, json};

use crate::meddling::{How, Meddler, Meddling};
use crate::support::World;

const RULES: &str = "version: 1
rules:
  - { name: ask-ship, command: ship, ask: A person decides., examples: { ask: [ship] } }
  - { name: no-rm, command: rm, deny: Use trash., examples: { deny: [rm] } }
";

fn gate(world: &World) -> Gate {
    Gate::new(world.runtime(), SessionId::parse("s").unwrap())
}

/// A gate on a store of which the next append can be made to fail.
fn breakable(world: &World) -> (Gate, Arc<Meddler>) {
    let meddler = Arc::new(Meddler::default());
    let store = Meddling { inner: world.store.clone(), meddler: Arc::clone(&meddler) };
    (Gate::new(world.runtime_on(store), SessionId::parse("s").unwrap()), meddler)
}

fn fail_next(meddler: &Meddler) {
    *meddler.next.lock().unwrap() = Some(How::Fails(28));
}

fn propose(gate: &mut Gate, tool: &str, args: Value) -> CallRuling {
    gate.propose(ProposedCall::new(tool, Arguments::Parsed(args)))
}

fn command(gate: &mut Gate, line: &str) -> CallRuling {
    propose(gate, "Bash", json!({ "command": line }))
}

#[track_caller]
fn runs(ruling: CallRuling) -> u64 {
    ruling.permit().unwrap().number
}

#[test]
fn a_call_without_objections_runs_and_is_reported_under_its_number() {
    let world = World::new(RULES);
    let mut gate = gate(&world);
    assert!(gate.start(SessionStarted::default(), Some(json!({ "by": "test" }))).is_allowed());
    let number = runs(command(&mut gate, "ls"));
    let text = Some("a.txt".to_owned());
    let answer = gate.finish(CallResult { text, ..CallResult::new(number, Status::Ok) });
    assert!(answer.is_decision() && !answer.holds_session());
    assert_eq!((gate.take_texts(), gate.take_notes()), (None, Vec::new()));
    let records = world.records("s");
    assert_eq!(records[0].event.meta, Some(json!({ "by": "test" })));
    let kinds: Vec<&str> = records.iter().map(|record| record.event.kind.name()).collect();
    assert_eq!(kinds, ["session_started", "tool_proposed", "tool_finished"]);
    assert_eq!(world.summary("s").invocations.proposed, 1);
    world.prove("s");
}

#[test]
fn a_denied_call_has_a_code_and_a_reason() {
    let world = World::new(RULES);
    let mut gate = gate(&world);
    let CallRuling::Refuse(refusal) = command(&mut gate, "rm a") else { panic!("it runs") };
    assert_eq!((refusal.code, refusal.decision), (RefusalCode::Denied, Decision::Deny));
    assert_eq!(refusal.text(), format!("jackline: {}", refusal.reason));
    assert!(refusal.reason.contains("Use trash."), "{}", refusal.reason);
    assert_eq!(refusal.violations[0].subtype.word(), "no-rm");
    assert_eq!(refusal.ended, None);
    assert_eq!(gate.take_notes(), Vec::<String>::new());
}

#[test]
fn a_question_tells_the_person_its_code_and_the_agent_that_it_waits() {
    let world = World::new(RULES);
    let mut gate = gate(&world);
    let args = Arguments::Parsed(json!({ "command": "ship now" }));
    let once_allowed = Some("start the task again");
    let call = ProposedCall { once_allowed, ..ProposedCall::new("Bash", args) };
    let CallRuling::Ask(refusal, ask) = gate.propose(call) else { panic!("it is not asked") };
    assert_eq!(refusal.code, RefusalCode::WaitsForPerson);
    assert!(refusal.text().contains("\n-> a person was told"), "{}", refusal.text());
    let code = ask_code(gate.session(), 1);
    let question = "A person decides. (rule `ask-ship`, at `ship now`)";
    assert_eq!((&ask.code, ask.question.as_str()), (&code, question));
    assert!(!refusal.text().contains(&code), "the agent can't use it");
    let note = format!(
        "a call of `Bash` waits for a person: {question}; `jackline allow {code}` lets exactly \
         this call pass once, `jackline refuse {code}` refuses it; then start the task again"
    );
    assert_eq!(gate.take_notes(), [note]);
    assert_eq!(gate.take_notes(), Vec::<String>::new(), "once");
}

#[test]
fn a_paused_session_and_one_that_is_over_stop_everything() {
    let world = World::new("version: 1\nlimits: { steps: 1 }\n");
    let mut gate = gate(&world);
    gate.start(SessionStarted::default(), None);
    let pause = Control { action: Action::Pause, ..Control::default() };
    gate.report(pause);
    let CallRuling::Stop(refusal) = command(&mut gate, "ls") else { panic!("it runs") };
    assert_eq!((refusal.code, refusal.ended), (RefusalCode::Paused, None));
    gate.report(Control { action: Action::Resume, ..Control::default() });
    let CallRuling::Stop(refusal) = command(&mut gate, "ls") else { panic!("it runs") };
    assert_eq!(refusal.code, RefusalCode::Stopped);
    assert!(refusal.ended.is_some(), "this call has ended it");
    let CallRuling::Stop(refusal) = command(&mut gate, "ls") else { panic!("it runs") };
    assert_eq!((refusal.code, refusal.ended), (RefusalCode::Stopped, None));
    assert!(matches!(gate.propose_stop(StopProposed::default()), StopRuling::Hold(_)));
}

#[test]
fn a_name_that_no_tool_can_have_is_refused_and_noted_with_the_next_record() {
    let world = World::new(RULES);
    let mut gate = gate(&world);
    gate.start(SessionStarted::default(), None);
    let CallRuling::Refuse(refusal) = propose(&mut gate, "a\u{7}b", json!({})) else {
        panic!("it runs")
    };
    assert_eq!(refusal.code, RefusalCode::InvalidTool);
    let reason = "the name of the tool holds a control character";
    assert_eq!(refusal.text(), format!("jackline: {reason}"));
    assert_eq!(world.records("s").len(), 1, "it is no call");
    assert_eq!(runs(command(&mut gate, "ls")), 2);
    let notes = &world.records("s")[1].notes;
    assert_eq!(*notes, [Note::Malformed { line: 1, reason: reason.to_owned() }]);
    world.prove("s");
}

#[test]
fn what_the_agent_must_be_told_is_told_once() {
    let feedback = "version: 1\nfeedback: [ { static: Read the warnings., every_n_calls: 1 } ]\n";
    let world = World::new(feedback);
    let mut gate = gate(&world);
    gate.prompt(PromptSource::Human, "go");
    let number = runs(propose(&mut gate, "lint", json!({})));
    assert!(gate.finish(CallResult::new(number, Status::Ok)).is_decision());
    gate.add_text("and this".to_owned());
    let texts = gate.take_texts().unwrap();
    assert!(texts.contains("Read the warnings."), "{texts}");
    assert!(texts.ends_with("\n\nand this"), "{texts}");
    assert_eq!(gate.take_texts(), None);
}

#[test]
fn a_broken_guard_refuses_and_says_that_it_is_not_the_call() {
    let world = World::new(RULES);
    let (mut gate, meddler) = breakable(&world);
    gate.start(SessionStarted::default(), None);
    assert_eq!(gate.fault(), None);
    fail_next(&meddler);
    let CallRuling::Refuse(refusal) = command(&mut gate, "ls") else { panic!("it runs") };
    assert_eq!(refusal.code, RefusalCode::GuardBroken);
    assert!(refusal.text().starts_with("jackline: the guard is broken, not the call: "));
    let fault = gate.fault().unwrap();
    assert_eq!((&fault.reason, fault.is_permanent()), (&refusal.reason, false));
    fail_next(&meddler);
    assert!(matches!(gate.propose_stop(StopProposed::default()), StopRuling::Hold(_)));
    // What a person has to mend is not told to the agent with a result.
    let number = runs(command(&mut gate, "ls"));
    fail_next(&meddler);
    assert!(gate.finish(CallResult::new(number, Status::Ok)).is_broken());
    assert_eq!(gate.take_texts(), None);
}

#[test]
fn records_that_are_gone_are_a_permanent_fault() {
    let world = World::new(RULES);
    let mut gate = gate(&world);
    gate.start(SessionStarted::default(), None);
    std::fs::remove_dir_all(world.directory("s")).unwrap();
    assert!(command(&mut gate, "ls").permit().is_err());
    assert!(gate.fault().unwrap().is_permanent());
}

#[test]
fn a_broken_guard_that_a_person_has_switched_off_lets_everything_pass() {
    let world = World::new(RULES);
    let (mut gate, meddler) = breakable(&world);
    gate.start(SessionStarted::default(), None);
    let off = Off::lasting(60_000, "dana", "why", Some(&world.workspace()));
    Switch::of(Some(world.store.home())).off(&off).unwrap();
    fail_next(&meddler);
    let permit = command(&mut gate, "rm a").permit().unwrap();
    assert_eq!((permit.number, permit.args), (1, None));
    fail_next(&meddler);
    let answer = gate.finish(CallResult::new(1, Status::Ok));
    assert!(answer.is_accepted() && !answer.is_decision());
    fail_next(&meddler);
    let ruling = gate.propose_stop(StopProposed::default());
    assert!(matches!(ruling, StopRuling::End(None)), "{ruling:?}");
    assert_eq!(gate.fault(), None);
    assert_eq!(gate.take_texts(), None);
}

#[test]
fn a_stop_is_denied_with_what_is_missing() {
    let world = World::new("version: 1\ncompletion: { files: [report.md] }\n");
    let mut gate = gate(&world);
    gate.prompt(PromptSource::Human, "go");
    let ruling = gate.propose_stop(StopProposed::default());
    let StopRuling::GoOn(text) = &ruling else { panic!("{ruling:?}") };
    assert!(text.contains("report.md"), "{text}");
    assert_eq!(ruling.objection(), Some(text.as_str()));
    std::fs::write(world.workspace().join("report.md"), "done").unwrap();
    let ruling = gate.propose_stop(StopProposed::default());
    assert_eq!(ruling.objection(), None, "{ruling:?}");
}

#[test]
fn a_session_that_another_process_has_is_joined_with_names_of_its_own() {
    let world = World::new(RULES);
    let mut first = gate(&world);
    let started = || SessionStarted { client: Some("mcp".to_owned()), ..Default::default() };
    assert_eq!(first.start_or_join(started()), SessionRole::Owner);
    runs(command(&mut first, "ls"));
    let mut second = gate(&world);
    assert_eq!(second.start_or_join(started()), SessionRole::Guest);
    let number = runs(command(&mut second, "ls"));
    assert!(second.finish(CallResult::new(number, Status::Ok)).is_decision());
    let records = world.records("s");
    let calls: Vec<Value> = records
        .iter()
        .map(|record| serde_json::to_value(&record.event).unwrap()["call"].clone())
        .collect();
    assert_eq!(calls[..2], [Value::Null, json!("c1")]);
    assert!(calls[2].as_str().unwrap().starts_with("mcp-"), "{calls:?}");
    assert_eq!(calls[2], calls[3]);
    // One that has ended is started again, with the numbers after those of before.
    first.report(SessionEnded::default());
    let mut third = gate(&world);
    assert_eq!(third.start_or_join(started()), SessionRole::Owner);
    assert_eq!(runs(command(&mut third, "ls")), 3);
}
