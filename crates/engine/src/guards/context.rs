//! The context gate: an agent whose context is nearly full is told, briefed,
//! and held where somebody can compact it.
//!
//! How full it is comes from the latest usage record of each actor. Where
//! nobody reports usage, the lines of output are counted, and from such a guess
//! the agent is only warned. A window that nobody knows is said to be unknown,
//! once; it never counts as empty.

pub(crate) mod briefing;
mod fill;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use jackline_shell::{Command, Word};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use fill::Fill;
use fill::{Seen, Standing};

use super::{Answers, Fold, Guard, Look, Objection};
use crate::definition::Definition;
use crate::event::{CompactionFinished, Event, EventKind, SessionStarted, ToolFinished};
use crate::proposal::{Proposal, Run};
use crate::state::{Report, State, beginning};
use crate::verdict::{
    Class, ContextGate, ContextLevel, Decision, Feedback, GuardName, Observed, SafetyAction,
    SafetyEvent, SafetyKind, Severity, Stop, StopCode, StopDetail, ViolationSubtype, ViolationType,
};

/// The name under which the gate speaks.
const PROVIDER: &str = "Context";

/// Where the runtime writes what an agent needs to go on.
pub(crate) const BRIEFING: &str = ".jackline/MISSION_BRIEFING.md";

/// The word for a call that is held because the context is full.
const FULL: ViolationSubtype = ViolationSubtype::ContextFull;

/// A tool that does nothing but compact.
const COMPACT: &str = "compact";

/// Programs that do nothing but show the files they are given.
const SHOWING: [&str; 6] = ["cat", "head", "tail", "nl", "sed", "wc"];

/// Clients whose context is compacted by whoever reports the events, so that
/// holding their calls leads somewhere. Others compact themselves, when they
/// like: holding them would only leave them stuck.
const COMPACTING_CLIENTS: [&str; 2] = ["run", "stdio"];

/// How much of a model's name is kept.
const MODEL_BYTES_MAX: usize = 64;

/// From which fill on something is done, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// How many tokens the context holds, whatever others say.
    pub window: Option<u64>,
    /// The agent is told.
    pub warn: u8,
    /// A briefing is written, and the context has to be compacted.
    pub compact: u8,
    /// Nothing but a compaction runs, and what reads the briefing.
    pub block: u8,
    /// A compaction that frees less of what was used is useless.
    pub min_freed_pct: u8,
    /// So many useless ones in a row end the session.
    pub ineffective_max: u32,
}

impl Default for Context {
    fn default() -> Self {
        Self {
            window: None,
            warn: 75,
            compact: 80,
            block: 85,
            min_freed_pct: 20,
            ineffective_max: 2,
        }
    }
}

/// What is known of the program that runs the agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Host {
    /// Whether its context can be compacted from outside; none before anybody
    /// has said who they are.
    compacts: Option<bool>,
    /// The main agent's model.
    pub(crate) model: Option<String>,
    /// Whether the context was compacted since the agent last began.
    compacted: bool,
}

/// Whether a stop is let pass because the context of an agent that nobody else
/// can compact is full: keeping it at work would only fill it further.
pub(crate) fn bypasses(look: Look<'_>) -> bool {
    let Some(settings) = look.definition.context else { return false };
    let fill = look.state.actors.fill(&look.event.actor);
    !look.state.host.compacts() && fill.standing(settings, false).full
}

pub(crate) struct ContextGuard;

impl Guard for ContextGuard {
    fn decide(&self, look: Look<'_>, answers: &mut Answers) {
        let Some(settings) = look.definition.context else { return };
        let fill = look.state.actors.fill(&look.event.actor);
        let compacts = look.state.host.compacts();
        let next = fill.clone().after(seen(look.state, look.definition, look.event), settings);
        let now = next.standing(settings, compacts);
        if next.ineffective > fill.ineffective && next.ineffective >= settings.ineffective_max {
            useless(next.ineffective, answers);
            let mut details = details(look, &now, settings);
            details.insert("ineffective".to_string(), next.ineffective.into());
            log(look, details, SafetyAction::Stopped, answers);
        }
        match &look.event.kind {
            EventKind::UsageReported(_) => {
                let unknown = now.level == ContextLevel::Unknown && !fill.told_unknown;
                if now.level >= ContextLevel::Warn || unknown {
                    answers.context_gate = Some(now.gate());
                }
                if now.level >= ContextLevel::Compact && !fill.briefed {
                    log(look, details(look, &now, settings), SafetyAction::Briefed, answers);
                }
            }
            EventKind::ToolFinished(_) => tell(look, &fill, &now, answers),
            kind if kind.is_work() => {
                tell(look, &fill, &now, answers);
                if now.level == ContextLevel::Block && !is_way_out(look.proposal) {
                    hold(&now, answers);
                    if !fill.held {
                        log(look, details(look, &now, settings), SafetyAction::Held, answers);
                    }
                }
            }
            EventKind::CompactionFinished(_) => briefing::tell(look, &now, answers),
            EventKind::SessionStarted(_)
                if look.event.actor.is_main() && look.state.host.compacted =>
            {
                briefing::tell(look, &now, answers);
            }
            _ => {}
        }
    }

