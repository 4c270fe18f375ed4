//! `progress`: when iterations without progress pause a session.

use jackline_engine::definition::LimitDimension;
use jackline_engine::definition::ProgressSettings;

use super::prelude::*;
use crate::values::read_limited_list;

static KEYS: [KeySpec; 1] = [key(
    "progress",
    Map(&PROGRESS),
    "none: no pause",
    "When iterations without progress pause the session. `progress: {}` uses the defaults below.",
)];

static PROGRESS: MappingSpec = MappingSpec {
    id: "progress",
    label: "`progress`",
    doc: "An iteration fails if tests fail after a change, if the build fails, if it ends with the same error as the \
          previous iteration, or if nothing changed. Fewer failing tests than before are progress, and progress resets the count.",
    entries: &[
        key(
            "max_consecutive_failures",
            Count(1, U32_MAX),
            "3",
            "This many failed iterations in a row pause the session.",
        ),
        key(
            "exempt_phases",
            List(0, &Text),
            "none",
            "The phases, as named in `iteration_ended`, that require no change.",
        ),
        key(
            "steps_per_iteration",
            Count(1, U32_MAX),
            "50",
            "The number of steps of an iteration, for clients that never send `iteration_ended`.",
        ),
    ],
    required: &[],
};

/// The maximum number of phases. The engine compares them at every call.
const PHASES_MAX: usize = 64;

pub(crate) struct ProgressSection;

impl Section for ProgressSection {
    type Part = Option<Demand<ProgressSettings>>;

    const KEYS: &'static [KeySpec] = &KEYS;
    const MAPPINGS: &'static [&'static MappingSpec] = &[&PROGRESS];
    const JOIN_STEP: JoinStep = JoinStep::First;

    #[cfg(test)]
    const LOOSER: &'static [Looser] = tests::LOOSER;

    fn lower(
        _: &str,
        node: &YamlNode,
        lowering: &mut LoweringState<'_>,
        reader: &mut NodeReader<'_>,
    ) {
        let mut progress = ProgressSettings::default();
        for (key, node) in reader.fields(node, &PROGRESS) {
            let what = format!("`progress.{key}`");
            match key {
                "exempt_phases" => progress.exempt_phases = phases(node, &what, reader),
                "max_consecutive_failures" => {
                    let slot = &mut progress.max_consecutive_failures;
                    *slot = positive(node, &what, reader).unwrap_or(*slot);
                }
                _ => {
                    let slot = &mut progress.steps_per_iteration;
                    *slot = positive(node, &what, reader).unwrap_or(*slot);
                }
            }
        }
        lowering.definition.progress = Some(progress);
    }

    fn take(source: &LayerSource<'_>) -> Self::Part {
        source.option(source.definition.progress.as_ref())
    }

    fn follows_mode(progress: &Self::Part) -> bool {
        progress.is_some()
    }

    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        if let (None, Some(below)) = (&high.progress, &low.progress)
            && !join.overrides()
        {
            return Some(limit_iteration_steps(below.clone(), high, join));
        }
        let (above, below) = (high.progress.as_ref(), low.progress.as_ref());
        join.join_option(above, below, DemandSubject::Limit, text, |join, high, low| {
            let both = join_stricter(&high.value, &low.value);
            if both == low.value {
                return low.clone();
            }
            let why = if both == high.value {
                "already has one, and this one is not stricter"
            } else {
                "demands more in some values"
            };
            join.report_ignored(DemandSubject::Limit, text(&low.value), low.layer, high.layer, why);
            Demand { value: both, layer: high.layer }
        })
    }

    fn describe(progress: &Self::Part, lines: &mut DemandLines<'_>) {
        lines.add_option(DemandSubject::Limit, progress.as_ref(), text);
    }

    fn put(progress: Self::Part, definition: &mut Definition) {
        definition.progress = progress.map(|progress| progress.value);
    }
}

fn phases(node: &YamlNode, what: &str, reader: &mut NodeReader<'_>) -> Vec<String> {
    let too_many = |count| format!("{count} phases in {what}; at most {PHASES_MAX} are supported");
    let items = read_limited_list(node, what, PHASES_MAX, too_many, reader);
    items.iter().filter_map(|item| reader.text(item, "a phase").map(ToOwned::to_owned)).collect()
}

fn positive(node: &YamlNode, what: &str, reader: &mut NodeReader<'_>) -> Option<u32> {
    let count: u32 = reader.count(node, what)?;
    if count == 0 {
        reader.report_with_hint(
            node.position,
            format!("{what} can't be 0"),
            "remove `progress` instead",
        );
        return None;
    }
    Some(count)
}

