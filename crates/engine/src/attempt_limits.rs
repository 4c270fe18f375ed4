//! Limits for attempts: how often a call is retried, and when a generated tool counts as good.
//! The code that runs attempts applies these limits. The engine itself never reads them.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// How many retries a call has. The first try is not counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptBudgets {
    /// Retries after the generator gave an unusable answer.
    pub provider: u32,
    /// Retries after a guard reported a violation.
    pub guardrail: u32,
    /// Retries after the program failed while it ran.
    pub execution: u32,
    /// Retries after an error outcome that may be tried again.
    pub outcome: u32,
    /// How often the generator is asked in total, whatever the other budgets still allow.
    pub ceiling: u32,
    /// This many calls of one name in a row that use all their retries put the name under pressure.
    #[serde(default = "default_pressure_after")]
    pub pressure_after: u32,
    /// How many retries each lane has at most while the name is under pressure.
    #[serde(default)]
    pub pressure_retries: u32,
    /// Jackline error subtypes that end a call at once.
    pub terminal: Vec<String>,
}

fn default_pressure_after() -> u32 {
    2
}

impl Default for AttemptBudgets {
    fn default() -> Self {
        let terminal = ["missing_credentials", "dependency_unavailable", "unsupported_capability"];
        Self {
            provider: 1,
            guardrail: 1,
            execution: 1,
            outcome: 1,
            ceiling: 6,
            pressure_after: default_pressure_after(),
            pressure_retries: 0,
            terminal: terminal.iter().map(ToString::to_string).collect(),
        }
    }
}

/// When a generated tool counts as durable, and when as degraded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthLimits {
    /// How many of its last uses count.
    pub window: u32,
    /// With fewer uses than this, the tool is not rated.
    pub min_samples: u32,
    /// The tool becomes degraded when more than this percentage of its uses fail.
    pub degrade_above_pct: u32,
    /// The tool becomes durable (again) when fewer than this percentage of its uses fail.
    pub recover_below_pct: u32,
    /// This many uses that used all their retries put the tool under pressure.
    #[serde(default = "default_pressure_exhausted")]
    pub pressure_exhausted: u32,
}

fn default_pressure_exhausted() -> u32 {
    2
}

impl Default for HealthLimits {
    fn default() -> Self {
        Self {
            window: 20,
            min_samples: 5,
            degrade_above_pct: 60,
            recover_below_pct: 30,
            pressure_exhausted: default_pressure_exhausted(),
        }
    }
}
