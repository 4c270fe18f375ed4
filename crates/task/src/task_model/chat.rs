//! A model behind an address with the chat completions API of `OpenAI`.

use std::time::Duration;

use jackline_model::{ApiKey, Model, ModelError, Provider, connect};

/// How to reach a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatSpec {
    /// The address before `/chat/completions`.
    pub url: String,
    /// The name of the model.
    pub name: String,
    /// The variable that contains the API key. The key is never shown.
    pub key_env: Option<String>,
    /// How many seconds an answer may take.
    pub timeout_seconds: u64,
}

impl ChatSpec {
    /// Opens the model. Sends nothing yet.
    pub(super) fn connect(&self, key: Option<&str>) -> Result<Box<dyn Model>, ModelError> {
        let timeout = Duration::from_secs(self.timeout_seconds.max(1));
        connect(&jackline_model::RemoteModelSpec {
            provider: Provider::OpenAiChat,
            name: self.name.clone(),
            url: Some(self.url.clone()),
            key: key.map(ApiKey::new),
            timeout,
            silence_max: timeout,
        })
    }
}
