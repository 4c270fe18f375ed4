//! Whether a generated tool works, judged by its last uses.
//!
//! Failures that the environment caused do not count. The state changes slowly: it needs a
//! minimum number of uses, and between the two failure rates a tool keeps its state.

use std::collections::VecDeque;

pub use jackline_engine::definition::HealthLimits;
use serde::{Deserialize, Serialize};

use crate::failure::{is_exhaustion, is_extrinsic};

/// The most uses that are stored, whatever the window.
pub const SAMPLES_MAX: usize = 200;

/// How reliable a tool is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolState {
    /// Too few uses to judge.
    #[default]
    New,
    /// The tool works.
    Durable,
    /// The tool fails too often to be offered.
    Degraded,
    /// The tool was degraded, and was generated again. It is offered and judged by its new uses.
    Probation,
}

impl ToolState {
    /// The word used in JSON and texts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Durable => "durable",
            Self::Degraded => "degraded",
            Self::Probation => "probation",
        }
    }
}

/// The result of one use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UseResult {
    /// The tool answered.
    Ok,
    /// The tool failed.
    Failed,
    /// The call used all its retries.
    Exhausted,
}

impl UseResult {
    /// Classifies a use by its error type. `None` where the environment caused the failure.
    pub fn of(error_type: Option<&str>) -> Option<Self> {
        match error_type {
            None => Some(Self::Ok),
            Some(error_type) if is_extrinsic(error_type) => None,
            Some(error_type) if is_exhaustion(error_type) => Some(Self::Exhausted),
            Some(_) => Some(Self::Failed),
        }
    }
}

/// The last uses of a tool, and the state they led to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolHealth {
    /// The oldest use comes first.
    samples: VecDeque<UseResult>,
    state: ToolState,
    /// Whether the last uses put the tool under pressure.
    #[serde(default)]
    under_pressure: bool,
}

impl ToolHealth {
    /// Records a use. A failure that the environment caused changes nothing.
    pub fn record(&mut self, error_type: Option<&str>, limits: &HealthLimits) {
        let Some(sample) = UseResult::of(error_type) else { return };
        self.samples.push_back(sample);
        while self.samples.len() > window(limits) {
            self.samples.pop_front();
        }
        self.under_pressure = self.exhausted() >= limits.pressure_exhausted.max(1) as usize;
        self.state = self.next_state(limits);
    }

    /// Puts a degraded tool on probation, because a model generated it again. Without new uses
    /// such a tool could never recover.
    pub fn start_probation(&mut self) {
        if self.state == ToolState::Degraded {
            self.samples.clear();
            self.state = ToolState::Probation;
        }
    }

    /// The current state.
    pub fn state(&self) -> ToolState {
        self.state
    }

    /// The number of uses that count.
    pub fn samples(&self) -> usize {
        self.samples.len()
    }

    /// The percentage of failed uses, rounded down. `None` without uses.
    pub fn failed_pct(&self) -> Option<u32> {
        let pct = (self.failed() * 100).checked_div(self.samples.len())?;
        u32::try_from(pct).ok()
    }

    /// Whether calls of this tool use all their retries again and again. The tool does not fit its
    /// use, so it becomes degraded at a lower failure rate, and a new one is generated sooner.
    pub fn is_under_pressure(&self) -> bool {
        self.under_pressure
    }

    fn exhausted(&self) -> usize {
        self.samples.iter().filter(|it| **it == UseResult::Exhausted).count()
    }

    fn failed(&self) -> usize {
        self.samples.iter().filter(|it| **it != UseResult::Ok).count()
    }

    fn next_state(&self, limits: &HealthLimits) -> ToolState {
        let (failed, all) = (self.failed() * 100, self.samples.len());
        let is_above = |pct: u32| failed > all * pct as usize;
        let degrade_above_pct = if self.under_pressure {
            limits.degrade_above_pct.min(limits.recover_below_pct)
        } else {
            limits.degrade_above_pct
        };
        let is_below = |pct: u32| failed < all * pct as usize;
        if all < (limits.min_samples as usize).min(window(limits)) {
            self.state
        } else if is_above(degrade_above_pct) {
            ToolState::Degraded
        } else if failed == 0 || is_below(limits.recover_below_pct) {
            ToolState::Durable
        } else {
            self.state
        }
    }
}

