//! Servers that refuse, break or send nothing, and the resulting errors.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::ops::ControlFlow;
use std::sync::mpsc::channel;
use std::time::Duration;

use jackline_model::scripted::{AnswerDefect, ModelScript, ScriptStep};
use jackline_model::{AnswerDelta, ModelError, ModelErrorKind, Provider, RemoteModelSpec, connect};
use serde_json::{Value, json};

use crate::world::{
    CannedServer, KEY, SHORT, answer, ask, json_answer, model, request, spec, start, stream,
};

fn failure(provider: Provider, url: &str) -> ModelError {
    ask(model(provider, url).as_mut(), &request("go")).unwrap_err()
}

/// The error for a server's response.
fn error_of_response(provider: Provider, bytes: Vec<u8>) -> ModelError {
    failure(provider, &CannedServer::start(vec![bytes]).url)
}

#[test]
fn a_refused_key_is_reported_with_its_variable_and_never_shown() {
    for provider in Provider::ALL {
        // The message is also cut within the key.
        for before in ["", &"long ".repeat(46), &"x".repeat(225)] {
            let step =
                ScriptStep { text: format!("{before}no: {KEY}, {KEY}"), ..ScriptStep::fail(401) };
            let server = start(ModelScript::new([step]));
            let error = failure(provider, &server.url());
            assert_eq!((error.kind, error.status), (ModelErrorKind::Auth, Some(401)), "{provider}");
            let variable = provider.default_key_env().unwrap_or("the key");
            assert!(error.message.contains(variable), "{}", error.message);
            assert!(!format!("{error:?}").contains("sk-SEC"), "{error:?}");
            assert!(error.message.chars().count() <= 400);
        }
        let event = json!({ "error": { "message": format!("{}{KEY}", "z".repeat(350)) } });
        let error = error_of_response(provider, stream(&[event]));
        assert!(!format!("{error:?}").contains("sk-S"), "{error:?}");
        assert!(error.message.chars().count() <= 400);
    }
}

#[test]
fn an_incomplete_html_or_empty_response_is_an_error() {
    for provider in Provider::ALL {
        let half = ScriptStep::say("half ".repeat(50)).broken(AnswerDefect::Incomplete);
        let html = ScriptStep::default().broken(AnswerDefect::Html);
        let server = start(ModelScript::new([half, html]));
        for message in ["before the end", "HTML"] {
            let error = failure(provider, &server.url());
            assert_eq!(error.kind, ModelErrorKind::BadAnswer, "{provider}");
            assert!(error.message.contains(message), "{}", error.message);
        }
        for (bytes, message) in [
            (answer(200, "content-type: text/event-stream\r\n", ""), "empty"),
            (answer(200, "content-type: application/json\r\n", " "), "empty"),
            (answer(200, "content-type: application/json\r\n", "{\"a\":"), "before the end"),
            (answer(200, "content-type: application/json\r\n", "nonsense"), "not JSON"),
            (answer(200, "content-type: application/json\r\n", "{}"), ""),
            (answer(200, "content-type: text/event-stream\r\n", "data: {nonsense\n\n"), "not JSON"),
            (
                answer(200, "content-type: text/event-stream\r\n", ": only a comment\n\n"),
                "before the end",
            ),
            (
                b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\ndata: {}\n\n".to_vec(),
                "before the end",
            ),
            (
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\ndata: ".to_vec(),
                "before the end",
            ),
        ] {
            let shown = String::from_utf8_lossy(&bytes).into_owned();
            let error = error_of_response(provider, bytes);
            assert_eq!(error.kind, ModelErrorKind::BadAnswer, "{provider} {shown}: {error:?}");
            assert!(error.message.contains(message), "{provider} {shown}: {}", error.message);
        }
        // The server accepted the connection and closed it.
        assert_eq!(
            error_of_response(provider, Vec::new()).kind,
            ModelErrorKind::Network,
            "{provider}"
        );
    }
}

#[test]
fn an_event_without_an_end_is_an_error() {
    for provider in Provider::ALL {
        let server = CannedServer::with(1, |_, mut stream| {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: ";
            let _ = stream.write_all(head.as_bytes());
            let piece = vec![b'x'; 1 << 20];
            while stream.write_all(&piece).is_ok() {}
        });
        let error = failure(provider, &server.url);
        assert_eq!(error.kind, ModelErrorKind::BadAnswer, "{provider}: {error:?}");
        assert!(error.message.contains("longer than the limit"), "{}", error.message);
    }
}

