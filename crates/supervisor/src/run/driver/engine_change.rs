//! Changes to a fallback engine, or back to the first one.

use jackline_engine::Decision;
use jackline_engine::event::{ChangeReason, ModelChanged};
use jackline_host::clock::now;

use super::RunDriver;
use crate::engines::{EngineChangeReason, EngineKind};
use crate::handover;
use crate::run::RunError;
use crate::run_event::RunEvent;

/// How many refused stops in a row lead to a change of the engine.
const REFUSED_STOPS_MAX: u32 = 3;

/// How many iterations in a row without a call lead to a change of the engine.
const IDLE_ITERATIONS_MAX: u32 = 3;

impl RunDriver<'_, '_> {
    /// Changes to the next engine for a reason. Returns whether there is one and the guards allow
    /// it.
    pub(super) fn change_engine(&mut self, reason: EngineChangeReason) -> Result<bool, RunError> {
        match self.chain.next_for(reason) {
            Some(next) => self.change_engine_to(next, reason),
            None => Ok(false),
        }
    }

    /// Changes to an engine. The change is reported first, so that the guards can refuse it.
    pub(super) fn change_engine_to(
        &mut self,
        next: usize,
        reason: EngineChangeReason,
    ) -> Result<bool, RunError> {
        let (from, to) = (self.chain.label(), self.chain.label_of(next));
        let word = reason.as_str().to_owned();
        let answer = self.front.report(ModelChanged {
            from: Some(from.clone()),
            to: to.clone(),
            reason: ChangeReason::parse(&word),
        });
        if answer.verdict.is_enforced(Decision::Deny) {
            return Ok(false);
        }
        let plays = self.chain.current().is_some_and(|it| matches!(it.kind, EngineKind::Script(_)));
        if let Some(model) = self.model_loop.model.take().filter(|_| plays) {
            self.scripts.insert(from.clone(), model);
        }
        self.chain.change_to(next, now().boot_ms);
        self.front.emit(&RunEvent::EngineChanged { from: from.clone(), to, reason: word });
        self.front.keep_text(&answer);
        self.brief_new_engine(&from, reason)?;
        Ok(true)
    }

    /// Gives the new engine the texts that it needs.
    pub(super) fn brief_new_engine(
        &mut self,
        from: &str,
        reason: EngineChangeReason,
    ) -> Result<(), RunError> {
        let word = reason.as_str().to_owned();
        let was_worker = self.chain.is_worker(from);
        self.model_loop.model = None;
        (self.refused_stops, self.idle_iterations, self.exhausted_iterations) = (0, 0, 0);
        let plan = reason.wants_plan().then(|| handover::plan_request(&word));
        // The conversation of an agent program is not in ours, and an agent program can't read
        // ours.
        if was_worker || self.worker_label().is_some() {
            return self.start_handover(plan);
        }
        match plan {
            Some(plan) => Ok(self.model_loop.add_user_text(plan)?),
            None => Ok(()),
        }
    }

    /// Changes back to the first engine when its cool-down time is over.
    pub(super) fn return_to_first_engine(&mut self) -> Result<(), RunError> {
        if let Some(first) = self.chain.first_if_due(now().boot_ms) {
            self.change_engine_to(first, EngineChangeReason::Return)?;
        }
        Ok(())
    }

    pub(super) fn change_engine_if_stuck(&mut self) -> Result<(), RunError> {
        if self.idle_iterations >= IDLE_ITERATIONS_MAX {
            self.change_engine(EngineChangeReason::StopEvents)?;
        } else if self.refused_stops > REFUSED_STOPS_MAX {
            self.change_engine(EngineChangeReason::Verification)?;
        }
        Ok(())
    }
}
