//! The latest calls with their results: what was there before, and in which order.

use alloc::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{Class, Finding, LoopLevel, LoopRule, Step, graded, half};
use crate::guards::loops::config::Loops;

/// The most calls that are remembered, whatever the definition says.
pub(super) const STEPS_MAX: usize = 64;

/// The longest chain that can be gone through three times within what is
/// remembered.
pub(super) const PERIOD_MAX: usize = STEPS_MAX / 3;

/// A chain this long is no accident the second time.
pub(super) const CHAIN_MIN: usize = 5;

/// The latest calls, and how they go on what was before them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct History {
    steps: VecDeque<Seen>,
    /// How many of the latest calls belong to one batch.
    in_batch: u16,
    batch: u64,
    /// How many in a row are the same as the call one, two, … calls earlier.
    matched: [u16; PERIOD_MAX],
    /// How many in a row brought nothing new.
    stale: u32,
    /// How many of these since something ran that nobody saw into.
    still: u32,
    /// How many came since the actor last waited: nothing goes on across that.
    unbroken: u16,
}

/// A call with its result.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Seen {
    /// As bytes, because a random number takes more in the compact form.
    pair: [u8; 8],
    /// The call, if it failed. Half of its half: it only has to tell failures
    /// of one actor apart.
    failed: Option<u32>,
}

/// Where the latest call stands among those before it.
pub(super) struct Here<'h> {
    history: &'h History,
    /// How many times it was made with this result, this one included.
    count: u32,
    /// How many times it failed, this one included.
    failures: u32,
}

impl History {
    /// Whether the same call with the same result is part of the same batch:
    /// the agent had not seen the first result when it asked again.
    pub(super) fn is_twin(&self, step: &Step) -> bool {
        let pair = pair(step);
        self.batch == step.batch
            && self
                .steps
                .iter()
                .rev()
                .take(usize::from(self.in_batch))
                .any(|seen| seen.pair == pair)
    }

    /// The actor waits: what it asks then may bring the same, and is no loop yet.
    /// What failed before is not forgotten.
    pub(super) fn wait(&mut self, step: &Step) {
        self.unbroken = 0;
        self.matched = [0; PERIOD_MAX];
        (self.stale, self.still) = (0, 0);
        if self.batch != step.batch {
            (self.batch, self.in_batch) = (step.batch, 0);
        }
    }

    /// Remembers a call.
    pub(super) fn note(&mut self, step: &Step, loops: &Loops) -> Here<'_> {
        let seen = Seen { pair: pair(step), failed: step.failed.then(|| short_call(step)) };
        let same = self.steps.iter().filter(|before| before.pair == seen.pair).count();
        let fails = seen.failed.is_some();
        let failures = self.steps.iter().filter(|before| fails && before.failed == seen.failed);
        let (count, failures) = (number(same + 1), number(failures.count() + usize::from(fails)));

        let mut before = self.steps.iter().rev().take(usize::from(self.unbroken));
        for matched in &mut self.matched {
            let same = before.next().is_some_and(|before| before.pair == seen.pair);
            *matched = if same { matched.saturating_add(1) } else { 0 };
        }
        if count > 1 {
            self.stale = self.stale.saturating_add(1);
            self.still = if step.class == Class::Exec { 0 } else { self.still.saturating_add(1) };
        } else {
            (self.stale, self.still) = (0, 0);
        }

        let most = usize::from(loops.history).clamp(1, STEPS_MAX);
        self.in_batch = if self.batch == step.batch { self.in_batch.saturating_add(1) } else { 1 };
        self.batch = step.batch;
        self.unbroken = self.unbroken.saturating_add(1);
        self.steps.push_back(seen);
        while self.steps.len() > most {
            self.steps.pop_front();
        }
        Here { history: self, count, failures }
    }
}

