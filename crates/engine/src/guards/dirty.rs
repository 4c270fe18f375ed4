//! Dirty bits: whether code was changed, and whether tests have seen it since.
//!
//! They are set from what calls do, never from what the agent says. A run of the
//! tests counts for the code as it was when the run *began*, and nothing but
//! proof counts as passing.

pub(crate) mod clean;
mod hidden;
mod paths;

use alloc::string::String;
use alloc::vec::Vec;

use crate::words::words;
use serde::{Deserialize, Serialize};

pub(crate) use self::hidden::Hidden;
use super::progress::TestCounts;
use super::{Answers, Fold, Guard, Look};
use crate::checks::{self, Check, What};
use crate::definition::Definition;
use crate::event::{Action, EventKind, Status, ToolFinished};
use crate::observe::{BuildOutcome, ObservedResult, TestSummary, TestVerdict};
use crate::place::Place;
use crate::proposal::Proposal;
use crate::state::{Call, Changes, State};

/// What the definition adds to the commands and files that everybody knows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirtyBits {
    /// Commands and tools that test.
    pub tests: Vec<String>,
    /// Commands and tools that build.
    pub builds: Vec<String>,
    /// Patterns of files that are documentation.
    pub docs: Vec<String>,
}

/// What is remembered of changes and tests.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Dirty {
    /// The moment that the last change of code made.
    code: Option<u64>,
    /// Changes that nobody saw, and that made no epoch.
    hidden: u64,
    docs: bool,
    tested: Option<Tested>,
    /// The moment in which a person said that it is good as it is.
    skipped: Option<u64>,
    /// How the tests were run last.
    command: Option<String>,
}

/// The latest run of the tests that says something.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Tested {
    /// The moment that it saw.
    moment: u64,
    passing: TestsPassing,
}

words! {
    /// Whether tests pass, from good to bad.
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

/// What a call does that matters here, kept until it comes back.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Bits {
    /// Whether it changes code.
    pub(crate) code: bool,
    /// Whether it changes documentation.
    pub(crate) docs: bool,
    /// What it may change where nobody sees it.
    pub(crate) hidden: Hidden,
    /// The moment in which it began.
    moment: u64,
    pub(crate) checks: Vec<Check>,
    /// Whether its tests run after everything that it changes.
    after: bool,
}

/// The bits, for people and for the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "they are bits, and people know them by name")]
pub struct DirtySummary {
    /// Whether code was changed.
    pub code_modified: bool,
    /// Whether tests were run since.
    pub tests_run: bool,
    /// Whether they passed.
    pub tests_passing: TestsPassing,
    /// Whether documentation was changed.
    pub docs_updated: bool,
    /// Whether a person said that the code is good without tests.
    pub skipped: bool,
}

impl Bits {
    /// What a call does that begins now.
    pub(crate) fn of(
        definition: &Definition,
        place: &Place,
        state: &State,
        proposal: &Proposal<'_>,
    ) -> Self {
        let found = proposal.checks(definition);
        let (code, docs) = paths::changed(definition, proposal, found);
        let after = paths::checks_last(proposal, found);
        Self {
            code,
            docs,
            hidden: hidden::of(place, proposal, found),
            moment: state.moment(),
            checks: found.iter().map(|found| found.check).collect(),
            after,
        }
    }

    /// Whether it may change code where nobody sees it.
    pub(crate) fn hides_code(&self) -> bool {
        self.hidden == Hidden::Code
    }
}

impl State {
    /// How often the workspace changed, or may have.
    fn moment(&self) -> u64 {
        self.epoch.saturating_add(self.dirty.hidden)
    }

    /// Remembers a change that made an epoch.
    pub(crate) fn saw_change(&mut self, code: bool, docs: bool) {
        if code {
            self.dirty.code = Some(self.moment());
        }
        self.dirty.docs |= docs;
    }

    /// Remembers a change that nobody saw.
    pub(crate) fn suspects_change(&mut self) {
        self.dirty.hidden = self.dirty.hidden.saturating_add(1);
        self.saw_change(true, false);
    }
}

