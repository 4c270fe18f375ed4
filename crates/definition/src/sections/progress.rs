//! `progress`: when a session is stuck.

use jackline_engine::definition::Dimension;
use jackline_engine::definition::Progress;

use super::prelude::*;
use crate::values::limited_list;

static KEYS: [Key; 1] = [key(
    "progress",
    Map(&PROGRESS),
    "none: nothing is paused",
    "When iterations that bring nothing pause the session. `progress: {}` has the defaults below.",
)];

static PROGRESS: Keys = Keys {
    id: "progress",
    of: "`progress`",
    doc: "An iteration fails when tests fail after a change, the build fails, its error is that of the iteration before, or \
          nothing was changed. Fewer failing tests than before are progress, and progress starts the count anew.",
    known: &[
        key(
            "max_consecutive_failures",
            Count(1, U32),
            "3",
            "So many failed iterations in a row pause the session.",
        ),
        key(
            "exempt_phases",
            List(0, &Text),
            "none",
            "Phases, as `iteration_ended` names them, in which nothing has to change.",
        ),
        key(
            "steps_per_iteration",
            Count(1, U32),
            "50",
            "How many steps are an iteration where no `iteration_ended` ever comes.",
        ),
    ],
    needs: &[],
};

/// How many phases there may be: the engine compares them at every call.
const PHASES_MAX: usize = 64;

pub(crate) struct ProgressSection;

impl Section for ProgressSection {
    type Part = Option<Demand<Progress>>;

    const KEYS: &'static [Key] = &KEYS;
    const MAPPINGS: &'static [&'static Keys] = &[&PROGRESS];
    const JOIN_STEP: JoinStep = JoinStep::First;

    #[cfg(test)]
    const LOOSER: &'static [Looser] = tests::LOOSER;

    fn lower(_: &str, node: &Node, lowering: &mut Lowering<'_>, reader: &mut Reader<'_>) {
        let mut progress = Progress::default();
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
            return Some(in_known_steps(below.clone(), high, join));
        }
        let (above, below) = (high.progress.as_ref(), low.progress.as_ref());
        join.option(above, below, Subject::Limit, text, |join, high, low| {
            let both = stricter(&high.value, &low.value);
            if both == low.value {
                return low.clone();
            }
            let why = if both == high.value {
                "has one that this does not tighten"
            } else {
                "demands more in part"
            };
            join.ignore(Subject::Limit, text(&low.value), low.layer, high.layer, why);
            Demand { value: both, layer: high.layer }
        })
    }

    fn describe(progress: &Self::Part, lines: &mut EffectiveLines<'_>) {
        lines.option(Subject::Limit, progress.as_ref(), text);
    }

    fn put(progress: Self::Part, definition: &mut Definition) {
        definition.progress = progress.map(|progress| progress.value);
    }
}

fn phases(node: &Node, what: &str, reader: &mut Reader<'_>) -> Vec<String> {
    let too_many = |count| format!("{count} in {what}; at most {PHASES_MAX} are looked at");
    let items = limited_list(node, what, PHASES_MAX, too_many, reader);
    items.iter().filter_map(|item| reader.text(item, "a phase").map(ToOwned::to_owned)).collect()
}

fn positive(node: &Node, what: &str, reader: &mut Reader<'_>) -> Option<u32> {
    let count: u32 = reader.count(node, what)?;
    if count == 0 {
        reader.complain_hint(node.at, format!("{what} can't be 0"), "remove `progress` instead");
        return None;
    }
    Some(count)
}

/// A limit on iterations of the higher layer keeps its meaning: an iteration has at most the
/// default number of steps.
fn in_known_steps(
    mut below: Demand<Progress>,
    high: &LayerDemands,
    join: &mut LayerJoin,
) -> Demand<Progress> {
    let steps = Progress::default().steps_per_iteration;
    let given = below.value.steps_per_iteration;
    if let Some(limit) = high.limits.get(Dimension::Iterations)
        && given > steps
    {
        let text = format!("`progress.steps_per_iteration: {given}`");
        let why = format!("counts iterations of {steps} steps");
        join.ignore(Subject::Limit, text, below.layer, limit.layer, &why);
        below.value.steps_per_iteration = steps;
    }
    below
}

/// The demands that pause a session as early as both layers would. The higher layer says what an
/// iteration is: in shorter iterations a change and its test are apart, and neither fails.
fn stricter(above: &Progress, below: &Progress) -> Progress {
    let (one, other) = (above.max_consecutive_failures, below.max_consecutive_failures);
    let both = above.exempt_phases.iter().filter(|phase| below.exempt_phases.contains(phase));
    Progress {
        max_consecutive_failures: one.min(other),
        exempt_phases: both.cloned().collect(),
        steps_per_iteration: above.steps_per_iteration,
    }
}

/// When a session is stuck.
pub fn text(progress: &Progress) -> String {
    let exempt = if progress.exempt_phases.is_empty() {
        String::new()
    } else {
        format!(", and nothing has to change in {}", progress.exempt_phases.join(", "))
    };
    format!(
        "pauses after {} failed iterations in a row, of {} steps where nobody says{exempt}",
        progress.max_consecutive_failures, progress.steps_per_iteration
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::tests::{ignored, managed, of_file, repository, trusted, untrusted, user};
    use crate::layers::{Combined, combine};

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
        let high = of_file("limits: { iterations: 3 }");
        let low = |steps: u32| {
            of_file(&format!(
                "progress: {{ max_consecutive_failures: 2, steps_per_iteration: {steps} }}"
            ))
        };
        let steps = |combined: &Combined| {
            combined.definition.progress.as_ref().unwrap().steps_per_iteration
        };
        let combined = untrusted(&high, &low(80));
        assert_eq!(combined.definition.progress, low(50).progress);
        assert_eq!(
            ignored(&combined),
            [
                "`progress.steps_per_iteration: 80` ignored: the user layer counts iterations of 50 steps; trust would let it"
            ]
        );
        assert_eq!(steps(&trusted(&high, &low(80))), 80);
        let layers = vec![managed(high.clone()), user(low(80)), repository(low(90))];
        assert_eq!(steps(&combine(layers, true)), 50);
        // Shorter ones reach the limit sooner. Where no limit counts them, the repository decides.
        assert_eq!(steps(&untrusted(&high, &low(20))), 20);
        assert_eq!(steps(&untrusted(&of_file("limits: { steps: 3 }"), &low(80))), 80);
    }

    #[test]
    fn what_an_iteration_is_says_the_higher_layer() {
        let high = of_file("progress: { exempt_phases: [plan, review] }");
        let low = of_file(
            "progress: { max_consecutive_failures: 2, exempt_phases: [plan, build], steps_per_iteration: 20 }",
        );
        let combined = untrusted(&high, &low);
        let both = of_file("progress: { max_consecutive_failures: 2, exempt_phases: [plan] }");
        assert_eq!(combined.definition, both);
        let lines = ignored(&combined);
        assert_eq!(lines.len(), 1);
        assert!(
            lines[0].ends_with("ignored: the user layer demands more in part; trust would let it"),
            "{lines:?}"
        );
        assert_eq!(trusted(&high, &low).definition, low);
    }
}
