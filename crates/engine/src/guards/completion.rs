//! Completion: what must be true before the main agent may stop.
//!
//! The gate cannot block forever. It counts its own blocks, and when it has repeated the same text
//! too often, the turn ends as `capped`, which never counts as done.

mod check_problems;
mod refused_stops;
mod unrunnable;
pub(crate) mod verification;

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::dirty::clean;
use super::fallback::is_other_model;
use super::limits::reached_hard_limit;
use super::{FoldInput, Guard, GuardAnswers, GuardInput, ViolationDraft, context};
use crate::event::{ControlAction, EventKind, StopProposed};
use crate::facts::{CheckFact, FileDetails, FileFact, FileKind, Queries, Query};
use crate::state::{SessionState, TurnResult, short_hash};
use crate::time::Timestamp;
use crate::verdict::{
    BypassReason, CompletionResult, Decision, Feedback, GuardName, SafetyAction, SafetyEvent,
    SafetyKind, Severity, ViolationClass,
};

use check_problems::{CheckProblems, DEFAULT_TEXT, UndecidedReason};
pub(crate) use unrunnable::describe_unrunnable;

/// The provider name of completion feedback, used where the check cannot block.
const PROVIDER: &str = "Completion";

/// What must be true before the agent may stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompletionRequirement {
    /// Files that must exist.
    Files(Vec<RequiredFile>),
    /// All of these must pass.
    All(Vec<CompletionRequirement>),
    /// At least one of these must pass.
    Any(Vec<CompletionRequirement>),
    /// A checker written in Rust and registered with the runtime.
    Custom {
        /// The registered name.
        name: String,
    },
    /// A command that must succeed.
    Command {
        /// The number of this command in the definition.
        number: u16,
        /// The command line.
        line: String,
        /// The timeout of the command.
        timeout_seconds: u32,
        /// Whether a person has allowed the command to run on this machine.
        trusted: bool,
    },
    /// Changed code must be tested.
    Clean,
    /// Documentation must be updated if code was changed.
    DocsUpdated,
}

impl CompletionRequirement {
    /// Returns whether this checker depends on the dirty bits: on what the agent changed and tested.
    pub fn uses_dirty_bits(&self) -> bool {
        match self {
            Self::Clean | Self::DocsUpdated => true,
            Self::All(parts) | Self::Any(parts) => parts.iter().any(Self::uses_dirty_bits),
            Self::Files(_) | Self::Custom { .. } | Self::Command { .. } => false,
        }
    }
}

/// A file that must exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequiredFile {
    /// The canonical path.
    pub path: String,
    /// The minimum size.
    pub min_bytes: u64,
    /// Whether the content must be valid JSON.
    pub json: bool,
    /// Whether the file must have been modified after the session started.
    pub newer_than_start: bool,
}

/// How often a stop may be blocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletionCap {
    /// How many blocks one turn allows.
    pub blocks: u32,
    /// How many blocks with the same text are allowed while the workspace does not change.
    pub same: u32,
}

impl Default for CompletionCap {
    fn default() -> Self {
        Self { blocks: 5, same: 3 }
    }
}

/// The stop reason for an agent that stopped while no gate could answer. It is reported later, and
/// the turn counts as unverified.
pub const REASON_GUARD_BROKEN: &str = "guard_broken";

pub(crate) struct CompletionGuard;

impl Guard for CompletionGuard {
    fn needs(&self, input: GuardInput<'_>, queries: &mut Queries) {
        if let Some(checker) = applicable_checker(input) {
            ask_facts(checker, input, queries);
        }
    }

    fn decide(&self, input: GuardInput<'_>, answers: &mut GuardAnswers) {
        if !is_completion_event(input) {
            return;
        }
        if input.is_paused() {
            // The stop is allowed, but never as complete, with or without a completion check.
            let why = input.state.paused.as_ref().and_then(|paused| paused.why.as_deref());
            let why = why.map_or_else(String::new, |why| format!(": {why}"));
            let reason = format!("the session is paused{why}");
            answers.completion = Some(CompletionResult::Unverified { reason });
            return;
        }
        if let EventKind::StopProposed(StopProposed { reason: Some(reason), .. }) =
            &input.event.kind
            && reason == REASON_GUARD_BROKEN
        {
            let reason = "the guard was broken when the agent stopped".to_string();
            answers.completion = Some(CompletionResult::Unverified { reason });
            return;
        }
        let Some(checker) = &input.definition.completion else { return };
        if let Some(reason) = bypass_reason(input) {
            answers.completion = Some(CompletionResult::Bypassed { reason });
        } else {
            match evaluate(checker, input) {
                CheckResult::Complete => answers.completion = Some(CompletionResult::Complete),
                CheckResult::Incomplete(problems) => report_incomplete(input, &problems, answers),
            }
        }
    }

