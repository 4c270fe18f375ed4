//! A session that is paused: an advisor, the next engine, and only then a person.

use std::sync::Arc;

use jackline_engine::definition::ModelChoice;
use jackline_engine::event::AdvisorAnswered;
use jackline_engine::summary::PauseCause;
use jackline_engine::{ActorId, Payload, Summary};
use jackline_model::{Message, Request};

use super::{Driver, Goes, patience};
use crate::advisor;
use crate::asking::{Asked, Question, ask};
use crate::engines::{EngineSpec, Reason};
use crate::own::cost_of;
use crate::run::RunError;
use crate::run::reach::{reach, worded};
use crate::told::{Told, Waits};
use crate::waiting::{Waited, time_left, wait};

/// How much an advisor may write, and how often one is asked that does not answer.
const ADVICE_TOKENS_MAX: u32 = 2000;

const ADVICE_TRIES: u32 = 2;

/// Who an advisor is in records.
const ADVISOR: &str = "advisor";

/// Why an agent program is no advisor.
const NO_ADVISOR: &str = "an agent program works, and gives no advice";

impl Driver<'_, '_> {
    /// A session that is paused: an advisor, the next engine, and only then a person.
    pub(super) fn unblock(&mut self, summary: &Summary) -> Result<Goes, RunError> {
        let is_stuck = summary.paused_cause.is_some_and(PauseCause::is_stuck);
        self.exhausted = 0;
        if is_stuck && (self.advise(summary)? || self.change(Reason::Blocked)?) {
            return Ok(Goes::On);
        }
        let why = summary.paused_why.clone().unwrap_or_else(|| "no reason given".to_owned());
        let how = how_to_go_on(summary);
        if summary.paused_cause == Some(PauseCause::Checkpoint) {
            // That no iteration is left is for the person, and holds no longer once they go on.
            self.front.take_texts();
        }
        if !self.opening.waits {
            self.leave(&format!("it waits for a person: {why}; first {how}"));
            return Ok(Goes::Over);
        }
        self.front.say(&Told::Waiting { waits: Waits::Person { why, how } });
        match wait(&mut self.front, &self.opening.workspace, summary) {
            Waited::Changed if self.front.lookout.is_gone() => Ok(Goes::On),
            Waited::Changed => {
                self.knock();
                let goes =
                    self.front.summary().is_some_and(|it| it.stop.is_none() && !it.is_paused());
                if goes {
                    self.front.say(&Told::GoesOn {});
                    let more = self.front.take_texts().map(|more| format!("\n\n{more}"));
                    let more = more.unwrap_or_default();
                    self.tell(format!("A person has looked at it, and lets you go on.{more}"))?;
                }
                Ok(Goes::On)
            }
            Waited::TimeIsUp => Ok(self.time_is_up()),
            Waited::Cancelled => {
                self.leave("it was ended by a signal while it waited for a person");
                Ok(Goes::Over)
            }
        }
    }

    /// Asks an advisor, where there is one; whether the agent goes on with what it says.
    pub(super) fn advise(&mut self, summary: &Summary) -> Result<bool, RunError> {
        let Some(settings) = self.front.definition().and_then(|it| it.advisor.clone()) else {
            return Ok(false);
        };
        if self.advised >= settings.budget || self.is_late() {
            return Ok(false);
        }
        let deadlock = summary.paused_why.clone().unwrap_or_default();
        let lines = usize::try_from(settings.transcript_lines).unwrap_or(usize::MAX);
        let transcript = self.transcript(lines);
        let (system, text) = advisor::question(&deadlock, &self.task.prompt, &transcript);
        let request = Request {
            system,
            messages: vec![Message::User(text)],
            output_tokens_max: ADVICE_TOKENS_MAX,
            ..Request::default()
        };
        for choice in &settings.models {
            self.advised += 1;
            let Some((instruction, error)) = self.ask_advisor(choice, &request) else {
                return Ok(true);
            };
            let model = choice.label();
            let told = Told::Advised { model: model.clone(), instruction: instruction.clone() };
            self.front.say(&told);
            let answer = self.front.report(AdvisorAnswered {
                model: Some(model),
                instruction: instruction.map(Payload::Inline),
                error: error.map(Payload::Inline),
            });
            let lifted = self.front.summary().is_some_and(|it| !it.is_paused());
            if lifted {
                self.tell(answer.reason())?;
                return Ok(true);
            }
            if self.advised >= settings.budget {
                break;
            }
        }
        Ok(false)
    }

    /// What an advisor says, or why it says nothing; none where nobody waits for it any more.
    /// One that can't be asked at all is one that does not answer.
    pub(super) fn ask_advisor(
        &mut self,
        choice: &ModelChoice,
        request: &Request,
    ) -> Option<(Option<String>, Option<String>)> {
        let reached = EngineSpec::of(choice, &self.task.scripts).and_then(|engine| {
            let engine = engine.beneath(&self.opening.kept.started_in);
            let model = reach(&engine, 0)?;
            Ok((engine, model))
        });
        let (engine, model) = match reached {
            Ok((engine, Some(model))) => (engine, model),
            Ok((_, None)) => return Some((None, Some(NO_ADVISOR.to_owned()))),
            Err(error) => return Some((None, Some(error.to_string()))),
        };
        let (request, schemas) = (request.clone(), Arc::default());
        let (patience, time_left) = (patience(ADVICE_TRIES, &[]), time_left(&mut self.front));
        let question = Question { request, schemas, patience, time_left };
        let lookout = self.front.lookout.clone();
        let (_, asked) = ask(model, question, &lookout, &mut |_, _| {});
        match asked {
            Asked::Over => None,
            Asked::Reply(reply) => {
                if let Ok(advisor) = ActorId::parse(ADVISOR) {
                    self.front.report_as(advisor, cost_of(&engine, &reply, None, engine.window));
                }
                let text = reply.said.text.trim();
                let text: String = text.chars().take(advisor::INSTRUCTION_CHARS_MAX).collect();
                Some((Some(text).filter(|text| !text.is_empty()), None))
            }
            Asked::Failed(error) => Some((None, Some(worded(&engine, &error)))),
            Asked::Cut(cut) => Some((None, Some(cut.refusal.to_string()))),
        }
    }
}

/// What a person can do about a session that waits.
fn how_to_go_on(summary: &Summary) -> String {
    let verb = match summary.paused_cause {
        Some(cause) if cause.is_stuck() => "jackline clear",
        Some(PauseCause::Checkpoint) => "jackline ack",
        _ if summary.paused_by_file => return "remove .jackline/PAUSE".to_owned(),
        _ => "jackline resume",
    };
    match summary.reports.first() {
        Some(report) => format!("read {}, then `{verb}`, or `jackline stop`", report.path()),
        None => format!("`{verb}`, or `jackline stop`"),
    }
}
