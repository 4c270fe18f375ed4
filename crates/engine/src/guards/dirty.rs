//! Dirty bits: whether code was changed, and whether tests ran on it since.
//!
//! The bits are set from what calls do, never from what the agent claims. A test run counts for the
//! code as it was when the run *started*, and only proof counts as passing.

pub(crate) mod clean;
mod hidden_changes;
mod paths;

use alloc::string::String;
use alloc::vec::Vec;

use crate::words::words;
use serde::{Deserialize, Serialize};

pub(crate) use self::hidden_changes::HiddenChange;
use super::completion::describe_unrunnable;
use super::progress::TestCounts;
use super::{FoldInput, Guard, GuardAnswers, GuardInput};
use crate::checks::{self, CallCheck, CheckKind};
use crate::definition::Definition;
use crate::event::{
    AttemptResult, CallStatus, ControlAction, EventKind, Payload, ToolFinished, WorkspaceChanged,
};
use crate::id::ActorId;
use crate::observe::{BuildOutcome, ObservedResult, TestSummary, TestVerdict};
use crate::proposal::Proposal;
use crate::session_location::SessionLocation;
use crate::state::{ChangeCertainty, InFlightCall, SessionState};

/// Commands and files that the definition adds to the built-in ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirtyBits {
    /// Commands and tools that test.
    pub tests: Vec<String>,
    /// Commands and tools that build.
    pub builds: Vec<String>,
    /// Patterns of files that are documentation.
    pub docs: Vec<String>,
}

/// The recorded changes and test runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct DirtyState {
    /// The moment of the last code change.
    code: Option<u64>,
    /// How many changes may have happened unseen, without a new epoch.
    hidden: u64,
    docs: bool,
    current_test_result: Option<TestedMoment>,
    /// The moment in which a person skipped the tests.
    skipped: Option<u64>,
    /// The command that last ran the tests.
    command: Option<String>,
    /// Why that command could not be run, if a program was missing.
    unrunnable: Option<String>,
    /// The moment after the last rollback. A test run that started before it may have tested files
    /// that no longer exist.
    undone: u64,
}

/// The bits that held before an attempt. A rollback restores them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct BitsBeforeAttempt {
    code: Option<u64>,
    docs: bool,
    current_test_result: Option<TestedMoment>,
}

/// The latest test run with a usable result.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct TestedMoment {
    /// The moment of the workspace that the run tested.
    moment: u64,
    passing: TestsPassing,
}

words! {
    /// Whether tests pass, ordered from good to bad.
    #[derive(Default, PartialOrd, Ord)]
    TestsPassing {
        /// They pass.
        Yes = "yes",
        /// The result is unknown.
        #[default]
        Unknown = "unknown",
        /// They fail.
        No = "no",
    }
}

/// The effects of a call on the dirty bits, stored until its result arrives.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CallBits {
    /// Whether it changes code.
    pub(crate) code: bool,
    /// Whether it changes documentation.
    pub(crate) docs: bool,
    /// What it may change unseen.
    pub(crate) hidden: HiddenChange,
    /// The moment in which the call started.
    moment: u64,
    pub(crate) checks: Vec<CallCheck>,
    /// Whether its tests run after all its changes.
    after: bool,
}

/// The bits, for people and for the completion check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "the bits are named flags in the JSON output")]
pub struct DirtySummary {
    /// Whether code was changed.
    pub code_modified: bool,
    /// Whether tests ran since the last code change.
    pub tests_run: bool,
    /// Whether they passed.
    pub tests_passing: TestsPassing,
    /// Whether documentation was changed.
    pub docs_updated: bool,
    /// Whether a person skipped the tests of the current code.
    pub skipped: bool,
}

impl CallBits {
    /// Returns the effects of a call that starts now.
    pub(crate) fn for_call(
        definition: &Definition,
        place: &SessionLocation,
        state: &SessionState,
        proposal: &Proposal<'_>,
    ) -> Self {
        let checks_found = proposal.checks(definition);
        let (code, docs) = paths::surely_changed(definition, proposal, checks_found);
        let after = paths::are_checks_last(proposal, checks_found);
        Self {
            code,
            docs,
            hidden: hidden_changes::find_hidden_change(place, proposal, checks_found),
            moment: state.moment(),
            checks: checks_found.iter().map(|checks_found| checks_found.check).collect(),
            after,
        }
    }

