//! How a session ends, and why a completion check is skipped.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::event::RunFailure;
use crate::guards::limits::LimitDimension;
use crate::words::{open_words, words, words_with_limits};

words! {
    /// Which allowance was used up when a completion check was skipped.
    BypassReason {
        /// Time.
        Deadline = "deadline",
        /// Steps or tokens.
        Budget = "budget",
        /// Room in the context window.
        Context = "context",
    }
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionStop {
    /// The code.
    pub code: StopCode,
    /// The details: a dimension of a limit, a gate, or a kind of error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<StopDetail>,
    /// The signature of the call that was repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

impl SessionStop {
    /// A stop without details.
    pub fn with_code(code: StopCode) -> Self {
        Self { code, detail: None, signature: None }
    }

    /// The same stop with details.
    #[must_use]
    pub fn with_detail(self, detail: impl Into<StopDetail>) -> Self {
        Self { detail: Some(detail.into()), ..self }
    }
}

words! {
    /// Every way a session can end.
    StopCode {
        /// The completion check passed.
        ObjectiveAchieved = "OBJECTIVE_ACHIEVED",
        /// A hard limit was reached.
        BudgetExceeded = "BUDGET_EXCEEDED",
        /// Something in Jackline or its environment is broken.
        SystemError = "SYSTEM_ERROR",
        /// The session did not pass a gate.
        Capped = "CAPPED",
        /// The agent reported that it is done, and no check confirmed it.
        NoEvidence = "NO_EVIDENCE",
        /// A person ended it.
        HumanRequested = "HUMAN_REQUESTED",
        /// The session ended before the task was done.
        Interrupted = "INTERRUPTED",
    }
}

words_with_limits! {
    open_words:
    /// The details of a stop: the dimension of a limit, a gate, or what is broken.
    StopDetail {} {
        /// A limit was reached when the completion check was skipped.
        Budget = "budget",
        /// The context was full when the completion check was skipped.
        Context = "context",
        /// The iterations make no progress.
        Progress = "progress",
        /// The completion check failed too often.
        Completion = "completion",
        /// The agent repeats itself.
        Loop = "loop",
        /// The agent repeatedly calls tools that do not exist, or writes output that no schema
        /// allows.
        Schema = "schema",
        /// Compactions free almost no tokens.
        Compaction = "compaction",
        /// An attempt could not be undone.
        Rollback = "rollback",
        /// The agent is not the one that was approved.
        Identity = "identity",
        /// No model can be reached.
        Model = "model",
        /// The agent program can't be run.
        Worker = "worker",
        /// The workspace was deleted.
        Workspace = "workspace",
    }
}

impl From<LimitDimension> for StopDetail {
    fn from(dimension: LimitDimension) -> Self {
        Self::parse(dimension.as_str())
    }
}

impl From<BypassReason> for StopDetail {
    fn from(bypass: BypassReason) -> Self {
        Self::parse(bypass.as_str())
    }
}

impl From<RunFailure> for StopDetail {
    fn from(failure: RunFailure) -> Self {
        Self::parse(failure.as_str())
    }
}

impl StopDetail {
    /// The reason for which a completion check is skipped after this stop.
    pub(crate) fn bypass(&self) -> BypassReason {
        match self {
            Self::Deadline | Self::WallSeconds => BypassReason::Deadline,
            _ => BypassReason::Budget,
        }
    }
}

impl core::fmt::Display for SessionStop {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match &self.detail {
            Some(detail) => write!(f, "{}{{{detail}}}", self.code),
            None => self.code.fmt(f),
        }
    }
}
