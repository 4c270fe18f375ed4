//! Structured output that is valid before anything uses it.
//!
//! What a model wrote is decoded before the event is decided on. Where that
//! failed, the agent is told what was expected where, and may write it again a
//! few times; then the session ends, with what was wrong.

mod config;
mod memory;
mod result;

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Answers, Fold, Guard, Look, Objection, shortened};
use crate::event::{Event, EventKind, OutputProposed, Payload, PlanProposed, ToolProposed};
use crate::facts::DecodedFact;
use crate::json::parse_strict;
use crate::state::{State, short};
use crate::verdict::{
    Class, Decision, GuardName, Mismatch, Repair, Stop, StopCode, StopDetail, ViolationSubtype,
    ViolationType,
};

pub use config::{Attempts, Output, SchemaText, Schemas};
pub(crate) use memory::Repairs;

use super::protocol::parse_arguments;

const GUARD: GuardName = GuardName::Schema;

/// How many mismatches a message tells of; the verdict has all.
const TOLD: usize = 3;

pub(crate) struct SchemaGuard;

/// What is to be valid.
#[derive(Clone)]
struct Written<'a> {
    /// The subtype of an objection to it.
    invalid: ViolationSubtype,
    /// What it is called in a message.
    what: &'static str,
    /// Whose it is: a tool, an output.
    name: &'a str,
}

impl Written<'_> {
    fn of(event: &Event) -> Option<Written<'_>> {
        match &event.kind {
            EventKind::ToolProposed(ToolProposed { tool, .. }) => Some(Written {
                invalid: ViolationSubtype::InvalidArguments,
                what: "the arguments of",
                name: tool.as_str(),
            }),
            EventKind::PlanProposed(_) => {
                Some(Written { invalid: ViolationSubtype::InvalidPlan, what: "the", name: "plan" })
            }
            EventKind::OutputProposed(OutputProposed { name, .. }) => Some(Written {
                invalid: ViolationSubtype::InvalidOutput,
                what: "the output",
                name: name.as_deref().unwrap_or("output"),
            }),
            _ => None,
        }
    }

    /// The same for what is written again.
    fn key(&self, event: &Event) -> u64 {
        short(&format!("{}\n{}\n{}", event.actor, self.invalid, self.name))
    }
}

impl Guard for SchemaGuard {
    fn decide(&self, look: Look<'_>, answers: &mut Answers) {
        let Some(written) = Written::of(look.event) else {
            return result::decide(look, answers);
        };
        let decoded = decoded(look.event, look.facts.decoded.as_ref());
        let attempts = look.definition.schemas.attempts;
        if decoded.errors.is_empty() {
            if !decoded.cleaned.is_empty() || decoded.placeholders {
                let remaining = attempts.repair_max_attempts;
                let Cow::Borrowed(decoded) = decoded else { return };
                answers.repair = Some(Repair {
                    attempt: 0,
                    remaining,
                    errors: Vec::new(),
                    cleaned: decoded.cleaned.clone(),
                    placeholders: decoded.placeholders,
                });
                accepted(look, decoded, answers);
            }
            return;
        }
        let repairs = &look.state.repairs;
        let attempt = repairs.of(written.key(look.event)).saturating_add(1);
        let in_all = repairs.asked.saturating_add(1);
        let is_over = attempt > attempts.repair_max_attempts || in_all > attempts.repairs_per_run;
        let remaining = attempts.repair_max_attempts.saturating_sub(attempt);
        answers.object(objection(written, &decoded, is_over));
        if is_over && answers.enforces() {
            answers.stop.get_or_insert_with(|| Stop {
                signature: Some(told(&decoded.errors)),
                ..Stop::of(StopCode::SystemError).because(StopDetail::Schema)
            });
        }
        let remaining = remaining.min(attempts.repairs_per_run.saturating_sub(in_all));
        answers.repair = Some(Repair {
            attempt,
            remaining,
            errors: decoded.errors.clone(),
            cleaned: Vec::new(),
            placeholders: false,
        });
    }