    /// Returns whether the call may change code unseen.
    pub(crate) fn may_change_code_unseen(&self) -> bool {
        self.hidden == HiddenChange::Code
    }
}

impl SessionState {
    /// Returns how often the workspace changed, or may have changed.
    fn moment(&self) -> u64 {
        self.epoch.saturating_add(self.dirty.hidden)
    }

    /// Records a change that started a new epoch.
    pub(crate) fn record_change(&mut self, code: bool, docs: bool) {
        if code {
            self.dirty.code = Some(self.moment());
        }
        self.dirty.docs |= docs;
    }

    /// Returns the bits that a rollback of a new attempt restores. A call that still runs is no part
    /// of the attempt, so its change counts as made before.
    pub(crate) fn bits_before_attempt(&self) -> BitsBeforeAttempt {
        let DirtyState { code, docs, current_test_result, .. } = self.dirty;
        let mut open = self.in_flight.iter().filter(|call| !call.needs_approval());
        let code = if open.any(InFlightCall::changes_code) { Some(self.moment()) } else { code };
        BitsBeforeAttempt { code, docs, current_test_result }
    }

    /// Ends the bits of an attempt that was undone: the code is again as it was before. If not
    /// everything was undone, a change that was seen in the attempt stays, and needs new tests. A
    /// person's skip stays, too.
    pub(crate) fn end_bits_of_attempt(&mut self, before: BitsBeforeAttempt, result: AttemptResult) {
        let moment = self.moment();
        if result == AttemptResult::PartialRollback && self.dirty.code != before.code {
            self.record_change(true, false);
            self.attempts.iter_mut().for_each(|outer| outer.bits.code = Some(moment));
            return;
        }
        let BitsBeforeAttempt { code, docs, current_test_result } = before;
        self.dirty = DirtyState {
            code,
            docs,
            current_test_result,
            undone: moment,
            ..core::mem::take(&mut self.dirty)
        };
    }

    /// Records a change that another actor made while attempts are open. Their rollback does not
    /// undo it.
    pub(crate) fn record_change_beside_attempts(
        &mut self,
        actor: &ActorId,
        code: bool,
        docs: bool,
    ) {
        let moment = self.moment();
        for attempt in self.attempts.iter_mut().filter(|attempt| attempt.actor != *actor) {
            if code {
                attempt.bits.code = Some(moment);
            }
            attempt.bits.docs |= docs;
        }
    }

    /// Records a change that the adapter found by comparing the workspace.
    fn record_reported_change(&mut self, actor: &ActorId, code: bool, docs: bool) {
        self.epoch += 1;
        self.work += 1;
        self.record_change(code, docs);
        self.record_change_beside_attempts(actor, code, docs);
    }

    /// Records a possible unseen change.
    pub(crate) fn record_possible_change(&mut self) {
        self.dirty.hidden = self.dirty.hidden.saturating_add(1);
        self.record_change(true, false);
    }
}

impl DirtyState {
    /// Clears the test results of a reset session; the recorded changes stay.
    pub(crate) fn reset(&mut self) {
        self.current_test_result = None;
        self.skipped = None;
        self.unrunnable = None;
    }

    /// Returns the result of the tests of the current code, or `None` if none ran.
    fn current_test_result(&self) -> Option<TestsPassing> {
        let fresh = |tested: &TestedMoment| self.code.is_none_or(|code| tested.moment >= code);
        self.current_test_result.filter(fresh).map(|tested| tested.passing)
    }

    fn is_skipped(&self) -> bool {
        self.skipped.is_some_and(|skipped| self.code.is_none_or(|code| skipped >= code))
    }

    /// Records a test run. `moment` is what the run tested; `code` is the moment of the last code
    /// change, including changes by the run's own call.
    fn record_tests(&mut self, moment: u64, passing: TestsPassing, code: Option<u64>) {
        if moment < self.undone {
            return;
        }
        self.unrunnable = None;
        let previous =
            self.current_test_result.filter(|previous| previous.moment >= code.unwrap_or(0));
        let passing_now = match previous {
            // Two runs may finish in either order; the later moment wins.
            Some(previous) if previous.moment > moment => return,
            // A run without a usable result does not replace an earlier one.
            Some(previous) if passing == TestsPassing::Unknown => previous.passing,
            _ => passing,
        };
        self.current_test_result = Some(TestedMoment { moment, passing: passing_now });
    }

