//! Servers that refuse, break, or say nothing, and the failures that they become.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::ops::ControlFlow;
use std::sync::mpsc::channel;
use std::time::Duration;

use jackline_model::scripted::{Broken, Script, Step};
use jackline_model::{Delta, ErrorKind, ModelError, ModelSpec, Provider, connect};
use serde_json::{Value, json};

use crate::world::{
    Canned, KEY, SHORT, answer, ask, json_answer, model, request, spec, start, stream,
};

fn failure(provider: Provider, url: &str) -> ModelError {
    ask(model(provider, url).as_mut(), &request("go")).unwrap_err()
}

/// What a server's answer becomes.
fn refused(provider: Provider, bytes: Vec<u8>) -> ModelError {
    failure(provider, &Canned::start(vec![bytes]).url)
}

#[test]
fn a_refused_key_is_told_with_the_variable_and_never_shown() {
    for provider in Provider::ALL {
        // The key is where the message is cut, too.
        for before in ["", &"long ".repeat(46), &"x".repeat(225)] {
            let step = Step { text: format!("{before}no: {KEY}, {KEY}"), ..Step::fail(401) };
            let server = start(Script::new([step]));
            let error = failure(provider, &server.url());
            assert_eq!((error.kind, error.status), (ErrorKind::Auth, Some(401)), "{provider}");
            let variable = provider.default_key_env().unwrap_or("the key");
            assert!(error.message.contains(variable), "{}", error.message);
            assert!(!format!("{error:?}").contains("sk-SEC"), "{error:?}");
            assert!(error.message.chars().count() <= 400);
        }
        let event = json!({ "error": { "message": format!("{}{KEY}", "z".repeat(350)) } });
        let error = refused(provider, stream(&[event]));
        assert!(!format!("{error:?}").contains("sk-S"), "{error:?}");
        assert!(error.message.chars().count() <= 400);
    }
}

#[test]
fn half_a_stream_html_and_nothing_are_no_answers() {
    for provider in Provider::ALL {
        let half = Step::say("half ".repeat(50)).broken(Broken::Half);
        let html = Step::default().broken(Broken::Html);
        let server = start(Script::new([half, html]));
        for message in ["in the middle", "HTML"] {
            let error = failure(provider, &server.url());
            assert_eq!(error.kind, ErrorKind::BadAnswer, "{provider}");
            assert!(error.message.contains(message), "{}", error.message);
        }
        for (bytes, message) in [
            (answer(200, "content-type: text/event-stream\r\n", ""), "empty"),
            (answer(200, "content-type: application/json\r\n", " "), "empty"),
            (answer(200, "content-type: application/json\r\n", "{\"a\":"), "in the middle"),
            (answer(200, "content-type: application/json\r\n", "nonsense"), "no JSON"),
            (answer(200, "content-type: application/json\r\n", "{}"), ""),
            (answer(200, "content-type: text/event-stream\r\n", "data: {nonsense\n\n"), "no JSON"),
            (answer(200, "content-type: text/event-stream\r\n", ": only a comment\n\n"), "middle"),
            (b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\ndata: {}\n\n".to_vec(), "middle"),
            (
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\ndata: ".to_vec(),
                "middle",
            ),
        ] {
            let shown = String::from_utf8_lossy(&bytes).into_owned();
            let error = refused(provider, bytes);
            assert_eq!(error.kind, ErrorKind::BadAnswer, "{provider} {shown}: {error:?}");
            assert!(error.message.contains(message), "{provider} {shown}: {}", error.message);
        }
        // Somebody was there, and hung up.
        assert_eq!(refused(provider, Vec::new()).kind, ErrorKind::Network, "{provider}");
    }
}

#[test]
fn an_event_without_an_end_is_not_waited_for() {
    for provider in Provider::ALL {
        let server = Canned::with(1, |_, mut stream| {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: ";
            let _ = stream.write_all(head.as_bytes());
            let piece = vec![b'x'; 1 << 20];
            while stream.write_all(&piece).is_ok() {}
        });
        let error = failure(provider, &server.url);
        assert_eq!(error.kind, ErrorKind::BadAnswer, "{provider}: {error:?}");
        assert!(error.message.contains("longer than any"), "{}", error.message);
    }
}

#[test]
fn silence_and_an_answer_without_an_end_run_into_their_limits() {
    for provider in Provider::ALL {
        let server = start(Script::new([Step::default().broken(Broken::Nothing)]));
        let quiet = ModelSpec { silence_max: SHORT, ..spec(provider, &server.url()) };
        let error = ask(connect(&quiet).unwrap().as_mut(), &request("go")).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Timeout, "{provider}: {error:?}");
        assert!(error.message.contains("nothing came"), "{}", error.message);

        // It is never silent, and never done.
        let server = Canned::with(1, |_, mut stream| {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
            let _ = stream.write_all(head.as_bytes());
            while stream.write_all(b": ping\n\n").is_ok() {
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        let slow = ModelSpec { timeout: SHORT, ..spec(provider, &server.url) };
        let error = ask(connect(&slow).unwrap().as_mut(), &request("go")).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Timeout, "{provider}: {error:?}");
        assert!(error.message.contains("too long"), "{}", error.message);
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "this test measures time")]
fn whoever_waits_for_silence_breaks_off_within_a_second() {
    for provider in Provider::ALL {
        let server = start(Script::new([Step::default().broken(Broken::Nothing)]));
        let began = std::time::Instant::now();
        let error = model(provider, &server.url())
            .ask(&request("go"), &mut |delta| {
                assert_eq!(delta, Delta::Waiting);
                ControlFlow::Break(())
            })
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::Cancelled, "{provider}");
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    }
}

#[test]
fn nothing_is_left_of_an_answer_that_was_broken_off() {
    for provider in Provider::ALL {
        let (sender, closed) = channel();
        let server = Canned::with(1, move |_, mut stream| {
            let end = stream.read(&mut [0]);
            sender.send(matches!(end, Ok(0) | Err(_))).unwrap();
        });
        let mut model = model(provider, &server.url);
        let left = model.ask(&request("go"), &mut |_| ControlFlow::Break(()));
        assert_eq!(left.map_err(|error| error.kind), Err(ErrorKind::Cancelled));
        // The model itself is still there: its connection is not.
        assert_eq!(closed.recv_timeout(Duration::from_secs(1)), Ok(true), "{provider}");
        drop(model);
    }
}

#[test]
fn nobody_there_is_a_matter_of_the_network() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for provider in Provider::ALL {
        let error = failure(provider, &format!("http://{gone}"));
        assert_eq!(error.kind, ErrorKind::Network, "{provider}: {error:?}");
    }
}

