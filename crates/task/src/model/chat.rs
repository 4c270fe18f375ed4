//! A model behind an address that speaks as `OpenAI`'s chat completions do.

use std::time::Duration;

use jackline_model::{Key, Model, ModelError, Provider, connect};

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

impl Chat {
    /// Makes the model; sends nothing yet.
    pub(super) fn connect(&self, key: Option<&str>) -> Result<Box<dyn Model>, ModelError> {
        let timeout = Duration::from_secs(self.timeout_seconds.max(1));
        connect(&jackline_model::ModelSpec {
            provider: Provider::OpenAiChat,
            name: self.name.clone(),
            url: Some(self.url.clone()),
            key: key.map(Key::new),
            timeout,
            silence_max: timeout,
        })
    }
}
