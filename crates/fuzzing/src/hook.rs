//! What Claude Code sends to its hooks, and what it hears.

mod moves;

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use jackline_analysis::Replay;
use jackline_clients::claude::ClaudeDialect;
use jackline_clients::dialect::{HookCall, HookReply, Moment};
use jackline_clients::hook_server::{HookRuntime, HookServer};
use jackline_clients::payload::PayloadFields;
use jackline_clients::surroundings::Surroundings;
use jackline_definition::load;
use jackline_engine::json::parse_strict;
use jackline_engine::{Decision, Definition, EventId, EventKind, SessionId, Verdict};
use jackline_host::HostAccess;
use jackline_journal::{Line, MemoryStore, Reading, Store as _, parse_record};
use jackline_runtime::{Definitions, Runtime};
use serde_json::Value;

/// Begins an input that is made of moves, and no payload.
const MOVES: u8 = 0;

/// How a text begins that says of a bug.
const FAULTS: [&str; 2] = [
    "jackline, the guard, is broken, not the call: an internal fault",
    "jackline: the guard is broken, not the call: an internal fault",
];

/// Everything that may stand at the top of an answer.
const KNOWN: [&str; 4] = ["hookSpecificOutput", "decision", "reason", "systemMessage"];

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

/// Nothing that a client sends opens a gate, and every answer is one that the
/// client understands.
pub fn hook(bytes: &[u8]) {
    let store = MemoryStore::default();
    match bytes.split_first() {
        Some((&MOVES, moves)) => {
            for payload in moves::payloads(moves) {
                tell(&store, payload.to_string().as_bytes());
            }
        }
        _ => drop(tell(&store, bytes)),
    }
    // Whatever came before: what is denied is denied.
    let said = tell(&store, moves::DENIED.as_bytes());
    assert_eq!(permission(&said), Some("deny"), "{said}");
    check_replayed(&store);
}

/// One process of the client's: tells a payload and checks what is said.
fn tell(store: &MemoryStore, payload: &[u8]) -> Value {
    let mut heard = None;
    // A directory that is not there: what a payload names is at most looked at.
    let directory = PathBuf::from("/nowhere/jackline");
    // Both kinds of client; which one is no matter, so long as it stays the same.
    let attended = payload.len() % 2 == 1;
    let forged = || false;
    let at =
        Surroundings { project: None, directory: directory.clone(), attended, run: None, forged };
    let definitions = Definitions::made(DEFINITION.clone(), HostAccess::default()).unwrap();
    let runtime = HookRuntime::made(Runtime::new(store.clone(), definitions, directory));
    let mut before = 0;
    let mut listen = |it: &HookCall| {
        before = it.session.as_ref().map_or(0, |session| last(store, session).0);
        heard = Some(it.clone());
    };
    let deadline = Duration::from_secs(20);
    let server = HookServer { dialect: &ClaudeDialect, runtime, sealed: false, deadline };
    let answered = server.answer(payload, &at, &mut listen);
    let said = check_reply(&answered.reply, heard.as_ref());
    if let Some(heard) = heard.filter(|heard| heard.moment == Moment::BeforeCall) {
        let session = heard.session;
        let (now, line) = session.as_ref().map(|it| last(store, it)).unwrap_or_default();
        // A call that was told before gets the answer of then; another one under
        // its id is refused.
        let is_new = now > before || permission(&said) == Some("deny");
        let earlier = || recorded(store, session.as_ref()?, &call_id(payload)?);
        let line = if is_new { line.filter(|_| now > before) } else { earlier() };
        let record = line.map(|line| parse_record(&line).unwrap());
        check_gate(&said, record.as_ref(), attended);
    }
    said
}

/// At most one object, nothing but objections and words in it.
fn check_reply(reply: &HookReply, heard: Option<&HookCall>) -> Value {
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
    let said = parse_strict(stdout.as_bytes()).unwrap();
    let map = said.as_object().unwrap();
    assert!(!map.is_empty() && map.keys().all(|key| KNOWN.contains(&key.as_str())), "{said}");
    assert!(map.get("decision").is_none_or(|word| word == "block"), "{said}");
    assert_eq!(map.contains_key("decision"), map.contains_key("reason"), "{said}");
    for text in map.values().filter_map(Value::as_str) {
        assert!(!text.is_empty() && !is_fault(text), "{said}");
    }
    if let Some(specific) = map.get("hookSpecificOutput") {
        let heard = heard.unwrap();
        assert_eq!(specific.get("hookEventName").unwrap(), heard.hook, "{said}");
        let gates = heard.moment == Moment::BeforeCall;
        assert!(permission(&said).is_none_or(|word| gates && word != "allow"), "{said}");
        assert_eq!(specific.get("updatedInput"), None);
    }
    said
}

/// Silence, and whatever is no refusal, is what the journal says.
fn check_gate(said: &Value, record: Option<&Line>, attended: bool) {
    let verdict = match record {
        Some(Line::Event(it)) if matches!(it.event.kind, EventKind::ToolProposed(_)) => {
            Some(serde_json::from_str::<Verdict>(&it.verdict_json).unwrap())
        }
        _ => None,
    };
    match (permission(said), verdict) {
        (Some("deny"), Some(verdict)) => assert!(!verdict.lets_run(), "{said}: {verdict:?}"),
        (Some("ask"), Some(verdict)) => {
            assert!(attended && verdict.is_enforced(Decision::Ask), "{said}: {verdict:?}");
        }
        (None, Some(verdict)) => assert!(verdict.lets_run(), "silent, and {verdict:?}"),
        (word, None) => assert_eq!(word, Some("deny"), "without a decision: {said}"),
        (word, _) => assert_eq!(word, None, "{said}"),
    }
}

fn permission(said: &Value) -> Option<&str> {
    said.pointer("/hookSpecificOutput/permissionDecision").map(|word| word.as_str().unwrap())
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
    EventId::parse(payload.peek("tool_use_id")?).ok()
}

/// The record of an event.
fn recorded(store: &MemoryStore, session: &SessionId, id: &EventId) -> Option<Vec<u8>> {
    store.open(session).unwrap().find(id).unwrap()
}

/// How many lines a journal has, and the last one.
fn last(store: &MemoryStore, session: &SessionId) -> (usize, Option<Vec<u8>>) {
    let (mut count, mut last) = (0, None);
    lines(store, session, &mut |line| {
        count += 1;
        last = Some(line.to_vec());
    });
    (count, last)
}

fn check_replayed(store: &MemoryStore) {
    let mut replay = Replay::default();
    let session = SessionId::parse(moves::SESSION).unwrap();
    let view = store.view_session(&session, Reading::Consistent).unwrap().unwrap();
    view.for_each(|line| replay.line(&view, line)).unwrap();
    let report = replay.finish();
    assert!(report.events > 0 && report.is_proven(), "{report:?}");
}
