//! The progress guard: several failed iterations in a row pause the session.
//!
//! The client reports the end of an iteration. If the client never does, as with hooks, an
//! iteration is a fixed number of steps, and its result is what the runtime observed.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::dirty::TestsPassing;
use super::fallback::is_other_model;
use super::{FoldInput, Guard, GuardAnswers, GuardInput, ViolationDraft};
use crate::definition::Definition;
use crate::digest::Digest128;
use crate::event::{
    ControlAction, Event, EventKind, IterationEnded, Payload, PromptSource, PromptSubmitted,
};
use crate::state::{PauseCause, PauseState, SessionState, short_hash};
use crate::verdict::{
    Decision, GuardName, SafetyAction, SafetyEvent, SafetyKind, Violation, ViolationClass,
    ViolationSubtype, ViolationType,
};

mod iteration_result;

use iteration_result::{IterationFailure, IterationResult, judge_iteration};

/// The name of the guard.
const GUARD: GuardName = GuardName::Progress;

/// The steps per iteration if the definition sets none.
const STEPS_PER_ITERATION_DEFAULT: u32 = 50;

/// How long a stored name of a phase or task may be.
const NAME_CHARS_MAX: usize = 80;

/// When a session counts as stuck.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgressSettings {
    /// This many failed iterations in a row pause the session.
    pub max_consecutive_failures: u32,
    /// Phases in which an iteration may change nothing without failing.
    pub exempt_phases: Vec<String>,
    /// The steps of an iteration if the client reports no ends.
    pub steps_per_iteration: u32,
}

impl Default for ProgressSettings {
    fn default() -> Self {
        Self {
            max_consecutive_failures: 3,
            exempt_phases: Vec::new(),
            steps_per_iteration: STEPS_PER_ITERATION_DEFAULT,
        }
    }
}

/// The recorded results of iterations.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ProgressState {
    /// How many iterations have ended.
    pub(crate) iterations: u64,
    /// How many of the latest iterations failed in a row.
    failures: u32,
    /// Why the latest iteration failed.
    failure: Option<IterationFailure>,
    /// How many of the latest iterations of a supervised run ended with all programs undone.
    undone: u32,
    /// Whether the client reports the ends of iterations.
    told: bool,
    /// The steps of the current iteration.
    steps: u32,
    /// The epoch in which the current iteration started.
    since: u64,
    /// What was observed in the current iteration.
    seen: IterationFacts,
    /// The last known number of failing tests.
    failing: Option<u64>,
    /// The counts of the latest test run, if they are known.
    pub(crate) counts: Option<TestCounts>,
    /// The error of the previous iteration.
    error: Option<u64>,
    phase: Option<String>,
    task: Option<String>,
}

/// The latest observations of an iteration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct IterationFacts {
    tests: Option<IterationTests>,
    built: Option<bool>,
    error: Option<u64>,
    /// Whether something may have changed unseen.
    hidden: bool,
}

/// A test run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct IterationTests {
    passing: TestsPassing,
    /// How many tests failed, if that is known.
    failing: Option<u64>,
    /// The epoch that the run tested.
    epoch: u64,
}

/// How many tests ran, and how many of them passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestCounts {
    /// The tests that ran.
    pub run: u64,
    /// The tests that passed.
    pub passing: u64,
}

impl TestCounts {
    /// Returns the counts of a test run.
    pub(crate) fn from_counts(passed: u64, failed: u64) -> Self {
        Self { run: passed.saturating_add(failed), passing: passed }
    }
}

/// The progress as `jackline status` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProgressSummary {
    /// Failed iterations in a row.
    pub consecutive_failures: u32,
    /// This many failures pause the session; `None` if the guard is not configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_consecutive_failures: Option<u32>,
    /// Iterations that have ended.
    pub iteration_count: u64,
    /// Why the latest iteration failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<&'static str>,
    /// The last reported phase of the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The last reported task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
}

impl ProgressState {
    pub(super) fn record_tests(&mut self, passing: TestsPassing, failing: Option<u64>, epoch: u64) {
        self.seen.tests = Some(IterationTests { passing, failing, epoch });
        if passing == TestsPassing::Yes {
            // Tests that pass prove that the build succeeded.
            self.seen.built = Some(true);
        }
    }

    pub(super) fn record_build(&mut self, ok: bool) {
        self.seen.built = Some(ok);
    }

    /// Records a possible unseen change.
    pub(crate) fn record_possible_change(&mut self) {
        self.seen.hidden = true;
    }

