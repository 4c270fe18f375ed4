//! The same stories, played through the API of each provider.

use std::io::Write as _;
use std::ops::ControlFlow;
use std::time::Duration;

use jackline_model::scripted::{AnswerDefect, ModelScript, ScriptStep, ScriptUsage as Cost};
use jackline_model::{
    AnswerDelta, AnswerEnd, ConversationMessage, ModelErrorKind, Provider, RemoteModelSpec,
    RetryPolicy, TokenUsage, ToolCallResult, ask_with_retries, connect,
};
use serde_json::{Value, json};

use crate::world::{
    CannedServer, ReceivedPieces, answer, ask, json_answer, model, read, request, spec, start,
    stream,
};

#[test]
fn a_text_arrives_in_pieces_and_is_the_answer() {
    for provider in Provider::ALL {
        let server = start(ModelScript::new([ScriptStep::say("grüße")]));
        let mut pieces = ReceivedPieces::default();
        let reply = model(provider, &server.url())
            .ask(&request("go"), &mut |delta| pieces.add(delta))
            .unwrap();
        assert_eq!(
            (reply.message.text.as_str(), reply.end),
            ("grüße", AnswerEnd::Turn),
            "{provider}"
        );
        assert_eq!(pieces, ReceivedPieces { text: "grüße".to_owned(), calls: vec![] });
        assert!(reply.message.provider_data.is_none() && reply.request.is_some());
        let body = server.requests().pop().unwrap().body.to_string();
        assert!(body.contains("you help") && body.contains("runs a command"), "{body}");
    }
}

#[test]
fn two_calls_are_answered_together_and_the_conversation_continues() {
    for provider in Provider::ALL {
        let calls = ScriptStep::say("well")
            .and_call("Bash", json!({ "command": "ls" }))
            .and_call("Read", json!({ "path": "ä" }));
        let server = start(ModelScript::new([calls, ScriptStep::say("done")]));
        let mut model = model(provider, &server.url());
        let (mut first, mut pieces) = (request("go"), ReceivedPieces::default());
        let reply = model.ask(&first, &mut |delta| pieces.add(delta)).unwrap();
        assert_eq!(
            (reply.message.text.as_str(), reply.end),
            ("well", AnswerEnd::Calls),
            "{provider}"
        );
        let args =
            |n: usize| serde_json::from_str::<Value>(&reply.message.calls[n].arguments).unwrap();
        assert_eq!([args(0), args(1)], [json!({ "command": "ls" }), json!({ "path": "ä" })]);
        let calls: Vec<(String, String)> = reply
            .message
            .calls
            .iter()
            .map(|call| (call.name.clone(), call.arguments.clone()))
            .collect();
        assert_eq!(pieces.calls, calls);
        assert_ne!(reply.message.calls[0].id, reply.message.calls[1].id);

        let results =
            reply.message.calls.iter().zip(["out-1", "out-2"]).map(|(call, text)| ToolCallResult {
                call: call.id.clone(),
                name: call.name.clone(),
                text: text.to_owned(),
                is_error: text == "out-2",
            });
        let results = ConversationMessage::Results(results.collect());
        first.messages.extend([ConversationMessage::Assistant(reply.message.clone()), results]);
        assert_eq!(ask(model.as_mut(), &first).unwrap().message.text, "done", "{provider}");
        let body = server.requests().pop().unwrap().body.to_string();
        for text in ["well", "out-1", "out-2", reply.message.calls[1].id.as_str()] {
            assert!(body.contains(text), "{provider}: no {text} in {body}");
        }
    }
}

#[test]
fn cached_tokens_are_counted_separately() {
    let cost = Cost { input: 100, output: 7, cache_read: 40, cache_creation: 3 };
    for provider in Provider::ALL {
        let server = start(ModelScript::new([ScriptStep::say("a").with_usage(cost)]));
        let reply = ask(model(provider, &server.url()).as_mut(), &request("go")).unwrap();
        // The other providers do not report tokens that were written to the cache.
        let (input, cache_creation) =
            if provider == Provider::Anthropic { (100, 3) } else { (103, 0) };
        let usage = TokenUsage { input, cache_read: 40, cache_creation, output: 7 };
        assert_eq!(reply.usage, Some(usage), "{provider}");
    }
}

