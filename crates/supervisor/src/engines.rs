//! The engines of a run: models and agent programs, in the order in which the run tries them.

mod engine_chain;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use jackline_engine::ClientId;
use jackline_engine::definition::{ModelChoice, ModelKind, ModelOccasion as When, ModelProvider};
use jackline_engine::summary::PauseCause;
use jackline_model::scripted::ModelScript;
use jackline_model::{LocalModelSpec, ModelErrorKind, Provider};

use crate::run::RunError;
use crate::run_task_reader::{SCRIPTED_WINDOW, TIMEOUT_SECONDS};

pub(crate) use engine_chain::{EngineChain, FirstEngine};

/// An engine: a model or an agent program that can work on a task.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineSpec {
    /// The name of the engine in records.
    pub label: String,
    /// What kind of engine it is, and how to reach it.
    pub kind: EngineKind,
    /// When the engine may take over. Empty means always.
    pub when: Vec<When>,
    /// How many times the engine may be asked. `None` means no limit.
    pub budget: Option<u64>,
    /// The size of its context window, in tokens.
    pub window: Option<u64>,
}

/// The kind of an engine.
#[derive(Debug, Clone, PartialEq)]
pub enum EngineKind {
    /// A model that plays a script.
    Script(ModelScript),
    /// A model behind a network address.
    Model(RemoteModel),
    /// A model file on this machine, run in this process.
    Local(LocalModelSpec),
    /// An agent client program, run without a person.
    Client {
        /// The client id.
        client: ClientId,
        /// The model that the client should use.
        model: Option<String>,
    },
    /// A command line that gets the prompt as its last argument.
    Command(Vec<String>),
}

/// A model behind a network address.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteModel {
    /// The provider, which decides the wire format.
    pub provider: Provider,
    /// The name of the model at the provider.
    pub model: String,
    /// The address, if it is not the default of the provider.
    pub url: Option<String>,
    /// The variable that contains the API key.
    pub key_env: Option<String>,
    /// How long a complete answer may take.
    pub timeout: Duration,
}

/// Why another engine takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EngineChangeReason {
    /// The engine does not answer.
    Failed(ModelErrorKind),
    /// The agent stops several times without a call.
    StopEvents,
    /// The guards refuse its stops because the task is not done.
    Verification,
    /// The conversation does not fit into its window.
    Context,
    /// The agent loops or makes no progress.
    Blocked,
    /// The engine has used up its own budget.
    Cost,
    /// The first engine is tried again.
    Return,
}

impl EngineChangeReason {
    pub(crate) fn as_str(self) -> &'static str {
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

    /// The reason to replace an engine whose session is paused for this cause, if another engine
    /// can help.
    pub(crate) fn of_pause(cause: PauseCause) -> Option<Self> {
        match cause {
            PauseCause::Loop | PauseCause::NoProgress => Some(Self::Blocked),
            PauseCause::StopEvents => Some(Self::StopEvents),
            PauseCause::Verification => Some(Self::Verification),
            PauseCause::Context => Some(Self::Context),
            PauseCause::BrokenCheck
            | PauseCause::Person
            | PauseCause::Protected
            | PauseCause::Checkpoint => None,
        }
    }

    /// Whether an engine that was replaced for this reason was stuck. `word` is the JSON word of
    /// the reason.
    pub(crate) fn was_stuck(word: &str) -> bool {
        let stuck = [Self::StopEvents, Self::Verification, Self::Context, Self::Blocked];
        stuck.iter().any(|reason| reason.as_str() == word)
    }

    /// Whether the engine that is replaced had an open question without an answer. `word` is the
    /// JSON word of the reason.
    pub(crate) fn had_open_question(word: &str) -> bool {
        let others =
            [Self::StopEvents, Self::Verification, Self::Blocked, Self::Cost, Self::Return];
        !others.iter().any(|other| other.as_str() == word)
    }

    /// Whether the new engine is asked for a plan first, because the old one had a problem with the
    /// task.
    pub(crate) fn wants_plan(self) -> bool {
        matches!(self, Self::StopEvents | Self::Verification | Self::Context | Self::Blocked)
    }
}

impl EngineSpec {
    /// The engine for an entry of a definition. The scripts come from the task.
    pub(crate) fn from_choice(
        choice: &ModelChoice,
        scripts: &BTreeMap<String, ModelScript>,
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
                        let local = LocalModelSpec { path: model.into(), window: *window, timeout };
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
                EngineKind::Model(RemoteModel {
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

    /// The same engine, with a relative model path joined to a directory.
    pub(crate) fn with_paths_in(mut self, directory: &Path) -> Self {
        if let EngineKind::Local(local) = &mut self.kind {
            local.path = directory.join(&local.path);
        }
        self
    }

    /// The name that is used for prices and window sizes.
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

    /// Whether the engine is an agent program, which runs its own loop.
    pub(crate) fn is_worker(&self) -> bool {
        matches!(self.kind, EngineKind::Client { .. } | EngineKind::Command(_))
    }

    /// The command line, if the engine is one.
    pub(crate) fn command_line(&self) -> Option<&[String]> {
        match &self.kind {
            EngineKind::Command(words) => Some(words),
            EngineKind::Script(_)
            | EngineKind::Model(_)
            | EngineKind::Local(_)
            | EngineKind::Client { .. } => None,
        }
    }

    /// Whether the engine is a client program that keeps its conversation between starts. Such a
    /// program is also started with our hooks.
    pub(crate) fn keeps_conversation(&self) -> bool {
        matches!(self.kind, EngineKind::Client { .. })
    }

    /// Whether this engine may take over for a reason.
    fn may_take_over_for(&self, reason: EngineChangeReason) -> bool {
        let named = match reason {
            // A network failure often shows as a timeout.
            EngineChangeReason::Failed(ModelErrorKind::Network | ModelErrorKind::Timeout) => {
                &[When::Overload, When::Offline][..]
            }
            EngineChangeReason::Failed(_) => &[When::Overload],
            EngineChangeReason::Cost => &[When::Cost],
            EngineChangeReason::StopEvents
            | EngineChangeReason::Verification
            | EngineChangeReason::Context
            | EngineChangeReason::Blocked
            | EngineChangeReason::Return => return true,
        };
        // An engine for sensitive tasks may work on all other tasks, too.
        let others = |when: &&When| **when != When::Sensitive;
        let mut whens = self.when.iter().filter(others).peekable();
        whens.peek().is_none() || whens.any(|when| named.contains(when))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_model_is_named_by_its_file_which_is_relative_to_the_start_directory() {
        let (window, timeout) = (None, Duration::from_secs(1));
        let local = |path: &str| LocalModelSpec { path: path.into(), window, timeout };
        let engine = |path: &str| EngineSpec {
            label: format!("local/{path}"),
            kind: EngineKind::Local(local(path)),
            when: Vec::new(),
            budget: None,
            window,
        };
        for (path, found) in [("m/a.gguf", "/begun/m/a.gguf"), ("/m/a.gguf", "/m/a.gguf")] {
            let engine = engine(path).with_paths_in(Path::new("/begun"));
            assert_eq!(engine.kind, EngineKind::Local(local(found)));
            assert_eq!(engine.model_name(), "a");
        }
    }
}
