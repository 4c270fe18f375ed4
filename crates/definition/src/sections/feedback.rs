//! `feedback`, `feedback_bytes_max` and `deadline`: soft guidance for the agent.

use jackline_engine::definition::{FeedbackProvider, FileCreated, Speech, Trigger};

use super::prelude::*;
use crate::values::{limited_list, path, shortened};

static KEYS: [Key; 3] = [
    key("feedback", List(0, &Map(&PROVIDER)), "none", "Soft guidance for the agent."),
    key("feedback_bytes_max", Count(0, U32), "4096", "How much feedback one round may bring."),
    key("deadline", Map(&DEADLINE), "", "For `deadline` providers that say nothing else."),
];

/// Whether `since` means that older files do not count.
const SINCE: [(&str, bool); 2] = [("session_start", true), ("ever", false)];

static PROVIDER: Keys = Keys {
    id: "provider",
    of: "a feedback provider",
    doc: "It says one thing, `deadline` or `static`, when any of its triggers says so.",
    known: &[
        key("deadline", Map(&DEADLINE), "", "How much time is left."),
        key("static", Text, "", "Always the same text."),
        key("every_n_calls", Count(1, I64), "", "After this many calls since it last spoke."),
        key(
            "every_n_seconds",
            Count(1, I64),
            "",
            "At the first result, then after this much time since it last spoke.",
        ),
        key(
            "on_file_created",
            OneOf(&[Path, Map(&FILE_CREATED)]),
            "",
            "Once, when this file is there.",
        ),
    ],
    needs: &[
        Needs::One(&["deadline", "static"]),
        Needs::Some(&["every_n_calls", "every_n_seconds", "on_file_created"]),
    ],
};

static DEADLINE: Keys = Keys {
    id: "deadline",
    of: "`deadline`",
    doc: "",
    known: &[key(
        "warning_threshold_seconds",
        Count(0, I64),
        "120, or what the top level says",
        "From how much time left on it warns.",
    )],
    needs: &[],
};

static FILE_CREATED: Keys = Keys {
    id: "file_created",
    of: "`on_file_created`",
    doc: "A path alone is `{path: …}`.",
    known: &[
        key("path", Path, "required", "The file."),
        key(
            "since",
            Word(&words_of::<_, 2>(&SINCE)),
            "`ever`",
            "Whether a file that was there before the session does not count.",
        ),
    ],
    needs: &[Needs::All(&["path"])],
};

/// How many providers a definition may have: each takes room in the state.
const PROVIDERS_MAX: usize = 64;

/// From how many seconds left on a `deadline` warns, by default.
const THRESHOLD_SECONDS: u64 = 120;

/// The guidance of one layer.
#[derive(Clone)]
pub(crate) struct FeedbackDemands {
    providers: Vec<Demand<FeedbackProvider>>,
    bytes_max: Demand<u32>,
}

pub(crate) struct FeedbackSection;

impl Section for FeedbackSection {
    type Part = FeedbackDemands;

    const KEYS: &'static [Key] = &KEYS;
    const MAPPINGS: &'static [&'static Keys] = &[&PROVIDER, &FILE_CREATED, &DEADLINE];

    fn lower(key: &str, node: &Node, lowering: &mut Lowering<'_>, reader: &mut Reader<'_>) {
        if key == "feedback_bytes_max"
            && let Some(bytes) = reader.count(node, "`feedback_bytes_max`")
        {
            lowering.definition.feedback_bytes_max = bytes;
        }
    }

    fn take(source: &LayerSource<'_>) -> Self::Part {
        let Definition { feedback, feedback_bytes_max, .. } = source.definition;
        FeedbackDemands {
            providers: source.list(feedback.iter().cloned()),
            bytes_max: source.demand(*feedback_bytes_max),
        }
    }

    fn follows_mode(part: &Self::Part) -> bool {
        !part.providers.is_empty()
    }

    /// The providers of both layers. A smaller `feedback_bytes_max` would cut what the higher
    /// layer has to say.
    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        let (high, low) = (&high.feedback, &low.feedback);
        let speaks = !high.providers.is_empty();
        let demands = |high: u32, low: u32| speaks || high <= low;
        let why = if speaks { "has feedback of its own" } else { "has the smaller one" };
        FeedbackDemands {
            providers: union(&high.providers, &low.providers),
            bytes_max: join.setting(&high.bytes_max, &low.bytes_max, demands, bytes_text, why),
        }
    }

    fn describe(part: &Self::Part, lines: &mut EffectiveLines<'_>) {
        let default = Definition::default().feedback_bytes_max;
        lines.general_unless(default, &part.bytes_max, bytes_text);
        for provider in &part.providers {
            lines.add(Subject::Feedback, text(&provider.value), provider.layer);
        }
    }

    fn put(part: Self::Part, definition: &mut Definition) {
        definition.feedback = values(part.providers);
        definition.feedback_bytes_max = part.bytes_max.value;
    }

    fn problems(definition: &Definition) -> Vec<String> {
        let count = definition.feedback.len();
        let message = || format!("{count} providers of feedback; at most {PROVIDERS_MAX} are kept");
        (count > PROVIDERS_MAX).then(message).into_iter().collect()
    }
}

