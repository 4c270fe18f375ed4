//! The Gemini format.

use serde_json::{Value, json};

use crate::fields::{list_field, set_field};
use crate::scripted::script::ScriptStep;

/// The complete answer.
pub(super) fn content(step: &ScriptStep, id: &str) -> Value {
    let mut parts = Vec::new();
    if !step.sent_text().is_empty() {
        parts.push(json!({ "text": step.sent_text() }));
    }
    for (n, tool) in step.tools.iter().enumerate() {
        let call = json!({ "id": format!("{id}{n:02}"), "name": tool.name, "args": tool.input });
        parts.push(json!({ "functionCall": call }));
    }
    // This API can't transfer invalid arguments: the provider itself reports them.
    let broken = step.tools.iter().any(|tool| tool.text.is_some());
    let ends = if broken { "MALFORMED_FUNCTION_CALL" } else { "STOP" };
    let (input, output) = (step.usage.input_sum(), step.usage.output);
    json!({
        "responseId": id,
        "candidates": [{
            "index": 0,
            "content": { "role": "model", "parts": if broken { Vec::new() } else { parts } },
            "finishReason": if step.is_cut_off() { "MAX_TOKENS" } else { ends },
        }],
        "usageMetadata": {
            "promptTokenCount": input,
            "cachedContentTokenCount": step.usage.cache_read,
            "candidatesTokenCount": output,
            "totalTokenCount": input + output,
        },
    })
}

/// The events of a stream with the same answer, one event per part.
pub(super) fn events(answer: &Value) -> Vec<Value> {
    let Some(candidate) = answer.pointer("/candidates/0") else { return Vec::new() };
    let event = |parts: Value, last: bool| {
        let mut candidate = candidate.clone();
        set_field(&mut candidate, "content", json!({ "role": "model", "parts": parts }));
        if !last {
            set_field(&mut candidate, "finishReason", Value::Null);
        }
        let mut event = answer.clone();
        set_field(&mut event, "candidates", json!([candidate]));
        event
    };
    let parts =
        candidate.get("content").into_iter().flat_map(|content| list_field(content, "parts"));
    let mut events: Vec<Value> = parts.map(|part| event(json!([part]), false)).collect();
    events.push(event(json!([]), true));
    events
}
