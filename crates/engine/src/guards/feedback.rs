//! Feedback providers: soft guidance that the agent gets along with tool results.
//!
//! A provider sends feedback when one of its triggers is due. Each provider has its own cadence,
//! and all that are due send in the same round. Feedback never blocks; the agent decides what to do
//! with it.

pub(crate) mod deadline;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{FoldInput, Guard, GuardAnswers, GuardInput};
use crate::definition::Definition;
use crate::event::EventKind;
use crate::facts::{
    DefinitionFact, Facts, FeedbackFact, FeedbackView, FileDetails, FileKind, Queries, Query,
    ReloadFact,
};
use crate::reload::match_unchanged;
use crate::state::SessionState;
use crate::verdict::{Feedback, Severity};

/// How many of the latest calls a custom provider is shown.
const RECENT_CALLS_MAX: usize = 8;

/// How many characters of the latest feedback a custom provider is shown.
const SUMMARY_CHARS_MAX: usize = 200;

/// A feedback provider and its trigger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedbackProvider {
    /// The content of the feedback.
    pub speech: FeedbackContent,
    /// When it is sent.
    pub trigger: FeedbackTrigger,
}

/// The content that a provider sends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedbackContent {
    /// The remaining time.
    Deadline {
        /// From this remaining time on, the feedback is a warning.
        warning_threshold_seconds: u64,
    },
    /// A fixed text.
    Static {
        /// The text.
        text: String,
    },
    /// The answer of a provider written in Rust.
    Custom {
        /// The registered name.
        name: String,
    },
}

/// When a provider sends feedback. Any one of these conditions is enough.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedbackTrigger {
    /// After this many calls since its last feedback.
    pub every_n_calls: Option<u64>,
    /// At the first result, then after this many milliseconds since its last feedback.
    pub every_n_ms: Option<u64>,
    /// Once, when this file exists.
    pub on_file_created: Option<FileTrigger>,
}

/// A file that makes a provider send feedback once per session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileTrigger {
    /// The canonical path.
    pub path: String,
    /// Whether to ignore a file that existed before the session.
    pub since_start: bool,
}

/// When one provider last sent feedback.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct FeedbackCadence {
    /// The number of calls when the provider was added.
    added_at: u64,
    /// The number of calls and the session time at its last feedback.
    last: Option<(u64, u64)>,
    /// Whether its file has triggered feedback.
    fired: bool,
    /// Whether its file existed when the session started, if that matters.
    there_before: bool,
}

/// What providers are told about earlier events under the definition of the same name. Calls and
/// feedback are recorded only if the definition has custom providers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct FeedbackHistory {
    /// The number of calls of the session before the definition of this name.
    calls_before: u64,
    /// The latest called tools, the newest at the end.
    calls: Vec<String>,
    /// The provider and the text of the latest feedback.
    spoke: Option<(String, String)>,
}

impl FeedbackHistory {
    /// The number of calls under the definition of this name.
    pub(crate) fn count_calls(&self, all: u64) -> u64 {
        all.saturating_sub(self.calls_before)
    }

