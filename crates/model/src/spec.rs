//! Which model is asked, where, and with which key.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::ask::Model;
use crate::error::{ErrorKind, ModelError};
use crate::http::check_url;
use crate::remote::Remote;
use crate::{anthropic, chat, gemini, openai};

/// Whose words are spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// Anthropic's Messages.
    Anthropic,
    /// `OpenAI`'s Responses.
    OpenAi,
    /// Chat completions, as `OpenAI` and many servers for local models speak them.
    OpenAiChat,
    /// Google's Gemini.
    Gemini,
}

/// A word that is no provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no provider; there are `anthropic`, `openai`, `openai-chat` and `gemini`")]
pub struct UnknownProvider(pub String);

impl FromStr for Provider {
    type Err = UnknownProvider;

    fn from_str(word: &str) -> Result<Self, UnknownProvider> {
        let found = Self::ALL.into_iter().find(|provider| provider.as_str() == word);
        found.ok_or_else(|| UnknownProvider(word.to_owned()))
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Provider {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::OpenAi, Self::OpenAiChat, Self::Gemini];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::OpenAiChat => "openai-chat",
            Self::Gemini => "gemini",
        }
    }

    /// Where it is asked unless something else is said. Chat completions are those of a
    /// server on this machine, at the port that llama.cpp takes.
    pub fn default_url(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com/v1",
            Self::OpenAi => "https://api.openai.com/v1",
            Self::OpenAiChat => "http://127.0.0.1:8080/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta",
        }
    }

    /// The variable that its key is usually in.
    pub fn default_key_env(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::OpenAi => Some("OPENAI_API_KEY"),
            Self::OpenAiChat => None,
            Self::Gemini => Some("GEMINI_API_KEY"),
        }
    }

    /// Whether nobody is answered without a key.
    pub fn key_is_needed(self) -> bool {
        self.default_key_env().is_some()
    }
}

/// A key. What it says is shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// A key, without the blanks and newlines that get into variables.
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// A text without the key, which servers like to repeat.
    pub(crate) fn conceal(&self, text: &str) -> String {
        if self.0.is_empty() { text.to_owned() } else { text.replace(&self.0, "…") }
    }

    /// Whether a header can hold it.
    fn can_be_sent(&self) -> bool {
        self.0.bytes().all(|byte| byte.is_ascii_graphic())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// Which model is asked, and how long it may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelSpec {
    /// Whose words are spoken.
    pub provider: Provider,
    /// The model's name there.
    pub name: String,
    /// Where it is, up to and with the version in the path; else where the provider is.
    pub url: Option<String>,
    /// The key, where there is one. Nothing here reads the environment.
    pub key: Option<Key>,
    /// How long a whole answer may take.
    pub timeout: Duration,
    /// How long nothing may come, before the first byte or between two.
    pub silence_max: Duration,
}

impl ModelSpec {
    /// Where it is asked.
    pub fn url(&self) -> &str {
        self.url.as_deref().unwrap_or(self.provider.default_url()).trim_end_matches('/')
    }
}

/// Makes a model that can be asked. Nobody is asked yet.
pub fn connect(spec: &ModelSpec) -> Result<Box<dyn Model>, ModelError> {
    let provider = spec.provider;
    check_url(spec.url()).map_err(|error| {
        ModelError::new(ErrorKind::BadRequest, format!("the URL of `{provider}` {error}"))
    })?;
    check_name(spec)?;
    let key = spec.key.as_ref().filter(|key| !key.reveal().is_empty());
    match (key, provider.default_key_env()) {
        (None, Some(variable)) => {
            let message = format!("there is no key for `{provider}`; set {variable}");
            return Err(ModelError::new(ErrorKind::Auth, message));
        }
        (Some(key), _) if !key.can_be_sent() => {
            let message = format!("the key for `{provider}` has characters that no key can have");
            return Err(ModelError::new(ErrorKind::Auth, message));
        }
        _ => {}
    }
    Ok(match provider {
        Provider::Anthropic => Box::new(Remote::new(spec, anthropic::Messages)),
        Provider::OpenAi => Box::new(Remote::new(spec, openai::Responses)),
        Provider::OpenAiChat => Box::new(Remote::new(spec, chat::Completions)),
        Provider::Gemini => Box::new(Remote::new(spec, gemini::Contents)),
    })
}

/// A name is a part of a path at one of the providers.
fn check_name(spec: &ModelSpec) -> Result<(), ModelError> {
    let (name, provider) = (&spec.name, spec.provider);
    let in_path = |c: char| c.is_ascii_alphanumeric() || "-._/:@".contains(c);
    let fits = match provider {
        Provider::Gemini => name.chars().all(in_path) && !name.contains(".."),
        _ => !name.chars().any(char::is_control),
    };
    if fits && !name.trim().is_empty() {
        return Ok(());
    }
    let message = format!("`{}` is no name of a model of `{provider}`", name.escape_debug());
    Err(ModelError::new(ErrorKind::BadRequest, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(provider: Provider) -> ModelSpec {
        ModelSpec {
            provider,
            name: "m".to_owned(),
            url: None,
            key: Some(Key::new(" sk-1\n")),
            timeout: Duration::from_secs(1),
            silence_max: Duration::from_secs(1),
        }
    }

    fn refused(spec: &ModelSpec) -> Option<(ErrorKind, String)> {
        connect(spec).err().map(|error| (error.kind, error.message))
    }

    #[test]
    fn a_provider_is_known_by_its_word() {
        for provider in Provider::ALL {
            assert_eq!(provider.as_str().parse(), Ok(provider));
            assert_eq!(refused(&spec(provider)), None);
        }
        let error = "open-ai".parse::<Provider>().unwrap_err().to_string();
        assert!(error.contains("`open-ai`") && error.contains("`openai-chat`"), "{error}");
    }

    #[test]
    fn without_a_key_it_is_said_which_variable_to_set() {
        for provider in Provider::ALL {
            for key in [None, Some(Key::new(" "))] {
                let found = refused(&ModelSpec { key, ..spec(provider) });
                let expected = provider.default_key_env().map(|variable| {
                    (ErrorKind::Auth, format!("there is no key for `{provider}`; set {variable}"))
                });
                assert_eq!(found, expected);
            }
        }
        let (kind, message) =
            refused(&ModelSpec { key: Some(Key::new("a\nb")), ..spec(Provider::Gemini) }).unwrap();
        assert!(kind == ErrorKind::Auth && !message.contains("a\nb"), "{message}");
    }

    #[test]
    fn a_key_is_shown_nowhere() {
        let spec = spec(Provider::OpenAi);
        assert!(!format!("{spec:?} {}", spec.key.as_ref().unwrap()).contains("sk-1"));
        assert_eq!(spec.key.unwrap().conceal("no: sk-1!"), "no: …!");
    }

    #[test]
    fn what_is_no_url_or_no_name_is_refused_before_anybody_is_asked() {
        for url in ["models.example", "http://models.example/v1", "https://a:b@models.example"] {
            let found = refused(&ModelSpec { url: Some(url.to_owned()), ..spec(Provider::OpenAi) });
            assert_eq!(found.map(|(kind, _)| kind), Some(ErrorKind::BadRequest), "{url}");
        }
        for (provider, name) in [
            (Provider::Gemini, "a?key=1"),
            (Provider::Gemini, "../files"),
            (Provider::OpenAi, " "),
            (Provider::Anthropic, "a\nb"),
        ] {
            let found = refused(&ModelSpec { name: name.to_owned(), ..spec(provider) });
            assert_eq!(found.map(|(kind, _)| kind), Some(ErrorKind::BadRequest), "{name}");
        }
    }
}