impl Here<'_> {
    /// Whether something came of the call that was not there before. What only
    /// waits brings nothing, and a failure is no news.
    pub(super) fn is_news(&self, step: &Step) -> bool {
        let waits = matches!(step.class, Class::Poll { .. } | Class::Wait { .. });
        self.count == 1 && !step.failed && !waits
    }

    /// The same call with the same result, in a row.
    pub(super) fn repeat(&self, loops: &Loops) -> Option<Finding> {
        let count = u32::from(self.matched(1)) + 1;
        graded(count, loops).map(|level| Finding { level, rule: LoopRule::Repeat, count })
    }

    /// The same calls with the same results in the same order, gone through as
    /// often as a cycle may not be.
    pub(super) fn cycle(&self, loops: &Loops) -> Option<Finding> {
        let periods = 2..=usize::from(loops.cycle.period_max).min(PERIOD_MAX);
        periods.into_iter().find_map(|period| self.gone_through(period, loops)).map(|count| {
            Finding { level: level_of_cycle(count, loops), rule: LoopRule::Cycle, count }
        })
    }

    /// The same for chains that are longer than a cycle; they are worth a word
    /// when they are gone through for the second time.
    pub(super) fn duplicate_chain(&self, loops: &Loops) -> Option<Finding> {
        let rule = LoopRule::DuplicateChain;
        let longest = usize::from(loops.cycle.period_max) + 1;
        let hard = (longest..=PERIOD_MAX).find_map(|period| self.gone_through(period, loops));
        let again = || {
            let twice = (CHAIN_MIN..=PERIOD_MAX).any(|period| {
                usize::from(self.matched(period)) >= period && !self.is_one_call(2 * period)
            });
            twice.then_some(Finding { level: LoopLevel::Soft, rule, count: 2 })
        };
        hard.map(|count| Finding { level: level_of_cycle(count, loops), rule, count })
            .or_else(again)
    }

    /// How often a cycle of this period was gone through, if too often.
    fn gone_through(&self, period: usize, loops: &Loops) -> Option<u32> {
        let count = usize::from(self.matched(period)) / period + 1;
        let repeats = usize::from(loops.cycle.repeats).max(2);
        (count >= repeats && !self.is_one_call(repeats * period)).then(|| number(count))
    }

    /// Whether the latest so many are all the same call: that is a repeat.
    fn is_one_call(&self, calls: usize) -> bool {
        usize::from(self.matched(1)) + 1 >= calls
    }

    fn matched(&self, period: usize) -> u16 {
        period.checked_sub(1).and_then(|at| self.history.matched.get(at)).copied().unwrap_or(0)
    }

    /// The same call fails, whatever is done in between. What runs unseen things
    /// is left out: a test that fails again after a change is work.
    pub(super) fn same_failure(&self, step: &Step, loops: &Loops) -> Option<Finding> {
        let level = graded(self.failures, loops).filter(|_| step.class != Class::Exec)?;
        Some(Finding { level, rule: LoopRule::SameFailure, count: self.failures })
    }

    /// Calls that bring nothing new, in any order. What was read twice may have
    /// been forgotten in between, and what runs unseen things may have changed
    /// what the next call shows, so these must be the third of their kind.
    pub(super) fn stagnation(&self, step: &Step, loops: &Loops) -> Option<Finding> {
        let (soft, hard) = (u32::from(loops.graded.soft), u32::from(loops.graded.hard));
        let &History { stale, still, .. } = self.history;
        let often = self.count >= soft;
        let (is_soft, is_hard) = match step.class {
            Class::Transparent => (false, false),
            Class::Exec => (stale >= hard && often, false),
            Class::ReadOnly => (stale >= hard || (stale >= soft && often), still >= hard && often),
            Class::Other | Class::Poll { .. } | Class::Wait { .. } => {
                (stale >= soft, still >= hard)
            }
        };
        let level = match (is_soft, is_hard && !self.is_exact(loops)) {
            (_, true) => LoopLevel::Hard,
            (true, false) => LoopLevel::Soft,
            (false, false) => return None,
        };
        Some(Finding { level, rule: LoopRule::Stagnation, count: stale })
    }

    /// Whether all that is stale is one call or one cycle over and over: these
    /// have rules of their own, and until they say so it is not too often.
    fn is_exact(&self, loops: &Loops) -> bool {
        let longest = usize::from(loops.cycle.period_max).min(PERIOD_MAX);
        (1..=longest).any(|period| u32::from(self.matched(period)) >= self.history.stale)
    }
}

/// A cycle that is gone through as often as a call may at most be repeated will
/// not end by itself.
fn level_of_cycle(count: u32, loops: &Loops) -> LoopLevel {
    if count >= u32::from(loops.graded.infinite) { LoopLevel::Infinite } else { LoopLevel::Hard }
}

/// A call with its result, in the room of a number; which is which matters.
fn pair(step: &Step) -> [u8; 8] {
    // An odd factor loses nothing; the digests are evenly spread already.
    let call = half(&step.call).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    (call ^ half(&step.outcome)).to_le_bytes()
}

fn short_call(step: &Step) -> u32 {
    step.call.as_bytes().iter().take(4).fold(0, |half, byte| half << 8 | u32::from(*byte))
}

/// A length as a count; there are far fewer than would not fit.
fn number(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
