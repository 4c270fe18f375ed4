//! Results of tools that do not match their schema.
//!
//! The tool has already run, so nothing is denied. The agent is warned not to rely on the result.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::super::{GuardAnswers, GuardInput, shorten_for_message};
use super::describe_mismatches;
use crate::event::EventKind;
use crate::verdict::{Feedback, FeedbackObservation, SchemaMismatch, Severity};

/// The provider name of this guard's feedback.
const PROVIDER: &str = "Schema";

pub(super) fn decide(input: GuardInput<'_>, answers: &mut GuardAnswers) {
    let Some(decoded) = &input.facts.decoded else { return };
    if !matches!(input.event.kind, EventKind::ToolFinished(_)) || decoded.errors.is_empty() {
        return;
    }
    let call = input.state.in_flight.find(input.call_key());
    let tool = call.map_or_else(|| "the tool".to_string(), |call| format!("`{}`", call.tool));
    answers.feedback.push(Feedback {
        provider: PROVIDER.to_string(),
        severity: Severity::Warning,
        summary: format!(
            "The result of {tool} does not match its schema: {}.",
            describe_mismatches(&decoded.errors)
        ),
        observations: decoded.errors.iter().map(mismatch_observation).collect(),
        suggestions: Vec::from([
            "Check the result before you use it, or call the tool in another way.".to_string(),
        ]),
        timestamp: input.clock.now(),
        call_index: input.state.feedback_calls(),
        definition: input.definition.name.clone(),
    });
    answers.invalid_result.clone_from(&decoded.errors);
}

fn mismatch_observation(error: &SchemaMismatch) -> FeedbackObservation {
    let SchemaMismatch { path, expected, got } = error;
    let category = if path.is_empty() { "the whole".to_string() } else { path.clone() };
    let description = format!("expected {expected}, got {}", shorten_for_message(got));
    FeedbackObservation { category, description, evidence: None }
}
