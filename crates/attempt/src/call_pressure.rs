//! Adaptive pressure: a caller whose calls use all their retries again and again gets fewer retries.
//!
//! Repeated exhaustion shows that the task does not fit the model. More retries of the same kind
//! cost time and tokens, so the calls fail earlier until one of them succeeds.

use std::collections::BTreeMap;

use crate::boundary::InternalOutcome;
use crate::failure::is_exhaustion;
use crate::lanes::AttemptBudgets;

/// Who makes calls: the name of the task or the delegate, and the model that writes for it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallAuthor {
    /// The name of the task or of the delegate.
    pub name: String,
    /// The name of the model.
    pub model: String,
}

/// How many calls in a row used all their retries, by author.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallPressure {
    exhausted: BTreeMap<CallAuthor, u32>,
}

impl CallPressure {
    /// Returns whether an author is under pressure.
    pub fn is_on(&self, author: &CallAuthor, budgets: &AttemptBudgets) -> bool {
        self.exhausted.get(author).is_some_and(|count| *count >= budgets.pressure_after.max(1))
    }

    /// Returns the budgets of the next call of an author.
    pub fn budgets(&self, author: &CallAuthor, budgets: &AttemptBudgets) -> AttemptBudgets {
        let mut tight = budgets.clone();
        if self.is_on(author, budgets) {
            let AttemptBudgets { provider, guardrail, execution, outcome, .. } = &mut tight;
            for lane in [provider, guardrail, execution, outcome] {
                *lane = (*lane).min(budgets.pressure_retries);
            }
        }
        tight
    }

    /// Records the end of a call. A call that succeeds ends the pressure. A call that failed for
    /// another reason changes nothing.
    pub fn record(&mut self, author: CallAuthor, outcome: &InternalOutcome) {
        match outcome.error() {
            None => drop(self.exhausted.remove(&author)),
            Some(error) if is_exhaustion(&error.error_type) => {
                let count = self.exhausted.entry(author).or_default();
                *count = count.saturating_add(1);
            }
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::outcome::OutcomeError;

    fn author(model: &str) -> CallAuthor {
        CallAuthor { name: "films".to_owned(), model: model.to_owned() }
    }

    fn failed(error_type: &str) -> InternalOutcome {
        InternalOutcome::Error(OutcomeError::new(error_type, String::new(), false))
    }

    #[test]
    fn repeated_exhaustion_tightens_every_lane_until_a_call_succeeds() {
        let budgets = AttemptBudgets {
            guardrail: 3,
            outcome: 0,
            pressure_retries: 1,
            ..AttemptBudgets::default()
        };
        let mut pressure = CallPressure::default();
        pressure.record(author("m"), &failed("guardrail_retry_exhausted"));
        assert_eq!(pressure.budgets(&author("m"), &budgets), budgets);
        pressure.record(author("m"), &failed("timeout"));
        pressure.record(author("m"), &failed("outcome_repair_retry_exhausted"));
        let tight = pressure.budgets(&author("m"), &budgets);
        assert_eq!((tight.provider, tight.guardrail, tight.outcome), (1, 1, 0));
        assert_eq!(tight.ceiling, budgets.ceiling);
        // Another model starts without pressure.
        assert_eq!(pressure.budgets(&author("n"), &budgets), budgets);
        pressure
            .record(author("m"), &InternalOutcome::Ok { value: Value::Null, sources: Vec::new() });
        assert_eq!(pressure.budgets(&author("m"), &budgets), budgets);
    }
}
