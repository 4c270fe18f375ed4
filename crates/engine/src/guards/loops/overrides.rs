//! Enforces overrides: a call that breaks one is answered before it runs.

use alloc::format;
use alloc::string::{String, ToString};

use super::loop_state::shorten_call;
use super::reaction::{loop_details, loop_safety_event, loop_stop};
use super::signature::format_call;
use super::{GUARD, GuardAnswers, GuardInput};
use crate::definition::Mode;
use crate::digest::Digest128;
use crate::guards::ViolationDraft;
use crate::proposal::Proposal;
use crate::state::{ForcedAction, OverrideBreach, OverrideDemand};
use crate::verdict::{
    ConstraintKind, Decision, SafetyAction, SafetyKind, Violation, ViolationClass,
    ViolationSubtype, ViolationType,
};

/// Answers a call that breaks an override. One repetition too many stops the session; any other
/// breach is refused.
pub(super) fn decide(
    input: GuardInput<'_>,
    proposal: &Proposal<'_>,
    call: &Digest128,
    answers: &mut GuardAnswers,
) {
    // A permission of a person takes precedence over an override.
    if input.is_permitted() {
        return;
    }
    let (loops, when) = (&input.definition.loops, (input.clock.now(), input.state.epoch));
    let overrides = &input.state.overrides;
    let breached = overrides.find_breach(&input.event.actor, proposal, call, when);
    let Some((active, breach)) = breached else { return };
    let constraint = active.to_constraint();
    let should_stop = breach == OverrideBreach::Repeat
        && active.repeats.saturating_add(1) >= loops.strict.override_retries;
    // An override that was only observed is never enforced, whatever the mode is now.
    let mode = if active.enforced { loops.mode } else { Mode::Observe };
    let shown = shorten_call(format_call(proposal));
    let message = format!("`{shown}` is blocked: {}", constraint.reason);
    let (decision, class, correction) = if should_stop {
        answers.stop.get_or_insert_with(|| loop_stop(&shown));
        let repeats = u32::from(active.repeats).saturating_add(1);
        let details = loop_details(&input.event.actor, constraint.kind.as_str(), repeats, &shown);
        let is_enforced = mode == Mode::Enforce && !input.facts.is_off();
        let action = if is_enforced { SafetyAction::Stopped } else { SafetyAction::Observed };
        answers.safety.push(loop_safety_event(input, SafetyKind::InfiniteLoop, details, action));
        let advice = "a person can reopen the session with `jackline reset`".to_string();
        (Decision::Stop, ViolationClass::Terminal, advice)
    } else {
        (Decision::Deny, ViolationClass::Recoverable, describe_allowed(&active.demand))
    };
    let violation = ViolationDraft {
        guard: GUARD,
        kind: ViolationType::Loop,
        subtype: ViolationSubtype::parse(constraint.kind.as_str()),
        class,
        decision,
        message,
        location: Some(constraint.id),
        correction: Some(correction),
    };
    answers.add_violation_in_mode(violation, mode);
}

/// Returns what is allowed instead.
fn describe_allowed(demand: &OverrideDemand) -> String {
    match demand {
        OverrideDemand::Forbid(_) => {
            "do something else; the next message of a person ends this constraint".to_string()
        }
        OverrideDemand::Widen(_) => "search for something else, or in another place".to_string(),
        OverrideDemand::Force(ForcedAction::Kind(kind)) => {
            let entry = crate::tool::ToolKind::ALL.iter().find(|(_, entry)| entry == kind);
            format!("only a call of kind `{}` is allowed now", entry.map_or("", |(word, _)| word))
        }
        OverrideDemand::Force(ForcedAction::Tool(tool)) => {
            format!("only a call of `{tool}` is allowed now")
        }
        OverrideDemand::Budget { tool, .. } => format!("continue without `{tool}`"),
    }
}

/// Returns whether a violation is about an override and not about a loop itself.
pub(super) fn is_about_override(violation: &Violation) -> bool {
    let kinds = [
        ConstraintKind::ForbidSignature,
        ConstraintKind::ForceAction,
        ConstraintKind::ToolBudget,
        ConstraintKind::WidenRetrieval,
    ];
    kinds.into_iter().any(|kind| violation.subtype.as_str() == kind.as_str())
}
