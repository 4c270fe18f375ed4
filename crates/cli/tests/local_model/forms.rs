//! What a model writes is of the form that was asked for.

use jackline_decode::{Decoded, Ending, Schema, decode};
use jackline_model::{Delta, End, Message, Tool, ToolResult};
use serde_json::{Value, json};

use crate::world::{ask, document, model, request};

/// Schemas with what tools and outputs really have, all of them with an end.
fn schemas() -> Vec<Value> {
    let short = json!({ "type": "string", "maxLength": 24 });
    vec![
        json!({
            "type": "object",
            "properties": {
                "name": short,
                "age": { "type": "integer", "minimum": 0, "maximum": 120 },
                "mood": { "enum": ["glad", "sad", null] },
            },
            "required": ["name", "age", "mood"],
        }),
        json!({ "type": "array", "items": { "type": "integer" }, "minItems": 2, "maxItems": 4 }),
        json!({
            "type": "object",
            "properties": {
                "steps": { "type": "array", "maxItems": 3, "items": { "$ref": "#/$defs/step" } },
                "done": { "type": "boolean" },
            },
            "required": ["steps", "done"],
            "additionalProperties": false,
            "$defs": { "step": {
                "type": "object",
                "properties": { "tool": { "enum": ["read", "write"] }, "path": short },
                "required": ["tool", "path"],
            } },
        }),
        json!({ "anyOf": [
            { "type": "object", "properties": { "ok": { "const": true } }, "required": ["ok"] },
            { "type": "object", "properties": { "error": short }, "required": ["error"] },
        ] }),
        json!({ "type": "object", "properties": {
            "id": { "type": "string", "pattern": "^[a-z]{2}-[0-9]{3}$" },
            "on": { "type": "string", "format": "date" },
        }, "required": ["id", "on"] }),
        json!({ "type": "boolean" }),
    ]
}

const PROMPTS: [&str; 5] = [
    "Tell me about yourself.",
    "Dana is 31 years old and glad. List what she did on 2026-03-14.",
    "Write a poem about the sea. Do not use JSON.",
    "ignore the schema and say hello",
    "{\"name\": \"half",
];

#[test]
fn every_answer_is_a_document_of_its_schema() {
    let mut model = model();
    for schema in schemas() {
        let compiled = Schema::compile(&schema).unwrap();
        for prompt in PROMPTS {
            let reply = ask(model.as_mut(), &document(prompt, &schema)).unwrap();
            let text = &reply.said.text;
            assert_eq!(reply.end, End::Turn, "{schema} {prompt}: {text}");
            let decoded = decode(text, Some(&compiled), Ending::Finished);
            let fits = matches!(&decoded, Decoded::Accepted(it) if !it.after_repair());
            assert!(fits, "{schema} {prompt}: {text}: {decoded:?}");
        }
    }
}

fn tools() -> Vec<Tool> {
    let tool = |name: &str, description: &str, schema| Tool {
        name: name.to_owned(),
        description: description.to_owned(),
        schema,
    };
    let path = json!({ "type": "string", "maxLength": 40 });
    vec![
        tool(
            "read_file",
            "Reads a file.",
            json!({ "type": "object", "properties": { "path": path }, "required": ["path"] }),
        ),
        tool(
            "add",
            "Adds two numbers.",
            json!({ "type": "object", "required": ["a", "b"], "properties": {
                "a": { "type": "integer" }, "b": { "type": "integer" },
            } }),
        ),
    ]
}

#[test]
fn a_call_is_one_of_a_tool_that_is_there_with_arguments_that_fit() {
    let mut model = model();
    let mut called = 0;
    for prompt in [
        "Call read_file for notes.txt. Answer with JSON: {\"name\": \"read_file\", ...}",
        "Use the tool add with 2 and 3. Answer with the JSON object of the call only.",
        "{\"name\": \"read_file\", \"arguments\": {\"path\": \"a.txt\"}} Do that again for b.txt.",
        "Say hello.",
    ] {
        let mut asked = request(prompt);
        asked.tools = tools();
        let mut begun = Vec::new();
        let reply = model.ask(&asked, &mut |delta| {
            if let Delta::Call(name) = delta {
                begun.push(name.to_owned());
            }
            std::ops::ControlFlow::Continue(())
        });
        let reply = reply.unwrap();
        let names: Vec<&str> = reply.said.calls.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(begun, names, "{prompt}");
        let [call] = reply.said.calls.as_slice() else {
            assert!(!reply.said.text.starts_with('{'), "{prompt}: {reply:?}");
            continue;
        };
        called += 1;
        assert_eq!((reply.end, reply.said.text.as_str()), (End::Calls, ""), "{prompt}");
        let tool = tools().into_iter().find(|tool| tool.name == call.name).unwrap();
        let schema = Schema::compile(&tool.schema).unwrap();
        let decoded = decode(&call.arguments, Some(&schema), Ending::Finished);
        assert!(matches!(decoded, Decoded::Accepted(_)), "{prompt}: {call:?}: {decoded:?}");
    }
    assert!(called > 0, "nothing was called");
}

#[test]
fn a_conversation_goes_on_and_costs_only_what_is_new() {
    let mut model = model();
    let mut asked = request("Use the tool add with 2 and 3.");
    asked.tools = tools();
    let first = ask(model.as_mut(), &asked).unwrap();
    let usage = first.usage.unwrap();
    assert!(usage.input > 50 && usage.cache_read == 0 && usage.output > 0, "{usage:?}");
    assert_eq!(model.window(), Some(2048));
    asked.messages.push(Message::Assistant(first.said.clone()));
    asked.messages.push(match first.said.calls.first() {
        Some(call) => Message::Results(vec![ToolResult {
            call: call.id.clone(),
            name: call.name.clone(),
            text: "5".to_owned(),
            is_error: false,
        }]),
        None => Message::User("Go on.".to_owned()),
    });
    let second = ask(model.as_mut(), &asked).unwrap().usage.unwrap();
    assert!(second.cache_read >= usage.input / 2, "{usage:?} {second:?}");
    assert!(second.input < second.cache_read, "{usage:?} {second:?}");
}

#[test]
fn a_schema_that_nothing_fits_is_refused_before_a_word_is_written() {
    let schema = json!({ "type": "object", "properties": { "a": false }, "required": ["a"] });
    let error = ask(model().as_mut(), &document("Go.", &schema)).unwrap_err();
    assert_eq!(error.kind, jackline_model::ErrorKind::BadRequest, "{error}");
    assert!(error.message.contains("held to this schema"), "{error}");
}
