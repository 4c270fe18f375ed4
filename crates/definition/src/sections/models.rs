//! `models`: the models and workers of a supervised run.
//!
//! No model is stricter than another, so the models of the higher layer win. A layer that pauses a
//! session without progress wants a person to look at it. A lower layer can't let an advisor or a
//! fallback model continue such a session.

use jackline_engine::definition::{ModelChoice, ModelKind, ModelOccasion, ModelProvider};
use jackline_engine::{ClientId, Mode};

use super::prelude::*;
use crate::values::{read_address, read_limited_list};

static KEYS: [KeySpec; 1] = [key(
    "models",
    List(0, &Map(&MODEL)),
    "none",
    "The models and workers of a supervised run, in the order in which they are tried. If a file has `models`, they replace the models of the files that it extends.",
)];

const PROVIDERS: [&str; ModelProvider::ALL.len()] = words_of(&ModelProvider::ALL);
const OCCASIONS: [&str; ModelOccasion::ALL.len()] = words_of(&ModelOccasion::ALL);

pub(super) static MODEL: MappingSpec = MappingSpec {
    id: "model",
    label: "`models`",
    doc: "An entry is a `provider` with its `model`, or a `worker`: an agent with its own loop. Each entry needs a unique name. \
          The name is `provider/model`, or the name of the worker with its model. In the definition of a repository, a worker, \
          `provider: local`, `url` and `key_env` only take effect after a person runs `jackline trust`.",
    entries: &[
        key(
            "provider",
            Word(&PROVIDERS),
            "",
            "The API of the model. Most other servers also support `openai-chat`; `local` is a GGUF file that runs in the same process.",
        ),
        key(
            "worker",
            OneOf(&[Text, List(1, &Text)]),
            "",
            "The name of an agent client, as in `jackline init`, or the program and arguments of another agent.",
        ),
        key(
            "model",
            Text,
            "required with `provider`; else the default of the worker",
            "The name of the model, or the path of the file for `local`.",
        ),
        key("url", WEB_ADDRESS, "the provider's", "The address of the API."),
        key(
            "key_env",
            Form("^[A-Za-z_][A-Za-z0-9_]{0,127}$", "the name of an environment variable"),
            "the usual one of the provider",
            "The environment variable that contains the API key. Never write the key itself into the file.",
        ),
        key(
            "window",
            Count(1, I64_MAX),
            "the known window of the model",
            "The size of its context in tokens.",
        ),
        key(
            "when",
            List(1, &Word(&OCCASIONS)),
            "whenever the previous entry can't continue",
            "The reasons for which it is tried.",
        ),
        key(
            "budget",
            Count(1, U32_MAX),
            "no separate limit",
            "The maximum number of requests, or iterations of a worker, in a session.",
        ),
        key(
            "timeout_seconds",
            Count(1, 86_400),
            "the default of the provider",
            "The timeout of one response in seconds.",
        ),
    ],
    required: &[RequiredKeys::One(&["provider", "worker"])],
};

/// The maximum number of models in one list.
const MODELS_MAX: usize = 16;

/// The maximum number of words in the command line of a worker.
const WORDS_MAX: usize = 64;

pub(crate) struct ModelsSection;

impl Section for ModelsSection {
    /// The models, in their order.
    type Part = Demand<Vec<ModelChoice>>;

    const KEYS: &'static [KeySpec] = &KEYS;
    const MAPPINGS: &'static [&'static MappingSpec] = &[&MODEL];
    const JOIN_STEP: JoinStep = JoinStep::First;

    #[cfg(test)]
    const LOOSER: &'static [Looser] = &tests::LOOSER;

    fn lower(
        _: &str,
        node: &YamlNode,
        lowering: &mut LoweringState<'_>,
        reader: &mut NodeReader<'_>,
    ) {
        lowering.definition.choices = read(node, "`models`", reader);
    }

    fn take(source: &LayerSource<'_>) -> Self::Part {
        source.demand(source.definition.choices.clone())
    }

    fn withhold(models: &mut Self::Part, join: &mut LayerJoin) {
        withhold(&mut models.value, models.layer, join);
    }

    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        let (above, below) = (&high.models, &low.models);
        let text = |models: &Demand<Vec<ModelChoice>>| text(&models.value);
        if below.value.is_empty() || above.value == below.value {
            return above.clone();
        }
        if above.value.is_empty() {
            let has_fallback = below.value.len() > 1 && !join.overrides();
            let Some(to) = pausing_layer(high).filter(|_| has_fallback) else {
                return below.clone();
            };
            let why = "pauses a session without progress, and a fallback model would continue it";
            join.report_ignored(DemandSubject::Setting, text(below), below.layer, to, why);
            return above.clone();
        }
        if join.overrides() {
            join.report_replaced(DemandSubject::Setting, text(above), above.layer, below.layer);
            return below.clone();
        }
        let why = "has its own models";
        join.report_ignored(DemandSubject::Setting, text(below), below.layer, above.layer, why);
        above.clone()
    }

    fn describe(models: &Self::Part, lines: &mut DemandLines<'_>) {
        if !models.value.is_empty() {
            lines.add(DemandSubject::Setting, text(&models.value), models.layer);
        }
    }

    fn put(models: Self::Part, definition: &mut Definition) {
        definition.choices = models.value;
    }
}

