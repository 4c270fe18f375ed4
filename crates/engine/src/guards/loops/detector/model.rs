//! A plain model of the detector: it stores every call, and it searches all of them for each new
//! one. The fast detector must always agree with it.

use alloc::vec::Vec;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;

use super::history::{HISTORY_CALLS_MAX, PERIOD_MAX};
use super::polls::OPEN_POLLS_MAX;
use super::*;
use crate::definition::{CycleLevels, ErrorLevels, GradedLevels};

/// A call that was counted.
#[derive(Clone, Copy)]
struct ModeledCall {
    step: CompletedCall,
    /// Whether it is an allowed poll.
    waits: bool,
    /// Whether it was made before with this result, among the stored calls.
    stale: bool,
    /// Whether it returned something new, which renews the allowance for waiting.
    renews: bool,
}

#[derive(Default)]
struct DetectorModel {
    steps: Vec<ModeledCall>,
}

fn is_same_call(one: &ModeledCall, other: &ModeledCall) -> bool {
    !one.waits
        && !other.waits
        && one.step.call == other.step.call
        && one.step.outcome == other.step.outcome
}

/// A refused call does not wait for anything.
fn is_refused(step: &CompletedCall) -> bool {
    step.error.is_some_and(|error| error.protocol)
}

/// Returns what a call reports: its error if it failed, or else its result.
fn reported_outcome(step: &CompletedCall) -> (bool, Option<u32>, Option<Digest128>) {
    if step.failed {
        (true, step.error.map(|error| error.fingerprint), None)
    } else {
        (false, None, Some(step.outcome))
    }
}

impl DetectorModel {
    fn record(&mut self, step: &CompletedCall, loops: &LoopSettings) -> DetectorResult {
        let window = usize::from(loops.history).clamp(1, HISTORY_CALLS_MAX);
        let mut current = ModeledCall { step: *step, waits: false, stale: false, renews: false };
        let mut batch =
            self.steps.iter().rev().take_while(|before| before.step.batch == step.batch);
        let remembered: Vec<_> = self.counted_calls().take(window).copied().collect();
        let is_twin = batch.any(|before| is_same_call(before, &current))
            && remembered.iter().any(|before| is_same_call(before, &current));
        if step.class == CallClass::Transparent || is_twin {
            return DetectorResult::Ignored;
        }
        current.waits = self.may_wait(step);
        current.renews = self.renews(step, window);
        current.stale = remembered.iter().any(|before| is_same_call(before, &current));
        self.steps.push(current);
        if current.waits {
            return DetectorResult::Ignored;
        }
        let findings = [
            self.repeat(window, loops),
            self.cycle(window, loops),
            self.same_failure(window, loops),
            self.failing(loops),
            self.error_storm(loops),
            self.stagnation(window, loops),
            self.duplicate_chain(window, loops),
            self.spread_repeat(window, loops),
            self.changing_result(loops),
            self.coarse(loops),
        ];
        let worst = findings.iter().flatten().map(|finding| finding.level).max();
        DetectorResult::Counted(
            findings.into_iter().flatten().find(|finding| Some(finding.level) == worst),
        )
    }

    /// Returns the counted calls, the latest first.
    fn counted_calls(&self) -> impl Iterator<Item = &ModeledCall> {
        self.steps.iter().rev().filter(|call| !call.waits)
    }

    /// Returns the counted calls since the actor last waited.
    fn unbroken(&self) -> impl Iterator<Item = &ModeledCall> {
        self.steps.iter().rev().take_while(|call| !call.waits)
    }

    /// Returns whether a call may wait longer.
    fn may_wait(&self, step: &CompletedCall) -> bool {
        match step.class {
            _ if is_refused(step) => false,
            CallClass::Poll { until_changed, max_calls, within_ms } => {
                let (calls, since) = self.count_poll(step, until_changed);
                calls <= max_calls && step.at_ms - since <= within_ms
            }
            CallClass::Wait { max_calls, within_ms } => {
                let since = self.steps.iter().rposition(|call| call.renews);
                let since = &self.steps[since.map_or(0, |at| at + 1)..];
                let mut idle = since.iter().map(|call| &call.step).filter(|before| {
                    matches!(before.class, CallClass::Wait { .. }) && !is_refused(before)
                });
                let calls = u32::try_from(idle.clone().count() + 1).unwrap();
                let first = idle.next().map_or(step.at_ms, |first| first.at_ms);
                calls <= max_calls && step.at_ms - first <= within_ms
            }
            _ => false,
        }
    }

