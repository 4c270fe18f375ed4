//! Tests of an invalid tool name: every surface that runs calls refuses it and notes it in the next
//! record. The test for `jackline attempt` is in its crate.

use jackline_engine::EventKind;
use jackline_journal::JournalNote;
use serde_json::{Value, json};

use crate::mcp_support::WrapProcess;
use crate::run_support::{REPORT_COMPLETION, TaskDirectory, session_id, stop_code};
use crate::support::{CliWorld, JACKLINE, run_with_input};

/// A tool name with a bell character, as a model may write it.
const INVALID_NAME: &str = "re\u{7}ad";

const REASON: &str = "the name of the tool contains a control character";

/// Returns the names of the proposed calls and the journal notes of all records.
fn recorded_calls_and_notes(
    world: &CliWorld,
    session: &str,
) -> (Vec<&'static str>, Vec<JournalNote>) {
    let records = world.records(session);
    let calls: Vec<&'static str> = records
        .iter()
        .filter(|it| matches!(it.event.kind, EventKind::ToolProposed(_)))
        .map(|it| it.event.kind.name())
        .collect();
    (calls, records.into_iter().flat_map(|record| record.notes).collect())
}

fn expected_notes() -> Vec<JournalNote> {
    vec![JournalNote::Malformed { line: 1, reason: REASON.to_owned() }]
}

fn call(id: u32, tool: &str) -> String {
    let params = json!({ "name": tool, "arguments": {} });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
}

#[test]
fn the_mcp_server_refuses_and_notes_the_call() {
    let world = CliWorld::new("");
    let mut command = world.command(JACKLINE);
    command.args(["mcp", "serve", "--session", "s1"]);
    let run = run_with_input(&mut command, format!("{}\n", call(1, INVALID_NAME)).as_bytes());
    let answer: Value = serde_json::from_str(run.stdout.lines().next().unwrap()).unwrap();
    let error = &answer["result"]["structuredContent"]["error"];
    assert_eq!(error["code"], "invalid_tool", "{run:?}");
    assert_eq!(error["message"], format!("jackline: {REASON}"));
    assert_eq!(recorded_calls_and_notes(&world, "s1"), (vec![], expected_notes()));
    world.verify_and_replay("s1");
}

#[test]
fn the_proxy_refuses_and_notes_the_call_and_the_server_gets_nothing() {
    let world = CliWorld::new("");
    let mut proxy = WrapProcess::start_with(&world, &["--session", "s1"], "");
    let answer = proxy.request(&call(1, INVALID_NAME));
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert_eq!(answer["result"]["content"][0]["text"], format!("jackline: {REASON}"));
    proxy.disconnect();
    assert!(!world.workspace().join("received").exists());
    assert_eq!(recorded_calls_and_notes(&world, "s1"), (vec![], expected_notes()));
    world.verify_and_replay("s1");
}

#[test]
fn a_run_refuses_and_notes_the_call_and_the_model_continues() {
    let world = CliWorld::new("");
    let wrong = json!([{ "tool": INVALID_NAME, "args": {} }]);
    let right =
        json!([{ "tool": "write_file", "args": { "path": "report.md", "content": "done" } }]);
    let steps = json!([{ "calls": wrong }, { "calls": right }, { "text": "It is written." }]);
    let script = json!({ "steps": steps }).to_string();
    let task = TaskDirectory::new(&world, REPORT_COMPLETION, &[("main", &script)]);
    let run = task.run(&[]);
    assert_eq!(stop_code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let id = session_id(&run);
    let refused = run.stdout.lines().find(|line| line.contains(REASON));
    let refused: Value = serde_json::from_str(refused.unwrap()).unwrap();
    assert_eq!((&refused["event"], &refused["decision"]), (&json!("called"), &json!("deny")));
    let (calls, notes) = recorded_calls_and_notes(&world, &id);
    assert_eq!((calls.len(), notes), (1, expected_notes()));
    world.verify_and_replay(&id);
}
