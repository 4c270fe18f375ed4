//! One step in the words of Anthropic Messages, at once or as a stream.

use serde_json::{Value, json};

use super::script::Step;

/// An answer that is ready to be sent.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    pub(super) body: Vec<u8>,
}

impl Reply {
    pub(super) fn json(status: u16, value: &Value) -> Self {
        Self { status, content_type: "application/json", body: value.to_string().into_bytes() }
    }
}

/// Answers a request with a step. `id` differs from every other answer's.
pub(super) fn reply(step: &Step, body: &Value, id: &str) -> Reply {
    if let Some(status) = step.status {
        let kind = if status == 529 { "overloaded_error" } else { "api_error" };
        let error = json!({ "type": kind, "message": "the script says so" });
        return Reply::json(status, &json!({ "type": "error", "error": error }));
    }
    let message = message(step, body, id);
    if body.get("stream").and_then(Value::as_bool).unwrap_or(false) {
        let body = stream(message).into_bytes();
        return Reply { status: 200, content_type: "text/event-stream", body };
    }
    Reply::json(200, &message)
}

fn message(step: &Step, body: &Value, id: &str) -> Value {
    let mut content = Vec::new();
    if !step.text.is_empty() {
        content.push(json!({ "type": "text", "text": step.text }));
    }
    for (n, tool) in step.tools.iter().enumerate() {
        let (name, input) = (&tool.name, &tool.input);
        let id = format!("toolu_{id}{n:02}");
        content.push(json!({ "type": "tool_use", "id": id, "name": name, "input": input }));
    }
    json!({
        "id": format!("msg_{id}"),
        "type": "message",
        "role": "assistant",
        "model": body.get("model").cloned().unwrap_or_else(|| "scripted".into()),
        "content": content,
        "stop_reason": if step.tools.is_empty() { "end_turn" } else { "tool_use" },
        "stop_sequence": null,
        "usage": {
            "input_tokens": step.usage.input,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": step.usage.output,
        },
    })
}

/// The same message as the events of a stream.
fn stream(mut message: Value) -> String {
    let content = message.get_mut("content").map(|content| std::mem::replace(content, json!([])));
    let stop = message.get_mut("stop_reason").map(Value::take).unwrap_or_default();
    let usage = message.get("usage").cloned().unwrap_or_default();
    let mut events = vec![json!({ "type": "message_start", "message": message })];
    let blocks = content.as_ref().and_then(Value::as_array);
    for (index, block) in blocks.into_iter().flatten().enumerate() {
        events.extend(block_events(index, block));
    }
    let delta = json!({ "stop_reason": stop, "stop_sequence": null });
    events.push(json!({ "type": "message_delta", "delta": delta, "usage": usage }));
    events.push(json!({ "type": "message_stop" }));
    events.iter().map(event).collect()
}

/// A block starts empty, and what is in it follows.
fn block_events(index: usize, block: &Value) -> [Value; 3] {
    let mut start = block.clone();
    let delta = match block.get("input") {
        Some(input) => {
            set(&mut start, "input", json!({}));
            json!({ "type": "input_json_delta", "partial_json": input.to_string() })
        }
        None => {
            set(&mut start, "text", json!(""));
            json!({ "type": "text_delta", "text": block.get("text") })
        }
    };
    [
        json!({ "type": "content_block_start", "index": index, "content_block": start }),
        json!({ "type": "content_block_delta", "index": index, "delta": delta }),
        json!({ "type": "content_block_stop", "index": index }),
    ]
}

fn set(block: &mut Value, name: &str, value: Value) {
    if let Some(field) = block.get_mut(name) {
        *field = value;
    }
}

fn event(data: &Value) -> String {
    let name = data.get("type").and_then(Value::as_str).unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n")
}
