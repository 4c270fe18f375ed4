//! Writes the stages of attempts down, each before the next begins.

use jackline_attempt::{Ended, Stage, Stages};
use jackline_engine::event::AttemptResult;

use crate::call::Calling;
use crate::told::What;

pub(super) struct Hearing<'a, 's, 'r> {
    pub(super) calling: &'a Calling<'s, 'r>,
}

impl Stages for Hearing<'_, '_, '_> {
    fn reached(&mut self, attempt: u32, stage: Stage) -> Result<(), String> {
        self.calling.attempt.set(attempt);
        let written = self.write(stage);
        if let Err(why) = &written {
            let text = format!("the attempt does not go on: {why}");
            self.calling.tell(What::Aside { text });
        }
        written
    }

    fn ended(&mut self) -> Option<Ended> {
        let shared = self.calling.shared;
        let is_held = || shared.front.borrow().held().is_some();
        let is_over = shared.is_cancelled() || shared.stuck.borrow().is_some() || is_held();
        is_over.then_some(Ended::Cancelled)
    }
}

impl Hearing<'_, '_, '_> {
    fn write(&self, stage: Stage) -> Result<(), String> {
        let Self { calling } = self;
        let shared = calling.shared;
        let mut front = shared.front.borrow_mut();
        if stage == Stage::Started {
            let number = shared.next_attempt();
            front.attempt_started(number)?;
            drop(front);
            calling.open.set(Some(number));
            calling.tell(What::Started { number });
            return Ok(());
        }
        let Some(number) = calling.open.get() else { return Ok(()) };
        front.stage(number, stage)?;
        let result = match stage {
            Stage::Committed => Some(AttemptResult::Commit),
            Stage::RolledBack | Stage::ExecutionRetry | Stage::OutcomeRetry => {
                Some(AttemptResult::Rollback)
            }
            Stage::Started | Stage::Generated | Stage::Validated | Stage::Executed => None,
        };
        if let Some(result) = result {
            calling.open.set(None);
            front.attempt_ended(number, result)?;
        }
        drop(front);
        calling.tell_asides();
        Ok(())
    }
}
