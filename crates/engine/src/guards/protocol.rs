//! Events that do not fit the state of their session.
//!
//! The adapter gets an answer that says how to fix its report. The report itself is recorded and
//! has no effect.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};

use serde_json::Value;

use super::{Guard, GuardAnswers, GuardInput, ViolationDraft};
use crate::event::{
    Arguments, AttemptEnded, AttemptStage, AttemptStarted, CallStatus, EventKind, Payload,
    ToolFinished, ToolProposed,
};
use crate::json::parse_strict;
use crate::state::{ATTEMPTS_MAX, CloseReason};
use crate::verdict::{Decision, GuardName, ViolationClass, ViolationSubtype, ViolationType};

pub(crate) struct ProtocolGuard;

impl Guard for ProtocolGuard {
    fn decide(&self, input: GuardInput<'_>, answers: &mut GuardAnswers) {
        let state = input.state;
        match &input.event.kind {
            EventKind::SessionStarted(_) => {
                if let Some(elsewhere) = &input.facts.other_workspace {
                    answers.add_violation(protocol_violation(
                        ViolationSubtype::AnotherWorkspace,
                        format!(
                            "this session cannot use the workspace `{elsewhere}`: it is bound \
                                 to another workspace"
                        ),
                        Some(elsewhere.clone()),
                        "send `session_started` first, or use another session for this workspace",
                    ));
                }
            }
            EventKind::ToolProposed(ToolProposed { call, .. }) => {
                if let Some(call) = call.as_ref().filter(|call| state.in_flight.is_running(call)) {
                    answers.add_violation(protocol_violation(
                        ViolationSubtype::DuplicateCall,
                        format!("call `{call}` was already proposed and has no result yet"),
                        Some(call.to_string()),
                        "report its result first, or give the new call its own id",
                    ));
                }
            }
            EventKind::ToolFinished(ToolFinished { status, .. }) => {
                if state.in_flight.find(input.call_key()).is_none() {
                    unexpected_result(input, *status, answers);
                }
            }
            EventKind::AttemptStarted(AttemptStarted { attempt }) => {
                if state.attempts.iter().any(|open| open.id == *attempt) {
                    answers.add_violation(protocol_violation(
                        ViolationSubtype::DuplicateAttempt,
                        format!("attempt `{attempt}` is already open"),
                        Some(attempt.to_string()),
                        "end it first, or give the new attempt its own id",
                    ));
                } else if state.attempts.len() >= ATTEMPTS_MAX {
                    answers.add_violation(protocol_violation(
                        ViolationSubtype::TooManyAttempts,
                        format!("{ATTEMPTS_MAX} attempts are already open, which is the limit"),
                        Some(attempt.to_string()),
                        "end one of them first",
                    ));
                }
            }
            EventKind::AttemptStage(AttemptStage { attempt, .. })
            | EventKind::AttemptEnded(AttemptEnded { attempt, .. }) => {
                if !state.attempts.iter().any(|open| open.id == *attempt) {
                    answers.add_violation(protocol_violation(
                        ViolationSubtype::UnknownAttempt,
                        format!("no attempt `{attempt}` is open"),
                        Some(attempt.to_string()),
                        "start it with `attempt_started`",
                    ));
                }
            }
            _ => {}
        }
    }
}

fn unexpected_result(input: GuardInput<'_>, status: CallStatus, answers: &mut GuardAnswers) {
    let EventKind::ToolFinished(ToolFinished { call, .. }) = &input.event.kind else { return };
    let name = call.as_ref().map_or("without an id", |call| call.as_str());
    let gone = call.as_ref().and_then(|call| input.state.gone(call)).map(|gone| gone.reason);
    match (gone, status) {
        // Some clients report a denied call as failed, and some report the end of a call that was
        // left running in the background. Both are expected.
        (Some(CloseReason::Denied), CallStatus::Error | CallStatus::Cancelled)
        | (Some(CloseReason::Unresolved), _) => {}
        (Some(CloseReason::Denied), _) => answers.add_violation(protocol_violation(
            ViolationSubtype::RanDespiteDenial,
            format!("call `{name}` was denied but has a result"),
            Some(name.to_string()),
            "fix the client: it ran a call that was denied",
        )),
        (None, _) => answers.add_violation(protocol_violation(
            ViolationSubtype::ResultWithoutCall,
            format!("no call `{name}` is in flight; the result is ignored"),
            Some(name.to_string()),
            "report `tool_proposed` before the call runs, and report its result only once",
        )),
    }
}

/// Returns the arguments of a call. Text is parsed here, strictly.
pub(crate) fn parse_arguments(args: &Arguments) -> Result<Cow<'_, Value>, String> {
    match args {
        Arguments::Parsed(value) if is_elided(value) => {
            Err("they are too large to check".to_string())
        }
        Arguments::Parsed(value) => Ok(Cow::Borrowed(value)),
        Arguments::Text(Payload::Elided { elided }) => {
            Err(format!("{} bytes of text are too long to check", elided.bytes))
        }
        Arguments::Text(Payload::Inline(text)) => match parse_strict(text.as_bytes()) {
            Ok(value) if value.is_object() => Ok(Cow::Owned(value)),
            Ok(_) => Err("the text is JSON, but not an object".to_string()),
            Err(error) => Err(error.to_string()),
        },
    }
}

/// Returns whether the arguments were replaced by a reference to stored text.
fn is_elided(value: &Value) -> bool {
    value.as_object().is_some_and(|fields| fields.len() == 1 && fields.contains_key("$elided"))
}

fn protocol_violation(
    subtype: ViolationSubtype,
    message: String,
    location: Option<String>,
    correction: &str,
) -> ViolationDraft {
    ViolationDraft {
        guard: GuardName::Protocol,
        kind: ViolationType::ProtocolViolation,
        subtype,
        class: ViolationClass::Recoverable,
        decision: Decision::Deny,
        message,
        location,
        correction: Some(correction.to_string()),
    }
}
