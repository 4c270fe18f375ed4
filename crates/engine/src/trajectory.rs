//! The steps of a session for a frozen replay: the states of the session, and the action that led
//! from one state to the next.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::checks::CheckKind;
use crate::definition::Definition;
use crate::event::{Control, EventKind, OutputProposed, PromptSource, PromptSubmitted};
use crate::guards::shorten_for_message;
use crate::proposal::Proposal;
use crate::session::{InterpretedEvent, Record, Session};
use crate::state::Phase;
use crate::tool::ToolKind;
use crate::verdict::Decision;

/// The activity of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionActivity {
    /// It reads, thinks and plans. Nothing is changed.
    Planning,
    /// It changes something, or runs something opaque: Jackline cannot tell what it runs.
    Executing,
    /// It tests or builds.
    Testing,
    /// It reports that it is done, or hands over output.
    Verifying,
    /// A person or a guard has paused it.
    Paused,
    /// It has ended, or its agent has left.
    Stopped,
}

/// One step of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrajectoryStep {
    /// The activity.
    pub state: SessionActivity,
    /// The tool and what it does, or another action.
    pub action: String,
    /// The activity after that action.
    pub next_state: SessionActivity,
    /// The number of the record.
    pub record: u64,
    /// The decision, if it did not let the action run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
}

/// Collects the steps of a session. Call [`Self::record`] for every record before it is applied.
#[derive(Debug, Default)]
pub struct TrajectoryRecorder {
    steps: Vec<TrajectoryStep>,
}

impl TrajectoryRecorder {
    /// Adds one record. `session` has the state before the record.
    pub fn record(
        &mut self,
        session: &Session,
        understood: &InterpretedEvent<'_>,
        record: &Record<'_>,
    ) {
        let before = self.steps.last().map_or(SessionActivity::Planning, |step| step.state);
        let proposal = understood.proposal();
        let (doing, action) = match &record.event.kind {
            EventKind::PromptSubmitted(PromptSubmitted { source, .. }) => {
                let by = if *source == PromptSource::Human { "human" } else { "harness" };
                (SessionActivity::Planning, format!("prompt of the {by}"))
            }
            EventKind::PlanProposed(_) => (SessionActivity::Planning, "plan".to_string()),
            EventKind::ToolProposed(_) => {
                let Some(proposal) = proposal else { return };
                let action = format!("{} {}", proposal.tool.name, proposal.does());
                (activity_of_call(session.definition(), proposal), action)
            }
            EventKind::OutputProposed(OutputProposed { name, .. }) => (
                SessionActivity::Verifying,
                format!("output {}", name.as_deref().unwrap_or_default()),
            ),
            EventKind::StopProposed(_) => (SessionActivity::Verifying, "stop".to_string()),
            EventKind::Control(Control { action, by, .. }) => {
                let by = by.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
                (before, format!("{}{by}", action.as_str()))
            }
            EventKind::SessionEnded(_) => (before, "session ended".to_string()),
            _ => return,
        };
        let state = paused_or_stopped(session).unwrap_or(doing);
        if let Some(last) = self.steps.last_mut() {
            last.next_state = state;
        }
        let verdict = record.verdict;
        self.steps.push(TrajectoryStep {
            state,
            action: shorten_for_message(&action),
            next_state: state,
            record: record.seq,
            decision: (!verdict.allows_run()).then_some(verdict.decision),
        });
    }

    /// The steps. `session` has the state after the last record.
    pub fn finish(mut self, session: &Session) -> Vec<TrajectoryStep> {
        if let (Some(last), Some(current)) = (self.steps.last_mut(), paused_or_stopped(session)) {
            last.next_state = current;
        }
        self.steps
    }
}

/// The activity of a session that is paused or has ended; `None` while it runs.
fn paused_or_stopped(session: &Session) -> Option<SessionActivity> {
    let state = session.state();
    match state.phase {
        Phase::Stopped(_) | Phase::Ended(_) => Some(SessionActivity::Stopped),
        Phase::New | Phase::Running => state.paused.is_some().then_some(SessionActivity::Paused),
    }
}

