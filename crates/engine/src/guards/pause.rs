//! While a person has paused a session, nothing runs.

use alloc::format;
use alloc::string::ToString;

use super::{Answers, Guard, Look, Objection};
use crate::state::Paused;
use crate::verdict::{Class, Decision};

pub(crate) struct Pause;

impl Guard for Pause {
    fn decide(&self, look: Look<'_>, answers: &mut Answers) {
        let Some(Paused { by, why, .. }) = &look.state.paused else { return };
        if !look.event.kind.is_work() {
            return;
        }
        let who = by.as_ref().map_or_else(|| "a person".to_string(), |by| format!("`{by}`"));
        let why = why.as_ref().map_or_else(alloc::string::String::new, |why| format!(": {why}"));
        // A person's word holds in observe mode too.
        answers.insist(Objection {
            guard: "pause",
            kind: "paused",
            subtype: "paused_by_person",
            class: Class::Recoverable,
            decision: Decision::Pause,
            message: format!("the session was paused by {who}{why}"),
            location: None,
            correction: Some(
                "end the turn; a person's next message or `resume` goes on".to_string(),
            ),
        });
    }
}