#[test]
fn a_failed_request_is_repeated_and_an_incomplete_answer_is_void() {
    let patience = RetryPolicy {
        tries_max: 4,
        pause_first: Duration::from_secs(1),
        pause_max: Duration::from_secs(9),
        retry_after_max: Duration::from_secs(9),
        not_retried: &[],
        seed: 1,
    };
    for provider in Provider::ALL {
        // Half of the stream contains most of the text.
        let half = ScriptStep::say("half ".repeat(200)).broken(AnswerDefect::Incomplete);
        let server =
            start(ModelScript::new([ScriptStep::fail(529), half, ScriptStep::say("whole")]));
        let (mut pieces, mut kinds) = (ReceivedPieces::default(), Vec::new());
        let reply = ask_with_retries(
            model(provider, &server.url()).as_mut(),
            &request("go"),
            &mut |delta| pieces.add(delta),
            &patience,
            &mut |_, error| {
                kinds.push(error.kind);
                ControlFlow::Continue(())
            },
        )
        .unwrap();
        assert_eq!(kinds, [ModelErrorKind::Overload, ModelErrorKind::BadAnswer], "{provider}");
        assert_eq!((reply.message.text.as_str(), pieces.text.as_str()), ("whole", "whole"));
        assert_eq!(server.count(), 3);
    }
}

#[test]
fn a_delta_of_a_megabyte_is_a_text_like_any_other() {
    for provider in Provider::ALL {
        let server = start(ModelScript::new([ScriptStep::default().broken(AnswerDefect::Huge)]));
        let reply = ask(model(provider, &server.url()).as_mut(), &request("go")).unwrap();
        assert_eq!((reply.message.text.len(), reply.end), (1 << 20, AnswerEnd::Turn), "{provider}");
    }
}

#[test]
fn arguments_are_passed_on_unchanged_even_if_invalid() {
    for provider in Provider::ALL {
        let step = ScriptStep::default().and_call_with("Bash", "{\"command\": \"l");
        let server = start(ModelScript::new([step]));
        let reply = ask(model(provider, &server.url()).as_mut(), &request("go"));
        if provider == Provider::Gemini {
            // This provider detects invalid arguments itself and passes nothing on.
            assert_eq!(reply.map_err(|error| error.kind), Err(ModelErrorKind::BadAnswer));
            continue;
        }
        let reply = reply.unwrap();
        assert_eq!(reply.message.calls[0].arguments, "{\"command\": \"l", "{provider}");
        // Invalid arguments are sent back within an object, so that the request stays valid.
        let server = start(ModelScript::new([ScriptStep::say("ok")]));
        let mut again = request("go");
        again.messages.push(ConversationMessage::Assistant(reply.message));
        assert!(ask(model(provider, &server.url()).as_mut(), &again).is_ok());
    }
}

