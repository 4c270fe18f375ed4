//! Entries of the safety log.

use alloc::collections::BTreeMap;
use alloc::string::String;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::time::Timestamp;
use crate::words::{open_words, words};

/// An entry of the safety log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SafetyEvent {
    /// When it happened.
    pub timestamp: Timestamp,
    /// What happened.
    #[serde(rename = "type")]
    pub kind: SafetyKind,
    /// More information.
    pub details: BTreeMap<String, Value>,
    /// The reaction.
    pub action_taken: SafetyAction,
}

words! {
    /// The kinds of entries.
    #[derive(PartialOrd, Ord)]
    SafetyKind {
        /// A loop about which the agent is warned.
        SoftLoop = "SOFT_LOOP",
        /// A loop that pauses the session.
        HardLoop = "HARD_LOOP",
        /// A loop that ends the session.
        InfiniteLoop = "INFINITE_LOOP",
        /// Iterations without progress.
        NoProgress = "NO_PROGRESS",
        /// Changed code that was not tested.
        DirtyBitViolation = "DIRTY_BIT_VIOLATION",
        /// A context that is almost full.
        CompactionGate = "COMPACTION_GATE",
        /// The allowed number of iterations is reached.
        IterationCap = "ITERATION_CAP",
        /// An advisor was asked.
        OutOfBandAdvisor = "OUT_OF_BAND_ADVISOR",
        /// Another model continues the work.
        ModelFallback = "MODEL_FALLBACK",
        /// The agent is not the one that was approved.
        IdentityMismatch = "IDENTITY_MISMATCH",
        /// A person controlled the session.
        Control = "CONTROL",
    }
}

open_words! {
    /// The reactions.
    SafetyAction {
        /// None, because the definition only observes.
        Observed = "observed",
        /// None, except for this entry.
        ContinuedMonitoring = "continued_monitoring",
        /// The session was paused.
        Paused = "paused",
        /// One pause ended, and another one is still in force.
        StillPaused = "still_paused",
        /// The session continues.
        Resumed = "resumed",
        /// The session was ended.
        Stopped = "stopped",
        /// The session was opened again.
        Reopened = "reopened",
        /// The call was denied.
        Denied = "denied",
        /// Calls are blocked until the context is compacted.
        Held = "held",
        /// A briefing was written.
        Briefed = "briefed",
        /// The full context was replaced by the briefing: the supervisor started a new
        /// conversation.
        RestartedSession = "restarted_session",
        /// The client compacted the full context.
        Compacted = "compacted",
        /// A constraint was put in force.
        Overridden = "overridden",
        /// The agent was told to run the tests.
        InjectedTestPrompt = "injected_test_prompt",
        /// The agent was given an advisor's instruction.
        InjectedInstruction = "injected_instruction",
        /// The advisor gave no answer.
        NoAnswer = "no_answer",
        /// The request was refused.
        Refused = "refused",
        /// The same model is asked again later.
        Waited = "waited",
        /// The first model works again.
        ReturnedToPrimary = "returned_to_primary",
        /// Another model continues the work.
        SwitchedModel = "switched_model",
        /// The count of failed iterations was set to zero.
        FailuresForgotten = "failures_forgotten",
        /// Completion was allowed without tests.
        TestsSkipped = "tests_skipped",
        /// A constraint was ended.
        ConstraintEnded = "constraint_ended",
        /// One call was allowed.
        Granted = "granted",
        /// One call was forbidden.
        Forbidden = "forbidden",
        /// The question about one call ended, and any grant for it.
        Withdrawn = "withdrawn",
        /// The guard was switched off.
        SwitchedOff = "switched_off",
        /// The changed definition was put in force.
        Reloaded = "reloaded",
    }
}
