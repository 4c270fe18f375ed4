//! The control files `STOP` and `PAUSE` in `.jackline/`. They stop or pause a session without a
//! command, in every mode. Stopping is safe, so no proof is needed of who created the file.

use alloc::format;
use alloc::string::ToString;

use serde::{Deserialize, Serialize};

use super::{FoldInput, Guard, GuardAnswers, GuardInput, ViolationDraft, control, protected};
use crate::event::EventKind;
use crate::facts::{ControlFiles, Facts};
use crate::state::SessionState;
use crate::verdict::{
    Decision, GuardName, SafetyAction, SessionStop, StopCode, Violation, ViolationClass,
    ViolationSubtype, ViolationType,
};

/// The control files that existed at the last check.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PresentControlFiles {
    pub(crate) stop: bool,
    pub(crate) pause: bool,
}

pub(crate) struct ControlFileGuard;

impl Guard for ControlFileGuard {
    fn decide(&self, input: GuardInput<'_>, answers: &mut GuardAnswers) {
        let ControlFiles { stop, pause, fault } = &input.facts.control_files;
        if !applies_to(&input.event.kind) {
            return;
        }
        if let Some(fault) = fault.as_ref().filter(|_| input.event.kind.is_work()) {
            answers.add_enforced_violation(unreadable_violation(fault));
        }
        let previous = input.state.control_files;
        if *stop {
            answers.stop.get_or_insert_with(|| SessionStop::with_code(StopCode::HumanRequested));
            answers.add_enforced_violation(stop_file_violation());
            if !previous.stop {
                answers.safety.push(control::control_file_event(
                    input,
                    ControlFiles::STOP,
                    SafetyAction::Stopped,
                ));
            }
        }
        if *pause && !previous.pause {
            answers.safety.push(control::control_file_event(
                input,
                ControlFiles::PAUSE,
                SafetyAction::Paused,
            ));
        }
        if *pause && input.event.kind.is_work() {
            answers.add_enforced_violation(pause_file_violation());
        }
        if was_pause_file_removed(input.state, input.facts)
            && protected::is_comparison_gate(&input.event.kind)
        {
            let fate = "the session stays paused until a person continues it";
            answers.add_enforced_violation(protected::tampering_violation(
                input,
                ControlFiles::PAUSE,
                "removed",
                fate,
            ));
        }
    }

    fn apply(&self, state: &mut SessionState, fold: FoldInput<'_>) {
        let record = fold.record;
        if applies_to(&record.event.kind) {
            let ControlFiles { stop, pause, .. } = record.facts.control_files;
            let was_reported = record.verdict.violations.iter().any(is_removal_violation);
            // A file that disappeared during a call counts as present until the removal was
            // reported.
            let pause = pause || (was_pause_file_removed(state, record.facts) && !was_reported);
            state.control_files = PresentControlFiles { stop, pause };
        }
    }
}

/// Returns whether the `PAUSE` file disappeared while the agent was working, so that a person may
/// not have removed it.
fn was_pause_file_removed(state: &SessionState, facts: &Facts) -> bool {
    state.control_files.pause
        && !facts.control_files.pause
        && !facts.is_off()
        && protected::may_agent_write(state)
}

fn is_removal_violation(violation: &Violation) -> bool {
    violation.subtype == ViolationSubtype::ChangedDuringCall
        && violation.location.as_deref() == Some(ControlFiles::PAUSE)
}

/// Returns whether control files apply to an event. They apply to everything that the agent or its
/// client reports, but not to controls of a person or to the end of the session.
fn applies_to(kind: &EventKind) -> bool {
    !matches!(kind, EventKind::Control(_) | EventKind::SessionEnded(_))
}

fn stop_file_violation() -> ViolationDraft {
    let file = ControlFiles::STOP;
    ViolationDraft {
        guard: GuardName::Markers,
        kind: ViolationType::Stopped,
        subtype: ViolationSubtype::StopFile,
        class: ViolationClass::Terminal,
        decision: Decision::Stop,
        message: format!("a person has stopped this session: the file `{file}` exists"),
        location: Some(file.to_string()),
        correction: Some(format!(
            "no more calls run; a person can remove `{file}` and reopen the session with \
             `jackline reset`"
        )),
    }
}

fn pause_file_violation() -> ViolationDraft {
    let file = ControlFiles::PAUSE;
    ViolationDraft {
        guard: GuardName::Pause,
        kind: ViolationType::Paused,
        subtype: ViolationSubtype::PauseFile,
        class: ViolationClass::Recoverable,
        decision: Decision::Pause,
        message: format!("a person has paused this session: the file `{file}` exists"),
        location: Some(file.to_string()),
        correction: Some(format!(
            "end the turn; the session continues once a person removes `{file}`"
        )),
    }
}

/// Builds the denial for an unreadable directory: it may contain a control file.
fn unreadable_violation(fault: &str) -> ViolationDraft {
    ViolationDraft {
        guard: GuardName::Markers,
        kind: ViolationType::GuardFault,
        subtype: ViolationSubtype::MarkersUnreadable,
        class: ViolationClass::Recoverable,
        decision: Decision::Deny,
        message: format!(
            "the guard is broken, not the call: it cannot read whether a person has stopped \
             or paused this session: {fault}"
        ),
        location: Some(".jackline".to_string()),
        correction: Some(
            "tell the person: they can repair the directory, or turn the guard off for a while with `jackline off \
             --for 30m --why …`"
                .to_string(),
        ),
    }
}