/// The activity of a call.
fn activity_of_call(definition: &Definition, proposal: &Proposal<'_>) -> SessionActivity {
    let mut checks = proposal.checks(definition).iter().map(|found| found.check.kind);
    if checks.any(|what| matches!(what, CheckKind::Test | CheckKind::Build)) {
        return SessionActivity::Testing;
    }
    match proposal.tool.kind {
        ToolKind::Read | ToolKind::Search | ToolKind::Fetch | ToolKind::Think => {
            SessionActivity::Planning
        }
        _ => SessionActivity::Executing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Facts, Now};
    use crate::id::SessionId;
    use crate::time::Timestamp;
    use crate::wire::parse_line;
    use alloc::sync::Arc;

    /// The steps of a session with these events.
    fn steps(lines: &[&str]) -> Vec<String> {
        let mut session = Session::new(Arc::default(), Arc::default());
        let mut trajectory = TrajectoryRecorder::default();
        let id = SessionId::parse("s").unwrap();
        for (line, seq) in lines.iter().zip(1_u64..) {
            let event = parse_line(line.as_bytes(), Some(&id)).unwrap();
            let mut facts = Facts::at(Now::wall(Timestamp::from_ms(0)));
            facts.observed = crate::observe(&event);
            let verdict = session.decide(&event, &facts);
            let record = Record { seq, event: &event, facts: &facts, verdict: &verdict };
            session.event_interpreter().with_interpreted(&event, |understood| {
                trajectory.record(&session, understood, &record);
            });
            session.apply(&record);
        }
        let word = |doing: SessionActivity| {
            serde_json::to_value(doing).unwrap().as_str().unwrap().to_string()
        };
        let shown = |step: TrajectoryStep| {
            let decision =
                step.decision.map_or_else(String::new, |it| format!(" ({})", it.as_str()));
            let (state, next) = (word(step.state), word(step.next_state));
            format!("{}: {state} - {}{decision} -> {next}", step.record, step.action)
        };
        trajectory.finish(&session).into_iter().map(shown).collect()
    }

    #[test]
    fn a_step_leads_to_the_state_of_the_next() {
        let shown = steps(&[
            r#"{"event":"session_started"}"#,
            r#"{"event":"prompt_submitted","source":"human","text":"fix it"}"#,
            r#"{"event":"tool_proposed","call":"a","tool":"Read","args":{"file_path":"a.rs"}}"#,
            r#"{"event":"tool_finished","call":"a","status":"ok"}"#,
            r#"{"event":"tool_proposed","call":"b","tool":"Bash","args":{"command":"make b"}}"#,
            r#"{"event":"tool_finished","call":"b","status":"ok"}"#,
            r#"{"event":"tool_proposed","call":"c","tool":"Bash","args":{"command":"cargo test"}}"#,
            r#"{"event":"tool_finished","call":"c","status":"ok","exit_code":0}"#,
            r#"{"event":"stop_proposed"}"#,
            r#"{"event":"session_ended"}"#,
        ]);
        assert_eq!(
            shown,
            [
                "2: planning - prompt of the human -> planning",
                "3: planning - Read a.rs -> executing",
                "5: executing - Bash make b -> testing",
                "7: testing - Bash cargo test -> verifying",
                "9: verifying - stop -> verifying",
                "10: verifying - session ended -> stopped",
            ]
        );
    }

    #[test]
    fn paused_steps_and_the_resuming_person_are_shown() {
        let shown = steps(&[
            r#"{"event":"tool_proposed","call":"a","tool":"Bash","args":{"command":"make x"}}"#,
            r#"{"event":"control","action":"pause","by":"dana"}"#,
            r#"{"event":"tool_proposed","call":"b","tool":"Bash","args":{"command":"make y"}}"#,
            r#"{"event":"control","action":"resume","by":"dana"}"#,
            r#"{"event":"tool_proposed","call":"c","tool":"Bash","args":{"command":"make z"}}"#,
            r#"{"event":"control","action":"stop"}"#,
        ]);
        assert_eq!(
            shown,
            [
                "1: executing - Bash make x -> executing",
                "2: executing - pause by dana -> paused",
                "3: paused - Bash make y (pause) -> paused",
                "4: paused - resume by dana -> executing",
                "5: executing - Bash make z -> executing",
                "6: executing - stop -> stopped",
            ]
        );
    }

    #[test]
    fn a_session_without_actions_has_no_steps() {
        assert!(steps(&[]).is_empty());
        assert!(steps(&[r#"{"event":"session_started"}"#]).is_empty());
    }
}
