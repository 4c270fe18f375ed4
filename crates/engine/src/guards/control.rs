//! Controls of a person: whether a control has an effect now, and its entry in the safety log.

mod reload;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};

use serde_json::Value;

use super::dirty::{DirtySummary, TestsPassing, clean};
use super::limits::iterations;
use super::{Guard, GuardAnswers, GuardInput, ViolationDraft, advisor, fallback};
use crate::event::{Control, ControlAction, EventKind};
use crate::facts::{ControlFiles, Queries, ReloadFact};
use crate::session::Record;
use crate::state::{PauseCause, PauseState, ReportFile, SessionState};
use crate::verdict::{
    Decision, GuardName, SafetyAction, SafetyEvent, SafetyKind, Violation, ViolationClass,
    ViolationSubtype, ViolationType,
};

use super::reports::removed_report;

pub(crate) struct ControlGuard;

impl Guard for ControlGuard {
    fn needs(&self, input: GuardInput<'_>, queries: &mut Queries) {
        if let EventKind::Control(Control { action: ControlAction::Reload, .. }) = &input.event.kind
        {
            reload::request_facts(input, queries);
        }
    }

    fn decide(&self, input: GuardInput<'_>, answers: &mut GuardAnswers) {
        let EventKind::Control(Control { action, by, why, constraint, .. }) = &input.event.kind
        else {
            return;
        };
        if let Some(ControlRefusal { subtype, message, correction }) = check_control(input, *action)
        {
            // A control is answered in every mode.
            answers.add_enforced_violation(ViolationDraft {
                guard: GuardName::Protocol,
                kind: ViolationType::Control,
                subtype,
                class: ViolationClass::Recoverable,
                decision: Decision::Deny,
                message,
                location: Some(action.as_str().to_string()),
                correction: Some(correction),
            });
        }
        let refused = is_refused(&answers.violations);
        let taken = if refused { SafetyAction::Refused } else { control_result(input, *action) };
        let definition = match &input.facts.reload {
            Some(ReloadFact::New(new)) if !refused => Some(new.checksum.to_string()),
            _ => None,
        };
        let given =
            [("by", by), ("why", why), ("constraint", constraint), ("definition", &definition)];
        let given = given.into_iter().filter_map(|(name, text)| Some((name, text.as_deref()?)));
        let details = [("action", action.as_str())].into_iter().chain(given);
        answers.safety.push(control_event(input, details, taken));
    }
}

/// Returns whether a control was refused, so that it has no effect.
pub(crate) fn is_refused(violations: &[Violation]) -> bool {
    violations.iter().any(|violation| violation.kind == ViolationType::Control)
}

/// Returns the action of a person in a record: an accepted control, or the removal of the report
/// that the session waits with. An advisor or a fallback model that ends a pause counts as a person
/// who clears a blocker.
pub(crate) fn person_action(state: &SessionState, record: &Record<'_>) -> Option<ControlAction> {
    match &record.event.kind {
        EventKind::Control(Control { action, .. }) => {
            (!is_refused(&record.verdict.violations)).then_some(*action)
        }
        _ if advisor::has_injected_instruction(record.verdict)
            || fallback::is_takeover(state, record) =>
        {
            Some(ControlAction::ClearBlocker)
        }
        _ => removed_report(state, record.facts).and_then(ReportFile::resolved_by),
    }
}

/// Builds the safety log event for a control file.
pub(super) fn control_file_event(
    input: GuardInput<'_>,
    file: &str,
    taken: SafetyAction,
) -> SafetyEvent {
    control_event(
        input,
        [("marker", file)],
        if input.facts.is_off() { SafetyAction::Observed } else { taken },
    )
}

