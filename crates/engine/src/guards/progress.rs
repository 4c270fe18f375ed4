//! No progress: iterations that fail one after the other pause the session.
//!
//! An iteration ends when somebody says so. Where nobody ever does, as under
//! hooks, it is a number of steps, and what happened in it is what was seen.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::dirty::TestsPassing;
use super::{Answers, Fold, Guard, Look, Objection};
use crate::definition::Definition;
use crate::digest::Digest128;
use crate::event::{
    Action, Event, EventKind, IterationEnded, Payload, PromptSource, PromptSubmitted,
};
use crate::state::{PauseCause, Paused, State, short};
use crate::verdict::{
    Class, Decision, GuardName, SafetyAction, SafetyEvent, SafetyKind, Violation, ViolationSubtype,
    ViolationType,
};

mod judge;

use judge::{Failure, Judged, judge};

/// The name of the guard.
const GUARD: GuardName = GuardName::Progress;

/// How many steps an iteration has where the definition says nothing.
const STEPS_PER_ITERATION: u32 = 50;

/// How long the names of phases and tasks may be that are remembered.
const NAME_CHARS_MAX: usize = 80;

/// When a session counts as stuck.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// So many failed iterations in a row pause it.
    pub max_consecutive_failures: u32,
    /// Phases in which an iteration that changes nothing is none that failed.
    pub exempt_phases: Vec<String>,
    /// How many steps are an iteration where nobody says when one ends.
    pub steps_per_iteration: u32,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            max_consecutive_failures: 3,
            exempt_phases: Vec::new(),
            steps_per_iteration: STEPS_PER_ITERATION,
        }
    }
}

/// What is remembered of iterations.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ProgressState {
    /// How many have ended.
    pub(crate) iterations: u64,
    /// How many of the latest failed, one after the other.
    failures: u32,
    /// How the latest failed.
    failure: Option<Failure>,
    /// Whether somebody says when one ends.
    told: bool,
    /// Steps of the one at hand.
    steps: u32,
    /// The epoch in which it began.
    since: u64,
    /// What was seen in it.
    seen: Seen,
    /// How many tests failed when that was last known.
    failing: Option<u64>,
    /// The counts of the latest run of tests, as far as they are known.
    pub(crate) counts: Option<TestCounts>,
    /// The error of the iteration before.
    error: Option<u64>,
    phase: Option<String>,
    task: Option<String>,
}

/// What was seen in an iteration, the latest of each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Seen {
    tests: Option<Tests>,
    built: Option<bool>,
    error: Option<u64>,
    /// Whether something perhaps changed that nobody saw.
    hidden: bool,
}

/// A run of tests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Tests {
    passing: TestsPassing,
    /// How many failed, where that is known.
    failing: Option<u64>,
    /// The epoch that it saw.
    epoch: u64,
}

/// How many tests were run, and how many of them passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestCounts {
    /// Those that were run.
    pub run: u64,
    /// Those of them that passed.
    pub passing: u64,
}

impl TestCounts {
    /// The counts of a run.
    pub(crate) fn of(passed: u64, failed: u64) -> Self {
        Self { run: passed.saturating_add(failed), passing: passed }
    }
}

/// How it goes on, in the words of `status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProgressSummary {
    /// Failed iterations in a row.
    pub consecutive_failures: u32,
    /// So many pause the session; none where nothing does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_consecutive_failures: Option<u32>,
    /// Iterations that have ended.
    pub iteration_count: u64,
    /// Why the latest of them failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<&'static str>,
    /// The phase of the task, as it was last told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The task, as it was last told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
}

impl ProgressState {
    pub(super) fn saw_tests(&mut self, passing: TestsPassing, failing: Option<u64>, epoch: u64) {
        self.seen.tests = Some(Tests { passing, failing, epoch });
        if passing == TestsPassing::Yes {
            // What can be tested was built.
            self.seen.built = Some(true);
        }
    }

    pub(super) fn saw_build(&mut self, ok: bool) {
        self.seen.built = Some(ok);
    }

    /// Something perhaps changed.
    pub(crate) fn saw_change(&mut self) {
        self.seen.hidden = true;
    }

    pub(super) fn saw_error(&mut self, result: Digest128) {
        self.seen.error = Some(short(&result.to_string()));
    }

    /// Opens the session anew; whether somebody tells of iterations stays known.
    pub(crate) fn reset(&mut self, epoch: u64) {
        *self = Self { told: self.told, since: epoch, ..Self::default() };
    }

    /// Begins the next iteration.
    fn next(&mut self, judged: Judged, epoch: u64) {
        self.iterations += 1;
        self.failures = if judged.failure.is_some() { self.failures.saturating_add(1) } else { 0 };
        self.failure = judged.failure;
        self.failing = judged.failing.or(self.failing);
        self.error = judged.error;
        self.steps = 0;
        self.since = epoch;
        self.seen = Seen::default();
    }

    /// How it goes on.
    pub(crate) fn summary(&self, definition: &Definition) -> ProgressSummary {
        let set = definition.progress.as_ref();
        ProgressSummary {
            consecutive_failures: self.failures,
            max_consecutive_failures: set.map(|set| set.max_consecutive_failures),
            iteration_count: self.iterations,
            last_failure: self.failure.filter(|_| self.failures > 0).map(Failure::words),
            phase: self.phase.clone(),
            task: self.task.clone(),
        }
    }
}

