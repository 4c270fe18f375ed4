//! The context gate: it warns an agent whose context is nearly full, writes a briefing, and blocks
//! calls where the client can compact the context.
//!
//! The fill comes from the latest usage record of each actor. Without usage records, the gate
//! counts lines of output, and such an estimate only causes a warning. If the context window is
//! unknown, the agent is told so once; an unknown window never counts as empty.

pub(crate) mod briefing;
mod fill;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use jackline_shell::{ShellCommand, ShellWord};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use fill::ContextFill;
use fill::{ContextEvent, ContextStatus};

use super::fallback::is_other_model;
use super::{FoldInput, Guard, GuardAnswers, GuardInput, ViolationDraft};
use crate::definition::Definition;
use crate::event::{CompactionFinished, Event, EventKind, SessionStarted, ToolFinished};
use crate::proposal::{Proposal, ProposedRun};
use crate::state::{PauseCause, PauseState, SessionState, UsageReport, text_prefix};
use crate::time::Timestamp;
use crate::verdict::{
    ContextGate, ContextLevel, Decision, Feedback, FeedbackObservation, GuardName, SafetyAction,
    SafetyEvent, SafetyKind, SessionStop, Severity, StopCode, StopDetail, Violation,
    ViolationClass, ViolationSubtype, ViolationType,
};

/// The provider name of feedback from this gate.
const PROVIDER: &str = "Context";

/// The file in which the runtime writes what an agent needs after a compaction.
pub(crate) const BRIEFING_PATH: &str = ".jackline/MISSION_BRIEFING.md";

/// The subtype of a call that is blocked because the context is full.
const CONTEXT_FULL: ViolationSubtype = ViolationSubtype::ContextFull;

/// The name of a tool that only compacts the context.
const COMPACT_TOOL: &str = "compact";

/// Programs that only show the files they are given.
const READ_PROGRAMS: [&str; 6] = ["cat", "head", "tail", "nl", "sed", "wc"];

/// Clients whose context is compacted by the process that reports the events, so that blocking
/// calls leads to a compaction. Other clients decide for themselves when to compact; blocking their
/// calls would leave them stuck.
const COMPACTING_CLIENTS: [&str; 2] = ["run", "stdio"];

/// How many bytes of a client's command for a compaction are stored.
const COMPACT_COMMAND_BYTES_MAX: usize = 64;

/// How many bytes of a model name are stored.
const MODEL_BYTES_MAX: usize = 64;

/// The fill levels, in percent, at which the gate acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextThresholds {
    /// The size of the context window in tokens. It overrides what the client reports.
    pub window: Option<u64>,
    /// At this fill the agent is warned.
    pub warn: u8,
    /// At this fill a briefing is written, and the agent is asked to compact.
    pub compact: u8,
    /// At this fill only a compaction and reading the briefing are allowed.
    pub block: u8,
    /// A compaction that frees less than this share of the used context counts as ineffective.
    pub min_freed_pct: u8,
    /// This many ineffective compactions in a row stop the session.
    pub ineffective_max: u32,
    /// Without usage records, this many lines of output count as 70 % of the context.
    #[serde(default = "default_estimate_lines")]
    pub estimate_lines: u32,
    /// How often in a row a full conversation of a supervised run is restarted without new work.
    /// The engine does not read it.
    #[serde(default = "default_restarts_max")]
    pub restarts_max: u32,
}

fn default_estimate_lines() -> u32 {
    500
}

fn default_restarts_max() -> u32 {
    2
}

impl Default for ContextThresholds {
    fn default() -> Self {
        Self {
            window: None,
            warn: 75,
            compact: 80,
            block: 85,
            min_freed_pct: 20,
            ineffective_max: 2,
            estimate_lines: default_estimate_lines(),
            restarts_max: default_restarts_max(),
        }
    }
}

/// What the engine knows about the program that runs the agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct HostAgent {
    /// Whether the context can be compacted from outside. `None` until the client has named itself.
    can_compact: Option<bool>,
    /// The command with which a person compacts the context in this client.
    compact_command: Option<String>,
    /// The main agent's model.
    pub(crate) model: Option<String>,
    /// Whether the context was compacted since the agent last started.
    compacted: bool,
    /// When the main agent's context was last compacted.
    pub(crate) last_compaction: Option<Timestamp>,
}

/// Returns whether a stop is allowed because the context is full and only the agent itself can
/// compact it. More work would only fill the context further.
pub(crate) fn is_stop_bypassed(input: GuardInput<'_>) -> bool {
    let Some(settings) = input.definition.context else { return false };
    let fill = input.state.actors.fill(&input.event.actor);
    !input.state.host.can_compact() && fill.status(settings, false).full
}

