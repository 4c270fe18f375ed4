//! Starts agent programs: builds their prompts, and restarts them after passing failures.

use jackline_model::ModelErrorKind;

use super::{RunDriver, patience};
use crate::engines::EngineSpec;
use crate::model_loop::IterationEnd;
use crate::run::RunError;
use crate::run_event::{RunEvent, WaitReason};
use crate::run_journal::RunJournal;
use crate::transcript::transcript;
use crate::waiting::{WaitEnd, wait_for_duration};
use crate::worker;

impl RunDriver<'_, '_> {
    /// The label of the current engine if it is an agent program; `None` if it is a model.
    pub(super) fn worker_label(&self) -> Option<String> {
        let engine = self.chain.current().filter(|engine| engine.is_worker())?;
        Some(engine.label.clone())
    }

    /// Gives the current engine a text of the supervisor.
    pub(super) fn send_text(&mut self, text: String) -> Result<(), RunError> {
        if self.worker_label().is_some() {
            self.worker.add_text(text.clone())?;
        }
        Ok(self.model_loop.add_user_text(text)?)
    }

    /// Runs an agent program. If its provider does not answer, starts it again after a pause,
    /// unless there is a fallback for the failure.
    pub(super) fn run_agent_program(
        &mut self,
        engine: &EngineSpec,
    ) -> Result<IterationEnd, RunError> {
        let taken_over = self.chain.failures_with_fallback();
        let mut failures = 0;
        loop {
            if self.is_still_paused() {
                return Ok(IterationEnd::Interrupted);
            }
            // A program without hooks reports no events, so no guard would notice the deadline.
            if self.is_late() {
                return Ok(IterationEnd::OutOfTime);
            }
            if !self.chain.spend_question() {
                return Ok(IterationEnd::BudgetUsedUp);
            }
            let prompt = self.next_worker_prompt(engine)?;
            let (front, told) = (&mut self.front, &mut self.worker);
            let error = match worker::run_iteration(front, engine, self.opening, told, &prompt) {
                Some(IterationEnd::ModelFailed(error))
                    if error.kind.is_temporary() && !taken_over.contains(&error.kind) =>
                {
                    error
                }
                Some(ended) => return Ok(ended),
                None => continue,
            };
            failures += 1;
            let strange = matches!(error.kind, ModelErrorKind::BadAnswer | ModelErrorKind::Timeout);
            let limits = self.run_limits();
            let tries = if strange { limits.program_starts } else { limits.model_tries };
            let patience = patience(tries, taken_over);
            let pause = patience.pause(failures, error.retry_after);
            let Some(pause) = pause.filter(|_| failures < patience.tries_max) else {
                return Ok(IterationEnd::ModelFailed(error));
            };
            let ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
            let waits = WaitReason::Model { why: error.to_string(), ms };
            self.front.emit(&RunEvent::Waiting { waits });
            match wait_for_duration(&mut self.front, pause) {
                WaitEnd::OutOfTime => return Ok(IterationEnd::OutOfTime),
                WaitEnd::Cancelled => return Ok(IterationEnd::Interrupted),
                WaitEnd::Changed => {}
            }
        }
    }

    /// Whether the session is paused or ended. The guards decide that: a pause file that they let
    /// pass must not stop the program each time.
    fn is_still_paused(&mut self) -> bool {
        if !self.front.stop_signals.should_pause() {
            return false;
        }
        self.recheck_guards();
        let summary = self.front.summary();
        let goes = summary.is_some_and(|it| it.stop.is_none() && !it.is_paused());
        !goes || self.front.stop_signals.should_stop()
    }

    /// The next prompt of an agent program: the pending text, with the task if the program does not
    /// remember it.
    fn next_worker_prompt(&mut self, engine: &EngineSpec) -> Result<String, RunError> {
        if let Some(text) = self.front.take_texts() {
            self.worker.add_text(text)?;
        }
        if let Some(text) = self.worker.next_prompt(engine.keeps_conversation()) {
            return Ok(text);
        }
        let news = self.worker.pending_text();
        Ok([self.handover_prompt()].into_iter().chain(news).collect::<Vec<_>>().join("\n"))
    }

    /// The last lines of what the current engine did and wrote.
    pub(super) fn transcript(&self, lines_max: usize) -> String {
        if self.worker_label().is_none() {
            return self.model_loop.conversation.transcript(lines_max);
        }
        let session = self.front.session().clone();
        let journal = RunJournal::new(self.opening.store.clone(), session);
        transcript(&journal, self.worker.last_output(), lines_max)
    }
}
