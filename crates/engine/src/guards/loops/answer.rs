//! What is said and done about a loop.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::Value;

use super::config::Profile;
use super::detector::{LoopLevel, LoopRule, Step};
use super::memory::{Found, What};
use super::{Answers, GUARD, Look};
use crate::definition::Mode;
use crate::digest::Digest128;
use crate::guards::Objection;
use crate::id::ActorId;
use crate::proposal::Proposal;
use crate::state::{Call, Demand, Draft, Wanted};
use crate::time::Timestamp;
use crate::tool::Kind;
use crate::verdict::{
    Class, Decision, Feedback, Observed, SafetyAction, SafetyEvent, SafetyKind, Severity, Stop,
    StopCode, StopDetail, ViolationSubtype, ViolationType,
};

/// The name under which the guard speaks to the agent.
const PROVIDER: &str = "Loop";

/// How many more calls a tool gets that fails and fails.
const CALLS_LEFT: u32 = 1;

/// How long such an allowance holds: what is down may come back.
const BUDGET_MS: u64 = 10 * 60_000;

/// The call in which a loop shows.
pub(super) struct About<'a> {
    pub(super) actor: &'a ActorId,
    pub(super) call: Digest128,
    pub(super) tool: &'a str,
    pub(super) kind: Kind,
    pub(super) failed: bool,
}

impl<'a> About<'a> {
    pub(super) fn proposed(actor: &'a ActorId, proposal: &Proposal<'a>, call: Digest128) -> Self {
        Self { actor, call, tool: proposal.tool.name, kind: proposal.tool.kind, failed: true }
    }

    pub(super) fn of(call: &'a Call, step: &Step) -> Self {
        let Call { actor, tool, kind, .. } = call;
        Self { actor, call: step.call, tool, kind: *kind, failed: step.failed }
    }
}

/// Whether what the guard says holds, or is only observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    Yes,
    No,
}

impl Holds {
    pub(super) fn of(look: Look<'_>) -> Self {
        let enforces = look.definition.loops.mode == Mode::Enforce;
        if enforces && !look.facts.is_off() { Self::Yes } else { Self::No }
    }
}

/// Answers a loop.
pub(super) fn answer(look: Look<'_>, found: &Found, about: &About<'_>, answers: &mut Answers) {
    let loops = &look.definition.loops;
    let holds = Holds::of(look);
    let (does, kind) = match (found.level, loops.profile) {
        (LoopLevel::Soft, _) => (SafetyAction::ContinuedMonitoring, SafetyKind::SoftLoop),
        (LoopLevel::Hard, Profile::Graded) => (SafetyAction::Paused, SafetyKind::HardLoop),
        (LoopLevel::Hard, Profile::Strict) => (SafetyAction::Overridden, SafetyKind::HardLoop),
        (LoopLevel::Infinite, _) => (SafetyAction::Stopped, SafetyKind::InfiniteLoop),
    };
    let action = if holds == Holds::Yes { does } else { SafetyAction::Observed };
    let (rule, shown) = (found.what.word(), found.shown.as_str());
    let details = details(about.actor, rule, found.count, shown);
    answers.safety.push(safety(look, kind, details, action));
    match (found.level, loops.profile) {
        (LoopLevel::Soft, _) if holds == Holds::Yes => {
            answers.feedback.push(told(look, found, advice(found)));
        }
        (LoopLevel::Hard, Profile::Graded) => {
            let advice = "end the turn; a person reads the report, then `jackline clear` goes on";
            answers.object_as(objection(found, Decision::Pause, advice), loops.mode);
        }
        (LoopLevel::Soft, _) => {}
        (LoopLevel::Hard, Profile::Strict) => overridden(look, found, about, answers, holds),
        (LoopLevel::Infinite, _) => {
            answers.stop.get_or_insert_with(|| stop(&found.shown));
            let advice = "a person can open the session anew with `jackline reset`";
            answers.object_as(objection(found, Decision::Stop, advice), loops.mode);
        }
    }
}

/// What the safety log says of a loop.
pub(super) fn details(
    actor: &ActorId,
    rule: &str,
    count: u32,
    shown: &str,
) -> BTreeMap<String, Value> {
    BTreeMap::from([
        ("actor".to_string(), actor.as_str().into()),
        ("count".to_string(), count.into()),
        ("rule".to_string(), rule.into()),
        ("signature".to_string(), shown.into()),
    ])
}

/// A line of the safety log.
pub(super) fn safety(
    look: Look<'_>,
    kind: SafetyKind,
    details: BTreeMap<String, Value>,
    action_taken: SafetyAction,
) -> SafetyEvent {
    SafetyEvent { timestamp: look.clock.now(), kind, details, action_taken }
}

