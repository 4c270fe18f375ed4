//! A model that does not answer: another, some time, or the end.

use std::time::Duration;

use jackline_engine::event::{ChangeReason, ModelChanged};
use jackline_host::clock::now;
use jackline_model::{ErrorKind, ModelError};

use super::{Driver, Goes};
use crate::engines::Reason;
use crate::own::shown;
use crate::run::RunError;
use crate::run::reach::worded;
use crate::told::{Told, Waits};
use crate::waiting::{Waited, rest, sleep};

/// How often in a row a model is waited for whose limits are used up.
const WAITS_MAX: u32 = 20;

impl Driver<'_, '_> {
    /// A model that does not answer: another, some time, or the end.
    pub(super) fn failed(&mut self, error: &ModelError) -> Result<Goes, RunError> {
        if error.kind == ErrorKind::Cancelled {
            return Ok(Goes::On);
        }
        let why = self.chain.current().map(|engine| worded(engine, error)).unwrap_or_default();
        self.front.say(&Told::Aside { text: shown(&format!("{}: {why}", self.chain.label())) });
        let too_long = error.kind == ErrorKind::ContextLength;
        if too_long && !self.own.conversation.is_fresh() && self.may_fill() {
            self.begin_anew()?;
            return Ok(Goes::On);
        }
        if let Some(wanted) = error.retry_after {
            self.chain.rest(now().boot_ms.saturating_add(in_ms(wanted)));
        }
        if self.change(if too_long { Reason::Context } else { Reason::Failed(error.kind) })? {
            return Ok(Goes::On);
        }
        Ok(match self.next_pause(error) {
            Some(pause) if self.waits < WAITS_MAX => self.wait_out(error, pause),
            _ => {
                self.fail();
                Goes::Over
            }
        })
    }

    /// How long until somebody answers again: whoever has used up what it may, or the first,
    /// where it has said so when it was left. None where waiting is of no use.
    pub(super) fn next_pause(&mut self, error: &ModelError) -> Option<Duration> {
        let is_limit = matches!(error.kind, ErrorKind::PlanLimit | ErrorKind::RateLimit);
        let own = is_limit.then(|| rest(error.retry_after, self.waits));
        let first = self.chain.first_rests().map(|until| {
            let left = Duration::from_millis(until.saturating_sub(now().boot_ms));
            rest(Some(left), self.waits)
        });
        if let Some(first) = first.filter(|first| own.is_none_or(|own| *first <= own)) {
            self.chain.want_first_at(now().boot_ms.saturating_add(in_ms(first)));
            return Some(first);
        }
        own
    }

    /// Waits for a model, where everybody can see it: those who watch, and those who read the
    /// journal.
    pub(super) fn wait_out(&mut self, error: &ModelError, pause: Duration) -> Goes {
        self.waits += 1;
        let (label, reason) = (self.chain.label(), ChangeReason::parse(error.kind.as_str()));
        self.front.report(ModelChanged { from: Some(label.clone()), to: label, reason });
        let waits = Waits::Model { why: error.to_string(), ms: in_ms(pause) };
        self.front.say(&Told::Waiting { waits });
        match sleep(&mut self.front, pause) {
            Waited::Changed => Goes::On,
            Waited::Cancelled => {
                self.leave("it was ended by a signal while it waited for a model");
                Goes::Over
            }
            Waited::TimeIsUp => self.time_is_up(),
        }
    }
}

fn in_ms(pause: Duration) -> u64 {
    u64::try_from(pause.as_millis()).unwrap_or(u64::MAX)
}
