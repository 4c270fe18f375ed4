//! Decides about a proposed call that breaks an override, before the call runs.
//!
//! An override is a temporary rule for one actor, for example "not this call again" or "only a read
//! may run". The strict loop profile puts it in force after a loop.

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

/// Adds a violation if the proposed call breaks an override of its actor.
///
/// There are two kinds of breach. A repeat is the same call for which the override was created; for
/// a tool budget, it is any call of the tool above the budget. Every other breach is a different
/// call that the override does not allow, such as an edit while only a read may run.
///
/// `Override::repeats` counts the earlier breaches of both kinds. A repeat stops the session if
/// this number plus one has reached `override_retries`. The agent may not know yet that an override
/// forbids a different call. So such a call stops the session only if this number has reached
/// `override_retries` before it. A breach that does not stop the session is denied.
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
    let (loops, now_and_epoch) = (&input.definition.loops, (input.clock.now(), input.state.epoch));
    let overrides = &input.state.overrides;
    let found_breach = overrides.find_breach(&input.event.actor, proposal, call, now_and_epoch);
    let Some((broken_override, breach)) = found_breach else { return };
    let constraint = broken_override.to_constraint();
    // `repeats` does not include this call: it is updated when the verdict is applied.
    let counted = match breach {
        OverrideBreach::Repeat => broken_override.repeats.saturating_add(1),
        OverrideBreach::Other => broken_override.repeats,
    };
    let should_stop = counted >= loops.strict.override_retries;
    // `enforced` tells whether the loop guard was enforcing when it created the override.
    // `loops.mode` is its mode in the current definition, which may have been reloaded since then.
    // `violation_mode` combines both: an override that began as observed is never enforced.
    let violation_mode = if broken_override.enforced { loops.mode } else { Mode::Observe };
    let shown_call = shorten_call(format_call(proposal));
    let message = format!("`{shown_call}` is blocked: {}", constraint.reason);
    let (decision, class, correction) = if should_stop {
        answers.stop.get_or_insert_with(|| loop_stop(&shown_call));
        let breach_count = u32::from(broken_override.repeats).saturating_add(1);
        let details =
            loop_details(&input.event.actor, constraint.kind.as_str(), breach_count, &shown_call);
        // `is_off` is true while a person has turned all guards off with `jackline off`.
        let is_enforced = violation_mode == Mode::Enforce && !input.facts.is_off();
        let action = if is_enforced { SafetyAction::Stopped } else { SafetyAction::Observed };
        answers.safety.push(loop_safety_event(input, SafetyKind::InfiniteLoop, details, action));
        let advice = "a person can reopen the session with `jackline reset`".to_string();
        (Decision::Stop, ViolationClass::Terminal, advice)
    } else {
        (Decision::Deny, ViolationClass::Recoverable, describe_allowed(&broken_override.demand))
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
    // Lists the violation in the verdict. It blocks the call only in the mode `Enforce`, and only
    // while the guards are not turned off. Otherwise it is recorded as observed.
    answers.add_violation_in_mode(violation, violation_mode);
}

/// Describes what the agent may do instead, for the correction of a denial.
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

/// Returns whether a violation of the loop guard is about a broken override, and not about the loop
/// itself. The caller checks that the violation is from the loop guard.
///
/// The subtype is enough to tell them apart. `decide` sets it to the name of the constraint kind,
/// and violations about a loop have the name of a loop rule. No loop rule has the name of a
/// constraint kind. `PermitSignature` is a person's approval and not an override.
pub(super) fn is_about_override(violation: &Violation) -> bool {
    let kinds = [
        ConstraintKind::ForbidSignature,
        ConstraintKind::ForceAction,
        ConstraintKind::ToolBudget,
        ConstraintKind::WidenRetrieval,
    ];
    kinds.into_iter().any(|kind| violation.subtype.as_str() == kind.as_str())
}
