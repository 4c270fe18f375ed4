//! Limits for a supervised run: when `jackline run` counts an engine as stuck or as gone.

use serde::{Deserialize, Serialize};

/// How often a supervised run tries again before it changes the engine, pauses or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunLimits {
    /// This many refused stops in a row without work in between show that the agent is stuck.
    pub stops_without_work: u32,
    /// How many checks may fail before an advisor or another model helps.
    pub failed_checks: u32,
    /// How many iterations in a row may end with all programs undone. This limit is in force
    /// without `progress`.
    pub undone_iterations: u32,
    /// This many answers in a row that were cut off at the token limit count as a full context.
    pub cut_off_answers: u32,
    /// How often a model that does not answer is asked in a row.
    pub model_tries: u32,
    /// How often an agent program that fails for an unclear reason is started in a row.
    pub program_starts: u32,
    /// How often in a row the run waits for a model whose limits are used up.
    pub model_waits: u32,
    /// How often an advisor that does not answer is asked in a row.
    pub advisor_tries: u32,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            stops_without_work: 3,
            failed_checks: 3,
            undone_iterations: 3,
            cut_off_answers: 3,
            model_tries: 8,
            program_starts: 3,
            model_waits: 20,
            advisor_tries: 2,
        }
    }
}
