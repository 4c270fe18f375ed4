//! The Anthropic Messages format.

use serde_json::{Value, json};

use super::split_in_pieces;
use crate::fields::{list_field, set_field};
use crate::scripted::script::ScriptStep;

/// The complete answer.
pub(super) fn message(step: &ScriptStep, model: &Value, id: &str) -> Value {
    let mut content = Vec::new();
    if !step.sent_text().is_empty() {
        content.push(json!({ "type": "text", "text": step.sent_text() }));
    }
    for (n, tool) in step.tools.iter().enumerate() {
        let (name, id) = (&tool.name, format!("toolu_{id}{n:02}"));
        // Invalid arguments are only possible in a stream. They are stored here as a string.
        let input = tool.text.as_ref().map_or_else(|| tool.input.clone(), |text| json!(text));
        content.push(json!({ "type": "tool_use", "id": id, "name": name, "input": input }));
    }
    let ends = if step.tools.is_empty() { "end_turn" } else { "tool_use" };
    json!({
        "id": format!("msg_{id}"),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": if step.is_cut_off() { "max_tokens" } else { ends },
        "stop_sequence": null,
        "usage": {
            "input_tokens": step.usage.input,
            "cache_creation_input_tokens": step.usage.cache_creation,
            "cache_read_input_tokens": step.usage.cache_read,
            "output_tokens": step.usage.output,
        },
    })
}

/// The events of a stream with the same answer.
pub(super) fn events(mut message: Value) -> Vec<Value> {
    let blocks: Vec<Value> = list_field(&message, "content").cloned().collect();
    set_field(&mut message, "content", json!([]));
    let stop = message.get_mut("stop_reason").map(Value::take).unwrap_or_default();
    let usage = message.get("usage").cloned().unwrap_or_default();
    let mut events = vec![json!({ "type": "message_start", "message": message })];
    for (index, block) in blocks.iter().enumerate() {
        events.extend(block_events(index, block));
    }
    let delta = json!({ "stop_reason": stop, "stop_sequence": null });
    events.push(json!({ "type": "message_delta", "delta": delta, "usage": usage }));
    events.push(json!({ "type": "message_stop" }));
    events
}

/// The events of a block: it starts empty, and its content follows.
fn block_events(index: usize, block: &Value) -> Vec<Value> {
    let mut start = block.clone();
    let deltas: Vec<Value> = match block.get("input") {
        Some(input) => {
            set_field(&mut start, "input", json!({}));
            let text = input.as_str().map_or_else(|| input.to_string(), str::to_owned);
            let delta = |piece| json!({ "type": "input_json_delta", "partial_json": piece });
            split_in_pieces(&text).into_iter().map(delta).collect()
        }
        None => {
            set_field(&mut start, "text", json!(""));
            vec![json!({ "type": "text_delta", "text": block.get("text") })]
        }
    };
    let starts = json!({ "type": "content_block_start", "index": index, "content_block": start });
    let more = |delta| json!({ "type": "content_block_delta", "index": index, "delta": delta });
    let stops = json!({ "type": "content_block_stop", "index": index });
    std::iter::once(starts).chain(deltas.into_iter().map(more)).chain([stops]).collect()
}
