//! Finds repetition in the calls of one actor.
//!
//! A call is news if it was not made before with the same result. Calls without news are a loop.
//! The limit is low for the same call repeated, and higher where there may be a reason to repeat. A
//! call whose result changes is not a loop, however often it is made.
//!
//! Memory and work per call are bounded. Calls and results are compared by 64 bits of their
//! digests. With so few stored calls, a chance collision occurs in one of 2^50 sessions. An agent
//! that searches for a collision can only make itself look like a loop.

mod history;
mod polls;
mod streaks;

use crate::words::words;
use serde::{Deserialize, Serialize};

use super::config::LoopSettings;
use crate::digest::Digest128;
pub(crate) use crate::observe::ErrorClass;
use history::CallHistory;
use polls::PollTracker;
use streaks::CallStreaks;

/// A call with its result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CompletedCall {
    /// The digest of the tool and its arguments.
    pub(crate) call: Digest128,
    /// The digest of the result.
    pub(crate) outcome: Digest128,
    pub(crate) tool: u64,
    /// The digest of the file or program that the call is about, if it names one.
    pub(crate) coarse: Option<u64>,
    pub(crate) error: Option<ErrorClass>,
    pub(crate) failed: bool,
    pub(crate) class: CallClass,
    pub(crate) at_ms: u64,
    /// Calls of one batch were proposed before any of them returned.
    pub(crate) batch: u64,
}

/// How repetitions of a call are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CallClass {
    /// The call is ignored.
    Transparent,
    /// The call polls for a change.
    Poll {
        /// Whether a changed result renews the allowance.
        until_changed: bool,
        /// The allowed number of calls.
        max_calls: u32,
        /// The allowed time.
        within_ms: u64,
    },
    /// The call only waits. The allowance is renewed once another call returns something new.
    Wait {
        /// The allowed number of calls.
        max_calls: u32,
        /// The allowed time.
        within_ms: u64,
    },
    /// The call changes nothing, so there may be a reason to repeat it.
    ReadOnly,
    /// The call may have unseen effects, so the next result may differ.
    Exec,
    /// Anything else.
    Other,
}

words! {
    /// How far a loop has grown.
    #[derive(PartialOrd, Ord)]
    LoopLevel {
        /// The agent is warned.
        Soft = "soft",
        /// The agent is paused or put under an override.
        Hard = "hard",
        /// The session ends.
        Infinite = "infinite",
    }
}

/// Which rule found the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum LoopRule {
    /// The same call with the same result, in a row.
    Repeat,
    /// The same few calls with the same results, in the same order.
    Cycle,
    /// Calls that return nothing new, in any order.
    Stagnation,
    /// The same call fails repeatedly, whatever happens in between.
    SameFailure,
    /// The same call with the same result, among the latest calls in any order.
    SpreadRepeat,
    /// The same tool fails with the same error, whatever the arguments.
    ErrorStorm,
    /// The same call in a row, each time with a different result.
    ChangingResult,
    /// A long chain of calls is repeated.
    DuplicateChain,
    /// Calls about the same file or program with the same result.
    Coarse,
}

impl LoopRule {
    /// The name of the rule in JSON.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Repeat => "repeat",
            Self::Cycle => "cycle",
            Self::Stagnation => "stagnation",
            Self::SameFailure => "same_failure",
            Self::SpreadRepeat => "spread_repeat",
            Self::ErrorStorm => "error_storm",
            Self::ChangingResult => "changing_result",
            Self::DuplicateChain => "duplicate_chain",
            Self::Coarse => "coarse",
        }
    }
}

/// What the detector did with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DetectorResult {
    /// The call was ignored; an earlier finding remains valid.
    Ignored,
    /// The call was counted and may be a part of a loop.
    Counted(Option<LoopFinding>),
}

/// A loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LoopFinding {
    pub(crate) level: LoopLevel,
    pub(crate) rule: LoopRule,
    /// How many repetitions, as the rule counts them.
    pub(crate) count: u32,
}

/// The calls of an actor since the last message of a person.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct LoopDetector {
    history: CallHistory,
    streaks: CallStreaks,
    polls: PollTracker,
}

impl LoopDetector {
    /// Records a call and returns the loop that it is a part of. It does so for every call of the
    /// loop, not only when the level rises.
    pub(crate) fn record(&mut self, step: &CompletedCall, loops: &LoopSettings) -> DetectorResult {
        if step.class == CallClass::Transparent || self.history.is_twin(step) {
            return DetectorResult::Ignored;
        }
        if self.polls.allow(step) {
            self.history.record_wait(step);
            self.streaks.record_wait();
            return DetectorResult::Ignored;
        }
        self.streaks.record(step);
        let here = self.history.record(step, loops);
        if here.is_news(step) {
            self.polls.renew();
        }
        // The first finding of the highest level wins, so the most specific rules come first.
        let findings = [
            here.repeat(loops),
            here.cycle(loops),
            here.same_failure(step, loops),
            self.streaks.same_failure(loops),
            self.streaks.error_storm(loops),
            here.stagnation(step, loops),
            here.duplicate_chain(loops),
            here.spread_repeat(loops),
            self.streaks.changing_result(step, loops),
            self.streaks.coarse(step, loops),
        ];
        let worse = |worst: LoopFinding, next: LoopFinding| {
            if next.level > worst.level { next } else { worst }
        };
        DetectorResult::Counted(findings.into_iter().flatten().reduce(worse))
    }

    /// Forgets all calls after a message of a person: everything may be tried again.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }
}

/// Returns the level that a count reaches in the graded profile.
fn graded_level(count: u32, loops: &LoopSettings) -> Option<LoopLevel> {
    let reached = |level: u16| count >= u32::from(level);
    if reached(loops.graded.infinite) {
        Some(LoopLevel::Infinite)
    } else if reached(loops.graded.hard) {
        Some(LoopLevel::Hard)
    } else {
        reached(loops.graded.soft).then_some(LoopLevel::Soft)
    }
}

/// Returns the first half of a digest as a number.
fn digest_half(digest: &Digest128) -> u64 {
    digest.as_bytes().iter().take(8).fold(0, |half, byte| half << 8 | u64::from(*byte))
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
