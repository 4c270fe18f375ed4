//! `attempts`: how often a program or a plan of a model is tried again.

use jackline_engine::definition::Budgets;

use super::prelude::*;
use crate::values::{Numbers, changed_numbers, limited_list, number_of};

static KEYS: [Key; 1] = [key(
    "attempts",
    Map(&ATTEMPTS),
    "",
    "How often what a model wrote, a program or a plan, is tried again.",
)];

/// The largest number of retries for one reason.
const RETRIES_MAX: u64 = 100;

/// How many subtypes may end a call at once.
const TERMINAL_MAX: usize = 64;

static ATTEMPTS: Keys = Keys {
    id: "attempts",
    of: "`attempts`",
    doc: "Numbers are retries: 1 is two tries, 0 switches them off, and what happened is the answer.",
    known: &[
        key(
            "provider",
            Count(0, RETRIES_MAX),
            "1",
            "After an answer of the model that can't be used.",
        ),
        key("guardrail", Count(0, RETRIES_MAX), "1", "After an objection."),
        key("execution", Count(0, RETRIES_MAX), "1", "After a fault of the run."),
        key(
            "outcome",
            Count(0, RETRIES_MAX),
            "1",
            "After an error outcome that may be tried again and is not the world's fault.",
        ),
        key(
            "ceiling",
            Count(1, RETRIES_MAX),
            "6",
            "How often the model is asked in all, whatever the others have left.",
        ),
        key(
            "terminal",
            List(0, &Text),
            "`missing_credentials`, `dependency_unavailable`, `unsupported_capability`",
            "Subtypes of violations that end a call at once.",
        ),
    ],
    needs: &[],
};

pub(crate) struct AttemptsSection;

impl Section for AttemptsSection {
    type Part = Demand<Budgets>;

    const KEYS: &'static [Key] = &KEYS;
    const MAPPINGS: &'static [&'static Keys] = &[&ATTEMPTS];

    #[cfg(test)]
    const LOOSER: &'static [Looser] = tests::LOOSER;

    fn lower(_: &str, node: &Node, lowering: &mut Lowering<'_>, reader: &mut Reader<'_>) {
        let mut budgets = Budgets::default();
        for (key, node) in reader.fields(node, &ATTEMPTS) {
            match number_of(key, numbers(&mut budgets)) {
                Some(slot) => reader.bounded(key, node, &ATTEMPTS, slot),
                None => budgets.terminal = terminal(node, reader),
            }
        }
        lowering.definition.attempts = budgets;
    }

    fn take(source: &LayerSource<'_>) -> Self::Part {
        source.demand(source.definition.attempts.clone())
    }

    /// The smaller number of each. A subtype that ends a call in one layer ends it in both.
    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        let (high, low) = (&high.attempts, &low.attempts);
        let (mut both, mut below) = (high.value.clone(), low.value.clone());
        let mut default = Budgets::default();
        let of_both = numbers(&mut both);
        join_smaller(join.rule, of_both, numbers(&mut below), numbers(&mut default));
        if below.terminal != default.terminal {
            if join.overrides() {
                both.terminal = below.terminal;
            } else {
                let added = below.terminal.into_iter().filter(|it| !both.terminal.contains(it));
                both.terminal.extend(added.collect::<Vec<_>>());
            }
        }
        let text =
            |it: &Budgets| format!("`{}`", text(it).unwrap_or_else(|| "attempts".to_owned()));
        join.numbers(high, low, both, text, "allows less")
    }

    fn describe(budgets: &Self::Part, lines: &mut EffectiveLines<'_>) {
        if let Some(text) = text(&budgets.value) {
            lines.add(Subject::Setting, text, budgets.layer);
        }
    }

    fn put(budgets: Self::Part, definition: &mut Definition) {
        definition.attempts = budgets.value;
    }
}

/// The numbers, of which the smaller one is stricter.
fn numbers(budgets: &mut Budgets) -> Numbers<'_, 5> {
    let Budgets { provider, guardrail, execution, outcome, ceiling, terminal: _ } = budgets;
    [
        ("provider", provider),
        ("guardrail", guardrail),
        ("execution", execution),
        ("outcome", outcome),
        ("ceiling", ceiling),
    ]
}

fn terminal(node: &Node, reader: &mut Reader<'_>) -> Vec<String> {
    let too_many = |count| format!("{count} in `attempts.terminal`; at most {TERMINAL_MAX}");
    let mut subtypes: Vec<String> = Vec::new();
    for item in limited_list(node, "`attempts.terminal`", TERMINAL_MAX, too_many, reader) {
        let Some(text) = reader.text(item, "a subtype") else { continue };
        if !text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_') {
            let hint = "write it as `missing_credentials`";
            reader.complain_hint(item.at, format!("`{text}` is no subtype"), hint);
        } else if !subtypes.iter().any(|known| known == text) {
            subtypes.push(text.to_owned());
        }
    }
    subtypes
}

/// How often something is tried again, where it differs from the default.
pub fn text(attempts: &Budgets) -> Option<String> {
    let (mut own, mut default) = (attempts.clone(), Budgets::default());
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
        looser("attempts.terminal", "", "attempts: { terminal: [missing_credentials] }"),
        looser(
            "attempts.terminal",
            "attempts: { terminal: [no_key, no_net] }",
            "attempts: { terminal: [no_key] }",
        ),
    ];
}