/// The threshold in `deadline` is the default of the providers, so it is read first.
pub(crate) fn lower(lowering: &mut Lowering<'_>, reader: &mut Reader<'_>) {
    let threshold = lowering
        .node("deadline")
        .map_or(THRESHOLD_SECONDS, |node| threshold(node, THRESHOLD_SECONDS, reader));
    let Some(node) = lowering.node("feedback") else { return };
    let too_many = |count| format!("{count} providers; at most {PROVIDERS_MAX} are kept");
    let items = limited_list(node, "`feedback`", PROVIDERS_MAX, too_many, reader);
    lowering.definition.feedback =
        items.iter().filter_map(|item| provider(item, threshold, reader)).collect();
}

/// The `warning_threshold_seconds` of a `deadline`.
fn threshold(node: &Node, default: u64, reader: &mut Reader<'_>) -> u64 {
    let mut threshold = default;
    for (_, node) in reader.fields(node, &DEADLINE) {
        threshold = reader.count(node, "`warning_threshold_seconds`").unwrap_or(threshold);
    }
    threshold
}

fn provider(node: &Node, default: u64, reader: &mut Reader<'_>) -> Option<FeedbackProvider> {
    let mut speech = None;
    let mut trigger = Trigger::default();
    let mut given = 0;
    for (key, node) in reader.fields(node, &PROVIDER) {
        match key {
            "deadline" => {
                given += 1;
                let warning_threshold_seconds = threshold(node, default, reader);
                speech = Some(Speech::Deadline { warning_threshold_seconds });
            }
            "static" => {
                given += 1;
                let text = reader.text(node, "`static`");
                speech = text.map(|text| Speech::Static { text: text.to_owned() });
            }
            "every_n_calls" => trigger.every_n_calls = reader.positive(node, "`every_n_calls`"),
            "every_n_seconds" => {
                trigger.every_n_seconds = reader.positive(node, "`every_n_seconds`");
            }
            _ => trigger.on_file_created = file_created(node, reader),
        }
    }
    if !matches!(node.value, NodeValue::Map(_) | NodeValue::Null) {
        return None;
    }
    if given != 1 {
        let message = format!("a feedback provider says one thing, not {given}");
        reader.complain_hint(node.at, message, "give it `deadline` or `static`");
    }
    if trigger == Trigger::default() {
        reader.complain_hint(
            node.at,
            "this provider would never speak",
            "give it `every_n_calls`, `every_n_seconds` or `on_file_created`",
        );
    }
    speech.map(|speech| FeedbackProvider { speech, trigger })
}

fn file_created(node: &Node, reader: &mut Reader<'_>) -> Option<FileCreated> {
    if !matches!(node.value, NodeValue::Map(_)) {
        return path(node, reader).map(|path| FileCreated { path, since_start: false });
    }
    let (mut file, mut since_start) = (None, false);
    for (key, node) in reader.fields(node, &FILE_CREATED) {
        if key == "path" {
            file = path(node, reader);
        } else {
            since_start = reader.word(node, "`since`", &SINCE).unwrap_or(since_start);
        }
    }
    if file.is_none() {
        reader.complain(node.at, "`on_file_created` has a `path`");
    }
    file.map(|path| FileCreated { path, since_start })
}

/// What the agent is told, and when.
pub fn text(provider: &FeedbackProvider) -> String {
    let speech = match &provider.speech {
        Speech::Deadline { .. } => "the time that is left".to_owned(),
        Speech::Static { text } => format!("\"{}\"", shortened(text)),
        Speech::Custom { name } => format!("what `{name}` says"),
    };
    let trigger = &provider.trigger;
    let when: Vec<String> = [
        trigger.every_n_calls.map(|n| format!("every {n} calls")),
        trigger.every_n_seconds.map(|n| format!("every {n} seconds")),
        trigger.on_file_created.as_ref().map(|file| format!("once {} is there", file.path)),
    ]
    .into_iter()
    .flatten()
    .collect();
    format!("tells the agent {speech} {}", when.join(" or "))
}

fn bytes_text(bytes: u32) -> String {
    format!("feedback_bytes_max: {bytes}")
}

#[cfg(test)]
mod tests {
    use crate::layers::tests::{GUIDANCE, ignored, of_file, untrusted};

    #[test]
    fn a_repository_cannot_cut_short_what_another_layer_says() {
        let (high, low) = (of_file(GUIDANCE), of_file("feedback_bytes_max: 1"));
        assert_eq!(untrusted(&high, &low).definition, high);
        assert_eq!(
            ignored(&untrusted(&high, &low)),
            [
                "`feedback_bytes_max: 1` ignored: the user layer has feedback of its own; trust would let it"
            ]
        );
        assert_eq!(untrusted(&low, &high).definition.feedback_bytes_max, 1);
    }
}
