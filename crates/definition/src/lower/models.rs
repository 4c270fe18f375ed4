//! Who does the work of a supervised run, and who is asked where it is stuck.

use jackline_engine::ClientId;
use jackline_engine::definition::{Advisor, ModelChoice, ModelKind, ModelOccasion, ModelProvider};

use super::address;
use super::io::bounded;
use crate::keys;
use crate::reader::Reader;
use crate::yaml::{Node, NodeValue};

/// How many models one list may name.
const MODELS_MAX: usize = 16;

/// How many words the command line of a worker may have.
const WORDS_MAX: usize = 64;

/// Reads `models`.
pub(super) fn lower(node: &Node, what: &str, reader: &mut Reader<'_>) -> Vec<ModelChoice> {
    let items = reader.list(node, what);
    if items.len() > MODELS_MAX {
        let message = format!("{} models in {what}; at most {MODELS_MAX} are kept", items.len());
        reader.complain(node.at, message);
    }
    let mut choices: Vec<ModelChoice> = Vec::new();
    for item in items {
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

/// Reads `advisor`; explicitly nothing is nothing.
pub(super) fn lower_advisor(node: &Node, reader: &mut Reader<'_>) -> Option<Advisor> {
    if node.value == NodeValue::Null {
        return None;
    }
    let mut advisor = Advisor {
        models: Vec::new(),
        transcript_lines: Advisor::TRANSCRIPT_LINES,
        budget: Advisor::BUDGET,
    };
    let mut named = 0;
    for (key, node) in reader.fields(node, &keys::ADVISOR) {
        let slot = match key {
            "models" => {
                named = reader.list(node, "`advisor.models`").len();
                advisor.models = lower(node, "`advisor.models`", reader);
                let worker =
                    |choice: &&ModelChoice| !matches!(choice.kind, ModelKind::Provider { .. });
                if let Some(worker) = advisor.models.iter().find(worker) {
                    let message = format!("`{}` can't advise: it is a worker", worker.label());
                    reader.complain_hint(node.at, message, "name a `provider` and its `model`");
                }
                continue;
            }
            "transcript_lines" => &mut advisor.transcript_lines,
            _ => &mut advisor.budget,
        };
        bounded(key, node, &keys::ADVISOR, slot, reader);
    }
    if named == 0 {
        let hint = "name at least one in `advisor.models`, or leave `advisor` out";
        reader.complain_hint(node.at, "`advisor` has no models", hint);
    }
    Some(advisor)
}

/// What a model is said to be, key by key.
#[derive(Default)]
struct Given<'n> {
    provider: Option<ModelProvider>,
    worker: Option<ModelKind>,
    model: Option<String>,
    url: Option<String>,
    key_env: Option<String>,
    window: Option<u64>,
    timeout_seconds: Option<u32>,
    /// The keys that are there, whatever they hold.
    keys: Vec<(&'n str, &'n Node)>,
}

fn choice(node: &Node, reader: &mut Reader<'_>) -> Option<ModelChoice> {
    let (mut given, mut when, mut budget) = (Given::default(), Vec::new(), None);
    for (key, node) in reader.fields(node, &keys::MODEL) {
        given.keys.push((key, node));
        match key {
            "provider" => given.provider = reader.word(node, "`provider`", &ModelProvider::ALL),
            "worker" => given.worker = worker(node, reader),
            "model" => given.model = reader.text(node, "`model`").map(ToOwned::to_owned),
            "url" => given.url = address(node, "`url`", reader),
            "key_env" => given.key_env = variable(node, reader),
            "window" => {
                given.window = reader.count(node, "`window`");
                if given.window == Some(0) {
                    reader.complain(node.at, "`window` can't be 0");
                }
            }
            "when" => when = occasions(node, reader),
            "budget" => budget = number(key, node, reader),
            _ => given.timeout_seconds = number(key, node, reader),
        }
    }
    let (kind, worker_model) = given.kind(node, reader)?;
    Some(ModelChoice { kind, worker_model, when, budget })
}

impl Given<'_> {
    /// A provider or a worker, and not something of both.
    fn kind(self, node: &Node, reader: &mut Reader<'_>) -> Option<(ModelKind, Option<String>)> {
        let at = |name: &str| self.keys.iter().find(|(key, _)| *key == name).map(|(_, at)| *at);
        match (at("provider"), at("worker")) {
            (Some(_), None) => {
                if at("model").is_none() {
                    let hint = "name it as the provider does";
                    reader.complain_hint(node.at, "a `provider` has no `model`", hint);
                }
                if self.provider == Some(ModelProvider::Local) {
                    for name in ["url", "key_env"] {
                        if let Some(node) = at(name) {
                            let message = format!("a model of this machine has no `{name}`");
                            reader.complain_hint(node.at, message, "its `model` is a path");
                        }
                    }
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
                for name in ["url", "key_env", "window", "timeout_seconds"] {
                    if let Some(node) = at(name) {
                        let message = format!("a worker has no `{name}`");
                        reader.complain_hint(node.at, message, "it goes with a `provider`");
                    }
                }
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
        // It is not repeated: somebody may have written the key itself.
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
    bounded(key, node, &keys::MODEL, &mut number, reader);
    (number > 0).then_some(number)
}
