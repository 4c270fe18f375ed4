//! Calls that are not let run have a ring of their own: whoever proposes the
//! same one again, and is refused for the same reason, goes in circles too.

use alloc::format;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::config::{Loops, Profile};
use super::detector::LoopLevel;
use super::overrides;
use crate::digest::Digest128;
use crate::verdict::{Decision, Violation};

/// How many refused calls are remembered; the one unseen longest gives way.
pub(super) const REFUSED_MAX: usize = 8;

/// A short name for a reason.
type Reason = [u8; 4];

/// Refused calls, the latest at the end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Blocked(Vec<Refused>);

/// A call that was refused for a reason, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Refused {
    call: [u8; 4],
    reason: Reason,
    count: u16,
}

impl Blocked {
    /// How often a call was refused for a reason.
    pub(crate) fn count(&self, call: &Digest128, reason: Reason) -> u32 {
        let known = self.0.iter().find(|known| known.is(short_call(call), reason));
        known.map_or(0, |known| known.count.into())
    }

    /// A call was refused.
    pub(crate) fn refused(&mut self, call: &Digest128, reason: Reason) {
        let call = short_call(call);
        let known = self.0.iter().position(|known| known.is(call, reason));
        let count = known.map_or(0, |known| self.0.remove(known).count);
        if self.0.len() >= REFUSED_MAX {
            self.0.remove(0);
        }
        self.0.push(Refused { call, reason, count: count.saturating_add(1) });
    }

    /// A call has run after all.
    pub(crate) fn ran(&mut self, call: &Digest128) {
        let call = short_call(call);
        self.0.retain(|known| known.call != call);
    }

    /// How often the one was refused that was refused most.
    pub(crate) fn most(&self) -> u32 {
        self.0.iter().map(|known| known.count.into()).max().unwrap_or(0)
    }
}

impl Refused {
    fn is(&self, call: [u8; 4], reason: Reason) -> bool {
        (self.call, self.reason) == (call, reason)
    }
}

fn short_call(call: &Digest128) -> [u8; 4] {
    call.as_bytes().first_chunk().copied().unwrap_or_default()
}

/// Why a call is not let run: the strongest objection that holds, apart from
/// what this guard makes of loops. None where it runs, or everything ends.
pub(crate) fn reason(violations: &[Violation]) -> Option<Reason> {
    let own = |v: &Violation| v.guard == super::GUARD && !overrides::is_about(v);
    let holding = violations.iter().filter(|v| v.enforced && !own(v));
    // The first of the strongest, as verdicts list them.
    let strongest = holding.rev().max_by_key(|v| v.decision)?;
    matches!(strongest.decision, Decision::Ask | Decision::Deny | Decision::Pause)
        .then(|| format!("{}\n{}", strongest.guard, strongest.subtype))
        .map(|reason| short_call(&Digest128::of(reason.as_bytes())))
}

/// How far it has gone with a call that was refused so often. What comes
/// between the levels changes nothing; the last one is reached again and again
/// where nothing holds.
pub(crate) fn level(count: u32, loops: &Loops) -> Option<LoopLevel> {
    let is = |level: u16| count == u32::from(level);
    let again = |level: u16| count.is_multiple_of(u32::from(level.max(1)));
    match loops.profile {
        Profile::Graded if again(loops.graded.infinite) => Some(LoopLevel::Infinite),
        Profile::Graded if is(loops.graded.hard) => Some(LoopLevel::Hard),
        Profile::Graded if is(loops.graded.soft) => Some(LoopLevel::Soft),
        Profile::Strict if again(loops.strict.threshold) => Some(LoopLevel::Hard),
        Profile::Graded | Profile::Strict => None,
    }
}
