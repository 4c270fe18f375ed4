//! Retry budgets of a call, one for each reason to retry.

pub use jackline_engine::definition::AttemptBudgets;
use serde::Serialize;

/// The reason for a retry. Each reason has a budget of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    /// The generator returned no usable artifact.
    Provider,
    /// A guardrail raised violations.
    Guardrail,
    /// The artifact failed while it ran.
    Execution,
    /// The artifact ran and returned an error.
    Outcome,
}

impl Lane {
    /// All lanes.
    pub const ALL: [Self; 4] = [Self::Provider, Self::Guardrail, Self::Execution, Self::Outcome];
}

/// The budget of one lane and its use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LaneCounter {
    /// The number of retries allowed.
    pub budget: u32,
    /// The number of retries used.
    pub used: u32,
    /// The number of retries left.
    pub remaining: u32,
}

/// Why a retry is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoRetry {
    /// The budget of the lane is zero: the failure itself is the outcome.
    Off,
    /// The lane has no retry left, or the call has reached its ceiling.
    Exhausted,
}

/// The retry counters of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RetryLanes {
    /// Retries after unusable answers of the generator.
    pub provider: LaneCounter,
    /// Retries after violations.
    pub guardrail: LaneCounter,
    /// Retries after execution failures.
    pub execution: LaneCounter,
    /// Retries after error outcomes.
    pub outcome: LaneCounter,
    /// How often the generator was asked.
    pub asked: u32,
    /// How often the generator may be asked, over all lanes.
    pub ceiling: u32,
}

impl RetryLanes {
    pub(crate) fn new(budgets: &AttemptBudgets) -> Self {
        let counter = |budget| LaneCounter { budget, used: 0, remaining: budget };
        Self {
            provider: counter(budgets.provider),
            guardrail: counter(budgets.guardrail),
            execution: counter(budgets.execution),
            outcome: counter(budgets.outcome),
            asked: 0,
            ceiling: budgets.ceiling.max(1),
        }
    }

    /// The counter of a lane.
    pub fn of(&self, lane: Lane) -> LaneCounter {
        match lane {
            Lane::Provider => self.provider,
            Lane::Guardrail => self.guardrail,
            Lane::Execution => self.execution,
            Lane::Outcome => self.outcome,
        }
    }

    /// The number of retries that were used, over all lanes.
    pub fn retries(&self) -> u32 {
        Lane::ALL.iter().map(|lane| self.of(*lane).used).sum()
    }

    /// The retries of a lane that can follow the next attempt. The ceiling may leave fewer than the
    /// lane has.
    pub(crate) fn left_after_next(&self, lane: Lane) -> u32 {
        self.of(lane).remaining.min(self.ceiling.saturating_sub(self.asked + 1))
    }

    /// Whether a lane has no retry left. If it has some, only the ceiling ends the call.
    pub(crate) fn is_used_up(&self, lane: Lane) -> bool {
        self.of(lane).remaining == 0
    }

    pub(crate) fn count_request(&mut self) {
        self.asked += 1;
    }

    /// Uses one retry of a lane.
    pub(crate) fn spend(&mut self, lane: Lane) -> Result<(), NoRetry> {
        let full = self.asked >= self.ceiling;
        let counter = match lane {
            Lane::Provider => &mut self.provider,
            Lane::Guardrail => &mut self.guardrail,
            Lane::Execution => &mut self.execution,
            Lane::Outcome => &mut self.outcome,
        };
        if counter.budget == 0 {
            return Err(NoRetry::Off);
        }
        if counter.remaining == 0 || full {
            return Err(NoRetry::Exhausted);
        }
        counter.used += 1;
        counter.remaining -= 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_independent_and_the_ceiling_is_above_all() {
        let mut lanes = RetryLanes::new(&AttemptBudgets {
            guardrail: 2,
            outcome: 0,
            ceiling: 3,
            ..AttemptBudgets::default()
        });
        lanes.count_request();
        assert_eq!(lanes.spend(Lane::Outcome), Err(NoRetry::Off));
        assert_eq!(lanes.spend(Lane::Guardrail), Ok(()));
        lanes.count_request();
        assert_eq!(lanes.spend(Lane::Execution), Ok(()));
        assert_eq!(lanes.spend(Lane::Execution), Err(NoRetry::Exhausted));
        lanes.count_request();
        assert_eq!(lanes.spend(Lane::Guardrail), Err(NoRetry::Exhausted), "the ceiling");
        assert_eq!(lanes.guardrail, LaneCounter { budget: 2, used: 1, remaining: 1 });
    }
}
