//! The local model and requests to it.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use jackline_model::{
    ConversationMessage, LocalModelSpec, Model, ModelError, ModelReply, ModelRequest, OutputSchema,
    open_local_model,
};
use serde_json::Value;

/// Returns the path of the model file.
pub(crate) fn model_file() -> PathBuf {
    let named = std::env::vars_os().find(|(name, _)| name == "JACKLINE_TEST_GGUF");
    let Some((_, file)) = named else {
        panic!("JACKLINE_TEST_GGUF is not set; run `cargo xtask test --local-model`");
    };
    PathBuf::from(file)
}

pub(crate) fn spec() -> LocalModelSpec {
    LocalModelSpec { path: model_file(), window: Some(2048), timeout: Duration::from_mins(5) }
}

pub(crate) fn model() -> Box<dyn Model> {
    open_local_model(&spec()).unwrap()
}

/// A request without tools.
pub(crate) fn request(text: &str) -> ModelRequest {
    ModelRequest {
        system: "You are a helpful assistant.".to_owned(),
        messages: vec![ConversationMessage::User(text.to_owned())],
        tools: Vec::new(),
        output: None,
        output_tokens_max: 200,
    }
}

/// A request whose answer must be a JSON document.
pub(crate) fn document_request(text: &str, schema: &Value) -> ModelRequest {
    let output = Some(OutputSchema { name: "answer".to_owned(), schema: schema.clone() });
    ModelRequest { output, ..request(text) }
}

/// Sends a request and reads the complete reply.
pub(crate) fn ask(model: &mut dyn Model, request: &ModelRequest) -> Result<ModelReply, ModelError> {
    model.ask(request, &mut |_| ControlFlow::Continue(()))
}
