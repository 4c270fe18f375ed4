//! Provider data such as thoughts is sent back only to the provider that it came from.

use jackline_model::{AssistantMessage, ConversationMessage, Provider, ToolCallResult};
use serde_json::{Value, json};

use crate::world::{CannedServer, ask, model, request, stream};

/// A stream in which the provider thinks before it calls a tool.
fn thinking_stream(provider: Provider) -> Vec<Value> {
    match provider {
        Provider::Anthropic => {
            let start = |index: u8, block: Value| json!({ "type": "content_block_start", "index": index, "content_block": block });
            let delta = |index: u8, delta: Value| json!({ "type": "content_block_delta", "index": index, "delta": delta });
            let thinking = json!({ "type": "thinking", "thinking": "", "signature": "" });
            let call = json!({ "type": "tool_use", "id": "t1", "name": "Bash", "input": {} });
            vec![
                start(0, thinking),
                delta(0, json!({ "type": "thinking_delta", "thinking": "hm" })),
                delta(0, json!({ "type": "thinking_delta", "thinking": "m" })),
                delta(0, json!({ "type": "signature_delta", "signature": "SEAL" })),
                start(1, json!({ "type": "redacted_thinking", "data": "BLACK" })),
                start(2, json!({ "type": "text", "text": "" })),
                delta(2, json!({ "type": "text_delta", "text": "well" })),
                start(3, call),
                json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } }),
                json!({ "type": "message_stop" }),
            ]
        }
        Provider::OpenAi => {
            let done = |index: u8, item: Value| json!({ "type": "response.output_item.done", "output_index": index, "item": item });
            let thought = |id: &str, seal: Value| {
                json!({ "type": "reasoning", "id": id, "summary": [], "status": "completed",
                        "encrypted_content": seal })
            };
            let call = json!({ "type": "function_call", "call_id": "t1", "name": "Bash",
                               "arguments": "" });
            let mut complete = call.clone();
            complete["arguments"] = json!("{}");
            vec![
                done(0, thought("rs_0", Value::Null)),
                done(1, thought("rs_1", json!("SEAL"))),
                json!({ "type": "response.output_item.added", "output_index": 2, "item": call }),
                done(2, complete),
                json!({ "type": "response.completed", "response": { "id": "r" } }),
            ]
        }
        Provider::Gemini => {
            let event = |part: Value, reason: Value| {
                let content = json!({ "role": "model", "parts": [part] });
                json!({ "candidates": [{ "content": content, "finishReason": reason }] })
            };
            let call = json!({ "functionCall": { "name": "Bash", "args": {} },
                               "thoughtSignature": "SEAL" });
            vec![
                event(json!({ "text": "we" }), Value::Null),
                event(json!({ "text": "ll", "thoughtSignature": "LID" }), Value::Null),
                event(call, json!("STOP")),
            ]
        }
        Provider::OpenAiChat => unreachable!("it has no thoughts to send back"),
    }
}

/// The provider's own answer, and the request in which it is sent back.
fn send_back(provider: Provider) -> (AssistantMessage, Value) {
    let over = json!({ "candidates": [{ "finishReason": "STOP" }], "type": "response.completed",
                       "response": {}, "delta": {} });
    let stop = json!({ "type": "message_stop" });
    let server =
        CannedServer::start(vec![stream(&thinking_stream(provider)), stream(&[over, stop])]);
    let mut model = model(provider, &server.url);
    let mut conversation = request("go");
    let reply = ask(model.as_mut(), &conversation).unwrap().message;
    let call = &reply.calls[0];
    let (call, name) = (call.id.clone(), call.name.clone());
    let result = ToolCallResult { call, name, text: "out".to_owned(), is_error: false };
    let more =
        [ConversationMessage::Assistant(reply.clone()), ConversationMessage::Results(vec![result])];
    conversation.messages.extend(more);
    ask(model.as_mut(), &conversation).unwrap();
    (reply, server.bodies().pop().unwrap())
}

#[test]
fn anthropic_gets_its_thinking_back_with_the_signature() {
    let (reply, body) = send_back(Provider::Anthropic);
    assert_eq!(reply.text, "well");
    let expected = json!([
        { "type": "thinking", "thinking": "hmm", "signature": "SEAL" },
        { "type": "redacted_thinking", "data": "BLACK" },
        { "type": "text", "text": "well" },
        { "type": "tool_use", "id": "t1", "name": "Bash", "input": {} },
    ]);
    assert_eq!(body["messages"][1]["content"], expected);
    let result = json!([{
        "type": "tool_result", "tool_use_id": "t1", "is_error": false,
        "content": [{ "type": "text", "text": "out" }],
        "cache_control": { "type": "ephemeral" },
    }]);
    assert_eq!(body["messages"][2]["content"], result);
}

#[test]
fn openai_gets_only_its_encrypted_reasoning_back() {
    let (_, body) = send_back(Provider::OpenAi);
    let expected = json!([
        { "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "SEAL" },
        { "type": "function_call", "call_id": "t1", "name": "Bash", "arguments": "{}" },
        { "type": "function_call_output", "call_id": "t1", "output": "out" },
    ]);
    assert_eq!(json!(body["input"].as_array().unwrap()[1..]), expected);
    assert_eq!(
        (&body["store"], &body["include"][0]),
        (&json!(false), &json!("reasoning.encrypted_content"))
    );
}

#[test]
fn gemini_gets_its_signatures_back_at_their_position() {
    let (reply, body) = send_back(Provider::Gemini);
    assert_eq!(reply.text, "well");
    // The provider gave the call no id, so none is sent back.
    let expected = json!([
        { "text": "well", "thoughtSignature": "LID" },
        { "functionCall": { "name": "Bash", "args": {} }, "thoughtSignature": "SEAL" },
    ]);
    assert_eq!(body["contents"][1]["parts"], expected);
    let response =
        json!({ "functionResponse": { "name": "Bash", "response": { "output": "out" } } });
    assert_eq!(body["contents"][2]["parts"], json!([response]));
}

#[test]
fn another_provider_gets_no_foreign_data() {
    let thinkers = [Provider::Anthropic, Provider::OpenAi, Provider::Gemini];
    for (thinker, other) in thinkers.iter().flat_map(|a| Provider::ALL.map(|b| (*a, b))) {
        if thinker == other {
            continue;
        }
        let reply = send_back(thinker).0;
        let server = jackline_model::scripted::ModelScript::new([]);
        let server = crate::world::start(server);
        let mut conversation = request("go");
        let result = ToolCallResult {
            call: reply.calls[0].id.clone(),
            name: "Bash".to_owned(),
            text: "out".to_owned(),
            is_error: false,
        };
        let more =
            [ConversationMessage::Assistant(reply), ConversationMessage::Results(vec![result])];
        conversation.messages.extend(more);
        ask(model(other, &server.url()).as_mut(), &conversation).unwrap();
        let body = server.requests().pop().unwrap().body.to_string();
        for word in ["SEAL", "LID", "BLACK", "hmm"] {
            assert!(!body.contains(word), "{thinker} to {other}: {body}");
        }
    }
}
