//! Overrides hold: the next call that disregards one is answered before it runs.

use alloc::format;
use alloc::string::{String, ToString};

use super::answer::{details, safety, stop};
use super::memory::short_form;
use super::step::shown;
use super::{Answers, GUARD, Look};
use crate::definition::Mode;
use crate::digest::Digest128;
use crate::guards::Objection;
use crate::proposal::Proposal;
use crate::state::{Breach, Demand, Wanted};
use crate::verdict::{
    Class, ConstraintKind, Decision, SafetyAction, SafetyKind, Violation, ViolationSubtype,
    ViolationType,
};

/// Answers a call that disregards an override: the repeat that is one too many
/// ends the session, anything else is refused.
pub(super) fn decide(
    look: Look<'_>,
    proposal: &Proposal<'_>,
    call: &Digest128,
    answers: &mut Answers,
) {
    // What a person has permitted goes before what a guard forbids.
    if look.is_permitted() {
        return;
    }
    let (loops, when) = (&look.definition.loops, (look.clock.now(), look.state.epoch));
    let overrides = &look.state.overrides;
    let breached = overrides.breached(&look.event.actor, proposal, call, when);
    let Some((known, breach)) = breached else { return };
    let constraint = known.show();
    let ends = breach == Breach::Repeat
        && known.repeats.saturating_add(1) >= loops.strict.override_retries;
    // One that was only observed holds nothing back, whatever the mode is now.
    let mode = if known.enforced { loops.mode } else { Mode::Observe };
    let shown = short_form(shown(proposal));
    let message = format!("`{shown}` is not let run: {}", constraint.reason);
    let (decision, class, correction) = if ends {
        answers.stop.get_or_insert_with(|| stop(&shown));
        let repeats = u32::from(known.repeats).saturating_add(1);
        let details = details(&look.event.actor, constraint.kind.word(), repeats, &shown);
        let holds = mode == Mode::Enforce && !look.facts.is_off();
        let action = if holds { SafetyAction::Stopped } else { SafetyAction::Observed };
        answers.safety.push(safety(look, SafetyKind::InfiniteLoop, details, action));
        let advice = "a person can open the session anew with `jackline reset`".to_string();
        (Decision::Stop, Class::Terminal, advice)
    } else {
        (Decision::Deny, Class::Recoverable, instead(&known.demand))
    };
    let objection = Objection {
        guard: GUARD,
        kind: ViolationType::Loop,
        subtype: ViolationSubtype::parse(constraint.kind.word()),
        class,
        decision,
        message,
        location: Some(constraint.id),
        correction: Some(correction),
    };
    answers.object_as(objection, mode);
}

/// What passes instead.
fn instead(demand: &Demand) -> String {
    match demand {
        Demand::Forbid(_) => "do something else; a person's message lifts this".to_string(),
        Demand::Widen(_) => "search for something else, or elsewhere".to_string(),
        Demand::Force(Wanted::Kind(kind)) => {
            let known = crate::tool::Kind::ALL.iter().find(|(_, known)| known == kind);
            format!("only a call of kind `{}` passes now", known.map_or("", |(word, _)| word))
        }
        Demand::Force(Wanted::Tool(tool)) => format!("only a call of `{tool}` passes now"),
        Demand::Budget { tool, .. } => format!("go on without `{tool}`"),
    }
}

/// Whether an objection is about an override, and not about a loop itself.
pub(super) fn is_about(violation: &Violation) -> bool {
    let kinds = [
        ConstraintKind::ForbidSignature,
        ConstraintKind::ForceAction,
        ConstraintKind::ToolBudget,
        ConstraintKind::WidenRetrieval,
    ];
    kinds.into_iter().any(|kind| violation.subtype.word() == kind.word())
}