pub(crate) struct ContextGuard;

impl Guard for ContextGuard {
    fn decide(&self, input: GuardInput<'_>, answers: &mut GuardAnswers) {
        let Some(settings) = input.definition.context else { return };
        let fill = input.state.actors.fill(&input.event.actor);
        let compacts = input.state.host.can_compact();
        let next =
            fill.clone().after(context_event(input.state, input.definition, input.event), settings);
        let now = next.status(settings, compacts);
        if next.ineffective > fill.ineffective && next.ineffective >= settings.ineffective_max {
            let mut details = safety_details(input, &now, settings);
            details.insert("ineffective".to_string(), next.ineffective.into());
            let action = end_ineffective_compactions(input, next.ineffective, answers);
            log_action(input, details, action, answers);
        }
        match &input.event.kind {
            EventKind::UsageReported(_) => {
                let unknown = now.level == ContextLevel::Unknown && !fill.told_unknown;
                if now.level >= ContextLevel::Warn || unknown {
                    answers.context_gate = Some(now.gate());
                }
                if now.level >= ContextLevel::Compact && !fill.briefed {
                    log_action(
                        input,
                        safety_details(input, &now, settings),
                        SafetyAction::Briefed,
                        answers,
                    );
                }
            }
            EventKind::ToolFinished(_) => warn_agent(input, &fill, &now, answers),
            kind if kind.is_work() => {
                warn_agent(input, &fill, &now, answers);
                if now.level == ContextLevel::Block
                    && !is_compaction_or_briefing_read(input.proposal)
                {
                    block_call(&now, answers);
                    if !fill.held {
                        log_action(
                            input,
                            safety_details(input, &now, settings),
                            SafetyAction::Held,
                            answers,
                        );
                    }
                }
            }
            EventKind::CompactionFinished(_) => {
                if fill.briefed {
                    // The details describe the full context, before the compaction.
                    let full = fill.status(settings, compacts);
                    // A supervisor starts a new conversation with the briefing.
                    let restarts = input.state.spent.supervised && input.event.actor.is_main();
                    let action = if restarts {
                        SafetyAction::RestartedSession
                    } else {
                        SafetyAction::Compacted
                    };
                    log_action(input, safety_details(input, &full, settings), action, answers);
                }
                briefing::send_briefing(input, &now, answers);
            }
            EventKind::SessionStarted(_)
                if input.event.actor.is_main() && input.state.host.compacted =>
            {
                briefing::send_briefing(input, &now, answers);
            }
            _ => {}
        }
    }

    fn apply(&self, state: &mut SessionState, fold: FoldInput<'_>) {
        let record = fold.record;
        let now = state.clock.now();
        state.host.apply(&record.event.kind, record.event.actor.is_main(), now);
        if is_other_model(record) {
            // The next usage record is about the window of another model.
            state.actors.set_fill(&record.event.actor, ContextFill::default());
        }
        let Some(settings) = fold.definition.context else { return };
        let is_pause = |it: &&Violation| it.enforced && it.decision == Decision::Pause;
        let mut violations = record.verdict.violations.iter().filter(is_pause);
        if let Some(violation) = violations.find(|it| it.guard == GuardName::Context)
            && state.paused.is_none()
        {
            let why = violation.message.clone();
            state.paused = Some(PauseState::by_guard(PauseCause::Context, why));
        }
        let fill = state.actors.fill(&record.event.actor);
        let mut next = fill.after(context_event(state, fold.definition, record.event), settings);
        let level = next.status(settings, state.host.can_compact()).level;
        next.update_level(level);
        for feedback in
            record.verdict.feedback.iter().filter(|feedback| feedback.provider == PROVIDER)
        {
            next.record_warning(level, feedback.severity);
        }
        next.held |=
            record.verdict.violations.iter().any(|violation| violation.subtype == CONTEXT_FULL);
        state.actors.set_fill(&record.event.actor, next);
    }
}

impl HostAgent {
    /// Returns whether the context can be compacted from outside.
    pub(crate) fn can_compact(&self) -> bool {
        self.can_compact.unwrap_or(false)
    }

    /// Returns the advice to compact the context, with the client's own command if it has one. The
    /// agent cannot run such a command; only the person can.
    fn advise_compaction(&self, advice: &str) -> String {
        match &self.compact_command {
            Some(command) => format!("{advice}: ask the person to enter `{command}`."),
            None => format!("{advice}."),
        }
    }