    fn apply(&mut self, fold: FoldInput<'_>) {
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

/// Returns the cadences of a new session.
pub(crate) fn initial_cadences(definition: &Definition) -> Vec<FeedbackCadence> {
    definition.feedback.iter().map(|_| FeedbackCadence::default()).collect()
}

/// Resets the cadences: every provider starts again. Files that existed before the session still
/// count as such.
pub(crate) fn reset_cadences(cadences: &mut [FeedbackCadence]) {
    for cadence in cadences {
        *cadence =
            FeedbackCadence { there_before: cadence.there_before, ..FeedbackCadence::default() };
    }
}

/// Converts the cadences for a reloaded definition. An unchanged provider keeps its cadence; every
/// other one starts. A definition with another name has counts of its own.
pub(crate) fn carry_over(
    state: &mut SessionState,
    from: &Definition,
    to: &Definition,
    facts: &Facts,
) {
    let all = state.invocations.proposed;
    let is_renamed = from.name != to.name;
    if is_renamed {
        state.past = FeedbackHistory { calls_before: all, ..FeedbackHistory::default() };
    }
    let added_at = state.past.count_calls(all);
    let same = match_unchanged(&from.feedback, &to.feedback, |old, new| !is_renamed && old == new);
    let carried = to.feedback.iter().zip(same).map(|(provider, old)| {
        let old = old.and_then(|at| state.feedback.get(at)).cloned();
        old.unwrap_or_else(|| FeedbackCadence {
            added_at,
            there_before: existed_before(provider, facts),
            ..FeedbackCadence::default()
        })
    });
    state.feedback = carried.collect();
}

pub(crate) struct FeedbackGuard;

impl Guard for FeedbackGuard {
    fn needs(&self, input: GuardInput<'_>, queries: &mut Queries) {
        let is_first = input.state.seq == 0;
        let has_result = matches!(input.event.kind, EventKind::ToolFinished(_));
        for (provider, cadence) in input.definition.feedback.iter().zip(&input.state.feedback) {
            let Some(file) = &provider.trigger.on_file_created else { continue };
            let needed = (is_first && file.since_start) || (has_result && !cadence.fired);
            if needed && !input.facts.files.contains_key(&file.path) {
                queries.ask(Query::File { path: file.path.clone(), wants: FileDetails::default() });
            }
        }
        if let Some(ReloadFact::New(new)) = &input.facts.reload
            && let Some(lowered) = new.lowered.definition()
        {
            let files = lowered
                .feedback
                .iter()
                .filter_map(|provider| provider.trigger.on_file_created.as_ref());
            for file in files.filter(|file| file.since_start) {
                if !input.facts.files.contains_key(&file.path) {
                    queries.ask(Query::File {
                        path: file.path.clone(),
                        wants: FileDetails::default(),
                    });
                }
            }
        }
        // A file trigger can only be decided once the file fact exists, in the next round.
        if has_result && queries.is_empty() {
            ask_custom(input, queries);
        }
    }

    fn decide(&self, input: GuardInput<'_>, answers: &mut GuardAnswers) {
        answers.feedback.extend(broken_definition(input));
        if !matches!(input.event.kind, EventKind::ToolFinished(_)) {
            return;
        }
        let moment = trigger_input(input);
        let mut room = input.definition.feedback_bytes_max as usize;
        let providers = input.definition.feedback.iter().zip(&input.state.feedback);
        for (number, (provider, cadence)) in (0..).zip(providers) {
            if !due_triggers(&provider.trigger, cadence, moment).any() {
                continue;
            }
            let Some(feedback) = provider_feedback(number, provider, input) else { continue };
            // Identical feedback is sent once per round.
            let is_same = |sent: &Feedback| {
                (&sent.provider, &sent.summary) == (&feedback.provider, &feedback.summary)
            };
            let bytes = feedback.render().len();
            if bytes <= room && !answers.feedback.iter().any(is_same) {
                room -= bytes;
                answers.feedback.push(feedback);
            }
        }
    }

    fn apply(&self, state: &mut SessionState, fold: FoldInput<'_>) {
        let (definition, record) = (fold.definition, fold.record);
        let is_first = record.seq == 1;
        let custom =
            |provider: &FeedbackProvider| matches!(provider.speech, FeedbackContent::Custom { .. });
        if definition.feedback.iter().any(custom) {
            state.past.apply(fold);
        }
        let has_result = matches!(record.event.kind, EventKind::ToolFinished(_));
        let has_deadline = deadline::earliest_deadline(definition, state, record.facts).is_some();
        let moment = TriggerInput {
            calls: state.feedback_calls(),
            elapsed_ms: state.clock.elapsed_ms(),
            facts: record.facts,
        };
        for (provider, cadence) in definition.feedback.iter().zip(&mut state.feedback) {
            if is_first {
                cadence.there_before = existed_before(provider, record.facts);
            }
            let is_silent = match &provider.speech {
                FeedbackContent::Deadline { .. } => !has_deadline,
                // A provider that sent nothing is asked again at the next result.
                FeedbackContent::Custom { name } => {
                    let spoke = |feedback: &Feedback| feedback.provider == *name;
                    !record.verdict.feedback.iter().any(spoke)
                }
                FeedbackContent::Static { .. } => false,
            };
            if !has_result || is_silent {
                continue;
            }
            let due = due_triggers(&provider.trigger, cadence, moment);
            // Only the file trigger itself uses up its one chance.
            cadence.fired |= due.file;
            if due.any() {
                cadence.last = Some((moment.calls, moment.elapsed_ms));
            }
        }
    }
}

/// Warns the agent that the definition file cannot be loaded, because the definition in force
/// differs from the file.
fn broken_definition(input: GuardInput<'_>) -> Option<Feedback> {
    let Some(DefinitionFact::Broken { reason }) = &input.facts.definition else { return None };
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
        timestamp: input.clock.now(),
        call_index: input.state.feedback_calls(),
        definition: input.definition.name.clone(),
    })
}