    /// Returns whether a call returned something new: a poll with a changed result, or another call
    /// that succeeded with a new result.
    fn renews(&self, step: &CompletedCall, window: usize) -> bool {
        match step.class {
            CallClass::Wait { .. } => false,
            CallClass::Poll { .. } if is_refused(step) => false,
            CallClass::Poll { .. } => {
                let mut others = Vec::new();
                let asked = self.steps.iter().rev().map(|call| &call.step);
                let mut asked = asked.filter(|before| {
                    matches!(before.class, CallClass::Poll { .. }) && !is_refused(before)
                });
                let before = asked.find(|before| {
                    if before.call != step.call && !others.contains(&before.call) {
                        others.push(before.call);
                    }
                    before.call == step.call
                });
                others.len() < OPEN_POLLS_MAX
                    && before.is_some_and(|before| before.outcome != step.outcome)
            }
            _ => {
                let this = ModeledCall { step: *step, waits: false, stale: false, renews: false };
                !step.failed
                    && !self.counted_calls().take(window).any(|before| is_same_call(before, &this))
            }
        }
    }

    /// Returns how often a poll was repeated, and since when.
    fn count_poll(&self, step: &CompletedCall, until_changed: bool) -> (u32, u64) {
        let (mut calls, mut since, mut others) = (1, step.at_ms, Vec::new());
        for before in self.steps.iter().rev() {
            if !matches!(before.step.class, CallClass::Poll { .. }) || is_refused(&before.step) {
                continue;
            }
            if before.step.call != step.call {
                if !others.contains(&before.step.call) {
                    others.push(before.step.call);
                }
                continue;
            }
            let changed = until_changed && before.step.outcome != step.outcome;
            if changed || others.len() >= OPEN_POLLS_MAX {
                break;
            }
            calls += 1;
            since = before.step.at_ms;
            others.clear();
        }
        (calls, since)
    }

    fn last(&self) -> &ModeledCall {
        self.steps.last().unwrap()
    }

    /// Counts how many of the latest calls equal the call `period` calls earlier.
    fn matched(&self, period: usize, window: usize) -> usize {
        if period > window {
            return 0;
        }
        let (later, earlier) = (self.unbroken(), self.unbroken().skip(period));
        later.zip(earlier).take_while(|(later, earlier)| is_same_call(later, earlier)).count()
    }

    fn repeat(&self, window: usize, loops: &LoopSettings) -> Option<LoopFinding> {
        let count = u32::try_from(self.matched(1, window) + 1).unwrap();
        let level = graded_level(count, loops)?;
        Some(LoopFinding { level, rule: LoopRule::Repeat, count })
    }

    /// Counts how often the latest calls repeat the same sequence, unless the sequence is one
    /// repeated call.
    fn rounds(&self, period: usize, needed: usize, window: usize) -> Option<u32> {
        let rounds = self.matched(period, window) / period + 1;
        let varied =
            self.unbroken().take(needed * period).any(|call| !is_same_call(call, self.last()));
        (rounds >= needed && varied).then(|| u32::try_from(rounds).unwrap())
    }

    fn level(rounds: u32, loops: &LoopSettings) -> LoopLevel {
        if rounds >= u32::from(loops.graded.infinite) {
            LoopLevel::Infinite
        } else {
            LoopLevel::Hard
        }
    }

    fn cycle(&self, window: usize, loops: &LoopSettings) -> Option<LoopFinding> {
        let needed = usize::from(loops.cycle.repeats);
        let count = (2..=usize::from(loops.cycle.period_max))
            .find_map(|period| self.rounds(period, needed, window))?;
        Some(LoopFinding { level: Self::level(count, loops), rule: LoopRule::Cycle, count })
    }