    pub(super) fn record_error(&mut self, result: Digest128) {
        self.seen.error = Some(short_hash(&result.to_string()));
    }

    /// Clears the results of a reset session. Whether the client reports iterations stays recorded.
    pub(crate) fn reset(&mut self, epoch: u64) {
        *self = Self { told: self.told, since: epoch, ..Self::default() };
    }

    /// Counts failed iterations from zero.
    fn clear_failures(&mut self) {
        (self.failures, self.undone) = (0, 0);
    }

    /// Starts the next iteration.
    fn start_next(&mut self, result: IterationResult, epoch: u64) {
        self.iterations += 1;
        self.failures = if result.failure.is_some() { self.failures.saturating_add(1) } else { 0 };
        self.failure = result.failure;
        self.failing = result.failing.or(self.failing);
        self.error = result.error;
        self.steps = 0;
        self.since = epoch;
        self.seen = IterationFacts::default();
    }

    /// Returns the progress as `jackline status` shows it.
    pub(crate) fn summary(&self, definition: &Definition) -> ProgressSummary {
        let settings = definition.progress.as_ref();
        ProgressSummary {
            consecutive_failures: self.failures,
            max_consecutive_failures: settings.map(|settings| settings.max_consecutive_failures),
            iteration_count: self.iterations,
            last_failure: self
                .failure
                .filter(|_| self.failures > 0)
                .map(IterationFailure::describe),
            phase: self.phase.clone(),
            task: self.task.clone(),
        }
    }
}

pub(crate) struct ProgressGuard;

impl Guard for ProgressGuard {
    fn decide(&self, input: GuardInput<'_>, answers: &mut GuardAnswers) {
        let Some(settings) = &input.definition.progress else {
            return decide_without_settings(input, answers);
        };
        if input.state.paused.is_some()
            || !is_iteration_end(input.definition, input.state, input.event)
        {
            return;
        }
        let result = judge_iteration(settings, input.state, input.event);
        let Some(failure) = result.failure else { return };
        let failures = input.state.progress.failures.saturating_add(1);
        if failures < settings.max_consecutive_failures {
            return;
        }
        let why = failure.describe();
        let message = format!("{failures} iterations in a row failed; in the last one {why}");
        let subtype = ViolationSubtype::parse(failure.as_str());
        answers.add_violation(no_progress_violation(GUARD, subtype, message));
        let details = safety_details(input, settings, failures, failure);
        log_no_progress(input, details, answers);
    }

    fn apply(&self, state: &mut SessionState, fold: FoldInput<'_>) {
        let record = fold.record;
        let event = record.event;
        // A paused session does no work, so nothing is counted.
        let is_paused = state.paused.is_some();
        if is_iteration_end(fold.definition, state, event) && !is_paused {
            let default = ProgressSettings::default();
            let settings = fold.definition.progress.as_ref().unwrap_or(&default);
            let result = judge_iteration(settings, state, event);
            let epoch = state.epoch;
            state.progress.undone = undone_iterations(state, event);
            state.progress.start_next(result, epoch);
        }
        // The call that is blocked first is not a step of the next iteration, either.
        if event.kind.uses_step() && !is_paused && !record.verdict.is_enforced(Decision::Pause) {
            state.progress.steps = state.progress.steps.saturating_add(1);
        }
        match &event.kind {
            EventKind::IterationEnded(IterationEnded { phase, task, tests, .. }) => {
                let counts =
                    tests.as_ref().map(|tests| TestCounts::from_counts(tests.passed, tests.failed));
                state.progress.counts = counts.or(state.progress.counts);
                state.progress.told = true;
                state.progress.phase = phase.as_deref().map(shorten_name);
                state.progress.task = task.as_deref().map(shorten_name);
            }
            EventKind::PromptSubmitted(PromptSubmitted { source: PromptSource::Human, .. })
                if event.actor.is_main() =>
            {
                state.progress.clear_failures();
            }
            _ if is_other_model(record) => state.progress.clear_failures(),
            _ => {}
        }
        let clears_failures = match fold.person_action {
            Some(ControlAction::ClearBlocker | ControlAction::ResetFailures) => true,
            // If a blocker remains after a person's pause ends, its failures still count.
            Some(ControlAction::Resume) => state.paused.is_none(),
            _ => false,
        };
        if clears_failures {
            state.progress.clear_failures();
        }
        let is_pause = |violation: &&Violation| violation.guard == GUARD && violation.enforced;
        if let Some(violation) = record.verdict.violations.iter().find(is_pause) {
            state.paused =
                Some(PauseState::by_guard(PauseCause::NoProgress, violation.message.clone()));
        }
    }
}