    /// Returns the current bits.
    pub(crate) fn summary(&self) -> DirtySummary {
        let tested = self.current_test_result();
        DirtySummary {
            code_modified: self.code.is_some(),
            tests_run: tested.is_some(),
            tests_passing: tested.unwrap_or(TestsPassing::Unknown),
            docs_updated: self.docs,
            skipped: self.is_skipped(),
        }
    }
}

/// A result up to this size was read from its beginning.
const WHOLE_RESULT_BYTES_MAX: u64 = 64 * 1024;

/// The exit statuses with which a shell reports a signal.
const SIGNAL_EXIT_STATUSES: core::ops::RangeInclusive<i64> = 129..=159;

/// How a call ended, as far as this proves something about its commands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallOutcome {
    Succeeded,
    Failed,
    /// A signal killed one of its commands, so its output may be incomplete.
    Killed,
    /// The call timed out or crashed.
    Aborted,
}

impl CallOutcome {
    fn of(status: CallStatus, exit_code: Option<i64>) -> Option<Self> {
        match (status, exit_code) {
            // The call did not run, or it is unknown how far it ran.
            (CallStatus::Cancelled, _) => None,
            (CallStatus::Timeout | CallStatus::Crashed, _) => Some(Self::Aborted),
            (CallStatus::Ok, None | Some(0)) => Some(Self::Succeeded),
            (_, Some(code)) if SIGNAL_EXIT_STATUSES.contains(&code) => Some(Self::Killed),
            (CallStatus::Ok | CallStatus::Error, _) => Some(Self::Failed),
        }
    }
}

pub(crate) struct DirtyGuard;

