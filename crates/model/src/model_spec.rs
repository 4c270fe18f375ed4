//! Which model to use, at which address, and with which key.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::conversation::Model;
use crate::error::{ModelError, ModelErrorKind};
use crate::http_exchange::check_url;
use crate::http_model::HttpModel;
use crate::{anthropic, chat_completions, gemini, openai};

/// The provider of a model, which determines its API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// The Anthropic Messages API.
    Anthropic,
    /// The `OpenAI` Responses API.
    OpenAi,
    /// The chat completions API, which `OpenAI` and many servers for local models offer.
    OpenAiChat,
    /// The Google Gemini API.
    Gemini,
}

/// A word that is not a provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown provider `{0}`; the providers are `anthropic`, `openai`, `openai-chat` and `gemini`"
)]
pub struct UnknownProvider(pub String);

impl FromStr for Provider {
    type Err = UnknownProvider;

    fn from_str(word: &str) -> Result<Self, UnknownProvider> {
        let provider = Self::ALL.into_iter().find(|it| it.as_str() == word);
        provider.ok_or_else(|| UnknownProvider(word.to_owned()))
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Provider {
    /// All providers.
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::OpenAi, Self::OpenAiChat, Self::Gemini];

    /// The word in definitions and records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::OpenAiChat => "openai-chat",
            Self::Gemini => "gemini",
        }
    }

    /// The default URL. For chat completions, it is that of a llama.cpp server on this machine.
    pub fn default_url(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com/v1",
            Self::OpenAi => "https://api.openai.com/v1",
            Self::OpenAiChat => "http://127.0.0.1:8080/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta",
        }
    }

    /// The environment variable that usually contains the key.
    pub fn default_key_env(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::OpenAi => Some("OPENAI_API_KEY"),
            Self::OpenAiChat => None,
            Self::Gemini => Some("GEMINI_API_KEY"),
        }
    }

    /// Whether the provider requires a key.
    pub fn key_is_needed(self) -> bool {
        self.default_key_env().is_some()
    }
}

/// An API key. Its text is never displayed.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Creates a key from a text, without surrounding white space.
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// Replaces the key in a text, because servers often repeat it.
    pub(crate) fn remove_from(&self, text: &str) -> String {
        if self.0.is_empty() { text.to_owned() } else { text.replace(&self.0, "…") }
    }

    /// Whether a header can contain the key.
    fn can_be_sent(&self) -> bool {
        self.0.bytes().all(|byte| byte.is_ascii_graphic())
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

impl fmt::Display for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// The model to use, with its timeouts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteModelSpec {
    /// The provider.
    pub provider: Provider,
    /// The name of the model at the provider.
    pub name: String,
    /// The URL, including the version in its path; by default that of the provider.
    pub url: Option<String>,
    /// The key, if there is one. This crate does not read the environment.
    pub key: Option<ApiKey>,
    /// The timeout of a complete answer.
    pub timeout: Duration,
    /// How long the server may send nothing, before the first byte or between two bytes.
    pub silence_max: Duration,
}

impl RemoteModelSpec {
    /// The URL to use: the one that is set, or the default of the provider.
    pub fn url(&self) -> &str {
        self.url.as_deref().unwrap_or(self.provider.default_url()).trim_end_matches('/')
    }
}

/// Creates the connection to a model. Nothing is sent yet.
pub fn connect(spec: &RemoteModelSpec) -> Result<Box<dyn Model>, ModelError> {
    let provider = spec.provider;
    check_url(spec.url()).map_err(|error| {
        ModelError::new(ModelErrorKind::BadRequest, format!("the URL of `{provider}` {error}"))
    })?;
    check_name(spec)?;
    let key = spec.key.as_ref().filter(|key| !key.reveal().is_empty());
    match (key, provider.default_key_env()) {
        (None, Some(variable)) => {
            let message = format!("there is no key for `{provider}`; set {variable}");
            return Err(ModelError::new(ModelErrorKind::Auth, message));
        }
        (Some(key), _) if !key.can_be_sent() => {
            let message = format!("the key for `{provider}` contains invalid characters");
            return Err(ModelError::new(ModelErrorKind::Auth, message));
        }
        _ => {}
    }
    Ok(match provider {
        Provider::Anthropic => Box::new(HttpModel::new(spec, anthropic::AnthropicApi)),
        Provider::OpenAi => Box::new(HttpModel::new(spec, openai::ResponsesApi)),
        Provider::OpenAiChat => {
            Box::new(HttpModel::new(spec, chat_completions::ChatCompletionsApi))
        }
        Provider::Gemini => Box::new(HttpModel::new(spec, gemini::GeminiApi)),
    })
}

