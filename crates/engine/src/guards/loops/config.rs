//! How the loop guard is set.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::definition::Mode;
use crate::tool::Kind;

/// How repetition is found and answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loops {
    /// Whether its answers hold.
    pub mode: Mode,
    /// How they rise.
    pub profile: Profile,
    /// How many calls are remembered.
    pub history: u16,
    /// The levels of the strict profile.
    pub strict: Strict,
    /// The levels of the graded profile.
    pub graded: Graded,
    /// When a cycle of several calls counts.
    pub cycle: Cycle,
    /// When the same error in a row counts, whatever the arguments.
    pub errors: Errors,
    /// JSON pointers into arguments that change from call to call and say nothing.
    pub volatile: Vec<String>,
    /// Kinds of tools that are passed over.
    pub transparent: Vec<Kind>,
}

/// How long a tool may be asked whether something has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Poll {
    /// Whether another result starts the count anew.
    pub until_changed: bool,
    /// So many calls with the same result are waiting, and no loop.
    pub max_calls: u32,
    /// For so long.
    pub within_seconds: u32,
}

impl Poll {
    /// How long may be waited where nobody has said more.
    pub(super) const WAIT: Self =
        Self { until_changed: true, max_calls: 60, within_seconds: 60 * 60 };

    /// For how long, in the units of the engine's clock.
    pub(super) fn within_ms(&self) -> u64 {
        u64::from(self.within_seconds).saturating_mul(1000)
    }

    /// How long tools may wait that clients commonly offer for it.
    pub(super) fn well_known(tool: &str) -> Option<Self> {
        matches!(tool, "BashOutput" | "TaskOutput" | "AgentOutputTool").then_some(Self::WAIT)
    }
}

/// How the answers to a loop rise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// A typed override, and the repeat after it stops.
    Strict,
    /// Told, paused, stopped.
    Graded,
}

/// The levels of the strict profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Strict {
    /// Among how many of the latest calls.
    pub window: u16,
    /// So many that are the same put an override in force.
    pub threshold: u16,
    /// The repeat after the override that stops; 1 is the first.
    pub override_retries: u16,
}

/// The levels of the graded profile: so many of the same in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Graded {
    /// The agent is told.
    pub soft: u16,
    /// The session pauses.
    pub hard: u16,
    /// The session stops.
    pub infinite: u16,
}

/// When a cycle counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cycle {
    /// Of how many calls at most.
    pub period_max: u16,
    /// How often it was gone through.
    pub repeats: u16,
}

/// When the same error counts, whatever the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors {
    /// The agent is told.
    pub soft: u16,
    /// The session pauses.
    pub hard: u16,
}

impl Default for Loops {
    fn default() -> Self {
        Self {
            mode: Mode::Observe,
            profile: Profile::Graded,
            history: 64,
            strict: Strict { window: 3, threshold: 3, override_retries: 1 },
            graded: Graded { soft: 3, hard: 5, infinite: 10 },
            cycle: Cycle { period_max: 8, repeats: 3 },
            errors: Errors { soft: 5, hard: 8 },
            volatile: Vec::new(),
            transparent: Vec::from([Kind::Think]),
        }
    }
}
