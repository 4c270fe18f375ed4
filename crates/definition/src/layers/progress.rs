//! What the layers say of progress and of tests, as one.

use jackline_engine::definition::{DirtyBits, Progress};

use super::Subject;
use super::join::{How, Joining, union};
use super::parts::Said;
use crate::words;

/// A pattern of `dirty_bits` and the key it is under.
pub(super) type Bit = (&'static str, String);

/// Takes `dirty_bits` apart.
pub(super) fn bits(bits: DirtyBits) -> impl Iterator<Item = Bit> {
    let DirtyBits { tests, builds, docs } = bits;
    let under = |key: &'static str, list: Vec<String>| list.into_iter().map(move |it| (key, it));
    under("tests", tests).chain(under("builds", builds)).chain(under("docs", docs))
}

/// Puts `dirty_bits` together again.
pub(super) fn together(bits: Vec<Bit>) -> DirtyBits {
    let mut all = DirtyBits::default();
    for (key, pattern) in bits {
        match key {
            "tests" => all.tests.push(pattern),
            "builds" => all.builds.push(pattern),
            _ => all.docs.push(pattern),
        }
    }
    all
}

impl Joining {
    /// What counts as a test. Where something of the higher layer `rests` on
    /// it, a lower one can't add to it: `true` would be a test that passes.
    pub(super) fn join_bits(
        &mut self,
        high: Vec<Said<Bit>>,
        low: Vec<Said<Bit>>,
        rests: Option<usize>,
        how: How,
    ) -> Vec<Said<Bit>> {
        let Some(to) = rests.filter(|_| how == How::Tighten) else { return union(high, low) };
        for bit in low {
            if !high.iter().any(|known| known.what == bit.what) {
                let text = format!("`dirty_bits.{}: {}`", bit.what.0, bit.what.1);
                self.ignore(Subject::Setting, text, bit.by, to, "rests on what counts as a test");
            }
        }
        high
    }

    pub(super) fn join_progress(
        &mut self,
        high: Option<Said<Progress>>,
        low: Option<Said<Progress>>,
        how: How,
    ) -> Option<Said<Progress>> {
        let (high, low) = match (high, low) {
            (Some(high), Some(low)) if high.what != low.what => (high, low),
            (high, low) => return high.or(low),
        };
        if how == How::Override {
            self.replaced(Subject::Limit, words::progress(&high.what), high.by, low.by);
            return Some(low);
        }
        if implies(&low.what, &high.what) {
            return Some(low);
        }
        let text = words::progress(&low.what);
        self.ignore(Subject::Limit, text, low.by, high.by, "has one that this does not tighten");
        Some(high)
    }
}

/// Whether a session that `other` would pause is paused by `one` as early.
fn implies(one: &Progress, other: &Progress) -> bool {
    one.max_consecutive_failures <= other.max_consecutive_failures
        && one.steps_per_iteration <= other.steps_per_iteration
        && one.exempt_phases.iter().all(|phase| other.exempt_phases.contains(phase))
}