/// Pauses a supervised run whose programs all failed in several iterations in a row. This limit is
/// in force without the settings of this guard, because such a run would never end.
fn decide_without_settings(input: GuardInput<'_>, answers: &mut GuardAnswers) {
    let undone = undone_iterations(input.state, input.event);
    if input.state.paused.is_some() || undone <= input.definition.run.undone_iterations {
        return;
    }
    let message = match undone {
        1 => "no program succeeded in this iteration".to_owned(),
        _ => format!("no program succeeded in {undone} iterations in a row"),
    };
    answers.add_violation(no_progress_violation(
        GUARD,
        ViolationSubtype::Verification,
        message.clone(),
    ));
    let details = BTreeMap::from([
        ("consecutive_failures".to_owned(), json!(undone)),
        ("reason".to_owned(), json!(message)),
    ]);
    log_no_progress(input, details, answers);
}

/// Returns how many iterations in a row end with all programs undone, with the iteration that this
/// event ends.
fn undone_iterations(state: &SessionState, event: &Event) -> u32 {
    match &event.kind {
        EventKind::IterationEnded(IterationEnded { error: Some(_), .. })
            if state.spent.supervised =>
        {
            state.progress.undone.saturating_add(1)
        }
        _ => 0,
    }
}

/// Builds the violation that pauses a session without progress.
pub(super) fn no_progress_violation(
    guard: GuardName,
    subtype: ViolationSubtype,
    message: String,
) -> ViolationDraft {
    ViolationDraft {
        guard,
        kind: ViolationType::NoProgress,
        subtype,
        class: ViolationClass::Recoverable,
        decision: Decision::Pause,
        message,
        location: None,
        correction: Some(
            "end the turn and report what blocks you; a person reads the report and continues the \
             session with `jackline clear`"
                .to_string(),
        ),
    }
}

/// Logs that the session makes no progress, after the violation was added.
pub(super) fn log_no_progress(
    input: GuardInput<'_>,
    details: BTreeMap<String, Value>,
    answers: &mut GuardAnswers,
) {
    let is_enforced = answers.violations.last().is_some_and(|violation| violation.enforced);
    answers.safety.push(SafetyEvent {
        timestamp: input.clock.now(),
        kind: SafetyKind::NoProgress,
        details,
        action_taken: if is_enforced { SafetyAction::Paused } else { SafetyAction::Observed },
    });
}

/// Returns whether an iteration ends with or before this event.
pub(crate) fn is_iteration_end(
    definition: &Definition,
    state: &SessionState,
    event: &Event,
) -> bool {
    let steps_max = definition
        .progress
        .as_ref()
        .map_or(STEPS_PER_ITERATION_DEFAULT, |settings| settings.steps_per_iteration);
    match &event.kind {
        EventKind::IterationEnded(_) => true,
        EventKind::ToolProposed(_) => !state.progress.told && state.progress.steps >= steps_max,
        _ => false,
    }
}

fn shorten_name(text: &str) -> String {
    text.chars().take(NAME_CHARS_MAX).collect()
}

fn safety_details(
    input: GuardInput<'_>,
    settings: &ProgressSettings,
    failures: u32,
    failure: IterationFailure,
) -> BTreeMap<String, Value> {
    let progress = &input.state.progress;
    let (phase, task) = match &input.event.kind {
        EventKind::IterationEnded(IterationEnded { phase, task, .. }) => {
            (phase.as_deref().map(shorten_name), task.as_deref().map(shorten_name))
        }
        _ => (progress.phase.clone(), progress.task.clone()),
    };
    [
        ("consecutive_failures", json!(failures)),
        ("max_consecutive_failures", json!(settings.max_consecutive_failures)),
        ("iteration_count", json!(progress.iterations + 1)),
        ("reason", json!(failure.describe())),
        ("phase", json!(phase)),
        ("task", json!(task)),
    ]
    .into_iter()
    .filter(|(_, value)| !value.is_null())
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

/// Returns the hash of a reported error. Digits and spaces are ignored, because line numbers, times
/// and addresses change while the error stays the same.
fn error_fingerprint(error: &Payload) -> Option<u64> {
    let plain: String = error
        .head()
        .chars()
        .filter(|c| !c.is_ascii_digit() && !c.is_whitespace() && !c.is_control())
        .collect();
    (!plain.is_empty()).then(|| short_hash(&plain))
}
