//! Restarts a conversation that is full, with the state of the work.

use jackline_engine::event::CompactionFinished;
use jackline_engine::summary::Invocations;

use super::{DriverFlow, RunDriver};
use crate::engines::EngineChangeReason;
use crate::handover;
use crate::run::RunError;
use crate::run_event::RunEvent;

/// The briefing file that the runtime writes for an agent that restarts.
const BRIEFING_FILE: &str = ".jackline/MISSION_BRIEFING.md";

impl RunDriver<'_, '_> {
    /// Restarts the conversation with the state of the work.
    pub(super) fn restart_conversation(&mut self) -> Result<(), RunError> {
        let summary = self.front.summary();
        let main = summary.as_ref().and_then(|summary| summary.context.first());
        let (used, pct) = (main.and_then(|it| it.used), main.and_then(|it| it.pct));
        self.start_handover(None)?;
        let freed =
            used.map(|used| used.saturating_sub(self.model_loop.conversation.estimated_tokens()));
        let answer =
            self.front.report(CompactionFinished { freed, ..CompactionFinished::default() });
        self.front.emit(&RunEvent::Restarted { pct });
        match answer.verdict.context {
            Some(text) => self.send_text(text),
            None => Ok(()),
        }
    }

    /// Restarts a full conversation, or changes the engine, or ends the session.
    pub(super) fn restart_or_change_engine(&mut self) -> Result<DriverFlow, RunError> {
        if self.can_restart() {
            self.restart_conversation()?;
            return Ok(DriverFlow::Continue);
        }
        if self.change_engine(EngineChangeReason::Context)? {
            self.full_conversations.0 = 0;
            return Ok(DriverFlow::Continue);
        }
        let label = self.chain.label();
        let text =
            format!("`{label}` fills one conversation after the other and makes no progress");
        self.front.emit(&RunEvent::Notification { text });
        self.end_without_engine();
        Ok(DriverFlow::End)
    }

    /// Whether a full conversation may restart once more. The limit stops a model that only writes
    /// text.
    pub(super) fn can_restart(&mut self) -> bool {
        let done = self.work_done();
        let again = self.full_conversations.1 == done;
        self.full_conversations = (if again { self.full_conversations.0 + 1 } else { 1 }, done);
        let context = self.front.definition().and_then(|definition| definition.context);
        self.full_conversations.0 <= context.unwrap_or_default().restarts_max
    }

    /// How much work is done: calls that ran, or programs that were committed.
    pub(super) fn work_done(&mut self) -> u64 {
        if let Some(programs) = &self.programs {
            return programs.committed();
        }
        self.front.summary().map_or(0, |summary| {
            let Invocations { proposed, denied, not_approved, invalid_arguments, .. } =
                summary.invocations;
            let not_run = denied.saturating_add(not_approved).saturating_add(invalid_arguments);
            proposed.saturating_sub(not_run)
        })
    }

    /// Starts a conversation for an engine that continues the work of another one.
    pub(super) fn start_handover(&mut self, plan: Option<String>) -> Result<(), RunError> {
        let mut text = self.handover_prompt();
        for more in self.front.take_texts().into_iter().chain(plan) {
            text.push('\n');
            text.push_str(&more);
        }
        if let Some(worker) = self.worker_label() {
            self.worker.start_over(&worker, text.clone())?;
        }
        self.model_loop.conversation.restart(text)?;
        Ok(())
    }

    /// The prompt of the task, with the state of the work.
    pub(super) fn handover_prompt(&mut self) -> String {
        let Some(summary) = self.front.summary() else { return self.task.prompt.clone() };
        let briefing = std::fs::read_to_string(self.opening.workspace.join(BRIEFING_FILE)).ok();
        handover::handover_prompt(&self.task.prompt, &summary, briefing.as_deref())
    }
}
