//! Feedback providers: soft guidance that comes with tool results.
//!
//! A provider speaks when one of its triggers says so. Every provider
//! instance keeps its own cadence; all that are due speak in the same round.
//! Feedback never blocks: what to do with it is the agent's business.

pub(crate) mod deadline;

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{Answers, Guard, Look};
use crate::definition::Definition;
use crate::event::EventKind;
use crate::facts::{Facts, FileKind, Queries, Query, Wants};
use crate::session::Record;
use crate::state::State;
use crate::verdict::{Feedback, Severity};

/// A provider and when it speaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedbackProvider {
    /// What it says.
    pub speech: Speech,
    /// When it says it.
    pub trigger: Trigger,
}

/// What a provider says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speech {
    /// How much time is left.
    Deadline {
        /// From how much on it warns.
        warning_threshold_seconds: u64,
    },
    /// Always the same.
    Static {
        /// The text.
        text: String,
    },
    /// What a provider written in Rust says.
    Custom {
        /// The name it is registered under.
        name: String,
    },
}

/// When a provider speaks: when any of these says so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trigger {
    /// After this many calls since it last spoke.
    pub every_n_calls: Option<u64>,
    /// At the first result, then after this much time since it last spoke.
    pub every_n_seconds: Option<u64>,
    /// Once, when this file is there.
    pub on_file_created: Option<FileCreated>,
}

/// A file that makes a provider speak once a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileCreated {
    /// Its canonical path.
    pub path: String,
    /// Whether a file that was there before the session does not count.
    pub since_start: bool,
}

/// One provider's cadence.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cadence {
    /// Calls and session time when it last spoke.
    last: Option<(u64, u64)>,
    /// Whether its file has made it speak.
    fired: bool,
    /// Whether its file was there when the session began, where that matters.
    there_before: bool,
}

/// The cadences of a session that has just begun.
pub(crate) fn initial(definition: &Definition) -> Vec<Cadence> {
    definition.feedback.iter().map(|_| Cadence::default()).collect()
}

/// The cadences after a reset: everything is said anew, but what was there
/// before the session was there before the session.
pub(crate) fn reset(cadences: &mut [Cadence]) {
    for cadence in cadences {
        *cadence = Cadence { there_before: cadence.there_before, ..Cadence::default() };
    }
}

pub(crate) struct FeedbackGuard;

impl Guard for FeedbackGuard {
    fn needs(&self, look: Look<'_>, queries: &mut Queries) {
        let begins = look.state.seq == 0;
        let delivers = matches!(look.event.kind, EventKind::ToolFinished { .. });
        for (provider, cadence) in look.definition.feedback.iter().zip(&look.state.feedback) {
            let Some(file) = &provider.trigger.on_file_created else { continue };
            let wanted = (begins && file.since_start) || (delivers && !cadence.fired);
            if wanted && !look.facts.files.contains_key(&file.path) {
                queries.ask(Query::File { path: file.path.clone(), wants: Wants::default() });
            }
        }
    }

    fn decide(&self, look: Look<'_>, answers: &mut Answers) {
        if !matches!(look.event.kind, EventKind::ToolFinished { .. }) {
            return;
        }
        let moment = Moment {
            calls: look.state.invocations.proposed,
            elapsed_ms: look.clock.elapsed_ms(),
            facts: look.facts,
        };
        let mut room = look.definition.feedback_bytes_max as usize;
        for (provider, cadence) in look.definition.feedback.iter().zip(&look.state.feedback) {
            if !due(&provider.trigger, cadence, moment).any() {
                continue;
            }
            let Some(feedback) = speak(provider, look) else { continue };
            // Two that say the same in one round say it once.
            let said = |known: &Feedback| {
                (&known.provider, &known.summary) == (&feedback.provider, &feedback.summary)
            };
            let bytes = feedback.render().len();
            if bytes <= room && !answers.feedback.iter().any(said) {
                room -= bytes;
                answers.feedback.push(feedback);
            }
        }
    }

    fn apply(&self, definition: &Definition, state: &mut State, record: &Record<'_>) {
        let begins = record.seq == 1;
        let delivers = matches!(record.event.kind, EventKind::ToolFinished { .. });
        let has_deadline = deadline::of(definition, state, record.facts).is_some();
        let moment = Moment {
            calls: state.invocations.proposed,
            elapsed_ms: state.clock.elapsed_ms(),
            facts: record.facts,
        };
        for (provider, cadence) in definition.feedback.iter().zip(&mut state.feedback) {
            if begins && let Some(file) = &provider.trigger.on_file_created {
                cadence.there_before = file.since_start && is_there(record.facts, &file.path);
            }
            let mute = matches!(provider.speech, Speech::Deadline { .. }) && !has_deadline;
            if !delivers || mute {
                continue;
            }
            let due = due(&provider.trigger, cadence, moment);
            // Only the file itself uses up the file's one time.
            cadence.fired |= due.file;
            if due.any() {
                cadence.last = Some((moment.calls, moment.elapsed_ms));
            }
        }
    }
}

/// What triggers look at.
#[derive(Clone, Copy)]
struct Moment<'a> {
    calls: u64,
    elapsed_ms: u64,
    facts: &'a Facts,
}

/// Which triggers say that it is time.
struct Due {
    calls: bool,
    seconds: bool,
    file: bool,
}

impl Due {
    fn any(&self) -> bool {
        self.calls || self.seconds || self.file
    }
}

fn due(trigger: &Trigger, cadence: &Cadence, moment: Moment<'_>) -> Due {
    let calls_since = moment.calls - cadence.last.map_or(0, |(calls, _)| calls).min(moment.calls);
    let ms_since = cadence.last.map(|(_, at)| moment.elapsed_ms.saturating_sub(at));
    Due {
        calls: trigger.every_n_calls.is_some_and(|n| calls_since >= n),
        seconds: trigger
            .every_n_seconds
            .is_some_and(|n| ms_since.is_none_or(|ms| ms >= n.saturating_mul(1000))),
        file: trigger.on_file_created.as_ref().is_some_and(|file| {
            !cadence.fired && !cadence.there_before && is_there(moment.facts, &file.path)
        }),
    }
}

fn is_there(facts: &Facts, path: &str) -> bool {
    facts.files.get(path).is_some_and(|fact| fact.kind == FileKind::File)
}

fn speak(provider: &FeedbackProvider, look: Look<'_>) -> Option<Feedback> {
    let (name, said) = match &provider.speech {
        Speech::Deadline { warning_threshold_seconds } => {
            ("Deadline", deadline::speak(look, *warning_threshold_seconds)?)
        }
        Speech::Static { text } => {
            ("Static", Said { severity: Severity::Info, summary: text.clone(), suggestions: &[] })
        }
        Speech::Custom { .. } => return None,
    };
    Some(Feedback {
        provider: name.to_string(),
        severity: said.severity,
        summary: said.summary,
        observations: Vec::new(),
        suggestions: said.suggestions.iter().map(ToString::to_string).collect(),
        timestamp: look.clock.now(),
        call_index: look.state.invocations.proposed,
        definition: look.definition.name.clone(),
    })
}

/// What a provider has to say.
struct Said {
    severity: Severity,
    summary: String,
    suggestions: &'static [&'static str],
}
