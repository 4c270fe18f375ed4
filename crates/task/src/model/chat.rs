//! A model behind an address that speaks as `OpenAI`'s chat completions do.

use std::fmt;
use std::time::Duration;

use jackline_attempt::ProviderError;
use serde_json::{Value, json};
use ureq::Agent;
use ureq::http::uri::Uri;

use super::{Model, Reply, Request, Usage, provider_error, refused};

/// How long may pass until there is a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// How much of an answer is read.
const REPLY_BYTES_MAX: u64 = 8 << 20;

/// How much of what a server says about a failure is kept.
const REASON_CHARS_MAX: usize = 300;

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

/// Why an address is none for a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UrlError {
    #[error("is no address; write it as https://HOST/PATH")]
    NoUrl,
    #[error("must not hold a name or a password; name a variable with `key_env`")]
    Credentials,
    #[error("is neither encrypted nor on this machine; use https://")]
    Insecure,
}

/// Checks an address. What is said to it may be secret.
pub(crate) fn check_url(url: &str) -> Result<(), UrlError> {
    let uri: Uri = url.parse().map_err(|_| UrlError::NoUrl)?;
    let authority = uri.authority().ok_or(UrlError::NoUrl)?;
    if authority.as_str().contains('@') {
        return Err(UrlError::Credentials);
    }
    match uri.scheme_str() {
        Some("https") => Ok(()),
        Some("http") if is_loopback(authority.host()) => Ok(()),
        Some("http") => Err(UrlError::Insecure),
        _ => Err(UrlError::NoUrl),
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_matches(['[', ']']);
    host == "localhost" || bare.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

/// A model that is asked by HTTP.
pub(super) struct Remote {
    chat: Chat,
    key: Option<String>,
    agent: Agent,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.chat)
    }
}

impl Remote {
    pub(super) fn new(chat: &Chat, key: Option<String>) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("jackline/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(CONNECT))
            .timeout_connect(Some(CONNECT))
            .timeout_global(Some(Duration::from_secs(chat.timeout_seconds.max(1))));
        let host = chat.url.parse::<Uri>().ok();
        let here = host.as_ref().and_then(Uri::host).is_some_and(is_loopback);
        // What is on this machine is not asked through another one.
        let config = if here { config.proxy(None) } else { config };
        Self { chat: chat.clone(), key, agent: config.build().new_agent() }
    }

    fn failed(&self, error: &ureq::Error) -> ProviderError {
        match error {
            ureq::Error::Timeout(_) => {
                let seconds = self.chat.timeout_seconds;
                provider_error("timeout", format!("the model did not answer within {seconds} s"))
            }
            error => provider_error("network_error", format!("the model is out of reach: {error}")),
        }
    }
}

impl Model for Remote {
    fn name(&self) -> String {
        self.chat.name.clone()
    }

    fn ask(&mut self, request: &Request) -> Result<Reply, ProviderError> {
        let address = format!("{}/chat/completions", self.chat.url.trim_end_matches('/'));
        let message = |role: &str, text: &str| json!({ "role": role, "content": text });
        let body = json!({
            "model": self.chat.name,
            "messages": [message("system", &request.system), message("user", &request.user)],
        });
        let mut post = self.agent.post(&address).header("content-type", "application/json");
        if let Some(key) = &self.key {
            post = post.header("authorization", format!("Bearer {key}"));
        }
        let mut response = post.send(body.to_string()).map_err(|error| self.failed(&error))?;
        let status = response.status().as_u16();
        let read = response.body_mut().with_config().limit(REPLY_BYTES_MAX).read_to_string();
        let text = read.map_err(|error| self.failed(&error))?;
        if status != 200 {
            return Err(refused(status, &self.without_key(&reason(&text))));
        }
        let said: Value = serde_json::from_str(&text)
            .map_err(|_| provider_error("provider", "what the model's server said is no JSON"))?;
        Ok(reply(&said))
    }
}

impl Remote {
    /// Servers like to repeat the key that they do not take.
    fn without_key(&self, text: &str) -> String {
        match &self.key {
            Some(key) if !key.is_empty() => text.replace(key.as_str(), "…"),
            _ => text.to_owned(),
        }
    }
}

/// What a server says about a failure.
fn reason(text: &str) -> String {
    let said = serde_json::from_str::<Value>(text).ok();
    let message = said.as_ref().and_then(|said| said.pointer("/error/message")?.as_str());
    message.unwrap_or(text).chars().take(REASON_CHARS_MAX).collect()
}

fn reply(said: &Value) -> Reply {
    let at = |pointer: &str| said.pointer(pointer);
    let text = at("/choices/0/message/content").and_then(Value::as_str).unwrap_or_default();
    let cut_off = at("/choices/0/finish_reason").and_then(Value::as_str) == Some("length");
    let number = |pointer: &str| at(pointer).and_then(Value::as_u64);
    let usage = match (number("/usage/prompt_tokens"), number("/usage/completion_tokens")) {
        (Some(input), Some(output)) => Some(Usage { input, output }),
        _ => None,
    };
    Reply { text: text.to_owned(), usage, cut_off }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_only_sent_where_nobody_listens() {
        for (url, found) in [
            ("https://models.example/v1", Ok(())),
            ("http://127.0.0.1:8080/v1", Ok(())),
            ("http://[::1]:8080", Ok(())),
            ("http://localhost", Ok(())),
            ("http://models.example/v1", Err(UrlError::Insecure)),
            ("https://me:secret@models.example", Err(UrlError::Credentials)),
            ("ftp://models.example", Err(UrlError::NoUrl)),
            ("models", Err(UrlError::NoUrl)),
        ] {
            assert_eq!(check_url(url), found, "{url}");
        }
    }

    #[test]
    fn an_answer_is_read_as_far_as_it_is_there() {
        let said = json!({
            "choices": [{ "message": { "content": "ok(1)" }, "finish_reason": "length" }],
            "usage": { "prompt_tokens": 3, "completion_tokens": 4 },
        });
        let usage = Some(Usage { input: 3, output: 4 });
        assert_eq!(reply(&said), Reply { text: "ok(1)".to_owned(), usage, cut_off: true });
        assert_eq!(reply(&json!({ "choices": [] })), Reply::default());
    }
}