/// The answer of each provider, complete and as a stream, with additional unknown fields.
fn complete_and_streamed(provider: Provider) -> (Value, Vec<Value>) {
    match provider {
        Provider::Anthropic => {
            let message = json!({ "id": "m1", "new": 1, "stop_reason": "end_turn", "content": [
                { "type": "novelty", "text": "no" }, { "type": "text", "text": "hi", "new": [] },
            ] });
            let start = json!({ "type": "message_start", "message": { "id": "m1", "new": {} } });
            let block = json!({ "type": "text", "text": "" });
            let delta = |kind: &str, index: u8| {
                json!({ "type": "content_block_delta", "index": index,
                        "delta": { "type": kind, "text": "hi", "new": 1 } })
            };
            let begun =
                json!({ "type": "content_block_start", "index": 1, "content_block": block });
            let stop = json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" } });
            let events = vec![
                start,
                json!({ "type": "ping" }),
                delta("text_delta", 0),
                begun,
                delta("novelty_delta", 1),
                delta("text_delta", 1),
                stop,
                json!({ "type": "message_stop" }),
            ];
            (message, events)
        }
        Provider::OpenAi => {
            let content = json!([{ "type": "output_text", "text": "hi", "new": 1 }]);
            let item = json!({ "type": "message", "content": content });
            let response =
                json!({ "id": "r1", "error": null, "output": [{ "type": "novelty" }, item] });
            let events = vec![
                json!({ "type": "response.created", "response": { "id": "r1" }, "new": 1 }),
                json!({ "type": "response.novelty", "delta": "no" }),
                json!({ "type": "response.output_text.delta", "output_index": 1, "delta": "hi" }),
                json!({ "type": "response.completed", "response": response }),
            ];
            (response, events)
        }
        Provider::OpenAiChat => {
            let choice =
                json!({ "message": { "content": "hi", "new": 1 }, "finish_reason": "stop" });
            let delta = |delta: Value, reason: Value| json!({ "id": "c1", "new": 1, "choices": [{ "delta": delta, "finish_reason": reason }] });
            let events = vec![
                delta(json!({ "reasoning_content": "no", "content": null }), Value::Null),
                delta(json!({ "content": "hi" }), Value::Null),
                delta(json!({}), json!("stop")),
            ];
            (json!({ "id": "c1", "choices": [choice] }), events)
        }
        Provider::Gemini => {
            let event = |parts: Value, reason: Value| {
                let content = json!({ "parts": parts, "role": "model" });
                let candidate = json!({ "content": content, "finishReason": reason, "new": 1 });
                json!({ "responseId": "g1", "candidates": [candidate] })
            };
            let thought = json!({ "text": "no", "thought": true });
            let text = json!({ "text": "hi" });
            let events = vec![
                event(json!([thought, { "novelty": {} }]), Value::Null),
                event(json!([text]), Value::Null),
                event(json!([]), json!("STOP")),
            ];
            (event(json!([thought, text]), json!("STOP")), events)
        }
    }
}

#[test]
fn unknown_fields_are_ignored_in_both_formats() {
    for provider in Provider::ALL {
        let (whole, events) = complete_and_streamed(provider);
        let untyped = answer(200, "", &whole.to_string());
        let server = CannedServer::start(vec![stream(&events), json_answer(200, &whole), untyped]);
        let mut model = model(provider, &server.url);
        for form in ["stream", "whole", "untyped"] {
            let reply = ask(model.as_mut(), &request("go")).unwrap();
            assert_eq!(
                (reply.message.text.as_str(), reply.end),
                ("hi", AnswerEnd::Turn),
                "{provider} {form}"
            );
            assert_eq!(reply.usage, None);
        }
    }
}

#[test]
fn a_connection_is_reused() {
    for provider in Provider::ALL {
        let bytes = String::from_utf8(stream(&complete_and_streamed(provider).1)).unwrap();
        let bytes = bytes.replace("connection: close\r\n", "");
        // The second request uses the connection of the first one; otherwise, it gets no answer.
        let server = CannedServer::with(1, move |_, mut stream| {
            stream.write_all(bytes.as_bytes()).unwrap();
            if read(&stream).is_some() {
                stream.write_all(bytes.as_bytes()).unwrap();
            }
        });
        let patient = Duration::from_secs(5);
        let spec = RemoteModelSpec { silence_max: patient, ..spec(provider, &server.url) };
        let mut model = connect(&spec).unwrap();
        for _ in 0..2 {
            assert_eq!(
                ask(model.as_mut(), &request("go")).unwrap().message.text,
                "hi",
                "{provider}"
            );
        }
    }
}

#[test]
fn a_stream_may_arrive_byte_by_byte() {
    for provider in Provider::ALL {
        let bytes = stream(&complete_and_streamed(provider).1);
        let server = CannedServer::with(1, move |_, mut stream| {
            stream.set_nodelay(true).unwrap();
            for byte in &bytes {
                if stream.write_all(&[*byte]).is_err() {
                    return;
                }
            }
        });
        let reply = ask(model(provider, &server.url).as_mut(), &request("go")).unwrap();
        assert_eq!(reply.message.text, "hi", "{provider}");
    }
}

