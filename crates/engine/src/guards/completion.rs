//! Completion: what must be true before the main agent may stop.
//!
//! The gate can't wedge. It counts its own blocks, and when it has said the
//! same thing too often the turn ends as `capped`, which is never "done".

pub(crate) mod verification;

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::dirty::clean::{self, Unclean};
use super::limits::exhausted_hard;
use super::{Answers, Fold, Guard, Look, Objection, context};
use crate::event::{Action, EventKind, StopProposed};
use crate::facts::{CheckFact, Facts, FileFact, FileKind, Queries, Query, Wants};
use crate::state::{State, TurnResult, short};
use crate::time::Timestamp;
use crate::verdict::{
    Bypass, Class, Completion, Decision, Feedback, GuardName, SafetyAction, SafetyEvent,
    SafetyKind, Severity, ViolationSubtype, ViolationType,
};

/// How many paths a message names.
const PATHS_SHOWN: usize = 3;

/// The name under which the check speaks where it can't block.
const PROVIDER: &str = "Completion";

/// What a checker that gave no reason is taken to have said.
const DEFAULT_TEXT: &str = "The task is not complete yet.";

/// What must be true before the agent may stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Checker {
    /// Files that must be there.
    Files(Vec<RequiredFile>),
    /// Every one of these.
    All(Vec<Checker>),
    /// At least one of these.
    Any(Vec<Checker>),
    /// A checker written in Rust and registered with the runtime.
    Custom {
        /// The name it is registered under.
        name: String,
    },
    /// A command that must succeed.
    Command {
        /// Its number among the commands of the definition.
        number: u16,
        /// The command line.
        line: String,
        /// How long it may take.
        timeout_seconds: u32,
        /// Whether a person has said that it may run on their machine.
        trusted: bool,
    },
    /// Changed code that was tested.
    Clean,
}

impl Checker {
    /// Whether it is about changed code, too.
    pub fn wants_clean(&self) -> bool {
        match self {
            Self::Clean => true,
            Self::All(parts) | Self::Any(parts) => parts.iter().any(Self::wants_clean),
            Self::Files(_) | Self::Custom { .. } | Self::Command { .. } => false,
        }
    }
}

/// A file that must be there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequiredFile {
    /// Its canonical path.
    pub path: String,
    /// Its least size.
    pub min_bytes: u64,
    /// Whether it must be valid JSON.
    pub json: bool,
    /// Whether it must have been written since the session began.
    pub newer_than_start: bool,
}

/// How often a stop may be blocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cap {
    /// In one turn.
    pub blocks: u32,
    /// With the same text and no change of the workspace.
    pub same: u32,
}

impl Default for Cap {
    fn default() -> Self {
        Self { blocks: 5, same: 3 }
    }
}

/// Why an agent stopped where no gate could answer it: told afterwards, so that
/// the turn counts as unverified.
pub const UNANSWERED: &str = "guard_broken";

pub(crate) struct CompletionGuard;

impl Guard for CompletionGuard {
    fn needs(&self, look: Look<'_>, queries: &mut Queries) {
        if let Some(checker) = applicable(look) {
            ask(checker, look, queries);
        }
    }

    fn decide(&self, look: Look<'_>, answers: &mut Answers) {
        if !asks_for_check(look) {
            return;
        }
        if look.is_paused() {
            // Allowed, and not as done, whether or not something was asked for.
            let why = look.state.paused.as_ref().and_then(|paused| paused.why.as_deref());
            let why = why.map_or_else(String::new, |why| format!(": {why}"));
            let reason = format!("the session is paused{why}");
            answers.completion = Some(Completion::Unverified { reason });
            return;
        }
        if let EventKind::StopProposed(StopProposed { reason: Some(reason), .. }) = &look.event.kind
            && reason == UNANSWERED
        {
            let reason = "the guard was broken when the agent stopped".to_string();
            answers.completion = Some(Completion::Unverified { reason });
            return;
        }
        let Some(checker) = &look.definition.completion else { return };
        if let Some(reason) = bypassing(look) {
            answers.completion = Some(Completion::Bypassed { reason });
        } else {
            match evaluate(checker, look) {
                Found::Complete => answers.completion = Some(Completion::Complete),
                Found::Incomplete(problems) => incomplete(look, &problems, answers),
            }
        }
    }

