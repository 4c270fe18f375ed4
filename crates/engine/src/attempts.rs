//! How often what a model wrote is tried again, and when a tool it forged is good.
//!
//! Whoever runs attempts keeps to these; the engine itself does not look at them.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// How many retries a call has; the first try is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budgets {
    /// After an answer of the generator that can't be used.
    pub provider: u32,
    /// After an objection.
    pub guardrail: u32,
    /// After a fault of the run.
    pub execution: u32,
    /// After an error outcome that may be tried again.
    pub outcome: u32,
    /// How often the generator is asked in all, whatever the lanes have left.
    pub ceiling: u32,
    /// Subtypes of our own that end a call at once.
    pub terminal: Vec<String>,
}

impl Default for Budgets {
    fn default() -> Self {
        let terminal = ["missing_credentials", "dependency_unavailable", "unsupported_capability"];
        Self {
            provider: 1,
            guardrail: 1,
            execution: 1,
            outcome: 1,
            ceiling: 6,
            terminal: terminal.iter().map(ToString::to_string).collect(),
        }
    }
}

/// When a forged tool counts as good, and when as bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthLimits {
    /// How many of its last uses count.
    pub window: u32,
    /// With fewer uses nothing is said of it.
    pub min_samples: u32,
    /// It is degraded where more of its uses fail.
    pub degrade_above_pct: u32,
    /// It is durable, also again, where fewer of its uses fail.
    pub recover_below_pct: u32,
}

impl Default for HealthLimits {
    fn default() -> Self {
        Self { window: 20, min_samples: 5, degrade_above_pct: 60, recover_below_pct: 30 }
    }
}
