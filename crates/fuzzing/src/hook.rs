//! Sends payloads to the hook of Claude Code and checks its answers.

mod payload_moves;

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use jackline_analysis::Replay;
use jackline_clients::claude::ClaudeDialect;
use jackline_clients::dialect::{HookCall, HookMoment, HookReply};
use jackline_clients::hook_environment::HookEnvironment;
use jackline_clients::hook_server::{HookRuntime, HookServer};
use jackline_clients::payload::PayloadFields;
use jackline_definition::load;
use jackline_engine::json::parse_strict;
use jackline_engine::{Decision, Definition, EventId, EventKind, SessionId, Verdict};
use jackline_host::HostAccess;
use jackline_journal::{JournalLine, MemoryStore, ReadMode, Store as _, parse_record};
use jackline_runtime::{Definitions, Runtime};
use serde_json::Value;

/// An input that begins with this byte consists of moves. Any other input is a payload.
const MOVES_MARK: u8 = 0;

/// A text that reports a bug begins with one of these.
const FAULTS: [&str; 2] = [
    "jackline, the guard, is broken, not the call: an internal fault",
    "jackline: the guard is broken, not the call: an internal fault",
];

/// Every allowed top-level key of an answer.
const ANSWER_KEYS: [&str; 4] = ["hookSpecificOutput", "decision", "reason", "systemMessage"];

static DEFINITION: LazyLock<Definition> = LazyLock::new(|| {
    let source = br"
rules:
  - { name: never, tool: exec, command: git push, deny: Never., examples: { deny: [git push] } }
  - { name: look, tool: exec, command: make deploy, ask: Look., examples: { ask: [make deploy] } }
sections: [ { name: files, tools: [Read, Write], policies: [ read_before_write: {} ] } ]
unknown_tools: allow
feedback: [ { static: Go on., every_n_calls: 2 } ]
completion: { files: [report.md] }
limits: { steps: 40 }
";
    load(source, "jackline.yaml").unwrap()
});

/// No payload opens a gate, and the client can parse every answer.
pub fn hook(bytes: &[u8]) {
    let store = MemoryStore::default();
    match bytes.split_first() {
        Some((&MOVES_MARK, moves)) => {
            for payload in payload_moves::payloads(moves) {
                send_payload(&store, payload.to_string().as_bytes());
            }
        }
        _ => drop(send_payload(&store, bytes)),
    }
    // After any other payloads, a denied call is still denied.
    let reply = send_payload(&store, payload_moves::DENIED_PAYLOAD.as_bytes());
    assert_eq!(permission(&reply), Some("deny"), "{reply}");
    check_replayed(&store);
}

/// Runs one hook process: sends a payload and checks the answer.
fn send_payload(store: &MemoryStore, payload: &[u8]) -> Value {
    let mut hook_call = None;
    // The directory does not exist. The hook only reads the paths that a payload names.
    let directory = PathBuf::from("/nowhere/jackline");
    // Both kinds of client, chosen by the payload so that a failure can be repeated.
    let attended = payload.len() % 2 == 1;
    let forged = || false;
    let at = HookEnvironment {
        project: None,
        directory: directory.clone(),
        has_person: attended,
        role: None,
        run: None,
        is_forged: forged,
    };
    let definitions = Definitions::made(DEFINITION.clone(), HostAccess::default()).unwrap();
    let runtime = HookRuntime::from_runtime(Runtime::new(store.clone(), definitions, directory));
    let mut before = 0;
    let mut listen = |it: &HookCall| {
        before = it.session.as_ref().map_or(0, |session| last_line(store, session).0);
        hook_call = Some(it.clone());
    };
    let deadline = Duration::from_secs(20);
    let server =
        HookServer { dialect: &ClaudeDialect, runtime, sealed: false, role: None, deadline };
    let answer = server.answer(payload, &at, &mut listen);
    let reply = check_reply(&answer.reply, hook_call.as_ref());
    if let Some(hook_call) =
        hook_call.filter(|hook_call| hook_call.moment == HookMoment::BeforeCall)
    {
        let session = hook_call.session;
        let (now, line) = session.as_ref().map(|it| last_line(store, it)).unwrap_or_default();
        // A call that was reported before gets the same answer again. Another call with the same id
        // is refused.
        let is_new = now > before || permission(&reply) == Some("deny");
        let earlier = || find_record(store, session.as_ref()?, &call_id(payload)?);
        let line = if is_new { line.filter(|_| now > before) } else { earlier() };
        let record = line.map(|line| parse_record(&line).unwrap());
        check_gate(&reply, record.as_ref(), attended);
    }
    reply
}