    fn apply(&self, state: &mut State, fold: Fold<'_>) {
        let record = fold.record;
        verification::apply(state, fold);
        // Whoever lets it go on lets it try again, and the next stop is not the last.
        if matches!(fold.said, Some(Action::Resume | Action::Acknowledge | Action::ClearBlocker)) {
            state.turn.forget_blocks();
        }
        let EventKind::StopProposed(StopProposed { background: 0, .. }) = record.event.kind else {
            return;
        };
        if !record.event.actor.is_main() {
            return;
        }
        if record.verdict.is_enforced(Decision::Deny) {
            // Waiting for a check to end says the same for a good reason.
            let waits = record
                .verdict
                .violations
                .iter()
                .any(|v| v.subtype == ViolationSubtype::VerificationRunning);
            if let Some(Completion::Incomplete { feedback, .. }) = &record.verdict.completion {
                let text = (!waits).then(|| short(feedback));
                state.turn.block(text, state.epoch);
                state.turn.remember_missing(feedback);
            }
            return;
        }
        state.turn.missing = None;
        state.turn.result = Some(match &record.verdict.completion {
            None => TurnResult::Free,
            Some(Completion::Complete) => TurnResult::Complete,
            Some(Completion::Incomplete { .. }) => TurnResult::Incomplete,
            Some(Completion::Bypassed { reason }) => TurnResult::Bypassed(*reason),
            Some(Completion::Capped { .. }) => TurnResult::Capped,
            Some(Completion::Unverified { .. }) => TurnResult::Unverified,
        });
    }
}

/// Whether this event is one at which the task should be complete.
fn asks_for_check(look: Look<'_>) -> bool {
    match look.event.kind {
        // Work that goes on in the background means that this is not the end.
        EventKind::StopProposed(StopProposed { background, .. }) => {
            background == 0 && look.event.actor.is_main()
        }
        EventKind::OutputProposed(_) | EventKind::SessionEnded(_) => look.event.actor.is_main(),
        _ => false,
    }
}

/// What ran out so that the check is skipped. An agent that has left can't be
/// kept from ending, so there the check is made whatever ran out.
fn bypassing(look: Look<'_>) -> Option<Bypass> {
    if matches!(look.event.kind, EventKind::SessionEnded(_)) {
        return None;
    }
    let reached = exhausted_hard(look).map(|reached| reached.bypass());
    reached.or_else(|| context::bypasses(look).then_some(Bypass::Context))
}

/// The checker, where this event calls for it and nothing bypasses it.
fn applicable(look: Look<'_>) -> Option<&Checker> {
    let skipped = look.is_paused() || !asks_for_check(look) || bypassing(look).is_some();
    look.definition.completion.as_ref().filter(|_| !skipped)
}

