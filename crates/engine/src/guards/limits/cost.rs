//! What requests cost: as reported, else by the table; else nobody knows, and
//! that is said.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{PROVIDER, Per};
use crate::definition::Definition;
use crate::guards::{Answers, Fold, Look, listed};
use crate::state::{Report, State, UsageTotals, short};
use crate::verdict::{Feedback, Observed, Severity};

/// Under which name the agent was told of models without a price.
const UNPRICED: &str = "unpriced";

/// Under which name the agent was told of usage that can't be read.
const UNKNOWN: &str = "unknown_usage";

/// What a report without a model is called.
const NAMELESS: &str = "a model without a name";

/// Counts a report.
pub(super) fn apply(state: &mut State, fold: Fold<'_>) {
    let record = fold.record;
    let Some(report) = Report::of(record.event) else { return };
    // The main agent's model is known from its start.
    let of_main = state.host.model.as_deref().filter(|_| record.event.actor.is_main());
    let model = report.model.or(of_main);
    let (used, unpriced) = priced(fold.definition, model, report.used, report.cost_micros);
    if let Some(model) = unpriced {
        state.usage.remember_unpriced(&model);
    }
    state.usage.report(&report, used, state.turn.number);
}

/// A report with its cost, or the name of a model that has no price.
fn priced(
    definition: &Definition,
    model: Option<&str>,
    used: UsageTotals,
    given: Option<u64>,
) -> (UsageTotals, Option<String>) {
    let known = given.or_else(|| definition.models.cost(model?, &used));
    match known {
        Some(cost_micros) => (UsageTotals { cost_micros, ..used }, None),
        None if used.in_context() == 0 => (used, None),
        None => {
            let name = model.unwrap_or(NAMELESS).to_string();
            (UsageTotals { unpriced: 1, ..used }, Some(name))
        }
    }
}

/// Whether this is what the agent was told of models without a price, in short.
pub(super) fn is_unpriced(told: u64) -> bool {
    told == short(UNPRICED)
}

/// Says once that the limits on tokens and cost do not see everything.
pub(super) fn warn_unknown(look: Look<'_>, answers: &mut Answers) {
    let told = look.state.spent.told.iter().any(|(told, _)| *told == short(UNKNOWN));
    if look.state.usage.session.unknown == 0 || told {
        return;
    }
    answers.feedback.push(Feedback {
        provider: PROVIDER.to_string(),
        severity: Severity::Caution,
        summary:
            "Nobody can read what some answers of the model used, so the counts of tokens and \
                  cost are less than was spent."
                .to_string(),
        observations: Vec::from([Observed {
            category: UNKNOWN.to_string(),
            description: "usage that nobody can read".to_string(),
            evidence: None,
        }]),
        suggestions: Vec::from([
            "Tell the person: limits on tokens and cost may come too late, or never.".to_string(),
        ]),
        timestamp: look.clock.now(),
        call_index: look.state.invocations.proposed,
        definition: look.definition.name.clone(),
    });
}

/// Says once that a limit on cost does not see everything.
pub(super) fn warn_unpriced(look: Look<'_>, answers: &mut Answers) {
    let Some(limit) = look.definition.limits.cost_usd else { return };
    let usage = &look.state.usage;
    let totals = match limit.per {
        Per::Session => &usage.session,
        Per::Turn => &usage.turn,
    };
    let names = usage.unpriced(totals);
    let told = look.state.spent.told.iter().any(|(told, _)| is_unpriced(*told));
    if names.is_empty() || told {
        return;
    }
    let names = listed(names.iter().map(String::as_str));
    answers.feedback.push(Feedback {
        provider: PROVIDER.to_string(),
        severity: Severity::Caution,
        summary: format!(
            "No price is known for {names}, so the limit on cost counts less than was spent."
        ),
        observations: Vec::from([Observed {
            category: UNPRICED.to_string(),
            description: names,
            evidence: None,
        }]),
        suggestions: Vec::from([
            "Tell the person: `prices` in the definition gives it one.".to_string()
        ]),
        timestamp: look.clock.now(),
        call_index: look.state.invocations.proposed,
        definition: look.definition.name.clone(),
    });
}
