//! A session as it is shown: what a frame needs, and nothing that has to be
//! asked for while it is drawn.

use jackline_definition::words;
use jackline_engine::definition::Limits;
use jackline_engine::{
    Decision, Definition, EventKind, SessionId, SessionPhase, StopCode, Summary, Timestamp,
};
use jackline_journal::{EventRecord, Opened};
use jackline_runtime::asks::{ask_code, still_asks};

use super::super::log::{decided, remarks, what};
use super::super::status::{effect, of, turn_in_words};
use super::parts::{Part, parts};
use super::text::clean;

/// One session.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) name: String,
    pub(super) modified: Option<Timestamp>,
    /// Where it stands, or why nobody can say.
    pub(super) standing: Result<Standing, String>,
}

impl Seen {
    /// What waits for a person in it.
    pub(super) fn asks(&self) -> &[Ask] {
        self.standing.as_ref().map_or(&[], |standing| &standing.asks)
    }
}

/// Where a session stands.
#[derive(Debug, Clone)]
pub(super) struct Standing {
    pub(super) session: SessionId,
    pub(super) workspace: Option<String>,
    /// The definition and its mode.
    pub(super) definition: String,
    pub(super) phase: SessionPhase,
    /// Whether it ended as it should.
    pub(super) achieved: bool,
    /// Why it is in this phase.
    pub(super) why: Option<String>,
    pub(super) asks: Vec<Ask>,
    /// What is in force, and until when.
    pub(super) in_force: Vec<(String, Option<Timestamp>)>,
    pub(super) started: Timestamp,
    pub(super) deadline: Option<Timestamp>,
    pub(super) turn: String,
    pub(super) steps: String,
    pub(super) tokens: Option<String>,
    pub(super) calls: String,
    /// Tools that have not come back.
    pub(super) in_flight: Vec<String>,
    /// What single guards say.
    pub(super) parts: Vec<Part>,
}

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ask {
    /// The record in which they were asked.
    pub(super) seq: u64,
    pub(super) code: String,
    pub(super) asked_at: Timestamp,
    /// The call, in one line.
    pub(super) call: String,
    pub(super) why: String,
}

/// One record.
#[derive(Debug, Clone)]
pub(super) struct Happened {
    pub(super) seq: u64,
    pub(super) at: Timestamp,
    /// The kind of event; none for a proposed call, which `what` describes.
    pub(super) event: Option<&'static str>,
    pub(super) what: String,
    pub(super) decision: Decision,
    pub(super) decided: String,
    pub(super) remarks: String,
}

impl Standing {
    pub(super) fn new(opened: &Opened, definition: &Definition, summary: &Summary) -> Self {
        let mode = words::mode(definition.mode);
        let stop = summary.stop.as_ref();
        let waiting = summary.waiting.iter().rev().filter(|_| still_asks(summary));
        let asks = waiting.map(|waiting| {
            let does = clean(&waiting.does);
            let does = if does.is_empty() { String::new() } else { format!(" `{does}`") };
            let refused = waiting.why.is_empty();
            let why = if refused { "a person refused it before" } else { &waiting.why };
            Ask {
                seq: waiting.seq,
                code: ask_code(&opened.session, waiting.seq),
                asked_at: waiting.asked_at,
                call: format!("{}{does}", clean(&waiting.tool)),
                why: clean(why),
            }
        });
        let in_force = summary.constraints.iter();
        Self {
            session: opened.session.clone(),
            workspace: opened.place.workspace.clone(),
            definition: format!("{} ({mode})", clean(&definition.name)),
            phase: summary.phase,
            achieved: stop.is_some_and(|stop| stop.code == StopCode::ObjectiveAchieved),
            why: why(summary),
            asks: asks.collect(),
            in_force: in_force.map(|it| (clean(&effect(it)), it.expires_at)).collect(),
            started: summary.started,
            deadline: summary.deadline,
            turn: turn_in_words(&summary.turn),
            steps: of(summary.steps, summary.turn.steps, definition.limits.steps),
            tokens: tokens(summary, &definition.limits),
            calls: summary.invocations.to_string(),
            in_flight: summary.in_flight.iter().map(|(_, tool)| clean(tool)).collect(),
            parts: parts(summary),
        }
    }
}

/// Why a session does not run.
fn why(summary: &Summary) -> Option<String> {
    if summary.is_paused() {
        let by = summary.paused_by.as_deref().unwrap_or("a person");
        let why = summary.paused_why.as_deref().unwrap_or("no reason given");
        return Some(format!("by {}: {}", clean(by), clean(why)));
    }
    summary.stop.as_ref().map(|stop| clean(&stop.to_string()))
}

fn tokens(summary: &Summary, limits: &Limits) -> Option<String> {
    let usage = &summary.usage;
    let used = of(usage.total(), summary.turn.usage.total(), limits.total_tokens);
    let shown = usage.total() > 0 || limits.total_tokens.is_some();
    shown.then(|| format!("{used} ({} in, {} out)", usage.input, usage.output))
}

impl Happened {
    pub(super) fn new(record: &EventRecord) -> Self {
        let is_proposal = matches!(record.event.kind, EventKind::ToolProposed(_));
        Self {
            seq: record.seq,
            at: record.event.at.unwrap_or(record.facts.now.wall),
            event: (!is_proposal).then(|| record.event.kind.name()),
            what: clean(&what(&record.event.kind)),
            decision: record.verdict.decision,
            decided: decided(&record.verdict),
            remarks: clean(&remarks(&record.verdict, |mark| mark).join("  ")),
        }
    }
}
