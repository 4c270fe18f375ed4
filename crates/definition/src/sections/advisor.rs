//! `advisor`: the models that give advice when a supervised run makes no progress.

use jackline_engine::definition::{Advisor, ModelChoice, ModelKind};

use super::models::{self, MODEL, labels, pausing_layer};
use super::prelude::*;

static KEYS: [KeySpec; 1] = [key(
    "advisor",
    OneOf(&[Map(&ADVISOR), Nothing]),
    "none: no advice",
    "The models that Jackline asks for advice when a supervised run makes no progress.",
)];

static ADVISOR: MappingSpec = MappingSpec {
    id: "advisor",
    label: "`advisor`",
    doc: "The agent gets the advice as feedback, and the session continues. When the budget is used up, Jackline tries the next \
          model; after the last one a person must clear the blocker.",
    entries: &[
        key(
            "models",
            List(1, &Map(&MODEL)),
            "required",
            "The models to ask, in this order. Workers are not allowed.",
        ),
        key(
            "transcript_lines",
            Count(1, 100_000),
            "500",
            "How many of the last lines of the transcript the advisor sees.",
        ),
        key("budget", Count(0, 1000), "2", "How often Jackline asks for advice in a session."),
    ],
    required: &[RequiredKeys::All(&["models"])],
};

pub(crate) struct AdvisorSection;

impl Section for AdvisorSection {
    type Part = Option<Demand<Advisor>>;

    const KEYS: &'static [KeySpec] = &KEYS;
    const MAPPINGS: &'static [&'static MappingSpec] = &[&ADVISOR];
    const JOIN_STEP: JoinStep = JoinStep::First;

    #[cfg(test)]
    const LOOSER: &'static [Looser] = tests::LOOSER;

    fn lower(
        _: &str,
        node: &YamlNode,
        lowering: &mut LoweringState<'_>,
        reader: &mut NodeReader<'_>,
    ) {
        let is_off = node.value == YamlValue::Null;
        lowering.definition.advisor = (!is_off).then(|| read(node, reader));
    }

    fn take(source: &LayerSource<'_>) -> Self::Part {
        source.option(source.definition.advisor.as_ref())
    }

    fn withhold(advisor: &mut Self::Part, join: &mut LayerJoin) {
        if let Some(Demand { value, layer }) = advisor {
            models::withhold(&mut value.models, *layer, join);
        }
        advisor.take_if(|advisor| advisor.value.models.is_empty());
    }

    /// Takes the models of the higher layer, and the smaller budget and number of lines.
    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        let (above, below) = (high.advisor.as_ref(), low.advisor.as_ref());
        if let (None, Some(below), Some(to)) = (above, below, pausing_layer(high))
            && !join.overrides()
        {
            let why = "pauses a session without progress, and an advisor would continue it";
            join.report_ignored(DemandSubject::Setting, text(&below.value), below.layer, to, why);
            return None;
        }
        join.join_option(above, below, DemandSubject::Setting, text, |join, high, low| {
            let (one, other) = (&high.value, &low.value);
            let both = Advisor {
                models: one.models.clone(),
                transcript_lines: one.transcript_lines.min(other.transcript_lines),
                budget: one.budget.min(other.budget),
            };
            if both != *other {
                let why = "has its own advisor, or allows less";
                join.report_ignored(
                    DemandSubject::Setting,
                    text(other),
                    low.layer,
                    high.layer,
                    why,
                );
            }
            let layer = if both == *one { high.layer } else { low.layer };
            Demand { value: both, layer }
        })
    }

    fn describe(advisor: &Self::Part, lines: &mut DemandLines<'_>) {
        lines.add_option(DemandSubject::Setting, advisor.as_ref(), text);
    }

    fn put(advisor: Self::Part, definition: &mut Definition) {
        definition.advisor = advisor.map(|advisor| advisor.value);
    }
}

fn read(node: &YamlNode, reader: &mut NodeReader<'_>) -> Advisor {
    let mut advisor = Advisor {
        models: Vec::new(),
        transcript_lines: Advisor::TRANSCRIPT_LINES_DEFAULT,
        budget: Advisor::BUDGET_DEFAULT,
    };
    let mut named = 0;
    for (key, node) in reader.fields(node, &ADVISOR) {
        let slot = match key {
            "models" => {
                named = reader.list(node, "`advisor.models`").len();
                advisor.models = models::read(node, "`advisor.models`", reader);
                let worker =
                    |choice: &&ModelChoice| !matches!(choice.kind, ModelKind::Provider { .. });
                if let Some(worker) = advisor.models.iter().find(worker) {
                    let message =
                        format!("`{}` is a worker and can't be an advisor", worker.label());
                    reader.report_with_hint(
                        node.position,
                        message,
                        "name a `provider` and its `model`",
                    );
                }
                continue;
            }
            "transcript_lines" => &mut advisor.transcript_lines,
            _ => &mut advisor.budget,
        };
        reader.bounded(key, node, &ADVISOR, slot);
    }
    if named == 0 {
        let hint = "add one to `advisor.models`, or remove `advisor`";
        reader.report_with_hint(node.position, "`advisor` has no models", hint);
    }
    advisor
}

/// Describes the models and how often they are asked.
pub fn text(advisor: &Advisor) -> String {
    let Advisor { models, transcript_lines, budget } = advisor;
    format!("advisor: {}, budget {budget}, {transcript_lines} transcript lines", labels(models))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADVISED: &str = "advisor: { models: [ { provider: openai, model: m } ] }";

    pub(super) const LOOSER: &[Looser] = &[
        looser(
            "advisor.models",
            ADVISED,
            "advisor: { models: [ { provider: openai, model: n } ] }",
        ),
        looser("advisor.models", "loops: {}", ADVISED),
        looser(
            "advisor.transcript_lines",
            ADVISED,
            "advisor: { models: [ { provider: openai, model: m } ], transcript_lines: 501 }",
        ),
        looser(
            "advisor.budget",
            ADVISED,
            "advisor: { models: [ { provider: openai, model: m } ], budget: 3 }",
        ),
    ];
}