    fn duplicate_chain(&self, window: usize, loops: &LoopSettings) -> Option<LoopFinding> {
        let rule = LoopRule::DuplicateChain;
        let needed = usize::from(loops.cycle.repeats);
        let calls_max = usize::from(loops.chain.calls_max).min(PERIOD_MAX);
        let longer = usize::from(loops.cycle.period_max) + 1..=calls_max;
        for period in longer {
            if let Some(count) = self.rounds(period, needed, window) {
                return Some(LoopFinding { level: Self::level(count, loops), rule, count });
            }
        }
        let mut chains = usize::from(loops.chain.calls_min)..=calls_max;
        let twice = chains.any(|period| self.rounds(period, 2, window).is_some());
        twice.then_some(LoopFinding { level: LoopLevel::Soft, rule, count: 2 })
    }

    fn spread_repeat(&self, window: usize, loops: &LoopSettings) -> Option<LoopFinding> {
        let latest = self.unbroken().take(usize::from(loops.similar.among).min(window));
        let same = latest.filter(|call| is_same_call(call, self.last()));
        let count = u32::try_from(same.count()).unwrap();
        (count >= u32::from(loops.similar.same_result)).then_some(LoopFinding {
            level: LoopLevel::Soft,
            rule: LoopRule::SpreadRepeat,
            count,
        })
    }

    fn same_failure(&self, window: usize, loops: &LoopSettings) -> Option<LoopFinding> {
        let last = self.last().step;
        let failures = self
            .counted_calls()
            .take(window + 1)
            .filter(|call| call.step.failed && last.failed && call.step.call == last.call);
        let count = u32::try_from(failures.count()).unwrap();
        let level = graded_level(count, loops).filter(|_| last.class != CallClass::Exec)?;
        Some(LoopFinding { level, rule: LoopRule::SameFailure, count })
    }

    /// Finds the same failure, with only waiting in between.
    fn failing(&self, loops: &LoopSettings) -> Option<LoopFinding> {
        let last = self.last();
        let failures =
            self.counted_calls().take_while(|call| call.step.failed && is_same_call(call, last));
        let count = u32::try_from(failures.count()).unwrap();
        let level = graded_level(count, loops).filter(|_| last.step.failed)?;
        Some(LoopFinding { level, rule: LoopRule::SameFailure, count })
    }

    fn stagnation(&self, window: usize, loops: &LoopSettings) -> Option<LoopFinding> {
        let last = self.last();
        let stretch: Vec<_> = self.unbroken().take_while(|call| call.stale).collect();
        let visible = stretch.iter().take_while(|call| call.step.class != CallClass::Exec);
        let (stale, still) = (stretch.len(), visible.count());
        let before = self.counted_calls().skip(1).take(window);
        let count = 1 + before.filter(|before| is_same_call(before, last)).count();
        let (soft, hard) = (usize::from(loops.graded.soft), usize::from(loops.graded.hard));
        let is_third = count >= soft;
        let is_hard = match last.step.class {
            CallClass::Exec | CallClass::Transparent => false,
            CallClass::ReadOnly => still >= hard && is_third,
            CallClass::Other | CallClass::Poll { .. } | CallClass::Wait { .. } => still >= hard,
        };
        let is_soft = match last.step.class {
            CallClass::Transparent => false,
            CallClass::Exec => stale >= hard && is_third,
            CallClass::ReadOnly => stale >= hard || stale >= soft && is_third,
            CallClass::Other | CallClass::Poll { .. } | CallClass::Wait { .. } => stale >= soft,
        };
        let is_exact = (1..=usize::from(loops.cycle.period_max))
            .any(|period| self.matched(period, window) >= stale);
        let level = if is_hard && !is_exact {
            LoopLevel::Hard
        } else if is_soft {
            LoopLevel::Soft
        } else {
            return None;
        };
        let count = u32::try_from(stale).unwrap();
        Some(LoopFinding { level, rule: LoopRule::Stagnation, count })
    }

