//! Feedback providers: soft guidance that comes with tool results.
//!
//! A provider speaks when one of its triggers says so. Every provider
//! instance keeps its own cadence; all that are due speak in the same round.
//! Feedback never blocks: what to do with it is the agent's business.

pub(crate) mod deadline;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{Answers, Fold, Guard, Look};
use crate::definition::Definition;
use crate::event::EventKind;
use crate::facts::{
    DefinitionFact, Facts, FeedbackFact, FeedbackView, FileKind, Queries, Query, ReloadFact, Wants,
};
use crate::reload::same_as;
use crate::state::State;
use crate::verdict::{Feedback, Severity};

/// How many of the latest calls custom providers are told.
const RECENT_CALLS_MAX: usize = 8;

/// How much of the latest feedback custom providers are told.
const SUMMARY_CHARS_MAX: usize = 200;

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

/// What custom providers are told about the past; kept only where there are some.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Past {
    /// The tools that were called last, the latest at the end.
    calls: Vec<String>,
    /// Who spoke last, and what they said.
    spoke: Option<(String, String)>,
}

impl Past {
    fn apply(&mut self, fold: Fold<'_>) {
        if let Some(proposal) = fold.proposal {
            if self.calls.len() >= RECENT_CALLS_MAX {
                self.calls.remove(0);
            }
            self.calls.push(proposal.tool.name.to_string());
        }
        if let Some(last) = fold.record.verdict.feedback.last() {
            let summary = last.summary.chars().take(SUMMARY_CHARS_MAX).collect();
            self.spoke = Some((last.provider.clone(), summary));
        }
    }
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

/// The cadences under another definition: a provider that says the same at the
/// same times goes on, and every other one begins.
pub(crate) fn carry_over(state: &mut State, from: &Definition, to: &Definition, facts: &Facts) {
    let same = same_as(&from.feedback, &to.feedback, PartialEq::eq);
    let carried = to.feedback.iter().zip(same).map(|(provider, old)| {
        let old = old.and_then(|at| state.feedback.get(at)).cloned();
        old.unwrap_or_else(|| Cadence {
            there_before: is_there_before(provider, facts),
            ..Cadence::default()
        })
    });
    state.feedback = carried.collect();
}

pub(crate) struct FeedbackGuard;

impl Guard for FeedbackGuard {
    fn needs(&self, look: Look<'_>, queries: &mut Queries) {
        let begins = look.state.seq == 0;
        let delivers = matches!(look.event.kind, EventKind::ToolFinished(_));
        for (provider, cadence) in look.definition.feedback.iter().zip(&look.state.feedback) {
            let Some(file) = &provider.trigger.on_file_created else { continue };
            let wanted = (begins && file.since_start) || (delivers && !cadence.fired);
            if wanted && !look.facts.files.contains_key(&file.path) {
                queries.ask(Query::File { path: file.path.clone(), wants: Wants::default() });
            }
        }
        if let Some(ReloadFact::New(new)) = &look.facts.reload
            && let Some(lowered) = new.lowered.definition()
        {
            let files =
                lowered.feedback.iter().filter_map(|it| it.trigger.on_file_created.as_ref());
            for file in files.filter(|file| file.since_start) {
                if !look.facts.files.contains_key(&file.path) {
                    queries.ask(Query::File { path: file.path.clone(), wants: Wants::default() });
                }
            }
        }
        // Whether a file has made a provider speak is known in the next round.
        if delivers && queries.is_empty() {
            ask_custom(look, queries);
        }
    }

