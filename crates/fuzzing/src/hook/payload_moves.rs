//! Makes payloads as the client sends them, with one unusual field.

use serde_json::{Value, json};

/// The session of all payloads.
pub(super) const SESSION: &str = "s";

/// A call that is always denied, in the same session.
pub(super) const DENIED_PAYLOAD: &str = r#"{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"git push"},"tool_use_id":"denied"}"#;

/// How many payloads one input may have. Each one runs a hook process. The target `session` has
/// longer stories.
const PAYLOADS_MAX: usize = 4;

const EVENTS: [&str; 16] = [
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "UserPromptSubmit",
    "Stop",
    "SubagentStart",
    "SubagentStop",
    "SessionStart",
    "SessionEnd",
    "PostToolBatch",
    "PermissionDenied",
    "PreCompact",
    "PostCompact",
    "Notification",
    "ConfigChange",
    "",
];

const LINES: [&str; 8] = [
    "echo hello > out.txt",
    "git push --force",
    "make deploy",
    "cat a.txt | bash",
    "rm -rf .",
    "cp a.txt jackline.yaml",
    "make test",
    "",
];

/// The fields that may be unusual. The last one is in no payload, so that payload is normal.
const FIELDS: [&str; 25] = [
    "session_id",
    "transcript_path",
    "cwd",
    "permission_mode",
    "hook_event_name",
    "agent_id",
    "tool_name",
    "tool_input",
    "tool_use_id",
    "tool_response",
    "error",
    "reason",
    "is_interrupt",
    "prompt",
    "source",
    "model",
    "stop_hook_active",
    "last_assistant_message",
    "background_tasks",
    "tool_calls",
    "prompt_id",
    "agent_type",
    "file_path",
    "tomorrow",
    "",
];

/// Four bytes make a payload: its event, the call, the unusual field and the value of that field.
pub(super) fn payloads(bytes: &[u8]) -> Vec<Value> {
    let moves = bytes.chunks_exact(4).take(PAYLOADS_MAX);
    moves.map(|chosen| payload(chosen.try_into().unwrap_or_default())).collect()
}

fn payload([event, about, field, value]: [u8; 4]) -> Value {
    let event = pick(&EVENTS, event);
    let call = format!("c{}", about % 4);
    let inside = about >= 128;
    let mut payload = json!({
        "session_id": SESSION,
        "transcript_path": "/nowhere/s.jsonl",
        "cwd": "/nowhere/jackline",
        "permission_mode": "default",
        "hook_event_name": event,
        "tool_use_id": call,
        "prompt": "go on",
        "source": "startup",
        "stop_hook_active": about % 2 == 0,
        "last_assistant_message": "done",
        "error": "Exit code 3",
        "background_tasks": [],
    });
    let (tool, input, response) = call_of(about / 4 % 16);
    let Value::Object(map) = &mut payload else { return payload };
    for (name, given) in [("tool_name", tool), ("tool_input", input), ("tool_response", response)] {
        map.insert(name.to_owned(), given);
    }
    if inside {
        map.insert("agent_id".to_owned(), json!("a1"));
    }
    let field = pick(&FIELDS, field);
    if !field.is_empty() {
        match unusual_value(value) {
            Some(value) => map.insert(field.to_owned(), value),
            None => map.remove(field),
        };
    }
    payload
}

fn call_of(number: u8) -> (Value, Value, Value) {
    let file = json!({"filePath": "/etc/hostname", "startLine": 1, "numLines": 1, "totalLines": 2});
    match number {
        0..8 => {
            let line = pick(&LINES, number);
            (json!("Bash"), json!({ "command": line }), json!({"stdout": "x", "stderr": "y"}))
        }
        8 | 9 => {
            let input = json!({"file_path": "/etc/hostname"});
            (json!("Read"), input, json!({"type": "text", "file": file}))
        }
        10 | 11 => {
            let input = json!({"file_path": "/etc/hostname", "content": "x"});
            (json!("Write"), input, json!({"type": "update", "filePath": "/etc/hostname"}))
        }
        12 => (json!("Agent"), json!({"prompt": "x"}), json!({"status": "async_launched"})),
        _ => (json!("mcp__x__y"), json!({"a": [1.5]}), json!([{"type": "text", "text": "x"}])),
    }
}

/// The value of an unusual field, or nothing if the field is missing.
fn unusual_value(value: u8) -> Option<Value> {
    Some(match value % 16 {
        0 => return None,
        1 => Value::Null,
        2 => json!(true),
        3 => json!(-1),
        4 => json!(u64::MAX),
        5 => json!(""),
        6 => json!("x".repeat(5000)),
        7 => json!("../../x\u{0}\n\u{1b}[2J"),
        8 => json!([]),
        9 => json!([null, {"type": "subagent"}]),
        10 => json!({}),
        11 => json!({"command": "git push", "file_path": ["x"], "stdout": 3, "file": {}}),
        12 => json!("bypassPermissions"),
        13 => json!("compact"),
        14 => json!("-"),
        _ => json!("<task-notification>jl-000000"),
    })
}

fn pick<'a>(from: &[&'a str], number: u8) -> &'a str {
    from.get(usize::from(number) % from.len().max(1)).copied().unwrap_or_default()
}
