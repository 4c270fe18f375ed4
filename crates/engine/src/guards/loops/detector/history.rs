//! The latest calls with their results, in order, to find repetitions.

use alloc::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{
    CallClass, CompletedCall, LoopFinding, LoopLevel, LoopRule, digest_half, graded_level,
};
use crate::guards::loops::config::{LOOP_PERIOD_MAX, LoopSettings};

/// The maximum number of stored calls, whatever the definition says.
pub(super) const HISTORY_CALLS_MAX: usize = 64;

/// The longest chain that fits three times into the stored calls.
pub(super) const PERIOD_MAX: usize = LOOP_PERIOD_MAX as usize;

/// The latest calls, with counters that compare each call with earlier ones.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct CallHistory {
    steps: VecDeque<HistoryEntry>,
    /// How many of the latest calls belong to one batch.
    in_batch: u16,
    batch: u64,
    /// For each distance 1, 2, …: how many calls in a row equal the call at that distance before
    /// them.
    matched: [u16; PERIOD_MAX],
    /// How many calls in a row returned nothing new.
    stale: u32,
    /// How many of these came after the last call with unseen effects.
    still: u32,
    /// How many calls came since the actor last waited. Repetition is not counted across a wait.
    unbroken: u16,
}

/// A call with its result.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct HistoryEntry {
    /// The hash of call and result. Stored as bytes, because a random number takes more space in
    /// the compact form.
    pair: [u8; 8],
    /// The short hash of the call, if it failed. 32 bits are enough to tell the failures of one
    /// actor apart.
    failed: Option<u32>,
}

/// The latest call, compared with the calls before it.
pub(super) struct HistoryView<'h> {
    history: &'h CallHistory,
    /// How many times the call was made with this result, including this time.
    count: u32,
    /// How many times the call failed, including this time.
    failures: u32,
}

impl CallHistory {
    /// Returns whether the batch already contains this call with this result. The agent had not
    /// seen the first result when it proposed the second call.
    pub(super) fn is_twin(&self, step: &CompletedCall) -> bool {
        let pair = call_result_hash(step);
        self.batch == step.batch
            && self
                .steps
                .iter()
                .rev()
                .take(usize::from(self.in_batch))
                .any(|entry| entry.pair == pair)
    }

    /// Records that the actor waits. Its next calls may have the same results without being a loop.
    /// Earlier failures still count.
    pub(super) fn record_wait(&mut self, step: &CompletedCall) {
        self.unbroken = 0;
        self.matched = [0; PERIOD_MAX];
        (self.stale, self.still) = (0, 0);
        if self.batch != step.batch {
            (self.batch, self.in_batch) = (step.batch, 0);
        }
    }

    /// Records a call.
    pub(super) fn record(&mut self, step: &CompletedCall, loops: &LoopSettings) -> HistoryView<'_> {
        let entry = HistoryEntry {
            pair: call_result_hash(step),
            failed: step.failed.then(|| call_hash(step)),
        };
        let same = self.steps.iter().filter(|before| before.pair == entry.pair).count();
        let is_failure = entry.failed.is_some();
        let failures =
            self.steps.iter().filter(|before| is_failure && before.failed == entry.failed);
        let (count, failures) = (
            saturating_count(same + 1),
            saturating_count(failures.count() + usize::from(is_failure)),
        );

        let mut before = self.steps.iter().rev().take(usize::from(self.unbroken));
        for matched in &mut self.matched {
            let same = before.next().is_some_and(|before| before.pair == entry.pair);
            *matched = if same { matched.saturating_add(1) } else { 0 };
        }
        if count > 1 {
            self.stale = self.stale.saturating_add(1);
            self.still =
                if step.class == CallClass::Exec { 0 } else { self.still.saturating_add(1) };
        } else {
            (self.stale, self.still) = (0, 0);
        }

        let most = usize::from(loops.history).clamp(1, HISTORY_CALLS_MAX);
        self.in_batch = if self.batch == step.batch { self.in_batch.saturating_add(1) } else { 1 };
        self.batch = step.batch;
        self.unbroken = self.unbroken.saturating_add(1);
        self.steps.push_back(entry);
        while self.steps.len() > most {
            self.steps.pop_front();
        }
        HistoryView { history: self, count, failures }
    }
}

