//! Who works: models and agent programs, in the order in which they are tried.

mod chain;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use jackline_engine::ClientId;
use jackline_engine::definition::{ModelChoice, ModelKind, ModelOccasion as When, ModelProvider};
use jackline_model::scripted::Script;
use jackline_model::{ErrorKind, LocalSpec, Provider};

use crate::load::{SCRIPTED_WINDOW, TIMEOUT_SECONDS};
use crate::run::RunError;

pub(crate) use chain::Chain;

/// Somebody who works.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineSpec {
    /// What it is called in records.
    pub label: String,
    /// What it is.
    pub kind: EngineKind,
    /// When it may take over; always where it is empty.
    pub when: Vec<When>,
    /// How often it may be asked; as often as it takes where there is none.
    pub budget: Option<u64>,
    /// How many tokens its context holds.
    pub window: Option<u64>,
}

/// What works.
#[derive(Debug, Clone, PartialEq)]
pub enum EngineKind {
    /// A model that says what a script says.
    Script(Script),
    /// A model behind an address.
    Model(Reach),
    /// A file of this machine, run in this process.
    Local(LocalSpec),
    /// The program of an agent client, run without a person.
    Client {
        /// The client.
        client: ClientId,
        /// The model that it is to use.
        model: Option<String>,
    },
    /// A command line that gets the prompt as its last word.
    Command(Vec<String>),
}

/// Where a model is, and how long it may take.
#[derive(Debug, Clone, PartialEq)]
pub struct Reach {
    /// Which wire it speaks.
    pub provider: Provider,
    /// Its name there.
    pub model: String,
    /// Where it is, if not at the provider's own address.
    pub url: Option<String>,
    /// The variable that holds the key.
    pub key_env: Option<String>,
    /// How long a whole answer may take.
    pub timeout: Duration,
}

/// Why another engine takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It does not answer.
    Failed(ErrorKind),
    /// It stops again and again before it is done.
    StopEvents,
    /// What it calls done is not.
    Verification,
    /// Its conversation does not fit.
    Context,
    /// It goes in circles, or gets nowhere.
    Blocked,
    /// It has used up its own budget.
    Cost,
    /// The first one is tried again.
    Return,
}

impl Reason {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Failed(kind) => kind.as_str(),
            Self::StopEvents => "stop_events",
            Self::Verification => "verification",
            Self::Context => "context",
            Self::Blocked => "blocked",
            Self::Cost => "cost",
            Self::Return => "return",
        }
    }

    /// Whether whoever is left for a reason, by its word, was asked and gave no answer.
    pub(crate) fn was_asked(word: &str) -> bool {
        let others =
            [Self::StopEvents, Self::Verification, Self::Blocked, Self::Cost, Self::Return];
        !others.iter().any(|other| other.word() == word)
    }

    /// Whether whoever takes over is asked for another plan first: what went wrong was not
    /// only that nobody answered.
    pub(crate) fn wants_plan(self) -> bool {
        matches!(self, Self::StopEvents | Self::Verification | Self::Context | Self::Blocked)
    }
}