/// Removes models that would run a program or send data to an address of the repository, until a
/// person trusts the repository.
pub(crate) fn withhold(models: &mut Vec<ModelChoice>, layer: usize, join: &mut LayerJoin) {
    for model in models.iter().filter(|model| model.needs_trust()) {
        let why = "the file is not trusted to run programs or to send data".to_owned();
        let line = join.line(DemandSubject::Setting, format!("model `{}`", model.label()), layer);
        join.report_ignored_line(line, why, true);
    }
    models.retain(|model| !model.needs_trust());
}

/// Returns the layer that pauses a session without progress, so that a person can look at it.
pub(crate) fn pausing_layer(demands: &LayerDemands) -> Option<usize> {
    let loops = demands.loops.as_ref().filter(|loops| loops.value.mode == Mode::Enforce);
    let progress = demands.progress.as_ref().map(|progress| progress.layer);
    loops.map(|loops| loops.layer).or(progress)
}

/// Reads a list of models.
pub(crate) fn read(node: &YamlNode, what: &str, reader: &mut NodeReader<'_>) -> Vec<ModelChoice> {
    let too_many = |count| format!("{count} models in {what}; at most {MODELS_MAX} are supported");
    let mut choices: Vec<ModelChoice> = Vec::new();
    for item in read_limited_list(node, what, MODELS_MAX, too_many, reader) {
        let Some(choice) = choice(item, reader) else { continue };
        let label = choice.label();
        if choices.iter().any(|known| known.label() == label) {
            let hint = "remove one of them";
            reader.report_with_hint(
                item.position,
                format!("`{label}` occurs twice in {what}"),
                hint,
            );
        }
        choices.push(choice);
    }
    choices
}

/// The keys of one model.
#[derive(Default)]
struct ModelFields<'n> {
    provider: Option<ModelProvider>,
    worker: Option<ModelKind>,
    model: Option<String>,
    url: Option<String>,
    key_env: Option<String>,
    window: Option<u64>,
    timeout_seconds: Option<u32>,
    /// The keys in the file, with valid and invalid values.
    keys: Vec<(&'n str, &'n YamlNode)>,
}

fn choice(node: &YamlNode, reader: &mut NodeReader<'_>) -> Option<ModelChoice> {
    let (mut fields, mut when, mut budget) = (ModelFields::default(), Vec::new(), None);
    for (key, node) in reader.fields(node, &MODEL) {
        fields.keys.push((key, node));
        match key {
            "provider" => fields.provider = reader.word(node, "`provider`", &ModelProvider::ALL),
            "worker" => fields.worker = worker(node, reader),
            "model" => fields.model = reader.text(node, "`model`").map(ToOwned::to_owned),
            "url" => fields.url = read_address(node, "`url`", reader),
            "key_env" => fields.key_env = variable(node, reader),
            "window" => fields.window = reader.positive(node, "`window`"),
            "when" => when = occasions(node, reader),
            "budget" => budget = number(key, node, reader),
            _ => fields.timeout_seconds = number(key, node, reader),
        }
    }
    let (kind, worker_model) = fields.kind(node, reader)?;
    Some(ModelChoice { kind, worker_model, when, budget })
}

