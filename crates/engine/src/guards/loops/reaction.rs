//! The reactions to a loop: feedback, violations, overrides and safety log events.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::Value;

use super::config::{LoopProfile, LoopToolBudget};
use super::detector::{CompletedCall, LoopLevel, LoopRule};
use super::loop_state::{DetectedLoop, LoopCause};
use super::{GUARD, GuardAnswers, GuardInput};
use crate::definition::Mode;
use crate::digest::Digest128;
use crate::guards::ViolationDraft;
use crate::id::ActorId;
use crate::proposal::Proposal;
use crate::state::{ForcedAction, InFlightCall, OverrideDemand, OverrideDraft};
use crate::time::Timestamp;
use crate::tool::ToolKind;
use crate::verdict::{
    Decision, Feedback, FeedbackObservation, SafetyAction, SafetyEvent, SafetyKind, SessionStop,
    Severity, StopCode, StopDetail, ViolationClass, ViolationSubtype, ViolationType,
};

/// The provider name of loop feedback.
const PROVIDER: &str = "Loop";

/// The call in which a loop was detected.
pub(super) struct LoopSubject<'a> {
    pub(super) actor: &'a ActorId,
    pub(super) call: Digest128,
    pub(super) tool: &'a str,
    pub(super) kind: ToolKind,
    pub(super) failed: bool,
}

impl<'a> LoopSubject<'a> {
    pub(super) fn from_proposal(
        actor: &'a ActorId,
        proposal: &Proposal<'a>,
        call: Digest128,
    ) -> Self {
        Self { actor, call, tool: proposal.tool.name, kind: proposal.tool.kind, failed: true }
    }

    pub(super) fn from_open_call(call: &'a InFlightCall, step: &CompletedCall) -> Self {
        let InFlightCall { actor, tool, kind, .. } = call;
        Self { actor, call: step.call, tool, kind: *kind, failed: step.failed }
    }
}

/// Whether the reaction is enforced or only observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Enforcement {
    Enforced,
    Observed,
}

impl Enforcement {
    pub(super) fn of(input: GuardInput<'_>) -> Self {
        let enforces = input.definition.loops.mode == Mode::Enforce;
        if enforces && !input.facts.is_off() { Self::Enforced } else { Self::Observed }
    }
}

/// Reacts to a loop.
pub(super) fn react(
    input: GuardInput<'_>,
    found: &DetectedLoop,
    about: &LoopSubject<'_>,
    answers: &mut GuardAnswers,
) {
    let loops = &input.definition.loops;
    let enforcement = Enforcement::of(input);
    let (reaction, kind) = match (found.level, loops.profile) {
        (LoopLevel::Soft, _) => (SafetyAction::ContinuedMonitoring, SafetyKind::SoftLoop),
        (LoopLevel::Hard, LoopProfile::Graded) => (SafetyAction::Paused, SafetyKind::HardLoop),
        (LoopLevel::Hard, LoopProfile::Strict) => (SafetyAction::Overridden, SafetyKind::HardLoop),
        (LoopLevel::Infinite, _) => (SafetyAction::Stopped, SafetyKind::InfiniteLoop),
    };
    let action =
        if enforcement == Enforcement::Enforced { reaction } else { SafetyAction::Observed };
    let (rule, shown) = (found.what.as_str(), found.shown.as_str());
    let details = loop_details(about.actor, rule, found.count, shown);
    answers.safety.push(loop_safety_event(input, kind, details, action));
    match (found.level, loops.profile) {
        (LoopLevel::Soft, _) if enforcement == Enforcement::Enforced => {
            answers.feedback.push(loop_feedback(input, found, loop_advice(found)));
        }
        (LoopLevel::Hard, LoopProfile::Graded) => {
            let advice = "end the turn; a person reads the report and continues the session with \
                          `jackline clear`";
            answers
                .add_violation_in_mode(loop_violation(found, Decision::Pause, advice), loops.mode);
        }
        (LoopLevel::Soft, _) => {}
        (LoopLevel::Hard, LoopProfile::Strict) => {
            put_override(input, found, about, answers, enforcement);
        }
        (LoopLevel::Infinite, _) => {
            answers.stop.get_or_insert_with(|| loop_stop(&found.shown));
            let advice = "a person can reopen the session with `jackline reset`";
            answers
                .add_violation_in_mode(loop_violation(found, Decision::Stop, advice), loops.mode);
        }
    }
}