impl HistoryView<'_> {
    /// Returns whether the call returned something new. A call that only waits, or that failed, is
    /// no news.
    pub(super) fn is_news(&self, step: &CompletedCall) -> bool {
        let is_waiting = matches!(step.class, CallClass::Poll { .. } | CallClass::Wait { .. });
        self.count == 1 && !step.failed && !is_waiting
    }

    /// Finds the same call with the same result, in a row.
    pub(super) fn repeat(&self, loops: &LoopSettings) -> Option<LoopFinding> {
        let count = u32::from(self.matched(1)) + 1;
        graded_level(count, loops).map(|level| LoopFinding { level, rule: LoopRule::Repeat, count })
    }

    /// Finds the same calls with the same results in the same order, repeated more often than
    /// allowed.
    pub(super) fn cycle(&self, loops: &LoopSettings) -> Option<LoopFinding> {
        let periods = 2..=usize::from(loops.cycle.period_max).min(PERIOD_MAX);
        periods.into_iter().find_map(|period| self.count_repeats(period, loops)).map(|count| {
            LoopFinding { level: cycle_level(count, loops), rule: LoopRule::Cycle, count }
        })
    }

    /// Finds repeated chains that are longer than a cycle. The second pass causes a warning.
    pub(super) fn duplicate_chain(&self, loops: &LoopSettings) -> Option<LoopFinding> {
        let rule = LoopRule::DuplicateChain;
        let longest = usize::from(loops.cycle.period_max) + 1;
        let calls_max = usize::from(loops.chain.calls_max).min(PERIOD_MAX);
        let hard = (longest..=calls_max).find_map(|period| self.count_repeats(period, loops));
        let second_pass = || {
            let twice = (usize::from(loops.chain.calls_min).max(2)..=calls_max).any(|period| {
                usize::from(self.matched(period)) >= period && !self.is_one_call(2 * period)
            });
            twice.then_some(LoopFinding { level: LoopLevel::Soft, rule, count: 2 })
        };
        hard.map(|count| LoopFinding { level: cycle_level(count, loops), rule, count })
            .or_else(second_pass)
    }

    /// Returns how often a cycle of this period was repeated, if that is too often.
    fn count_repeats(&self, period: usize, loops: &LoopSettings) -> Option<u32> {
        let count = usize::from(self.matched(period)) / period + 1;
        let repeats = usize::from(loops.cycle.repeats).max(2);
        (count >= repeats && !self.is_one_call(repeats * period)).then(|| saturating_count(count))
    }

    /// Returns whether the latest `calls` calls are all the same. That is a repeat and not a cycle.
    fn is_one_call(&self, calls: usize) -> bool {
        usize::from(self.matched(1)) + 1 >= calls
    }

    fn matched(&self, period: usize) -> u16 {
        period.checked_sub(1).and_then(|at| self.history.matched.get(at)).copied().unwrap_or(0)
    }

    /// Finds a call that fails repeatedly, whatever happens in between. Calls with unseen effects
    /// are excluded: a test that fails again after a change is normal work.
    pub(super) fn same_failure(
        &self,
        step: &CompletedCall,
        loops: &LoopSettings,
    ) -> Option<LoopFinding> {
        let level = graded_level(self.failures, loops).filter(|_| step.class != CallClass::Exec)?;
        Some(LoopFinding { level, rule: LoopRule::SameFailure, count: self.failures })
    }

    /// Finds the same call with the same result that comes back again and again, with other calls in
    /// between. The other calls may be useful, so this is only a reason for a warning.
    pub(super) fn spread_repeat(&self, loops: &LoopSettings) -> Option<LoopFinding> {
        let CallHistory { steps, unbroken, .. } = self.history;
        let latest = steps.back()?;
        let among = usize::from(loops.similar.among).min(usize::from(*unbroken));
        let same = steps.iter().rev().take(among).filter(|entry| entry.pair == latest.pair);
        let count = saturating_count(same.count());
        let level = LoopLevel::Soft;
        (count >= u32::from(loops.similar.same_result.max(1))).then_some(LoopFinding {
            level,
            rule: LoopRule::SpreadRepeat,
            count,
        })
    }

    /// Finds calls that return nothing new, in any order. An agent may read a file again after it
    /// lost it from its context, and a call with unseen effects may have changed the next result.
    /// Such calls only count from their third time on.
    pub(super) fn stagnation(
        &self,
        step: &CompletedCall,
        loops: &LoopSettings,
    ) -> Option<LoopFinding> {
        let (soft, hard) = (u32::from(loops.graded.soft), u32::from(loops.graded.hard));
        let &CallHistory { stale, still, .. } = self.history;
        let is_repeated = self.count >= soft;
        let (is_soft, is_hard) = match step.class {
            CallClass::Transparent => (false, false),
            CallClass::Exec => (stale >= hard && is_repeated, false),
            CallClass::ReadOnly => {
                (stale >= hard || (stale >= soft && is_repeated), still >= hard && is_repeated)
            }
            CallClass::Other | CallClass::Poll { .. } | CallClass::Wait { .. } => {
                (stale >= soft, still >= hard)
            }
        };
        let level = match (is_soft, is_hard && !self.is_exact(loops)) {
            (_, true) => LoopLevel::Hard,
            (true, false) => LoopLevel::Soft,
            (false, false) => return None,
        };
        Some(LoopFinding { level, rule: LoopRule::Stagnation, count: stale })
    }

    /// Returns whether all stale calls are one call or one cycle. Separate rules count these, so
    /// this rule waits for them.
    fn is_exact(&self, loops: &LoopSettings) -> bool {
        let longest = usize::from(loops.cycle.period_max).min(PERIOD_MAX);
        (1..=longest).any(|period| u32::from(self.matched(period)) >= self.history.stale)
    }
}

/// Returns the level of a cycle. A cycle that runs as often as a repeated call may will not end
/// without help.
fn cycle_level(count: u32, loops: &LoopSettings) -> LoopLevel {
    if count >= u32::from(loops.graded.infinite) { LoopLevel::Infinite } else { LoopLevel::Hard }
}

/// Hashes a call with its result; call and result cannot be swapped.
fn call_result_hash(step: &CompletedCall) -> [u8; 8] {
    // The odd factor keeps all bits, and the digests are already evenly distributed.
    let call = digest_half(&step.call).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    (call ^ digest_half(&step.outcome)).to_le_bytes()
}

fn call_hash(step: &CompletedCall) -> u32 {
    step.call.as_bytes().iter().take(4).fold(0, |half, byte| half << 8 | u32::from(*byte))
}

/// Converts a length to a count. Real lengths are far below the limit.
fn saturating_count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
