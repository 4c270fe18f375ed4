//! What happens when a session is paused: an advisor, then a fallback engine, then a person.

use std::sync::Arc;

use jackline_engine::definition::ModelChoice;
use jackline_engine::event::AdvisorAnswered;
use jackline_engine::summary::{PauseCause, ReportFile};
use jackline_engine::{ActorId, Payload, SessionSummary};
use jackline_model::{ConversationMessage, ModelRequest};

use super::{DriverFlow, RunDriver, patience};
use crate::advisor;
use crate::engines::{EngineChangeReason, EngineSpec};
use crate::model_loop::{preview, usage_event};
use crate::model_question::{ModelQuestion, QuestionOutcome, ask_model};
use crate::run::RunError;
use crate::run::engine_connect::{connect_engine, error_text};
use crate::run_event::{RunEvent, WaitReason};
use crate::waiting::{WaitEnd, time_left, wait_for_person};

/// How many tokens an advisor may write.
const ADVICE_TOKENS_MAX: u32 = 2000;

/// The actor id of advisors in the journal.
const ADVISOR_ACTOR: &str = "advisor";

/// The error for an agent program that is configured as an advisor.
const NOT_AN_ADVISOR: &str = "an agent program can't be an advisor; name a model";

impl RunDriver<'_, '_> {
    /// Handles a pause: asks an advisor, then tries a fallback engine, then waits for a person.
    pub(super) fn handle_pause(
        &mut self,
        summary: &SessionSummary,
    ) -> Result<DriverFlow, RunError> {
        if self.has_help(summary)? {
            return Ok(DriverFlow::Continue);
        }
        let why = summary.paused_why.clone().unwrap_or_else(|| "no reason given".to_owned());
        let how = resume_instructions(summary);
        if summary.paused_cause == Some(PauseCause::Checkpoint) {
            // The checkpoint text is for the person and is out of date once they continue the
            // session.
            self.front.take_texts();
        }
        if !self.opening.waits_for_person {
            let why = preview(&why);
            self.suspend(&format!("it waits for a person: {why}; to continue: {how}"));
            return Ok(DriverFlow::End);
        }
        self.front.emit(&RunEvent::Waiting { waits: WaitReason::Person { why, how } });
        match wait_for_person(&mut self.front, &self.opening.workspace, summary) {
            WaitEnd::Changed if self.front.stop_signals.is_workspace_gone() => {
                Ok(DriverFlow::Continue)
            }
            WaitEnd::Changed => {
                self.recheck_guards();
                let goes =
                    self.front.summary().is_some_and(|it| it.stop.is_none() && !it.is_paused());
                if goes {
                    self.front.emit(&RunEvent::Resumed {});
                    let more = self.front.take_texts().map(|more| format!("\n\n{more}"));
                    let more = more.unwrap_or_default();
                    self.send_text(format!(
                        "A person has checked the work and lets you continue.{more}"
                    ))?;
                }
                Ok(DriverFlow::Continue)
            }
            WaitEnd::OutOfTime => Ok(self.end_out_of_time()),
            WaitEnd::Cancelled => {
                self.suspend("it was interrupted by a signal while it waited for a person");
                Ok(DriverFlow::End)
            }
        }
    }

    /// Has an advisor or another engine help a stuck agent. Returns whether the agent can continue.
    fn has_help(&mut self, summary: &SessionSummary) -> Result<bool, RunError> {
        let Some(cause) = summary.paused_cause else { return Ok(false) };
        if cause.takes_advice() && self.ask_advisors(summary)? {
            return Ok(true);
        }
        match EngineChangeReason::of_pause(cause) {
            Some(reason) => self.change_engine(reason),
            None => Ok(false),
        }
    }

