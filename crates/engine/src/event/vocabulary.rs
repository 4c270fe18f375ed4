//! The fixed vocabulary of events: one enum for each set of JSON words.

use alloc::boxed::Box;
use alloc::string::String;

use serde::{Serialize, Serializer};

use crate::words::{open_words, words};

words! {
    /// Why a run could not continue.
    RunFailure {
        /// No model answers.
        Model = "model",
        /// The agent program can't be run.
        Worker = "worker",
        /// The workspace was deleted.
        Workspace = "workspace",
    }
    /// Who wrote a prompt.
    PromptSource {
        /// A person.
        Human = "human",
        /// The program that runs the agent.
        Harness = "harness",
    }
    /// How a call ended.
    CallStatus {
        /// It did what it should.
        Ok = "ok",
        /// It failed.
        Error = "error",
        /// It timed out.
        Timeout = "timeout",
        /// The tool process crashed.
        Crashed = "crashed",
        /// It did not run, or was interrupted.
        Cancelled = "cancelled",
    }
    /// Whether the changes of an attempt stay.
    AttemptResult {
        /// They stay.
        Commit = "commit",
        /// They are undone.
        Rollback = "rollback",
        /// They are undone, except for effects in the workspace that can't be undone.
        PartialRollback = "partial_rollback",
        /// Neither: undoing them failed, so nothing more may run.
        Stuck = "stuck",
    }
    /// What a person can do to a session.
    ControlAction {
        /// End it for good.
        Stop = "stop",
        /// Block every call.
        Pause = "pause",
        /// Continue the session.
        Resume = "resume",
        /// Extend an iteration cap.
        Acknowledge = "acknowledge",
        /// Mark a blocker as removed.
        ClearBlocker = "clear_blocker",
        /// Set the count of failed iterations to zero.
        ResetFailures = "reset_failures",
        /// Open the session again.
        Reset = "reset",
        /// Allow completion without tests.
        SkipDirtyBits = "skip_dirty_bits",
        /// End a constraint.
        ExpireConstraint = "expire_constraint",
        /// Allow exactly one call.
        Grant = "grant",
        /// Refuse exactly one call.
        Refuse = "refuse",
        /// End the question about a call that the client asked about, and any grant for the call.
        Withdraw = "withdraw",
        /// Switch the guard off for a while.
        Off = "off",
        /// Use the changed definition.
        Reload = "reload",
    }
}

words! {
    /// The stages of an attempt.
    Stage {
        /// It has begun.
        Started = "started",
        /// There is an artifact.
        Generated = "generated",
        /// The guards found no violation.
        Validated = "validated",
        /// It ran.
        Executed = "executed",
        /// It was undone because of a violation.
        RolledBack = "rolled_back",
        /// It was undone because the execution failed.
        ExecutionRetry = "execution_retry",
        /// It was undone because of its outcome.
        OutcomeRetry = "outcome_retry",
        /// Its changes stay.
        Committed = "committed",
    }
}

/// A stage as an adapter reports it. Adapters may use words of their own for stages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportedStage {
    /// One of the stages of Jackline's own attempts.
    Builtin(Stage),
    /// A stage of the adapter.
    // INVARIANT: it is not the word of a `Stage`.
    Other(Box<str>),
}

impl ReportedStage {
    /// The stage with this word.
    pub fn parse(word: &str) -> Self {
        let stage = Stage::ALL.iter().find(|(name, _)| *name == word);
        stage.map_or_else(|| Self::Other(word.into()), |(_, stage)| Self::Builtin(*stage))
    }

    /// The word on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Builtin(stage) => stage.as_str(),
            Self::Other(word) => word,
        }
    }
}

impl Default for ReportedStage {
    /// The first stage.
    fn default() -> Self {
        Self::Builtin(Stage::Started)
    }
}

impl Serialize for ReportedStage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

open_words! {
    /// Why another model continues the work. Adapters may use words of their own.
    ChangeReason {
        /// The provider is overloaded.
        Overload = "overload",
        /// Too many requests.
        RateLimit = "rate_limit",
        /// The usage limit of the plan is reached.
        PlanLimit = "plan_limit",
        /// The provider can't be reached.
        Network = "network",
        /// The model did not answer in time.
        Timeout = "timeout",
        /// The model used up its own budget.
        Cost = "cost",
        /// The data is sensitive and the model may not see it.
        Sensitive = "sensitive",
        /// The agent stopped repeatedly before the task was done.
        StopEvents = "stop_events",
        /// The verification failed although the agent reported the task as done.
        Verification = "verification",
        /// The conversation does not fit into the context window.
        Context = "context",
        /// The run returns to the first model.
        Return = "return",
        /// The session is stuck.
        Blocked = "blocked",
    }
}

impl Default for ChangeReason {
    /// The empty word.
    fn default() -> Self {
        Self::Other(String::new().into())
    }
}

impl ControlAction {
    /// Whether this action can only restrict the session. Anyone may send it, including the agent.
    pub fn only_restricts(self) -> bool {
        matches!(self, Self::Stop | Self::Pause | Self::Refuse | Self::Withdraw)
    }
}

// These defaults claim as little as possible for an event that leaves the word out.

impl Default for PromptSource {
    /// Not a person.
    fn default() -> Self {
        Self::Harness
    }
}

impl Default for CallStatus {
    /// An unsuccessful call.
    fn default() -> Self {
        Self::Error
    }
}

impl Default for AttemptResult {
    /// The changes are undone.
    fn default() -> Self {
        Self::Rollback
    }
}

impl Default for ControlAction {
    /// An action that only restricts the session.
    fn default() -> Self {
        Self::Pause
    }
}