    fn apply(&self, state: &mut State, fold: Fold<'_>) {
        let record = fold.record;
        state.host.apply(&record.event.kind, record.event.actor.is_main());
        let Some(settings) = fold.definition.context else { return };
        let fill = state.actors.fill(&record.event.actor);
        let mut next = fill.after(seen(state, fold.definition, record.event), settings);
        let level = next.standing(settings, state.host.compacts()).level;
        next.settle(level);
        for said in record.verdict.feedback.iter().filter(|said| said.provider == PROVIDER) {
            next.was_told(level, said.severity);
        }
        next.held |= record.verdict.violations.iter().any(|it| it.subtype == FULL);
        state.actors.set_fill(&record.event.actor, next);
    }
}

impl Host {
    /// Whether its context can be compacted from outside.
    pub(crate) fn compacts(&self) -> bool {
        self.compacts.unwrap_or(false)
    }

    fn apply(&mut self, kind: &EventKind, main: bool) {
        match kind {
            EventKind::SessionStarted(SessionStarted { client, model, .. }) if main => {
                match client {
                    Some(client) => {
                        self.compacts = Some(COMPACTING_CLIENTS.contains(&client.as_str()));
                    }
                    // Adapters of clients that compact themselves say which. Who
                    // reports events without a name runs the agent.
                    None => {
                        self.compacts.get_or_insert(true);
                    }
                }
                if let Some(model) = model {
                    self.model = Some(beginning(model, MODEL_BYTES_MAX).to_string());
                }
                self.compacted = false;
            }
            EventKind::CompactionFinished(_) if main => self.compacted = true,
            _ => {}
        }
    }
}

/// What an event says about its actor's context.
fn seen<'a>(state: &State, definition: &Definition, event: &'a Event) -> Seen<'a> {
    if let Some(report) = Report::of(event) {
        let used = report.used.in_context();
        // A record without a token says nothing about the context.
        if used == 0 {
            return Seen::Nothing;
        }
        let known = state.usage.knows(&report);
        let of_main = state.host.model.as_deref().filter(|_| event.actor.is_main());
        let told = report.window.filter(|window| *window > 0);
        let window = told.or_else(|| definition.models.window_of(report.model, of_main, used));
        return Seen::Usage { request: report.request, known, used, window };
    }
    match &event.kind {
        EventKind::CompactionFinished(CompactionFinished { freed, .. }) => {
            Seen::Compaction { freed: *freed }
        }
        EventKind::ToolFinished(ToolFinished { result: Some(result), .. }) => Seen::Output(result),
        _ => Seen::Nothing,
    }
}

/// What the safety log says of a context.
fn details(look: Look<'_>, now: &Standing, settings: Context) -> BTreeMap<String, Value> {
    let threshold = match now.level {
        ContextLevel::Block => settings.block,
        ContextLevel::Compact => settings.compact,
        ContextLevel::Warn | ContextLevel::Ok | ContextLevel::Unknown => settings.warn,
    };
    let mut details = BTreeMap::from([
        ("actor".to_string(), Value::from(look.event.actor.as_str())),
        ("level".to_string(), Value::from(word(now.level))),
        ("threshold".to_string(), Value::from(threshold)),
    ]);
    let numbers =
        [("context_pct", now.pct), ("pct", now.pct), ("used", now.used), ("window", now.window)];
    for (name, number) in numbers {
        details.extend(number.map(|number| (name.to_string(), Value::from(number))));
    }
    details
}

