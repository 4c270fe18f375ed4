//! Claude Code as a hook sees it: its payloads, its environment and the answers it accepts.

use std::process::Command;

use jackline_host::is_started_by_agent_tool;
use serde_json::{Value, json};

use crate::support::{CliOutput, CliWorld, JACKLINE, run_with_input};

pub(crate) const SESSION: &str = "acd99a02-37be-4afd-9946-f4a8a0abd8ed";

/// One rule that denies and one rule that needs an approval.
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

pub(crate) const DENIED_REASON: &str =
    "Force pushes rewrite shared history. (rule `no-force-push`, at `git push -f`)";

/// `jackline hook claude`, as a client without a terminal starts it.
pub(crate) fn hook_command(world: &CliWorld) -> Command {
    command_in_hook_environment(world, JACKLINE, &["hook", "claude"])
}

/// A command for any program, with the environment of a hook.
pub(crate) fn command_in_hook_environment(
    world: &CliWorld,
    program: &str,
    words: &[&str],
) -> Command {
    // Claude Code is not trusted as the client if an agent started it.
    let has_agent_above = is_started_by_agent_tool();
    let mut command =
        if has_agent_above { world.isolated_command(program) } else { world.command(program) };
    command
        .args(words)
        .env("CLAUDE_PROJECT_DIR", world.workspace())
        .env("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")
        // Files that cannot be written to the state home go here, so they stay inside this test.
        .env("XDG_RUNTIME_DIR", world.root());
    command
}

/// Builds a payload: the fields that every payload has, and the given extra fields.
pub(crate) fn payload(world: &CliWorld, event: &str, extra: Value) -> Value {
    let mut payload = json!({
        "session_id": SESSION,
        "transcript_path": format!("/nowhere/{SESSION}.jsonl"),
        "cwd": world.workspace(),
        "prompt_id": "1d462ff3-b06a-4de9-b87d-55ab7a4c50db",
        "permission_mode": "default",
        "hook_event_name": event,
    });
    merge(&mut payload, extra);
    payload
}

pub(crate) fn merge(payload: &mut Value, extra: Value) {
    let (Value::Object(payload), Value::Object(extra)) = (payload, extra) else { panic!() };
    payload.extend(extra);
}

/// A shell command that is proposed.
pub(crate) fn bash_proposed(world: &CliWorld, call: &str, line: &str) -> Value {
    let input = json!({"command": line, "description": "d"});
    let extra = json!({"tool_name": "Bash", "tool_input": input, "tool_use_id": call});
    payload(world, "PreToolUse", extra)
}

/// A shell command that finished.
pub(crate) fn bash_finished(world: &CliWorld, call: &str, line: &str) -> Value {
    let mut payload = bash_proposed(world, call, line);
    let response = json!({"stdout": "OUT", "stderr": "", "interrupted": false, "isImage": false});
    merge(
        &mut payload,
        json!({"hook_event_name": "PostToolUse", "tool_response": response, "duration_ms": 6}),
    );
    payload
}

pub(crate) fn stop_payload(world: &CliWorld, active: bool) -> Value {
    let extra = json!({
        "stop_hook_active": active,
        "last_assistant_message": "done",
        "background_tasks": [],
        "session_crons": [],
    });
    payload(world, "Stop", extra)
}

/// Every event with all its fields, as Claude Code sends them.
pub(crate) fn all_payloads(world: &CliWorld) -> Vec<Value> {
    let event_payload = |event: &str, extra| payload(world, event, extra);
    let calls = json!([{"tool_name": "Bash", "tool_use_id": "c1", "tool_response": "OUT"}]);
    let mut failed = bash_proposed(world, "c1", "exit 3");
    let failure = json!({"hook_event_name": "PostToolUseFailure", "error": "Exit code 3", "is_interrupt": false});
    merge(&mut failed, failure);
    let mut refused = bash_proposed(world, "c1", "echo");
    merge(&mut refused, json!({"hook_event_name": "PermissionDenied", "reason": "no"}));
    let mut subagent_stop = stop_payload(world, false);
    let subagent = json!({"hook_event_name": "SubagentStop", "agent_id": "a1", "agent_type": "x"});
    merge(&mut subagent_stop, subagent);
    vec![
        event_payload("SessionStart", json!({"source": "startup", "model": "claude-sonnet-4-5"})),
        event_payload("UserPromptSubmit", json!({"prompt": "do the work", "source": "user"})),
        bash_proposed(world, "c1", "echo hello"),
        bash_finished(world, "c1", "echo hello"),
        failed,
        event_payload("PostToolBatch", json!({"tool_calls": calls})),
        refused,
        event_payload("SubagentStart", json!({"agent_id": "a1", "agent_type": "x"})),
        subagent_stop,
        event_payload("PreCompact", json!({"trigger": "auto", "custom_instructions": null})),
        event_payload("PostCompact", json!({"trigger": "auto"})),
        stop_payload(world, false),
        event_payload("SessionEnd", json!({"reason": "other"})),
    ]
}

pub(crate) fn send_payload(world: &CliWorld, payload: &Value) -> CliOutput {
    run_with_input(&mut hook_command(world), payload.to_string().as_bytes())
}

/// Sends a payload to the hook and returns its answer, or null if it printed nothing.
pub(crate) fn hook_answer(world: &CliWorld, payload: &Value) -> Value {
    parse_answer(&send_payload(world, payload))
}

/// Parses the answer of a hook process, or returns null if it printed nothing.
pub(crate) fn parse_answer(run: &CliOutput) -> Value {
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    if run.stdout.is_empty() { Value::Null } else { serde_json::from_str(&run.stdout).unwrap() }
}

/// The answer with which the hook denies a call.
pub(crate) fn deny_answer(reason: &str) -> Value {
    decision_answer("deny", reason)
}

pub(crate) fn decision_answer(decision: &str, reason: &str) -> Value {
    json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": decision,
        "permissionDecisionReason": reason,
    }})
}

pub(crate) fn permission_decision(answer: &Value) -> Option<&str> {
    answer.pointer("/hookSpecificOutput/permissionDecision").and_then(Value::as_str)
}

/// Returns the session summary that `jackline status` prints.
pub(crate) fn session_summary(world: &CliWorld) -> Value {
    let run = world.jackline(&["status", SESSION, "--json"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    run.stdout.parse::<Value>().unwrap()["summary"].clone()
}

/// Returns the fault reasons in the journal notes of the last record.
pub(crate) fn last_fault_reasons(world: &CliWorld) -> Vec<String> {
    let records = world.records(SESSION);
    fault_reasons(&records.last().unwrap().notes)
}

pub(crate) fn fault_reasons(notes: &[jackline_journal::JournalNote]) -> Vec<String> {
    let reason = |note: &jackline_journal::JournalNote| match note {
        jackline_journal::JournalNote::Fault { reason, .. } => Some(reason.clone()),
        _ => None,
    };
    notes.iter().filter_map(reason).collect()
}
