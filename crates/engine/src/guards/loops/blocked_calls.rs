//! Counts refused calls: an agent that proposes the same call again and is refused for the same
//! reason is in a loop, too.

use alloc::format;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::config::{LoopProfile, LoopSettings};
use super::detector::LoopLevel;
use super::overrides;
use crate::digest::Digest128;
use crate::verdict::{Decision, Violation};

/// How many refused calls are stored. A new one replaces the one that was refused longest ago.
pub(super) const BLOCKED_CALLS_MAX: usize = 8;

/// A short hash of the reason.
type ReasonHash = [u8; 4];

/// The refused calls, the latest at the end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct BlockedCalls(Vec<BlockedCall>);

/// A call that was refused for one reason, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct BlockedCall {
    call: [u8; 4],
    reason: ReasonHash,
    count: u16,
}

impl BlockedCalls {
    /// Returns how often a call was refused for this reason.
    pub(crate) fn count(&self, call: &Digest128, reason: ReasonHash) -> u32 {
        let entry = self.0.iter().find(|entry| entry.matches(call_hash(call), reason));
        entry.map_or(0, |entry| entry.count.into())
    }

    /// Counts a refusal.
    pub(crate) fn count_refusal(&mut self, call: &Digest128, reason: ReasonHash) {
        let call = call_hash(call);
        let entry = self.0.iter().position(|refused| refused.matches(call, reason));
        let count = entry.map_or(0, |entry| self.0.remove(entry).count);
        if self.0.len() >= BLOCKED_CALLS_MAX {
            self.0.remove(0);
        }
        self.0.push(BlockedCall { call, reason, count: count.saturating_add(1) });
    }

    /// Forgets a call that has run.
    pub(crate) fn forget(&mut self, call: &Digest128) {
        let call = call_hash(call);
        self.0.retain(|refused| refused.call != call);
    }

    /// Returns the highest count of refusals.
    pub(crate) fn count_max(&self) -> u32 {
        self.0.iter().map(|refused| refused.count.into()).max().unwrap_or(0)
    }
}

impl BlockedCall {
    fn matches(&self, call: [u8; 4], reason: ReasonHash) -> bool {
        (self.call, self.reason) == (call, reason)
    }
}

fn call_hash(call: &Digest128) -> [u8; 4] {
    call.as_bytes().first_chunk().copied().unwrap_or_default()
}

/// Returns why a call is refused: the strongest enforced violation, except for those about loops.
/// `None` if the call runs or the session stops.
pub(crate) fn refusal_reason(violations: &[Violation]) -> Option<ReasonHash> {
    let own = |v: &Violation| v.guard == super::GUARD && !overrides::is_about_override(v);
    let enforced = violations.iter().filter(|v| v.enforced && !own(v));
    // Of equally strong violations, the first one in the order of the verdict.
    let strongest = enforced.rev().max_by_key(|v| v.decision)?;
    matches!(strongest.decision, Decision::Ask | Decision::Deny | Decision::Pause)
        .then(|| format!("{}\n{}", strongest.guard, strongest.subtype))
        .map(|reason| call_hash(&Digest128::of(reason.as_bytes())))
}

/// Returns the level of a call that was refused this often. Only a count that is exactly at a level
/// matters; the last level repeats, because in observe mode the agent continues. After an advisor's
/// instruction, the second level repeats, too.
pub(crate) fn refusal_level(
    count: u32,
    is_advised: bool,
    loops: &LoopSettings,
) -> Option<LoopLevel> {
    let is = |level: u16| count == u32::from(level);
    let is_hard = |level: u16| is(level) || (is_advised && count > u32::from(level));
    let again = |level: u16| count.is_multiple_of(u32::from(level.max(1)));
    match loops.profile {
        LoopProfile::Graded if again(loops.graded.infinite) => Some(LoopLevel::Infinite),
        LoopProfile::Graded if is_hard(loops.graded.hard) => Some(LoopLevel::Hard),
        LoopProfile::Graded if is(loops.graded.soft) => Some(LoopLevel::Soft),
        LoopProfile::Strict if again(loops.strict.threshold) => Some(LoopLevel::Hard),
        LoopProfile::Graded | LoopProfile::Strict => None,
    }
}
