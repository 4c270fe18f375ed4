//! What goes back to an agent whose context was compacted: what holds, and what
//! is still missing, because neither survives a summary for sure.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Standing, feedback, word};
use crate::definition::Checker;
use crate::guards::dirty::clean;
use crate::guards::{Answers, Look};
use crate::state::Override;
use crate::verdict::{ContextLevel, Observed, Severity};

/// The name under which it speaks.
const PROVIDER: &str = "Briefing";

/// What to do where a briefing was written.
const READ_IT: &str = "Read `.jackline/MISSION_BRIEFING.md`, then go on.";

/// Tells the agent what it may have forgotten; nothing where there is nothing.
pub(super) fn tell(look: Look<'_>, now: &Standing, answers: &mut Answers) {
    let observed = |category: &str, description: String| Observed {
        category: category.to_string(),
        description,
        evidence: None,
    };
    let mut observations: Vec<Observed> =
        in_force(look).into_iter().map(|text| observed("in force", text)).collect();
    observations.extend(unmet(look).into_iter().map(|text| observed("unmet", text)));
    let briefed =
        now.level >= ContextLevel::Compact || look.state.actors.fill(&look.event.actor).briefed;
    if observations.is_empty() && !briefed {
        return;
    }
    if now.level >= ContextLevel::Warn
        && !now.outdated
        && let Some(pct) = now.pct
    {
        observations.push(observed("context", format!("{}, {pct} %", word(now.level))));
    }
    let suggestions: &[&str] = if briefed { &[READ_IT] } else { &[] };
    let summary = match observations.as_slice() {
        [] => "The context was compacted.",
        _ => "The context was compacted. This still holds:",
    };
    let mut said = feedback(look, PROVIDER, Severity::Warning, summary.to_string(), suggestions);
    said.observations = observations;
    answers.feedback.push(said);
}

/// What people and guards have put in force.
fn in_force(look: Look<'_>) -> Vec<String> {
    let now = look.clock.now();
    let holds = |expires_at: Option<crate::Timestamp>| expires_at.is_none_or(|at| now < at);
    let overrides = look.state.overrides.binding(now, look.state.epoch).map(Override::show);
    let constraints = look.state.asks.in_force().filter(|it| holds(it.expires_at));
    constraints
        .chain(overrides)
        .map(|it| format!("{} ({}): {}", it.id, it.scope, it.reason))
        .collect()
}

/// What has to be true before the agent may stop, and is not. Guards that know
/// of something add it here.
pub(crate) fn unmet(look: Look<'_>) -> Vec<String> {
    let mut unmet = Vec::new();
    unmet.extend(look.state.paused.as_ref().map(|paused| {
        let why = paused.why.as_deref().unwrap_or("no reason was given");
        format!("the session is paused: {why}")
    }));
    unmet.extend(look.state.turn.missing.clone());
    let demanded = look.definition.completion.as_ref().is_some_and(Checker::wants_clean);
    unmet.extend(clean::check(look).filter(|_| demanded).map(|unclean| unclean.text()));
    unmet.dedup();
    unmet
}
