//! The fixed words of events.

use alloc::boxed::Box;
use alloc::string::String;

use serde::{Serialize, Serializer};

use crate::words::{open_words, words};

words! {
    /// What kept a run from going on.
    Failure {
        /// No model answers.
        Model = "model",
        /// The agent's program can't be run.
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
    Status {
        /// It did what it should.
        Ok = "ok",
        /// It failed.
        Error = "error",
        /// It ran out of time.
        Timeout = "timeout",
        /// The tool itself died.
        Crashed = "crashed",
        /// It did not run, or was broken off.
        Cancelled = "cancelled",
    }
    /// Whether an attempt's work stays.
    AttemptResult {
        /// It stays.
        Commit = "commit",
        /// It is undone.
        Rollback = "rollback",
        /// It is neither: undoing it failed, so nothing may go on.
        Stuck = "stuck",
    }
    /// What a person can do to a session.
    Action {
        /// End it for good.
        Stop = "stop",
        /// Hold every call.
        Pause = "pause",
        /// Go on.
        Resume = "resume",
        /// Extend an iteration cap.
        Acknowledge = "acknowledge",
        /// Remove a blocker.
        ClearBlocker = "clear_blocker",
        /// Forget failed iterations.
        ResetFailures = "reset_failures",
        /// Open the session again.
        Reset = "reset",
        /// Complete without tests.
        SkipDirtyBits = "skip_dirty_bits",
        /// End a constraint.
        ExpireConstraint = "expire_constraint",
        /// Allow exactly one call.
        Grant = "grant",
        /// Refuse exactly one call.
        Refuse = "refuse",
        /// Switch the guard off for a while.
        Off = "off",
        /// Use the changed definition.
        Reload = "reload",
    }
}

words! {
    /// How far an attempt has come.
    Stage {
        /// It has begun.
        Started = "started",
        /// There is an artifact.
        Generated = "generated",
        /// Nothing is wrong with it.
        Validated = "validated",
        /// It ran.
        Executed = "executed",
        /// It is undone because of an objection.
        RolledBack = "rolled_back",
        /// It is undone because of a fault.
        ExecutionRetry = "execution_retry",
        /// It is undone because of its outcome.
        OutcomeRetry = "outcome_retry",
        /// What it did stays.
        Committed = "committed",
    }
}

/// A stage as an adapter reports it. Adapters may use words of their own for stages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportedStage {
    /// One of the stages of our own attempts.
    Known(Stage),
    /// A stage of the adapter.
    // INVARIANT: it is not the word of a `Stage`.
    Other(Box<str>),
}

impl ReportedStage {
    /// The stage with this word.
    pub fn parse(word: &str) -> Self {
        let known = Stage::ALL.iter().find(|(name, _)| *name == word);
        known.map_or_else(|| Self::Other(word.into()), |(_, stage)| Self::Known(*stage))
    }

    /// The word on the wire.
    pub fn word(&self) -> &str {
        match self {
            Self::Known(stage) => stage.word(),
            Self::Other(word) => word,
        }
    }
}

impl Default for ReportedStage {
    /// The first stage.
    fn default() -> Self {
        Self::Known(Stage::Started)
    }
}

impl Serialize for ReportedStage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

open_words! {
    /// Why another model goes on with the work. Adapters may use words of their own.
    ChangeReason {
        /// The provider is overloaded.
        Overload = "overload",
        /// Too many requests.
        RateLimit = "rate_limit",
        /// The plan is used up.
        PlanLimit = "plan_limit",
        /// The provider can't be reached.
        Network = "network",
        /// The model did not answer in time.
        Timeout = "timeout",
        /// The model used up its own budget.
        Cost = "cost",
        /// The model may not see what is sensitive.
        Sensitive = "sensitive",
        /// The agent stopped again and again before the task was done.
        StopEvents = "stop_events",
        /// What the agent called done was not.
        Verification = "verification",
        /// The conversation does not fit.
        Context = "context",
        /// The first model is tried again.
        Return = "return",
        /// The session is stuck.
        Blocked = "blocked",
    }
}

impl Default for ChangeReason {
    /// No word.
    fn default() -> Self {
        Self::Other(String::new().into())
    }
}

impl Action {
    /// Whether this can only tighten: anybody may say it, the agent included.
    pub fn closes(self) -> bool {
        matches!(self, Self::Stop | Self::Pause | Self::Refuse)
    }
}

// An event that leaves these out claims as little as it can.

impl Default for PromptSource {
    /// Not a person.
    fn default() -> Self {
        Self::Harness
    }
}

impl Default for Status {
    /// Not a success.
    fn default() -> Self {
        Self::Error
    }
}

impl Default for AttemptResult {
    /// Nothing of it stays.
    fn default() -> Self {
        Self::Rollback
    }
}

impl Default for Action {
    /// Something that only tightens.
    fn default() -> Self {
        Self::Pause
    }
}
