//! The loop guards of two layers.

use jackline_engine::Mode;
use jackline_engine::definition::{Cycle, Errors, Graded, Loops, Profile};

use super::Subject;
use super::join::{How, Joining};
use super::parts::{Parts, Said};
use crate::words;

impl Joining {
    /// What both say about loops; where nobody says anything, nothing.
    pub(super) fn join_loops(
        &mut self,
        high: &Parts,
        low: &Parts,
        how: How,
    ) -> Option<Said<Loops>> {
        let (mut own, below) = match (high.loops.clone(), low.loops.clone()) {
            (Some(own), Some(below)) if own.what != below.what => (own, below),
            (Some(mut own), None) => {
                // As its rules do, it follows a layer that observes and may say so.
                if how == How::Override && low.mode.what == Mode::Observe {
                    own.what.mode = Mode::Observe;
                }
                return Some(own);
            }
            (own, below) => return own.or(below),
        };
        if how == How::Override {
            self.replaced(Subject::Setting, words::loops(&own.what), own.by, below.by);
            return Some(below);
        }
        let both = stricter(&own.what, &below.what);
        if both == below.what {
            return Some(below);
        }
        let text = words::loops(&below.what);
        let why = if both == own.what { "demands more" } else { "demands more in part" };
        self.ignore(Subject::Setting, text, below.by, own.by, why);
        own.what = both;
        Some(own)
    }
}

/// What neither is stricter than. Numbers say which of two is; what counts as
/// the same call, which calls are passed over and how the answers rise do not,
/// so these are the word of the layer that is above.
fn stricter(above: &Loops, below: &Loops) -> Loops {
    // Who only observes holds nothing that could be taken.
    let holds =
        if above.mode == Mode::Observe && below.mode == Mode::Enforce { below } else { above };
    if holds.profile == Profile::Strict {
        // An override holds one call, and keeps silent about what comes while it
        // does: one that is put earlier can let a later loop go on for longer.
        return holds.clone();
    }
    let less = |of: fn(&Loops) -> u16| of(above).min(of(below));
    Loops {
        history: above.history.max(below.history),
        graded: Graded {
            soft: less(|loops| loops.graded.soft),
            hard: less(|loops| loops.graded.hard),
            infinite: less(|loops| loops.graded.infinite),
        },
        cycle: Cycle { repeats: less(|loops| loops.cycle.repeats), ..holds.cycle },
        errors: Errors {
            soft: less(|loops| loops.errors.soft),
            hard: less(|loops| loops.errors.hard),
        },
        ..holds.clone()
    }
}