    fn error_storm(&self, loops: &LoopSettings) -> Option<LoopFinding> {
        let last = self.last().step;
        let is_same_error = |call: &&ModeledCall| {
            let step = &call.step;
            step.failed
                && (step.class != CallClass::Exec || is_refused(step))
                && step.tool == last.tool
                && reported_outcome(step) == reported_outcome(&last)
        };
        let storms: Vec<_> = self.counted_calls().take_while(is_same_error).collect();
        if storms.is_empty() {
            return None;
        }
        let batches = storms.windows(2).filter(|pair| pair[0].step.batch != pair[1].step.batch);
        let count = u32::try_from(batches.count() + 1).unwrap();
        let reached = |level: u16| count >= u32::from(level);
        let level = match (reached(loops.errors.soft), reached(loops.errors.hard)) {
            (_, true) => LoopLevel::Hard,
            (true, false) => LoopLevel::Soft,
            (false, false) => return None,
        };
        Some(LoopFinding { level, rule: LoopRule::ErrorStorm, count })
    }

    fn changing_result(&self, loops: &LoopSettings) -> Option<LoopFinding> {
        let last = self.last().step;
        let same_calls = self.unbroken().take_while(|call| call.step.call == last.call);
        let count = u32::try_from(same_calls.count()).unwrap();
        let is_waiting = matches!(last.class, CallClass::Poll { .. } | CallClass::Wait { .. });
        (count >= u32::from(loops.similar.changing_results) && !is_waiting).then_some(LoopFinding {
            level: LoopLevel::Soft,
            rule: LoopRule::ChangingResult,
            count,
        })
    }

    fn coarse(&self, loops: &LoopSettings) -> Option<LoopFinding> {
        let last = self.last().step;
        let about = |step: &CompletedCall| (step.coarse, reported_outcome(step));
        last.coarse?;
        let is_alike = |call: &&ModeledCall| about(&call.step) == about(&last);
        let count = if last.failed {
            self.counted_calls().take_while(is_alike).count()
        } else {
            self.unbroken().take_while(is_alike).count()
        };
        let count = u32::try_from(count).unwrap();
        let similar = loops.similar;
        let soft = if last.failed { similar.same_subject_failing } else { similar.same_subject };
        (count >= u32::from(soft)).then_some(LoopFinding {
            level: LoopLevel::Soft,
            rule: LoopRule::Coarse,
            count,
        })
    }
}

/// An event of the test session.
#[derive(Debug, Clone, Copy)]
enum DetectorEvent {
    /// A call with one of a few results, in the batch of the previous call or not.
    Call {
        call: u8,
        outcome: u8,
        batched: bool,
        after_ms: u16,
    },
    /// Repeats the latest calls with this period.
    Again {
        period: u8,
        steps: u8,
    },
    Human,
}

fn detector_event() -> impl Strategy<Value = DetectorEvent> {
    prop_oneof![
        20 => (0..16_u8, 0..4_u8, prop::bool::weighted(0.15), 0..2000_u16).prop_map(
            |(call, outcome, batched, after_ms)| DetectorEvent::Call { call, outcome, batched, after_ms }
        ),
        6 => (1..24_u8, 1..70_u8).prop_map(|(period, steps)| DetectorEvent::Again { period, steps }),
        1 => Just(DetectorEvent::Human),
    ]
}

fn settings() -> impl Strategy<Value = LoopSettings> {
    let some = (1..70_u16, 2..5_u16, 0..4_u16, 0..6_u16, 1..12_u16, 2..5_u16, 1..6_u16);
    some.prop_map(|(history, soft, hard, infinite, period_max, repeats, errors)| LoopSettings {
        history,
        graded: GradedLevels { soft, hard: soft + hard, infinite: soft + hard + infinite },
        cycle: CycleLevels { period_max, repeats },
        errors: ErrorLevels { soft: errors, hard: errors + 3 },
        ..LoopSettings::default()
    })
}