fn incomplete(look: Look<'_>, problems: &Problems, answers: &mut Answers) {
    let (missing, text, (kind, subtype)) = (problems.paths(), problems.text(), problems.kind());
    let turn = &look.state.turn;
    let cap = look.definition.completion_cap;
    let same = turn.same >= cap.same && turn.last_block == Some((short(&text), look.state.epoch));
    match look.event.kind {
        EventKind::StopProposed(_) if same || turn.blocks >= cap.blocks => {
            log(look, problems, SafetyAction::ContinuedMonitoring, answers);
            answers.completion = Some(Completion::Capped { rounds: turn.blocks, feedback: text });
        }
        EventKind::StopProposed(_) => {
            answers.object(Objection {
                guard: GuardName::Completion,
                kind,
                subtype,
                class: Class::Recoverable,
                decision: Decision::Deny,
                message: text.clone(),
                location: missing.first().cloned(),
                correction: Some(problems.correction()),
            });
            let holds = answers.violations.last().is_some_and(|violation| violation.enforced);
            log(
                look,
                problems,
                if holds { SafetyAction::InjectedTestPrompt } else { SafetyAction::Observed },
                answers,
            );
            answers.completion = Some(Completion::Incomplete { missing, feedback: text });
        }
        EventKind::OutputProposed(_) => {
            // Structured output is not an end: the agent is told, not stopped.
            answers.feedback.push(Feedback {
                provider: PROVIDER.to_string(),
                severity: Severity::Caution,
                summary: text.clone(),
                observations: Vec::new(),
                suggestions: Vec::from(["Finish the task before you stop.".to_string()]),
                timestamp: look.clock.now(),
                call_index: look.state.invocations.proposed,
                definition: look.definition.name.clone(),
            });
            answers.completion = Some(Completion::Incomplete { missing, feedback: text });
        }
        _ => answers.completion = Some(Completion::Incomplete { missing, feedback: text }),
    }
}

/// Changed code that nothing has tested goes into the safety log.
fn log(look: Look<'_>, problems: &Problems, action: SafetyAction, answers: &mut Answers) {
    if let Some(unclean) = &problems.unclean {
        answers.safety.push(SafetyEvent {
            timestamp: look.clock.now(),
            kind: SafetyKind::DirtyBitViolation,
            details: unclean.details(look.state),
            action_taken: action,
        });
    }
}

/// What a checker found.
enum Found {
    Complete,
    Incomplete(Problems),
}

/// Everything that is wrong, in the order of the definition.
#[derive(Default)]
struct Problems {
    /// Files that are not there.
    missing: Vec<String>,
    /// Files that are there and wrong, with what is wrong.
    wrong: Vec<(String, String)>,
    /// What else was said.
    said: Vec<String>,
    /// Why nobody can say, where that is so.
    unsaid: Option<Unsaid>,
    /// What is wrong with changed code.
    unclean: Option<Unclean>,
}

/// Why a checker has no answer.
#[derive(Clone, Copy)]
enum Unsaid {
    /// It broke.
    Broken,
    /// It is at work.
    Running,
    /// A person has not said that it may run.
    Untrusted,
}

impl Problems {
    fn is_empty(&self) -> bool {
        self.missing.is_empty()
            && self.wrong.is_empty()
            && self.said.is_empty()
            && self.unclean.is_none()
    }

    fn add(&mut self, mut other: Self) {
        self.missing.append(&mut other.missing);
        self.wrong.append(&mut other.wrong);
        self.said.append(&mut other.said);
        self.unsaid = self.unsaid.or(other.unsaid);
        self.unclean = self.unclean.take().or(other.unclean);
    }

    fn paths(&self) -> Vec<String> {
        self.missing.iter().chain(self.wrong.iter().map(|(path, _)| path)).cloned().collect()
    }

    fn kind(&self) -> (ViolationType, ViolationSubtype) {
        if !self.missing.is_empty() {
            (ViolationType::TaskIncomplete, ViolationSubtype::MissingFiles)
        } else if !self.wrong.is_empty() {
            (ViolationType::TaskIncomplete, ViolationSubtype::WrongFiles)
        } else {
            match (self.unsaid, &self.unclean) {
                (Some(Unsaid::Broken), _) => {
                    (ViolationType::GuardFault, ViolationSubtype::CheckerBroken)
                }
                (Some(Unsaid::Running), _) => {
                    (ViolationType::TaskIncomplete, ViolationSubtype::VerificationRunning)
                }
                (Some(Unsaid::Untrusted), _) => {
                    (ViolationType::TaskIncomplete, ViolationSubtype::UntrustedCommand)
                }
                (None, Some(unclean)) if self.said.is_empty() => {
                    (ViolationType::TaskIncomplete, unclean.subtype())
                }
                (None, _) => (ViolationType::TaskIncomplete, ViolationSubtype::Checker),
            }
        }
    }