/// Builds a safety log event about an action of a person.
pub(super) fn control_event<'a>(
    input: GuardInput<'_>,
    details: impl IntoIterator<Item = (&'a str, &'a str)>,
    taken: SafetyAction,
) -> SafetyEvent {
    let value = |(name, text): (&str, &str)| {
        (name.to_string(), Value::String(text.chars().take(DETAIL_CHARS_MAX).collect()))
    };
    SafetyEvent {
        timestamp: input.clock.now(),
        kind: SafetyKind::Control,
        details: details.into_iter().map(value).collect::<BTreeMap<String, Value>>(),
        action_taken: taken,
    }
}

/// How many characters of a person's text are logged.
const DETAIL_CHARS_MAX: usize = 200;

/// Returns the result of a control.
fn control_result(input: GuardInput<'_>, action: ControlAction) -> SafetyAction {
    match action {
        ControlAction::Stop => SafetyAction::Stopped,
        ControlAction::Pause => SafetyAction::Paused,
        // One pause ends, and another one remains.
        ControlAction::Resume | ControlAction::Acknowledge | ControlAction::ClearBlocker
            if input
                .state
                .paused
                .clone()
                .and_then(|paused| paused.after_action(action))
                .is_some() =>
        {
            SafetyAction::StillPaused
        }
        ControlAction::Resume | ControlAction::Acknowledge | ControlAction::ClearBlocker => {
            SafetyAction::Resumed
        }
        ControlAction::Reset => SafetyAction::Reopened,
        ControlAction::ResetFailures => SafetyAction::FailuresForgotten,
        ControlAction::SkipDirtyBits => SafetyAction::TestsSkipped,
        ControlAction::ExpireConstraint => SafetyAction::ConstraintEnded,
        ControlAction::Grant => SafetyAction::Granted,
        ControlAction::Refuse => SafetyAction::Forbidden,
        ControlAction::Withdraw => SafetyAction::Withdrawn,
        ControlAction::Off => SafetyAction::SwitchedOff,
        ControlAction::Reload => SafetyAction::Reloaded,
    }
}

/// Why a control is refused.
struct ControlRefusal {
    subtype: ViolationSubtype,
    message: String,
    correction: String,
}

impl ControlRefusal {
    fn no_effect(message: String, correction: &str) -> Self {
        Self { subtype: ViolationSubtype::NoEffect, message, correction: correction.to_string() }
    }
}

fn check_control(input: GuardInput<'_>, action: ControlAction) -> Option<ControlRefusal> {
    let paused = input.state.paused.as_ref();
    let cause = paused.map(|paused| paused.cause);
    let off = input.facts.is_off();
    let ControlFiles { stop, pause, .. } = input.facts.control_files;
    match action {
        ControlAction::Reset if stop && !off => Some(refuse_for_control_file(ControlFiles::STOP)),
        ControlAction::ResetFailures if consecutive_failures(input) == 0 => {
            Some(ControlRefusal::no_effect(
                "no failed iterations are counted".to_string(),
                "nothing to do",
            ))
        }
        ControlAction::SkipDirtyBits => check_skip_tests(input),
        ControlAction::Stop
        | ControlAction::Reset
        | ControlAction::ResetFailures
        | ControlAction::Grant
        | ControlAction::Refuse
        | ControlAction::Withdraw
        | ControlAction::ExpireConstraint => None,
        // A person may pause on top of a pause that an advisor or an acknowledgement could end.
        // Only a person ends a person's pause.
        ControlAction::Pause if cause.is_some_and(PauseCause::can_lie_beneath) => None,
        ControlAction::Pause => paused.map(|paused| {
            ControlRefusal::no_effect(
                format!("the session is already paused by {}", describe_pause(paused)),
                "nothing to do; `jackline resume` continues the session",
            )
        }),
        ControlAction::Resume if pause && !off => {
            Some(refuse_for_control_file(ControlFiles::PAUSE))
        }
        // Without an acknowledgement the next call would be paused again.
        ControlAction::Resume
            if cause == Some(PauseCause::Checkpoint)
                && iterations::is_waiting_for_acknowledgement(input) =>
        {
            Some(refuse_not_waiting(input, "a checkpoint must be acknowledged"))
        }
        ControlAction::Resume if paused.is_some() => None,
        ControlAction::Resume => Some(ControlRefusal::no_effect(
            "the session is not paused".to_string(),
            "nothing to do; `jackline pause` pauses it, `jackline reset` reopens it after a stop",
        )),
        ControlAction::Acknowledge | ControlAction::ClearBlocker
            if paused.is_some_and(|paused| paused.is_waiting_for(action)) =>
        {
            None
        }
        ControlAction::Acknowledge if iterations::is_waiting_for_acknowledgement(input) => None,
        ControlAction::Acknowledge => {
            Some(refuse_not_waiting(input, "no checkpoint is waiting for an acknowledgement"))
        }
        ControlAction::ClearBlocker => {
            Some(refuse_not_waiting(input, "nothing blocks this session"))
        }
        // This event is only recorded. A separate fact tells that the guard is off.
        ControlAction::Off if off => None,
        ControlAction::Off => Some(ControlRefusal::no_effect(
            "an event cannot turn the guard off; nothing was changed".to_string(),
            "a person can turn it off with `jackline off --for 30m --why …`",
        )),
        ControlAction::Reload => reload::check_reload(input),
    }
}

