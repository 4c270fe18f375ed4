//! `run`: how often a supervised run tries again.

use jackline_engine::definition::RunLimits;

use super::prelude::*;
use crate::values::{NumberFields, changed_numbers, find_number};

static KEYS: [KeySpec; 1] = [key(
    "run",
    Map(&RUN),
    "",
    "How often `jackline run` tries again before it changes the engine, pauses or ends.",
)];

/// The largest number of tries.
const TRIES_MAX: u64 = 1000;

static RUN: MappingSpec = MappingSpec {
    id: "run",
    label: "`run`",
    doc: "The counts are of failures in a row: work, an answer or a success starts a count again. Without help, `completion_cap` decides how often a stop is refused.",
    entries: &[
        key(
            "stops_without_work",
            Count(1, TRIES_MAX),
            "3",
            "This many refused stops without a call or a changed file in between show that the agent is stuck. Then an advisor or another model helps, if there is one.",
        ),
        key(
            "failed_checks",
            Count(0, TRIES_MAX),
            "3",
            "How many stops of a turn the completion check may refuse. At the next refusal an advisor or another model helps, if there is one.",
        ),
        key(
            "undone_iterations",
            Count(0, TRIES_MAX),
            "3",
            "How many iterations in a row may end with all programs undone. The next one pauses the session. With `progress`, such an iteration also counts as failed.",
        ),
        key(
            "cut_off_answers",
            Count(1, TRIES_MAX),
            "3",
            "This many answers that were cut off at the token limit count as a full context.",
        ),
        key(
            "model_tries",
            Count(1, TRIES_MAX),
            "8",
            "How often a model that does not answer is asked, or an agent program is started whose provider does not answer. A failure with a fallback model is not tried again.",
        ),
        key(
            "program_starts",
            Count(1, TRIES_MAX),
            "3",
            "How often an agent program is started that fails for an unclear reason.",
        ),
        key(
            "model_waits",
            Count(0, TRIES_MAX),
            "20",
            "How often the run waits for a model whose limits are used up. Then it ends.",
        ),
        key(
            "advisor_tries",
            Count(1, TRIES_MAX),
            "2",
            "How often an advisor that does not answer is asked. Then the next one is asked.",
        ),
    ],
    required: &[],
};

pub(crate) struct RunSection;

impl Section for RunSection {
    type Part = Demand<RunLimits>;

    const KEYS: &'static [KeySpec] = &KEYS;
    const MAPPINGS: &'static [&'static MappingSpec] = &[&RUN];

    #[cfg(test)]
    const LOOSER: &'static [Looser] = tests::LOOSER;

    fn lower(
        _: &str,
        node: &YamlNode,
        lowering: &mut LoweringState<'_>,
        reader: &mut NodeReader<'_>,
    ) {
        let mut limits = RunLimits::default();
        for (key, node) in reader.fields(node, &RUN) {
            if let Some(slot) = find_number(key, numbers(&mut limits)) {
                reader.bounded(key, node, &RUN, slot);
            }
        }
        lowering.definition.run = limits;
    }

    fn take(source: &LayerSource<'_>) -> Self::Part {
        source.demand(source.definition.run)
    }

    /// Takes the smaller value of each number.
    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        let (high, low) = (&high.run, &low.run);
        let (mut both, mut below, mut default) = (high.value, low.value, RunLimits::default());
        let of_both = numbers(&mut both);
        join_smaller_numbers(join.rule, of_both, numbers(&mut below), numbers(&mut default));
        let text = |it: &RunLimits| format!("`{}`", text(*it).unwrap_or_else(|| "run".to_owned()));
        join.report_joined_numbers(high, low, both, text, "allows less")
    }

    fn describe(limits: &Self::Part, lines: &mut DemandLines<'_>) {
        if let Some(text) = text(limits.value) {
            lines.add(DemandSubject::Setting, text, limits.layer);
        }
    }

    fn put(limits: Self::Part, definition: &mut Definition) {
        definition.run = limits.value;
    }
}

/// The number fields. A smaller number is stricter.
fn numbers(limits: &mut RunLimits) -> NumberFields<'_, 8> {
    let RunLimits {
        stops_without_work,
        failed_checks,
        undone_iterations,
        cut_off_answers,
        model_tries,
        program_starts,
        model_waits,
        advisor_tries,
    } = limits;
    [
        ("stops_without_work", stops_without_work),
        ("failed_checks", failed_checks),
        ("undone_iterations", undone_iterations),
        ("cut_off_answers", cut_off_answers),
        ("model_tries", model_tries),
        ("program_starts", program_starts),
        ("model_waits", model_waits),
        ("advisor_tries", advisor_tries),
    ]
}

/// Describes the numbers that differ from the default.
pub fn text(limits: RunLimits) -> Option<String> {
    let (mut own, mut default) = (limits, RunLimits::default());
    let changed = changed_numbers(numbers(&mut own), numbers(&mut default));
    (!changed.is_empty()).then(|| format!("run: {}", changed.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const LOOSER: &[Looser] = &[
        looser("run.stops_without_work", "", "run: { stops_without_work: 4 }"),
        looser("run.failed_checks", "", "run: { failed_checks: 4 }"),
        looser("run.undone_iterations", "", "run: { undone_iterations: 4 }"),
        looser("run.cut_off_answers", "run: { cut_off_answers: 1 }", "run: { cut_off_answers: 2 }"),
        looser("run.model_tries", "", "run: { model_tries: 9 }"),
        looser("run.program_starts", "", "run: { program_starts: 4 }"),
        looser("run.model_waits", "run: { model_waits: 0 }", "run: { model_waits: 1 }"),
        looser("run.advisor_tries", "", "run: { advisor_tries: 3 }"),
    ];
}
