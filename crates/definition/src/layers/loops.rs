//! The loop guards of two layers.

use jackline_engine::Mode;
use jackline_engine::definition::{Cycle, Errors, Graded, Loops, Profile, Strict};

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

/// What neither is stricter than.
fn stricter(one: &Loops, other: &Loops) -> Loops {
    let is = |is: bool| if is { one } else { other };
    let more = |of: fn(&Loops) -> u16| of(one).max(of(other));
    let less = |of: fn(&Loops) -> u16| of(one).min(of(other));
    let masked = other.volatile.iter().filter(|pointer| !one.volatile.contains(pointer));
    Loops {
        mode: is(one.mode == Mode::Enforce).mode,
        profile: is(one.profile == Profile::Strict).profile,
        history: more(|loops| loops.history),
        strict: Strict {
            window: more(|loops| loops.strict.window),
            threshold: less(|loops| loops.strict.threshold),
            override_retries: less(|loops| loops.strict.override_retries),
        },
        graded: Graded {
            soft: less(|loops| loops.graded.soft),
            hard: less(|loops| loops.graded.hard),
            infinite: less(|loops| loops.graded.infinite),
        },
        cycle: Cycle {
            period_max: more(|loops| loops.cycle.period_max),
            repeats: less(|loops| loops.cycle.repeats),
        },
        errors: Errors {
            soft: less(|loops| loops.errors.soft),
            hard: less(|loops| loops.errors.hard),
        },
        // What is masked makes calls alike, and what is passed over goes unseen.
        volatile: one.volatile.iter().chain(masked).cloned().collect(),
        transparent: {
            let both = one.transparent.iter().filter(|kind| other.transparent.contains(kind));
            both.copied().collect()
        },
    }
}
