//! `STOP` and `PAUSE` in the directory for people: a person's word without a
//! command, in every mode. Closing needs no proof of who it was.

use alloc::format;
use alloc::string::ToString;

use serde::{Deserialize, Serialize};

use super::{Answers, Fold, Guard, Look, Objection, control, protected};
use crate::event::EventKind;
use crate::facts::{Facts, Markers};
use crate::state::State;
use crate::verdict::{
    Class, Decision, GuardName, SafetyAction, Stop, StopCode, Violation, ViolationSubtype,
    ViolationType,
};

/// The markers that were there when they were looked at last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marked {
    pub(crate) stop: bool,
    pub(crate) pause: bool,
}

pub(crate) struct MarkerGuard;

impl Guard for MarkerGuard {
    fn decide(&self, look: Look<'_>, answers: &mut Answers) {
        let Markers { stop, pause, fault } = &look.facts.markers;
        if !is_gate(&look.event.kind) {
            return;
        }
        if let Some(fault) = fault.as_ref().filter(|_| look.event.kind.is_work()) {
            answers.insist(blind(fault));
        }
        let known = look.state.marked;
        if *stop {
            answers.stop.get_or_insert_with(|| Stop::of(StopCode::HumanRequested));
            answers.insist(stopped());
            if !known.stop {
                answers.safety.push(control::marker(look, Markers::STOP, SafetyAction::Stopped));
            }
        }
        if *pause && !known.pause {
            answers.safety.push(control::marker(look, Markers::PAUSE, SafetyAction::Paused));
        }
        if *pause && look.event.kind.is_work() {
            answers.insist(paused());
        }
        if was_taken(look.state, look.facts) && protected::compares(&look.event.kind) {
            let fate = "the session stays paused until a person goes on";
            answers.insist(protected::tampered(look, Markers::PAUSE, "taken away", fate));
        }
    }

    fn apply(&self, state: &mut State, fold: Fold<'_>) {
        let record = fold.record;
        if is_gate(&record.event.kind) {
            let Markers { stop, pause, .. } = record.facts.markers;
            let answered = record.verdict.violations.iter().any(is_taken);
            // What went in a call counts as there until that was answered.
            let pause = pause || (was_taken(state, record.facts) && !answered);
            state.marked = Marked { stop, pause };
        }
    }
}

/// Whether the file that holds the session went while the agent was at work, so
/// that nobody can say it was a person.
fn was_taken(state: &State, facts: &Facts) -> bool {
    state.marked.pause && !facts.markers.pause && !facts.is_off() && protected::is_suspected(state)
}

fn is_taken(violation: &Violation) -> bool {
    violation.subtype == ViolationSubtype::ChangedDuringCall
        && violation.location.as_deref() == Some(Markers::PAUSE)
}

/// Whether markers count at an event: all that an agent or its client reports,
/// but not what a person says, nor that the agent is gone.
fn is_gate(kind: &EventKind) -> bool {
    !matches!(kind, EventKind::Control(_) | EventKind::SessionEnded(_))
}

fn stopped() -> Objection {
    let file = Markers::STOP;
    Objection {
        guard: GuardName::Markers,
        kind: ViolationType::Stopped,
        subtype: ViolationSubtype::StopFile,
        class: Class::Terminal,
        decision: Decision::Stop,
        message: format!("a person has ended this session: `{file}` is there"),
        location: Some(file.to_string()),
        correction: Some(format!(
            "nothing more runs; a person can remove `{file}` and open the session anew with \
             `jackline reset`"
        )),
    }
}

fn paused() -> Objection {
    let file = Markers::PAUSE;
    Objection {
        guard: GuardName::Pause,
        kind: ViolationType::Paused,
        subtype: ViolationSubtype::PauseFile,
        class: Class::Recoverable,
        decision: Decision::Pause,
        message: format!("a person has paused this session: `{file}` is there"),
        location: Some(file.to_string()),
        correction: Some(format!("end the turn; once a person removes `{file}` it goes on")),
    }
}

/// What can't be looked at may hold a person's word.
fn blind(fault: &str) -> Objection {
    Objection {
        guard: GuardName::Markers,
        kind: ViolationType::GuardFault,
        subtype: ViolationSubtype::MarkersUnreadable,
        class: Class::Recoverable,
        decision: Decision::Deny,
        message: format!(
            "the guard is broken, not the call: it can't see whether a person wants this \
             session to stop: {fault}"
        ),
        location: Some(".jackline".to_string()),
        correction: Some(
            "a person can put the directory in order, or pass for a while with `jackline off \
             --for 30m --why …`"
                .to_string(),
        ),
    }
}
