//! The data of a session that a frame needs. Drawing a frame reads nothing else.

use jackline_definition::words;
use jackline_engine::definition::SessionLimits;
use jackline_engine::{Decision, Definition, EventKind, SessionId, SessionSummary, Timestamp};
use jackline_journal::{EventRecord, OpeningRecord};
use jackline_runtime::open_questions::{approval_code, is_answerable};

use super::super::log::{decision_text, describe_event, verdict_remarks};
use super::super::status::{describe_constraint, describe_turn, used_of_limit};
use super::status_rows::{StatusRow, status_rows};
use super::text::clean;
use crate::status_label::StatusLabel;

/// A session in the list.
#[derive(Debug, Clone)]
pub(super) struct WatchedSession {
    pub(super) name: String,
    pub(super) modified: Option<Timestamp>,
    /// Its current state, or the error if it can't be read.
    pub(super) status: Result<SessionStatus, String>,
}

impl WatchedSession {
    /// The calls that wait for a person's approval.
    pub(super) fn questions(&self) -> &[PendingQuestion] {
        self.status.as_ref().map_or(&[], |standing| &standing.questions)
    }
}

/// The current state of a session.
#[derive(Debug, Clone)]
pub(super) struct SessionStatus {
    pub(super) session: SessionId,
    pub(super) workspace: Option<String>,
    /// The definition and its mode.
    pub(super) definition: String,
    pub(super) status: StatusLabel,
    /// Who paused it, and why.
    pub(super) paused_why: Option<String>,
    pub(super) questions: Vec<PendingQuestion>,
    /// The active constraints, with the time of their end.
    pub(super) in_force: Vec<(String, Option<Timestamp>)>,
    pub(super) started: Timestamp,
    pub(super) deadline: Option<Timestamp>,
    pub(super) turn: String,
    pub(super) steps: String,
    pub(super) tokens: Option<String>,
    pub(super) calls: String,
    /// The tools of calls that have not returned.
    pub(super) in_flight: Vec<String>,
    /// The rows of single guards.
    pub(super) rows: Vec<StatusRow>,
}

/// A call that waits for a person's approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PendingQuestion {
    /// The record of the question.
    pub(super) seq: u64,
    pub(super) code: String,
    pub(super) asked_at: Timestamp,
    /// The call on one line.
    pub(super) call: String,
    pub(super) why: String,
}

/// A recent record.
#[derive(Debug, Clone)]
pub(super) struct RecentRecord {
    pub(super) seq: u64,
    pub(super) at: Timestamp,
    /// The kind of event; `None` for a proposed call, whose description is enough.
    pub(super) event: Option<&'static str>,
    pub(super) description: String,
    pub(super) decision: Decision,
    pub(super) decision_text: String,
    pub(super) remarks: String,
}

impl SessionStatus {
    pub(super) fn new(
        opened: &OpeningRecord,
        definition: &Definition,
        summary: &SessionSummary,
    ) -> Self {
        let mode = words::mode(definition.mode);
        let waiting = summary.waiting.iter().rev().filter(|_| is_answerable(summary));
        let asks = waiting.map(|waiting| {
            let does = clean(&waiting.does);
            let does = if does.is_empty() { String::new() } else { format!(" `{does}`") };
            let was_refused = waiting.why.is_empty();
            let why = if was_refused { "a person has refused it before" } else { &waiting.why };
            PendingQuestion {
                seq: waiting.seq,
                code: approval_code(&opened.session, waiting.seq),
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
            status: StatusLabel::of_session(summary),
            paused_why: paused_why(summary),
            questions: asks.collect(),
            in_force: in_force.map(|it| (clean(&describe_constraint(it)), it.expires_at)).collect(),
            started: summary.started,
            deadline: summary.deadline,
            turn: describe_turn(&summary.turn),
            steps: used_of_limit(summary.steps, summary.turn.steps, definition.limits.steps),
            tokens: tokens(summary, &definition.limits),
            calls: summary.invocations.to_string(),
            in_flight: summary.in_flight.iter().map(|(_, tool)| clean(tool)).collect(),
            rows: status_rows(summary),
        }
    }
}

/// Who paused a session, and why.
fn paused_why(summary: &SessionSummary) -> Option<String> {
    if !summary.is_paused() {
        return None;
    }
    let by = summary.paused_by.as_deref().unwrap_or("a person");
    let why = summary.paused_why.as_deref().unwrap_or("no reason given");
    Some(format!("by {}: {}", clean(by), clean(why)))
}

fn tokens(summary: &SessionSummary, limits: &SessionLimits) -> Option<String> {
    let usage = &summary.usage;
    let used = used_of_limit(usage.total(), summary.turn.usage.total(), limits.total_tokens);
    let shown = usage.total() > 0 || limits.total_tokens.is_some();
    shown.then(|| format!("{used} ({} in, {} out)", usage.input, usage.output))
}

impl RecentRecord {
    pub(super) fn new(record: &EventRecord) -> Self {
        let is_proposal = matches!(record.event.kind, EventKind::ToolProposed(_));
        Self {
            seq: record.seq,
            at: record.event.at.unwrap_or(record.facts.now.wall),
            event: (!is_proposal).then(|| record.event.kind.name()),
            description: clean(&describe_event(&record.event.kind)),
            decision: record.verdict.decision,
            decision_text: decision_text(&record.verdict),
            remarks: clean(&verdict_remarks(&record.verdict, |mark| mark).join("  ")),
        }
    }
}
