//! `feedback`, `feedback_bytes_max` and `deadline`: soft guidance for the agent.

use jackline_engine::definition::{
    FeedbackContent, FeedbackProvider, FeedbackTrigger, FileTrigger,
};

use super::prelude::*;
use crate::reader::format_seconds;
use crate::values::{read_limited_list, read_path, shorten};

static KEYS: [KeySpec; 3] = [
    key("feedback", List(0, &Map(&PROVIDER)), "none", "Soft guidance for the agent."),
    key(
        "feedback_bytes_max",
        Count(0, U32_MAX),
        "4096",
        "The maximum size of the feedback in one round, in bytes.",
    ),
    key("deadline", Map(&DEADLINE), "", "The default of `deadline` providers."),
];

/// The words of `since`; true if files from before the session do not count.
const SINCE: [(&str, bool); 2] = [("session_start", true), ("ever", false)];

static PROVIDER: MappingSpec = MappingSpec {
    id: "provider",
    label: "a feedback provider",
    doc: "It gives one kind of guidance, `deadline` or `static`, whenever one of its triggers fires.",
    entries: &[
        key("deadline", Map(&DEADLINE), "", "The remaining time."),
        key("static", Text, "", "A fixed text."),
        key(
            "every_n_calls",
            Count(1, I64_MAX),
            "",
            "Fires after this many calls since the last guidance of this provider.",
        ),
        key(
            "every_n_seconds",
            Seconds,
            "",
            "Fires at the first result, then after this much time since the last guidance of this provider.",
        ),
        key(
            "on_file_created",
            OneOf(&[Path, Map(&FILE_CREATED)]),
            "",
            "Fires once, when this file exists.",
        ),
    ],
    required: &[
        RequiredKeys::One(&["deadline", "static"]),
        RequiredKeys::Some(&["every_n_calls", "every_n_seconds", "on_file_created"]),
    ],
};

static DEADLINE: MappingSpec = MappingSpec {
    id: "deadline",
    label: "`deadline`",
    doc: "",
    entries: &[key(
        "warning_threshold_seconds",
        Count(0, I64_MAX),
        "120, or the top-level `deadline`",
        "It warns when this much time or less remains.",
    )],
    required: &[],
};

static FILE_CREATED: MappingSpec = MappingSpec {
    id: "file_created",
    label: "`on_file_created`",
    doc: "A path alone is `{path: …}`.",
    entries: &[
        key("path", Path, "required", "The file."),
        key(
            "since",
            Word(&words_of::<_, 2>(&SINCE)),
            "`ever`",
            "With `session_start`, a file from before the session does not count.",
        ),
    ],
    required: &[RequiredKeys::All(&["path"])],
};

/// The maximum number of providers in a definition. Each one needs space in the session state.
const PROVIDERS_MAX: usize = 64;

/// The default remaining time in seconds at which a `deadline` starts to warn.
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

    const KEYS: &'static [KeySpec] = &KEYS;
    const MAPPINGS: &'static [&'static MappingSpec] = &[&PROVIDER, &FILE_CREATED, &DEADLINE];

    fn lower(
        key: &str,
        node: &YamlNode,
        lowering: &mut LoweringState<'_>,
        reader: &mut NodeReader<'_>,
    ) {
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

    /// Takes the providers of both layers. A smaller `feedback_bytes_max` would cut the guidance of
    /// the higher layer, so it is ignored if that layer has providers.
    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        let (high, low) = (&high.feedback, &low.feedback);
        let has_providers = !high.providers.is_empty();
        let demands = |high: u32, low: u32| has_providers || high <= low;
        let why = if has_providers { "has its own feedback" } else { "has a smaller limit" };
        FeedbackDemands {
            providers: union(&high.providers, &low.providers),
            bytes_max: join.join_setting(&high.bytes_max, &low.bytes_max, demands, bytes_text, why),
        }
    }

    fn describe(part: &Self::Part, lines: &mut DemandLines<'_>) {
        let default = Definition::default().feedback_bytes_max;
        lines.add_general_unless_default(default, &part.bytes_max, bytes_text);
        for provider in &part.providers {
            lines.add(DemandSubject::Feedback, text(&provider.value), provider.layer);
        }
    }

    fn put(part: Self::Part, definition: &mut Definition) {
        definition.feedback = values(part.providers);
        definition.feedback_bytes_max = part.bytes_max.value;
    }

    fn problems(definition: &Definition) -> Vec<String> {
        let count = definition.feedback.len();
        let message =
            || format!("{count} feedback providers; at most {PROVIDERS_MAX} are supported");
        (count > PROVIDERS_MAX).then(message).into_iter().collect()
    }
}

