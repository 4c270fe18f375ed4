//! What two layers say of attempts: the smaller number of each.

use jackline_engine::definition::{Budgets, HealthLimits};

use super::Subject;
use super::join::{How, Joining};
use super::parts::Said;
use crate::words;

impl Joining {
    /// The budgets of both layers. What a layer does not say is the default, and
    /// loosens nothing; what ends a call at once in one of them does so in both.
    pub(super) fn join_attempts(
        &mut self,
        high: &Said<Budgets>,
        low: &Said<Budgets>,
        how: How,
    ) -> Said<Budgets> {
        let (above, below, usual) = (&high.what, &low.what, Budgets::default());
        let number = |above: u32, below: u32, usual: u32| match how {
            _ if below == usual => above,
            How::Override => below,
            How::Tighten => above.min(below),
        };
        let terminal = match how {
            _ if below.terminal == usual.terminal => above.terminal.clone(),
            How::Override => below.terminal.clone(),
            How::Tighten => {
                let added = below.terminal.iter().filter(|it| !above.terminal.contains(it));
                above.terminal.iter().chain(added).cloned().collect()
            }
        };
        let kept = Budgets {
            provider: number(above.provider, below.provider, usual.provider),
            guardrail: number(above.guardrail, below.guardrail, usual.guardrail),
            execution: number(above.execution, below.execution, usual.execution),
            outcome: number(above.outcome, below.outcome, usual.outcome),
            ceiling: number(above.ceiling, below.ceiling, usual.ceiling),
            terminal,
        };
        let text = |it: &Budgets| words::attempts(it).unwrap_or_else(|| "attempts".to_owned());
        if how == How::Override && kept != *above && *above != usual {
            self.replaced(Subject::Setting, format!("`{}`", text(above)), high.by, low.by);
        }
        if how == How::Tighten && kept != *below && *below != usual {
            let text = format!("`{}`", text(below));
            self.ignore(Subject::Setting, text, low.by, high.by, "allows less");
        }
        let by = if kept == *above { high.by } else { low.by };
        Said { what: kept, by }
    }

    /// When a forged tool is good. None of its numbers is stricter than another, so the
    /// higher layer's word holds.
    pub(super) fn join_health(
        &mut self,
        high: Option<Said<HealthLimits>>,
        low: Option<Said<HealthLimits>>,
        how: How,
    ) -> Option<Said<HealthLimits>> {
        let (high, low) = match (high, low) {
            (Some(high), Some(low)) => (high, low),
            (high, low) => return high.or(low),
        };
        let why = "has one of its own";
        Some(self.join_setting(high, low, how, |_, _| true, words::health, why))
    }
}
