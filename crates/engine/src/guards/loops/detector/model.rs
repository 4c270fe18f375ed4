//! The detector in plain words: it keeps every step, and looks through all of
//! them for every one. The fast one must never disagree.

use alloc::vec::Vec;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;

use super::history::{CHAIN_MIN, PERIOD_MAX, STEPS_MAX};
use super::polls::POLLS_MAX;
use super::streaks::{CHANGING_SOFT, COARSE_SOFT};
use super::*;
use crate::definition::{Cycle, Errors, Graded};

/// A step that was not passed over.
#[derive(Clone, Copy)]
struct Taken {
    step: Step,
    /// It is a poll that may go on.
    waits: bool,
    /// It was made before with this result, within what is remembered.
    stale: bool,
    /// Something new came of it: who waits may wait anew.
    renews: bool,
}

#[derive(Default)]
struct Model {
    steps: Vec<Taken>,
}

fn same(one: &Taken, other: &Taken) -> bool {
    !one.waits
        && !other.waits
        && one.step.call == other.step.call
        && one.step.outcome == other.step.outcome
}

/// Whoever is refused waits for nothing.
fn is_refused(step: &Step) -> bool {
    step.error.is_some_and(|error| error.protocol)
}

/// What a failed step says is its error; what another says is its result.
fn says(step: &Step) -> (bool, Option<u32>, Option<Digest128>) {
    if step.failed {
        (true, step.error.map(|error| error.fingerprint), None)
    } else {
        (false, None, Some(step.outcome))
    }
}

impl Model {
    fn note(&mut self, step: &Step, loops: &Loops) -> Noted {
        let window = usize::from(loops.history).clamp(1, STEPS_MAX);
        let mut taken = Taken { step: *step, waits: false, stale: false, renews: false };
        let mut batch =
            self.steps.iter().rev().take_while(|before| before.step.batch == step.batch);
        let remembered: Vec<_> = self.noted().take(window).copied().collect();
        let twin = batch.any(|before| same(before, &taken))
            && remembered.iter().any(|before| same(before, &taken));
        if step.class == Class::Transparent || twin {
            return Noted::PassedOver;
        }
        taken.waits = self.may_wait(step);
        taken.renews = self.renews(step, window);
        taken.stale = remembered.iter().any(|before| same(before, &taken));
        self.steps.push(taken);
        if taken.waits {
            return Noted::PassedOver;
        }
        let found = [
            self.repeat(window, loops),
            self.cycle(window, loops),
            self.same_failure(window, loops),
            self.failing(loops),
            self.error_storm(loops),
            self.stagnation(window, loops),
            self.duplicate_chain(window, loops),
            self.changing_result(),
            self.coarse(loops),
        ];
        let worst = found.iter().flatten().map(|found| found.level).max();
        Noted::Taken(found.into_iter().flatten().find(|found| Some(found.level) == worst))
    }

    /// The steps that count, the latest first.
    fn noted(&self) -> impl Iterator<Item = &Taken> {
        self.steps.iter().rev().filter(|taken| !taken.waits)
    }

    /// The same, since the actor last waited.
    fn unbroken(&self) -> impl Iterator<Item = &Taken> {
        self.steps.iter().rev().take_while(|taken| !taken.waits)
    }

    /// Looks how long has been waited already.
    fn may_wait(&self, step: &Step) -> bool {
        match step.class {
            _ if is_refused(step) => false,
            Class::Poll { until_changed, max_calls, within_ms } => {
                let (calls, since) = self.asked(step, until_changed);
                calls <= max_calls && step.at_ms - since <= within_ms
            }
            Class::Wait { max_calls, within_ms } => {
                let since = self.steps.iter().rposition(|taken| taken.renews);
                let since = &self.steps[since.map_or(0, |at| at + 1)..];
                let mut idle = since.iter().map(|taken| &taken.step).filter(|before| {
                    matches!(before.class, Class::Wait { .. }) && !is_refused(before)
                });
                let calls = u32::try_from(idle.clone().count() + 1).unwrap();
                let first = idle.next().map_or(step.at_ms, |first| first.at_ms);
                calls <= max_calls && step.at_ms - first <= within_ms
            }
            _ => false,
        }
    }