    fn apply(&mut self, kind: &EventKind, main: bool, now: Timestamp) {
        match kind {
            EventKind::SessionStarted(SessionStarted {
                client, model, compact_command, ..
            }) if main => {
                match client {
                    Some(client) => {
                        self.can_compact = Some(COMPACTING_CLIENTS.contains(&client.as_str()));
                    }
                    // Clients that compact themselves send their name. A client without a name runs
                    // the agent itself.
                    None => {
                        self.can_compact.get_or_insert(true);
                    }
                }
                let command = compact_command.as_deref();
                self.compact_command =
                    command.map(|it| text_prefix(it, COMPACT_COMMAND_BYTES_MAX).to_string());
                if let Some(model) = model {
                    self.model = Some(text_prefix(model, MODEL_BYTES_MAX).to_string());
                }
                self.compacted = false;
            }
            EventKind::CompactionFinished(_) if main => {
                self.compacted = true;
                self.last_compaction = Some(now);
            }
            _ => {}
        }
    }
}

/// Extracts what an event tells about its actor's context.
fn context_event<'a>(
    state: &SessionState,
    definition: &Definition,
    event: &'a Event,
) -> ContextEvent<'a> {
    if let Some(report) = UsageReport::of(event) {
        let used = report.used.in_context();
        // A usage record without tokens tells nothing about the context.
        if used == 0 {
            return ContextEvent::Nothing;
        }
        let is_repeated = state.usage.has_request(&report);
        let of_main = state.host.model.as_deref().filter(|_| event.actor.is_main());
        let reported = report.window.filter(|window| *window > 0);
        let window = reported.or_else(|| definition.models.window_of(report.model, of_main, used));
        return ContextEvent::Usage { request: report.request, known: is_repeated, used, window };
    }
    match &event.kind {
        EventKind::CompactionFinished(CompactionFinished { freed, .. }) => {
            ContextEvent::Compaction { freed: *freed }
        }
        EventKind::ToolFinished(ToolFinished { result: Some(result), .. }) => {
            ContextEvent::Output(result)
        }
        _ => ContextEvent::Nothing,
    }
}

/// Returns the details of a safety log event about a context.
fn safety_details(
    input: GuardInput<'_>,
    now: &ContextStatus,
    settings: ContextThresholds,
) -> BTreeMap<String, Value> {
    let threshold = match now.level {
        ContextLevel::Block => settings.block,
        ContextLevel::Compact => settings.compact,
        ContextLevel::Warn | ContextLevel::Ok | ContextLevel::Unknown => settings.warn,
    };
    let mut details = BTreeMap::from([
        ("actor".to_string(), Value::from(input.event.actor.as_str())),
        ("level".to_string(), Value::from(level_word(now.level))),
        ("threshold".to_string(), Value::from(threshold)),
    ]);
    let numbers =
        [("context_pct", now.pct), ("pct", now.pct), ("used", now.used), ("window", now.window)];
    for (name, number) in numbers {
        details.extend(number.map(|number| (name.to_string(), Value::from(number))));
    }
    details
}

/// Writes a safety log event, once per rise of the level and not per call.
fn log_action(
    input: GuardInput<'_>,
    details: BTreeMap<String, Value>,
    enforced_action: SafetyAction,
    answers: &mut GuardAnswers,
) {
    let action = if answers.is_enforcing() { enforced_action } else { SafetyAction::Observed };
    answers.safety.push(SafetyEvent {
        timestamp: input.clock.now(),
        kind: SafetyKind::CompactionGate,
        details,
        action_taken: action,
    });
}

/// Tells the agent how full its context is, once per rise of the level.
fn warn_agent(
    input: GuardInput<'_>,
    fill: &ContextFill,
    now: &ContextStatus,
    answers: &mut GuardAnswers,
) {
    if !fill.should_report(now.level) {
        return;
    }
    let (severity, summary, suggestions) = match now.level {
        ContextLevel::Ok => return,
        ContextLevel::Unknown => (
            Severity::Caution,
            "Jackline cannot tell how full the context is: the context window of this model is \
             unknown."
                .to_string(),
            Vec::from(["Tell the person to set `context.window` in the definition.".to_string()]),
        ),
        ContextLevel::Warn => (
            Severity::Warning,
            format!("{}.", now.in_words()),
            Vec::from([
                "Finish the current work, and read only short excerpts.".to_string(),
                input.state.host.advise_compaction("Compact the context soon"),
            ]),
        ),
        ContextLevel::Compact | ContextLevel::Block => (
            Severity::Warning,
            format!("{}. A briefing was written to `{BRIEFING_PATH}`.", now.in_words()),
            Vec::from([
                input.state.host.advise_compaction("Compact the context now"),
                "Then continue from the briefing.".to_string(),
            ]),
        ),
    };
    answers.feedback.push(build_feedback(input, PROVIDER, severity, summary, suggestions));
    answers.context_gate = Some(now.gate());
}

