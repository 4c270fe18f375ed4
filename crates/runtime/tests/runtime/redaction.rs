//! Secrets never reach the disk, and decisions without them replay.

use std::fs;

use jackline_journal::JournalNote;
use serde_json::json;

use crate::support::{RuntimeTest, files, send};

/// A secret of each kind, as an agent might reveal it.
const SECRETS: [&str; 5] = [
    "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8",
    "AKIAIOSFODNN7EXAMPLE",
    concat!("sk-", "ant-", "api03-abcdefghij0123456789"),
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVPmB92K27u",
    "hunter2hunter2",
];

/// A text that contains all of them.
fn slip() -> String {
    let [github, aws, anthropic, jwt, password] = SECRETS;
    format!("use {github} with {aws} or {anthropic}; Bearer {jwt}; DB_PASSWORD={password} make")
}

/// The files below the state home that contain a secret.
fn leaks(world: &RuntimeTest) -> Vec<String> {
    let mut leaks = Vec::new();
    for file in files(world.store.home()) {
        let bytes = fs::read(&file).unwrap();
        for secret in SECRETS {
            if bytes.windows(secret.len()).any(|window| window == secret.as_bytes()) {
                let name = file.strip_prefix(world.store.home()).unwrap().display().to_string();
                leaks.push(format!("`{secret}` is in {name}"));
            }
        }
    }
    leaks
}

#[test]
fn no_payload_leaves_a_secret_in_any_file() {
    let world = RuntimeTest::new("completion: { files: [report.md] }");
    let mut runtime = world.runtime();
    let (slip, password) = (slip(), SECRETS[4]);
    let long = format!("{}\n{slip}\n{}", "x".repeat(50_000), "y".repeat(50_000));
    let events = [
        json!({"event": "session_started"}),
        json!({"event": "prompt_submitted", "text": slip}),
        json!({"event": "prompt_submitted", "text": long}),
        json!({"event": "tool_proposed", "call": "1", "tool": "bash",
            "args": {"command": slip, "env": {"DB_PASSWORD": password}, "list": [[slip]]}}),
        json!({"event": "tool_proposed", "call": "2", "tool": "bash", "args": {"content": long}}),
        json!({"event": "tool_proposed", "call": "3", "tool": "bash",
            "args_text": json!({"command": slip, "password": password}).to_string()}),
        json!({"event": "tool_proposed", "call": "4", "tool": "bash", "args_text": long}),
        json!({"event": "tool_finished", "call": "1", "status": "ok", "result": slip}),
        json!({"event": "tool_finished", "call": "2", "status": "ok", "result": long}),
        json!({"event": "plan_proposed", "plan": {"steps": [slip]}}),
        json!({"event": "plan_proposed", "plan_text": slip}),
        json!({"event": "output_proposed", "text": slip}),
        json!({"event": "compaction_finished", "summary": slip}),
        json!({"event": "iteration_ended", "error": slip}),
        json!({"event": "advisor_answered", "instruction": slip, "error": slip}),
        json!({"event": "advisor_answered", "instruction": long}),
        json!({"event": "control", "action": "pause", "why": slip}),
        json!({"event": "control", "action": "resume", "meta": {"note": slip, "token": password}}),
        json!({"event": "stop_proposed", "output": slip}),
        json!({"event": "session_ended"}),
    ];
    for event in &events {
        send(&mut runtime, &event.to_string());
    }
    assert_eq!(world.records("s").len(), events.len());
    assert_eq!(leaks(&world), [""; 0]);
    // The blobs contain the rest of the texts.
    assert!(fs::read_dir(world.store.home().join("blobs")).unwrap().count() > 0);
    world.prove("s");
}

/// All other free text of a client is stored in the same files.
#[test]
fn no_other_text_leaves_a_secret_in_any_file() {
    let slip = slip();
    let cases = [
        ("a stop's reason", json!({"event": "stop_proposed", "reason": slip})),
        (
            "the key of an argument",
            json!({"event": "tool_proposed", "call": "1", "tool": "t", "args": {slip.clone(): 1}}),
        ),
        ("an iteration's task", json!({"event": "iteration_ended", "task": slip})),
        ("an iteration's phase", json!({"event": "iteration_ended", "phase": slip})),
        ("an iteration's build", json!({"event": "iteration_ended", "build": slip})),
        ("the person who controls", json!({"event": "control", "action": "pause", "by": slip})),
        ("an attempt's stage", json!({"event": "attempt_stage", "attempt": "a", "stage": slip})),
        ("an output's name", json!({"event": "output_proposed", "name": slip})),
        ("an advisor's model", json!({"event": "advisor_answered", "model": slip})),
        ("another model", json!({"event": "model_changed", "to": slip, "reason": slip})),
        ("a client's name", json!({"event": "session_started", "client": slip})),
    ];
    let leaking: Vec<&str> = cases
        .iter()
        .filter(|(_, event)| {
            let world = RuntimeTest::new("");
            send(&mut world.runtime(), &event.to_string());
            !leaks(&world).is_empty()
        })
        .map(|(name, _)| *name)
        .collect();
    assert_eq!(leaking, [""; 0]);
}

/// The note about an invalid line quotes the line.
#[test]
fn a_note_leaves_no_secret_in_any_file() {
    let world = RuntimeTest::new("");
    let mut runtime = world.runtime();
    let reason = format!("unknown event `{}`", SECRETS[0]);
    runtime.add_journal_note(JournalNote::Malformed { line: 1, reason });
    send(&mut runtime, r#"{"event":"session_started"}"#);
    assert_eq!(world.records("s")[0].notes.len(), 1);
    assert_eq!(leaks(&world), [""; 0]);
}

#[test]
fn a_definition_may_switch_redaction_off() {
    let world = RuntimeTest::new("journal: { redact: off }");
    send(&mut world.runtime(), &json!({"event": "prompt_submitted", "text": slip()}).to_string());
    // In the journal, and in the goal inside the saved state.
    assert_eq!(leaks(&world).len(), 2 * SECRETS.len());
    world.prove("s");
}

/// A resend contains its secret again, and is still recognised as the same event.
#[test]
fn a_resend_with_a_secret_is_recognised() {
    let world = RuntimeTest::new("");
    let mut runtime = world.runtime();
    let event = json!({"event": "tool_proposed", "id": "e", "call": "c", "tool": "bash",
        "args": {"command": slip()}});
    let first = send(&mut runtime, &event.to_string());
    assert_eq!(send(&mut runtime, &event.to_string()), first);
    assert_eq!(world.records("s").len(), 1);
}
