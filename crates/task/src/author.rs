//! What writes the programs and plans of a task.
//!
//! An author gets the parts of a request apart, because a run that keeps a conversation has
//! some of them there already. A model that is asked once gets all of them in one message.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;

use jackline_attempt::ProviderError;
use jackline_model::{ErrorKind, Message, Model, ModelError, OutputSchema, Reply, Request};
use serde_json::Value;

/// Writes what attempts try.
pub trait Author {
    /// The name of its model in traces.
    fn name(&self) -> String;

    /// Writes one program or plan.
    fn write(&mut self, request: &ArtifactRequest) -> Result<Reply, ModelError>;
}

/// An author that a call and its delegates share.
pub type SharedAuthor<'m> = Rc<RefCell<dyn Author + 'm>>;

/// What an author is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactRequest {
    /// The instructions, which are the same for every task.
    pub system: String,
    /// The task. An author that keeps a conversation may have it there already.
    pub task: String,
    /// Tools, delegates and context.
    pub means: String,
    /// Texts of the guards, and what was wrong with the last attempt; empty at first.
    pub news: String,
    /// The JSON Schema of the answer, unless it is free text.
    pub output: Option<Value>,
}

impl ArtifactRequest {
    /// All of it but the instructions, for a model that is asked once.
    pub fn user(&self) -> String {
        let parts = [&self.task, &self.means, &self.news].into_iter();
        let parts = parts.filter(|part| !part.is_empty()).map(String::as_str);
        parts.collect::<Vec<_>>().join("\n\n")
    }
}

/// A model that gets one request for each program or plan.
pub(crate) struct ModelAuthor {
    name: String,
    /// The model, or why there is none.
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

    fn write(&mut self, request: &ArtifactRequest) -> Result<Reply, ModelError> {
        let output = request.output.clone();
        let request = Request {
            system: request.system.clone(),
            messages: vec![Message::User(request.user())],
            output: output.map(|schema| OutputSchema { name: "plan".to_owned(), schema }),
            ..Request::default()
        };
        let model = self.model.as_mut().map_err(|error| error.clone())?;
        model.ask(&request, &mut |_| ControlFlow::Continue(()))
    }
}

/// An error that another request may not have.
pub(crate) fn provider_error(error_type: &str, message: impl Into<String>) -> ProviderError {
    ProviderError { error_type: error_type.to_owned(), message: message.into(), retriable: true }
}

/// The failure of a model in the words of outcomes.
pub(crate) fn model_failure(error: &ModelError) -> ProviderError {
    let error_type = match error.kind {
        ErrorKind::Auth => "missing_credentials",
        ErrorKind::RateLimit | ErrorKind::PlanLimit => "rate_limited",
        ErrorKind::Timeout if error.status.is_none() => "timeout",
        ErrorKind::Network if error.status.is_none() => "network_error",
        _ => "provider",
    };
    let retriable = error.kind.is_passing();
    ProviderError { retriable, ..provider_error(error_type, error.message.clone()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_pass_is_tried_again() {
        for (kind, status, error_type, retriable) in [
            (ErrorKind::Auth, Some(401), "missing_credentials", false),
            (ErrorKind::RateLimit, Some(429), "rate_limited", true),
            (ErrorKind::PlanLimit, Some(429), "rate_limited", false),
            (ErrorKind::Timeout, None, "timeout", true),
            (ErrorKind::Timeout, Some(504), "provider", true),
            (ErrorKind::Network, None, "network_error", true),
            (ErrorKind::Overload, Some(500), "provider", true),
            (ErrorKind::BadAnswer, None, "provider", true),
            (ErrorKind::BadRequest, Some(400), "provider", false),
            (ErrorKind::ContextLength, Some(400), "provider", false),
            (ErrorKind::Cancelled, None, "provider", false),
        ] {
            let error = model_failure(&ModelError { status, ..ModelError::new(kind, "no") });
            assert_eq!((error.error_type.as_str(), error.retriable), (error_type, retriable));
        }
    }
}