impl EngineSpec {
    /// The engine that a definition names. A model that plays a script finds it with the task.
    pub(crate) fn of(
        choice: &ModelChoice,
        scripts: &BTreeMap<String, Script>,
    ) -> Result<Self, RunError> {
        let label = choice.label();
        let mut spec = Self {
            label: label.clone(),
            kind: EngineKind::Command(Vec::new()),
            when: choice.when.clone(),
            budget: choice.budget.map(u64::from),
            window: None,
        };
        spec.kind = match &choice.kind {
            ModelKind::Client(client) => {
                EngineKind::Client { client: client.clone(), model: choice.worker_model.clone() }
            }
            ModelKind::Command(words) => EngineKind::Command(words.clone()),
            ModelKind::Provider { provider, model, url, key_env, window, timeout_seconds } => {
                spec.window = *window;
                let seconds = timeout_seconds.map_or(TIMEOUT_SECONDS, u64::from);
                let timeout = Duration::from_secs(seconds);
                let provider = match provider {
                    ModelProvider::Anthropic => Provider::Anthropic,
                    ModelProvider::OpenAi => Provider::OpenAi,
                    ModelProvider::OpenAiChat => Provider::OpenAiChat,
                    ModelProvider::Gemini => Provider::Gemini,
                    ModelProvider::Local => {
                        let local = LocalSpec { path: model.into(), window: *window, timeout };
                        return Ok(Self { kind: EngineKind::Local(local), ..spec });
                    }
                    ModelProvider::Scripted => {
                        let script = scripts.get(model).cloned();
                        let reason = format!("the task has no `scripts: {{ {model}: FILE }}`");
                        let script = script.ok_or(RunError::Model { label, reason })?;
                        let window = spec.window.or(Some(SCRIPTED_WINDOW));
                        return Ok(Self { kind: EngineKind::Script(script), window, ..spec });
                    }
                };
                EngineKind::Model(Reach {
                    provider,
                    model: model.clone(),
                    url: url.clone(),
                    key_env: key_env.clone(),
                    timeout,
                })
            }
        };
        Ok(spec)
    }

    /// The same with a file that is looked for in a directory, where its path is relative.
    pub(crate) fn beneath(mut self, directory: &Path) -> Self {
        if let EngineKind::Local(local) = &mut self.kind {
            local.path = directory.join(&local.path);
        }
        self
    }

    /// The name by which prices and windows are known.
    pub(crate) fn model_name(&self) -> &str {
        match &self.kind {
            EngineKind::Model(reach) => &reach.model,
            EngineKind::Client { model: Some(model), .. } => model,
            EngineKind::Local(local) => local.name(),
            EngineKind::Script(_) | EngineKind::Client { .. } | EngineKind::Command(_) => {
                &self.label
            }
        }
    }

    /// Whether it is a program that runs its own loop.
    pub(crate) fn is_worker(&self) -> bool {
        matches!(self.kind, EngineKind::Client { .. } | EngineKind::Command(_))
    }

    /// The words with which a program is started, where a person has written them.
    pub(crate) fn command_line(&self) -> Option<&[String]> {
        match &self.kind {
            EngineKind::Command(words) => Some(words),
            EngineKind::Script(_)
            | EngineKind::Model(_)
            | EngineKind::Local(_)
            | EngineKind::Client { .. } => None,
        }
    }

    /// Whether it is a program whose conversation goes on from start to start. It is started
    /// with our hooks, too.
    pub(crate) fn remembers(&self) -> bool {
        matches!(self.kind, EngineKind::Client { .. })
    }

    /// Whether this one may take over for a reason.
    fn admits(&self, reason: Reason) -> bool {
        let named = match reason {
            // A network that is gone is silent more often than it says so.
            Reason::Failed(ErrorKind::Network | ErrorKind::Timeout) => {
                &[When::Overload, When::Offline][..]
            }
            Reason::Failed(_) | Reason::StopEvents | Reason::Verification => &[When::Overload],
            Reason::Cost => &[When::Cost],
            Reason::Context | Reason::Blocked | Reason::Return => return true,
        };
        // One that is for what is sensitive is also good for everything else.
        let others = |when: &&When| **when != When::Sensitive;
        let mut whens = self.when.iter().filter(others).peekable();
        whens.peek().is_none() || whens.any(|when| named.contains(when))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_of_this_machine_is_called_by_its_file_which_lies_where_the_run_was_begun() {
        let (window, timeout) = (None, Duration::from_secs(1));
        let local = |path: &str| LocalSpec { path: path.into(), window, timeout };
        let engine = |path: &str| EngineSpec {
            label: format!("local/{path}"),
            kind: EngineKind::Local(local(path)),
            when: Vec::new(),
            budget: None,
            window,
        };
        for (path, found) in [("m/a.gguf", "/begun/m/a.gguf"), ("/m/a.gguf", "/m/a.gguf")] {
            let engine = engine(path).beneath(Path::new("/begun"));
            assert_eq!(engine.kind, EngineKind::Local(local(found)));
            assert_eq!(engine.model_name(), "a");
        }
    }
}
