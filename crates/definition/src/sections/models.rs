//! `models`: the models and workers of a supervised run.
//!
//! No model is stricter than another, so the higher layer's hold. A layer that pauses a session
//! without progress wants a person to look at it. A lower layer can't continue the session there
//! with an advisor or a further model.

use jackline_engine::definition::{ModelChoice, ModelKind, ModelOccasion, ModelProvider};
use jackline_engine::{ClientId, Mode};

use super::prelude::*;
use crate::values::{address, limited_list};

static KEYS: [Key; 1] = [key(
    "models",
    List(0, &Map(&MODEL)),
    "none",
    "Who does the work of a supervised run, in the order in which they are tried. Those of a file that extends another go in the place of the other's.",
)];

const PROVIDERS: [&str; ModelProvider::ALL.len()] = words_of(&ModelProvider::ALL);
const OCCASIONS: [&str; ModelOccasion::ALL.len()] = words_of(&ModelOccasion::ALL);

pub(super) static MODEL: Keys = Keys {
    id: "model",
    of: "`models`",
    doc: "A `provider` with its `model`, or a `worker`: an agent with a loop of its own. Two can't go by the same name, which is \
          `provider/model`, or the worker's with the model it is told to use. In the definition of a repository, a worker, `provider: local`, \
          `url` and `key_env` count only once a person has said `jackline trust`.",
    known: &[
        key(
            "provider",
            Word(&PROVIDERS),
            "",
            "How it is spoken to. `openai-chat` is what most other servers speak, too; `local` is a GGUF file that runs in the same process.",
        ),
        key(
            "worker",
            OneOf(&[Text, List(1, &Text)]),
            "",
            "The word of an agent client, as `jackline init` takes it, or the program and arguments of another agent.",
        ),
        key(
            "model",
            Text,
            "required with `provider`; what the worker uses by itself",
            "The name of the model; the path of the file where it is `local`.",
        ),
        key("url", ADDRESS, "the provider's", "Where it is."),
        key(
            "key_env",
            Form("^[A-Za-z_][A-Za-z0-9_]{0,127}$", "the name of an environment variable"),
            "the provider's usual one",
            "The environment variable that holds the key. A key itself is never written here.",
        ),
        key(
            "window",
            Count(1, I64),
            "what is known of the model",
            "How many tokens its context holds.",
        ),
        key(
            "when",
            List(1, &Word(&OCCASIONS)),
            "whenever the one before can't go on",
            "What it is tried for.",
        ),
        key(
            "budget",
            Count(1, U32),
            "no limit of its own",
            "How many requests, or iterations of a worker, it may be given in a session.",
        ),
        key(
            "timeout_seconds",
            Count(1, 86_400),
            "as the provider has it",
            "How long one answer may take.",
        ),
    ],
    needs: &[Needs::One(&["provider", "worker"])],
};

/// How many models one list may have.
const MODELS_MAX: usize = 16;

/// How many words the command line of a worker may have.
const WORDS_MAX: usize = 64;

pub(crate) struct ModelsSection;

impl Section for ModelsSection {
    /// The models in their order.
    type Part = Demand<Vec<ModelChoice>>;

    const KEYS: &'static [Key] = &KEYS;
    const MAPPINGS: &'static [&'static Keys] = &[&MODEL];
    const JOIN_STEP: JoinStep = JoinStep::First;

    #[cfg(test)]
    const LOOSER: &'static [Looser] = &tests::LOOSER;

    fn lower(_: &str, node: &Node, lowering: &mut Lowering<'_>, reader: &mut Reader<'_>) {
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
            let further = below.value.len() > 1 && !join.overrides();
            let Some(to) = pauses(high).filter(|_| further) else { return below.clone() };
            let why = "pauses a session that gets nowhere, and a further model would go on";
            join.ignore(Subject::Setting, text(below), below.layer, to, why);
            return above.clone();
        }
        if join.overrides() {
            join.replace(Subject::Setting, text(above), above.layer, below.layer);
            return below.clone();
        }
        let why = "has models of its own";
        join.ignore(Subject::Setting, text(below), below.layer, above.layer, why);
        above.clone()
    }

    fn describe(models: &Self::Part, lines: &mut EffectiveLines<'_>) {
        if !models.value.is_empty() {
            lines.add(Subject::Setting, text(&models.value), models.layer);
        }
    }

    fn put(models: Self::Part, definition: &mut Definition) {
        definition.choices = models.value;
    }
}

/// Removes models that would run a program, or send something to an address of the repository,
/// until a person trusts the repository.
pub(crate) fn withhold(models: &mut Vec<ModelChoice>, layer: usize, join: &mut LayerJoin) {
    for model in models.iter().filter(|model| model.needs_trust()) {
        let why = "nobody has trusted this file to run it or to send anything there".to_owned();
        let line = join.line(Subject::Setting, format!("model `{}`", model.label()), layer);
        join.ignore_line(line, why, true);
    }
    models.retain(|model| !model.needs_trust());
}

/// The layer that pauses a session without progress, so that a person can look at it.
pub(crate) fn pauses(demands: &LayerDemands) -> Option<usize> {
    let loops = demands.loops.as_ref().filter(|loops| loops.value.mode == Mode::Enforce);
    let progress = demands.progress.as_ref().map(|progress| progress.layer);
    loops.map(|loops| loops.layer).or(progress)
}

