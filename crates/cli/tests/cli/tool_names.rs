//! A name that no tool can have: every surface that runs calls refuses it, and writes it down
//! with the next record. The surface of `jackline attempt` has its test beside the crate.

use jackline_engine::EventKind;
use jackline_journal::Note;
use serde_json::{Value, json};

use crate::mcp_support::Proxy;
use crate::run_support::{REPORT, Task, code, session};
use crate::support::{JACKLINE, World, feed};

/// A model wrote a bell into the name.
const NAME: &str = "re\u{7}ad";

const REASON: &str = "the name of the tool holds a control character";

/// The names of the events, and what the records note besides.
fn recorded(world: &World, session: &str) -> (Vec<&'static str>, Vec<Note>) {
    let records = world.records(session);
    let calls: Vec<&'static str> = records
        .iter()
        .filter(|it| matches!(it.event.kind, EventKind::ToolProposed(_)))
        .map(|it| it.event.kind.name())
        .collect();
    (calls, records.into_iter().flat_map(|record| record.notes).collect())
}

fn noted() -> Vec<Note> {
    vec![Note::Malformed { line: 1, reason: REASON.to_owned() }]
}

fn call(id: u32, tool: &str) -> String {
    let params = json!({ "name": tool, "arguments": {} });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
}

#[test]
fn the_server_of_tools_refuses_and_notes_it() {
    let world = World::new("");
    let mut command = world.command(JACKLINE);
    command.args(["mcp", "serve", "--session", "s1"]);
    let run = feed(&mut command, format!("{}\n", call(1, NAME)).as_bytes());
    let answer: Value = serde_json::from_str(run.stdout.lines().next().unwrap()).unwrap();
    let error = &answer["result"]["structuredContent"]["error"];
    assert_eq!(error["code"], "invalid_tool", "{run:?}");
    assert_eq!(error["message"], format!("jackline: {REASON}"));
    assert_eq!(recorded(&world, "s1"), (vec![], noted()));
    world.prove("s1");
}

#[test]
fn the_proxy_refuses_and_notes_it_and_the_server_gets_nothing() {
    let world = World::new("");
    let mut proxy = Proxy::start_with(&world, &["--session", "s1"], "");
    let answer = proxy.ask(&call(1, NAME));
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert_eq!(answer["result"]["content"][0]["text"], format!("jackline: {REASON}"));
    proxy.leave();
    assert!(!world.work().join("received").exists());
    assert_eq!(recorded(&world, "s1"), (vec![], noted()));
    world.prove("s1");
}

#[test]
fn a_run_refuses_and_notes_it_and_the_model_goes_on() {
    let world = World::new("");
    let wrong = json!([{ "tool": NAME, "args": {} }]);
    let right =
        json!([{ "tool": "write_file", "args": { "path": "report.md", "content": "done" } }]);
    let steps = json!([{ "calls": wrong }, { "calls": right }, { "text": "It is written." }]);
    let script = json!({ "steps": steps }).to_string();
    let task = Task::new(&world, REPORT, &[("main", &script)]);
    let run = task.run(&[]);
    assert_eq!(code(&run), "OBJECTIVE_ACHIEVED", "{run:?}");
    let id = session(&run);
    let refused = run.stdout.lines().find(|line| line.contains(REASON));
    let refused: Value = serde_json::from_str(refused.unwrap()).unwrap();
    assert_eq!((&refused["event"], &refused["decision"]), (&json!("called"), &json!("deny")));
    let (calls, notes) = recorded(&world, &id);
    assert_eq!((calls.len(), notes), (1, noted()));
    world.prove(&id);
}