    /// Asks the advisors. Returns whether the agent can continue with an instruction.
    pub(super) fn ask_advisors(&mut self, summary: &SessionSummary) -> Result<bool, RunError> {
        let Some(settings) = self.front.definition().and_then(|it| it.advisor.clone()) else {
            return Ok(false);
        };
        let asked = summary.advisor.map_or(0, |advisor| advisor.used);
        if asked.saturating_add(self.interrupted_questions) >= settings.budget || self.is_late() {
            return Ok(false);
        }
        let deadlock = summary.paused_why.clone().unwrap_or_default();
        let lines = usize::try_from(settings.transcript_lines).unwrap_or(usize::MAX);
        let transcript = self.transcript(lines);
        let (system, text) = advisor::advisor_prompt(&deadlock, &self.task.prompt, &transcript);
        let request = ModelRequest {
            system,
            messages: vec![ConversationMessage::User(text)],
            output_tokens_max: ADVICE_TOKENS_MAX,
            ..ModelRequest::default()
        };
        for choice in &settings.models {
            let Some((instruction, error)) = self.ask_advisor(choice, &request) else {
                return Ok(true);
            };
            let model = choice.label();
            let told = RunEvent::Advised { model: model.clone(), instruction: instruction.clone() };
            self.front.emit(&told);
            let answer = self.front.report(AdvisorAnswered {
                model: Some(model),
                instruction: instruction.map(Payload::Inline),
                error: error.map(Payload::Inline),
            });
            let lifted = self.front.summary().is_some_and(|it| !it.is_paused());
            if lifted {
                self.send_text(answer.reason())?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The instruction of an advisor, or the reason why it gave none. `None` if the run was
    /// interrupted. An advisor that can't be reached counts as one that does not answer.
    pub(super) fn ask_advisor(
        &mut self,
        choice: &ModelChoice,
        request: &ModelRequest,
    ) -> Option<(Option<String>, Option<String>)> {
        let reached = EngineSpec::from_choice(choice, &self.task.scripts).and_then(|engine| {
            let engine = engine.with_paths_in(&self.opening.record.started_in);
            let model = connect_engine(&engine, 0)?;
            Ok((engine, model))
        });
        let (engine, model) = match reached {
            Ok((engine, Some(model))) => (engine, model),
            Ok((_, None)) => return Some((None, Some(NOT_AN_ADVISOR.to_owned()))),
            Err(error) => return Some((None, Some(error.to_string()))),
        };
        let (request, schemas) = (request.clone(), Arc::default());
        let patience = patience(self.run_limits().advisor_tries, &[]);
        let time_left = time_left(&mut self.front);
        let question = ModelQuestion { request, schemas, patience, time_left };
        let lookout = self.front.stop_signals.clone();
        let (_, asked) = ask_model(model, question, &lookout, &mut |_, _| {});
        match asked {
            QuestionOutcome::Abandoned => None,
            QuestionOutcome::Reply(reply) => {
                if let Ok(advisor) = ActorId::parse(ADVISOR_ACTOR) {
                    self.front
                        .report_as(advisor, usage_event(&engine, &reply, None, engine.window));
                }
                let text = reply.message.text.trim();
                let text: String = text.chars().take(advisor::INSTRUCTION_CHARS_MAX).collect();
                Some((Some(text).filter(|text| !text.is_empty()), None))
            }
            QuestionOutcome::Failed(error) => Some((None, Some(error_text(&engine, &error)))),
            QuestionOutcome::CutShort(cut) => Some((None, Some(cut.refusal.to_string()))),
        }
    }
}

/// What a person can do to resume a paused session.
fn resume_instructions(summary: &SessionSummary) -> String {
    let verb = match summary.paused_cause {
        Some(cause) if cause.is_stuck() => "jackline clear",
        Some(PauseCause::Checkpoint) => "jackline ack",
        _ if summary.paused_by_file => return "remove .jackline/PAUSE".to_owned(),
        _ => "jackline resume",
    };
    // The briefing is for the agent.
    match summary.reports.iter().find(|report| **report != ReportFile::Briefing) {
        Some(report) => format!("read {}, then `{verb}`, or `jackline stop`", report.path()),
        None => format!("`{verb}`, or `jackline stop`"),
    }
}
