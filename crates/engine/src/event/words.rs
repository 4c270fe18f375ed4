//! The fixed words of events.

use crate::words::words;

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
        /// Open the session anew.
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
