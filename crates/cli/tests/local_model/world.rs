//! The model, and questions to it.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use jackline_model::{
    LocalSpec, Message, Model, ModelError, OutputSchema, Reply, Request, open_local,
};
use serde_json::Value;

/// The model's file.
pub(crate) fn gguf() -> PathBuf {
    let named = std::env::vars_os().find(|(name, _)| name == "JACKLINE_TEST_GGUF");
    let Some((_, file)) = named else {
        panic!("JACKLINE_TEST_GGUF names no model; use `cargo xtask test --local-model`");
    };
    PathBuf::from(file)
}

pub(crate) fn spec() -> LocalSpec {
    LocalSpec { path: gguf(), window: Some(2048), timeout: Duration::from_mins(5) }
}

pub(crate) fn model() -> Box<dyn Model> {
    open_local(&spec()).unwrap()
}

/// A question without tools.
pub(crate) fn request(text: &str) -> Request {
    Request {
        system: "You are a helpful assistant.".to_owned(),
        messages: vec![Message::User(text.to_owned())],
        tools: Vec::new(),
        output: None,
        output_tokens_max: 200,
    }
}

/// A question whose answer has to be a document.
pub(crate) fn document(text: &str, schema: &Value) -> Request {
    let output = Some(OutputSchema { name: "answer".to_owned(), schema: schema.clone() });
    Request { output, ..request(text) }
}

/// Asks and hears everything.
pub(crate) fn ask(model: &mut dyn Model, request: &Request) -> Result<Reply, ModelError> {
    model.ask(request, &mut |_| ControlFlow::Continue(()))
}
