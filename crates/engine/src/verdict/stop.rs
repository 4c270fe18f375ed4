//! How a session ends, and what a completion check is skipped for.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::event::Failure;
use crate::guards::limits::Dimension;
use crate::words::{open_words, words, words_with_limits};

words! {
    /// What ran out when a completion check was skipped.
    Bypass {
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
pub struct Stop {
    /// The code.
    pub code: StopCode,
    /// What exactly: a dimension, a gate, a kind of error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<StopDetail>,
    /// The signature of the call that was repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

impl Stop {
    /// A stop with nothing to say about it.
    pub fn of(code: StopCode) -> Self {
        Self { code, detail: None, signature: None }
    }

    /// The same, and what exactly.
    #[must_use]
    pub fn because(self, detail: impl Into<StopDetail>) -> Self {
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
        /// Something is broken.
        SystemError = "SYSTEM_ERROR",
        /// A gate could not be passed.
        Capped = "CAPPED",
        /// The agent said it was done and nothing proved it.
        NoEvidence = "NO_EVIDENCE",
        /// A person ended it.
        HumanRequested = "HUMAN_REQUESTED",
        /// It ended in the middle of the work.
        Abandoned = "ABANDONED",
    }
}

words_with_limits! {
    open_words:
    /// What exactly ended a session: the dimension of a limit, a gate, or what is broken.
    StopDetail {} {
        /// A limit was reached when the completion check was skipped.
        Budget = "budget",
        /// The context was full when the completion check was skipped.
        Context = "context",
        /// Iterations bring nothing.
        Progress = "progress",
        /// The completion check failed too often.
        Completion = "completion",
        /// The agent repeats itself.
        Loop = "loop",
        /// The agent keeps calling what does not exist, or writing what no schema allows.
        Schema = "schema",
        /// Compactions free next to nothing.
        Compaction = "compaction",
        /// An attempt could not be undone.
        Rollback = "rollback",
        /// The agent is not the one that was approved.
        Identity = "identity",
        /// No model answers.
        Model = "model",
        /// The agent's program can't be run.
        Worker = "worker",
        /// The workspace was deleted.
        Workspace = "workspace",
    }
}

impl From<Dimension> for StopDetail {
    fn from(dimension: Dimension) -> Self {
        Self::parse(dimension.word())
    }
}

impl From<Bypass> for StopDetail {
    fn from(bypass: Bypass) -> Self {
        Self::parse(bypass.word())
    }
}

impl From<Failure> for StopDetail {
    fn from(failure: Failure) -> Self {
        Self::parse(failure.word())
    }
}

impl StopDetail {
    /// What a completion check was skipped for after a stop with this detail.
    pub(crate) fn bypass(&self) -> Bypass {
        match self {
            Self::Deadline | Self::WallSeconds => Bypass::Deadline,
            _ => Bypass::Budget,
        }
    }
}

impl core::fmt::Display for Stop {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match &self.detail {
            Some(detail) => write!(f, "{}{{{detail}}}", self.code),
            None => self.code.fmt(f),
        }
    }
}