/// An answer has at most one object, and only fields that can't allow a call.
fn check_reply(reply: &HookReply, hook_call: Option<&HookCall>) -> Value {
    let HookReply { stdout, stderr, exit } = reply;
    let is_fault = |text: &str| FAULTS.iter().any(|fault| text.starts_with(fault));
    if *exit != 0 {
        assert_eq!((*exit, stdout.as_str()), (2, ""));
        assert!(!stderr.trim().is_empty() && stderr.len() <= 4096 && !is_fault(stderr), "{stderr}");
        return Value::Null;
    }
    assert_eq!(stderr, "");
    if stdout.is_empty() {
        return Value::Null;
    }
    let answer = parse_strict(stdout.as_bytes()).unwrap();
    let map = answer.as_object().unwrap();
    assert!(
        !map.is_empty() && map.keys().all(|key| ANSWER_KEYS.contains(&key.as_str())),
        "{answer}"
    );
    assert!(map.get("decision").is_none_or(|word| word == "block"), "{answer}");
    assert_eq!(map.contains_key("decision"), map.contains_key("reason"), "{answer}");
    for text in map.values().filter_map(Value::as_str) {
        assert!(!text.is_empty() && !is_fault(text), "{answer}");
    }
    if let Some(specific) = map.get("hookSpecificOutput") {
        let hook_call = hook_call.unwrap();
        assert_eq!(specific.get("hookEventName").unwrap(), hook_call.hook, "{answer}");
        let is_gate = hook_call.moment == HookMoment::BeforeCall;
        assert!(permission(&answer).is_none_or(|word| is_gate && word != "allow"), "{answer}");
        assert_eq!(specific.get("updatedInput"), None);
    }
    answer
}

/// The answer agrees with the journal: an empty answer needs a recorded verdict that lets the call
/// run.
fn check_gate(answer: &Value, record: Option<&JournalLine>, attended: bool) {
    let verdict = match record {
        Some(JournalLine::Event(it)) if matches!(it.event.kind, EventKind::ToolProposed(_)) => {
            Some(serde_json::from_str::<Verdict>(&it.verdict_json).unwrap())
        }
        _ => None,
    };
    match (permission(answer), verdict) {
        (Some("deny"), Some(verdict)) => assert!(!verdict.allows_run(), "{answer}: {verdict:?}"),
        (Some("ask"), Some(verdict)) => {
            assert!(attended && verdict.is_enforced(Decision::Ask), "{answer}: {verdict:?}");
        }
        (None, Some(verdict)) => assert!(verdict.allows_run(), "empty answer for {verdict:?}"),
        (word, None) => assert_eq!(word, Some("deny"), "without a decision: {answer}"),
        (word, _) => assert_eq!(word, None, "{answer}"),
    }
}

fn permission(answer: &Value) -> Option<&str> {
    answer.pointer("/hookSpecificOutput/permissionDecision").map(|word| word.as_str().unwrap())
}

fn lines(store: &MemoryStore, session: &SessionId, each: &mut dyn FnMut(&[u8])) {
    let mut log = store.open(session).unwrap();
    let read = log.read(0, &mut |line| {
        each(line);
        Ok(())
    });
    read.unwrap();
}

fn call_id(payload: &[u8]) -> Option<EventId> {
    let payload = PayloadFields::parse(payload).ok()?;
    EventId::parse(payload.peek_text("tool_use_id")?).ok()
}

/// The record of an event with this id.
fn find_record(store: &MemoryStore, session: &SessionId, id: &EventId) -> Option<Vec<u8>> {
    store.open(session).unwrap().find_event(id).unwrap()
}

/// The number of lines in a journal, and the last line.
fn last_line(store: &MemoryStore, session: &SessionId) -> (usize, Option<Vec<u8>>) {
    let (mut count, mut last) = (0, None);
    lines(store, session, &mut |line| {
        count += 1;
        last = Some(line.to_vec());
    });
    (count, last)
}

fn check_replayed(store: &MemoryStore) {
    let mut replay = Replay::default();
    let session = SessionId::parse(payload_moves::SESSION).unwrap();
    let view = store.view_session(&session, ReadMode::Consistent).unwrap().unwrap();
    view.for_each(|line| replay.replay_line(&view, line)).unwrap();
    let report = replay.finish();
    assert!(report.events > 0 && report.is_proven(), "{report:?}");
}