    fn apply(&self, state: &mut SessionState, fold: FoldInput<'_>) {
        let record = fold.record;
        verification::record_runs(state, fold);
        // A person or an advisor let the agent continue, so the block counter starts again.
        if matches!(
            fold.person_action,
            Some(ControlAction::Resume | ControlAction::Acknowledge | ControlAction::ClearBlocker)
        ) {
            state.turn.reset_blocks();
            // A person may have repaired what a check needs, so that it has to run again.
            state.work += 1;
        }
        if is_other_model(record) {
            state.turn.reset_blocks();
        }
        refused_stops::apply_iteration_end(state, fold);
        let EventKind::StopProposed(StopProposed { background: 0, .. }) = record.event.kind else {
            return;
        };
        if !record.event.actor.is_main() {
            return;
        }
        let is_refused = record.verdict.has_enforced_violation_of(&GuardName::Completion);
        if is_refused || record.verdict.is_enforced(Decision::Deny) {
            refused_stops::apply_refused_stop(state, record);
            return;
        }
        state.turn.missing = None;
        state.turn.result = Some(match &record.verdict.completion {
            None => TurnResult::Unchecked,
            Some(CompletionResult::Complete) => TurnResult::Complete,
            Some(CompletionResult::Incomplete { .. }) => TurnResult::Incomplete,
            Some(CompletionResult::Bypassed { reason }) => TurnResult::Bypassed(*reason),
            Some(CompletionResult::Capped { .. }) => TurnResult::Capped,
            Some(CompletionResult::Unverified { .. }) => TurnResult::Unverified,
        });
    }
}

/// Returns whether the task should be complete at this event.
fn is_completion_event(input: GuardInput<'_>) -> bool {
    match input.event.kind {
        // Background work is still running, so this is not the end of the task.
        EventKind::StopProposed(StopProposed { background, .. }) => {
            background == 0 && input.event.actor.is_main()
        }
        EventKind::OutputProposed(_) | EventKind::SessionEnded(_) => input.event.actor.is_main(),
        _ => false,
    }
}

/// Returns the used-up resource that skips the check. An ended session cannot be blocked, so its
/// check is never skipped.
fn bypass_reason(input: GuardInput<'_>) -> Option<BypassReason> {
    if matches!(input.event.kind, EventKind::SessionEnded(_)) {
        return None;
    }
    let reached = reached_hard_limit(input).map(|reached| reached.bypass());
    reached.or_else(|| context::is_stop_bypassed(input).then_some(BypassReason::Context))
}

/// Returns the checker if this event needs it and no bypass applies.
fn applicable_checker(input: GuardInput<'_>) -> Option<&CompletionRequirement> {
    let skipped =
        input.is_paused() || !is_completion_event(input) || bypass_reason(input).is_some();
    input.definition.completion.as_ref().filter(|_| !skipped)
}

fn report_incomplete(input: GuardInput<'_>, problems: &CheckProblems, answers: &mut GuardAnswers) {
    let (missing, text, (kind, subtype)) =
        (problems.paths(), problems.text(), problems.violation_kind());
    let turn = &input.state.turn;
    let cap = input.definition.completion_cap;
    let is_repeated = turn.last_block.is_some_and(|(block, _)| block == short_hash(&text));
    let same = turn.same_blocks >= cap.same
        && turn.last_block == Some((short_hash(&text), input.state.epoch));
    // A supervised run waits for a running check, so such a stop does not count.
    let waits = problems.is_waiting() && input.state.spent.supervised;
    let is_capped = !waits && (same || turn.blocks >= cap.blocks);
    match input.event.kind {
        EventKind::StopProposed(_)
            if refused_stops::pause_stuck_agent(input, problems, is_capped, answers) =>
        {
            log_unclean(input, problems, SafetyAction::ContinuedMonitoring, answers);
            answers.completion = Some(CompletionResult::Incomplete { missing, feedback: text });
        }
        // The agent was told once. Only a person can do more, so a further block would not help.
        EventKind::StopProposed(_) if is_repeated && problems.waits_only_for_trust() => {
            answers.completion = Some(CompletionResult::Unverified { reason: text });
        }
        EventKind::StopProposed(_) if turn.unrunnable_blocks > 0 && problems.is_unrunnable() => {
            // The agent was told, and can't repair it. This is counted, because a stop during a new run
            // of the check clears the last text.
            log_unclean(input, problems, SafetyAction::ContinuedMonitoring, answers);
            answers.completion = Some(CompletionResult::Unverified { reason: text });
        }
        EventKind::StopProposed(_) if is_capped => {
            log_unclean(input, problems, SafetyAction::ContinuedMonitoring, answers);
            answers.completion =
                Some(CompletionResult::Capped { rounds: turn.blocks, feedback: text });
        }
        EventKind::StopProposed(_) => {
            answers.add_violation(ViolationDraft {
                guard: GuardName::Completion,
                kind,
                subtype,
                class: ViolationClass::Recoverable,
                decision: Decision::Deny,
                message: text.clone(),
                location: missing.first().cloned(),
                correction: Some(problems.correction()),
            });
            let enforced = answers.violations.last().is_some_and(|violation| violation.enforced);
            log_unclean(
                input,
                problems,
                if enforced { SafetyAction::InjectedTestPrompt } else { SafetyAction::Observed },
                answers,
            );
            answers.completion = Some(CompletionResult::Incomplete { missing, feedback: text });
        }
        EventKind::OutputProposed(_) => {
            // Structured output does not end the turn, so the agent gets feedback and no denial.
            answers.feedback.push(Feedback {
                provider: PROVIDER.to_string(),
                severity: Severity::Caution,
                summary: text.clone(),
                observations: Vec::new(),
                suggestions: Vec::from(["Finish the task before you stop.".to_string()]),
                timestamp: input.clock.now(),
                call_index: input.state.feedback_calls(),
                definition: input.definition.name.clone(),
            });
            answers.completion = Some(CompletionResult::Incomplete { missing, feedback: text });
        }
        _ => answers.completion = Some(CompletionResult::Incomplete { missing, feedback: text }),
    }
}

