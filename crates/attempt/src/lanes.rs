//! How often a call may be tried again, and for what.

pub use jackline_engine::definition::Budgets;
use serde::Serialize;

/// Why a call is tried again. Each reason has a budget of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    /// The generator gave nothing usable.
    Provider,
    /// A guardrail objects.
    Guardrail,
    /// The artifact failed while it ran.
    Execution,
    /// The artifact ran, and says that it did not succeed.
    Outcome,
}

impl Lane {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Provider, Self::Guardrail, Self::Execution, Self::Outcome];
}

/// What one lane has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Counter {
    /// Retries it may use.
    pub budget: u32,
    /// Retries it has used.
    pub used: u32,
    /// Retries it has left.
    pub remaining: u32,
}

/// Why there is no retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spent {
    /// The lane never had any: what happened is the answer.
    Off,
    /// They are used up, in this lane or in all.
    Exhausted,
}

/// What the lanes of a call have used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Lanes {
    /// After an answer of the generator that can't be used.
    pub provider: Counter,
    /// After an objection.
    pub guardrail: Counter,
    /// After a fault of the run.
    pub execution: Counter,
    /// After an error outcome.
    pub outcome: Counter,
    /// How often the generator was asked.
    pub asked: u32,
    /// How often it may be.
    pub ceiling: u32,
}

impl Lanes {
    pub(crate) fn new(budgets: &Budgets) -> Self {
        let counter = |budget| Counter { budget, used: 0, remaining: budget };
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
    pub fn of(&self, lane: Lane) -> Counter {
        match lane {
            Lane::Provider => self.provider,
            Lane::Guardrail => self.guardrail,
            Lane::Execution => self.execution,
            Lane::Outcome => self.outcome,
        }
    }

    pub(crate) fn ask(&mut self) {
        self.asked += 1;
    }

    /// Takes a retry, if there is one.
    pub(crate) fn spend(&mut self, lane: Lane) -> Result<(), Spent> {
        let full = self.asked >= self.ceiling;
        let counter = match lane {
            Lane::Provider => &mut self.provider,
            Lane::Guardrail => &mut self.guardrail,
            Lane::Execution => &mut self.execution,
            Lane::Outcome => &mut self.outcome,
        };
        if counter.budget == 0 {
            return Err(Spent::Off);
        }
        if counter.remaining == 0 || full {
            return Err(Spent::Exhausted);
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
        let mut lanes =
            Lanes::new(&Budgets { guardrail: 2, outcome: 0, ceiling: 3, ..Budgets::default() });
        lanes.ask();
        assert_eq!(lanes.spend(Lane::Outcome), Err(Spent::Off));
        assert_eq!(lanes.spend(Lane::Guardrail), Ok(()));
        lanes.ask();
        assert_eq!(lanes.spend(Lane::Execution), Ok(()));
        assert_eq!(lanes.spend(Lane::Execution), Err(Spent::Exhausted));
        lanes.ask();
        assert_eq!(lanes.spend(Lane::Guardrail), Err(Spent::Exhausted), "the ceiling");
        assert_eq!(lanes.guardrail, Counter { budget: 2, used: 1, remaining: 1 });
    }
}