    /// What to do about it.
    fn correction(&self) -> String {
        let text = match self.unsaid {
            Some(Unsaid::Running) => "wait a moment, then stop again",
            Some(Unsaid::Untrusted) => "tell the person; nothing the agent does will help",
            Some(Unsaid::Broken) => {
                "tell the person; they can mend it, or pass for a while with `jackline off --for 30m --why …`"
            }
            None => match self.unclean.as_ref().and_then(|unclean| unclean.command.as_ref()) {
                Some(command) => return format!("run `{command}`, then stop"),
                None => "finish the task, then stop",
            },
        };
        text.to_string()
    }

    /// What the agent is told: at most three paths, and how many there are.
    fn text(&self) -> String {
        let mut sentences = Vec::new();
        if let Some(first) = self.missing.first() {
            sentences.push(if self.missing.len() == 1 {
                format!("The required file `{first}` is missing.")
            } else {
                let shown: Vec<String> =
                    self.missing.iter().take(PATHS_SHOWN).map(|path| format!("`{path}`")).collect();
                let more = if self.missing.len() > PATHS_SHOWN { ", …" } else { "" };
                format!(
                    "{} required files are missing: {}{more}.",
                    self.missing.len(),
                    shown.join(", ")
                )
            });
        }
        let room = PATHS_SHOWN.saturating_sub(self.missing.len());
        sentences
            .extend(self.wrong.iter().take(room).map(|(path, what)| format!("`{path}` {what}.")));
        match self.wrong.len().saturating_sub(room) {
            0 => {}
            1 => sentences.push("1 more file is not as required.".to_string()),
            more => sentences.push(format!("{more} more files are not as required.")),
        }
        sentences.extend(self.said.iter().cloned());
        sentences.extend(self.unclean.as_ref().map(Unclean::text));
        let text = sentences.join(" ");
        if text.is_empty() { DEFAULT_TEXT.to_string() } else { text }
    }
}

/// Asks for the facts a checker needs: the cheap ones first, the costly ones
/// only where the cheap ones leave it open.
fn ask(checker: &Checker, look: Look<'_>, queries: &mut Queries) {
    let facts = look.facts;
    match checker {
        Checker::Files(files) => {
            for file in files {
                let known = facts.files.get(&file.path);
                let open = known.is_none_or(|fact| {
                    // Known, but not whether it is JSON.
                    file.json && fact.kind == FileKind::File && fact.json.is_none()
                });
                if open {
                    let wants = Wants { json: file.json, contents: false };
                    queries.ask(Query::File { path: file.path.clone(), wants });
                }
            }
        }
        Checker::Custom { name } => {
            if !facts.checkers.contains_key(name) {
                queries.ask(Query::Checker { name: name.clone() });
            }
        }
        Checker::Command { number, line, timeout_seconds, trusted: true } => {
            verification::ask(*number, line, *timeout_seconds, look, queries);
        }
        Checker::Command { .. } => {}
        Checker::Clean => clean::ask(look, queries),
        Checker::All(parts) | Checker::Any(parts) => {
            let (costly, cheap): (Vec<_>, Vec<_>) = parts.iter().partition(|part| part.is_costly());
            cheap.iter().for_each(|part| ask(part, look, queries));
            if !queries.is_empty() {
                return;
            }
            let passed = |part: &&Checker| matches!(evaluate(part, look), Found::Complete);
            let open = match checker {
                Checker::All(_) => cheap.iter().all(passed),
                _ => !cheap.iter().any(passed),
            };
            if open {
                costly.iter().for_each(|part| ask(part, look, queries));
            }
        }
    }
}

