//! The same stories, told through the wire of each provider.

use std::io::Write as _;
use std::ops::ControlFlow;
use std::time::Duration;

use jackline_model::scripted::{Broken, Script, Step, Usage as Cost};
use jackline_model::{
    Delta, End, ErrorKind, Message, ModelSpec, Patience, Provider, ToolResult, Usage,
    ask_patiently, connect,
};
use serde_json::{Value, json};

use crate::world::{
    Canned, Heard, answer, ask, json_answer, model, read, request, spec, start, stream,
};

#[test]
fn a_text_is_heard_while_it_comes_and_is_the_answer() {
    for provider in Provider::ALL {
        let server = start(Script::new([Step::say("grüße")]));
        let mut heard = Heard::default();
        let reply = model(provider, &server.url())
            .ask(&request("go"), &mut |delta| heard.take(delta))
            .unwrap();
        assert_eq!((reply.said.text.as_str(), reply.end), ("grüße", End::Turn), "{provider}");
        assert_eq!(heard, Heard { text: "grüße".to_owned(), calls: vec![] });
        assert!(reply.said.kept.is_none() && reply.request.is_some());
        let asked = server.requests().pop().unwrap().body.to_string();
        assert!(asked.contains("you help") && asked.contains("runs a command"), "{asked}");
    }
}

#[test]
fn two_calls_are_answered_together_and_the_conversation_goes_on() {
    for provider in Provider::ALL {
        let calls = Step::say("well")
            .and_call("Bash", json!({ "command": "ls" }))
            .and_call("Read", json!({ "path": "ä" }));
        let server = start(Script::new([calls, Step::say("done")]));
        let mut model = model(provider, &server.url());
        let (mut first, mut heard) = (request("go"), Heard::default());
        let reply = model.ask(&first, &mut |delta| heard.take(delta)).unwrap();
        assert_eq!((reply.said.text.as_str(), reply.end), ("well", End::Calls), "{provider}");
        let args =
            |n: usize| serde_json::from_str::<Value>(&reply.said.calls[n].arguments).unwrap();
        assert_eq!([args(0), args(1)], [json!({ "command": "ls" }), json!({ "path": "ä" })]);
        let told: Vec<(String, String)> = reply
            .said
            .calls
            .iter()
            .map(|call| (call.name.clone(), call.arguments.clone()))
            .collect();
        assert_eq!(heard.calls, told);
        assert_ne!(reply.said.calls[0].id, reply.said.calls[1].id);

        let results =
            reply.said.calls.iter().zip(["out-1", "out-2"]).map(|(call, text)| ToolResult {
                call: call.id.clone(),
                name: call.name.clone(),
                text: text.to_owned(),
                is_error: text == "out-2",
            });
        let results = Message::Results(results.collect());
        first.messages.extend([Message::Assistant(reply.said.clone()), results]);
        assert_eq!(ask(model.as_mut(), &first).unwrap().said.text, "done", "{provider}");
        let asked = server.requests().pop().unwrap().body.to_string();
        for text in ["well", "out-1", "out-2", reply.said.calls[1].id.as_str()] {
            assert!(asked.contains(text), "{provider}: no {text} in {asked}");
        }
    }
}

#[test]
fn tokens_are_counted_with_the_cache_apart() {
    let cost = Cost { input: 100, output: 7, cache_read: 40, cache_creation: 3 };
    for provider in Provider::ALL {
        let server = start(Script::new([Step::say("a").costing(cost)]));
        let reply = ask(model(provider, &server.url()).as_mut(), &request("go")).unwrap();
        // The others do not tell what they put into their cache.
        let (input, cache_creation) =
            if provider == Provider::Anthropic { (100, 3) } else { (103, 0) };
        let usage = Usage { input, cache_read: 40, cache_creation, output: 7 };
        assert_eq!(reply.usage, Some(usage), "{provider}");
    }
}

#[test]
fn an_overloaded_server_is_asked_again_and_half_of_an_answer_is_void() {
    let patience = Patience {
        tries_max: 4,
        pause_first: Duration::from_secs(1),
        pause_max: Duration::from_secs(9),
        retry_after_max: Duration::from_secs(9),
        left_at_once: &[],
        seed: 1,
    };
    for provider in Provider::ALL {
        // Half of the stream is most of the text.
        let half = Step::say("half ".repeat(200)).broken(Broken::Half);
        let server = start(Script::new([Step::fail(529), half, Step::say("whole")]));
        let (mut heard, mut kinds) = (Heard::default(), Vec::new());
        let reply = ask_patiently(
            model(provider, &server.url()).as_mut(),
            &request("go"),
            &mut |delta| heard.take(delta),
            &patience,
            &mut |_, error| {
                kinds.push(error.kind);
                ControlFlow::Continue(())
            },
        )
        .unwrap();
        assert_eq!(kinds, [ErrorKind::Overload, ErrorKind::BadAnswer], "{provider}");
        assert_eq!((reply.said.text.as_str(), heard.text.as_str()), ("whole", "whole"));
        assert_eq!(server.count(), 3);
    }
}

#[test]
fn a_delta_of_a_megabyte_is_a_text_like_any_other() {
    for provider in Provider::ALL {
        let server = start(Script::new([Step::default().broken(Broken::Huge)]));
        let reply = ask(model(provider, &server.url()).as_mut(), &request("go")).unwrap();
        assert_eq!((reply.said.text.len(), reply.end), (1 << 20, End::Turn), "{provider}");
    }
}

