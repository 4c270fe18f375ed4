//! The chat completions format.

use serde_json::{Value, json};

use super::split_in_pieces;
use crate::fields::{list_field, set_field};
use crate::scripted::script::ScriptStep;

/// The complete answer.
pub(super) fn completion(step: &ScriptStep, model: &Value, id: &str) -> Value {
    let mut message = json!({ "role": "assistant", "content": step.sent_text() });
    if !step.tools.is_empty() {
        let calls = step.tools.iter().enumerate().map(|(n, tool)| {
            let function = json!({ "name": tool.name, "arguments": tool.arguments() });
            json!({ "id": format!("call_{id}{n:02}"), "type": "function", "function": function })
        });
        set_field(&mut message, "tool_calls", calls.collect());
    }
    let ends = if step.tools.is_empty() { "stop" } else { "tool_calls" };
    let reason = if step.is_cut_off() { "length" } else { ends };
    let (input, output) = (step.usage.input_sum(), step.usage.output);
    json!({
        "id": format!("chatcmpl_{id}"),
        "object": "chat.completion",
        "model": model,
        "choices": [{ "index": 0, "message": message, "finish_reason": reason }],
        "usage": {
            "prompt_tokens": input,
            "prompt_tokens_details": { "cached_tokens": step.usage.cache_read },
            "completion_tokens": output,
            "total_tokens": input + output,
        },
    })
}

/// The events of a stream with the same answer.
pub(super) fn events(completion: &Value) -> Vec<Value> {
    let null = Value::Null;
    let at = |pointer: &str| completion.pointer(pointer).unwrap_or(&null);
    let message = at("/choices/0/message");
    let chunk = |choices: Value, usage: &Value| {
        json!({
            "id": at("/id"), "object": "chat.completion.chunk", "model": at("/model"),
            "choices": choices, "usage": usage,
        })
    };
    let delta = |delta: Value, reason: &Value| {
        chunk(json!([{ "index": 0, "delta": delta, "finish_reason": reason }]), &null)
    };
    let first = json!({ "role": "assistant", "content": "" });
    let mut events =
        vec![delta(first, &null), delta(json!({ "content": message.get("content") }), &null)];
    for (index, call) in list_field(message, "tool_calls").enumerate() {
        let mut first_piece = call.clone();
        set_field(&mut first_piece, "index", json!(index));
        if let Some(function) = first_piece.get_mut("function") {
            set_field(function, "arguments", json!(""));
        }
        events.push(delta(json!({ "tool_calls": [first_piece] }), &null));
        let arguments = call.pointer("/function/arguments").and_then(Value::as_str);
        for piece in split_in_pieces(arguments.unwrap_or_default()) {
            let more = json!({ "index": index, "function": { "arguments": piece } });
            events.push(delta(json!({ "tool_calls": [more] }), &null));
        }
    }
    events.push(delta(json!({}), at("/choices/0/finish_reason")));
    events.push(chunk(json!([]), at("/usage")));
    events
}