#[test]
fn silence_and_an_endless_answer_time_out() {
    for provider in Provider::ALL {
        let server = start(ModelScript::new([ScriptStep::default().broken(AnswerDefect::Nothing)]));
        let quiet = RemoteModelSpec { silence_max: SHORT, ..spec(provider, &server.url()) };
        let error = ask(connect(&quiet).unwrap().as_mut(), &request("go")).unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Timeout, "{provider}: {error:?}");
        assert!(error.message.contains("no data"), "{}", error.message);

        // The server is never silent and never finishes.
        let server = CannedServer::with(1, |_, mut stream| {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
            let _ = stream.write_all(head.as_bytes());
            while stream.write_all(b": ping\n\n").is_ok() {
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        let slow = RemoteModelSpec { timeout: SHORT, ..spec(provider, &server.url) };
        let error = ask(connect(&slow).unwrap().as_mut(), &request("go")).unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Timeout, "{provider}: {error:?}");
        assert!(error.message.contains("too long"), "{}", error.message);
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "this test measures time")]
fn a_caller_of_a_silent_server_can_cancel_within_a_second() {
    for provider in Provider::ALL {
        let server = start(ModelScript::new([ScriptStep::default().broken(AnswerDefect::Nothing)]));
        let began = std::time::Instant::now();
        let error = model(provider, &server.url())
            .ask(&request("go"), &mut |delta| {
                assert_eq!(delta, AnswerDelta::Waiting);
                ControlFlow::Break(())
            })
            .unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Cancelled, "{provider}");
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    }
}

#[test]
fn the_connection_of_a_cancelled_answer_is_closed() {
    for provider in Provider::ALL {
        let (sender, closed) = channel();
        let server = CannedServer::with(1, move |_, mut stream| {
            let end = stream.read(&mut [0]);
            sender.send(matches!(end, Ok(0) | Err(_))).unwrap();
        });
        let mut model = model(provider, &server.url);
        let result = model.ask(&request("go"), &mut |_| ControlFlow::Break(()));
        assert_eq!(result.map_err(|error| error.kind), Err(ModelErrorKind::Cancelled));
        // The model still works, but its connection is closed.
        assert_eq!(closed.recv_timeout(Duration::from_secs(1)), Ok(true), "{provider}");
        drop(model);
    }
}

#[test]
fn a_missing_server_is_a_network_error() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for provider in Provider::ALL {
        let error = failure(provider, &format!("http://{gone}"));
        assert_eq!(error.kind, ModelErrorKind::Network, "{provider}: {error:?}");
    }
}

/// The errors of each provider for a conversation that is too long, a used up quota, and an unknown
/// model.
fn provider_errors(provider: Provider) -> [(u16, Value); 3] {
    match provider {
        Provider::Anthropic => {
            let error = |kind: &str, message: &str| json!({ "type": "error", "error": { "type": kind, "message": message } });
            let long = "prompt is too long: 210000 tokens > 200000 maximum";
            let spent = "You have reached your specified API usage limits. You will regain \
                         access on 2026-02-01 at 00:00 UTC.";
            [
                (400, error("invalid_request_error", long)),
                (400, error("invalid_request_error", spent)),
                (404, error("not_found_error", "model: some-model")),
            ]
        }
        Provider::OpenAi | Provider::OpenAiChat => {
            let error = |code: &str, message: &str| {
                json!({ "error": { "message": message, "type": "invalid_request_error",
                                   "param": null, "code": code } })
            };
            [
                (400, error("context_length_exceeded", "Your input is too much.")),
                (429, error("insufficient_quota", "You exceeded your current quota.")),
                (404, error("model_not_found", "It does not exist.")),
            ]
        }
        Provider::Gemini => {
            let error = |status: &str, message: &str, details: Value| json!({ "error": { "message": message, "status": status, "details": details } });
            let long =
                "The input token count (9) exceeds the maximum number of tokens allowed (8).";
            let quota = json!([{ "violations": [
                { "quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier" },
            ] }]);
            [
                (400, error("INVALID_ARGUMENT", long, json!([]))),
                (429, error("RESOURCE_EXHAUSTED", "You exceeded your current quota.", quota)),
                (404, error("NOT_FOUND", "models/x is not found for API version", json!([]))),
            ]
        }
    }
}

#[test]
fn the_errors_of_all_providers_get_the_same_kinds() {
    let kinds =
        [ModelErrorKind::ContextLength, ModelErrorKind::PlanLimit, ModelErrorKind::UnknownModel];
    for provider in Provider::ALL {
        for ((status, body), kind) in provider_errors(provider).into_iter().zip(kinds) {
            let error = error_of_response(provider, json_answer(status, &body));
            assert_eq!((error.kind, error.status), (kind, Some(status)), "{provider}: {error:?}");
        }
    }
}