/// Writes changed but untested code into the safety log.
fn log_unclean(
    input: GuardInput<'_>,
    problems: &CheckProblems,
    action: SafetyAction,
    answers: &mut GuardAnswers,
) {
    if let Some(unclean) = problems.unclean.first() {
        answers.safety.push(SafetyEvent {
            timestamp: input.clock.now(),
            kind: SafetyKind::DirtyBitViolation,
            details: unclean.details(input.state),
            action_taken: action,
        });
    }
}

/// The result of a checker.
enum CheckResult {
    Complete,
    Incomplete(CheckProblems),
}

/// Asks for the facts that a checker needs. Costly facts are asked for only if the cheap ones do
/// not decide the result.
fn ask_facts(checker: &CompletionRequirement, input: GuardInput<'_>, queries: &mut Queries) {
    let facts = input.facts;
    match checker {
        CompletionRequirement::Files(files) => {
            for file in files {
                let fetched = facts.files.get(&file.path);
                let open = fetched.is_none_or(|file_fact| {
                    // The file fact exists, but it does not say whether the content is JSON.
                    file.json && file_fact.kind == FileKind::File && file_fact.json.is_none()
                });
                if open {
                    let wants = FileDetails { json: file.json, ..FileDetails::default() };
                    queries.ask(Query::File { path: file.path.clone(), wants });
                }
            }
        }
        CompletionRequirement::Custom { name } => {
            if !facts.checkers.contains_key(name) {
                queries.ask(Query::Checker { name: name.clone() });
            }
        }
        CompletionRequirement::Command { number, line, timeout_seconds, trusted: true } => {
            verification::ask_run(*number, line, *timeout_seconds, input, queries);
        }
        CompletionRequirement::Command { .. } | CompletionRequirement::DocsUpdated => {}
        CompletionRequirement::Clean => clean::ask_project_files(input, queries),
        CompletionRequirement::All(parts) | CompletionRequirement::Any(parts) => {
            let (costly, cheap): (Vec<_>, Vec<_>) = parts.iter().partition(|part| part.is_costly());
            cheap.iter().for_each(|part| ask_facts(part, input, queries));
            if !queries.is_empty() {
                return;
            }
            let passed = |part: &&CompletionRequirement| {
                matches!(evaluate(part, input), CheckResult::Complete)
            };
            let open = match checker {
                CompletionRequirement::All(_) => cheap.iter().all(passed),
                _ => !cheap.iter().any(passed),
            };
            if open {
                costly.iter().for_each(|part| ask_facts(part, input, queries));
            }
        }
    }
}

impl CompletionRequirement {
    fn is_costly(&self) -> bool {
        match self {
            Self::Files(_) | Self::Clean | Self::DocsUpdated => false,
            Self::Custom { .. } | Self::Command { .. } => true,
            Self::All(parts) | Self::Any(parts) => parts.iter().any(Self::is_costly),
        }
    }
}

