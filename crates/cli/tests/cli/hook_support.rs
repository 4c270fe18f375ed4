//! Claude Code from the side of a hook: its payloads, its environment, and
//! what it hears.

use std::process::Command;

use jackline_host::forged_by_agent;
use serde_json::{Value, json};

use crate::support::{JACKLINE, Run, World, feed};

pub(crate) const SESSION: &str = "acd99a02-37be-4afd-9946-f4a8a0abd8ed";

/// One rule that denies and one that asks.
pub(crate) const RULES: &str = r#"
rules:
  - name: no-force-push
    tool: exec
    command: git push
    when: 'argv.exists(a, a == "-f")'
    deny: Force pushes rewrite shared history.
    examples: { deny: ["git push -f"], allow: ["git push"] }
  - name: deployments
    tool: exec
    command: make deploy
    ask: A person looks at deployments.
    examples: { ask: ["make deploy"], allow: ["make test"] }
"#;

pub(crate) const DENIED: &str =
    "Force pushes rewrite shared history. (rule `no-force-push`, at `git push -f`)";

/// `jackline hook claude` as the client starts it where nobody sits.
pub(crate) fn command(world: &World) -> Command {
    prepared(world, JACKLINE, &["hook", "claude"])
}

/// Any program with the environment of a hook.
pub(crate) fn prepared(world: &World, program: &str, words: &[&str]) -> Command {
    // A client that an agent has started would not be believed.
    let forged = forged_by_agent();
    let mut command = if forged { world.apart(program) } else { world.command(program) };
    command
        .args(words)
        .env("CLAUDE_PROJECT_DIR", world.work())
        .env("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")
        // What is left where the state home takes nothing stays in this test.
        .env("XDG_RUNTIME_DIR", world.root());
    command
}

/// What every payload holds, and what this one holds beyond that.
pub(crate) fn payload(world: &World, event: &str, beyond: Value) -> Value {
    let mut payload = json!({
        "session_id": SESSION,
        "transcript_path": format!("/nowhere/{SESSION}.jsonl"),
        "cwd": world.work(),
        "prompt_id": "1d462ff3-b06a-4de9-b87d-55ab7a4c50db",
        "permission_mode": "default",
        "hook_event_name": event,
    });
    merge(&mut payload, beyond);
    payload
}

pub(crate) fn merge(payload: &mut Value, beyond: Value) {
    let (Value::Object(payload), Value::Object(beyond)) = (payload, beyond) else { panic!() };
    payload.extend(beyond);
}

/// A command line that is about to run.
pub(crate) fn bash(world: &World, call: &str, line: &str) -> Value {
    let input = json!({"command": line, "description": "d"});
    let beyond = json!({"tool_name": "Bash", "tool_input": input, "tool_use_id": call});
    payload(world, "PreToolUse", beyond)
}

/// A command line that has run.
pub(crate) fn ran(world: &World, call: &str, line: &str) -> Value {
    let mut payload = bash(world, call, line);
    let response = json!({"stdout": "OUT", "stderr": "", "interrupted": false, "isImage": false});
    merge(
        &mut payload,
        json!({"hook_event_name": "PostToolUse", "tool_response": response, "duration_ms": 6}),
    );
    payload
}

pub(crate) fn stop(world: &World, active: bool) -> Value {
    let beyond = json!({
        "stop_hook_active": active,
        "last_assistant_message": "done",
        "background_tasks": [],
        "session_crons": [],
    });
    payload(world, "Stop", beyond)
}

/// Every event with all its fields, as the client sends them.
pub(crate) fn all(world: &World) -> Vec<Value> {
    let told = |event: &str, beyond| payload(world, event, beyond);
    let calls = json!([{"tool_name": "Bash", "tool_use_id": "c1", "tool_response": "OUT"}]);
    let mut failed = bash(world, "c1", "exit 3");
    let failure = json!({"hook_event_name": "PostToolUseFailure", "error": "Exit code 3", "is_interrupt": false});
    merge(&mut failed, failure);
    let mut refused = bash(world, "c1", "echo");
    merge(&mut refused, json!({"hook_event_name": "PermissionDenied", "reason": "no"}));
    let mut subagent_stop = stop(world, false);
    let subagent = json!({"hook_event_name": "SubagentStop", "agent_id": "a1", "agent_type": "x"});
    merge(&mut subagent_stop, subagent);
    vec![
        told("SessionStart", json!({"source": "startup", "model": "claude-sonnet-4-5"})),
        told("UserPromptSubmit", json!({"prompt": "do the work", "source": "user"})),
        bash(world, "c1", "echo hello"),
        ran(world, "c1", "echo hello"),
        failed,
        told("PostToolBatch", json!({"tool_calls": calls})),
        refused,
        told("SubagentStart", json!({"agent_id": "a1", "agent_type": "x"})),
        subagent_stop,
        told("PreCompact", json!({"trigger": "auto", "custom_instructions": null})),
        told("PostCompact", json!({"trigger": "auto"})),
        stop(world, false),
        told("SessionEnd", json!({"reason": "other"})),
    ]
}

pub(crate) fn tell(world: &World, payload: &Value) -> Run {
    feed(&mut command(world), payload.to_string().as_bytes())
}

/// What the client hears; null where nothing is said.
pub(crate) fn hear(world: &World, payload: &Value) -> Value {
    heard(&tell(world, payload))
}

pub(crate) fn heard(run: &Run) -> Value {
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    if run.stdout.is_empty() { Value::Null } else { serde_json::from_str(&run.stdout).unwrap() }
}

/// What `hear` gives for a denial.
pub(crate) fn deny(reason: &str) -> Value {
    decision("deny", reason)
}

pub(crate) fn decision(decision: &str, reason: &str) -> Value {
    json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": decision,
        "permissionDecisionReason": reason,
    }})
}

pub(crate) fn permission(heard: &Value) -> Option<&str> {
    heard.pointer("/hookSpecificOutput/permissionDecision").and_then(Value::as_str)
}

/// Where the session stands.
pub(crate) fn status(world: &World) -> Value {
    let run = world.jackline(&["status", SESSION, "--json"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    run.stdout.parse::<Value>().unwrap()["summary"].clone()
}

/// What the record of the last event says beside it.
pub(crate) fn last_faults(world: &World) -> Vec<String> {
    let records = world.records(SESSION);
    faults(&records.last().unwrap().notes)
}

pub(crate) fn faults(notes: &[jackline_journal::Note]) -> Vec<String> {
    let reason = |note: &jackline_journal::Note| match note {
        jackline_journal::Note::Fault { reason, .. } => Some(reason.clone()),
        _ => None,
    };
    notes.iter().filter_map(reason).collect()
}
