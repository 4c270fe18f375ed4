//! What a tool gave back, where it is not what the tool promises.
//!
//! The tool has run, so nothing is refused: the agent is told not to rely on it.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::super::{Answers, Look, shortened};
use super::told;
use crate::event::EventKind;
use crate::verdict::{Feedback, Mismatch, Observed, Severity};

/// The name under which the guard speaks.
const PROVIDER: &str = "Schema";

pub(super) fn decide(look: Look<'_>, answers: &mut Answers) {
    let Some(decoded) = &look.facts.decoded else { return };
    if !matches!(look.event.kind, EventKind::ToolFinished(_)) || decoded.errors.is_empty() {
        return;
    }
    let call = look.state.in_flight.find(look.key());
    let tool = call.map_or_else(|| "the tool".to_string(), |call| format!("`{}`", call.tool));
    answers.feedback.push(Feedback {
        provider: PROVIDER.to_string(),
        severity: Severity::Warning,
        summary: format!("What {tool} gave back can't be relied on: {}.", told(&decoded.errors)),
        observations: decoded.errors.iter().map(observed).collect(),
        suggestions: Vec::from([
            "Look at it closely before you use it, or ask the tool otherwise.".to_string(),
        ]),
        timestamp: look.clock.now(),
        call_index: look.state.invocations.proposed,
        definition: look.definition.name.clone(),
    });
    answers.invalid_result.clone_from(&decoded.errors);
}

fn observed(error: &Mismatch) -> Observed {
    let Mismatch { path, expected, got } = error;
    let category = if path.is_empty() { "the whole".to_string() } else { path.clone() };
    let description = format!("expected {expected}, got {}", shortened(got));
    Observed { category, description, evidence: None }
}
