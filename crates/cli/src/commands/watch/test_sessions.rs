//! Sessions for tests, created by the real runtime, so that the tests use real summaries.

use jackline_engine::wire::parse_line;
use jackline_engine::{SessionId, SessionSummary};
use jackline_host::HostAccess;
use jackline_journal::FileStore;
use jackline_runtime::{AnswerKind, Definitions, Runtime};
use serde_json::{Value, json};

/// The summary of a session after some events.
pub(super) fn play_events(definition: &str, events: &[Value]) -> SessionSummary {
    let root = tempfile::tempdir().unwrap();
    let work = root.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let definition = jackline_definition::load(definition.as_bytes(), "jackline.yaml").unwrap();
    let store = FileStore::new(root.path().join("home"), 0);
    let definitions =
        Definitions::made(definition, HostAccess::of_machine(Some(store.home()))).unwrap();
    let mut runtime = Runtime::new(store, definitions, work);
    let session = SessionId::parse("s").unwrap();
    for event in events {
        let event = parse_line(event.to_string().as_bytes(), Some(&session)).unwrap();
        let answer = runtime.answer(event);
        assert_eq!(answer.outcome, AnswerKind::Decided, "{answer:?}");
    }
    runtime.summary(&session).unwrap()
}

/// The events of a call: the proposal and the result.
pub(super) fn call_events(
    id: &str,
    tool: &str,
    args: &Value,
    status: &str,
    result: &str,
) -> Vec<Value> {
    vec![
        json!({ "event": "tool_proposed", "call": id, "tool": tool, "args": args }),
        json!({ "event": "tool_finished", "call": id, "status": status, "result": result }),
    ]
}
