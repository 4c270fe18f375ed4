//! `advisor`: the models that are asked where a supervised run is stuck.

use jackline_engine::definition::{Advisor, ModelChoice, ModelKind};

use super::models::{self, MODEL, labels, pauses};
use super::prelude::*;

static KEYS: [Key; 1] = [key(
    "advisor",
    OneOf(&[Map(&ADVISOR), Nothing]),
    "none: nobody is asked",
    "Who is asked, out of band, where a supervised run is stuck.",
)];

static ADVISOR: Keys = Keys {
    id: "advisor",
    of: "`advisor`",
    doc: "What it says is given to the agent as feedback, and the session goes on; with the budget used up, the next model is \
          tried, then a person has to clear the blocker.",
    known: &[
        key(
            "models",
            List(1, &Map(&MODEL)),
            "required",
            "Who is asked, in this order; no workers.",
        ),
        key(
            "transcript_lines",
            Count(1, 100_000),
            "500",
            "How many of the last lines of the transcript it is shown.",
        ),
        key("budget", Count(0, 1000), "2", "How often it is asked in a session."),
    ],
    needs: &[Needs::All(&["models"])],
};

pub(crate) struct AdvisorSection;

impl Section for AdvisorSection {
    type Part = Option<Demand<Advisor>>;

    const KEYS: &'static [Key] = &KEYS;
    const MAPPINGS: &'static [&'static Keys] = &[&ADVISOR];
    const JOIN_STEP: JoinStep = JoinStep::First;

    #[cfg(test)]
    const LOOSER: &'static [Looser] = tests::LOOSER;

    fn lower(_: &str, node: &Node, lowering: &mut Lowering<'_>, reader: &mut Reader<'_>) {
        let is_off = node.value == NodeValue::Null;
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

    /// The models of the higher layer, the fewest questions and the fewest lines.
    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        let (above, below) = (high.advisor.as_ref(), low.advisor.as_ref());
        if let (None, Some(below), Some(to)) = (above, below, pauses(high))
            && !join.overrides()
        {
            let why = "pauses a session that gets nowhere, and an advisor would go on";
            join.ignore(Subject::Setting, text(&below.value), below.layer, to, why);
            return None;
        }
        join.option(above, below, Subject::Setting, text, |join, high, low| {
            let (one, other) = (&high.value, &low.value);
            let both = Advisor {
                models: one.models.clone(),
                transcript_lines: one.transcript_lines.min(other.transcript_lines),
                budget: one.budget.min(other.budget),
            };
            if both != *other {
                let why = "has an advisor of its own, or allows less";
                join.ignore(Subject::Setting, text(other), low.layer, high.layer, why);
            }
            let layer = if both == *one { high.layer } else { low.layer };
            Demand { value: both, layer }
        })
    }

    fn describe(advisor: &Self::Part, lines: &mut EffectiveLines<'_>) {
        lines.option(Subject::Setting, advisor.as_ref(), text);
    }

    fn put(advisor: Self::Part, definition: &mut Definition) {
        definition.advisor = advisor.map(|advisor| advisor.value);
    }
}

fn read(node: &Node, reader: &mut Reader<'_>) -> Advisor {
    let mut advisor = Advisor {
        models: Vec::new(),
        transcript_lines: Advisor::TRANSCRIPT_LINES,
        budget: Advisor::BUDGET,
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
                    let message = format!("`{}` can't advise: it is a worker", worker.label());
                    reader.complain_hint(node.at, message, "name a `provider` and its `model`");
                }
                continue;
            }
            "transcript_lines" => &mut advisor.transcript_lines,
            _ => &mut advisor.budget,
        };
        reader.bounded(key, node, &ADVISOR, slot);
    }
    if named == 0 {
        let hint = "name at least one in `advisor.models`, or leave `advisor` out";
        reader.complain_hint(node.at, "`advisor` has no models", hint);
    }
    advisor
}

/// The models that are asked, and how often.
pub fn text(advisor: &Advisor) -> String {
    let Advisor { models, transcript_lines, budget } = advisor;
    format!("advisor: {}, {budget} times, shown {transcript_lines} lines", labels(models))
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
