//! The real model that the environment configures. It replaces the scripted model of a task.

use std::time::Duration;

use jackline_host::environment::named_variable;
use jackline_model::{LocalModelSpec, Provider};
use jackline_supervisor::{EngineKind, EngineSpec, RemoteModel};

/// The variable with the model, as `provider/name` or as `local:FILE.gguf`.
const MODEL_VARIABLE: &str = "JACKLINE_MODEL";

/// The variable with the URL of a server with the chat completions interface.
const URL_VARIABLE: &str = "JACKLINE_MODEL_URL";
/// The variable with the key for that server.
const KEY_VARIABLE: &str = "JACKLINE_MODEL_KEY";

/// The timeout of an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(10);

/// The default model of each provider.
const DEFAULT_MODELS: [(Provider, &str); 3] = [
    (Provider::Anthropic, "claude-sonnet-4-5"),
    (Provider::OpenAi, "gpt-5"),
    (Provider::Gemini, "gemini-2.5-pro"),
];

/// The model that the environment configures, by a name, a URL or a key; or the error in that
/// configuration.
pub(super) fn engine_from_environment() -> Result<Option<EngineSpec>, String> {
    let named = named_variable(MODEL_VARIABLE);
    if let Some(path) = named.as_deref().and_then(LocalModelSpec::path_in) {
        let local = LocalModelSpec { path: path.into(), window: None, timeout: ANSWER_TIMEOUT };
        return Ok(Some(new_engine_spec(
            format!("local/{}", local.name()),
            EngineKind::Local(local),
        )));
    }
    if let Some(url) = named_variable(URL_VARIABLE) {
        let model = named.unwrap_or_else(|| "default".to_owned());
        return Ok(Some(engine_spec(Provider::OpenAiChat, &model, Some(url))));
    }
    if let Some((provider, model)) = named.as_deref().and_then(|named| named.split_once('/')) {
        let provider = provider.parse().map_err(|error| format!("{MODEL_VARIABLE}: {error}"))?;
        return Ok(Some(engine_spec(provider, model, None)));
    }
    let has_key =
        |provider: &Provider| provider.default_key_env().and_then(named_variable).is_some();
    let default = DEFAULT_MODELS.into_iter().find(|(provider, _)| has_key(provider));
    match (default, named) {
        (Some((provider, model)), named) => {
            Ok(Some(engine_spec(provider, named.as_deref().unwrap_or(model), None)))
        }
        (None, Some(named)) => Err(format!(
            "{MODEL_VARIABLE} is `{named}`, which has no provider: set it to `PROVIDER/{named}`, or set {URL_VARIABLE}"
        )),
        (None, None) => Ok(None),
    }
}

fn engine_spec(provider: Provider, model: &str, url: Option<String>) -> EngineSpec {
    let key_env =
        url.as_ref().and_then(|_| named_variable(KEY_VARIABLE)).map(|_| KEY_VARIABLE.to_owned());
    let reach =
        RemoteModel { provider, model: model.to_owned(), url, key_env, timeout: ANSWER_TIMEOUT };
    new_engine_spec(format!("{provider}/{model}"), EngineKind::Model(reach))
}

fn new_engine_spec(label: String, kind: EngineKind) -> EngineSpec {
    EngineSpec { label, kind, when: Vec::new(), budget: None, window: None }
}