/// Builds a call with its result. The class and the tool depend on the call number only.
fn step((call, outcome): (u8, u8), digests: &[Digest128], at_ms: u64, batch: u64) -> CompletedCall {
    let class = match call {
        0 => CallClass::Transparent,
        1 => CallClass::Poll { until_changed: true, max_calls: 4, within_ms: 8000 },
        2 => CallClass::Poll { until_changed: false, max_calls: 6, within_ms: 4000 },
        3 | 4 => CallClass::Poll { until_changed: true, max_calls: 2, within_ms: u64::MAX },
        5 => CallClass::Poll { until_changed: true, max_calls: 1, within_ms: u64::MAX },
        6..9 => CallClass::Exec,
        9..11 => CallClass::ReadOnly,
        14 | 15 => CallClass::Wait { max_calls: u32::from(call) - 9, within_ms: 6000 },
        _ => CallClass::Other,
    };
    let failed = outcome >= 2;
    // Two results are the same error. One failure has no error class.
    let error = ErrorClass { fingerprint: u32::from(call % 2), protocol: call % 3 == 0 };
    CompletedCall {
        call: digests[usize::from(call)],
        outcome: digests[usize::from(outcome)],
        tool: u64::from(call / 3),
        coarse: (call % 4 != 0).then_some(u64::from(call / 4)),
        error: (failed && call != 11).then_some(error),
        failed,
        class,
        at_ms,
        batch,
    }
}

/// Runs one session through both detectors and returns the number of events.
fn compare(ops: &[DetectorEvent], loops: &LoopSettings) -> usize {
    let (mut fast, mut model) = (LoopDetector::default(), DetectorModel::default());
    let (mut played, mut events): (Vec<(u8, u8)>, usize) = (Vec::new(), 0);
    let (mut at_ms, mut batch) = (0, 1);
    let digests: Vec<_> = (0..16).map(|number| Digest128::of(&[number])).collect();
    let mut play = |call: u8, outcome: u8, batched: bool, after_ms: u16| {
        at_ms += u64::from(after_ms);
        batch += u64::from(!batched);
        let step = step((call, outcome), &digests, at_ms, batch);
        let before = fast.clone();
        let (found, expected) = (fast.record(&step, loops), model.record(&step, loops));
        assert_eq!(found, expected, "{step:?} after {before:?}");
    };
    let mut reset = false;
    for op in ops {
        if reset {
            break;
        }
        match *op {
            DetectorEvent::Call { call, outcome, batched, after_ms } => {
                play(call, outcome, batched, after_ms);
                played.push((call, outcome));
                events += 1;
            }
            DetectorEvent::Again { period, steps } => {
                for _ in 0..steps {
                    let Some(at) = played.len().checked_sub(usize::from(period)) else { break };
                    let (call, outcome) = played[at];
                    play(call, outcome, false, 500);
                    played.push((call, outcome));
                    events += 1;
                }
            }
            DetectorEvent::Human => reset = true,
        }
    }
    let bytes = postcard::to_allocvec(&fast).unwrap();
    assert_eq!(postcard::from_bytes::<LoopDetector>(&bytes).unwrap(), fast);
    assert!(bytes.len() < 2048, "{} bytes", bytes.len());
    fast.reset();
    assert_eq!(fast, LoopDetector::default());
    // A message of a person starts a new session.
    let rest = ops.iter().position(|op| matches!(op, DetectorEvent::Human)).map_or(0, |at| at + 1);
    if reset { events + compare(&ops[rest..], loops) } else { events }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_fast_detector_agrees_with_the_plain_one(
        ops in prop::collection::vec(detector_event(), 0..60),
        loops in settings(),
    ) {
        compare(&ops, &loops);
    }
}

/// Takes a minute: `cargo nextest run -p jackline-engine --run-ignored only a_million`.
#[test]
#[ignore = "a million events take about a minute"]
fn a_million_events_find_no_disagreement() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = (prop::collection::vec(detector_event(), 0..120), settings());
    let mut events = 0;
    while events < 1_000_000 {
        let (ops, loops) = strategy.new_tree(&mut runner).unwrap().current();
        events += compare(&ops, &loops);
    }
}
