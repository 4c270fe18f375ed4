//! The window of the strict profile and the ring of refused calls in plain words:
//! both keep everything and look through all of it. The short memories must
//! never disagree.

use alloc::vec::Vec;

use proptest::prelude::*;

use super::blocked::{Blocked, REFUSED_MAX};
use super::config::Strict;
use super::detector::{Class, Step};
use super::memory::{WINDOW_MAX, Window};
use crate::digest::Digest128;

fn named(number: u8) -> Digest128 {
    Digest128::of(&[number])
}

fn step(call: u8, outcome: u8, class: Class, batch: u64) -> Step {
    Step {
        call: named(call),
        outcome: named(outcome),
        tool: 0,
        coarse: None,
        error: None,
        failed: false,
        class,
        at_ms: 0,
        batch,
    }
}

/// How often the last of these is among the latest of the window.
fn counted(steps: &[(u8, u8, u64)], window: usize) -> u32 {
    let mut kept: Vec<(u8, u8, u64)> = Vec::new();
    for this in steps {
        // Who called twice before it saw a result has repeated nothing yet.
        if kept.last() != Some(this) {
            kept.push(*this);
        }
    }
    let Some(last) = kept.last() else { return 0 };
    let latest = kept.iter().rev().take(window);
    let same = latest.filter(|one| (one.0, one.1) == (last.0, last.1));
    u32::try_from(same.count()).unwrap()
}

/// What can happen to a call that may be refused.
#[derive(Debug, Clone, Copy)]
enum Op {
    Refused { call: u8, reason: u8 },
    Ran { call: u8 },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (0..6_u8, 0..3_u8).prop_map(|(call, reason)| Op::Refused { call, reason }),
        1 => (0..6_u8).prop_map(|call| Op::Ran { call }),
    ]
}

/// How often a call was refused for a reason since it last ran, unless too many
/// others were refused after it.
fn refused(ops: &[Op], call: u8, reason: u8) -> u32 {
    let mut count = 0;
    for (at, op) in ops.iter().enumerate() {
        match *op {
            Op::Ran { call: ran } if ran == call => count = 0,
            Op::Refused { call: other, reason: why } if (other, why) == (call, reason) => {
                count += 1;
            }
            Op::Refused { .. } if count > 0 && is_forgotten(&ops[..=at], (call, reason)) => {
                count = 0;
            }
            Op::Refused { .. } | Op::Ran { .. } => {}
        }
    }
    count
}

/// Whether as many others as are remembered were refused since this one last was:
/// those that ran in between are no longer there, and leave their room.
fn is_forgotten(ops: &[Op], this: (u8, u8)) -> bool {
    let mut others: Vec<(u8, u8)> = Vec::new();
    for op in ops {
        match *op {
            Op::Refused { call, reason } if (call, reason) == this => others.clear(),
            Op::Refused { call, reason } => {
                others.retain(|other| *other != (call, reason));
                others.push((call, reason));
            }
            Op::Ran { call } => others.retain(|other| other.0 != call),
        }
    }
    others.len() >= REFUSED_MAX
}

proptest! {
    #[test]
    fn the_window_counts_what_is_among_the_latest(
        window in 1..20_u16,
        played in prop::collection::vec((0..4_u8, 0..2_u8, any::<bool>(), 0..10_u8), 0..80),
    ) {
        let strict = Strict { window, threshold: 3, override_retries: 1 };
        let (mut fast, mut steps, mut batch) = (Window::default(), Vec::new(), 1);
        for (call, outcome, batched, class) in played {
            batch += u64::from(!batched);
            let class = match class {
                0 => Class::Transparent,
                1 => Class::Wait { max_calls: 1, within_ms: 1 },
                2 => Class::Exec,
                _ => Class::Other,
            };
            let found = fast.note(&step(call, outcome, class, batch), strict);
            if matches!(class, Class::Transparent | Class::Wait { .. }) {
                prop_assert_eq!(found, 0);
                continue;
            }
            steps.push((call, outcome, batch));
            prop_assert_eq!(found, counted(&steps, usize::from(window.min(WINDOW_MAX))));
        }
    }

    #[test]
    fn the_ring_counts_refusals_since_a_call_last_ran(
        ops in prop::collection::vec(op(), 0..80),
    ) {
        let mut fast = Blocked::default();
        let short = |reason: u8| [reason, 0, 0, 0];
        for (at, op) in ops.iter().enumerate() {
            match *op {
                Op::Refused { call, reason } => fast.refused(&named(call), short(reason)),
                Op::Ran { call } => fast.ran(&named(call)),
            }
            for (call, reason) in (0..6).flat_map(|call| (0..3).map(move |reason| (call, reason))) {
                let expected = refused(&ops[..=at], call, reason);
                prop_assert_eq!(fast.count(&named(call), short(reason)), expected);
            }
        }
    }
}
