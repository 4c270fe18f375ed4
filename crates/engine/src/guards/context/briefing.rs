//! The feedback for an agent whose context was compacted: which constraints are in force, and what
//! is still missing. A summary made by a model may lose both.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{ContextStatus, build_feedback, level_word};
use crate::guards::dirty::clean;
use crate::guards::{GuardAnswers, GuardInput};
use crate::state::Override;
use crate::verdict::{ContextLevel, FeedbackObservation, Severity};

/// The provider name of this feedback.
const PROVIDER: &str = "Briefing";

/// The suggestion where a briefing was written.
const READ_IT: &str = "Read `.jackline/MISSION_BRIEFING.md`, then continue.";

/// Tells the agent what it may have forgotten, if there is anything to tell.
pub(super) fn send_briefing(
    input: GuardInput<'_>,
    now: &ContextStatus,
    answers: &mut GuardAnswers,
) {
    let observed = |category: &str, description: String| FeedbackObservation {
        category: category.to_string(),
        description,
        evidence: None,
    };
    let mut observations: Vec<FeedbackObservation> =
        list_in_force(input).into_iter().map(|text| observed("in force", text)).collect();
    observations.extend(list_unmet(input).into_iter().map(|text| observed("unmet", text)));
    let briefed =
        now.level >= ContextLevel::Compact || input.state.actors.fill(&input.event.actor).briefed;
    if observations.is_empty() && !briefed {
        return;
    }
    if now.level >= ContextLevel::Warn
        && !now.outdated
        && let Some(pct) = now.pct
    {
        observations.push(observed("context", format!("{}, {pct} %", level_word(now.level))));
    }
    let suggestions = if briefed { Vec::from([READ_IT.to_string()]) } else { Vec::new() };
    let summary = match observations.as_slice() {
        [] => "The context was compacted.",
        _ => "The context was compacted. This is still in force:",
    };
    let mut briefing =
        build_feedback(input, PROVIDER, Severity::Warning, summary.to_string(), suggestions);
    briefing.observations = observations;
    answers.feedback.push(briefing);
}

/// Lists the constraints that people and guards have put in force.
fn list_in_force(input: GuardInput<'_>) -> Vec<String> {
    let now = input.clock.now();
    let is_in_force = |expires_at: Option<crate::Timestamp>| expires_at.is_none_or(|at| now < at);
    let overrides =
        input.state.overrides.enforced(now, input.state.epoch).map(Override::to_constraint);
    let constraints =
        input.state.approvals.in_force().filter(|constraint| is_in_force(constraint.expires_at));
    constraints
        .chain(overrides)
        .map(|constraint| {
            format!("{} ({}): {}", constraint.id, constraint.scope, constraint.reason)
        })
        .collect()
}

/// Lists what must be true before the agent may stop and is not. A guard that demands something
/// adds it here.
pub(crate) fn list_unmet(input: GuardInput<'_>) -> Vec<String> {
    let mut unmet = Vec::new();
    unmet.extend(input.state.paused.as_ref().map(|paused| {
        let why = paused.why.as_deref().unwrap_or("no reason was given");
        format!("the session is paused: {why}")
    }));
    unmet.extend(input.state.turn.missing.clone());
    let demanded = input.definition.completion.iter();
    let unclean = demanded.flat_map(|demanded| clean::find_unclean(demanded, input));
    unmet.extend(unclean.map(|unclean| unclean.text()));
    unmet.dedup();
    unmet
}
