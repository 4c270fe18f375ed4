//! While a person has paused a session, nothing runs.

use alloc::format;
use alloc::string::ToString;

use super::limits::iterations::ACKNOWLEDGE;
use super::{Answers, Guard, Look, Objection};
use crate::state::{Cause, Paused};
use crate::verdict::{Class, Decision};

pub(crate) struct Pause;

impl Guard for Pause {
    fn decide(&self, look: Look<'_>, answers: &mut Answers) {
        let Some(Paused { by, why, cause }) = &look.state.paused else { return };
        if !look.event.kind.is_work() {
            return;
        }
        let who = by.as_ref().map_or_else(|| "a person".to_string(), |by| format!("`{by}`"));
        let why = why.as_ref().map_or_else(alloc::string::String::new, |why| format!(": {why}"));
        let correction = match cause {
            Cause::Checkpoint => ACKNOWLEDGE,
            _ => "end the turn; a person's next message or `resume` goes on",
        };
        // A person's word holds in observe mode too.
        answers.insist(Objection {
            guard: "pause",
            kind: "paused",
            subtype: "paused_by_person",
            class: Class::Recoverable,
            decision: Decision::Pause,
            message: format!("the session was paused by {who}{why}"),
            location: None,
            correction: Some(correction.to_string()),
        });
    }
}
