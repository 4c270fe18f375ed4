//! While a session is paused, nothing runs.

use alloc::format;
use alloc::string::ToString;

use super::control::held_by;
use super::{Answers, Guard, Look, Objection, reports};
use crate::state::PauseCause;
use crate::verdict::{Class, Decision, GuardName, ViolationSubtype, ViolationType};

pub(crate) struct Pause;

impl Guard for Pause {
    fn decide(&self, look: Look<'_>, answers: &mut Answers) {
        let Some(paused) = &look.state.paused else { return };
        if !look.event.kind.is_work() || reports::is_settled(look) {
            return;
        }
        let (subtype, correction) = match paused.cause {
            PauseCause::Person => (
                ViolationSubtype::PausedByPerson,
                "end the turn; a person's next message or `resume` goes on",
            ),
            PauseCause::Protected => (
                ViolationSubtype::PausedByGuard,
                "end the turn; a person's next message or `resume` goes on",
            ),
            PauseCause::Loop | PauseCause::NoProgress => (
                ViolationSubtype::Blocked,
                "end the turn and say what you would need; a person reads \
                 `.jackline/BLOCKER_REPORT.md` and goes on with `jackline clear`",
            ),
            PauseCause::Checkpoint => (
                ViolationSubtype::Checkpoint,
                "end the turn; a person reads `.jackline/CHECKPOINT.md` and goes on with \
                 `jackline ack`",
            ),
        };
        // A person's word holds in observe mode too.
        answers.insist(Objection {
            guard: GuardName::Pause,
            kind: ViolationType::Paused,
            subtype,
            class: Class::Recoverable,
            decision: Decision::Pause,
            message: match reports::unsure(look) {
                Some(why) => format!("the session was paused by {}; {why}", held_by(paused)),
                None => format!("the session was paused by {}", held_by(paused)),
            },
            location: None,
            correction: Some(correction.to_string()),
        });
    }
}

impl Look<'_> {
    /// Whether the session is held because the agent gets nowhere, and nobody has
    /// settled that.
    pub(crate) fn is_stuck(self) -> bool {
        let cause = self.state.paused.as_ref().map(|paused| paused.cause);
        cause.is_some_and(PauseCause::is_stuck) && !reports::is_settled(self)
    }

    /// Whether nothing may run now, by a pause or by a person's file.
    pub(crate) fn is_paused(self) -> bool {
        let by_file = self.facts.markers.pause && !self.facts.is_off();
        by_file || (self.state.paused.is_some() && !reports::is_settled(self))
    }
}