impl Guard for DirtyGuard {
    /// The completion check asks for the bits, so this guard decides nothing.
    fn decide(&self, _look: GuardInput<'_>, _answers: &mut GuardAnswers) {}

    fn apply(&self, state: &mut SessionState, fold: FoldInput<'_>) {
        let record = fold.record;
        match &record.event.kind {
            EventKind::ToolProposed(_) if record.verdict.allows_run() => {
                let Some(proposal) = fold.proposal else { return };
                if let Some(command) = checks::test_command(fold.definition, proposal) {
                    state.dirty.command = Some(command);
                }
            }
            EventKind::ToolFinished(ToolFinished {
                status, exit_code, background, result, ..
            }) => {
                // The call is still open here: it is closed after all guards have seen the event.
                let key = record.call_key(fold.definition);
                let Some(call) = state.in_flight.find_mut(key) else { return };
                if call.changes == ChangeCertainty::Perhaps && call.saw_change {
                    (call.bits.code, call.bits.docs) = paths::observed_changes(fold);
                }
                if let Some(end) = CallOutcome::of(*status, *exit_code)
                    && !background
                {
                    let call = ReturnedCall::of(call);
                    let observed = record.facts.observed.result.as_ref();
                    match unrunnable_tests(&call, *exit_code, result.as_ref(), observed) {
                        Some(why) => state.dirty.unrunnable = Some(why),
                        None => record_returned_call(state, &call, end, observed),
                    }
                }
            }
            EventKind::WorkspaceChanged(WorkspaceChanged { files, more }) => {
                let (code, docs) = paths::reported_changes(fold, files);
                state.record_reported_change(&record.event.actor, code || *more, docs);
            }
            _ => {}
        }
        if fold.person_action == Some(ControlAction::SkipDirtyBits) {
            state.dirty.skipped = Some(state.moment());
        }
    }
}

/// The facts about a finished call that this guard uses.
struct ReturnedCall {
    bits: CallBits,
    epoch: u64,
    mutates: bool,
    changes_code: bool,
}

impl ReturnedCall {
    fn of(call: &InFlightCall) -> Self {
        let (mutates, changes_code) = (call.mutates(), call.changes_code());
        Self { bits: call.bits.clone(), epoch: call.epoch, mutates, changes_code }
    }
}

/// Returns why a call could not run its tests, if its shell did not find a program.
fn unrunnable_tests(
    call: &ReturnedCall,
    exit_code: Option<i64>,
    result: Option<&Payload>,
    observed: Option<&ObservedResult>,
) -> Option<String> {
    let depends = |check: &CallCheck| check.proven || check.refuted;
    let is_test = |check: &CallCheck| check.kind == CheckKind::Test && depends(check);
    let have_run = observed.is_some_and(|result| result.tests.is_some());
    if have_run || !call.bits.checks.iter().any(is_test) {
        return None;
    }
    describe_unrunnable(exit_code?, result.map_or("", Payload::head))
}

/// Records what a finished call proves about its checks.
fn record_returned_call(
    state: &mut SessionState,
    call: &ReturnedCall,
    end: CallOutcome,
    result: Option<&ObservedResult>,
) {
    // If the call changed something before it tested, its tests cover that change, unless another
    // call changed the workspace meanwhile.
    let own_change =
        |changes: bool| call.bits.after && changes && call.bits.moment == state.moment();
    let moment = call.bits.moment
        + u64::from(own_change(call.mutates || call.bits.may_change_code_unseen()));
    let epoch = call.epoch + u64::from(own_change(call.mutates));
    let summary = result.and_then(|result| result.tests.as_ref());
    let of = |what: CheckKind| call.bits.checks.iter().filter(move |check| check.kind == what);
    let did_it_run = |check: &&CallCheck| did_check_run(**check, end, summary.is_some());
    let built = result.and_then(|result| result.build);
    let none_ran = summary.is_some_and(|summary| summary.failed == 0 && summary.passed == Some(0))
        && result.is_some_and(|result| result.bytes <= WHOLE_RESULT_BYTES_MAX);
    let tests = of(CheckKind::Test).filter(did_it_run).map(|check| {
        let reported = match summary.map(TestSummary::verdict) {
            Some(TestVerdict::Passing)
                if !matches!(end, CallOutcome::Aborted | CallOutcome::Killed) =>
            {
                TestsPassing::Yes
            }
            Some(TestVerdict::Failing) => TestsPassing::No,
            // Code that does not build cannot be tested.
            None if built == Some(BuildOutcome::Failed) => TestsPassing::No,
            _ => TestsPassing::Unknown,
        };
        match proven_result(*check, end) {
            // A script can hide the exit status of failing tests, but not their output.
            Some(true) if reported == TestsPassing::No => (TestsPassing::No, TestsPassing::No),
            // No test ran, so nothing is proven.
            Some(true) if none_ran => (TestsPassing::Unknown, TestsPassing::Unknown),
            Some(true) => (TestsPassing::Yes, TestsPassing::Yes),
            Some(false) => (TestsPassing::No, TestsPassing::No),
            // Output that another command may have printed proves nothing.
            None if reported == TestsPassing::Yes && !check.summary_counts => {
                (TestsPassing::Unknown, reported)
            }
            None => (reported, reported),
        }
    });
    // Of several test runs the worst counts. Progress uses the reported results; the completion
    // check uses the proven ones.
    if let Some((passing, reported)) = tests.reduce(|a, b| (a.0.max(b.0), a.1.max(b.1))) {
        let code = if call.changes_code { Some(state.moment() + 1) } else { state.dirty.code };
        state.dirty.record_tests(moment, passing, code);
        // A partial run is not compared with a whole one.
        let failing = summary.filter(|summary| summary.complete).map(|summary| summary.failed);
        state.progress.record_tests(reported, failing, epoch);
        let counts = summary
            .and_then(|summary| Some(TestCounts::from_counts(summary.passed?, summary.failed)));
        state.progress.counts = counts.or(state.progress.counts);
    }
    let proven = of(CheckKind::Build).filter_map(|check| proven_result(*check, end)).min();
    // A printed log proves nothing about a build of this call.
    let logged = built.filter(|_| !call.bits.checks.is_empty());
    let logged = logged.map(|built| built == BuildOutcome::Ok);
    if let Some(ok) = proven.or(logged) {
        state.progress.record_build(ok);
    }
    if of(CheckKind::Docs).any(|check| proven_result(*check, end) == Some(true)) {
        state.dirty.docs = true;
    }
    if end != CallOutcome::Succeeded
        && let Some(result) = result.filter(|result| result.bytes > 0)
    {
        state.progress.record_error(result.content_digest());
    }
}

/// Returns whether a check succeeded, if the outcome of its call proves it.
fn proven_result(check: CallCheck, end: CallOutcome) -> Option<bool> {
    match end {
        CallOutcome::Succeeded if check.proven => Some(true),
        CallOutcome::Failed | CallOutcome::Killed if check.refuted => Some(false),
        _ => None,
    }
}

/// Returns whether a check ran at all.
fn did_check_run(check: CallCheck, end: CallOutcome, spoke: bool) -> bool {
    check.certain || spoke || proven_result(check, end).is_some()
}