/// A list of models.
pub(crate) fn read(node: &Node, what: &str, reader: &mut Reader<'_>) -> Vec<ModelChoice> {
    let too_many = |count| format!("{count} models in {what}; at most {MODELS_MAX} are kept");
    let mut choices: Vec<ModelChoice> = Vec::new();
    for item in limited_list(node, what, MODELS_MAX, too_many, reader) {
        let Some(choice) = choice(item, reader) else { continue };
        let label = choice.label();
        if choices.iter().any(|known| known.label() == label) {
            let hint = "leave one of them out";
            reader.complain_hint(item.at, format!("`{label}` is in {what} twice"), hint);
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
    /// The keys that are there, with valid and invalid values.
    keys: Vec<(&'n str, &'n Node)>,
}

fn choice(node: &Node, reader: &mut Reader<'_>) -> Option<ModelChoice> {
    let (mut fields, mut when, mut budget) = (ModelFields::default(), Vec::new(), None);
    for (key, node) in reader.fields(node, &MODEL) {
        fields.keys.push((key, node));
        match key {
            "provider" => fields.provider = reader.word(node, "`provider`", &ModelProvider::ALL),
            "worker" => fields.worker = worker(node, reader),
            "model" => fields.model = reader.text(node, "`model`").map(ToOwned::to_owned),
            "url" => fields.url = address(node, "`url`", reader),
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
    /// A provider or a worker; a mixture of both is reported.
    fn kind(self, node: &Node, reader: &mut Reader<'_>) -> Option<(ModelKind, Option<String>)> {
        let at = |name: &str| self.keys.iter().find(|(key, _)| *key == name).map(|(_, at)| *at);
        let refuse = |names: &[&str], who: &str, hint: &str, reader: &mut Reader<'_>| {
            for (name, node) in names.iter().filter_map(|name| Some((name, at(name)?))) {
                reader.complain_hint(node.at, format!("{who} has no `{name}`"), hint);
            }
        };
        match (at("provider"), at("worker")) {
            (Some(_), None) => {
                if at("model").is_none() {
                    let hint = "name it as the provider does";
                    reader.complain_hint(node.at, "a `provider` has no `model`", hint);
                }
                if self.provider == Some(ModelProvider::Local) {
                    let who = "a model of this machine";
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
                refuse(&names, "a worker", "it goes with a `provider`", reader);
                Some((self.worker?, self.model))
            }
            (Some(_), Some(worker)) => {
                reader.complain(worker.at, "a model has a `provider` or a `worker`, not both");
                None
            }
            (None, None) => {
                let hint = "name one of them";
                reader.complain_hint(node.at, "a model has no `provider` and no `worker`", hint);
                None
            }
        }
    }
}

fn worker(node: &Node, reader: &mut Reader<'_>) -> Option<ModelKind> {
    if let NodeValue::List(items) = &node.value {
        let words: Vec<String> = items
            .iter()
            .filter_map(|item| reader.text(item, "a word of `worker`").map(ToOwned::to_owned))
            .collect();
        if items.is_empty() || items.len() > WORDS_MAX {
            let message = format!("`worker` has {} words; 1 to {WORDS_MAX} are taken", items.len());
            reader.complain(node.at, message);
        }
        return (words.len() == items.len() && !words.is_empty())
            .then_some(ModelKind::Command(words));
    }
    let text = reader.text(node, "`worker`")?;
    if let Ok(client) = ClientId::parse(text) {
        return Some(ModelKind::Client(client));
    }
    let hint = "write another agent as a list, the program first: `[agent, --headless]`";
    reader.complain_hint(node.at, format!("`worker` can't be `{text}`"), hint);
    None
}

fn variable(node: &Node, reader: &mut Reader<'_>) -> Option<String> {
    let text = reader.text(node, "`key_env`")?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let fits = text.len() <= 128
        && text.chars().all(plain)
        && !text.starts_with(|c: char| c.is_ascii_digit());
    if !fits {
        // The message does not quote the text, because it may be the key itself.
        let hint = "write the name, such as `ANTHROPIC_API_KEY`, and never the key";
        reader.complain_hint(node.at, "`key_env` is no name of an environment variable", hint);
    }
    fits.then(|| text.to_owned())
}

fn occasions(node: &Node, reader: &mut Reader<'_>) -> Vec<ModelOccasion> {
    let items = reader.list(node, "`when`");
    if items.is_empty() {
        reader.complain_hint(node.at, "`when` names nothing", "leave it out, or name a reason");
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

/// A number in the range that its key takes.
fn number(key: &str, node: &Node, reader: &mut Reader<'_>) -> Option<u32> {
    let mut number = 0;
    reader.bounded(key, node, &MODEL, &mut number);
    (number > 0).then_some(number)
}

/// The models in their order.
pub fn text(choices: &[ModelChoice]) -> String {
    format!("models: {}", labels(choices))
}

pub(crate) fn labels(choices: &[ModelChoice]) -> String {
    choices.iter().map(ModelChoice::label).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