/// Lowers `deadline` first, because its threshold is the default of the providers.
pub(crate) fn lower(lowering: &mut LoweringState<'_>, reader: &mut NodeReader<'_>) {
    let threshold = lowering
        .node("deadline")
        .map_or(THRESHOLD_SECONDS, |node| threshold(node, THRESHOLD_SECONDS, reader));
    let Some(node) = lowering.node("feedback") else { return };
    let too_many = |count| format!("{count} providers; at most {PROVIDERS_MAX} are supported");
    let items = read_limited_list(node, "`feedback`", PROVIDERS_MAX, too_many, reader);
    lowering.definition.feedback =
        items.iter().filter_map(|item| provider(item, threshold, reader)).collect();
}

/// Reads the `warning_threshold_seconds` of a `deadline`.
fn threshold(node: &YamlNode, default: u64, reader: &mut NodeReader<'_>) -> u64 {
    let mut threshold = default;
    for (_, node) in reader.fields(node, &DEADLINE) {
        threshold = reader.count(node, "`warning_threshold_seconds`").unwrap_or(threshold);
    }
    threshold
}

fn provider(
    node: &YamlNode,
    default: u64,
    reader: &mut NodeReader<'_>,
) -> Option<FeedbackProvider> {
    let mut speech = None;
    let mut trigger = FeedbackTrigger::default();
    let mut given = 0;
    for (key, node) in reader.fields(node, &PROVIDER) {
        match key {
            "deadline" => {
                given += 1;
                let warning_threshold_seconds = threshold(node, default, reader);
                speech = Some(FeedbackContent::Deadline { warning_threshold_seconds });
            }
            "static" => {
                given += 1;
                let text = reader.text(node, "`static`");
                speech = text.map(|text| FeedbackContent::Static { text: text.to_owned() });
            }
            "every_n_calls" => trigger.every_n_calls = reader.positive(node, "`every_n_calls`"),
            "every_n_seconds" => {
                trigger.every_n_ms = reader.seconds_as_ms(node, "`every_n_seconds`");
            }
            _ => trigger.on_file_created = file_created(node, reader),
        }
    }
    if !matches!(node.value, YamlValue::Map(_) | YamlValue::Null) {
        return None;
    }
    if given != 1 {
        let message =
            format!("a feedback provider must have exactly one kind of guidance, not {given}");
        reader.report_with_hint(node.position, message, "give it `deadline` or `static`");
    }
    if trigger == FeedbackTrigger::default() {
        reader.report_with_hint(
            node.position,
            "this provider would never give feedback",
            "give it `every_n_calls`, `every_n_seconds` or `on_file_created`",
        );
    }
    speech.map(|speech| FeedbackProvider { speech, trigger })
}

fn file_created(node: &YamlNode, reader: &mut NodeReader<'_>) -> Option<FileTrigger> {
    if !matches!(node.value, YamlValue::Map(_)) {
        return read_path(node, reader).map(|path| FileTrigger { path, since_start: false });
    }
    let (mut file, mut since_start) = (None, false);
    for (key, node) in reader.fields(node, &FILE_CREATED) {
        if key == "path" {
            file = read_path(node, reader);
        } else {
            since_start = reader.word(node, "`since`", &SINCE).unwrap_or(since_start);
        }
    }
    if file.is_none() {
        reader.report(node.position, "`on_file_created` needs a `path`");
    }
    file.map(|path| FileTrigger { path, since_start })
}

/// Describes the guidance and when the agent receives it.
pub fn text(provider: &FeedbackProvider) -> String {
    let speech = match &provider.speech {
        FeedbackContent::Deadline { .. } => "the remaining time".to_owned(),
        FeedbackContent::Static { text } => format!("\"{}\"", shorten(text)),
        FeedbackContent::Custom { name } => format!("the text of `{name}`"),
    };
    let trigger = &provider.trigger;
    let when: Vec<String> = [
        trigger.every_n_calls.map(|n| format!("every {n} calls")),
        trigger.every_n_ms.map(|ms| format!("every {} seconds", format_seconds(ms))),
        trigger.on_file_created.as_ref().map(|file| format!("once {} exists", file.path)),
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
    use crate::layers::tests::{GUIDANCE, ignored, load_definition, untrusted};

    #[test]
    fn a_repository_cannot_cut_short_what_another_layer_says() {
        let (high, low) = (load_definition(GUIDANCE), load_definition("feedback_bytes_max: 1"));
        assert_eq!(untrusted(&high, &low).definition, high);
        assert_eq!(
            ignored(&untrusted(&high, &low)),
            [
                "`feedback_bytes_max: 1` ignored: the user layer has its own feedback; trust would allow it"
            ]
        );
        assert_eq!(untrusted(&low, &high).definition.feedback_bytes_max, 1);
    }
}