/// Writes down what is done about a context: once for each rise, not for each call.
fn log(
    look: Look<'_>,
    details: BTreeMap<String, Value>,
    does: SafetyAction,
    answers: &mut Answers,
) {
    let action = if answers.enforces() { does } else { SafetyAction::Observed };
    answers.safety.push(SafetyEvent {
        timestamp: look.clock.now(),
        kind: SafetyKind::CompactionGate,
        details,
        action_taken: action,
    });
}

/// Tells the agent how full its context is, once per rise.
fn tell(look: Look<'_>, fill: &Fill, now: &Standing, answers: &mut Answers) {
    if !fill.is_news(now.level) {
        return;
    }
    let (severity, summary, suggestion) = match now.level {
        ContextLevel::Ok => return,
        ContextLevel::Unknown => (
            Severity::Caution,
            "How full the context is can't be told: no window is known for this model.".to_string(),
            "Tell the person: `context.window` in the definition says it.",
        ),
        ContextLevel::Warn => (
            Severity::Warning,
            format!("{}.", now.in_words()),
            "Finish what is under way, and keep what you read short.",
        ),
        ContextLevel::Compact | ContextLevel::Block => (
            Severity::Warning,
            format!("{}. A briefing was written to `{BRIEFING}`.", now.in_words()),
            "Compact the context now, then go on from the briefing.",
        ),
    };
    answers.feedback.push(feedback(look, PROVIDER, severity, summary, &[suggestion]));
    answers.context_gate = Some(now.gate());
}

/// Holds a call until the context was compacted.
fn hold(now: &Standing, answers: &mut Answers) {
    answers.context_gate = Some(now.gate());
    answers.object(Objection {
        guard: GuardName::Context,
        kind: ViolationType::Context,
        subtype: FULL,
        class: Class::Recoverable,
        decision: Decision::Deny,
        message: format!("{}; nothing but a compaction runs", lower_first(&now.in_words())),
        location: Some("context.block".to_string()),
        correction: Some(format!("compact the context, then go on from `{BRIEFING}`")),
    });
}

/// Whether a call only compacts, or only reads the briefing. It is not the
/// agent's to write.
fn is_way_out(proposal: Option<&Proposal<'_>>) -> bool {
    let Some(proposal) = proposal else { return false };
    let mut touches = proposal.touches.iter();
    let reads_briefing = !proposal.touches.is_empty()
        && touches.all(|touch| !touch.changes() && touch.target.path() == Some(BRIEFING));
    let only_shows = match &proposal.run {
        Run::Nothing => true,
        Run::Line(line) => {
            let shows = |command: &Command<'_>| {
                let program = command.words.first().and_then(Word::exact);
                program.is_some_and(|program| SHOWING.contains(&program))
            };
            line.opaque.is_empty() && line.commands.iter().all(shows)
        }
        Run::Unseen => false,
    };
    proposal.tool.name == COMPACT || (reads_briefing && only_shows)
}

/// Ends a session in which compacting has come to nothing.
fn useless(times: u32, answers: &mut Answers) {
    answers
        .stop
        .get_or_insert_with(|| Stop::of(StopCode::SystemError).because(StopDetail::Compaction));
    answers.object(Objection {
        guard: GuardName::Context,
        kind: ViolationType::Context,
        subtype: ViolationSubtype::CompactionIneffective,
        class: Class::Terminal,
        decision: Decision::Stop,
        message: format!("{times} compactions in a row freed next to nothing"),
        location: Some("context.min_freed_pct".to_string()),
        correction: Some(
            "a person can begin anew from the briefing, or open the session with `jackline reset`"
                .to_string(),
        ),
    });
}

fn feedback(
    look: Look<'_>,
    provider: &str,
    severity: Severity,
    summary: String,
    suggestions: &[&str],
) -> Feedback {
    Feedback {
        provider: provider.to_string(),
        severity,
        summary,
        observations: Vec::<Observed>::new(),
        suggestions: suggestions.iter().map(ToString::to_string).collect(),
        timestamp: look.clock.now(),
        call_index: look.state.invocations.proposed,
        definition: look.definition.name.clone(),
    }
}

impl Standing {
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
                "The context may be about {pct} % full; that is estimated from lines of output, because nobody reports usage"
            ),
        }
    }
}

/// The word of a level on the wire.
pub(crate) fn word(level: ContextLevel) -> &'static str {
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
