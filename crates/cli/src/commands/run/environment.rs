//! A real model, where the environment has one: it takes the place of a script.

use std::time::Duration;

use jackline_host::environment::named_variable;
use jackline_model::{LocalSpec, Provider};
use jackline_supervisor::{EngineKind, EngineSpec, Reach};

/// Which model, as `provider/name`, or as `local:FILE.gguf`.
const MODEL: &str = "JACKLINE_MODEL";

/// Where a server is that speaks as chat completions do, and the key that it wants.
const URL: &str = "JACKLINE_MODEL_URL";
const KEY: &str = "JACKLINE_MODEL_KEY";

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_mins(10);

/// A model of each provider that is good at this, unless another is named.
const USUAL: [(Provider, &str); 3] = [
    (Provider::Anthropic, "claude-sonnet-4-5"),
    (Provider::OpenAi, "gpt-5"),
    (Provider::Gemini, "gemini-2.5-pro"),
];

/// The model that the environment names, by an address or by a key; or what is wrong with
/// how it does.
pub(super) fn engine() -> Result<Option<EngineSpec>, String> {
    let named = named_variable(MODEL);
    if let Some(path) = named.as_deref().and_then(LocalSpec::path_in) {
        let local = LocalSpec { path: path.into(), window: None, timeout: TIMEOUT };
        return Ok(Some(made(format!("local/{}", local.name()), EngineKind::Local(local))));
    }
    if let Some(url) = named_variable(URL) {
        let model = named.unwrap_or_else(|| "default".to_owned());
        return Ok(Some(spec(Provider::OpenAiChat, &model, Some(url))));
    }
    if let Some((provider, model)) = named.as_deref().and_then(|named| named.split_once('/')) {
        let provider = provider.parse().map_err(|error| format!("{MODEL}: {error}"))?;
        return Ok(Some(spec(provider, model, None)));
    }
    let has_key =
        |provider: &Provider| provider.default_key_env().and_then(named_variable).is_some();
    let usual = USUAL.into_iter().find(|(provider, _)| has_key(provider));
    match (usual, named) {
        (Some((provider, model)), named) => {
            Ok(Some(spec(provider, named.as_deref().unwrap_or(model), None)))
        }
        (None, Some(named)) => Err(format!(
            "{MODEL} names `{named}`, and nobody can tell where that is: say `PROVIDER/{named}`, or set {URL}"
        )),
        (None, None) => Ok(None),
    }
}

fn spec(provider: Provider, model: &str, url: Option<String>) -> EngineSpec {
    let key_env = url.as_ref().and_then(|_| named_variable(KEY)).map(|_| KEY.to_owned());
    let reach = Reach { provider, model: model.to_owned(), url, key_env, timeout: TIMEOUT };
    made(format!("{provider}/{model}"), EngineKind::Model(reach))
}

fn made(label: String, kind: EngineKind) -> EngineSpec {
    EngineSpec { label, kind, when: Vec::new(), budget: None, window: None }
}
