//! Tests that every answer ends: by its length limit, by its timeout, or because the caller
//! cancels.

use std::ops::ControlFlow;
use std::time::Duration;

use jackline_host::clock::now;
use jackline_model::{
    AnswerDelta, AnswerEnd, LocalModelSpec, ModelErrorKind, ModelRequest, open_local_model,
};
use serde_json::json;

use crate::model_requests::{ask, document_request, model, request, spec};

/// How long the answer may continue after the caller cancels.
const CANCEL_MS_MAX: u64 = 1000;

#[test]
fn a_text_without_an_end_stays_within_its_length() {
    let mut model = model();
    // This schema forces the text to continue.
    let endless = json!({ "type": "string", "minLength": 100_000 });
    let request_60 = ModelRequest { output_tokens_max: 60, ..document_request("Go.", &endless) };
    let reply = ask(model.as_mut(), &request_60).unwrap();
    assert_eq!((reply.end, reply.usage.unwrap().output), (AnswerEnd::Length, 60), "{reply:?}");
    // This answer could end earlier, but need not.
    let open = json!({ "type": "object", "properties": { "a": { "type": "string" } },
                       "required": ["a"] });
    let open_request =
        document_request("Count from one to ten thousand, in words, in one line.", &open);
    let reply =
        ask(model.as_mut(), &ModelRequest { output_tokens_max: 60, ..open_request }).unwrap();
    let output = reply.usage.unwrap().output;
    assert!(output < 60 && reply.end == AnswerEnd::Turn || output == 60, "{reply:?}");
}

#[test]
fn a_full_context_window_ends_the_answer() {
    let small = LocalModelSpec { window: Some(256), ..spec() };
    let mut model = open_local_model(&small).unwrap();
    let endless = json!({ "type": "string", "minLength": 100_000 });
    let full_request = ModelRequest { output_tokens_max: 0, ..document_request("Go.", &endless) };
    let reply = ask(model.as_mut(), &full_request).unwrap();
    let usage = reply.usage.unwrap();
    assert_eq!((reply.end, usage.input + usage.output), (AnswerEnd::Length, 256), "{reply:?}");
    let error = ask(model.as_mut(), &request(&"word ".repeat(400))).unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::ContextLength, "{error}");
    assert!(error.message.contains("context window has 256"), "{error}");
    // The model can be used again after the error.
    ask(model.as_mut(), &ModelRequest { output_tokens_max: 5, ..request("Hello.") }).unwrap();
}

#[test]
fn a_cancelled_answer_ends_at_once() {
    let mut model = model();
    let endless = json!({ "type": "string", "minLength": 100_000 });
    for (cancelled_request, text_count) in
        [(document_request("Go.", &endless), 3), (request(&"Read this. ".repeat(500)), 0)]
    {
        let cancelled_request = ModelRequest { output_tokens_max: 0, ..cancelled_request };
        let (mut received, mut cancelled_ms) = (0, None);
        let error = model
            .ask(&cancelled_request, &mut |delta| {
                received += i32::from(matches!(delta, AnswerDelta::Text(_)));
                if received < text_count {
                    return ControlFlow::Continue(());
                }
                cancelled_ms.get_or_insert(now().boot_ms);
                ControlFlow::Break(())
            })
            .unwrap_err();
        let elapsed_ms = now().boot_ms - cancelled_ms.unwrap();
        assert_eq!(error.kind, ModelErrorKind::Cancelled);
        assert!(elapsed_ms < CANCEL_MS_MAX, "{elapsed_ms} ms");
        println!("ended after {elapsed_ms} ms");
    }
    // The model answers the next request.
    ask(model.as_mut(), &ModelRequest { output_tokens_max: 5, ..request("Hello.") }).unwrap();
}

#[test]
fn an_answer_ends_at_its_timeout() {
    let limit = Duration::from_millis(700);
    let mut model = open_local_model(&LocalModelSpec { timeout: limit, ..spec() }).unwrap();
    let endless = json!({ "type": "string", "minLength": 100_000 });
    let start_ms = now().boot_ms;
    let endless_request =
        ModelRequest { output_tokens_max: 0, ..document_request("Go.", &endless) };
    let error = ask(model.as_mut(), &endless_request).unwrap_err();
    let elapsed_ms = now().boot_ms - start_ms;
    assert_eq!(error.kind, ModelErrorKind::Timeout, "{error}");
    assert!(elapsed_ms < 700 + CANCEL_MS_MAX, "{elapsed_ms} ms");
}
