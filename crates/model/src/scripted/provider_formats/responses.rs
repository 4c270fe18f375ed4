//! The `OpenAI` Responses format.

use serde_json::{Value, json};

use crate::fields::{list_field, set_field, text_at, text_field};
use crate::scripted::script::ScriptStep;

/// The complete answer.
pub(super) fn response(step: &ScriptStep, model: &Value, id: &str) -> Value {
    let mut output = Vec::new();
    if !step.sent_text().is_empty() {
        let content =
            json!([{ "type": "output_text", "text": step.sent_text(), "annotations": [] }]);
        output.push(json!({
            "type": "message", "id": format!("msg_{id}"), "role": "assistant",
            "status": "completed", "content": content,
        }));
    }
    for (n, tool) in step.tools.iter().enumerate() {
        output.push(json!({
            "type": "function_call", "id": format!("fc_{id}{n:02}"),
            "call_id": format!("call_{id}{n:02}"), "status": "completed",
            "name": tool.name, "arguments": tool.arguments(),
        }));
    }
    let (input, output_tokens) = (step.usage.input_sum(), step.usage.output);
    let cut_off = step.is_cut_off();
    json!({
        "id": format!("resp_{id}"),
        "object": "response",
        "status": if cut_off { "incomplete" } else { "completed" },
        "error": null,
        "incomplete_details": cut_off.then(|| json!({ "reason": "max_output_tokens" })),
        "model": model,
        "output": output,
        "usage": {
            "input_tokens": input,
            "input_tokens_details": { "cached_tokens": step.usage.cache_read },
            "output_tokens": output_tokens,
            "total_tokens": input + output_tokens,
        },
    })
}

/// The events of a stream with the same answer.
pub(super) fn events(response: &Value) -> Vec<Value> {
    let mut created = response.clone();
    set_field(&mut created, "status", json!("in_progress"));
    set_field(&mut created, "output", json!([]));
    set_field(&mut created, "usage", Value::Null);
    let mut events = vec![json!({ "type": "response.created", "response": created })];
    for (index, item) in list_field(response, "output").enumerate() {
        let mut added = item.clone();
        set_field(&mut added, "status", json!("in_progress"));
        let (name, delta) = match text_field(item, "type") {
            "function_call" => {
                set_field(&mut added, "arguments", json!(""));
                ("response.function_call_arguments.delta", text_field(item, "arguments").to_owned())
            }
            _ => {
                set_field(&mut added, "content", json!([]));
                let message_text = text_at(item, "/content/0/text");
                ("response.output_text.delta", message_text.unwrap_or_default())
            }
        };
        let id = text_field(item, "id");
        let named = |kind: &str| json!({ "type": kind, "output_index": index });
        let mut events_of =
            [named("response.output_item.added"), named(name), named("response.output_item.done")];
        let [first, middle, last] = &mut events_of;

        set_field(first, "item", added);
        set_field(middle, "item_id", json!(id));
        set_field(middle, "delta", json!(delta));
        set_field(last, "item", item.clone());
        events.extend(events_of);
    }
    let last = format!("response.{}", text_field(response, "status"));
    events.push(json!({ "type": last, "response": response }));
    for (number, event) in events.iter_mut().enumerate() {
        set_field(event, "sequence_number", json!(number));
    }
    events
}
