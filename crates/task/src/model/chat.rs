//! A model behind an address that speaks as `OpenAI`'s chat completions do, or one of this
//! machine.

use std::fmt;
use std::ops::ControlFlow;
use std::time::Duration;

use jackline_attempt::ProviderError;
use jackline_model::{
    End, ErrorKind, Key, LocalSpec, Message, ModelError, OutputSchema, Provider, connect,
    open_local,
};
use serde_json::Value;

use super::{Model, Reply, Request, Usage};

/// Where a model is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chat {
    /// The address before `/chat/completions`.
    pub url: String,
    /// The model's name.
    pub name: String,
    /// The variable that holds the key; what it says is shown nowhere.
    pub key_env: Option<String>,
    /// How long it may take to answer.
    pub timeout_seconds: u64,
}

/// A model that is asked.
pub(super) struct Asked {
    name: String,
    /// Or why it can't be asked.
    model: Result<Box<dyn jackline_model::Model>, ModelError>,
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Asked").field(&self.name).finish()
    }
}

impl Asked {
    pub(super) fn new(chat: &Chat, key: Option<&str>) -> Self {
        let timeout = Duration::from_secs(chat.timeout_seconds.max(1));
        let model = connect(&jackline_model::ModelSpec {
            provider: Provider::OpenAiChat,
            name: chat.name.clone(),
            url: Some(chat.url.clone()),
            key: key.map(Key::new),
            timeout,
            silence_max: timeout,
        });
        Self { name: chat.name.clone(), model }
    }

    pub(super) fn local(spec: &LocalSpec) -> Self {
        Self { name: spec.name().to_owned(), model: open_local(spec) }
    }
}

impl Model for Asked {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn ask(&mut self, request: &Request) -> Result<Reply, ProviderError> {
        let request = jackline_model::Request {
            system: request.system.clone(),
            messages: vec![Message::User(request.user())],
            output: request.output.clone().map(output),
            ..jackline_model::Request::default()
        };
        let model = self.model.as_mut().map_err(|error| failed(error))?;
        let answer = model.ask(&request, &mut |_| ControlFlow::Continue(()));
        answer.map(reply).map_err(|error| failed(&error))
    }
}

fn output(schema: Value) -> OutputSchema {
    OutputSchema { name: "plan".to_owned(), schema }
}

fn reply(reply: jackline_model::Reply) -> Reply {
    let usage = reply.usage.map(|usage| Usage {
        input: usage.input + usage.cache_read + usage.cache_creation,
        output: usage.output,
    });
    Reply { text: reply.said.text, usage, cut_off: reply.end == End::Length }
}

/// A failure in the words that outcomes have for it.
fn failed(error: &ModelError) -> ProviderError {
    let error_type = match error.kind {
        ErrorKind::Auth => "missing_credentials",
        ErrorKind::RateLimit | ErrorKind::PlanLimit => "rate_limited",
        ErrorKind::Timeout if error.status.is_none() => "timeout",
        ErrorKind::Network if error.status.is_none() => "network_error",
        _ => "provider",
    };
    ProviderError {
        error_type: error_type.to_owned(),
        message: error.message.clone(),
        retriable: error.kind.is_passing(),
    }
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
        ] {
            let error = failed(&ModelError { status, ..ModelError::new(kind, "no") });
            assert_eq!((error.error_type.as_str(), error.retriable), (error_type, retriable));
        }
    }
}
