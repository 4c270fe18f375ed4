//! Streaks: calls in a row that share one property while others change.

use serde::{Deserialize, Serialize};

use super::{
    CallClass, CompletedCall, LoopFinding, LoopLevel, LoopRule, digest_half, graded_level,
};
use crate::guards::loops::config::LoopSettings;

/// The current streaks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct CallStreaks {
    changing: CallStreak,
    storm: CallStreak,
    /// The batch of the latest error. Errors of one batch count once.
    storm_batch: u64,
    coarse: CallStreak,
    /// The same call, failing with the same result.
    failing: CallStreak,
}

/// How many calls in a row share a property.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct CallStreak {
    what: (u64, u64),
    count: u32,
}

impl CallStreak {
    /// Extends the streak, or starts a new one.
    fn extend(&mut self, what: (u64, u64)) {
        let count = if self.count > 0 && self.what == what { self.count } else { 0 };
        *self = Self { what, count: count.saturating_add(1) };
    }
}

impl CallStreaks {
    /// Records a call.
    pub(super) fn record(&mut self, step: &CompletedCall) {
        self.changing.extend((digest_half(&step.call), 0));
        self.record_error(step);
        if step.failed {
            self.failing.extend((digest_half(&step.call), digest_half(&step.outcome)));
        } else {
            self.failing = CallStreak::default();
        }
        match step.coarse {
            Some(coarse) => self.coarse.extend((coarse, reported_outcome(step))),
            None => self.coarse = CallStreak::default(),
        }
    }

    /// Records that the actor waits. Waiting excuses a repeated call, but not a repeated failure.
    pub(super) fn record_wait(&mut self) {
        self.changing = CallStreak::default();
        if self.failing.count == 0 {
            self.coarse = CallStreak::default();
        }
    }

    fn record_error(&mut self, step: &CompletedCall) {
        let protocol = step.error.is_some_and(|error| error.protocol);
        // A program that runs arbitrary commands fails for many reasons, and its errors look alike.
        if !step.failed || (step.class == CallClass::Exec && !protocol) {
            self.storm = CallStreak::default();
            return;
        }
        let before = self.storm;
        self.storm.extend((step.tool, reported_outcome(step)));
        if self.storm.count > 1 && self.storm_batch == step.batch {
            self.storm.count = before.count;
        }
        self.storm_batch = step.batch;
    }

    /// Finds the same call that fails in the same way, with only waiting in between.
    pub(super) fn same_failure(&self, loops: &LoopSettings) -> Option<LoopFinding> {
        let count = self.failing.count;
        let level = graded_level(count, loops).filter(|_| count > 0)?;
        Some(LoopFinding { level, rule: LoopRule::SameFailure, count })
    }

    /// Finds the same error of the same tool, whatever the arguments.
    pub(super) fn error_storm(&self, loops: &LoopSettings) -> Option<LoopFinding> {
        let count = self.storm.count;
        let level = if count >= u32::from(loops.errors.hard) {
            LoopLevel::Hard
        } else if count >= u32::from(loops.errors.soft) {
            LoopLevel::Soft
        } else {
            return None;
        };
        (count > 0).then_some(LoopFinding { level, rule: LoopRule::ErrorStorm, count })
    }

    /// Finds the same call with changing results.
    pub(super) fn changing_result(
        &self,
        step: &CompletedCall,
        loops: &LoopSettings,
    ) -> Option<LoopFinding> {
        let count = self.changing.count;
        let is_waiting = matches!(step.class, CallClass::Poll { .. } | CallClass::Wait { .. });
        (count >= u32::from(loops.similar.changing_results) && !is_waiting).then_some(LoopFinding {
            level: LoopLevel::Soft,
            rule: LoopRule::ChangingResult,
            count,
        })
    }

    /// Finds calls about the same file or program with the same result.
    pub(super) fn coarse(&self, step: &CompletedCall, loops: &LoopSettings) -> Option<LoopFinding> {
        let count = self.coarse.count;
        let similar = loops.similar;
        let soft = if step.failed { similar.same_subject_failing } else { similar.same_subject };
        (count >= u32::from(soft.max(1))).then_some(LoopFinding {
            level: LoopLevel::Soft,
            rule: LoopRule::Coarse,
            count,
        })
    }
}

/// Returns what a call reported: its error if it failed, or else its result.
fn reported_outcome(step: &CompletedCall) -> u64 {
    match step.error {
        Some(error) if step.failed => 1 << 32 | u64::from(error.fingerprint),
        _ if step.failed => 2 << 32,
        _ => digest_half(&step.outcome),
    }
}