/// Blocks a call until the context is compacted.
fn block_call(now: &ContextStatus, answers: &mut GuardAnswers) {
    answers.context_gate = Some(now.gate());
    answers.add_violation(ViolationDraft {
        guard: GuardName::Context,
        kind: ViolationType::Context,
        subtype: CONTEXT_FULL,
        class: ViolationClass::Recoverable,
        decision: Decision::Deny,
        message: format!(
            "{}; until it is compacted, only a compaction or reading the briefing is allowed",
            lower_first(&now.in_words())
        ),
        location: Some("context.block".to_string()),
        correction: Some(format!("compact the context, then continue from `{BRIEFING_PATH}`")),
    });
}

/// Returns whether a call only compacts the context or only reads the briefing. The agent may not
/// write the briefing.
fn is_compaction_or_briefing_read(proposal: Option<&Proposal<'_>>) -> bool {
    let Some(proposal) = proposal else { return false };
    let mut touches = proposal.touches.iter();
    let reads_briefing = !proposal.touches.is_empty()
        && touches.all(|touch| !touch.changes() && touch.target.path() == Some(BRIEFING_PATH));
    let only_shows = match &proposal.run {
        ProposedRun::Nothing => true,
        ProposedRun::Line(line) => {
            let is_showing = |command: &ShellCommand<'_>| {
                let program = command.words.first().and_then(ShellWord::exact_text);
                program.is_some_and(|program| READ_PROGRAMS.contains(&program))
            };
            line.opaque_parts.is_empty() && line.commands.iter().all(is_showing)
        }
        ProposedRun::Unseen => false,
    };
    proposal.tool.name == COMPACT_TOOL || (reads_briefing && only_shows)
}

/// Stops a session whose compactions free too little. A supervised run is paused instead if another
/// model can take over.
fn end_ineffective_compactions(
    input: GuardInput<'_>,
    times: u32,
    answers: &mut GuardAnswers,
) -> SafetyAction {
    let state = input.state;
    let pauses = state.spent.supervised && state.has_next_model(input.definition);
    let (class, decision, action, correction) = if pauses {
        let correction = "end the turn; another model continues the work";
        (ViolationClass::Recoverable, Decision::Pause, SafetyAction::Paused, correction)
    } else {
        answers.stop.get_or_insert_with(|| {
            SessionStop::with_code(StopCode::SystemError).with_detail(StopDetail::Compaction)
        });
        let correction = "a person can start a new session from the briefing, or reopen this one \
                          with `jackline reset`";
        (ViolationClass::Terminal, Decision::Stop, SafetyAction::Stopped, correction)
    };
    answers.add_violation(ViolationDraft {
        guard: GuardName::Context,
        kind: ViolationType::Context,
        subtype: ViolationSubtype::CompactionIneffective,
        class,
        decision,
        message: format!("{times} compactions in a row freed too little"),
        location: Some("context.min_freed_pct".to_string()),
        correction: Some(correction.to_string()),
    });
    action
}

fn build_feedback(
    input: GuardInput<'_>,
    provider: &str,
    severity: Severity,
    summary: String,
    suggestions: Vec<String>,
) -> Feedback {
    Feedback {
        provider: provider.to_string(),
        severity,
        summary,
        observations: Vec::<FeedbackObservation>::new(),
        suggestions,
        timestamp: input.clock.now(),
        call_index: input.state.feedback_calls(),
        definition: input.definition.name.clone(),
    }
}

impl ContextStatus {
    fn gate(&self) -> ContextGate {
        ContextGate { level: self.level, pct: self.pct, estimated: self.estimated }
    }

    /// "The context is 86 % full (172000 of 200000 tokens)".
    fn in_words(&self) -> String {
        let pct = self.pct.unwrap_or(0);
        match (self.used, self.window) {
            (Some(used), Some(window)) => {
                format!("The context is {pct} % full ({used} of {window} tokens)")
            }
            _ => format!(
                "The context may be about {pct} % full (estimated from lines of output, because \
                 the client reports no token usage)"
            ),
        }
    }
}

/// Returns the JSON word of a level.
pub(crate) fn level_word(level: ContextLevel) -> &'static str {
    match level {
        ContextLevel::Unknown => "unknown",
        ContextLevel::Ok => "ok",
        ContextLevel::Warn => "warn",
        ContextLevel::Compact => "compact",
        ContextLevel::Block => "block",
    }
}

fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}
