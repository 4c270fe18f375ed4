//! The schema guard: structured output is valid before it is used.
//!
//! The runtime decodes what a model wrote before the engine decides the event. If decoding failed,
//! the agent is told what was expected at which path, and it may write the data again a few times.
//! Then the session stops.

mod config;
mod repairs;
mod tool_result;

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{FoldInput, Guard, GuardAnswers, GuardInput, ViolationDraft, shorten_for_message};
use crate::definition::Definition;
use crate::event::{Event, EventKind, OutputProposed, Payload, PlanProposed, ToolProposed};
use crate::facts::DecodedFact;
use crate::json::parse_strict;
use crate::state::{SessionState, short_hash};
use crate::verdict::{
    Decision, GuardName, RepairReport, SchemaMismatch, SessionStop, StopCode, StopDetail,
    ViolationClass, ViolationSubtype, ViolationType,
};

pub use config::{NamedOutput, RepairLimits, SchemaSettings, SchemaText};
pub(crate) use repairs::RepairRequests;

use super::protocol::parse_arguments;

const GUARD: GuardName = GuardName::Schema;

/// How many mismatches a message lists; the verdict contains all of them.
const MISMATCHES_SHOWN_MAX: usize = 3;

pub(crate) struct SchemaGuard;

/// Data of a model that must be valid.
#[derive(Clone)]
struct CheckedData<'a> {
    /// The subtype of the violation if it is invalid.
    invalid: ViolationSubtype,
    /// What a message calls it.
    what: &'static str,
    /// The name of the tool or output.
    name: &'a str,
}

impl CheckedData<'_> {
    fn of<'a>(event: &'a Event, definition: &'a Definition) -> Option<CheckedData<'a>> {
        match &event.kind {
            EventKind::ToolProposed(ToolProposed { tool, .. }) => Some(CheckedData {
                invalid: ViolationSubtype::InvalidArguments,
                what: "the arguments of",
                name: tool.as_str(),
            }),
            EventKind::PlanProposed(_) => Some(CheckedData {
                invalid: ViolationSubtype::InvalidPlan,
                what: "the",
                name: "plan",
            }),
            EventKind::OutputProposed(OutputProposed { name, .. }) => Some(CheckedData {
                invalid: ViolationSubtype::InvalidOutput,
                what: "the output",
                name: name.as_deref().unwrap_or_else(|| {
                    definition.schemas.output(None).map_or("output", |only| &only.name)
                }),
            }),
            _ => None,
        }
    }

    /// Returns a key that is equal for later versions of the same data.
    fn key(&self, event: &Event) -> u64 {
        short_hash(&format!("{}\n{}\n{}", event.actor, self.invalid, self.name))
    }
}

impl Guard for SchemaGuard {
    fn decide(&self, input: GuardInput<'_>, answers: &mut GuardAnswers) {
        let Some(written) = CheckedData::of(input.event, input.definition) else {
            return tool_result::decide(input, answers);
        };
        let decoded = decoding_result(input.event, input.facts.decoded.as_ref());
        let attempts = input.definition.schemas.attempts;
        if decoded.errors.is_empty() {
            if !decoded.cleaned.is_empty() || decoded.placeholders {
                let remaining = attempts.repair_max_attempts;
                let Cow::Borrowed(decoded) = decoded else { return };
                answers.repair = Some(RepairReport {
                    attempt: 0,
                    remaining,
                    errors: Vec::new(),
                    cleaned: decoded.cleaned.clone(),
                    placeholders: decoded.placeholders,
                });
                set_cleaned_value(input, decoded, answers);
            }
            return;
        }
        let repairs = &input.state.repairs;
        let attempt = repairs.count(written.key(input.event)).saturating_add(1);
        let total = repairs.asked.saturating_add(1);
        let is_exhausted =
            attempt > attempts.repair_max_attempts || total > attempts.repairs_per_run;
        let remaining = attempts.repair_max_attempts.saturating_sub(attempt);
        answers.add_violation(schema_violation(written, &decoded, is_exhausted));
        if is_exhausted && answers.is_enforcing() {
            answers.stop.get_or_insert_with(|| SessionStop {
                signature: Some(describe_mismatches(&decoded.errors)),
                ..SessionStop::with_code(StopCode::SystemError).with_detail(StopDetail::Schema)
            });
        }
        let remaining = remaining.min(attempts.repairs_per_run.saturating_sub(total));
        answers.repair = Some(RepairReport {
            attempt,
            remaining,
            errors: decoded.errors.clone(),
            cleaned: Vec::new(),
            placeholders: false,
        });
    }