    /// Whether something came of a step that was not there before: of a poll
    /// another answer, of a call another result, unless it failed.
    fn renews(&self, step: &Step, window: usize) -> bool {
        match step.class {
            Class::Wait { .. } => false,
            Class::Poll { .. } if is_refused(step) => false,
            Class::Poll { .. } => {
                let mut others = Vec::new();
                let asked = self.steps.iter().rev().map(|taken| &taken.step);
                let mut asked = asked.filter(|before| {
                    matches!(before.class, Class::Poll { .. }) && !is_refused(before)
                });
                let before = asked.find(|before| {
                    if before.call != step.call && !others.contains(&before.call) {
                        others.push(before.call);
                    }
                    before.call == step.call
                });
                others.len() < POLLS_MAX
                    && before.is_some_and(|before| before.outcome != step.outcome)
            }
            _ => {
                let this = Taken { step: *step, waits: false, stale: false, renews: false };
                !step.failed && !self.noted().take(window).any(|before| same(before, &this))
            }
        }
    }

    /// How often a poll has been asked, and since when.
    fn asked(&self, step: &Step, until_changed: bool) -> (u32, u64) {
        let (mut calls, mut since, mut others) = (1, step.at_ms, Vec::new());
        for before in self.steps.iter().rev() {
            if !matches!(before.step.class, Class::Poll { .. }) || is_refused(&before.step) {
                continue;
            }
            if before.step.call != step.call {
                if !others.contains(&before.step.call) {
                    others.push(before.step.call);
                }
                continue;
            }
            let changed = until_changed && before.step.outcome != step.outcome;
            if changed || others.len() >= POLLS_MAX {
                break;
            }
            calls += 1;
            since = before.step.at_ms;
            others.clear();
        }
        (calls, since)
    }

    fn last(&self) -> &Taken {
        self.steps.last().unwrap()
    }

    /// How many of the latest are the same as the one so many steps earlier.
    fn matched(&self, period: usize, window: usize) -> usize {
        if period > window {
            return 0;
        }
        let (later, earlier) = (self.unbroken(), self.unbroken().skip(period));
        later.zip(earlier).take_while(|(later, earlier)| same(later, earlier)).count()
    }

    fn repeat(&self, window: usize, loops: &Loops) -> Option<Finding> {
        let count = u32::try_from(self.matched(1, window) + 1).unwrap();
        let level = graded(count, loops)?;
        Some(Finding { level, rule: LoopRule::Repeat, count })
    }

    /// How often the latest steps are the same stretch of this length, unless
    /// that stretch is one step over and over.
    fn rounds(&self, period: usize, needed: usize, window: usize) -> Option<u32> {
        let rounds = self.matched(period, window) / period + 1;
        let varied = self.unbroken().take(needed * period).any(|taken| !same(taken, self.last()));
        (rounds >= needed && varied).then(|| u32::try_from(rounds).unwrap())
    }

    fn level(rounds: u32, loops: &Loops) -> LoopLevel {
        if rounds >= u32::from(loops.graded.infinite) {
            LoopLevel::Infinite
        } else {
            LoopLevel::Hard
        }
    }

    fn cycle(&self, window: usize, loops: &Loops) -> Option<Finding> {
        let needed = usize::from(loops.cycle.repeats);
        let count = (2..=usize::from(loops.cycle.period_max))
            .find_map(|period| self.rounds(period, needed, window))?;
        Some(Finding { level: Self::level(count, loops), rule: LoopRule::Cycle, count })
    }

    fn duplicate_chain(&self, window: usize, loops: &Loops) -> Option<Finding> {
        let rule = LoopRule::DuplicateChain;
        let needed = usize::from(loops.cycle.repeats);
        let longer = usize::from(loops.cycle.period_max) + 1..=PERIOD_MAX;
        for period in longer {
            if let Some(count) = self.rounds(period, needed, window) {
                return Some(Finding { level: Self::level(count, loops), rule, count });
            }
        }
        let twice = (CHAIN_MIN..=PERIOD_MAX).any(|period| self.rounds(period, 2, window).is_some());
        twice.then_some(Finding { level: LoopLevel::Soft, rule, count: 2 })
    }

    fn same_failure(&self, window: usize, loops: &Loops) -> Option<Finding> {
        let last = self.last().step;
        let failures = self
            .noted()
            .take(window + 1)
            .filter(|taken| taken.step.failed && last.failed && taken.step.call == last.call);
        let count = u32::try_from(failures.count()).unwrap();
        let level = graded(count, loops).filter(|_| last.class != Class::Exec)?;
        Some(Finding { level, rule: LoopRule::SameFailure, count })
    }