impl Dirty {
    /// Forgets what was earned; what was done to the workspace stays.
    pub(crate) fn reset(&mut self) {
        self.tested = None;
        self.skipped = None;
    }

    /// How the tests of the code as it is ended; none where none were run.
    fn tested(&self) -> Option<TestsPassing> {
        let fresh = |tested: &Tested| self.code.is_none_or(|code| tested.moment >= code);
        self.tested.filter(fresh).map(|tested| tested.passing)
    }

    fn is_skipped(&self) -> bool {
        self.skipped.is_some_and(|skipped| self.code.is_none_or(|code| skipped >= code))
    }

    /// Remembers a run that saw a moment; `code` is the one that the last change
    /// of code made, that of the run's own call included.
    fn saw_tests(&mut self, moment: u64, passing: TestsPassing, code: Option<u64>) {
        let known = self.tested.filter(|known| known.moment >= code.unwrap_or(0));
        let kept = match known {
            // Two runs may come back in either order; the later moment stands.
            Some(known) if known.moment > moment => return,
            // A run that nobody can tell anything of takes nothing back.
            Some(known) if passing == TestsPassing::Unknown => known.passing,
            _ => passing,
        };
        self.tested = Some(Tested { moment, passing: kept });
    }

    /// The bits as they are.
    pub(crate) fn summary(&self) -> DirtySummary {
        let tested = self.tested();
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
const WHOLE_BYTES_MAX: u64 = 64 * 1024;

/// The exit statuses with which a shell tells of a signal.
const DEATHS: core::ops::RangeInclusive<i64> = 129..=159;

/// How a call came to its end, as far as that says something of its commands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Succeeded,
    Failed,
    /// A signal ended a command of it, so what it said before is not all.
    Died,
    /// It was ended, or died.
    Broken,
}

impl End {
    fn of(status: Status, exit_code: Option<i64>) -> Option<Self> {
        match (status, exit_code) {
            // It did not run, or nobody knows how far.
            (Status::Cancelled, _) => None,
            (Status::Timeout | Status::Crashed, _) => Some(Self::Broken),
            (Status::Ok, None | Some(0)) => Some(Self::Succeeded),
            (_, Some(code)) if DEATHS.contains(&code) => Some(Self::Died),
            (Status::Ok | Status::Error, _) => Some(Self::Failed),
        }
    }
}

pub(crate) struct DirtyGuard;

impl Guard for DirtyGuard {
    /// The completion check asks, not this guard.
    fn decide(&self, _look: Look<'_>, _answers: &mut Answers) {}

    fn apply(&self, state: &mut State, fold: Fold<'_>) {
        let record = fold.record;
        match &record.event.kind {
            EventKind::ToolProposed(_) if record.verdict.lets_run() => {
                let Some(proposal) = fold.proposal else { return };
                if let Some(command) = checks::test_command(fold.definition, proposal) {
                    state.dirty.command = Some(command);
                }
            }
            EventKind::ToolFinished(ToolFinished { status, exit_code, background, .. }) => {
                // The call is still open here: it is closed after the guards
                // have seen it.
                let key = record.key(fold.definition);
                let Some(call) = state.in_flight.find_mut(key) else { return };
                if call.changes == Changes::Perhaps && call.changed {
                    (call.bits.code, call.bits.docs) = paths::seen(fold);
                }
                if let Some(end) = End::of(*status, *exit_code)
                    && !background
                {
                    let call = Came::of(call);
                    finished(state, &call, end, record.facts.observed.result.as_ref());
                }
            }
            _ => {}
        }
        if fold.said == Some(Action::SkipDirtyBits) {
            state.dirty.skipped = Some(state.moment());
        }
    }
}

/// What counts here of a call that came back.
struct Came {
    bits: Bits,
    epoch: u64,
    mutates: bool,
    changes_code: bool,
}

impl Came {
    fn of(call: &Call) -> Self {
        let (mutates, changes_code) = (call.mutates(), call.changes_code());
        Self { bits: call.bits.clone(), epoch: call.epoch, mutates, changes_code }
    }
}

/// What the end of a call says of its checks.
fn finished(state: &mut State, call: &Came, end: End, result: Option<&ObservedResult>) {
    // What the call itself changed before it tested, the tests have seen, unless
    // somebody else changed something meanwhile.
    let moved = |changes: bool| call.bits.after && changes && call.bits.moment == state.moment();
    let moment = call.bits.moment + u64::from(moved(call.mutates || call.bits.hides_code()));
    let epoch = call.epoch + u64::from(moved(call.mutates));
    let summary = result.and_then(|result| result.tests.as_ref());
    let of = |what: What| call.bits.checks.iter().filter(move |check| check.what == what);
    let known = |check: &&Check| ran(**check, end, summary.is_some());
    let built = result.and_then(|result| result.build);
    let none_ran = summary.is_some_and(|summary| summary.failed == 0 && summary.passed == Some(0))
        && result.is_some_and(|result| result.bytes <= WHOLE_BYTES_MAX);
    let tests = of(What::Test).filter(known).map(|check| {
        let said = match summary.map(TestSummary::verdict) {
            Some(TestVerdict::Passing) if !matches!(end, End::Broken | End::Died) => {
                TestsPassing::Yes
            }
            Some(TestVerdict::Failing) => TestsPassing::No,
            // What can't be built can't be tested.
            None if built == Some(BuildOutcome::Failed) => TestsPassing::No,
            _ => TestsPassing::Unknown,
        };
        match proof(*check, end) {
            // A script may hide that its tests fail; what they say they can't.
            Some(true) if said == TestsPassing::No => (TestsPassing::No, TestsPassing::No),
            // No test was run, and none failed.
            Some(true) if none_ran => (TestsPassing::Unknown, TestsPassing::Unknown),
            Some(true) => (TestsPassing::Yes, TestsPassing::Yes),
            Some(false) => (TestsPassing::No, TestsPassing::No),
            // What others may have said proves nothing.
            None if said == TestsPassing::Yes && !check.heard => (TestsPassing::Unknown, said),
            None => (said, said),
        }
    });
    // Of several, the worst counts. Whether it goes on is told by what was said;
    // whether it may stop, by what is proven.
    if let Some((passing, said)) = tests.reduce(|a, b| (a.0.max(b.0), a.1.max(b.1))) {
        let code = if call.changes_code { Some(state.moment() + 1) } else { state.dirty.code };
        state.dirty.saw_tests(moment, passing, code);
        // Part of a run is not compared with a whole one.
        let failing = summary.filter(|summary| summary.complete).map(|summary| summary.failed);
        state.progress.saw_tests(said, failing, epoch);
        let counts = summary.and_then(|it| Some(TestCounts::of(it.passed?, it.failed)));
        state.progress.counts = counts.or(state.progress.counts);
    }
    let proven = of(What::Build).filter_map(|check| proof(*check, end)).min();
    // A log that is only shown says nothing of this build.
    let said = built.filter(|_| !call.bits.checks.is_empty());
    let said = said.map(|built| built == BuildOutcome::Ok);
    if let Some(ok) = proven.or(said) {
        state.progress.saw_build(ok);
    }
    if of(What::Docs).any(|check| proof(*check, end) == Some(true)) {
        state.dirty.docs = true;
    }
    if end != End::Succeeded
        && let Some(result) = result.filter(|result| result.bytes > 0)
    {
        state.progress.saw_error(result.says());
    }
}

/// Whether a check succeeded, where the end of its call proves it.
fn proof(check: Check, end: End) -> Option<bool> {
    match end {
        End::Succeeded if check.proven => Some(true),
        End::Failed | End::Died if check.refuted => Some(false),
        _ => None,
    }
}

/// Whether a check ran at all.
fn ran(check: Check, end: End, spoke: bool) -> bool {
    check.certain || spoke || proof(check, end).is_some()
}
