//! Records each stage of an attempt in the session before the next stage begins.

use jackline_attempt::{Interruption, Stage, StageObserver};
use jackline_engine::event::AttemptResult;

use crate::attempt_event::AttemptEventKind;
use crate::running_call::RunningCall;

pub(super) struct StageRecorder<'a, 's, 'r> {
    pub(super) calling: &'a RunningCall<'s, 'r>,
}

impl StageObserver for StageRecorder<'_, '_, '_> {
    fn stage_reached(&mut self, attempt: u32, stage: Stage) -> Result<(), String> {
        self.calling.attempt.set(attempt);
        let written = self.record(stage);
        if let Err(why) = &written {
            let text = format!("the attempt can't continue: {why}");
            self.calling.emit(AttemptEventKind::Notification { text });
        }
        written
    }

    fn interruption(&mut self) -> Option<Interruption> {
        let shared = self.calling.shared;
        let is_held = || shared.front.borrow().hold_reason().is_some();
        let is_over =
            shared.is_cancelled() || shared.rollback_failure.borrow().is_some() || is_held();
        is_over.then_some(Interruption::Cancelled)
    }
}

impl StageRecorder<'_, '_, '_> {
    fn record(&self, stage: Stage) -> Result<(), String> {
        let Self { calling } = self;
        let shared = calling.shared;
        let mut front = shared.front.borrow_mut();
        if stage == Stage::Started {
            let number = shared.next_attempt();
            front.attempt_started(number)?;
            drop(front);
            calling.open_attempt.set(Some(number));
            calling.emit(AttemptEventKind::Started { number });
            return Ok(());
        }
        let Some(number) = calling.open_attempt.get() else { return Ok(()) };
        front.record_stage(number, stage)?;
        let result = match stage {
            Stage::Committed => Some(AttemptResult::Commit),
            Stage::RolledBack | Stage::ExecutionRetry | Stage::OutcomeRetry => {
                let is_partial = calling.rolled_back_partly.take();
                Some(if is_partial {
                    AttemptResult::PartialRollback
                } else {
                    AttemptResult::Rollback
                })
            }
            Stage::Started | Stage::Generated | Stage::Validated | Stage::Executed => None,
        };
        if let Some(result) = result {
            calling.open_attempt.set(None);
            front.attempt_ended(number, result)?;
        }
        drop(front);
        calling.emit_notes();
        Ok(())
    }
}