#[test]
fn arguments_are_given_on_as_they_were_written_valid_or_not() {
    for provider in Provider::ALL {
        let step = Step::default().and_call_with("Bash", "{\"command\": \"l");
        let server = start(Script::new([step]));
        let reply = ask(model(provider, &server.url()).as_mut(), &request("go"));
        if provider == Provider::Gemini {
            // It notices itself, and gives nothing on.
            assert_eq!(reply.map_err(|error| error.kind), Err(ErrorKind::BadAnswer));
            continue;
        }
        let reply = reply.unwrap();
        assert_eq!(reply.said.calls[0].arguments, "{\"command\": \"l", "{provider}");
        // What can't be read back is told in an object, so that the wire stays valid.
        let server = start(Script::new([Step::say("ok")]));
        let mut again = request("go");
        again.messages.push(Message::Assistant(reply.said));
        assert!(ask(model(provider, &server.url()).as_mut(), &again).is_ok());
    }
}

/// An answer of each provider in one piece, and as a stream, each with more than anybody
/// asked for.
fn told(provider: Provider) -> (Value, Vec<Value>) {
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
fn what_nobody_knows_is_left_out_whether_it_streams_or_not() {
    for provider in Provider::ALL {
        let (whole, events) = told(provider);
        let untyped = answer(200, "", &whole.to_string());
        let server = Canned::start(vec![stream(&events), json_answer(200, &whole), untyped]);
        let mut model = model(provider, &server.url);
        for form in ["stream", "whole", "untyped"] {
            let reply = ask(model.as_mut(), &request("go")).unwrap();
            assert_eq!(
                (reply.said.text.as_str(), reply.end),
                ("hi", End::Turn),
                "{provider} {form}"
            );
            assert_eq!(reply.usage, None);
        }
    }
}

#[test]
fn a_connection_is_used_again() {
    for provider in Provider::ALL {
        let bytes = String::from_utf8(stream(&told(provider).1)).unwrap();
        let bytes = bytes.replace("connection: close\r\n", "");
        // The second question comes on the connection of the first, or nobody answers it.
        let server = Canned::with(1, move |_, mut stream| {
            stream.write_all(bytes.as_bytes()).unwrap();
            if read(&stream).is_some() {
                stream.write_all(bytes.as_bytes()).unwrap();
            }
        });
        let patient = Duration::from_secs(5);
        let spec = ModelSpec { silence_max: patient, ..spec(provider, &server.url) };
        let mut model = connect(&spec).unwrap();
        for _ in 0..2 {
            assert_eq!(ask(model.as_mut(), &request("go")).unwrap().said.text, "hi", "{provider}");
        }
    }
}

#[test]
fn a_stream_may_come_byte_by_byte() {
    for provider in Provider::ALL {
        let bytes = stream(&told(provider).1);
        let server = Canned::with(1, move |_, mut stream| {
            stream.set_nodelay(true).unwrap();
            for byte in &bytes {
                if stream.write_all(&[*byte]).is_err() {
                    return;
                }
            }
        });
        let reply = ask(model(provider, &server.url).as_mut(), &request("go")).unwrap();
        assert_eq!(reply.said.text, "hi", "{provider}");
    }
}

#[test]
fn whoever_has_heard_enough_ends_the_answer() {
    for provider in Provider::ALL {
        let server = start(Script::new([Step::say("long")]));
        let found = model(provider, &server.url()).ask(&request("go"), &mut |delta| match delta {
            Delta::Text(_) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
        assert_eq!(found.map_err(|error| error.kind), Err(ErrorKind::Cancelled), "{provider}");
    }
}

/// Servers that leave out ids or indices, repeat them, or send calls whole.
#[test]
fn calls_are_told_apart_however_a_chat_server_numbers_them() {
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
        let server = Canned::start(vec![stream(&events)]);
        let reply = ask(model(Provider::OpenAiChat, &server.url).as_mut(), &request("go")).unwrap();
        let calls = reply.said.calls.iter();
        let calls: Vec<[&str; 3]> =
            calls.map(|it| [it.id.as_str(), it.name.as_str(), it.arguments.as_str()]).collect();
        assert_eq!(calls, [["a", "Bash", "{\"x\":1}"], ["b", "Read", "{}"]], "{events:?}");
        assert_eq!(reply.end, End::Calls);
    }
}

#[test]
fn an_answer_that_is_cut_off_or_refused_says_so() {
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
        (Provider::Anthropic, stop("max_tokens"), End::Length),
        (Provider::Anthropic, stop("refusal"), End::Refusal),
        (Provider::OpenAi, incomplete("max_output_tokens"), End::Length),
        (Provider::OpenAi, incomplete("content_filter"), End::Refusal),
        (Provider::OpenAi, vec![refusal, completed], End::Refusal),
        (Provider::OpenAiChat, finish("length"), End::Length),
        (Provider::OpenAiChat, finish("content_filter"), End::Refusal),
        (Provider::Gemini, candidate("MAX_TOKENS"), End::Length),
        (Provider::Gemini, candidate("SAFETY"), End::Refusal),
        (Provider::Gemini, blocked, End::Refusal),
    ] {
        let server = Canned::start(vec![stream(&events)]);
        let reply = ask(model(provider, &server.url).as_mut(), &request("go")).unwrap();
        assert_eq!(reply.end, end, "{provider} {events:?}");
    }
}
