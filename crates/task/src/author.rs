//! Authors: they write the programs and plans of a task.
//!
//! An author gets the parts of a request apart, because a run that keeps a conversation has
//! some of them there already. A model that is asked once gets all of them in one message.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;

use jackline_attempt::ProviderError;
use jackline_model::{
    ConversationMessage, Model, ModelError, ModelErrorKind, ModelReply, ModelRequest, OutputSchema,
};
use serde_json::Value;

/// Writes programs and plans for attempts.
pub trait Author {
    /// The name of the model in traces.
    fn name(&self) -> String;

    /// Writes one program or plan.
    fn write(&mut self, request: &ArtifactRequest) -> Result<ModelReply, ModelError>;
}

/// An author that a call and its delegates share.
pub type SharedAuthor<'m> = Rc<RefCell<dyn Author + 'm>>;

/// A request for one program or plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactRequest {
    /// The instructions, which are the same for every task.
    pub system: String,
    /// The task. An author that keeps a conversation may have it there already.
    pub task: String,
    /// The tools, delegates and context.
    pub resources: String,
    /// Texts of the guards, and the errors of the last attempt. Empty at first.
    pub updates: String,
    /// The JSON Schema of the answer, unless it is free text.
    pub output: Option<Value>,
}

impl ArtifactRequest {
    /// Everything except the instructions, for a model that keeps no conversation.
    pub fn user_message(&self) -> String {
        let parts = [&self.task, &self.resources, &self.updates].into_iter();
        let parts = parts.filter(|part| !part.is_empty()).map(String::as_str);
        parts.collect::<Vec<_>>().join("\n\n")
    }
}

/// A model that gets one request for each program or plan.
pub(crate) struct ModelAuthor {
    name: String,
    /// The model, or why it could not be opened.
    model: Result<Box<dyn Model>, ModelError>,
}

impl ModelAuthor {
    pub(crate) fn new(name: &str, model: Result<Box<dyn Model>, ModelError>) -> Self {
        Self { name: name.to_owned(), model }
    }
}

impl Author for ModelAuthor {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn write(&mut self, request: &ArtifactRequest) -> Result<ModelReply, ModelError> {
        let output = request.output.clone();
        let request = ModelRequest {
            system: request.system.clone(),
            messages: vec![ConversationMessage::User(request.user_message())],
            output: output.map(|schema| OutputSchema { name: "plan".to_owned(), schema }),
            ..ModelRequest::default()
        };
        let model = self.model.as_mut().map_err(|error| error.clone())?;
        model.ask(&request, &mut |_| ControlFlow::Continue(()))
    }
}

/// A retriable error.
pub(crate) fn provider_error(error_type: &str, message: impl Into<String>) -> ProviderError {
    ProviderError { error_type: error_type.to_owned(), message: message.into(), retriable: true }
}

/// The failure of a model as an error of outcomes.
pub(crate) fn model_failure(error: &ModelError) -> ProviderError {
    let error_type = match error.kind {
        ModelErrorKind::Auth => "missing_credentials",
        ModelErrorKind::RateLimit | ModelErrorKind::PlanLimit => "rate_limited",
        ModelErrorKind::Timeout if error.status.is_none() => "timeout",
        ModelErrorKind::Network if error.status.is_none() => "network_error",
        _ => "provider",
    };
    let retriable = error.kind.is_temporary();
    ProviderError { retriable, ..provider_error(error_type, error.message.clone()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_passing_failures_are_retriable() {
        for (kind, status, error_type, retriable) in [
            (ModelErrorKind::Auth, Some(401), "missing_credentials", false),
            (ModelErrorKind::RateLimit, Some(429), "rate_limited", true),
            (ModelErrorKind::PlanLimit, Some(429), "rate_limited", false),
            (ModelErrorKind::Timeout, None, "timeout", true),
            (ModelErrorKind::Timeout, Some(504), "provider", true),
            (ModelErrorKind::Network, None, "network_error", true),
            (ModelErrorKind::Overload, Some(500), "provider", true),
            (ModelErrorKind::BadAnswer, None, "provider", true),
            (ModelErrorKind::BadRequest, Some(400), "provider", false),
            (ModelErrorKind::ContextLength, Some(400), "provider", false),
            (ModelErrorKind::Cancelled, None, "provider", false),
        ] {
            let error = model_failure(&ModelError { status, ..ModelError::new(kind, "no") });
            assert_eq!((error.error_type.as_str(), error.retriable), (error_type, retriable));
        }
    }
}