fn window(limits: &HealthLimits) -> usize {
    (limits.window as usize).clamp(1, SAMPLES_MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record_all(uses: &[Option<&str>], limits: &HealthLimits) -> ToolHealth {
        let mut health = ToolHealth::default();
        uses.iter().for_each(|it| health.record(*it, limits));
        health
    }

    #[test]
    fn a_tool_is_new_until_it_was_used_often_enough() {
        let limits = HealthLimits::default();
        assert_eq!(record_all(&[Some("execution"); 4], &limits).state(), ToolState::New);
        assert_eq!(record_all(&[Some("execution"); 5], &limits).state(), ToolState::Degraded);
        assert_eq!(record_all(&[None; 4], &limits).state(), ToolState::New);
        assert_eq!(record_all(&[None; 5], &limits).state(), ToolState::Durable);
    }

    #[test]
    fn extrinsic_failures_do_not_count() {
        let uses: Vec<_> = [None, Some("timeout"), Some("rate_limited")].repeat(5);
        let health = record_all(&uses, &HealthLimits::default());
        assert_eq!((health.state(), health.samples()), (ToolState::Durable, 5));
        assert_eq!(health.failed_pct(), Some(0));
    }

    #[test]
    fn a_tool_between_the_rates_stays_what_it_was() {
        use ToolState::{Degraded, Durable};

        let limits = HealthLimits { window: 10, min_samples: 5, ..HealthLimits::default() };
        let mut health = record_all(&[Some("execution"); 10], &limits);
        let mut states = Vec::new();
        for _ in 0..10 {
            health.record(None, &limits);
            states.push((health.failed_pct().unwrap(), health.state()));
        }
        let turned = states.iter().position(|(_, state)| *state == Durable).unwrap();
        assert_eq!(states[turned], (20, Durable), "{states:?}");
        assert!(states[..turned].iter().all(|(_, state)| *state == Degraded));
        // The tool degrades again only when more than 60 percent fail.
        for expected in [(10, Durable), (20, Durable)] {
            health.record(Some("execution"), &limits);
            assert_eq!((health.failed_pct().unwrap(), health.state()), expected);
        }
        for _ in 0..4 {
            health.record(Some("execution"), &limits);
        }
        assert_eq!((health.failed_pct(), health.state()), (Some(60), Durable));
        health.record(Some("execution"), &limits);
        assert_eq!((health.failed_pct(), health.state()), (Some(70), Degraded));
    }

    #[test]
    fn a_tool_on_probation_recovers_below_the_recovery_rate() {
        let uses = [vec![Some("execution")], vec![None; 4]].concat();
        for (recover_below_pct, then) in
            [(30, ToolState::Durable), (20, ToolState::Probation), (10, ToolState::Probation)]
        {
            let limits = HealthLimits { recover_below_pct, ..HealthLimits::default() };
            let mut health = record_all(&[Some("execution"); 5], &limits);
            assert_eq!(health.state(), ToolState::Degraded);
            health.start_probation();
            assert_eq!((health.state(), health.samples()), (ToolState::Probation, 0));
            uses.iter().for_each(|it| health.record(*it, &limits));
            assert_eq!(health.state(), then, "{recover_below_pct}");
            uses.iter().for_each(|_| health.record(Some("execution"), &limits));
            uses.iter().for_each(|_| health.record(Some("execution"), &limits));
            assert_eq!(health.state(), ToolState::Degraded);
        }
        let mut durable = record_all(&[None; 5], &HealthLimits::default());
        durable.start_probation();
        assert_eq!(durable.state(), ToolState::Durable, "only a degraded tool needs it");
    }

    #[test]
    fn repeated_exhaustion_is_pressure_until_it_leaves_the_window() {
        let limits = HealthLimits { window: 4, min_samples: 2, ..HealthLimits::default() };
        let spent = Some("guardrail_retry_exhausted");
        let mut health = record_all(&[spent, None], &limits);
        assert!(!health.is_under_pressure());
        health.record(Some("outcome_repair_retry_exhausted"), &limits);
        assert!(health.is_under_pressure());
        for _ in 0..2 {
            health.record(None, &limits);
        }
        assert!(!health.is_under_pressure());
    }

    #[test]
    fn a_tool_under_pressure_degrades_sooner() {
        let limits = HealthLimits { window: 10, min_samples: 5, ..HealthLimits::default() };
        let uses = |failure| [None, None, None, Some(failure), Some(failure)];
        let failed = record_all(&uses("execution"), &limits);
        assert_eq!((failed.is_under_pressure(), failed.state()), (false, ToolState::New));
        let exhausted = record_all(&uses("execution_retry_exhausted"), &limits);
        assert_eq!((exhausted.is_under_pressure(), exhausted.state()), (true, ToolState::Degraded));
        let later = HealthLimits { pressure_exhausted: 3, ..limits };
        let patient = record_all(&uses("execution_retry_exhausted"), &later);
        assert_eq!((patient.is_under_pressure(), patient.state()), (false, ToolState::New));
    }

    /// The reference model: it stores all uses and evaluates all of them each time.
    fn reference_state(uses: &[Option<&str>], limits: &HealthLimits) -> (ToolState, usize, bool) {
        let mut state = ToolState::New;
        let mut counted: Vec<&str> = Vec::new();
        for error_type in uses {
            let error_type = error_type.unwrap_or_default();
            if is_extrinsic(error_type) {
                continue;
            }
            counted.push(error_type);
            let last: Vec<_> = counted.iter().rev().take(limits.window as usize).collect();
            let failed = last.iter().filter(|it| !it.is_empty()).count();
            let rate = |pct: u32| u64::from(pct) * last.len() as u64;
            let spent = last.iter().filter(|it| it.ends_with("_exhausted")).count();
            let under_pressure = spent >= limits.pressure_exhausted as usize;
            let degrade_above_pct =
                if under_pressure { limits.recover_below_pct } else { limits.degrade_above_pct };
            if last.len() < limits.min_samples as usize {
            } else if failed as u64 * 100 > rate(degrade_above_pct) {
                state = ToolState::Degraded;
            } else if (failed as u64 * 100) < rate(limits.recover_below_pct) || failed == 0 {
                state = ToolState::Durable;
            }
        }
        let last: Vec<_> = counted.iter().rev().take(limits.window as usize).collect();
        let spent = last.iter().filter(|it| it.ends_with("_exhausted")).count();
        (state, last.len(), spent >= limits.pressure_exhausted as usize)
    }

    proptest! {
        #[test]
        fn the_state_agrees_with_the_reference_model(
            uses in prop::collection::vec(prop::sample::select(vec![
                None, None, None, Some("execution"), Some("schema_mismatch"), Some("timeout"),
                Some("worker_crash"), Some("guardrail_retry_exhausted"),
            ]), 0..80),
            window in 1..30_u32,
            min_samples in 1..10_u32,
            recover in 0..=100_u32,
            more in 0..=100_u32,
            pressure_exhausted in 1..4_u32,
        ) {
            let limits = HealthLimits {
                window,
                min_samples: min_samples.min(window),
                degrade_above_pct: (recover + more).min(100),
                recover_below_pct: recover,
                pressure_exhausted,
            };
            let health = record_all(&uses, &limits);
            let found = (health.state(), health.samples(), health.is_under_pressure());
            prop_assert_eq!(found, reference_state(&uses, &limits));
            let kept = serde_json::to_string(&health).unwrap();
            prop_assert_eq!(serde_json::from_str::<ToolHealth>(&kept).unwrap(), health);
        }
    }
}
