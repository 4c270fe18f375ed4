//! Events that don't fit the session they arrive in.
//!
//! An adapter that loses count is answered in words it can act on; what it
//! reported is written down and counts as nothing.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};

use serde_json::Value;

use super::{Answers, Guard, Look, Objection};
use crate::event::{
    Arguments, AttemptEnded, AttemptStage, AttemptStarted, EventKind, Payload, Status,
    ToolFinished, ToolProposed,
};
use crate::json::parse_strict;
use crate::state::{ATTEMPTS_MAX, Why};
use crate::verdict::{Class, Decision, GuardName, ViolationSubtype, ViolationType};

pub(crate) struct Protocol;

impl Guard for Protocol {
    fn decide(&self, look: Look<'_>, answers: &mut Answers) {
        let state = look.state;
        match &look.event.kind {
            EventKind::SessionStarted(_) => {
                if let Some(elsewhere) = &look.facts.elsewhere {
                    answers.object(objection(
                        ViolationSubtype::AnotherWorkspace,
                        format!("this session does not work in `{elsewhere}`: its workspace is pinned"),
                        Some(elsewhere.clone()),
                        "begin with `session_started`, or use another session for another workspace",
                    ));
                }
            }
            EventKind::ToolProposed(ToolProposed { call, .. }) => {
                if let Some(call) = call.as_ref().filter(|call| state.in_flight.is_open(call)) {
                    answers.object(objection(
                        ViolationSubtype::DuplicateCall,
                        format!("call `{call}` was proposed before and has not come back"),
                        Some(call.to_string()),
                        "report its result first, or give the new call an id of its own",
                    ));
                }
            }
            EventKind::ToolFinished(ToolFinished { status, .. }) => {
                if state.in_flight.find(look.key()).is_none() {
                    unexpected_result(look, *status, answers);
                }
            }
            EventKind::AttemptStarted(AttemptStarted { attempt }) => {
                if state.attempts.iter().any(|open| open.id == *attempt) {
                    answers.object(objection(
                        ViolationSubtype::DuplicateAttempt,
                        format!("attempt `{attempt}` is open already"),
                        Some(attempt.to_string()),
                        "end it first, or give the new attempt an id of its own",
                    ));
                } else if state.attempts.len() >= ATTEMPTS_MAX {
                    answers.object(objection(
                        ViolationSubtype::TooManyAttempts,
                        format!("{ATTEMPTS_MAX} attempts are open"),
                        Some(attempt.to_string()),
                        "end one of them first",
                    ));
                }
            }
            EventKind::AttemptStage(AttemptStage { attempt, .. })
            | EventKind::AttemptEnded(AttemptEnded { attempt, .. }) => {
                if !state.attempts.iter().any(|open| open.id == *attempt) {
                    answers.object(objection(
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

fn unexpected_result(look: Look<'_>, status: Status, answers: &mut Answers) {
    let EventKind::ToolFinished(ToolFinished { call, .. }) = &look.event.kind else { return };
    let name = call.as_ref().map_or("without an id", |call| call.as_str());
    let gone = call.as_ref().and_then(|call| look.state.gone(call)).map(|gone| gone.why);
    match (gone, status) {
        // Some clients report a denied call as failed; that is not news. Nor is
        // the end of a call that went on in the background.
        (Some(Why::Denied), Status::Error | Status::Cancelled) | (Some(Why::Unresolved), _) => {}
        (Some(Why::Denied), _) => answers.object(objection(
            ViolationSubtype::RanDespiteDenial,
            format!("call `{name}` was denied, and yet it has a result"),
            Some(name.to_string()),
            "make the client obey denials: it ran a call that must not run",
        )),
        (None, _) => answers.object(objection(
            ViolationSubtype::ResultWithoutCall,
            format!("no call `{name}` is in flight; its result counts as nothing"),
            Some(name.to_string()),
            "report `tool_proposed` before the call runs, and its result once",
        )),
    }
}

/// The arguments of a call; text is only parsed strictly here.
pub(crate) fn parse_arguments(args: &Arguments) -> Result<Cow<'_, Value>, String> {
    match args {
        Arguments::Parsed(value) if is_elided(value) => {
            Err("they are too many to be looked at".to_string())
        }
        Arguments::Parsed(value) => Ok(Cow::Borrowed(value)),
        Arguments::Text(Payload::Elided { elided }) => {
            Err(format!("{} bytes of text are too long to check", elided.bytes))
        }
        Arguments::Text(Payload::Inline(text)) => match parse_strict(text.as_bytes()) {
            Ok(value) if value.is_object() => Ok(Cow::Owned(value)),
            Ok(_) => Err("the text is JSON, but no object".to_string()),
            Err(error) => Err(error.to_string()),
        },
    }
}

/// Whether nothing is left of arguments but where they are kept.
fn is_elided(value: &Value) -> bool {
    value.as_object().is_some_and(|fields| fields.len() == 1 && fields.contains_key("$elided"))
}

fn objection(
    subtype: ViolationSubtype,
    message: String,
    location: Option<String>,
    correction: &str,
) -> Objection {
    Objection {
        guard: GuardName::Protocol,
        kind: ViolationType::ProtocolViolation,
        subtype,
        class: Class::Recoverable,
        decision: Decision::Deny,
        message,
        location,
        correction: Some(correction.to_string()),
    }
}