fn evaluate(checker: &CompletionRequirement, input: GuardInput<'_>) -> CheckResult {
    let problems = match checker {
        CompletionRequirement::Files(files) => check_files(files, input),
        CompletionRequirement::Custom { name } => {
            check_custom(input.facts.checkers.get(name), name)
        }
        CompletionRequirement::Command { number, line, trusted, .. } => {
            verification::check_run(*number, line, *trusted, input)
        }
        CompletionRequirement::Clean | CompletionRequirement::DocsUpdated => CheckProblems {
            unclean: clean::find_unclean(checker, input),
            ..CheckProblems::default()
        },
        CompletionRequirement::All(parts) => {
            let (costly, cheap): (Vec<_>, Vec<_>) = parts.iter().partition(|part| part.is_costly());
            let mut problems = collect_problems(&cheap, input);
            if problems.is_empty() {
                problems = collect_problems(&costly, input);
            }
            problems
        }
        CompletionRequirement::Any(parts) => {
            let complete = |part: &CompletionRequirement| {
                matches!(evaluate(part, input), CheckResult::Complete)
            };
            if parts.is_empty() || parts.iter().any(complete) {
                return CheckResult::Complete;
            }
            CheckProblems::of_any(find_problems(&parts.iter().collect::<Vec<_>>(), input))
        }
    };
    if problems.is_empty() { CheckResult::Complete } else { CheckResult::Incomplete(problems) }
}

fn collect_problems(parts: &[&CompletionRequirement], input: GuardInput<'_>) -> CheckProblems {
    let mut problems = CheckProblems::default();
    find_problems(parts, input).into_iter().for_each(|found| problems.merge(found));
    problems
}

/// Returns the problems of each part that is incomplete.
fn find_problems(parts: &[&CompletionRequirement], input: GuardInput<'_>) -> Vec<CheckProblems> {
    let found = parts.iter().filter_map(|part| match evaluate(part, input) {
        CheckResult::Complete => None,
        CheckResult::Incomplete(found) => Some(found),
    });
    found.collect()
}

fn check_files(files: &[RequiredFile], input: GuardInput<'_>) -> CheckProblems {
    let (facts, started) = (input.facts, input.clock.started());
    let mut problems = CheckProblems::default();
    let has_no_workspace = files.iter().any(|file| {
        facts.files.get(&file.path).is_some_and(|fact| fact.kind == FileKind::NoFilesystem)
    });
    if has_no_workspace {
        let count = files.len();
        let noun = if count == 1 { "file" } else { "files" };
        problems.sentences.push(format!(
            "{count} required {noun} can't be verified: this session has no workspace."
        ));
        return problems;
    }
    for file in files {
        match facts.files.get(&file.path) {
            Some(FileFact { kind: FileKind::Missing, .. }) => {
                problems.missing.push(input.place.resolve_path(&file.path, "."));
            }
            fact => {
                let wrong = fact.map_or_else(
                    || Some("could not be checked".to_owned()),
                    |fact| file_problem(file, fact, started),
                );
                let path = || input.place.resolve_path(&file.path, ".");
                problems.invalid.extend(wrong.map(|what| (path(), what)));
            }
        }
    }
    problems
}

fn file_problem(file: &RequiredFile, fact: &FileFact, started: Timestamp) -> Option<String> {
    let problem = match fact.kind {
        FileKind::Missing | FileKind::NoFilesystem => "does not exist",
        FileKind::Directory => "is a directory, not a file",
        FileKind::Other => "is not a regular file",
        FileKind::Unreadable => "can't be read",
        FileKind::Escape => "is outside of the workspace",
        FileKind::File if file.min_bytes > 0 && fact.bytes == 0 => "is empty",
        FileKind::File if fact.bytes < file.min_bytes => {
            return Some(format!("has {} of at least {} bytes", fact.bytes, file.min_bytes));
        }
        FileKind::File if file.json && fact.json != Some(true) => "is not valid JSON",
        FileKind::File
            if file.newer_than_start && fact.modified.is_none_or(|modified| modified < started) =>
        {
            "is older than this session"
        }
        FileKind::File => return None,
    };
    Some(problem.to_owned())
}

fn check_custom(fact: Option<&CheckFact>, name: &str) -> CheckProblems {
    let answered = matches!(fact, Some(CheckFact::Complete | CheckFact::Incomplete { .. }));
    let sentence = match fact {
        Some(CheckFact::Complete) => return CheckProblems::default(),
        Some(CheckFact::Incomplete { feedback }) => feedback
            .clone()
            .filter(|text| !text.is_empty())
            .unwrap_or_else(|| DEFAULT_TEXT.to_owned()),
        Some(CheckFact::Broken { reason }) => {
            format!("The guard is broken, not the work: checker `{name}`: {reason}.")
        }
        None => format!("The guard is broken, not the work: checker `{name}` gave no answer."),
    };
    if answered {
        CheckProblems::failed(sentence)
    } else {
        CheckProblems::undecided(UndecidedReason::Broken, sentence)
    }
}