fn trigger_input(input: GuardInput<'_>) -> TriggerInput<'_> {
    TriggerInput {
        calls: input.state.feedback_calls(),
        elapsed_ms: input.clock.elapsed_ms(),
        facts: input.facts,
    }
}

/// Asks the custom providers that are due.
fn ask_custom(input: GuardInput<'_>, queries: &mut Queries) {
    let calls = input.state.feedback_calls();
    let sent = input.state.feedback.iter().filter_map(|cadence| cadence.last);
    let last = sent.map(|(at, _)| at).max().unwrap_or(0);
    let providers = input.definition.feedback.iter().zip(&input.state.feedback);
    for (number, (provider, cadence)) in (0..).zip(providers) {
        let FeedbackContent::Custom { name } = &provider.speech else { continue };
        let unanswered = !input.facts.feedback.contains_key(&number);
        if !unanswered || !due_triggers(&provider.trigger, cadence, trigger_input(input)).any() {
            continue;
        }
        let own = cadence.last.map_or(cadence.added_at, |(at, _)| at);
        let view = FeedbackView {
            definition: input.definition.name.clone(),
            deadline: deadline::earliest_deadline(input.definition, input.state, input.facts),
            now: input.clock.now(),
            tool_call_count: calls,
            calls_since_feedback: calls.saturating_sub(last),
            calls_since_own_feedback: calls.saturating_sub(own),
            recent_tool_calls: input.state.past.calls.iter().rev().cloned().collect(),
            last_feedback: input.state.past.spoke.clone(),
        };
        queries.ask(Query::Feedback { number, name: name.clone(), view });
    }
}

/// The values that triggers compare.
#[derive(Clone, Copy)]
struct TriggerInput<'a> {
    calls: u64,
    elapsed_ms: u64,
    facts: &'a Facts,
}

/// Which triggers are due.
struct DueTriggers {
    calls: bool,
    time: bool,
    file: bool,
}

impl DueTriggers {
    fn any(&self) -> bool {
        self.calls || self.time || self.file
    }
}

fn due_triggers(
    trigger: &FeedbackTrigger,
    cadence: &FeedbackCadence,
    moment: TriggerInput<'_>,
) -> DueTriggers {
    let last = cadence.last.map_or(cadence.added_at, |(calls, _)| calls);
    let calls_since = moment.calls.saturating_sub(last);
    let ms_since = cadence.last.map(|(_, at)| moment.elapsed_ms.saturating_sub(at));
    DueTriggers {
        calls: trigger.every_n_calls.is_some_and(|n| calls_since >= n),
        time: trigger.every_n_ms.is_some_and(|n| ms_since.is_none_or(|ms| ms >= n)),
        file: trigger.on_file_created.as_ref().is_some_and(|file| {
            !cadence.fired && !cadence.there_before && file_exists(moment.facts, &file.path)
        }),
    }
}

/// Returns whether the file of a new provider already exists, if that matters.
fn existed_before(provider: &FeedbackProvider, facts: &Facts) -> bool {
    let file = provider.trigger.on_file_created.as_ref();
    file.is_some_and(|file| file.since_start && file_exists(facts, &file.path))
}

fn file_exists(facts: &Facts, path: &str) -> bool {
    facts.files.get(path).is_some_and(|fact| fact.kind == FileKind::File)
}

fn provider_feedback(
    number: u16,
    provider: &FeedbackProvider,
    input: GuardInput<'_>,
) -> Option<Feedback> {
    let (name, content) = match &provider.speech {
        FeedbackContent::Custom { name } => return custom_feedback(number, name, input),
        FeedbackContent::Deadline { warning_threshold_seconds } => {
            ("Deadline", deadline::deadline_feedback(input, *warning_threshold_seconds)?)
        }
        FeedbackContent::Static { text } => (
            "Static",
            BuiltinFeedback { severity: Severity::Info, summary: text.clone(), suggestions: &[] },
        ),
    };
    Some(Feedback {
        provider: name.to_string(),
        severity: content.severity,
        summary: content.summary,
        observations: Vec::new(),
        suggestions: content.suggestions.iter().map(ToString::to_string).collect(),
        timestamp: input.clock.now(),
        call_index: input.state.feedback_calls(),
        definition: input.definition.name.clone(),
    })
}

/// Returns the answer of a provider written in Rust. A broken provider is skipped; its failure is
/// recorded as a fact.
fn custom_feedback(number: u16, name: &str, input: GuardInput<'_>) -> Option<Feedback> {
    let Some(FeedbackFact::Message { severity, summary, observations, suggestions }) =
        input.facts.feedback.get(&number)
    else {
        return None;
    };
    Some(Feedback {
        provider: name.to_string(),
        severity: *severity,
        summary: summary.clone(),
        observations: observations.clone(),
        suggestions: suggestions.clone(),
        timestamp: input.clock.now(),
        call_index: input.state.feedback_calls(),
        definition: input.definition.name.clone(),
    })
}

/// The text of a built-in provider.
struct BuiltinFeedback {
    severity: Severity,
    summary: String,
    suggestions: &'static [&'static str],
}