/// Checks the name, which is a part of the path at one of the providers.
fn check_name(spec: &RemoteModelSpec) -> Result<(), ModelError> {
    let (name, provider) = (&spec.name, spec.provider);
    let in_path = |c: char| c.is_ascii_alphanumeric() || "-._/:@".contains(c);
    let fits = match provider {
        Provider::Gemini => name.chars().all(in_path) && !name.contains(".."),
        _ => !name.chars().any(char::is_control),
    };
    if fits && !name.trim().is_empty() {
        return Ok(());
    }
    let message = format!("`{}` is not a valid model name for `{provider}`", name.escape_debug());
    Err(ModelError::new(ModelErrorKind::BadRequest, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(provider: Provider) -> RemoteModelSpec {
        RemoteModelSpec {
            provider,
            name: "m".to_owned(),
            url: None,
            key: Some(ApiKey::new(" sk-1\n")),
            timeout: Duration::from_secs(1),
            silence_max: Duration::from_secs(1),
        }
    }

    fn refused(spec: &RemoteModelSpec) -> Option<(ModelErrorKind, String)> {
        connect(spec).err().map(|error| (error.kind, error.message))
    }

    #[test]
    fn a_provider_is_parsed_from_its_word() {
        for provider in Provider::ALL {
            assert_eq!(provider.as_str().parse(), Ok(provider));
            assert_eq!(refused(&spec(provider)), None);
        }
        let error = "open-ai".parse::<Provider>().unwrap_err().to_string();
        assert!(error.contains("`open-ai`") && error.contains("`openai-chat`"), "{error}");
    }

    #[test]
    fn a_missing_key_is_an_error_with_the_variable_to_set() {
        for provider in Provider::ALL {
            for key in [None, Some(ApiKey::new(" "))] {
                let error = refused(&RemoteModelSpec { key, ..spec(provider) });
                let expected = provider.default_key_env().map(|variable| {
                    (
                        ModelErrorKind::Auth,
                        format!("there is no key for `{provider}`; set {variable}"),
                    )
                });
                assert_eq!(error, expected);
            }
        }
        let (kind, message) =
            refused(&RemoteModelSpec { key: Some(ApiKey::new("a\nb")), ..spec(Provider::Gemini) })
                .unwrap();
        assert!(kind == ModelErrorKind::Auth && !message.contains("a\nb"), "{message}");
    }

    #[test]
    fn a_key_is_never_displayed() {
        let spec = spec(Provider::OpenAi);
        assert!(!format!("{spec:?} {}", spec.key.as_ref().unwrap()).contains("sk-1"));
        assert_eq!(spec.key.unwrap().remove_from("no: sk-1!"), "no: …!");
    }

    #[test]
    fn an_invalid_url_or_name_is_refused_before_a_request() {
        for url in ["models.example", "http://models.example/v1", "https://a:b@models.example"] {
            let error =
                refused(&RemoteModelSpec { url: Some(url.to_owned()), ..spec(Provider::OpenAi) });
            assert_eq!(error.map(|(kind, _)| kind), Some(ModelErrorKind::BadRequest), "{url}");
        }
        for (provider, name) in [
            (Provider::Gemini, "a?key=1"),
            (Provider::Gemini, "../files"),
            (Provider::OpenAi, " "),
            (Provider::Anthropic, "a\nb"),
        ] {
            let error = refused(&RemoteModelSpec { name: name.to_owned(), ..spec(provider) });
            assert_eq!(error.map(|(kind, _)| kind), Some(ModelErrorKind::BadRequest), "{name}");
        }
    }
}
