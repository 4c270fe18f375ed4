//! What happens when a model does not answer: a fallback engine, a pause, or the end.

use std::time::Duration;

use jackline_engine::event::{ChangeReason, ModelChanged};
use jackline_host::clock::now;
use jackline_model::{ModelError, ModelErrorKind};

use super::{DriverFlow, RunDriver};
use crate::engines::EngineChangeReason;
use crate::model_loop::preview;
use crate::run::RunError;
use crate::run::engine_connect::error_text;
use crate::run_event::{RunEvent, WaitReason};
use crate::waiting::{WaitEnd, model_pause, wait_for_duration};

impl RunDriver<'_, '_> {
    /// Handles a model error: restart, fallback engine, pause, or end.
    pub(super) fn handle_model_error(
        &mut self,
        error: &ModelError,
    ) -> Result<DriverFlow, RunError> {
        if error.kind == ModelErrorKind::Cancelled {
            return Ok(DriverFlow::Continue);
        }
        let why = self.chain.current().map(|engine| error_text(engine, error)).unwrap_or_default();
        self.front.emit(&RunEvent::Notification {
            text: preview(&format!("{}: {why}", self.chain.label())),
        });
        let too_long = error.kind == ModelErrorKind::ContextLength;
        if too_long && !self.model_loop.conversation.is_fresh() && self.can_restart() {
            self.restart_conversation()?;
            return Ok(DriverFlow::Continue);
        }
        if let Some(wanted) = error.retry_after {
            self.chain.set_rest_until(now().boot_ms.saturating_add(in_ms(wanted)));
        }
        if self.change_engine(if too_long {
            EngineChangeReason::Context
        } else {
            EngineChangeReason::Failed(error.kind)
        })? {
            return Ok(DriverFlow::Continue);
        }
        Ok(match self.next_pause(error) {
            Some(pause) if self.model_waits < self.run_limits().model_waits => {
                self.wait_for_model(error, pause)
            }
            _ => {
                self.end_without_engine();
                DriverFlow::End
            }
        })
    }

    /// How long to wait until an engine can answer again: the current one, or the first one if it
    /// named a time. `None` if waiting does not help.
    pub(super) fn next_pause(&mut self, error: &ModelError) -> Option<Duration> {
        let is_limit = matches!(error.kind, ModelErrorKind::PlanLimit | ModelErrorKind::RateLimit);
        let own = is_limit.then(|| model_pause(error.retry_after, self.model_waits));
        let first = self.chain.first_rests_until_ms().map(|until| {
            let left = Duration::from_millis(until.saturating_sub(now().boot_ms));
            model_pause(Some(left), self.model_waits)
        });
        if let Some(first) = first.filter(|first| own.is_none_or(|own| *first <= own)) {
            self.chain.schedule_first_at(now().boot_ms.saturating_add(in_ms(first)));
            return Some(first);
        }
        own
    }

    /// Waits for a model. The wait is in the events of the run and in the journal.
    pub(super) fn wait_for_model(&mut self, error: &ModelError, pause: Duration) -> DriverFlow {
        self.model_waits += 1;
        let (label, reason) = (self.chain.label(), ChangeReason::parse(error.kind.as_str()));
        self.front.report(ModelChanged { from: Some(label.clone()), to: label, reason });
        let waits = WaitReason::Model { why: error.to_string(), ms: in_ms(pause) };
        self.front.emit(&RunEvent::Waiting { waits });
        match wait_for_duration(&mut self.front, pause) {
            WaitEnd::Changed => DriverFlow::Continue,
            WaitEnd::Cancelled => {
                self.suspend("it was interrupted by a signal while it waited for a model");
                DriverFlow::End
            }
            WaitEnd::OutOfTime => self.end_out_of_time(),
        }
    }
}

fn in_ms(pause: Duration) -> u64 {
    u64::try_from(pause.as_millis()).unwrap_or(u64::MAX)
}