impl ModelFields<'_> {
    /// Returns the provider or the worker, and reports a mixture of both.
    fn kind(
        self,
        node: &YamlNode,
        reader: &mut NodeReader<'_>,
    ) -> Option<(ModelKind, Option<String>)> {
        let at = |name: &str| self.keys.iter().find(|(key, _)| *key == name).map(|(_, at)| *at);
        let refuse = |names: &[&str], who: &str, hint: &str, reader: &mut NodeReader<'_>| {
            for (name, node) in names.iter().filter_map(|name| Some((name, at(name)?))) {
                reader.report_with_hint(node.position, format!("{who} can't have `{name}`"), hint);
            }
        };
        match (at("provider"), at("worker")) {
            (Some(_), None) => {
                if at("model").is_none() {
                    let hint = "write the name that the provider uses";
                    reader.report_with_hint(node.position, "a `provider` needs a `model`", hint);
                }
                if self.provider == Some(ModelProvider::Local) {
                    let who = "a `local` model";
                    refuse(&["url", "key_env"], who, "its `model` is a path", reader);
                }
                let kind = ModelKind::Provider {
                    provider: self.provider?,
                    model: self.model?,
                    url: self.url,
                    key_env: self.key_env,
                    window: self.window,
                    timeout_seconds: self.timeout_seconds,
                };
                Some((kind, None))
            }
            (None, Some(_)) => {
                let names = ["url", "key_env", "window", "timeout_seconds"];
                refuse(&names, "a worker", "use it with a `provider`", reader);
                Some((self.worker?, self.model))
            }
            (Some(_), Some(worker)) => {
                reader.report(worker.position, "a model can't have both `provider` and `worker`");
                None
            }
            (None, None) => {
                let hint = "add one of them";
                reader.report_with_hint(
                    node.position,
                    "a model needs a `provider` or a `worker`",
                    hint,
                );
                None
            }
        }
    }
}

fn worker(node: &YamlNode, reader: &mut NodeReader<'_>) -> Option<ModelKind> {
    if let YamlValue::List(items) = &node.value {
        let words: Vec<String> = items
            .iter()
            .filter_map(|item| reader.text(item, "a word of `worker`").map(ToOwned::to_owned))
            .collect();
        if items.is_empty() || items.len() > WORDS_MAX {
            let message =
                format!("`worker` has {} words; 1 to {WORDS_MAX} are supported", items.len());
            reader.report(node.position, message);
        }
        return (words.len() == items.len() && !words.is_empty())
            .then_some(ModelKind::Command(words));
    }
    let text = reader.text(node, "`worker`")?;
    if let Ok(client) = ClientId::parse(text) {
        return Some(ModelKind::Client(client));
    }
    let hint = "write another agent as a list that starts with the program: `[agent, --headless]`";
    reader.report_with_hint(node.position, format!("`worker` can't be `{text}`"), hint);
    None
}

fn variable(node: &YamlNode, reader: &mut NodeReader<'_>) -> Option<String> {
    let text = reader.text(node, "`key_env`")?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let fits = text.len() <= 128
        && text.chars().all(plain)
        && !text.starts_with(|c: char| c.is_ascii_digit());
    if !fits {
        // The message does not quote the text, because it may be the key itself.
        let hint =
            "write the name of the variable, such as `ANTHROPIC_API_KEY`, never the key itself";
        reader.report_with_hint(
            node.position,
            "`key_env` is not the name of an environment variable",
            hint,
        );
    }
    fits.then(|| text.to_owned())
}

fn occasions(node: &YamlNode, reader: &mut NodeReader<'_>) -> Vec<ModelOccasion> {
    let items = reader.list(node, "`when`");
    if items.is_empty() {
        reader.report_with_hint(node.position, "`when` is empty", "remove it, or name a reason");
    }
    let mut when = Vec::new();
    for item in items {
        let Some(word) = reader.word(item, "a reason in `when`", &ModelOccasion::ALL) else {
            continue;
        };
        if !when.contains(&word) {
            when.push(word);
        }
    }
    when
}

/// Reads a number in the range of its key.
fn number(key: &str, node: &YamlNode, reader: &mut NodeReader<'_>) -> Option<u32> {
    let mut number = 0;
    reader.bounded(key, node, &MODEL, &mut number);
    (number > 0).then_some(number)
}

/// Lists the models in their order.
pub fn text(choices: &[ModelChoice]) -> String {
    format!("models: {}", labels(choices))
}

pub(crate) fn labels(choices: &[ModelChoice]) -> String {
    choices.iter().map(ModelChoice::label).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
