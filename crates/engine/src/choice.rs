//! Who does the work of a supervised run, and who is asked where it is stuck.
//!
//! The supervisor asks and runs them. The engine looks at what they are called and at
//! how often the advisor may be asked, and at nothing else.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::id::ClientId;

/// One of those that can do the work, in the order in which they are tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelChoice {
    /// What it is.
    pub kind: ModelKind,
    /// The model that a worker is told to use.
    pub worker_model: Option<String>,
    /// What it is tried for; everything where nothing is said.
    pub when: Vec<ModelOccasion>,
    /// How many requests, or iterations of a worker, it may be given in a session.
    pub budget: Option<u32>,
}

/// What does the work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ModelKind {
    /// A model, driven by our own loop.
    Provider {
        /// How it is spoken to.
        provider: ModelProvider,
        /// Its name there.
        model: String,
        /// Where it is, if not at the provider's own address.
        url: Option<String>,
        /// The environment variable that holds the key, if not the provider's usual one.
        key_env: Option<String>,
        /// How many tokens its context holds.
        window: Option<u64>,
        /// How long one answer may take.
        timeout_seconds: Option<u32>,
    },
    /// An agent client that has hooks, run without a person.
    Client(ClientId),
    /// Any other agent, by its program and arguments.
    Command(Vec<String>),
}

/// How a model is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ModelProvider {
    /// Anthropic's messages.
    Anthropic,
    /// `OpenAI`'s responses.
    OpenAi,
    /// Chat completions, as many servers speak them.
    OpenAiChat,
    /// Google's.
    Gemini,
    /// A script that is played.
    Scripted,
    /// A file of this machine, which is run in the process that asks.
    Local,
}

impl ModelProvider {
    /// All of them, with their words.
    pub const ALL: [(&str, Self); 6] = [
        ("anthropic", Self::Anthropic),
        ("openai", Self::OpenAi),
        ("openai-chat", Self::OpenAiChat),
        ("gemini", Self::Gemini),
        ("scripted", Self::Scripted),
        ("local", Self::Local),
    ];

    /// Its word.
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(_, known)| *known == self).map_or("", |(word, _)| word)
    }
}

/// What one of them is tried for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ModelOccasion {
    /// The one before has too much to do.
    Overload,
    /// The one before costs too much.
    Cost,
    /// The network is gone.
    Offline,
    /// What is worked on must not leave the house.
    Sensitive,
}

impl ModelOccasion {
    /// All of them, with their words.
    pub const ALL: [(&str, Self); 4] = [
        ("overload", Self::Overload),
        ("cost", Self::Cost),
        ("offline", Self::Offline),
        ("sensitive", Self::Sensitive),
    ];

    /// Its word.
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(_, known)| *known == self).map_or("", |(word, _)| word)
    }
}

/// Who is asked, out of band, where a session is stuck.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advisor {
    /// The models, in the order in which they are tried. All are providers.
    pub models: Vec<ModelChoice>,
    /// How many of the last lines of the transcript they are shown.
    pub transcript_lines: u32,
    /// How often they are asked in a session.
    pub budget: u32,
}

impl Advisor {
    /// How many lines are shown where nothing is said.
    pub const TRANSCRIPT_LINES: u32 = 500;

    /// How often they are asked where nothing is said.
    pub const BUDGET: u32 = 2;
}

impl ModelChoice {
    /// The name by which `model_changed` tells of it: `provider/model`, or the name of
    /// the worker, with the model that it is told to use.
    pub fn label(&self) -> String {
        let of = |name: &str, model: Option<&str>| match model {
            Some(model) => format!("{name}/{model}"),
            None => name.to_string(),
        };
        match &self.kind {
            ModelKind::Provider { provider, .. } => of(provider.word(), self.model()),
            ModelKind::Client(client) => of(client.as_str(), self.model()),
            ModelKind::Command(words) => {
                let program = words.first().map_or("", String::as_str);
                let name = program.rsplit('/').next().unwrap_or(program);
                of(name, self.model())
            }
        }
    }

    /// The model, where one is named.
    pub fn model(&self) -> Option<&str> {
        match &self.kind {
            ModelKind::Provider { model, .. } => Some(model),
            ModelKind::Client(_) | ModelKind::Command(_) => self.worker_model.as_deref(),
        }
    }

    /// Whether a person has to trust whoever names it: it runs a program, or has a library
    /// read a file that may be made to harm it, or sends what is worked on, or one of their
    /// keys, where the file says.
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
    fn a_label_says_who_it_is() {
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