    fn decide(&self, look: Look<'_>, answers: &mut Answers) {
        answers.feedback.extend(broken_definition(look));
        if !matches!(look.event.kind, EventKind::ToolFinished(_)) {
            return;
        }
        let moment = moment(look);
        let mut room = look.definition.feedback_bytes_max as usize;
        let providers = look.definition.feedback.iter().zip(&look.state.feedback);
        for (number, (provider, cadence)) in (0..).zip(providers) {
            if !due(&provider.trigger, cadence, moment).any() {
                continue;
            }
            let Some(feedback) = speak(number, provider, look) else { continue };
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

    fn apply(&self, state: &mut State, fold: Fold<'_>) {
        let (definition, record) = (fold.definition, fold.record);
        let begins = record.seq == 1;
        let custom = |provider: &FeedbackProvider| matches!(provider.speech, Speech::Custom { .. });
        if definition.feedback.iter().any(custom) {
            state.past.apply(fold);
        }
        let delivers = matches!(record.event.kind, EventKind::ToolFinished(_));
        let has_deadline = deadline::of(definition, state, record.facts).is_some();
        let moment = Moment {
            calls: state.invocations.proposed,
            elapsed_ms: state.clock.elapsed_ms(),
            facts: record.facts,
        };
        for (provider, cadence) in definition.feedback.iter().zip(&mut state.feedback) {
            if begins {
                cadence.there_before = is_there_before(provider, record.facts);
            }
            let mute = match &provider.speech {
                Speech::Deadline { .. } => !has_deadline,
                // A provider that had nothing to say is asked again next time.
                Speech::Custom { name } => {
                    let spoke = |feedback: &Feedback| feedback.provider == *name;
                    !record.verdict.feedback.iter().any(spoke)
                }
                Speech::Static { .. } => false,
            };
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

/// A definition that no longer loads is said loudly: what is in force is not
/// what the file says.
fn broken_definition(look: Look<'_>) -> Option<Feedback> {
    let Some(DefinitionFact::Broken { reason }) = &look.facts.definition else { return None };
    Some(Feedback {
        provider: "Definition".to_string(),
        severity: Severity::Warning,
        summary: format!(
            "The definition no longer loads, so the last good one stays in force: {reason}"
        ),
        observations: Vec::new(),
        suggestions: Vec::from([
            "Tell the person: `jackline check` shows what is wrong.".to_string()
        ]),
        timestamp: look.clock.now(),
        call_index: look.state.invocations.proposed,
        definition: look.definition.name.clone(),
    })
}

fn moment(look: Look<'_>) -> Moment<'_> {
    Moment {
        calls: look.state.invocations.proposed,
        elapsed_ms: look.clock.elapsed_ms(),
        facts: look.facts,
    }
}

/// Asks the custom providers that are due.
fn ask_custom(look: Look<'_>, queries: &mut Queries) {
    let calls = look.state.invocations.proposed;
    let spoken = look.state.feedback.iter().filter_map(|cadence| cadence.last);
    let last = spoken.map(|(at, _)| at).max().unwrap_or(0);
    let providers = look.definition.feedback.iter().zip(&look.state.feedback);
    for (number, (provider, cadence)) in (0..).zip(providers) {
        let Speech::Custom { name } = &provider.speech else { continue };
        let open = !look.facts.feedback.contains_key(&number);
        if !open || !due(&provider.trigger, cadence, moment(look)).any() {
            continue;
        }
        let own = cadence.last.map_or(0, |(at, _)| at);
        let view = FeedbackView {
            definition: look.definition.name.clone(),
            deadline: deadline::of(look.definition, look.state, look.facts),
            now: look.clock.now(),
            tool_call_count: calls,
            calls_since_feedback: calls.saturating_sub(last),
            calls_since_own_feedback: calls.saturating_sub(own),
            recent_tool_calls: look.state.past.calls.iter().rev().cloned().collect(),
            last_feedback: look.state.past.spoke.clone(),
        };
        queries.ask(Query::Feedback { number, name: name.clone(), view });
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

/// Whether the file of a provider that begins now is there, where that matters.
fn is_there_before(provider: &FeedbackProvider, facts: &Facts) -> bool {
    let file = provider.trigger.on_file_created.as_ref();
    file.is_some_and(|file| file.since_start && is_there(facts, &file.path))
}

fn is_there(facts: &Facts, path: &str) -> bool {
    facts.files.get(path).is_some_and(|fact| fact.kind == FileKind::File)
}

fn speak(number: u16, provider: &FeedbackProvider, look: Look<'_>) -> Option<Feedback> {
    let (name, said) = match &provider.speech {
        Speech::Custom { name } => return custom(number, name, look),
        Speech::Deadline { warning_threshold_seconds } => {
            ("Deadline", deadline::speak(look, *warning_threshold_seconds)?)
        }
        Speech::Static { text } => {
            ("Static", Said { severity: Severity::Info, summary: text.clone(), suggestions: &[] })
        }
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

/// What a provider written in Rust said. One that broke is passed over: its
/// fact is in the record.
fn custom(number: u16, name: &str, look: Look<'_>) -> Option<Feedback> {
    let Some(FeedbackFact::Said { severity, summary, observations, suggestions }) =
        look.facts.feedback.get(&number)
    else {
        return None;
    };
    Some(Feedback {
        provider: name.to_string(),
        severity: *severity,
        summary: summary.clone(),
        observations: observations.clone(),
        suggestions: suggestions.clone(),
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
