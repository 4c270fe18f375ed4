//! The cost of requests: the reported cost, or else the price from the table of models. If neither
//! exists, the agent is told once that the cost is unknown.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{LimitPeriod, PROVIDER};
use crate::definition::Definition;
use crate::guards::{FoldInput, GuardAnswers, GuardInput, join_names};
use crate::state::{SessionState, UsageReport, UsageTotals, short_hash};
use crate::verdict::{Feedback, FeedbackObservation, Severity};

/// The category of a warning about models without a price.
const UNPRICED: &str = "unpriced";

/// The category of a warning about unreadable usage.
const UNKNOWN: &str = "unknown_usage";

/// The name shown for a report without a model.
const UNNAMED_MODEL: &str = "a model without a name";

/// Counts a usage report.
pub(super) fn apply(state: &mut SessionState, fold: FoldInput<'_>) {
    let record = fold.record;
    let Some(report) = UsageReport::of(record.event) else { return };
    // The main agent's model is known from its start event.
    let of_main = state.host.model.as_deref().filter(|_| record.event.actor.is_main());
    let model = report.model.or(of_main);
    let (used, unpriced) = add_cost(fold.definition, model, report.used, report.cost_micros);
    if let Some(model) = unpriced {
        state.usage.remember_unpriced(&model);
    }
    state.usage.count_report(&report, used, state.turn.number);
}

/// Returns a report with its cost, or the name of a model that has no price.
fn add_cost(
    definition: &Definition,
    model: Option<&str>,
    used: UsageTotals,
    given: Option<u64>,
) -> (UsageTotals, Option<String>) {
    let cost = given.or_else(|| definition.models.cost(model?, &used));
    match cost {
        Some(cost_micros) => (UsageTotals { cost_micros, ..used }, None),
        None if used.in_context() == 0 => (used, None),
        None => {
            let name = model.unwrap_or(UNNAMED_MODEL).to_string();
            (UsageTotals { unpriced: 1, ..used }, Some(name))
        }
    }
}

/// Returns whether a category hash is that of models without a price.
pub(super) fn is_unpriced_category(category: u64) -> bool {
    category == short_hash(UNPRICED)
}

/// Warns once that the limits on tokens and cost miss some usage.
pub(super) fn warn_unknown(input: GuardInput<'_>, answers: &mut GuardAnswers) {
    let is_reported =
        input.state.spent.told.iter().any(|(category, _)| *category == short_hash(UNKNOWN));
    if input.state.usage.session.unknown == 0 || is_reported {
        return;
    }
    answers.feedback.push(Feedback {
        provider: PROVIDER.to_string(),
        severity: Severity::Caution,
        summary: "The usage of some model replies could not be read, so the counts of tokens and \
                  cost are lower than the real use."
            .to_string(),
        observations: Vec::from([FeedbackObservation {
            category: UNKNOWN.to_string(),
            description: "unreadable usage".to_string(),
            evidence: None,
        }]),
        suggestions: Vec::from([
            "Tell the person: limits on tokens and cost may take effect too late or not at all."
                .to_string(),
        ]),
        timestamp: input.clock.now(),
        call_index: input.state.feedback_calls(),
        definition: input.definition.name.clone(),
    });
}

/// Warns once that the cost limit misses some cost.
pub(super) fn warn_unpriced(input: GuardInput<'_>, answers: &mut GuardAnswers) {
    let Some(limit) = input.definition.limits.cost_usd else { return };
    let usage = &input.state.usage;
    let totals = match limit.per {
        LimitPeriod::Session => &usage.session,
        LimitPeriod::Turn => &usage.turn,
    };
    let names = usage.unpriced(totals);
    let is_reported =
        input.state.spent.told.iter().any(|(category, _)| is_unpriced_category(*category));
    if names.is_empty() || is_reported {
        return;
    }
    let names = join_names(names.iter().map(String::as_str));
    answers.feedback.push(Feedback {
        provider: PROVIDER.to_string(),
        severity: Severity::Caution,
        summary: format!(
            "No price is known for {names}, so the cost limit counts less than the real cost."
        ),
        observations: Vec::from([FeedbackObservation {
            category: UNPRICED.to_string(),
            description: names,
            evidence: None,
        }]),
        suggestions: Vec::from([
            "Tell the person to add the price under `prices` in the definition.".to_string(),
        ]),
        timestamp: input.clock.now(),
        call_index: input.state.feedback_calls(),
        definition: input.definition.name.clone(),
    });
}
