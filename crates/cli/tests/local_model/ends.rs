//! Whatever is asked for, an answer ends: by its length, by the clock, or by whoever asks.

use std::ops::ControlFlow;
use std::time::Duration;

use jackline_host::clock::now;
use jackline_model::{Delta, End, ErrorKind, LocalSpec, Request, open_local};
use serde_json::json;

use crate::world::{ask, document, model, request, spec};

/// How soon after somebody leaves the answer is over.
const LEFT_MS: u64 = 1000;

#[test]
fn a_text_without_an_end_stays_within_its_length() {
    let mut model = model();
    // Nothing but more of it can follow.
    let endless = json!({ "type": "string", "minLength": 100_000 });
    let asked = Request { output_tokens_max: 60, ..document("Go.", &endless) };
    let reply = ask(model.as_mut(), &asked).unwrap();
    assert_eq!((reply.end, reply.usage.unwrap().output), (End::Length, 60), "{reply:?}");
    // This one could end, and need not.
    let open = json!({ "type": "object", "properties": { "a": { "type": "string" } },
                       "required": ["a"] });
    let asked = document("Count from one to ten thousand, in words, in one line.", &open);
    let reply = ask(model.as_mut(), &Request { output_tokens_max: 60, ..asked }).unwrap();
    let output = reply.usage.unwrap().output;
    assert!(output < 60 && reply.end == End::Turn || output == 60, "{reply:?}");
}

#[test]
fn a_context_that_is_full_is_an_end_too() {
    let small = LocalSpec { window: Some(256), ..spec() };
    let mut model = open_local(&small).unwrap();
    let endless = json!({ "type": "string", "minLength": 100_000 });
    let asked = Request { output_tokens_max: 0, ..document("Go.", &endless) };
    let reply = ask(model.as_mut(), &asked).unwrap();
    let usage = reply.usage.unwrap();
    assert_eq!((reply.end, usage.input + usage.output), (End::Length, 256), "{reply:?}");
    let error = ask(model.as_mut(), &request(&"word ".repeat(400))).unwrap_err();
    assert_eq!(error.kind, ErrorKind::ContextLength, "{error}");
    assert!(error.message.contains("context 256"), "{error}");
    // It goes on after that.
    ask(model.as_mut(), &Request { output_tokens_max: 5, ..request("Hello.") }).unwrap();
}

#[test]
fn nobody_waits_for_what_nobody_wants() {
    let mut model = model();
    let endless = json!({ "type": "string", "minLength": 100_000 });
    for (asked, until) in [(document("Go.", &endless), 3), (request(&"Read this. ".repeat(500)), 0)]
    {
        let asked = Request { output_tokens_max: 0, ..asked };
        let (mut heard, mut left) = (0, None);
        let error = model
            .ask(&asked, &mut |delta| {
                heard += i32::from(matches!(delta, Delta::Text(_)));
                if heard < until {
                    return ControlFlow::Continue(());
                }
                left.get_or_insert(now().boot_ms);
                ControlFlow::Break(())
            })
            .unwrap_err();
        let took = now().boot_ms - left.unwrap();
        assert_eq!(error.kind, ErrorKind::Cancelled);
        assert!(took < LEFT_MS, "{took} ms");
        println!("left after {took} ms");
    }
    // It answers the next one.
    ask(model.as_mut(), &Request { output_tokens_max: 5, ..request("Hello.") }).unwrap();
}

#[test]
fn an_answer_ends_when_its_time_is_over() {
    let limit = Duration::from_millis(700);
    let mut model = open_local(&LocalSpec { timeout: limit, ..spec() }).unwrap();
    let endless = json!({ "type": "string", "minLength": 100_000 });
    let began = now().boot_ms;
    let asked = Request { output_tokens_max: 0, ..document("Go.", &endless) };
    let error = ask(model.as_mut(), &asked).unwrap_err();
    let took = now().boot_ms - began;
    assert_eq!(error.kind, ErrorKind::Timeout, "{error}");
    assert!(took < 700 + LEFT_MS, "{took} ms");
}
