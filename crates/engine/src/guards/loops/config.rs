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
    /// When a repeated chain of calls counts as a loop.
    #[serde(default)]
    pub chain: ChainLevels,
    /// When repeated errors count as a loop, whatever the arguments.
    pub errors: ErrorLevels,
    /// When calls that are only similar cause a warning.
    #[serde(default)]
    pub similar: SimilarCallLevels,
    /// How long an agent may wait with calls that do nothing else.
    #[serde(default = "PollAllowance::waiting")]
    pub wait: PollAllowance,
    /// What the strict profile leaves to a tool that fails again and again.
    #[serde(default)]
    pub tool_budget: LoopToolBudget,
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
    /// Returns the default allowance for waiting.
    fn waiting() -> Self {
        Self { until_changed: true, max_calls: 60, within_seconds: 60 * 60 }
    }

    /// Returns the allowed time in the unit of the engine's clock.
    pub(super) fn within_ms(&self) -> u64 {
        u64::from(self.within_seconds).saturating_mul(1000)
    }

    /// Returns whether common clients offer this tool for waiting.
    pub(super) fn is_well_known(tool: &str) -> bool {
        matches!(tool, "BashOutput" | "TaskOutput" | "AgentOutputTool")
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

/// The longest chain that fits three times into the stored calls.
pub const LOOP_PERIOD_MAX: u16 = 21;

/// When a repeated chain of calls counts as a loop: a sequence that is longer than a cycle, or that
/// is repeated for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainLevels {
    /// A shorter chain may be repeated once without a warning.
    pub calls_min: u16,
    /// The longest chain that is compared.
    pub calls_max: u16,
}

impl Default for ChainLevels {
    fn default() -> Self {
        Self { calls_min: 5, calls_max: LOOP_PERIOD_MAX }
    }
}

/// When calls that are similar, but not identical, cause a warning. They never cause more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimilarCallLevels {
    /// The same call this many times in a row, each time with a different result: perhaps only a
    /// timestamp in the result changes. Waiting and paging look the same.
    pub changing_results: u16,
    /// This many successful calls in a row about the same file or program with the same result.
    /// They are mostly normal work, for example edits of one file, so this number is high.
    pub same_subject: u16,
    /// This many calls in a row about the same file or program that fail with the same error.
    pub same_subject_failing: u16,
    /// The same call with the same result this many times among the latest calls, whatever happens
    /// in between.
    pub same_result: u16,
    /// How many of the latest calls `same_result` looks at.
    pub among: u16,
}

impl Default for SimilarCallLevels {
    fn default() -> Self {
        Self {
            changing_results: 8,
            same_subject: 12,
            same_subject_failing: 4,
            same_result: 5,
            among: 10,
        }
    }
}

/// What the strict profile leaves to a tool that fails again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopToolBudget {
    /// How many more calls the tool gets.
    pub calls: u32,
    /// How long this is in force. A broken service may work again later.
    pub seconds: u32,
}

impl Default for LoopToolBudget {
    fn default() -> Self {
        Self { calls: 1, seconds: 10 * 60 }
    }
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
            chain: ChainLevels::default(),
            errors: ErrorLevels { soft: 5, hard: 8 },
            similar: SimilarCallLevels::default(),
            wait: PollAllowance::waiting(),
            tool_budget: LoopToolBudget::default(),
            volatile: Vec::new(),
            transparent: Vec::from([ToolKind::Think]),
        }
    }
}
