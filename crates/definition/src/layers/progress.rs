//! What the layers say of progress and of tests, as one.

use jackline_engine::Dimension;
use jackline_engine::definition::{DirtyBits, Progress};

use super::Subject;
use super::join::{How, Joining, union};
use super::parts::{Parts, Said};
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

    /// When a session is stuck, as both say. What an iteration is, is the word of
    /// the layer that is above: in shorter ones a change and the test of it lie
    /// apart, and neither of them fails.
    pub(super) fn join_progress(
        &mut self,
        high: &Parts,
        low: &Parts,
        how: How,
    ) -> Option<Said<Progress>> {
        let (own, below) = match (high.progress.clone(), low.progress.clone()) {
            (Some(own), Some(below)) if own.what != below.what => (own, below),
            (None, Some(below)) if how == How::Tighten => {
                return Some(self.in_known_steps(below, high));
            }
            (own, below) => return own.or(below),
        };
        if how == How::Override {
            self.replaced(Subject::Limit, words::progress(&own.what), own.by, below.by);
            return Some(below);
        }
        let both = stricter(&own.what, &below.what);
        if both == below.what {
            return Some(below);
        }
        let why = if both == own.what {
            "has one that this does not tighten"
        } else {
            "demands more in part"
        };
        self.ignore(Subject::Limit, words::progress(&below.what), below.by, own.by, why);
        Some(Said { what: both, by: own.by })
    }

    /// A limit on iterations means what it did: they have no more steps than
    /// where nobody says how many.
    fn in_known_steps(&mut self, mut below: Said<Progress>, high: &Parts) -> Said<Progress> {
        let steps = Progress::default().steps_per_iteration;
        let given = below.what.steps_per_iteration;
        if let Some(limit) = high.limit(Dimension::Iterations)
            && given > steps
        {
            let text = format!("`progress.steps_per_iteration: {given}`");
            let why = format!("counts iterations of {steps} steps");
            self.ignore(Subject::Limit, text, below.by, limit.by, &why);
            below.what.steps_per_iteration = steps;
        }
        below
    }
}

/// What neither pauses a session earlier than.
fn stricter(above: &Progress, below: &Progress) -> Progress {
    let both = above.exempt_phases.iter().filter(|phase| below.exempt_phases.contains(phase));
    Progress {
        max_consecutive_failures: above
            .max_consecutive_failures
            .min(below.max_consecutive_failures),
        exempt_phases: both.cloned().collect(),
        steps_per_iteration: above.steps_per_iteration,
    }
}

/// Whose demand rests on what was changed and tested, if one does.
pub(super) fn rests_on_tests(parts: &Parts) -> Option<usize> {
    let clean = parts.completion.iter().find(|check| check.what.wants_clean());
    let clean = clean.map(|check| check.by);
    clean.or_else(|| parts.progress.as_ref().map(|progress| progress.by))
}
