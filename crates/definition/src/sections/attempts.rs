//! `attempts`: how often Jackline retries a program or a plan of a model.

use jackline_engine::definition::AttemptBudgets;

use super::prelude::*;
use crate::diagnostic::SourcePosition;
use crate::values::{NumberFields, changed_numbers, find_number, read_limited_list};

static KEYS: [KeySpec; 1] = [key(
    "attempts",
    Map(&ATTEMPTS),
    "",
    "How often Jackline lets a model retry a program or a plan.",
)];

/// The largest number of retries for one reason.
const RETRIES_MAX: u64 = 100;

/// The maximum number of subtypes that end a call immediately.
const TERMINAL_MAX: usize = 64;

static ATTEMPTS: MappingSpec = MappingSpec {
    id: "attempts",
    label: "`attempts`",
    doc: "Numbers are retries: 1 means two tries. With 0 there is no retry, and the first result is final.",
    entries: &[
        key(
            "provider",
            Count(0, RETRIES_MAX),
            "1",
            "Retries after a response of the model that can't be used.",
        ),
        key("guardrail", Count(0, RETRIES_MAX), "1", "Retries after a violation."),
        key("execution", Count(0, RETRIES_MAX), "1", "Retries after an execution error."),
        key(
            "outcome",
            Count(0, RETRIES_MAX),
            "1",
            "Retries after an error outcome that may be retried and has no external cause.",
        ),
        key(
            "ceiling",
            Count(1, RETRIES_MAX),
            "6",
            "The maximum number of requests to the model in all, even if other retries remain.",
        ),
        key(
            "pressure_after",
            Count(1, RETRIES_MAX),
            "2",
            "This many calls in a row of the task, or of the same delegate, that use all their retries put it under pressure. A call that succeeds ends the pressure.",
        ),
        key(
            "pressure_retries",
            Count(0, RETRIES_MAX),
            "0",
            "The maximum number of retries for each reason while a task or delegate is under pressure.",
        ),
        key(
            "terminal",
            List(0, &Text),
            "`missing_credentials`, `dependency_unavailable`, `unsupported_capability`",
            "Subtypes of violations that end a call without a retry.",
        ),
    ],
    required: &[],
};

pub(crate) struct AttemptsSection;

impl Section for AttemptsSection {
    type Part = Demand<AttemptBudgets>;

    const KEYS: &'static [KeySpec] = &KEYS;
    const MAPPINGS: &'static [&'static MappingSpec] = &[&ATTEMPTS];

    #[cfg(test)]
    const LOOSER: &'static [Looser] = tests::LOOSER;

    fn lower(
        _: &str,
        node: &YamlNode,
        lowering: &mut LoweringState<'_>,
        reader: &mut NodeReader<'_>,
    ) {
        let mut budgets = AttemptBudgets::default();
        for (key, node) in reader.fields(node, &ATTEMPTS) {
            match find_number(key, numbers(&mut budgets)) {
                Some(slot) => reader.bounded(key, node, &ATTEMPTS, slot),
                None => {
                    let named = terminal(node, reader);
                    budgets.terminal = named.iter().map(|(name, _)| name.clone()).collect();
                    lowering.terminal_subtypes = named;
                }
            }
        }
        lowering.definition.attempts = budgets;
    }

    fn take(source: &LayerSource<'_>) -> Self::Part {
        source.demand(source.definition.attempts.clone())
    }

    /// Takes the smaller value of each number. A subtype that ends a call in one layer ends it in
    /// both.
    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        let (high, low) = (&high.attempts, &low.attempts);
        let (mut both, mut below) = (high.value.clone(), low.value.clone());
        let mut default = AttemptBudgets::default();
        let of_both = numbers(&mut both);
        join_smaller_numbers(join.rule, of_both, numbers(&mut below), numbers(&mut default));
        if below.terminal != default.terminal {
            if join.overrides() {
                both.terminal = below.terminal;
            } else {
                let added = below.terminal.into_iter().filter(|it| !both.terminal.contains(it));
                both.terminal.extend(added.collect::<Vec<_>>());
            }
        }
        let text = |it: &AttemptBudgets| {
            format!("`{}`", text(it).unwrap_or_else(|| "attempts".to_owned()))
        };
        join.report_joined_numbers(high, low, both, text, "allows less")
    }

    fn describe(budgets: &Self::Part, lines: &mut DemandLines<'_>) {
        if let Some(text) = text(&budgets.value) {
            lines.add(DemandSubject::Setting, text, budgets.layer);
        }
    }

    fn put(budgets: Self::Part, definition: &mut Definition) {
        definition.attempts = budgets.value;
    }
}

/// The number fields. A smaller number is stricter.
fn numbers(budgets: &mut AttemptBudgets) -> NumberFields<'_, 7> {
    let AttemptBudgets {
        provider,
        guardrail,
        execution,
        outcome,
        ceiling,
        pressure_after,
        pressure_retries,
        terminal: _,
    } = budgets;
    [
        ("provider", provider),
        ("guardrail", guardrail),
        ("execution", execution),
        ("outcome", outcome),
        ("ceiling", ceiling),
        ("pressure_after", pressure_after),
        ("pressure_retries", pressure_retries),
    ]
}

fn terminal(node: &YamlNode, reader: &mut NodeReader<'_>) -> Vec<(String, SourcePosition)> {
    let too_many = |count| {
        format!("{count} subtypes in `attempts.terminal`; at most {TERMINAL_MAX} are supported")
    };
    let mut subtypes: Vec<(String, SourcePosition)> = Vec::new();
    for item in read_limited_list(node, "`attempts.terminal`", TERMINAL_MAX, too_many, reader) {
        let Some(text) = reader.text(item, "a subtype") else { continue };
        if !text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_') {
            let hint = "use lower-case letters, digits and `_`, such as `missing_credentials`";
            reader.report_with_hint(item.position, format!("`{text}` is not a subtype"), hint);
        } else if !subtypes.iter().any(|(known, _)| known == text) {
            subtypes.push((text.to_owned(), item.position));
        }
    }
    subtypes
}

/// Describes the retries that differ from the default.
pub fn text(attempts: &AttemptBudgets) -> Option<String> {
    let (mut own, mut default) = (attempts.clone(), AttemptBudgets::default());
    let mut changed = changed_numbers(numbers(&mut own), numbers(&mut default));
    if own.terminal != default.terminal {
        changed.push(format!("terminal {}", own.terminal.join(", ")));
    }
    (!changed.is_empty()).then(|| format!("attempts: {}", changed.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const LOOSER: &[Looser] = &[
        looser("attempts.provider", "attempts: { provider: 0 }", "attempts: { provider: 2 }"),
        looser("attempts.provider", "", "attempts: { provider: 2 }"),
        looser("attempts.guardrail", "attempts: { guardrail: 2 }", "attempts: { guardrail: 3 }"),
        looser("attempts.execution", "attempts: { execution: 0 }", "attempts: { execution: 2 }"),
        looser("attempts.outcome", "attempts: { outcome: 2 }", "attempts: { outcome: 3 }"),
        looser("attempts.ceiling", "", "attempts: { ceiling: 7 }"),
        looser("attempts.pressure_after", "", "attempts: { pressure_after: 3 }"),
        looser("attempts.pressure_retries", "", "attempts: { pressure_retries: 1 }"),
        looser("attempts.terminal", "", "attempts: { terminal: [missing_credentials] }"),
        looser(
            "attempts.terminal",
            "attempts: { terminal: [no_key, no_net] }",
            "attempts: { terminal: [no_key] }",
        ),
    ];
}
