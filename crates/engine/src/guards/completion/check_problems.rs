//! The problems that keep a task from being complete, and their texts.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::unrunnable;
use crate::guards::dirty::clean::UncleanCode;
use crate::verdict::{ViolationSubtype, ViolationType};

/// How many paths a message names.
const PATHS_SHOWN_MAX: usize = 3;

/// The text for a checker that gives no reason.
pub(super) const DEFAULT_TEXT: &str = "The task is not complete yet.";

/// All problems, in the order of the definition.
#[derive(Default, Clone)]
pub(super) struct CheckProblems {
    /// Files that do not exist.
    pub(super) missing: Vec<String>,
    /// Files that exist but are wrong, each with its problem.
    pub(super) invalid: Vec<(String, String)>,
    /// Failed checks, as full sentences.
    pub(super) sentences: Vec<String>,
    /// Checks without a result, as full sentences.
    pub(super) undecided: Vec<(UndecidedReason, String)>,
    /// What is wrong with the changed code.
    pub(super) unclean: Vec<UncleanCode>,
    /// Sentences about parts of which one is enough. Their problems are in the lists above, too.
    pub(super) choices: Vec<String>,
    /// The problems that all have to be solved, if others belong to `choices`.
    pub(super) required: Option<Box<Self>>,
}

/// Why a checker has no result, the most important reason last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum UndecidedReason {
    /// A program of the check is missing.
    Unrunnable,
    /// A person has not allowed the command to run.
    Untrusted,
    /// The checker failed to run.
    Broken,
    /// The check is still running.
    Running,
}

impl CheckProblems {
    /// A check that failed, as a sentence.
    pub(super) fn failed(sentence: String) -> Self {
        Self { sentences: Vec::from([sentence]), ..Self::default() }
    }

    /// A check without a result, as a sentence.
    pub(super) fn undecided(why: UndecidedReason, sentence: String) -> Self {
        Self { undecided: Vec::from([(why, sentence)]), ..Self::default() }
    }

    /// The problems of parts of which one is enough.
    pub(super) fn of_any(parts: Vec<Self>) -> Self {
        let texts: Vec<String> = parts
            .iter()
            .enumerate()
            .map(|(n, part)| format!("({}) {}", n + 1, part.text()))
            .collect();
        let is_choice = parts.len() > 1;
        let mut problems = Self::default();
        parts.into_iter().for_each(|part| problems.merge(part));
        if is_choice {
            problems.choices = Vec::from([format!("One of these is enough: {}", texts.join(" "))]);
            problems.required = Some(Box::default());
        }
        problems
    }

    pub(super) fn is_empty(&self) -> bool {
        self.undecided.is_empty() && self.unclean.is_empty() && self.has_no_failure()
    }

    fn has_no_failure(&self) -> bool {
        self.missing.is_empty() && self.invalid.is_empty() && self.sentences.is_empty()
    }

    pub(super) fn merge(&mut self, mut other: Self) {
        if self.required.is_some() || other.required.is_some() {
            let mut required = self.required.take().unwrap_or_else(|| Box::new(self.clone()));
            let others = other.required.take().map_or_else(|| other.clone(), |others| *others);
            required.merge(others);
            self.required = Some(required);
        }
        self.choices.append(&mut other.choices);
        self.missing.append(&mut other.missing);
        self.invalid.append(&mut other.invalid);
        self.sentences.append(&mut other.sentences);
        self.undecided.append(&mut other.undecided);
        other.unclean.retain(|unclean| !self.unclean.contains(unclean));
        self.unclean.append(&mut other.unclean);
    }

    fn undecided_reason(&self) -> Option<UndecidedReason> {
        self.undecided.iter().map(|(why, _)| *why).max()
    }

    /// Returns whether a person's trust is all that is missing, so that no work of the agent helps.
    pub(super) fn waits_only_for_trust(&self) -> bool {
        let mut waiting = self.undecided.iter().map(|(why, _)| *why).peekable();
        self.has_no_failure()
            && self.unclean.is_empty()
            && waiting.peek().is_some()
            && waiting.all(|why| why == UndecidedReason::Untrusted)
    }

    /// Returns whether a check is still running.
    pub(super) fn is_waiting(&self) -> bool {
        self.undecided_reason() == Some(UndecidedReason::Running)
    }