/// What each provider says when a conversation is too long, when nothing is left of what
/// was paid for, and when it has no such model.
fn own_words(provider: Provider) -> [(u16, Value); 3] {
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
fn each_provider_has_its_own_words_for_the_same_failures() {
    let kinds = [ErrorKind::ContextLength, ErrorKind::PlanLimit, ErrorKind::UnknownModel];
    for provider in Provider::ALL {
        for ((status, body), kind) in own_words(provider).into_iter().zip(kinds) {
            let error = refused(provider, json_answer(status, &body));
            assert_eq!((error.kind, error.status), (kind, Some(status)), "{provider}: {error:?}");
        }
    }
}

#[test]
fn how_long_to_wait_is_told_in_many_ways() {
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
        let error = refused(Provider::Gemini, bytes);
        assert_eq!(error.retry_after, wait, "{headers}{body}");
    }
}

#[test]
fn an_error_in_the_middle_of_a_stream_is_the_failure_that_it_names() {
    let failed = |code: &str| {
        let error = json!({ "code": code, "message": "m" });
        json!({ "type": "response.failed", "response": { "error": error } })
    };
    let overloaded = json!({ "type": "overloaded_error", "message": "Overloaded" });
    let unavailable = json!({ "code": 503, "status": "UNAVAILABLE", "message": "m" });
    let plain = json!({ "type": "error", "code": "server_error", "message": "m", "param": null });
    for (provider, event, kind) in [
        (Provider::Anthropic, json!({ "type": "error", "error": overloaded }), ErrorKind::Overload),
        (Provider::OpenAi, failed("server_error"), ErrorKind::Overload),
        (Provider::OpenAi, failed("rate_limit_exceeded"), ErrorKind::RateLimit),
        (Provider::OpenAi, plain, ErrorKind::Overload),
        (Provider::OpenAiChat, json!({ "error": { "message": "what?" } }), ErrorKind::BadAnswer),
        (Provider::OpenAiChat, json!({ "error": overloaded }), ErrorKind::Overload),
        (Provider::Gemini, json!({ "error": unavailable }), ErrorKind::Overload),
    ] {
        let error = refused(provider, stream(std::slice::from_ref(&event)));
        assert_eq!(error.kind, kind, "{provider} {event}: {error:?}");
    }
}

#[test]
fn nobody_is_followed_elsewhere_with_a_key() {
    for provider in Provider::ALL {
        let elsewhere = Canned::start(vec![]);
        let moved = format!("location: {}/x?key=1\r\n", elsewhere.url);
        let error = refused(provider, answer(307, &moved, ""));
        assert_eq!((error.kind, error.status), (ErrorKind::BadRequest, Some(307)));
        assert!(error.message.contains("/x`") && !error.message.contains("key=1"), "{error:?}");
        assert!(elsewhere.heard().is_empty());
        let lost = refused(provider, answer(404, "", "<html>"));
        assert_eq!(lost.kind, ErrorKind::BadRequest);
        assert!(lost.message.contains("check the URL"), "{}", lost.message);
    }
}

#[test]
fn a_model_answers_after_it_has_failed() {
    for provider in Provider::ALL {
        let nothing = Step::default().broken(Broken::Nothing);
        let server = start(Script::new([nothing, Step::fail(500), Step::say("well")]));
        let mut model = model(provider, &server.url());
        let left = model.ask(&request("go"), &mut |_| ControlFlow::Break(()));
        assert_eq!(left.map_err(|error| error.kind), Err(ErrorKind::Cancelled));
        let failed = ask(model.as_mut(), &request("go"));
        assert_eq!(failed.map_err(|error| error.kind), Err(ErrorKind::Overload));
        assert_eq!(ask(model.as_mut(), &request("go")).unwrap().said.text, "well");
    }
}