#[test]
fn the_retry_delay_is_read_from_all_its_forms() {
    let date = "date: Wed, 21 Oct 2026 07:28:00 GMT\r\n";
    let later = format!("{date}retry-after: Wed, 21 Oct 2026 07:28:30 GMT\r\n");
    let none = json!({});
    let info = json!({ "error": { "details": [{ "retryDelay": "2.5s" }] } });
    let access = json!({ "error": { "message": "usage limits; you will regain access on \
                                                2026-10-21 at 08:28 UTC." } });
    for (headers, body, wait) in [
        ("retry-after: 7\r\n", &none, Some(Duration::from_secs(7))),
        ("retry-after-ms: 70\r\nretry-after: 7\r\n", &none, Some(Duration::from_millis(70))),
        (later.as_str(), &none, Some(Duration::from_secs(30))),
        ("retry-after: Wed, 21 Oct 2026 07:28:30 GMT\r\n", &none, None),
        ("retry-after: soon\r\n", &none, None),
        ("", &info, Some(Duration::from_millis(2500))),
        (date, &access, Some(Duration::from_hours(1))),
    ] {
        let bytes = answer(429, headers, &body.to_string());
        let error = error_of_response(Provider::Gemini, bytes);
        assert_eq!(error.retry_after, wait, "{headers}{body}");
    }
}

#[test]
fn an_error_within_a_stream_gets_its_kind() {
    let failed = |code: &str| {
        let error = json!({ "code": code, "message": "m" });
        json!({ "type": "response.failed", "response": { "error": error } })
    };
    let overloaded = json!({ "type": "overloaded_error", "message": "Overloaded" });
    let unavailable = json!({ "code": 503, "status": "UNAVAILABLE", "message": "m" });
    let plain = json!({ "type": "error", "code": "server_error", "message": "m", "param": null });
    for (provider, event, kind) in [
        (
            Provider::Anthropic,
            json!({ "type": "error", "error": overloaded }),
            ModelErrorKind::Overload,
        ),
        (Provider::OpenAi, failed("server_error"), ModelErrorKind::Overload),
        (Provider::OpenAi, failed("rate_limit_exceeded"), ModelErrorKind::RateLimit),
        (Provider::OpenAi, plain, ModelErrorKind::Overload),
        (
            Provider::OpenAiChat,
            json!({ "error": { "message": "what?" } }),
            ModelErrorKind::BadAnswer,
        ),
        (Provider::OpenAiChat, json!({ "error": overloaded }), ModelErrorKind::Overload),
        (Provider::Gemini, json!({ "error": unavailable }), ModelErrorKind::Overload),
    ] {
        let error = error_of_response(provider, stream(std::slice::from_ref(&event)));
        assert_eq!(error.kind, kind, "{provider} {event}: {error:?}");
    }
}

#[test]
fn a_redirect_is_not_followed_with_a_key() {
    for provider in Provider::ALL {
        let elsewhere = CannedServer::start(vec![]);
        let moved = format!("location: {}/x?key=1\r\n", elsewhere.url);
        let error = error_of_response(provider, answer(307, &moved, ""));
        assert_eq!((error.kind, error.status), (ModelErrorKind::BadRequest, Some(307)));
        assert!(error.message.contains("/x`") && !error.message.contains("key=1"), "{error:?}");
        assert!(elsewhere.requests().is_empty());
        let lost = error_of_response(provider, answer(404, "", "<html>"));
        assert_eq!(lost.kind, ModelErrorKind::BadRequest);
        assert!(lost.message.contains("check the URL"), "{}", lost.message);
    }
}

#[test]
fn a_model_can_answer_after_a_failure() {
    for provider in Provider::ALL {
        let nothing = ScriptStep::default().broken(AnswerDefect::Nothing);
        let server =
            start(ModelScript::new([nothing, ScriptStep::fail(500), ScriptStep::say("well")]));
        let mut model = model(provider, &server.url());
        let result = model.ask(&request("go"), &mut |_| ControlFlow::Break(()));
        assert_eq!(result.map_err(|error| error.kind), Err(ModelErrorKind::Cancelled));
        let failed = ask(model.as_mut(), &request("go"));
        assert_eq!(failed.map_err(|error| error.kind), Err(ModelErrorKind::Overload));
        assert_eq!(ask(model.as_mut(), &request("go")).unwrap().message.text, "well");
    }
}
