//! Which models and agents do the work of a supervised run, and which advisor a stuck run asks.
//! The supervisor starts and asks them. The engine only reads their names and how often the advisor
//! may be asked.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::id::ClientId;

/// One model or agent that can do the work. Choices are tried in the order of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelChoice {
    /// Whether this is a model, an agent client or a command.
    pub kind: ModelKind,
    /// The model that an agent program is told to use.
    pub worker_model: Option<String>,
    /// The occasions on which it is tried; every occasion if the list is empty.
    pub when: Vec<ModelOccasion>,
    /// How many requests, or iterations of an agent, it may use in a session.
    pub budget: Option<u32>,
}

/// The kinds of choices: a model that Jackline drives, or an agent program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ModelKind {
    /// A model, driven by Jackline's own loop.
    Provider {
        /// The protocol of the provider.
        provider: ModelProvider,
        /// The name of the model at the provider.
        model: String,
        /// The server address, if it is not the provider's own.
        url: Option<String>,
        /// The environment variable that holds the key, if it is not the provider's usual one.
        key_env: Option<String>,
        /// The size of its context window in tokens.
        window: Option<u64>,
        /// The timeout of one answer.
        timeout_seconds: Option<u32>,
    },
    /// An agent client that has hooks and runs without a person.
    Client(ClientId),
    /// Any other agent, by its program and arguments.
    Command(Vec<String>),
}

/// The protocols by which Jackline can call a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ModelProvider {
    /// Anthropic's Messages API.
    Anthropic,
    /// `OpenAI`'s Responses API.
    OpenAi,
    /// The chat completions API, which many servers offer.
    OpenAiChat,
    /// Google's Gemini API.
    Gemini,
    /// A script with fixed answers.
    Scripted,
    /// A model file on this machine, which is run in the process that asks.
    Local,
}

impl ModelProvider {
    /// Every provider with its word in definitions.
    pub const ALL: [(&str, Self); 6] = [
        ("anthropic", Self::Anthropic),
        ("openai", Self::OpenAi),
        ("openai-chat", Self::OpenAiChat),
        ("gemini", Self::Gemini),
        ("scripted", Self::Scripted),
        ("local", Self::Local),
    ];

    /// The word of this provider in definitions.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(_, known)| *known == self).map_or("", |(word, _)| word)
    }
}

/// The occasions on which a fallback model is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ModelOccasion {
    /// The provider of the model before it is overloaded.
    Overload,
    /// The model before it costs too much.
    Cost,
    /// There is no network.
    Offline,
    /// The data must not leave the user's machines.
    Sensitive,
}

impl ModelOccasion {
    /// Every occasion with its word in definitions.
    pub const ALL: [(&str, Self); 4] = [
        ("overload", Self::Overload),
        ("cost", Self::Cost),
        ("offline", Self::Offline),
        ("sensitive", Self::Sensitive),
    ];

    /// The word of this occasion in definitions.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(_, known)| *known == self).map_or("", |(word, _)| word)
    }
}

/// The advisor: the models that are asked, out of band, when a session is stuck.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advisor {
    /// The models, in the order in which they are tried. All are providers.
    pub models: Vec<ModelChoice>,
    /// How many of the last lines of the transcript the advisor sees.
    pub transcript_lines: u32,
    /// How often the advisor may be asked in a session.
    pub budget: u32,
}

impl Advisor {
    /// The number of transcript lines if the definition does not set it.
    pub const TRANSCRIPT_LINES_DEFAULT: u32 = 500;

    /// The number of questions if the definition does not set it.
    pub const BUDGET_DEFAULT: u32 = 2;
}

impl ModelChoice {
    /// The name of this choice in `model_changed` events: `provider/model`, or the name of the
    /// agent, with the model that it is told to use.
    pub fn label(&self) -> String {
        let of = |name: &str, model: Option<&str>| match model {
            Some(model) => format!("{name}/{model}"),
            None => name.to_string(),
        };
        match &self.kind {
            ModelKind::Provider { provider, .. } => of(provider.as_str(), self.model()),
            ModelKind::Client(client) => of(client.as_str(), self.model()),
            ModelKind::Command(words) => {
                let program = words.first().map_or("", String::as_str);
                let name = program.rsplit('/').next().unwrap_or(program);
                of(name, self.model())
            }
        }
    }

    /// The name of the model, if there is one.
    pub fn model(&self) -> Option<&str> {
        match &self.kind {
            ModelKind::Provider { model, .. } => Some(model),
            ModelKind::Client(_) | ModelKind::Command(_) => self.worker_model.as_deref(),
        }
    }

    /// Whether a person must trust the file that names this choice.
    /// That is so if the choice runs a program, or loads a model file, which can be crafted to
    /// attack the library that reads it. It is also so if the choice sends data or a key of the
    /// user to an address from that file.
    pub fn needs_trust(&self) -> bool {
        match &self.kind {
            ModelKind::Provider { provider, url, key_env, .. } => {
                *provider == ModelProvider::Local || url.is_some() || key_env.is_some()
            }
            ModelKind::Client(_) | ModelKind::Command(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(kind: ModelKind, model: Option<&str>) -> ModelChoice {
        let worker_model = model.map(ToString::to_string);
        ModelChoice { kind, worker_model, when: Vec::new(), budget: None }
    }

    fn agent() -> ModelKind {
        ModelKind::Client(ClientId::from_static("agent"))
    }

    fn provider(url: Option<&str>, key_env: Option<&str>) -> ModelChoice {
        let kind = ModelKind::Provider {
            provider: ModelProvider::OpenAiChat,
            model: "m".to_string(),
            url: url.map(ToString::to_string),
            key_env: key_env.map(ToString::to_string),
            window: None,
            timeout_seconds: None,
        };
        choice(kind, None)
    }

    fn command(words: &[&str], model: Option<&str>) -> ModelChoice {
        choice(ModelKind::Command(words.iter().map(ToString::to_string).collect()), model)
    }

    #[test]
    fn a_label_names_the_model_or_agent() {
        let client = |model| choice(agent(), model).label();
        assert_eq!(provider(None, None).label(), "openai-chat/m");
        assert_eq!(client(None), "agent");
        assert_eq!(client(Some("large")), "agent/large");
        assert_eq!(command(&["/opt/bin/agent", "--headless"], None).label(), "agent");
        assert_eq!(command(&["agent"], Some("m")).label(), "agent/m");
    }

    #[test]
    fn only_a_model_at_its_providers_own_address_needs_no_trust() {
        assert!(!provider(None, None).needs_trust());
        assert!(provider(Some("https://elsewhere.example"), None).needs_trust());
        assert!(provider(None, Some("GITHUB_TOKEN")).needs_trust());
        let mut local = provider(None, None);
        if let ModelKind::Provider { provider, .. } = &mut local.kind {
            *provider = ModelProvider::Local;
        }
        assert!(local.needs_trust());
        assert!(choice(agent(), None).needs_trust());
        assert!(command(&["agent"], None).needs_trust());
    }
}