    fn apply(&self, state: &mut SessionState, fold: FoldInput<'_>) {
        let record = fold.record;
        if fold.person_action == Some(crate::event::ControlAction::Reset) {
            state.repairs.reset();
        }
        let Some(written) = CheckedData::of(record.event, fold.definition) else { return };
        let refused = record.verdict.has_enforced_violation_of(&GUARD);
        state.repairs.asked = state.repairs.asked.saturating_add(refused.into());
        state.repairs.record(refused, || written.key(record.event));
    }
}

/// Sets the cleaned value that replaces the raw one.
fn set_cleaned_value(input: GuardInput<'_>, decoded: &DecodedFact, answers: &mut GuardAnswers) {
    match &input.event.kind {
        EventKind::ToolProposed(_) => {
            answers.args = input.proposal.and_then(|proposal| proposal.args).cloned();
        }
        EventKind::PlanProposed(PlanProposed { plan, .. }) => answers.output.clone_from(plan),
        _ => answers.output.clone_from(&decoded.value),
    }
}

/// Returns the decoding result. If the runtime decoded nothing, the text must be JSON as it is.
fn decoding_result<'a>(event: &Event, fact: Option<&'a DecodedFact>) -> Cow<'a, DecodedFact> {
    if let Some(fact) = fact {
        return Cow::Borrowed(fact);
    }
    let problem = match &event.kind {
        EventKind::ToolProposed(ToolProposed { args, .. }) => {
            parse_arguments(args).err().map(|reason| ("a JSON object", reason))
        }
        EventKind::PlanProposed(PlanProposed { plan: None, plan_text: Some(text) }) => {
            check_strict_json(text).map(|reason| ("JSON", reason))
        }
        _ => None,
    };
    let errors = problem.map(|(expected, got)| SchemaMismatch {
        path: String::new(),
        expected: expected.to_string(),
        got,
    });
    Cow::Owned(DecodedFact { errors: errors.into_iter().collect(), ..DecodedFact::default() })
}

fn check_strict_json(text: &Payload) -> Option<String> {
    match text {
        Payload::Inline(text) => parse_strict(text.as_bytes()).err().map(|error| error.to_string()),
        Payload::Elided { elided } => {
            Some(format!("{} bytes of text, too long to check", elided.bytes))
        }
    }
}

fn schema_violation(
    written: CheckedData<'_>,
    decoded: &DecodedFact,
    is_exhausted: bool,
) -> ViolationDraft {
    let CheckedData { what, name, .. } = written;
    let errors = describe_mismatches(&decoded.errors);
    let subtype = if decoded.cut { ViolationSubtype::CutOff } else { written.invalid };
    let verb =
        if decoded.cut { "can't be used, because the text was cut off" } else { "can't be used" };
    let message = format!("{what} `{name}` {verb}: {errors}");
    let correction = match &decoded.example {
        _ if is_exhausted => "no more attempts are left; a person must check it".to_string(),
        _ if decoded.cut => "write less, or write it in several parts".to_string(),
        Some(example) => {
            format!("write it again, for example: {}", shorten_for_message(&example.to_string()))
        }
        None => "write it again as one JSON object".to_string(),
    };
    ViolationDraft {
        guard: GUARD,
        kind: ViolationType::SchemaViolation,
        subtype,
        class: if is_exhausted { ViolationClass::Terminal } else { ViolationClass::Recoverable },
        decision: if is_exhausted { Decision::Stop } else { Decision::Deny },
        message,
        location: Some(name.to_string()),
        correction: Some(correction),
    }
}

/// Lists mismatches in words.
fn describe_mismatches(errors: &[SchemaMismatch]) -> String {
    let words = errors.iter().take(MISMATCHES_SHOWN_MAX).map(|error| {
        let SchemaMismatch { path, expected, got } = error;
        let at = if path.is_empty() { String::new() } else { format!("`{path}`: ") };
        format!("{at}expected {expected}, got {}", shorten_for_message(got))
    });
    let mut text = words.collect::<Vec<_>>().join("; ");
    if let Some(more) = errors.len().checked_sub(MISMATCHES_SHOWN_MAX).filter(|more| *more > 0) {
        text = format!("{text}; and {more} more");
    }
    text
}
