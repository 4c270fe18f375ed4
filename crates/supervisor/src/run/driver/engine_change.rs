//! Changes to a fallback engine, or back to the first one.

use jackline_engine::Decision;
use jackline_engine::event::{ChangeReason, ModelChanged};
use jackline_host::clock::now;

use super::RunDriver;
use crate::engines::{EngineChangeReason, EngineKind};
use crate::handover;
use crate::run::RunError;
use crate::run_event::RunEvent;

impl RunDriver<'_, '_> {
    /// Changes to the next engine for a reason. Returns whether there is one and the guards allow
    /// it.
    pub(super) fn change_engine(&mut self, reason: EngineChangeReason) -> Result<bool, RunError> {
        // The guards may refuse an engine that was tried before, and a later one may be left.
        for next in self.chain.later_for(reason) {
            if self.change_engine_to(next, reason)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Changes to an engine. The change is reported first, so that the guards can refuse it.
    pub(super) fn change_engine_to(
        &mut self,
        next: usize,
        reason: EngineChangeReason,
    ) -> Result<bool, RunError> {
        let (from, to) = (self.chain.label(), self.chain.label_of(next));
        let stuck_at = self.front.summary().and_then(|summary| summary.paused_why);
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
        self.chain.change_to(next, reason, now().boot_ms);
        self.front.emit(&RunEvent::EngineChanged { from: from.clone(), to, reason: word });
        self.front.keep_text(&answer);
        self.brief_new_engine(&from, reason, stuck_at.as_deref())?;
        Ok(true)
    }

    /// Gives the new engine the texts that it needs. `stuck_at` is the problem of the old one.
    pub(super) fn brief_new_engine(
        &mut self,
        from: &str,
        reason: EngineChangeReason,
        stuck_at: Option<&str>,
    ) -> Result<(), RunError> {
        let word = reason.as_str().to_owned();
        let was_worker = self.chain.is_worker(from);
        self.model_loop.model = None;
        self.full_conversations = (0, 0);
        let plan = reason.wants_plan().then(|| handover::plan_request(&word, stuck_at));
        // The conversation of an agent program is not in ours, and an agent program can't read
        // ours. A full conversation would fill the next context, too.
        if was_worker || self.worker_label().is_some() || reason == EngineChangeReason::Context {
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
}
