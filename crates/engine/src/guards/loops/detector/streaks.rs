//! What stays the same from one call to the next, while something else changes.

use serde::{Deserialize, Serialize};

use super::{Class, Finding, LoopLevel, LoopRule, Step, graded, half};
use crate::guards::loops::config::Loops;

/// The same call so often in a row, each time with another result, is worth a
/// word: perhaps only a clock in it changes. It is never worth more, because
/// waiting and leafing through look the same.
pub(super) const CHANGING_SOFT: u32 = 8;

/// Calls about the same thing that succeed in the same way are mostly work.
pub(super) const COARSE_SOFT: u32 = 12;

/// What goes on from call to call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Streaks {
    changing: Streak,
    storm: Streak,
    /// The batch of the latest error: errors of one batch count once.
    storm_batch: u64,
    coarse: Streak,
    /// The same call, failing with the same result.
    failing: Streak,
}

/// So many in a row have this in common.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Streak {
    what: (u64, u64),
    count: u32,
}

impl Streak {
    /// Goes on, or begins anew.
    fn go_on(&mut self, what: (u64, u64)) {
        let count = if self.count > 0 && self.what == what { self.count } else { 0 };
        *self = Self { what, count: count.saturating_add(1) };
    }
}

impl Streaks {
    /// Takes a step.
    pub(super) fn note(&mut self, step: &Step) {
        self.changing.go_on((half(&step.call), 0));
        self.note_error(step);
        if step.failed {
            self.failing.go_on((half(&step.call), half(&step.outcome)));
        } else {
            self.failing = Streak::default();
        }
        match step.coarse {
            Some(coarse) => self.coarse.go_on((coarse, says(step))),
            None => self.coarse = Streak::default(),
        }
    }

    /// The actor waits. That excuses asking again, and no failure: what went
    /// wrong in the same way before goes on after it.
    pub(super) fn wait(&mut self) {
        self.changing = Streak::default();
        if self.failing.count == 0 {
            self.coarse = Streak::default();
        }
    }

    fn note_error(&mut self, step: &Step) {
        let protocol = step.error.is_some_and(|error| error.protocol);
        // What runs anything fails for many reasons, and its errors look alike.
        if !step.failed || (step.class == Class::Exec && !protocol) {
            self.storm = Streak::default();
            return;
        }
        let before = self.storm;
        self.storm.go_on((step.tool, says(step)));
        if self.storm.count > 1 && self.storm_batch == step.batch {
            self.storm.count = before.count;
        }
        self.storm_batch = step.batch;
    }

    /// The same call fails in the same way, with nothing but waiting in between.
    pub(super) fn same_failure(&self, loops: &Loops) -> Option<Finding> {
        let count = self.failing.count;
        let level = graded(count, loops).filter(|_| count > 0)?;
        Some(Finding { level, rule: LoopRule::SameFailure, count })
    }

    /// The same tool meets the same error, whatever the arguments.
    pub(super) fn error_storm(&self, loops: &Loops) -> Option<Finding> {
        let count = self.storm.count;
        let level = if count >= u32::from(loops.errors.hard) {
            LoopLevel::Hard
        } else if count >= u32::from(loops.errors.soft) {
            LoopLevel::Soft
        } else {
            return None;
        };
        (count > 0).then_some(Finding { level, rule: LoopRule::ErrorStorm, count })
    }

    /// The same call, each time with another result.
    pub(super) fn changing_result(&self, step: &Step) -> Option<Finding> {
        let count = self.changing.count;
        let waits = matches!(step.class, Class::Poll { .. } | Class::Wait { .. });
        (count >= CHANGING_SOFT && !waits).then_some(Finding {
            level: LoopLevel::Soft,
            rule: LoopRule::ChangingResult,
            count,
        })
    }

    /// Calls about the same thing that end in the same way.
    pub(super) fn coarse(&self, step: &Step, loops: &Loops) -> Option<Finding> {
        let count = self.coarse.count;
        let soft = if step.failed { u32::from(loops.errors.soft) } else { COARSE_SOFT };
        (count >= soft.max(1)).then_some(Finding {
            level: LoopLevel::Soft,
            rule: LoopRule::Coarse,
            count,
        })
    }
}

/// What a step says, whatever was asked: its error, else its result.
fn says(step: &Step) -> u64 {
    match step.error {
        Some(error) if step.failed => 1 << 32 | u64::from(error.fingerprint),
        _ if step.failed => 2 << 32,
        _ => half(&step.outcome),
    }
}
