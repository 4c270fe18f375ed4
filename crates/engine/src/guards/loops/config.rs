//! The settings of the loop guard.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::definition::Mode;
use crate::tool::ToolKind;

/// How repetition is detected and answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopSettings {
    /// Whether the reactions are enforced.
    pub mode: Mode,
    /// How the reactions grow.
    pub profile: LoopProfile,
    /// How many calls are stored.
    pub history: u16,
    /// The levels of the strict profile.
    pub strict: StrictLevels,
    /// The levels of the graded profile.
    pub graded: GradedLevels,
    /// When a cycle of several calls counts as a loop.
    pub cycle: CycleLevels,
    /// When repeated errors count as a loop, whatever the arguments.
    pub errors: ErrorLevels,
    /// JSON pointers to arguments that change in every call and do not matter.
    pub volatile: Vec<String>,
    /// Kinds of tools that are ignored.
    pub transparent: Vec<ToolKind>,
}

/// How long a tool may be polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PollAllowance {
    /// Whether a changed result restarts the count.
    pub until_changed: bool,
    /// This many calls with the same result are allowed as polling.
    pub max_calls: u32,
    /// The polling is allowed for this long.
    pub within_seconds: u32,
}

impl PollAllowance {
    /// The default polling allowance.
    pub(super) const WAIT: Self =
        Self { until_changed: true, max_calls: 60, within_seconds: 60 * 60 };

    /// Returns the allowed time in the unit of the engine's clock.
    pub(super) fn within_ms(&self) -> u64 {
        u64::from(self.within_seconds).saturating_mul(1000)
    }

    /// Returns the polling allowance of tools that common clients offer for waiting.
    pub(super) fn well_known(tool: &str) -> Option<Self> {
        matches!(tool, "BashOutput" | "TaskOutput" | "AgentOutputTool").then_some(Self::WAIT)
    }
}

/// How the reactions to a loop grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopProfile {
    /// A typed override; the next breach of it stops the session.
    Strict,
    /// A warning, then a pause, then a stop.
    Graded,
}

/// The levels of the strict profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrictLevels {
    /// How many of the latest calls are compared.
    pub window: u16,
    /// This many equal calls put an override in force.
    pub threshold: u16,
    /// The number of the breach that stops the session; 1 is the first.
    pub override_retries: u16,
}

/// The levels of the graded profile: how many equal calls in a row reach them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GradedLevels {
    /// The agent is warned.
    pub soft: u16,
    /// The session pauses.
    pub hard: u16,
    /// The session stops.
    pub infinite: u16,
}

/// When a cycle of calls counts as a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CycleLevels {
    /// The maximum length of the cycle.
    pub period_max: u16,
    /// How often the cycle must occur.
    pub repeats: u16,
}

/// When repeated errors count as a loop, whatever the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorLevels {
    /// The agent is warned.
    pub soft: u16,
    /// The session pauses.
    pub hard: u16,
}

impl Default for LoopSettings {
    fn default() -> Self {
        Self {
            mode: Mode::Observe,
            profile: LoopProfile::Graded,
            history: 64,
            strict: StrictLevels { window: 3, threshold: 3, override_retries: 1 },
            graded: GradedLevels { soft: 3, hard: 5, infinite: 10 },
            cycle: CycleLevels { period_max: 8, repeats: 3 },
            errors: ErrorLevels { soft: 5, hard: 8 },
            volatile: Vec::new(),
            transparent: Vec::from([ToolKind::Think]),
        }
    }
}