pub(crate) struct ProgressGuard;

impl Guard for ProgressGuard {
    fn decide(&self, look: Look<'_>, answers: &mut Answers) {
        let Some(set) = &look.definition.progress else { return };
        if look.state.paused.is_some() || !ends(look.definition, look.state, look.event) {
            return;
        }
        let judged = judge(set, look.state, look.event);
        let Some(failure) = judged.failure else { return };
        let failures = look.state.progress.failures.saturating_add(1);
        if failures < set.max_consecutive_failures {
            return;
        }
        let why = failure.words();
        answers.object(Objection {
            guard: GUARD,
            kind: ViolationType::NoProgress,
            subtype: ViolationSubtype::parse(failure.word()),
            class: Class::Recoverable,
            decision: Decision::Pause,
            message: format!("{failures} iterations in a row failed, and in the last {why}"),
            location: None,
            correction: Some(
                "end the turn and say what is in the way; a person reads the report, then `jackline clear` goes on"
                    .to_string(),
            ),
        });
        let holds = answers.violations.last().is_some_and(|violation| violation.enforced);
        answers.safety.push(SafetyEvent {
            timestamp: look.clock.now(),
            kind: SafetyKind::NoProgress,
            details: details(look, set, failures, failure),
            action_taken: if holds { SafetyAction::Paused } else { SafetyAction::Observed },
        });
    }

    fn apply(&self, state: &mut State, fold: Fold<'_>) {
        let record = fold.record;
        let event = record.event;
        // While the session is paused nothing is done, so nothing is counted.
        let held = state.paused.is_some();
        if ends(fold.definition, state, event) && !held {
            let default = Progress::default();
            let set = fold.definition.progress.as_ref().unwrap_or(&default);
            let judged = judge(set, state, event);
            let epoch = state.epoch;
            state.progress.next(judged, epoch);
        }
        // Nor is the call that is held first a step of the iteration that follows.
        if event.kind.is_step() && !held && !record.verdict.is_enforced(Decision::Pause) {
            state.progress.steps = state.progress.steps.saturating_add(1);
        }
        match &event.kind {
            EventKind::IterationEnded(IterationEnded { phase, task, tests, .. }) => {
                let counts = tests.as_ref().map(|tests| TestCounts::of(tests.passed, tests.failed));
                state.progress.counts = counts.or(state.progress.counts);
                state.progress.told = true;
                state.progress.phase = phase.as_deref().map(name);
                state.progress.task = task.as_deref().map(name);
            }
            EventKind::PromptSubmitted(PromptSubmitted { source: PromptSource::Human, .. })
                if event.actor.is_main() =>
            {
                state.progress.failures = 0;
            }
            _ => {}
        }
        let forgives = match fold.said {
            Some(Action::ClearBlocker | Action::ResetFailures) => true,
            // A blocker that is still there beneath a person's pause counts on.
            Some(Action::Resume) => state.paused.is_none(),
            _ => false,
        };
        if forgives {
            state.progress.failures = 0;
        }
        let stuck = |violation: &&Violation| violation.guard == GUARD && violation.enforced;
        if let Some(violation) = record.verdict.violations.iter().find(stuck) {
            state.paused =
                Some(Paused::by_guard(PauseCause::NoProgress, violation.message.clone()));
        }
    }
}

/// Whether an iteration ends with this event, or has ended before it.
pub(crate) fn ends(definition: &Definition, state: &State, event: &Event) -> bool {
    let most =
        definition.progress.as_ref().map_or(STEPS_PER_ITERATION, |it| it.steps_per_iteration);
    match &event.kind {
        EventKind::IterationEnded(_) => true,
        EventKind::ToolProposed(_) => !state.progress.told && state.progress.steps >= most,
        _ => false,
    }
}

fn name(text: &str) -> String {
    text.chars().take(NAME_CHARS_MAX).collect()
}

fn details(
    look: Look<'_>,
    set: &Progress,
    failures: u32,
    failure: Failure,
) -> BTreeMap<String, Value> {
    let progress = &look.state.progress;
    let (phase, task) = match &look.event.kind {
        EventKind::IterationEnded(IterationEnded { phase, task, .. }) => {
            (phase.as_deref().map(name), task.as_deref().map(name))
        }
        _ => (progress.phase.clone(), progress.task.clone()),
    };
    [
        ("consecutive_failures", json!(failures)),
        ("max_consecutive_failures", json!(set.max_consecutive_failures)),
        ("iteration_count", json!(progress.iterations + 1)),
        ("reason", json!(failure.words())),
        ("phase", json!(phase)),
        ("task", json!(task)),
    ]
    .into_iter()
    .filter(|(_, value)| !value.is_null())
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

/// The fingerprint of an error that was told: numbers and spaces don't count,
/// because lines, times and addresses change and the error does not.
fn fingerprint(error: &Payload) -> Option<u64> {
    let plain: String = error
        .head()
        .chars()
        .filter(|c| !c.is_ascii_digit() && !c.is_whitespace() && !c.is_control())
        .collect();
    (!plain.is_empty()).then(|| short(&plain))
}
