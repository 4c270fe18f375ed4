//! Finds repetition in the calls of one actor.
//!
//! A call brings something new if it was not made before with the same result.
//! What an agent does without anything new coming of it is a loop: sooner if it
//! is the same call over and over, later if it could still have a reason. A call
//! whose result changes is not one, however often it is made.
//!
//! The memory is fixed and so is the work for a call. Calls and results are
//! compared by 64 bits of their digests: among the few that are remembered, two
//! are taken for one by chance once in 2^50 sessions, and an agent that looks
//! for such a pair only finds a way to be told that it is in a loop.

mod history;
mod polls;
mod streaks;

use crate::words::words;
use serde::{Deserialize, Serialize};

use super::config::Loops;
use crate::digest::Digest128;
pub(crate) use crate::observe::ErrorClass;
use history::History;
use polls::Polls;
use streaks::Streaks;

/// One call that came back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Step {
    /// What was called, with which arguments.
    pub(crate) call: Digest128,
    /// What came of it.
    pub(crate) outcome: Digest128,
    pub(crate) tool: u64,
    /// What it is about, where that can be told.
    pub(crate) coarse: Option<u64>,
    pub(crate) error: Option<ErrorClass>,
    pub(crate) failed: bool,
    pub(crate) class: Class,
    pub(crate) at_ms: u64,
    /// Calls of one batch were proposed together, before any of them came back.
    pub(crate) batch: u64,
}

/// How the repetition of a call is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Class {
    /// It is passed over.
    Transparent,
    /// It waits for something.
    Poll {
        /// Whether a changed result renews what is allowed.
        until_changed: bool,
        /// So often.
        max_calls: u32,
        /// For so long.
        within_ms: u64,
    },
    /// It does nothing but wait, and may wait anew once something new has come.
    Wait {
        /// So often.
        max_calls: u32,
        /// For so long.
        within_ms: u64,
    },
    /// It changes nothing, so there may be a reason to look again.
    ReadOnly,
    /// It may change what nobody sees, so the next result may be another.
    Exec,
    /// Anything else.
    Other,
}

words! {
    /// How far a loop has gone.
    #[derive(PartialOrd, Ord)]
    LoopLevel {
        /// The agent is told.
        Soft = "soft",
        /// The agent is held.
        Hard = "hard",
        /// The session ends.
        Infinite = "infinite",
    }
}

/// What makes it a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum LoopRule {
    /// The same call with the same result, in a row.
    Repeat,
    /// The same few calls with the same results, in the same order.
    Cycle,
    /// Calls that bring nothing new, in any order.
    Stagnation,
    /// The same call fails again and again, whatever is done in between.
    SameFailure,
    /// The same tool meets the same error, whatever the arguments.
    ErrorStorm,
    /// The same call in a row, each time with another result.
    ChangingResult,
    /// A long chain of calls is gone through again.
    DuplicateChain,
    /// Calls about the same thing have the same result.
    Coarse,
}

impl LoopRule {
    /// Its word.
    pub(crate) const fn word(self) -> &'static str {
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

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Noted {
    /// It is no part of anything: what was found before still stands.
    PassedOver,
    /// It counts, and may be part of a loop.
    Taken(Option<Finding>),
}

/// A loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) level: LoopLevel,
    pub(crate) rule: LoopRule,
    /// How often, in the terms of the rule.
    pub(crate) count: u32,
}

/// What is remembered of an actor's calls since a person last spoke.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Detector {
    history: History,
    streaks: Streaks,
    polls: Polls,
}

impl Detector {
    /// Takes a step, and says how far it is part of a loop. It says so at every
    /// step of the loop, not only when the loop gets worse.
    pub(crate) fn note(&mut self, step: &Step, loops: &Loops) -> Noted {
        if step.class == Class::Transparent || self.history.is_twin(step) {
            return Noted::PassedOver;
        }
        if self.polls.allow(step) {
            self.history.wait(step);
            self.streaks.wait();
            return Noted::PassedOver;
        }
        self.streaks.note(step);
        let here = self.history.note(step, loops);
        if here.is_news(step) {
            self.polls.renew();
        }
        // The first of the highest level: what tells most comes first.
        let found = [
            here.repeat(loops),
            here.cycle(loops),
            here.same_failure(step, loops),
            self.streaks.same_failure(loops),
            self.streaks.error_storm(loops),
            here.stagnation(step, loops),
            here.duplicate_chain(loops),
            self.streaks.changing_result(step),
            self.streaks.coarse(step, loops),
        ];
        let worse = |worst: Finding, next: Finding| {
            if next.level > worst.level { next } else { worst }
        };
        Noted::Taken(found.into_iter().flatten().reduce(worse))
    }

    /// A person has spoken: what was tried before may be tried again.
    pub(crate) fn human(&mut self) {
        *self = Self::default();
    }
}

/// The level that a count reaches in the graded profile.
fn graded(count: u32, loops: &Loops) -> Option<LoopLevel> {
    let reached = |level: u16| count >= u32::from(level);
    if reached(loops.graded.infinite) {
        Some(LoopLevel::Infinite)
    } else if reached(loops.graded.hard) {
        Some(LoopLevel::Hard)
    } else {
        reached(loops.graded.soft).then_some(LoopLevel::Soft)
    }
}

/// Half of a digest, in the room of a number.
fn half(digest: &Digest128) -> u64 {
    digest.as_bytes().iter().take(8).fold(0, |half, byte| half << 8 | u64::from(*byte))
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
