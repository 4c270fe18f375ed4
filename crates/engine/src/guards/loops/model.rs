//! A plain model of the window of the strict profile and of the refused calls. The model stores
//! every call and searches all of them. The bounded memories must always agree with it.

use alloc::vec::Vec;

use proptest::prelude::*;

use super::blocked_calls::{BLOCKED_CALLS_MAX, BlockedCalls};
use super::config::StrictLevels;
use super::detector::{CallClass, CompletedCall};
use super::loop_state::{StrictWindow, WINDOW_MAX};
use crate::digest::Digest128;

fn digest_of(number: u8) -> Digest128 {
    Digest128::of(&[number])
}

fn step(call: u8, outcome: u8, class: CallClass, batch: u64) -> CompletedCall {
    CompletedCall {
        call: digest_of(call),
        outcome: digest_of(outcome),
        tool: 0,
        coarse: None,
        error: None,
        failed: false,
        class,
        at_ms: 0,
        batch,
    }
}

/// Counts how often the last call occurs in the window.
fn count_in_window(steps: &[(u8, u8, u64)], window: usize) -> u32 {
    let mut recorded: Vec<(u8, u8, u64)> = Vec::new();
    for this in steps {
        // A second call before the first result arrived is not a repetition yet.
        if recorded.last() != Some(this) {
            recorded.push(*this);
        }
    }
    let Some(last) = recorded.last() else { return 0 };
    let latest = recorded.iter().rev().take(window);
    let same = latest.filter(|one| (one.0, one.1) == (last.0, last.1));
    u32::try_from(same.count()).unwrap()
}

/// An event of a call that may be refused.
#[derive(Debug, Clone, Copy)]
enum BlockedOp {
    Refused { call: u8, reason: u8 },
    Ran { call: u8 },
}

fn blocked_op() -> impl Strategy<Value = BlockedOp> {
    prop_oneof![
        8 => (0..6_u8, 0..3_u8).prop_map(|(call, reason)| BlockedOp::Refused { call, reason }),
        1 => (0..6_u8).prop_map(|call| BlockedOp::Ran { call }),
    ]
}

/// Counts the refusals of a call since it last ran, unless too many other calls were refused after
/// it.
fn count_refusals(ops: &[BlockedOp], call: u8, reason: u8) -> u32 {
    let mut count = 0;
    for (at, op) in ops.iter().enumerate() {
        match *op {
            BlockedOp::Ran { call: ran } if ran == call => count = 0,
            BlockedOp::Refused { call: other, reason: why } if (other, why) == (call, reason) => {
                count += 1;
            }
            BlockedOp::Refused { .. } if count > 0 && is_forgotten(&ops[..=at], (call, reason)) => {
                count = 0;
            }
            BlockedOp::Refused { .. } | BlockedOp::Ran { .. } => {}
        }
    }
    count
}

/// Returns whether enough other calls were refused since the last refusal of this one. Calls that
/// ran in between free their entry.
fn is_forgotten(ops: &[BlockedOp], this: (u8, u8)) -> bool {
    let mut others: Vec<(u8, u8)> = Vec::new();
    for op in ops {
        match *op {
            BlockedOp::Refused { call, reason } if (call, reason) == this => others.clear(),
            BlockedOp::Refused { call, reason } => {
                others.retain(|other| *other != (call, reason));
                others.push((call, reason));
            }
            BlockedOp::Ran { call } => others.retain(|other| other.0 != call),
        }
    }
    others.len() >= BLOCKED_CALLS_MAX
}

proptest! {
    #[test]
    fn the_window_counts_equal_calls_among_the_latest(
        window in 1..20_u16,
        played in prop::collection::vec((0..4_u8, 0..2_u8, any::<bool>(), 0..10_u8), 0..80),
    ) {
        let strict = StrictLevels { window, threshold: 3, override_retries: 1 };
        let (mut fast, mut steps, mut batch) = (StrictWindow::default(), Vec::new(), 1);
        for (call, outcome, batched, class) in played {
            batch += u64::from(!batched);
            let class = match class {
                0 => CallClass::Transparent,
                1 => CallClass::Wait { max_calls: 1, within_ms: 1 },
                2 => CallClass::Exec,
                _ => CallClass::Other,
            };
            let found = fast.record(&step(call, outcome, class, batch), strict);
            if matches!(class, CallClass::Transparent | CallClass::Wait { .. }) {
                prop_assert_eq!(found, 0);
                continue;
            }
            steps.push((call, outcome, batch));
            prop_assert_eq!(found, count_in_window(&steps, usize::from(window.min(WINDOW_MAX))));
        }
    }

    #[test]
    fn the_ring_counts_refusals_since_a_call_last_ran(
        ops in prop::collection::vec(blocked_op(), 0..80),
    ) {
        let mut fast = BlockedCalls::default();
        let short = |reason: u8| [reason, 0, 0, 0];
        for (at, op) in ops.iter().enumerate() {
            match *op {
                BlockedOp::Refused { call, reason } => fast.count_refusal(&digest_of(call), short(reason)),
                BlockedOp::Ran { call } => fast.forget(&digest_of(call)),
            }
            for (call, reason) in (0..6).flat_map(|call| (0..3).map(move |reason| (call, reason))) {
                let expected = count_refusals(&ops[..=at], call, reason);
                prop_assert_eq!(fast.count(&digest_of(call), short(reason)), expected);
            }
        }
    }
}
