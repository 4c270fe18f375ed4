//! Lines of the safety log.

use alloc::collections::BTreeMap;
use alloc::string::String;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::time::Timestamp;
use crate::words::{open_words, words};

/// A line of the safety log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SafetyEvent {
    /// When it happened.
    pub timestamp: Timestamp,
    /// What happened.
    #[serde(rename = "type")]
    pub kind: SafetyKind,
    /// More about it.
    pub details: BTreeMap<String, Value>,
    /// What was done about it.
    pub action_taken: SafetyAction,
}

words! {
    /// What the safety log is about.
    #[derive(PartialOrd, Ord)]
    SafetyKind {
        /// A loop that the agent is told about.
        SoftLoop = "SOFT_LOOP",
        /// A loop that is held.
        HardLoop = "HARD_LOOP",
        /// A loop that ends the session.
        InfiniteLoop = "INFINITE_LOOP",
        /// Iterations that bring nothing.
        NoProgress = "NO_PROGRESS",
        /// Changed code that nothing has tested.
        DirtyBitViolation = "DIRTY_BIT_VIOLATION",
        /// A context that is nearly full.
        CompactionGate = "COMPACTION_GATE",
        /// As many iterations as were allowed.
        IterationCap = "ITERATION_CAP",
        /// An advisor was asked.
        OutOfBandAdvisor = "OUT_OF_BAND_ADVISOR",
        /// Another model goes on.
        ModelFallback = "MODEL_FALLBACK",
        /// The agent is not the one that was approved.
        IdentityMismatch = "IDENTITY_MISMATCH",
        /// A person steered.
        Control = "CONTROL",
    }
}

open_words! {
    /// What was done about it.
    SafetyAction {
        /// Nothing, because the definition only observes.
        Observed = "observed",
        /// Nothing but a note.
        ContinuedMonitoring = "continued_monitoring",
        /// The session was paused.
        Paused = "paused",
        /// One pause was lifted, and another one stays.
        StillPaused = "still_paused",
        /// The session may go on.
        Resumed = "resumed",
        /// The session was ended.
        Stopped = "stopped",
        /// The session was opened again.
        Reopened = "reopened",
        /// The call was denied.
        Denied = "denied",
        /// Calls are held until the context is compacted.
        Held = "held",
        /// A briefing was written.
        Briefed = "briefed",
        /// A constraint was put in force.
        Overridden = "overridden",
        /// The agent was told to run the tests.
        InjectedTestPrompt = "injected_test_prompt",
        /// The agent was given an advisor's instruction.
        InjectedInstruction = "injected_instruction",
        /// An advisor gave no answer.
        NoAnswer = "no_answer",
        /// The request was refused.
        Refused = "refused",
        /// The same model is asked again.
        Waited = "waited",
        /// The first model is back.
        ReturnedToPrimary = "returned_to_primary",
        /// Another model took over.
        SwitchedModel = "switched_model",
        /// Failed iterations were forgotten.
        FailuresForgotten = "failures_forgotten",
        /// Missing tests were skipped.
        TestsSkipped = "tests_skipped",
        /// A constraint was ended.
        ConstraintEnded = "constraint_ended",
        /// One call was allowed.
        Granted = "granted",
        /// One call was forbidden.
        Forbidden = "forbidden",
        /// The guard was switched off.
        SwitchedOff = "switched_off",
        /// The changed definition was put in force.
        Reloaded = "reloaded",
    }
}