/// Keeps the meaning of a limit on iterations in the higher layer: an iteration has at most the
/// default number of steps.
fn limit_iteration_steps(
    mut below: Demand<ProgressSettings>,
    high: &LayerDemands,
    join: &mut LayerJoin,
) -> Demand<ProgressSettings> {
    let steps = ProgressSettings::default().steps_per_iteration;
    let given = below.value.steps_per_iteration;
    if let Some(limit) = high.limits.get(LimitDimension::Iterations)
        && given > steps
    {
        let text = format!("`progress.steps_per_iteration: {given}`");
        let why = format!("counts iterations of {steps} steps");
        join.report_ignored(DemandSubject::Limit, text, below.layer, limit.layer, &why);
        below.value.steps_per_iteration = steps;
    }
    below
}

/// Joins two demands so that the session pauses as early as in both layers. The higher layer
/// defines the length of an iteration: if iterations are too short, a change and its test are in
/// different iterations, and neither iteration fails.
fn join_stricter(above: &ProgressSettings, below: &ProgressSettings) -> ProgressSettings {
    let (one, other) = (above.max_consecutive_failures, below.max_consecutive_failures);
    let both = above.exempt_phases.iter().filter(|phase| below.exempt_phases.contains(phase));
    ProgressSettings {
        max_consecutive_failures: one.min(other),
        exempt_phases: both.cloned().collect(),
        steps_per_iteration: above.steps_per_iteration,
    }
}

/// Describes when iterations without progress pause a session.
pub fn text(progress: &ProgressSettings) -> String {
    let exempt = if progress.exempt_phases.is_empty() {
        String::new()
    } else {
        format!("; phases that need no change: {}", progress.exempt_phases.join(", "))
    };
    format!(
        "pauses after {} failed iterations in a row; default length of an iteration: {} steps{exempt}",
        progress.max_consecutive_failures, progress.steps_per_iteration
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::tests::{
        ignored, load_definition, managed, repository, trusted, untrusted, user,
    };
    use crate::layers::{CombinedDefinition, combine};

    pub(super) const LOOSER: &[Looser] = &[
        looser(
            "progress.max_consecutive_failures",
            "progress: {}",
            "progress: { max_consecutive_failures: 4 }",
        ),
        looser("progress.exempt_phases", "progress: {}", "progress: { exempt_phases: [plan] }"),
        looser(
            "progress.steps_per_iteration",
            "progress: {}",
            "progress: { steps_per_iteration: 51 }",
        ),
        // In iterations of one step, a change and its test are never in the same iteration.
        looser(
            "progress.steps_per_iteration",
            "progress: {}",
            "progress: { steps_per_iteration: 1 }",
        ),
    ];

    #[test]
    fn a_limit_on_iterations_keeps_the_steps_it_counts() {
        let high = load_definition("limits: { iterations: 3 }");
        let low = |steps: u32| {
            load_definition(&format!(
                "progress: {{ max_consecutive_failures: 2, steps_per_iteration: {steps} }}"
            ))
        };
        let steps = |combined: &CombinedDefinition| {
            combined.definition.progress.as_ref().unwrap().steps_per_iteration
        };
        let combined = untrusted(&high, &low(80));
        assert_eq!(combined.definition.progress, low(50).progress);
        assert_eq!(
            ignored(&combined),
            [
                "`progress.steps_per_iteration: 80` ignored: the user layer counts iterations of 50 steps; trust would allow it"
            ]
        );
        assert_eq!(steps(&trusted(&high, &low(80))), 80);
        let layers = vec![managed(high.clone()), user(low(80)), repository(low(90))];
        assert_eq!(steps(&combine(layers, true)), 50);
        // Shorter iterations reach the limit sooner. Without such a limit the repository decides.
        assert_eq!(steps(&untrusted(&high, &low(20))), 20);
        assert_eq!(steps(&untrusted(&load_definition("limits: { steps: 3 }"), &low(80))), 80);
    }

    #[test]
    fn the_higher_layer_defines_an_iteration() {
        let high = load_definition("progress: { exempt_phases: [plan, review] }");
        let low = load_definition(
            "progress: { max_consecutive_failures: 2, exempt_phases: [plan, build], steps_per_iteration: 20 }",
        );
        let combined = untrusted(&high, &low);
        let both =
            load_definition("progress: { max_consecutive_failures: 2, exempt_phases: [plan] }");
        assert_eq!(combined.definition, both);
        let lines = ignored(&combined);
        assert_eq!(lines.len(), 1);
        assert!(
            lines[0].ends_with(
                "ignored: the user layer demands more in some values; trust would allow it"
            ),
            "{lines:?}"
        );
        assert_eq!(trusted(&high, &low).definition, low);
    }
}