/// Returns how many iterations failed in a row.
fn consecutive_failures(input: GuardInput<'_>) -> u32 {
    input.state.progress.summary(input.definition).consecutive_failures
}

/// Returns why there are no tests to skip, if there are none.
fn check_skip_tests(input: GuardInput<'_>) -> Option<ControlRefusal> {
    let demanded = input.definition.completion.as_ref();
    let Some(demanded) = demanded.filter(|demanded| demanded.uses_dirty_bits()) else {
        return Some(ControlRefusal::no_effect(
            "the definition does not require tests".to_string(),
            "nothing to do; `completion: { clean: {} }` would require them",
        ));
    };
    if !clean::find_unclean(demanded, input).is_empty() {
        return None;
    }
    let bits = input.state.dirty.summary();
    let message = match bits {
        DirtySummary { skipped: true, .. } => "the tests of the current code are already skipped",
        DirtySummary { code_modified: true, tests_passing: TestsPassing::Yes, .. } => {
            "the current code was tested and passes"
        }
        DirtySummary { code_modified: true, .. } => "the documentation was updated",
        _ => "no code was changed, so no tests are required",
    };
    Some(ControlRefusal::no_effect(message.to_string(), "nothing to do"))
}

/// Refuses a control while a control file demands the opposite.
fn refuse_for_control_file(file: &str) -> ControlRefusal {
    ControlRefusal {
        subtype: ViolationSubtype::Marker,
        message: format!("the file `{file}` exists and blocks this session; nothing was changed"),
        correction: format!("remove it first: `rm -r {file}`"),
    }
}

/// Refuses a control that the current state does not wait for, and names the pause.
fn refuse_not_waiting(input: GuardInput<'_>, what: &str) -> ControlRefusal {
    match &input.state.paused {
        None => {
            ControlRefusal::no_effect(format!("{what}: the session is not paused"), "nothing to do")
        }
        Some(paused) => {
            let correction = match paused.cause {
                cause if cause.is_stuck() => "`jackline clear` continues the session",
                PauseCause::Checkpoint => "`jackline ack` continues the session",
                _ => "`jackline resume` continues the session",
            };
            ControlRefusal::no_effect(
                format!("{what}: the session is paused by {}", describe_pause(paused)),
                correction,
            )
        }
    }
}

/// Describes who paused a session, and why.
pub(super) fn describe_pause(paused: &PauseState) -> String {
    let actor = paused.by.as_ref().map_or_else(|| "a person".to_string(), |by| format!("`{by}`"));
    match &paused.why {
        Some(why) => format!("{actor}: {why}"),
        None => actor,
    }
}
