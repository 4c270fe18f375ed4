//! Decides whether an iteration failed.

use serde::{Deserialize, Serialize};

use super::{ProgressSettings, error_fingerprint};
use crate::event::{Event, EventKind, IterationEnded};
use crate::guards::dirty::{HiddenChange, TestsPassing};
use crate::state::SessionState;

/// Why an iteration failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum IterationFailure {
    Build,
    Tests,
    SameError,
    NothingChanged,
}

impl IterationFailure {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Build => "build_failed",
            Self::Tests => "tests_failed",
            Self::SameError => "same_error",
            Self::NothingChanged => "nothing_changed",
        }
    }

    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Build => "the build failed",
            Self::Tests => "tests failed after a change",
            Self::SameError => "the error was the same as in the iteration before",
            Self::NothingChanged => "nothing was changed",
        }
    }
}

/// The result of an iteration.
#[derive(Debug, Clone, Copy)]
pub(super) struct IterationResult {
    /// Why it failed, if it did.
    pub(super) failure: Option<IterationFailure>,
    /// How many tests failed, if that is known.
    pub(super) failing: Option<u64>,
    /// The hash of its error.
    pub(super) error: Option<u64>,
}

/// The evidence about an iteration: reported facts, or else observed ones.
struct IterationEvidence {
    changed: bool,
    /// Whether tests failed after a change.
    failed: bool,
    failing: Option<u64>,
    built: Option<bool>,
    error: Option<u64>,
    exempt: bool,
}

/// Judges the iteration that ends with this event.
pub(super) fn judge_iteration(
    settings: &ProgressSettings,
    state: &SessionState,
    event: &Event,
) -> IterationResult {
    let evidence = collect_evidence(settings, state, event);
    let before = &state.progress;
    let has_fewer_failures =
        matches!((evidence.failing, before.failing), (Some(now), Some(then)) if now < then);
    let is_same_error = evidence.error.is_some() && evidence.error == before.error;
    let failure = if evidence.built == Some(false) {
        Some(IterationFailure::Build)
    } else if has_fewer_failures {
        // Fewer failing tests are progress.
        None
    } else if evidence.failed {
        Some(IterationFailure::Tests)
    } else if is_same_error {
        Some(IterationFailure::SameError)
    } else if !evidence.changed && !evidence.exempt {
        Some(IterationFailure::NothingChanged)
    } else {
        None
    };
    IterationResult { failure, failing: evidence.failing, error: evidence.error }
}

fn collect_evidence(
    settings: &ProgressSettings,
    state: &SessionState,
    event: &Event,
) -> IterationEvidence {
    let observed = state.progress.seen;
    let since = state.progress.since;
    let mut evidence = IterationEvidence {
        // A running change and a possible unseen change count as changes.
        changed: state.epoch != since || observed.hidden || is_changing(state),
        failed: observed
            .tests
            .is_some_and(|run| run.passing == TestsPassing::No && run.epoch > since),
        failing: observed.tests.and_then(|run| match run.passing {
            TestsPassing::Yes => Some(0),
            TestsPassing::No => run.failing.filter(|count| *count > 0),
            TestsPassing::Unknown => None,
        }),
        built: observed.built,
        error: observed.error,
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
        evidence.changed = files_changed.map_or(evidence.changed, |files| files > 0);
        if let Some(tests) = tests {
            evidence.failed = tests.failed > 0 && evidence.changed;
            evidence.failing = Some(tests.failed);
        }
        evidence.built = build.as_deref().and_then(parse_build_status).or(evidence.built);
        evidence.error = error.as_ref().and_then(error_fingerprint).or(evidence.error);
        evidence.exempt = phase
            .as_ref()
            .is_some_and(|phase| settings.exempt_phases.iter().any(|exempt| exempt == phase));
    }
    evidence
}

/// Returns whether an open call changes something, or may.
fn is_changing(state: &SessionState) -> bool {
    let open_calls = state.in_flight.iter().filter(|call| !call.needs_approval());
    open_calls.into_iter().any(|call| call.mutates() || call.bits.hidden != HiddenChange::Nothing)
}

/// Interprets a reported build status; `None` if the word is not recognised.
fn parse_build_status(word: &str) -> Option<bool> {
    let is = |words: &[&str]| words.iter().any(|candidate| word.eq_ignore_ascii_case(candidate));
    if is(&["ok", "pass", "passed", "passing", "success", "succeeded", "green"]) {
        Some(true)
    } else if is(&["fail", "failed", "failing", "failure", "error", "errors", "broken", "red"]) {
        Some(false)
    } else {
        None
    }
}