    /// The same with nothing but waiting in between.
    fn failing(&self, loops: &Loops) -> Option<Finding> {
        let last = self.last();
        let failures = self.noted().take_while(|taken| taken.step.failed && same(taken, last));
        let count = u32::try_from(failures.count()).unwrap();
        let level = graded(count, loops).filter(|_| last.step.failed)?;
        Some(Finding { level, rule: LoopRule::SameFailure, count })
    }

    fn stagnation(&self, window: usize, loops: &Loops) -> Option<Finding> {
        let last = self.last();
        let stretch: Vec<_> = self.unbroken().take_while(|taken| taken.stale).collect();
        let seen_into = stretch.iter().take_while(|taken| taken.step.class != Class::Exec);
        let (stale, still) = (stretch.len(), seen_into.count());
        let before = self.noted().skip(1).take(window);
        let count = 1 + before.filter(|before| same(before, last)).count();
        let (soft, hard) = (usize::from(loops.graded.soft), usize::from(loops.graded.hard));
        let third = count >= soft;
        let is_hard = match last.step.class {
            Class::Exec | Class::Transparent => false,
            Class::ReadOnly => still >= hard && third,
            Class::Other | Class::Poll { .. } | Class::Wait { .. } => still >= hard,
        };
        let is_soft = match last.step.class {
            Class::Transparent => false,
            Class::Exec => stale >= hard && third,
            Class::ReadOnly => stale >= hard || stale >= soft && third,
            Class::Other | Class::Poll { .. } | Class::Wait { .. } => stale >= soft,
        };
        let exact = (1..=usize::from(loops.cycle.period_max))
            .any(|period| self.matched(period, window) >= stale);
        let level = if is_hard && !exact {
            LoopLevel::Hard
        } else if is_soft {
            LoopLevel::Soft
        } else {
            return None;
        };
        let count = u32::try_from(stale).unwrap();
        Some(Finding { level, rule: LoopRule::Stagnation, count })
    }

    fn error_storm(&self, loops: &Loops) -> Option<Finding> {
        let last = self.last().step;
        let such = |taken: &&Taken| {
            let step = &taken.step;
            step.failed
                && (step.class != Class::Exec || is_refused(step))
                && step.tool == last.tool
                && says(step) == says(&last)
        };
        let storms: Vec<_> = self.noted().take_while(such).collect();
        if storms.is_empty() {
            return None;
        }
        let batches = storms.windows(2).filter(|two| two[0].step.batch != two[1].step.batch);
        let count = u32::try_from(batches.count() + 1).unwrap();
        let reached = |level: u16| count >= u32::from(level);
        let level = match (reached(loops.errors.soft), reached(loops.errors.hard)) {
            (_, true) => LoopLevel::Hard,
            (true, false) => LoopLevel::Soft,
            (false, false) => return None,
        };
        Some(Finding { level, rule: LoopRule::ErrorStorm, count })
    }

    fn changing_result(&self) -> Option<Finding> {
        let last = self.last().step;
        let such = self.unbroken().take_while(|taken| taken.step.call == last.call);
        let count = u32::try_from(such.count()).unwrap();
        let waits = matches!(last.class, Class::Poll { .. } | Class::Wait { .. });
        (count >= CHANGING_SOFT && !waits).then_some(Finding {
            level: LoopLevel::Soft,
            rule: LoopRule::ChangingResult,
            count,
        })
    }

    fn coarse(&self, loops: &Loops) -> Option<Finding> {
        let last = self.last().step;
        let about = |step: &Step| (step.coarse, says(step));
        last.coarse?;
        let such = |taken: &&Taken| about(&taken.step) == about(&last);
        let count = if last.failed {
            self.noted().take_while(such).count()
        } else {
            self.unbroken().take_while(such).count()
        };
        let count = u32::try_from(count).unwrap();
        let soft = if last.failed { u32::from(loops.errors.soft) } else { COARSE_SOFT };
        (count >= soft).then_some(Finding { level: LoopLevel::Soft, rule: LoopRule::Coarse, count })
    }
}

/// What can happen.
#[derive(Debug, Clone, Copy)]
enum Op {
    /// A call with one of a few results, in the batch of the one before or not.
    Call {
        call: u8,
        outcome: u8,
        batched: bool,
        after_ms: u16,
    },
    /// The latest steps once more, from so many steps earlier.
    Again {
        period: u8,
        steps: u8,
    },
    Human,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        20 => (0..16_u8, 0..4_u8, prop::bool::weighted(0.15), 0..2000_u16).prop_map(
            |(call, outcome, batched, after_ms)| Op::Call { call, outcome, batched, after_ms }
        ),
        6 => (1..24_u8, 1..70_u8).prop_map(|(period, steps)| Op::Again { period, steps }),
        1 => Just(Op::Human),
    ]
}

