//! Finds repetition in the steps of one actor.

use alloc::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::Loops;
use crate::digest::Digest128;

/// A word for how a call failed.
pub(crate) type ErrorClass = u64;

/// How many steps with a changing result are worth a word.
const CHANGING_SOFT: u32 = 8;

/// One call that came back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) call: Digest128,
    pub(crate) outcome: Digest128,
    pub(crate) tool: u64,
    pub(crate) coarse: Option<u64>,
    pub(crate) error: Option<ErrorClass>,
    pub(crate) failed: bool,
    pub(crate) class: Class,
    pub(crate) at_ms: u64,
    pub(crate) batch: u64,
}

/// How the repetition of a call is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Class {
    /// Passed over.
    Transparent,
    /// Waits for something.
    Poll { until_changed: bool, max_calls: u32, within_ms: u64 },
    /// Changes nothing.
    ReadOnly,
    /// Runs what nobody sees into.
    Exec,
    /// Anything else.
    Other,
}

/// How far a loop has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Level {
    Soft,
    Hard,
    Infinite,
}

/// What makes it a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum LoopRule {
    Repeat,
    Cycle,
    Stagnation,
    SameFailure,
    ErrorStorm,
    ChangingResult,
    DuplicateChain,
    Coarse,
}

impl LoopRule {
    /// Its word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Repeat => "repeat",
            Self::Cycle => "cycle",
            Self::Stagnation => "stagnation",
            Self::SameFailure => "same_failure",
            Self::ErrorStorm => "error_storm",
            Self::ChangingResult => "changing_result",
            Self::DuplicateChain => "duplicate_chain",
            Self::Coarse => "coarse",
        }
    }
}

/// A loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) level: Level,
    pub(crate) rule: LoopRule,
    pub(crate) count: u32,
}

/// What is remembered of an actor's steps.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Detector {
    steps: VecDeque<Seen>,
    last: Option<(u64, Option<ErrorClass>)>,
    same: u32,
    same_call: u32,
    storm: u32,
    since_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Seen {
    call: [u8; 4],
    both: [u8; 8],
    batch: u64,
}

impl Detector {
    /// Takes a step, and says what it makes of it.
    pub(crate) fn note(&mut self, step: &Step, loops: &Loops) -> Option<Finding> {
        if step.class == Class::Transparent {
            return None;
        }
        let both = alloc::format!("{}{}", step.call, step.outcome);
        let both = Digest128::of(both.as_bytes());
        let seen = Seen {
            call: step.call.as_bytes().first_chunk().copied().unwrap_or_default(),
            both: both.as_bytes().first_chunk().copied().unwrap_or_default(),
            batch: step.batch,
        };
        let last = self.steps.back().copied();
        let twin = last.is_some_and(|last| (last.both, last.batch) == (seen.both, seen.batch));
        if twin {
            return None;
        }
        let _ = step.coarse;
        self.same = if last.is_some_and(|last| last.both == seen.both) { self.same + 1 } else { 1 };
        if self.same == 1 {
            self.since_ms = step.at_ms;
        }
        self.same_call =
            if last.is_some_and(|last| last.call == seen.call) { self.same_call + 1 } else { 1 };
        let storms = self.last == Some((step.tool, step.error)) && step.failed;
        self.last = Some((step.tool, step.error));
        self.storm = if storms { self.storm + 1 } else { u32::from(step.failed) };
        if self.steps.len() >= 24 {
            self.steps.pop_front();
        }
        self.steps.push_back(seen);
        if let Class::Poll { max_calls, within_ms, .. } = step.class
            && self.same <= max_calls
            && step.at_ms.saturating_sub(self.since_ms) <= within_ms
        {
            return None;
        }
        self.find(loops)
    }

    fn find(&self, loops: &Loops) -> Option<Finding> {
        let (graded, errors) = (loops.graded, loops.errors);
        let level = |count: u32, soft: u16, hard: u16, infinite: u16| match count {
            count if count >= u32::from(infinite) => Some(Level::Infinite),
            count if count >= u32::from(hard) => Some(Level::Hard),
            count if count >= u32::from(soft) => Some(Level::Soft),
            _ => None,
        };
        let repeat = level(self.same, graded.soft, graded.hard, graded.infinite)
            .map(|level| Finding { level, rule: LoopRule::Repeat, count: self.same });
        let storm = level(self.storm, errors.soft, errors.hard, u16::MAX).map(|level| Finding {
            level,
            rule: LoopRule::ErrorStorm,
            count: self.storm,
        });
        let changing = (self.same_call >= CHANGING_SOFT).then_some(Finding {
            level: Level::Soft,
            rule: LoopRule::ChangingResult,
            count: self.same_call,
        });
        let cycles = (2..=usize::from(loops.cycle.period_max)).filter_map(|period| {
            let steps = self.steps.iter().rev().map(|seen| seen.both);
            let later = self.steps.iter().rev().skip(period).map(|seen| seen.both);
            let matched = steps.zip(later).take_while(|(one, other)| one == other).count();
            let count = u32::try_from(matched / period + 1).unwrap_or(u32::MAX);
            let found = self.same < 2 && count >= u32::from(loops.cycle.repeats);
            found.then_some(Finding { level: Level::Hard, rule: LoopRule::Cycle, count })
        });
        [repeat, storm, changing]
            .into_iter()
            .flatten()
            .chain(cycles)
            .max_by_key(|found| found.level)
    }

    /// A person has spoken.
    pub(crate) fn human(&mut self) {
        *self = Self::default();
    }
}