/// Puts an override in force, and says so. One that is only observed is written
/// down and told to nobody.
fn overridden(
    look: Look<'_>,
    found: &Found,
    about: &About<'_>,
    answers: &mut Answers,
    holds: Holds,
) {
    let now = look.clock.now();
    let draft = draft(found, about, now, holds);
    if !look.state.overrides.holds(about.actor, &draft, now, look.state.epoch) {
        answers.constraints.push(draft.show(look.state.asks.next_number()));
    }
    if holds == Holds::No {
        return;
    }
    let advice = match &draft.demand {
        Demand::Forbid(_) => "do not propose it again: that would end the session".to_string(),
        Demand::Widen(_) => {
            "search for something else, or elsewhere: the same search would end the session".into()
        }
        Demand::Force(_) => "look at the file first: nothing but a read passes now".to_string(),
        Demand::Budget { tool, left } => {
            format!("`{tool}` may be called {left} more time; find another way")
        }
    };
    answers.feedback.push(told(look, found, advice));
}

/// How a session ends that goes round and round.
pub(super) fn stop(shown: &str) -> Stop {
    let signature = Some(shown.to_string());
    Stop { signature, ..Stop::of(StopCode::SystemError).because(StopDetail::Loop) }
}

/// What the strict profile demands because of a loop.
pub(super) fn draft(found: &Found, about: &About<'_>, now: Timestamp, holds: Holds) -> Draft {
    let (call, mut expires_at) = (about.call, None);
    let demand = match found.what {
        What::Ran(LoopRule::ErrorStorm) => {
            expires_at = Some(now.plus_ms(BUDGET_MS));
            Demand::Budget { tool: about.tool.to_string(), left: CALLS_LEFT }
        }
        What::Ran(_) if about.kind == Kind::Search => Demand::Widen(call),
        // An edit that fails again and again is made from memory.
        What::Ran(_) if about.kind == Kind::Edit && about.failed => {
            Demand::Force(Wanted::Kind(Kind::Read))
        }
        What::Ran(_) | What::Blocked => Demand::Forbid(call),
    };
    let enforced = holds == Holds::Yes;
    Draft { demand, call, reason: message(found), expires_at, enforced }
}

fn objection(found: &Found, decision: Decision, correction: &str) -> Objection {
    Objection {
        guard: GUARD,
        kind: ViolationType::Loop,
        subtype: ViolationSubtype::parse(found.what.word()),
        class: if decision == Decision::Stop { Class::Terminal } else { Class::Recoverable },
        decision,
        message: message(found),
        location: Some(found.shown.clone()),
        correction: Some(correction.to_string()),
    }
}

/// What is going on.
fn message(found: &Found) -> String {
    let Found { what, count, shown, .. } = found;
    match what {
        What::Blocked => format!("`{shown}` was refused {count} times for the same reason"),
        What::Ran(rule) => match rule {
            LoopRule::Repeat => format!("`{shown}` brought the same result {count} times"),
            LoopRule::Cycle => {
                format!("the same calls were gone through {count} times, the last is `{shown}`")
            }
            LoopRule::Stagnation => {
                format!("{count} calls in a row brought nothing new, the last is `{shown}`")
            }
            LoopRule::SameFailure => format!("`{shown}` failed {count} times in the same way"),
            LoopRule::ErrorStorm => {
                format!("{count} calls in a row failed in the same way, the last is `{shown}`")
            }
            LoopRule::ChangingResult => {
                format!("`{shown}` was called {count} times in a row, each with another result")
            }
            LoopRule::DuplicateChain => {
                format!("a chain of calls was repeated {count} times, the last is `{shown}`")
            }
            LoopRule::Coarse => format!("calls like `{shown}` were made {count} times"),
        },
    }
}

fn advice(found: &Found) -> String {
    match found.what {
        What::Blocked => "it will be refused again: do what the objection says, or something else",
        What::Ran(LoopRule::ErrorStorm | LoopRule::SameFailure) => {
            "find out why it fails before you try again"
        }
        What::Ran(LoopRule::ChangingResult) => "wait longer between calls, or go on without it",
        What::Ran(_) => "the same again will not help: try something else, or ask a person",
    }
    .to_string()
}

fn told(look: Look<'_>, found: &Found, advice: String) -> Feedback {
    let mut summary = message(found);
    if let Some(first) = summary.get(..1).map(str::to_ascii_uppercase) {
        summary.replace_range(..1, &first);
    }
    summary.push('.');
    Feedback {
        provider: PROVIDER.to_string(),
        severity: Severity::Warning,
        summary,
        observations: Vec::from([Observed {
            category: found.what.word().to_string(),
            description: format!("{} times", found.count),
            evidence: Some(found.shown.clone()),
        }]),
        suggestions: Vec::from([advice]),
        timestamp: look.clock.now(),
        call_index: look.state.invocations.proposed,
        definition: look.definition.name.clone(),
    }
}
