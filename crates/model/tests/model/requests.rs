//! The exact requests to each provider.

use jackline_model::{
    AssistantMessage, ConversationMessage, ModelRequest, OutputSchema, Provider, ToolCallRequest,
    ToolCallResult,
};
use serde_json::{Value, json};

use crate::world::{CannedServer, KEY, ask, model, request};

/// The head and the body of a request.
fn request_sent(provider: Provider, request: &ModelRequest) -> (String, Value) {
    let server = CannedServer::start(vec![Vec::new()]);
    ask(model(provider, &server.url).as_mut(), request).unwrap_err();
    let head = server.requests()[0].split_once("\r\n\r\n").unwrap().0.to_owned();
    (head, server.bodies().remove(0))
}

#[test]
fn a_key_is_sent_only_in_a_header() {
    for (provider, path, header) in [
        (Provider::Anthropic, "/v1/messages", format!("x-api-key: {KEY}")),
        (Provider::OpenAi, "/v1/responses", format!("authorization: Bearer {KEY}")),
        (Provider::OpenAiChat, "/v1/chat/completions", format!("authorization: Bearer {KEY}")),
        (
            Provider::Gemini,
            "/v1beta/models/some-model:streamGenerateContent?alt=sse",
            format!("x-goog-api-key: {KEY}"),
        ),
    ] {
        let (head, body) = request_sent(provider, &request("go"));
        assert!(head.starts_with(&format!("POST {path} HTTP/1.1\r\n")), "{head}");
        assert!(head.contains(&header), "{head}");
        assert_eq!(head.matches(KEY).count() + body.to_string().matches(KEY).count(), 1);
    }
    let (head, _) = request_sent(Provider::Anthropic, &request("go"));
    assert!(head.contains("anthropic-version: 2023-06-01"), "{head}");
}

#[test]
fn a_request_has_the_format_of_the_provider() {
    let tool = json!({ "type": "object", "properties": { "command": { "type": "string" } } });
    let function = json!({ "name": "Bash", "description": "runs a command", "parameters": tool });
    let mark = json!({ "type": "ephemeral" });
    let block = |text: &str| json!({ "type": "text", "text": text, "cache_control": mark });
    let input = json!([{ "type": "input_text", "text": "go" }]);
    let expected = |provider| match provider {
        Provider::Anthropic => json!({
            "model": "some-model", "max_tokens": 500, "stream": true,
            "system": [block("you help")],
            "messages": [{ "role": "user", "content": [block("go")] }],
            "tools": [{ "name": "Bash", "description": "runs a command", "input_schema": tool }],
        }),
        Provider::OpenAi => json!({
            "model": "some-model", "max_output_tokens": 500, "stream": true, "store": false,
            "include": ["reasoning.encrypted_content"],
            "instructions": "you help",
            "input": [{ "type": "message", "role": "user", "content": input }],
            "tools": [{
                "type": "function", "strict": false, "name": "Bash",
                "description": "runs a command", "parameters": tool,
            }],
        }),
        Provider::OpenAiChat => json!({
            "model": "some-model", "max_tokens": 500, "stream": true,
            "stream_options": { "include_usage": true },
            "messages": [
                { "role": "system", "content": "you help" }, { "role": "user", "content": "go" },
            ],
            "tools": [{ "type": "function", "function": function }],
        }),
        Provider::Gemini => json!({
            "systemInstruction": { "parts": [{ "text": "you help" }] },
            "contents": [{ "role": "user", "parts": [{ "text": "go" }] }],
            "tools": [{ "functionDeclarations": [{
                "name": "Bash", "description": "runs a command", "parametersJsonSchema": tool,
            }] }],
            "generationConfig": { "maxOutputTokens": 500 },
        }),
    };
    for provider in Provider::ALL {
        assert_eq!(request_sent(provider, &request("go")).1, expected(provider), "{provider}");
    }
}

#[test]
fn an_output_schema_is_sent_in_the_provider_format() {
    let open = json!({ "type": "object", "properties": { "a": { "type": "string" } },
                       "required": ["a"] });
    let mut closed = open.clone();
    closed["additionalProperties"] = json!(false);
    let output = Some(OutputSchema { name: "shape".to_owned(), schema: open.clone() });
    let request = ModelRequest { output, ..request("go") };
    for (provider, pointer, expected) in [
        (
            Provider::Anthropic,
            "/output_config/format",
            json!({ "type": "json_schema", "schema": closed }),
        ),
        (
            Provider::OpenAi,
            "/text/format",
            json!({ "type": "json_schema", "name": "shape", "strict": true, "schema": closed }),
        ),
        (
            Provider::OpenAiChat,
            "/response_format",
            json!({ "type": "json_schema",
                    "json_schema": { "name": "shape", "strict": true, "schema": closed } }),
        ),
        (
            Provider::Gemini,
            "/generationConfig",
            json!({ "maxOutputTokens": 500, "responseMimeType": "application/json",
                    "responseJsonSchema": open }),
        ),
    ] {
        let body = request_sent(provider, &request).1;
        assert_eq!(body.pointer(pointer), Some(&expected), "{provider}");
    }
    // A schema with optional properties can't be strict, but is sent anyway.
    let loose = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    let output = Some(OutputSchema { name: "shape".to_owned(), schema: loose.clone() });
    let body = request_sent(Provider::OpenAi, &ModelRequest { output, ..request }).1;
    assert_eq!(body["text"]["format"]["strict"], json!(false));
    assert_eq!(body["text"]["format"]["schema"], loose);
}

#[test]
fn a_conversation_can_continue_at_any_provider() {
    let call = ToolCallRequest {
        id: "functions.Bash:0".to_owned(),
        name: "Bash".to_owned(),
        arguments: "no JSON".to_owned(),
    };
    let result = ToolCallResult {
        call: call.id.clone(),
        name: call.name.clone(),
        text: String::new(),
        is_error: true,
    };
    let mut conversation = request("go");
    let reply = AssistantMessage { calls: vec![call], ..AssistantMessage::default() };
    conversation.messages.extend([
        ConversationMessage::Assistant(reply),
        ConversationMessage::Results(vec![result]),
        ConversationMessage::User("and now?".to_owned()),
        ConversationMessage::User(" ".to_owned()),
    ]);
    // The roles alternate, ids contain only allowed characters, and nothing is empty.
    let body = request_sent(Provider::Anthropic, &conversation).1;
    let expected = json!([
        { "role": "user", "content": [{ "type": "text", "text": "go" }] },
        { "role": "assistant", "content": [{
            "type": "tool_use", "id": "functions_Bash_0", "name": "Bash",
            "input": { "unreadable": "no JSON" },
        }] },
        { "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "functions_Bash_0", "is_error": true },
            { "type": "text", "text": "and now?", "cache_control": { "type": "ephemeral" } },
        ] },
    ]);
    assert_eq!(body["messages"], expected);
    let body = request_sent(Provider::OpenAiChat, &conversation).1;
    let call = json!({ "id": "functions.Bash:0", "type": "function", "function": {
        "name": "Bash", "arguments": "{\"unreadable\":\"no JSON\"}",
    } });
    let expected = json!([
        { "role": "assistant", "content": "", "tool_calls": [call] },
        { "role": "tool", "content": "", "tool_call_id": "functions.Bash:0" },
    ]);
    assert_eq!(json!(body["messages"].as_array().unwrap()[2..4]), expected);
}