impl Checker {
    fn is_costly(&self) -> bool {
        match self {
            Self::Files(_) | Self::Clean => false,
            Self::Custom { .. } | Self::Command { .. } => true,
            Self::All(parts) | Self::Any(parts) => parts.iter().any(Self::is_costly),
        }
    }
}

fn evaluate(checker: &Checker, look: Look<'_>) -> Found {
    let problems = match checker {
        Checker::Files(files) => check_files(files, look.facts, look.clock.started()),
        Checker::Custom { name } => check_custom(look.facts.checkers.get(name), name),
        Checker::Command { number, line, trusted, .. } => {
            verification::check(*number, line, *trusted, look)
        }
        Checker::Clean => Problems { unclean: clean::check(look), ..Problems::default() },
        Checker::All(parts) => {
            let (costly, cheap): (Vec<_>, Vec<_>) = parts.iter().partition(|part| part.is_costly());
            let mut problems = failures(&cheap, look);
            if problems.is_empty() {
                problems = failures(&costly, look);
            }
            problems
        }
        Checker::Any(parts) => {
            let complete = |part: &Checker| matches!(evaluate(part, look), Found::Complete);
            if parts.is_empty() || parts.iter().any(complete) {
                return Found::Complete;
            }
            failures(&parts.iter().collect::<Vec<_>>(), look)
        }
    };
    if problems.is_empty() { Found::Complete } else { Found::Incomplete(problems) }
}

fn failures(parts: &[&Checker], look: Look<'_>) -> Problems {
    let mut problems = Problems::default();
    for part in parts {
        if let Found::Incomplete(found) = evaluate(part, look) {
            problems.add(found);
        }
    }
    problems
}

fn check_files(files: &[RequiredFile], facts: &Facts, started: Timestamp) -> Problems {
    let mut problems = Problems::default();
    let blind = files.iter().any(|file| {
        facts.files.get(&file.path).is_some_and(|fact| fact.kind == FileKind::NoFilesystem)
    });
    if blind {
        let count = files.len();
        let noun = if count == 1 { "file" } else { "files" };
        problems.said.push(format!(
            "{count} required {noun} can't be verified: there is no workspace to look in."
        ));
        return problems;
    }
    for file in files {
        match facts.files.get(&file.path) {
            Some(FileFact { kind: FileKind::Missing, .. }) => {
                problems.missing.push(file.path.clone());
            }
            fact => {
                let wrong = fact.map_or_else(
                    || Some("could not be checked".to_owned()),
                    |fact| what_is_wrong(file, fact, started),
                );
                problems.wrong.extend(wrong.map(|what| (file.path.clone(), what)));
            }
        }
    }
    problems
}

fn what_is_wrong(file: &RequiredFile, fact: &FileFact, started: Timestamp) -> Option<String> {
    let problem = match fact.kind {
        FileKind::Missing | FileKind::NoFilesystem => "is not there",
        FileKind::Directory => "is a directory, not a file",
        FileKind::Other => "is not a regular file",
        FileKind::Unreadable => "can't be read",
        FileKind::Escape => "leads out of the workspace",
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

fn check_custom(fact: Option<&CheckFact>, name: &str) -> Problems {
    let answered = matches!(fact, Some(CheckFact::Complete | CheckFact::Incomplete { .. }));
    let said = match fact {
        Some(CheckFact::Complete) => return Problems::default(),
        Some(CheckFact::Incomplete { feedback }) => feedback
            .clone()
            .filter(|text| !text.is_empty())
            .unwrap_or_else(|| DEFAULT_TEXT.to_owned()),
        Some(CheckFact::Broken { reason }) => {
            format!("The guard is broken, not the work: checker `{name}`: {reason}.")
        }
        None => format!("The guard is broken, not the work: checker `{name}` gave no answer."),
    };
    let unsaid = (!answered).then_some(Unsaid::Broken);
    Problems { said: Vec::from([said]), unsaid, ..Problems::default() }
}