fn settings() -> impl Strategy<Value = Loops> {
    let some = (1..70_u16, 2..5_u16, 0..4_u16, 0..6_u16, 1..12_u16, 2..5_u16, 1..6_u16);
    some.prop_map(|(history, soft, hard, infinite, period_max, repeats, errors)| Loops {
        history,
        graded: Graded { soft, hard: soft + hard, infinite: soft + hard + infinite },
        cycle: Cycle { period_max, repeats },
        errors: Errors { soft: errors, hard: errors + 3 },
        ..Loops::default()
    })
}

/// A step of a call; what a call is like depends on the call alone.
fn step((call, outcome): (u8, u8), digests: &[Digest128], at_ms: u64, batch: u64) -> Step {
    let class = match call {
        0 => Class::Transparent,
        1 => Class::Poll { until_changed: true, max_calls: 4, within_ms: 8000 },
        2 => Class::Poll { until_changed: false, max_calls: 6, within_ms: 4000 },
        3 | 4 => Class::Poll { until_changed: true, max_calls: 2, within_ms: u64::MAX },
        5 => Class::Poll { until_changed: true, max_calls: 1, within_ms: u64::MAX },
        6..9 => Class::Exec,
        9..11 => Class::ReadOnly,
        14 | 15 => Class::Wait { max_calls: u32::from(call) - 9, within_ms: 6000 },
        _ => Class::Other,
    };
    let failed = outcome >= 2;
    // Two results are the same error, and one failure tells nothing.
    let error = ErrorClass { fingerprint: u32::from(call % 2), protocol: call % 3 == 0 };
    Step {
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

/// Plays one session through both, and says how many events it was.
fn compare(ops: &[Op], loops: &Loops) -> usize {
    let (mut fast, mut model) = (Detector::default(), Model::default());
    let (mut played, mut events): (Vec<(u8, u8)>, usize) = (Vec::new(), 0);
    let (mut at_ms, mut batch) = (0, 1);
    let digests: Vec<_> = (0..16).map(|number| Digest128::of(&[number])).collect();
    let mut play = |call: u8, outcome: u8, batched: bool, after_ms: u16| {
        at_ms += u64::from(after_ms);
        batch += u64::from(!batched);
        let step = step((call, outcome), &digests, at_ms, batch);
        let before = fast.clone();
        let (found, expected) = (fast.note(&step, loops), model.note(&step, loops));
        assert_eq!(found, expected, "{step:?} after {before:?}");
    };
    let mut reset = false;
    for op in ops {
        if reset {
            break;
        }
        match *op {
            Op::Call { call, outcome, batched, after_ms } => {
                play(call, outcome, batched, after_ms);
                played.push((call, outcome));
                events += 1;
            }
            Op::Again { period, steps } => {
                for _ in 0..steps {
                    let Some(at) = played.len().checked_sub(usize::from(period)) else { break };
                    let (call, outcome) = played[at];
                    play(call, outcome, false, 500);
                    played.push((call, outcome));
                    events += 1;
                }
            }
            Op::Human => reset = true,
        }
    }
    let bytes = postcard::to_allocvec(&fast).unwrap();
    assert_eq!(postcard::from_bytes::<Detector>(&bytes).unwrap(), fast);
    assert!(bytes.len() < 2048, "{} bytes", bytes.len());
    fast.human();
    assert_eq!(fast, Detector::default());
    // After a person has spoken it is a new session.
    let rest = ops.iter().position(|op| matches!(op, Op::Human)).map_or(0, |at| at + 1);
    if reset { events + compare(&ops[rest..], loops) } else { events }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_fast_detector_is_the_plain_one(
        ops in prop::collection::vec(op(), 0..60),
        loops in settings(),
    ) {
        compare(&ops, &loops);
    }
}

/// Takes a minute: `cargo nextest run -p jackline-engine --run-ignored only a_million`.
#[test]
#[ignore = "a million events take a while"]
fn a_million_events_make_no_difference() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = (prop::collection::vec(op(), 0..120), settings());
    let mut events = 0;
    while events < 1_000_000 {
        let (ops, loops) = strategy.new_tree(&mut runner).unwrap().current();
        events += compare(&ops, &loops);
    }
}