#[test]
fn the_receiver_can_stop_the_answer() {
    for provider in Provider::ALL {
        let server = start(ModelScript::new([ScriptStep::say("long")]));
        let result = model(provider, &server.url()).ask(&request("go"), &mut |delta| match delta {
            AnswerDelta::Text(_) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
        assert_eq!(
            result.map_err(|error| error.kind),
            Err(ModelErrorKind::Cancelled),
            "{provider}"
        );
    }
}

/// Servers that omit or repeat ids or indices, or send complete calls.
#[test]
fn calls_are_distinguished_with_any_numbering_of_a_server() {
    let call = |index: Value, id: Value, name: Value, arguments: Value| {
        let mut call = json!({ "function": { "name": name, "arguments": arguments } });
        for (field, value) in [("index", index), ("id", id)] {
            if !value.is_null() {
                call[field] = value;
            }
        }
        let delta = json!({ "tool_calls": [call] });
        json!({ "choices": [{ "delta": delta }] })
    };
    let null = || Value::Null;
    let usual = vec![
        call(json!(0), json!("a"), json!("Bash"), json!("")),
        call(json!(0), null(), null(), json!("{\"x\"")),
        call(json!(1), json!("b"), json!("Read"), json!("{}")),
        call(json!(0), null(), null(), json!(":1}")),
    ];
    let one_index = vec![
        call(json!(0), json!("a"), json!("Bash"), json!("{\"x\":1}")),
        call(json!(0), json!("b"), json!("Read"), json!("{}")),
    ];
    let no_index = vec![
        call(null(), json!("a"), json!("Bash"), json!("{\"x\"")),
        call(null(), null(), null(), json!(":1}")),
        call(null(), json!("b"), json!("Read"), json!({})),
    ];
    for mut events in [usual, one_index, no_index] {
        events.push(json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }] }));
        let server = CannedServer::start(vec![stream(&events)]);
        let reply = ask(model(Provider::OpenAiChat, &server.url).as_mut(), &request("go")).unwrap();
        let calls = reply.message.calls.iter();
        let calls: Vec<[&str; 3]> =
            calls.map(|it| [it.id.as_str(), it.name.as_str(), it.arguments.as_str()]).collect();
        assert_eq!(calls, [["a", "Bash", "{\"x\":1}"], ["b", "Read", "{}"]], "{events:?}");
        assert_eq!(reply.end, AnswerEnd::Calls);
    }
}

#[test]
fn a_truncated_or_refused_answer_has_its_own_end() {
    let stop = |reason: &str| {
        let delta = json!({ "type": "message_delta", "delta": { "stop_reason": reason } });
        vec![delta, json!({ "type": "message_stop" })]
    };
    let incomplete = |reason: &str| {
        let response = json!({ "incomplete_details": { "reason": reason } });
        vec![json!({ "type": "response.incomplete", "response": response })]
    };
    let finish =
        |reason: &str| vec![json!({ "choices": [{ "delta": {}, "finish_reason": reason }] })];
    let candidate = |reason: &str| vec![json!({ "candidates": [{ "finishReason": reason }] })];
    let blocked = vec![json!({ "promptFeedback": { "blockReason": "SAFETY" } })];
    let refusal = json!({ "type": "response.refusal.delta", "delta": "no" });
    let completed = json!({ "type": "response.completed", "response": {} });
    for (provider, events, end) in [
        (Provider::Anthropic, stop("max_tokens"), AnswerEnd::Length),
        (Provider::Anthropic, stop("refusal"), AnswerEnd::Refusal),
        (Provider::OpenAi, incomplete("max_output_tokens"), AnswerEnd::Length),
        (Provider::OpenAi, incomplete("content_filter"), AnswerEnd::Refusal),
        (Provider::OpenAi, vec![refusal, completed], AnswerEnd::Refusal),
        (Provider::OpenAiChat, finish("length"), AnswerEnd::Length),
        (Provider::OpenAiChat, finish("content_filter"), AnswerEnd::Refusal),
        (Provider::Gemini, candidate("MAX_TOKENS"), AnswerEnd::Length),
        (Provider::Gemini, candidate("SAFETY"), AnswerEnd::Refusal),
        (Provider::Gemini, blocked, AnswerEnd::Refusal),
    ] {
        let server = CannedServer::start(vec![stream(&events)]);
        let reply = ask(model(provider, &server.url).as_mut(), &request("go")).unwrap();
        assert_eq!(reply.end, end, "{provider} {events:?}");
    }
}
