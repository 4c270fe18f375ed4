//! `OpenAI` Responses.

use serde_json::{Value, json};

use crate::fields::{list, set, text, text_at};
use crate::scripted::script::Step;

/// The whole response.
pub(super) fn response(step: &Step, model: &Value, id: &str) -> Value {
    let mut output = Vec::new();
    if !step.said().is_empty() {
        let content = json!([{ "type": "output_text", "text": step.said(), "annotations": [] }]);
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
    let (input, output_tokens) = (step.usage.read(), step.usage.output);
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

/// The same response as the events of a stream.
pub(super) fn events(response: &Value) -> Vec<Value> {
    let mut begun = response.clone();
    set(&mut begun, "status", json!("in_progress"));
    set(&mut begun, "output", json!([]));
    set(&mut begun, "usage", Value::Null);
    let mut events = vec![json!({ "type": "response.created", "response": begun })];
    for (index, item) in list(response, "output").enumerate() {
        let mut added = item.clone();
        set(&mut added, "status", json!("in_progress"));
        let (name, delta) = match text(item, "type") {
            "function_call" => {
                set(&mut added, "arguments", json!(""));
                ("response.function_call_arguments.delta", text(item, "arguments").to_owned())
            }
            _ => {
                set(&mut added, "content", json!([]));
                let said = text_at(item, "/content/0/text");
                ("response.output_text.delta", said.unwrap_or_default())
            }
        };
        let id = text(item, "id");
        let named = |kind: &str| json!({ "type": kind, "output_index": index });
        let mut events_of =
            [named("response.output_item.added"), named(name), named("response.output_item.done")];
        let [first, middle, last] = &mut events_of;

        set(first, "item", added);
        set(middle, "item_id", json!(id));
        set(middle, "delta", json!(delta));
        set(last, "item", item.clone());
        events.extend(events_of);
    }
    let last = format!("response.{}", text(response, "status"));
    events.push(json!({ "type": last, "response": response }));
    for (number, event) in events.iter_mut().enumerate() {
        set(event, "sequence_number", json!(number));
    }
    events
}
