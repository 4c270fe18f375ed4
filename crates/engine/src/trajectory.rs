//! What a session did, step by step: the states it went through and the action that led from
//! one to the next, as a frozen replay tells it.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::checks::What;
use crate::definition::Definition;
use crate::event::{Control, EventKind, OutputProposed, PromptSource, PromptSubmitted};
use crate::guards::shortened;
use crate::proposal::Proposal;
use crate::session::{Record, Session, Understood};
use crate::state::Phase;
use crate::tool::Kind;
use crate::verdict::Decision;

/// What a session is about at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doing {
    /// It looks, thinks and plans; nothing is changed.
    Planning,
    /// It changes something, or runs what nobody can see into.
    Executing,
    /// It tests or builds.
    Testing,
    /// It says that it is done, or hands something over.
    Verifying,
    /// A person or a guard holds it.
    Paused,
    /// It is over, or its agent has left.
    Stopped,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// What the session was about.
    pub state: Doing,
    /// The tool and what it does, or what else happened.
    pub action: String,
    /// What it was about after that.
    pub next_state: Doing,
    /// The record that tells of it.
    pub record: u64,
    /// What was decided, where the action could not simply go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
}

/// The steps of a session: give it every record before that is applied.
#[derive(Debug, Default)]
pub struct Trajectory {
    steps: Vec<Step>,
}

impl Trajectory {
    /// Takes one record in; `session` is as the record found it.
    pub fn record(&mut self, session: &Session, understood: &Understood<'_>, record: &Record<'_>) {
        let before = self.steps.last().map_or(Doing::Planning, |step| step.state);
        let proposal = understood.proposal();
        let (doing, action) = match &record.event.kind {
            EventKind::PromptSubmitted(PromptSubmitted { source, .. }) => {
                let by = if *source == PromptSource::Human { "human" } else { "harness" };
                (Doing::Planning, format!("prompt of the {by}"))
            }
            EventKind::PlanProposed(_) => (Doing::Planning, "plan".to_string()),
            EventKind::ToolProposed(_) => {
                let Some(proposal) = proposal else { return };
                let action = format!("{} {}", proposal.tool.name, proposal.does());
                (of_call(session.definition(), proposal), action)
            }
            EventKind::OutputProposed(OutputProposed { name, .. }) => {
                (Doing::Verifying, format!("output {}", name.as_deref().unwrap_or_default()))
            }
            EventKind::StopProposed(_) => (Doing::Verifying, "stop".to_string()),
            EventKind::Control(Control { action, by, .. }) => {
                let by = by.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
                (before, format!("{}{by}", action.word()))
            }
            EventKind::SessionEnded(_) => (before, "session ended".to_string()),
            _ => return,
        };
        let state = standing(session).unwrap_or(doing);
        if let Some(last) = self.steps.last_mut() {
            last.next_state = state;
        }
        let verdict = record.verdict;
        self.steps.push(Step {
            state,
            action: shortened(&action),
            next_state: state,
            record: record.seq,
            decision: (!verdict.lets_run()).then_some(verdict.decision),
        });
    }

    /// The steps; `session` is as the last record left it.
    pub fn finish(mut self, session: &Session) -> Vec<Step> {
        if let (Some(last), Some(standing)) = (self.steps.last_mut(), standing(session)) {
            last.next_state = standing;
        }
        self.steps
    }
}

/// Whether a session is held or over; nothing while it is at work.
fn standing(session: &Session) -> Option<Doing> {
    let state = session.state();
    match state.phase {
        Phase::Stopped(_) | Phase::Ended(_) => Some(Doing::Stopped),
        Phase::New | Phase::Running => state.paused.is_some().then_some(Doing::Paused),
    }
}

/// What a call is about.
fn of_call(definition: &Definition, proposal: &Proposal<'_>) -> Doing {
    let mut checks = proposal.checks(definition).iter().map(|found| found.check.what);
    if checks.any(|what| matches!(what, What::Test | What::Build)) {
        return Doing::Testing;
    }
    match proposal.tool.kind {
        Kind::Read | Kind::Search | Kind::Fetch | Kind::Think => Doing::Planning,
        _ => Doing::Executing,
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

    /// The steps of a session in which these events happen.
    fn steps(lines: &[&str]) -> Vec<String> {
        let mut session = Session::new(Arc::default(), Arc::default());
        let mut trajectory = Trajectory::default();
        let id = SessionId::parse("s").unwrap();
        for (line, seq) in lines.iter().zip(1_u64..) {
            let event = parse_line(line.as_bytes(), Some(&id)).unwrap();
            let mut facts = Facts::at(Now::wall(Timestamp::from_ms(0)));
            facts.observed = crate::observe(&event);
            let verdict = session.decide(&event, &facts);
            let record = Record { seq, event: &event, facts: &facts, verdict: &verdict };
            session.ground().understand(&event, |understood| {
                trajectory.record(&session, understood, &record);
            });
            session.apply(&record);
        }
        let word =
            |doing: Doing| serde_json::to_value(doing).unwrap().as_str().unwrap().to_string();
        let told = |step: Step| {
            let held = step.decision.map_or_else(String::new, |it| format!(" ({})", it.word()));
            let (state, next) = (word(step.state), word(step.next_state));
            format!("{}: {state} - {}{held} -> {next}", step.record, step.action)
        };
        trajectory.finish(&session).into_iter().map(told).collect()
    }

    #[test]
    fn a_step_leads_to_the_state_of_the_next() {
        let told = steps(&[
            r#"{"event":"session_started"}"#,
            r#"{"event":"prompt_submitted","source":"human","text":"mend it"}"#,
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
            told,
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
    fn what_is_held_says_so_and_who_lets_it_go_on() {
        let told = steps(&[
            r#"{"event":"tool_proposed","call":"a","tool":"Bash","args":{"command":"make x"}}"#,
            r#"{"event":"control","action":"pause","by":"dana"}"#,
            r#"{"event":"tool_proposed","call":"b","tool":"Bash","args":{"command":"make y"}}"#,
            r#"{"event":"control","action":"resume","by":"dana"}"#,
            r#"{"event":"tool_proposed","call":"c","tool":"Bash","args":{"command":"make z"}}"#,
            r#"{"event":"control","action":"stop"}"#,
        ]);
        assert_eq!(
            told,
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
    fn nothing_that_happened_is_no_step() {
        assert!(steps(&[]).is_empty());
        assert!(steps(&[r#"{"event":"session_started"}"#]).is_empty());
    }
}
