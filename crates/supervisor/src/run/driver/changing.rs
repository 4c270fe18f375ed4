//! Another engine takes over, or the first one comes back.

use jackline_engine::Decision;
use jackline_engine::event::{ChangeReason, ModelChanged};
use jackline_host::clock::now;

use super::Driver;
use crate::engines::{EngineKind, Reason};
use crate::handover;
use crate::run::RunError;
use crate::told::Told;

/// So many stops in a row that are refused count as another engine's turn.
const REFUSED_STOPS_MAX: u32 = 3;

/// So many iterations without a call, too.
const IDLE_MAX: u32 = 3;

impl Driver<'_, '_> {
    /// Lets the next engine take over; whether there is one, and the guards let it.
    pub(super) fn change(&mut self, reason: Reason) -> Result<bool, RunError> {
        match self.chain.next(reason) {
            Some(next) => self.change_to(next, reason),
            None => Ok(false),
        }
    }

    /// Has another engine work, where the guards let it. Nobody has moved before they say so.
    pub(super) fn change_to(&mut self, next: usize, reason: Reason) -> Result<bool, RunError> {
        let (from, to) = (self.chain.label(), self.chain.label_of(next));
        let word = reason.word().to_owned();
        let answer = self.front.report(ModelChanged {
            from: Some(from.clone()),
            to: to.clone(),
            reason: ChangeReason::parse(&word),
        });
        if answer.verdict.is_enforced(Decision::Deny) {
            return Ok(false);
        }
        let plays = self.chain.current().is_some_and(|it| matches!(it.kind, EngineKind::Script(_)));
        if let Some(model) = self.own.model.take().filter(|_| plays) {
            self.scripts.insert(from.clone(), model);
        }
        self.chain.change(next, now().boot_ms);
        self.front.say(&Told::Changed { from: from.clone(), to, reason: word });
        self.front.keep_text(&answer);
        self.changed(&from, reason)?;
        Ok(true)
    }

    /// Has whoever works now know what it needs.
    pub(super) fn changed(&mut self, from: &str, reason: Reason) -> Result<(), RunError> {
        let word = reason.word().to_owned();
        let was_worker = self.chain.is_worker(from);
        self.own.model = None;
        (self.refused_stops, self.idle, self.exhausted) = (0, 0, 0);
        let plan = reason.wants_plan().then(|| handover::plan(&word));
        // What an agent program was told and did is not in our conversation, and it knows
        // nothing of ours.
        if was_worker || self.worker().is_some() {
            return self.take_over_text(plan);
        }
        match plan {
            Some(plan) => Ok(self.own.tell(plan)?),
            None => Ok(()),
        }
    }

    /// The first engine is tried again after a while.
    pub(super) fn come_back(&mut self) -> Result<(), RunError> {
        if let Some(first) = self.chain.returns(now().boot_ms) {
            self.change_to(first, Reason::Return)?;
        }
        Ok(())
    }

    pub(super) fn hand_over_if_stuck(&mut self) -> Result<(), RunError> {
        if self.idle >= IDLE_MAX {
            self.change(Reason::StopEvents)?;
        } else if self.refused_stops > REFUSED_STOPS_MAX {
            self.change(Reason::Verification)?;
        }
        Ok(())
    }
}
