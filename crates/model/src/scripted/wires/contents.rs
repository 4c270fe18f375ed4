//! Gemini's contents.

use serde_json::{Value, json};

use crate::fields::{list, set};
use crate::scripted::script::Step;

/// The whole answer.
pub(super) fn content(step: &Step, id: &str) -> Value {
    let mut parts = Vec::new();
    if !step.said().is_empty() {
        parts.push(json!({ "text": step.said() }));
    }
    for (n, tool) in step.tools.iter().enumerate() {
        let call = json!({ "id": format!("{id}{n:02}"), "name": tool.name, "args": tool.input });
        parts.push(json!({ "functionCall": call }));
    }
    // This wire has no words for arguments that are broken: the provider notices itself.
    let broken = step.tools.iter().any(|tool| tool.text.is_some());
    let ends = if broken { "MALFORMED_FUNCTION_CALL" } else { "STOP" };
    let (input, output) = (step.usage.read(), step.usage.output);
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

/// The same answer as the events of a stream, a part each.
pub(super) fn events(answer: &Value) -> Vec<Value> {
    let Some(candidate) = answer.pointer("/candidates/0") else { return Vec::new() };
    let event = |parts: Value, last: bool| {
        let mut candidate = candidate.clone();
        set(&mut candidate, "content", json!({ "role": "model", "parts": parts }));
        if !last {
            set(&mut candidate, "finishReason", Value::Null);
        }
        let mut event = answer.clone();
        set(&mut event, "candidates", json!([candidate]));
        event
    };
    let parts = candidate.get("content").into_iter().flat_map(|content| list(content, "parts"));
    let mut events: Vec<Value> = parts.map(|part| event(json!([part]), false)).collect();
    events.push(event(json!([]), true));
    events
}