/// Returns the safety log details of a loop.
pub(super) fn loop_details(
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

/// Builds a safety log event.
pub(super) fn loop_safety_event(
    input: GuardInput<'_>,
    kind: SafetyKind,
    details: BTreeMap<String, Value>,
    action_taken: SafetyAction,
) -> SafetyEvent {
    SafetyEvent { timestamp: input.clock.now(), kind, details, action_taken }
}

/// Puts an override in force and tells the agent. An observed override is recorded, but the agent
/// is not told.
fn put_override(
    input: GuardInput<'_>,
    found: &DetectedLoop,
    about: &LoopSubject<'_>,
    answers: &mut GuardAnswers,
    enforcement: Enforcement,
) {
    let now = input.clock.now();
    let budget = input.definition.loops.tool_budget;
    let draft = override_draft(found, about, budget, (now, enforcement));
    if !input.state.overrides.has_demand(about.actor, &draft, now, input.state.epoch) {
        answers.constraints.push(draft.to_constraint(input.state.approvals.next_number()));
    }
    if enforcement == Enforcement::Observed {
        return;
    }
    let advice = match &draft.demand {
        OverrideDemand::Forbid(_) => {
            "do not propose this call again: that would stop the session".to_string()
        }
        OverrideDemand::Widen(_) => {
            "search for something else, or in another place: the same search would stop the session"
                .into()
        }
        OverrideDemand::Force(_) => "read the file first: only a read is allowed now".to_string(),
        OverrideDemand::Budget { tool, left } => {
            let times = if *left == 1 { "time" } else { "times" };
            format!("`{tool}` may be called {left} more {times}; do the task in another way")
        }
    };
    answers.feedback.push(loop_feedback(input, found, advice));
}

/// Returns the stop of a session that is in a loop.
pub(super) fn loop_stop(shown: &str) -> SessionStop {
    let signature = Some(shown.to_string());
    SessionStop {
        signature,
        ..SessionStop::with_code(StopCode::SystemError).with_detail(StopDetail::Loop)
    }
}

/// Returns the override that the strict profile demands for a loop.
pub(super) fn override_draft(
    found: &DetectedLoop,
    about: &LoopSubject<'_>,
    budget: LoopToolBudget,
    (now, enforcement): (Timestamp, Enforcement),
) -> OverrideDraft {
    let (call, mut expires_at) = (about.call, None);
    let demand = match found.what {
        LoopCause::Ran(LoopRule::ErrorStorm) => {
            expires_at = Some(now.plus_ms(u64::from(budget.seconds).saturating_mul(1000)));
            OverrideDemand::Budget { tool: about.tool.to_string(), left: budget.calls }
        }
        LoopCause::Ran(_) if about.kind == ToolKind::Search => OverrideDemand::Widen(call),
        // An edit that fails repeatedly is written from memory, so the file must be read first.
        LoopCause::Ran(_) if about.kind == ToolKind::Edit && about.failed => {
            OverrideDemand::Force(ForcedAction::Kind(ToolKind::Read))
        }
        LoopCause::Ran(_) | LoopCause::Blocked => OverrideDemand::Forbid(call),
    };
    let enforced = enforcement == Enforcement::Enforced;
    OverrideDraft { demand, call, reason: describe_loop(found), expires_at, enforced }
}

fn loop_violation(found: &DetectedLoop, decision: Decision, correction: &str) -> ViolationDraft {
    ViolationDraft {
        guard: GUARD,
        kind: ViolationType::Loop,
        subtype: ViolationSubtype::parse(found.what.as_str()),
        class: if decision == Decision::Stop {
            ViolationClass::Terminal
        } else {
            ViolationClass::Recoverable
        },
        decision,
        message: describe_loop(found),
        location: Some(found.shown.clone()),
        correction: Some(correction.to_string()),
    }
}

/// Describes the loop.
fn describe_loop(found: &DetectedLoop) -> String {
    let DetectedLoop { what, count, shown, .. } = found;
    match what {
        LoopCause::Blocked => format!("`{shown}` was refused {count} times for the same reason"),
        LoopCause::Ran(rule) => match rule {
            LoopRule::Repeat => format!("`{shown}` returned the same result {count} times"),
            LoopRule::Cycle => {
                format!("the same sequence of calls ran {count} times; the last call is `{shown}`")
            }
            LoopRule::Stagnation => {
                format!("{count} calls in a row returned nothing new; the last call is `{shown}`")
            }
            LoopRule::SameFailure => format!("`{shown}` failed {count} times in the same way"),
            LoopRule::SpreadRepeat => {
                format!(
                    "`{shown}` returned the same result {count} times, with other calls in between"
                )
            }
            LoopRule::ErrorStorm => {
                format!("{count} calls in a row failed in the same way; the last call is `{shown}`")
            }
            LoopRule::ChangingResult => {
                format!(
                    "`{shown}` was called {count} times in a row, each time with a different result"
                )
            }
            LoopRule::DuplicateChain => {
                format!("a chain of calls was repeated {count} times; the last call is `{shown}`")
            }
            LoopRule::Coarse => format!("calls like `{shown}` were made {count} times"),
        },
    }
}

fn loop_advice(found: &DetectedLoop) -> String {
    match found.what {
        LoopCause::Blocked => {
            "this call will be refused again: follow the correction of the denial, \
                          or do something else"
        }
        LoopCause::Ran(LoopRule::ErrorStorm | LoopRule::SameFailure) => {
            "find out why it fails before you try again"
        }
        LoopCause::Ran(LoopRule::ChangingResult) => {
            "wait longer between calls, or continue without \
                                                the result"
        }
        LoopCause::Ran(_) => "repeating this will not help: try something else, or ask a person",
    }
    .to_string()
}

fn loop_feedback(input: GuardInput<'_>, found: &DetectedLoop, advice: String) -> Feedback {
    let mut summary = describe_loop(found);
    if let Some(first) = summary.get(..1).map(str::to_ascii_uppercase) {
        summary.replace_range(..1, &first);
    }
    summary.push('.');
    Feedback {
        provider: PROVIDER.to_string(),
        severity: Severity::Warning,
        summary,
        observations: Vec::from([FeedbackObservation {
            category: found.what.as_str().to_string(),
            description: format!("{} times", found.count),
            evidence: Some(found.shown.clone()),
        }]),
        suggestions: Vec::from([advice]),
        timestamp: input.clock.now(),
        call_index: input.state.feedback_calls(),
        definition: input.definition.name.clone(),
    }
}