    fn apply(&self, state: &mut State, fold: Fold<'_>) {
        let record = fold.record;
        if fold.said == Some(crate::event::Action::Reset) {
            state.repairs.forget();
        }
        let Some(written) = Written::of(record.event) else { return };
        let refused = record.verdict.is_refused_by(&GUARD);
        state.repairs.asked = state.repairs.asked.saturating_add(refused.into());
        state.repairs.note(refused, || written.key(record.event));
    }
}

/// What can be used instead of what was written.
fn accepted(look: Look<'_>, decoded: &DecodedFact, answers: &mut Answers) {
    match &look.event.kind {
        EventKind::ToolProposed(_) => {
            answers.args = look.proposal.and_then(|proposal| proposal.args).cloned();
        }
        EventKind::PlanProposed(PlanProposed { plan, .. }) => answers.output.clone_from(plan),
        _ => answers.output.clone_from(&decoded.value),
    }
}

/// What became of what was written. Where nobody decoded it, it has to be JSON
/// as it stands.
fn decoded<'a>(event: &Event, fact: Option<&'a DecodedFact>) -> Cow<'a, DecodedFact> {
    if let Some(fact) = fact {
        return Cow::Borrowed(fact);
    }
    let wrong = match &event.kind {
        EventKind::ToolProposed(ToolProposed { args, .. }) => {
            parse_arguments(args).err().map(|reason| ("a JSON object", reason))
        }
        EventKind::PlanProposed(PlanProposed { plan: None, plan_text: Some(text) }) => {
            strictly(text).map(|reason| ("JSON", reason))
        }
        _ => None,
    };
    let errors = wrong.map(|(expected, got)| Mismatch {
        path: String::new(),
        expected: expected.to_string(),
        got,
    });
    Cow::Owned(DecodedFact { errors: errors.into_iter().collect(), ..DecodedFact::default() })
}

fn strictly(text: &Payload) -> Option<String> {
    match text {
        Payload::Inline(text) => parse_strict(text.as_bytes()).err().map(|error| error.to_string()),
        Payload::Elided { elided } => {
            Some(format!("{} bytes of text, too long to check", elided.bytes))
        }
    }
}

fn objection(written: Written<'_>, decoded: &DecodedFact, is_over: bool) -> Objection {
    let Written { what, name, .. } = written;
    let errors = told(&decoded.errors);
    let subtype = if decoded.cut { ViolationSubtype::CutOff } else { written.invalid };
    let verb = if decoded.cut { "can't be used, and end in the middle" } else { "can't be used" };
    let message = format!("{what} `{name}` {verb}: {errors}");
    let correction = match &decoded.example {
        _ if is_over => "it was asked for often enough; a person has to look at it".to_string(),
        _ if decoded.cut => "write less, or in several parts".to_string(),
        Some(example) => {
            format!("write it again, such as {}", shortened(&example.to_string()))
        }
        None => "write it again as one JSON object".to_string(),
    };
    Objection {
        guard: GUARD,
        kind: ViolationType::SchemaViolation,
        subtype,
        class: if is_over { Class::Terminal } else { Class::Recoverable },
        decision: if is_over { Decision::Stop } else { Decision::Deny },
        message,
        location: Some(name.to_string()),
        correction: Some(correction),
    }
}

/// Mismatches in words.
fn told(errors: &[Mismatch]) -> String {
    let words = errors.iter().take(TOLD).map(|error| {
        let Mismatch { path, expected, got } = error;
        let at = if path.is_empty() { String::new() } else { format!("`{path}`: ") };
        format!("{at}expected {expected}, got {}", shortened(got))
    });
    let mut told = words.collect::<Vec<_>>().join("; ");
    if let Some(more) = errors.len().checked_sub(TOLD).filter(|more| *more > 0) {
        told = format!("{told}; and {more} more");
    }
    told
}
