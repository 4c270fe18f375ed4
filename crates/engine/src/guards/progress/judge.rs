//! Whether an iteration failed.

use serde::{Deserialize, Serialize};

use super::{Progress, fingerprint};
use crate::event::{Event, EventKind, IterationEnded};
use crate::guards::dirty::{Hidden, TestsPassing};
use crate::state::State;

/// Why an iteration failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Failure {
    Build,
    Tests,
    SameError,
    NothingChanged,
}

impl Failure {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Build => "build_failed",
            Self::Tests => "tests_failed",
            Self::SameError => "same_error",
            Self::NothingChanged => "nothing_changed",
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Build => "the build failed",
            Self::Tests => "tests failed after a change",
            Self::SameError => "the error was the same as in the one before",
            Self::NothingChanged => "nothing was changed",
        }
    }
}

/// What came of an iteration.
#[derive(Debug, Clone, Copy)]
pub(super) struct Judged {
    /// Why it failed; none where it did not.
    pub(super) failure: Option<Failure>,
    /// How many tests failed, where that is known.
    pub(super) failing: Option<u64>,
    /// Its error.
    pub(super) error: Option<u64>,
}

/// What is known of an iteration: what was told, else what was seen.
struct Known {
    changed: bool,
    /// Whether tests failed after a change.
    failed: bool,
    failing: Option<u64>,
    built: Option<bool>,
    error: Option<u64>,
    exempt: bool,
}

/// Judges the iteration that ends with an event.
pub(super) fn judge(set: &Progress, state: &State, event: &Event) -> Judged {
    let known = known(set, state, event);
    let before = &state.progress;
    let fewer = matches!((known.failing, before.failing), (Some(now), Some(then)) if now < then);
    let same = known.error.is_some() && known.error == before.error;
    let failure = if known.built == Some(false) {
        Some(Failure::Build)
    } else if fewer {
        // That is what progress looks like.
        None
    } else if known.failed {
        Some(Failure::Tests)
    } else if same {
        Some(Failure::SameError)
    } else if !known.changed && !known.exempt {
        Some(Failure::NothingChanged)
    } else {
        None
    };
    Judged { failure, failing: known.failing, error: known.error }
}

fn known(set: &Progress, state: &State, event: &Event) -> Known {
    let seen = state.progress.seen;
    let since = state.progress.since;
    let mut known = Known {
        // What is being changed just now is not nothing, nor is what nobody saw.
        changed: state.epoch != since || seen.hidden || is_changing(state),
        failed: seen.tests.is_some_and(|run| run.passing == TestsPassing::No && run.epoch > since),
        failing: seen.tests.and_then(|run| match run.passing {
            TestsPassing::Yes => Some(0),
            TestsPassing::No => run.failing.filter(|count| *count > 0),
            TestsPassing::Unknown => None,
        }),
        built: seen.built,
        error: seen.error,
        exempt: false,
    };
    if let EventKind::IterationEnded(IterationEnded {
        phase,
        tests,
        build,
        files_changed,
        error,
        ..
    }) = &event.kind
    {
        known.changed = files_changed.map_or(known.changed, |files| files > 0);
        if let Some(tests) = tests {
            known.failed = tests.failed > 0 && known.changed;
            known.failing = Some(tests.failed);
        }
        known.built = build.as_deref().and_then(built).or(known.built);
        known.error = error.as_ref().and_then(fingerprint).or(known.error);
        known.exempt = phase
            .as_ref()
            .is_some_and(|phase| set.exempt_phases.iter().any(|exempt| exempt == phase));
    }
    known
}

/// Whether a call that is open changes something, or may.
fn is_changing(state: &State) -> bool {
    let open = state.in_flight.iter().filter(|call| !call.asked);
    open.into_iter().any(|call| call.mutates() || call.bits.hidden != Hidden::Nothing)
}

/// What a word says of a build; none where it says nothing.
fn built(word: &str) -> Option<bool> {
    let is = |words: &[&str]| words.iter().any(|known| word.eq_ignore_ascii_case(known));
    if is(&["ok", "pass", "passed", "passing", "success", "succeeded", "green"]) {
        Some(true)
    } else if is(&["fail", "failed", "failing", "failure", "error", "errors", "broken", "red"]) {
        Some(false)
    } else {
        None
    }
}