    /// Returns whether the only problem is that checks can't be run, because programs are missing.
    pub(super) fn is_unrunnable(&self) -> bool {
        let is_unclean = self.unclean.iter().map(UncleanCode::is_unrunnable);
        let checks = self.undecided.iter().map(|(why, _)| *why == UndecidedReason::Unrunnable);
        let mut causes = checks.chain(is_unclean).peekable();
        self.has_no_failure() && causes.peek().is_some() && causes.all(|unrunnable| unrunnable)
    }

    pub(super) fn paths(&self) -> Vec<String> {
        self.missing.iter().chain(self.invalid.iter().map(|(path, _)| path)).cloned().collect()
    }

    pub(super) fn violation_kind(&self) -> (ViolationType, ViolationSubtype) {
        if !self.missing.is_empty() {
            (ViolationType::TaskIncomplete, ViolationSubtype::MissingFiles)
        } else if !self.invalid.is_empty() {
            (ViolationType::TaskIncomplete, ViolationSubtype::WrongFiles)
        } else {
            match (self.undecided_reason(), self.unclean.first()) {
                (Some(UndecidedReason::Broken), _) => {
                    (ViolationType::GuardFault, ViolationSubtype::CheckerBroken)
                }
                (Some(UndecidedReason::Running), _) => {
                    (ViolationType::TaskIncomplete, ViolationSubtype::VerificationRunning)
                }
                (Some(UndecidedReason::Untrusted), _) => {
                    (ViolationType::TaskIncomplete, ViolationSubtype::UntrustedCommand)
                }
                (Some(UndecidedReason::Unrunnable), _) => {
                    (ViolationType::TaskIncomplete, ViolationSubtype::CheckNotRunnable)
                }
                (None, Some(unclean)) if self.sentences.is_empty() => {
                    (ViolationType::TaskIncomplete, unclean.subtype())
                }
                (None, _) => (ViolationType::TaskIncomplete, ViolationSubtype::Checker),
            }
        }
    }

    /// Returns what to do about the problems.
    pub(super) fn correction(&self) -> String {
        let text = match self.undecided_reason() {
            Some(UndecidedReason::Running) => "wait a moment, then stop again",
            Some(UndecidedReason::Untrusted) => {
                "tell the person: only they can allow this command, with `jackline trust`; \
                 then stop again, and the stop is not blocked"
            }
            Some(UndecidedReason::Broken) => {
                "tell the person: they can fix it, or turn the guard off for a while with \
                 `jackline off --for 30m --why …`"
            }
            Some(UndecidedReason::Unrunnable) => unrunnable::CORRECTION,
            None if self.is_unrunnable() => unrunnable::CORRECTION,
            None => match self.unclean.first().and_then(UncleanCode::correction) {
                Some(correction) => return correction,
                None => "finish the task, then stop",
            },
        };
        text.to_string()
    }

    /// Returns the text for the agent. It names at most three paths and counts the rest.
    pub(super) fn text(&self) -> String {
        let mut sentences = self.required.as_deref().unwrap_or(self).sentences_of_all();
        sentences.extend(self.choices.iter().cloned());
        let text = sentences.join(" ");
        if text.is_empty() { DEFAULT_TEXT.to_string() } else { text }
    }

    fn sentences_of_all(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        if let Some(first) = self.missing.first() {
            sentences.push(if self.missing.len() == 1 {
                format!("The required file `{first}` is missing.")
            } else {
                let shown: Vec<String> = self
                    .missing
                    .iter()
                    .take(PATHS_SHOWN_MAX)
                    .map(|path| format!("`{path}`"))
                    .collect();
                let more = if self.missing.len() > PATHS_SHOWN_MAX { ", …" } else { "" };
                format!(
                    "{} required files are missing: {}{more}.",
                    self.missing.len(),
                    shown.join(", ")
                )
            });
        }
        let room = PATHS_SHOWN_MAX.saturating_sub(self.missing.len());
        sentences
            .extend(self.invalid.iter().take(room).map(|(path, what)| format!("`{path}` {what}.")));
        match self.invalid.len().saturating_sub(room) {
            0 => {}
            1 => sentences.push("1 more file does not meet its requirements.".to_string()),
            more => sentences.push(format!("{more} more files do not meet their requirements.")),
        }
        sentences.extend(self.sentences.iter().cloned());
        sentences.extend(self.undecided.iter().map(|(_, sentence)| sentence.clone()));
        sentences.extend(self.unclean.iter().map(UncleanCode::text));
        sentences
    }
}
