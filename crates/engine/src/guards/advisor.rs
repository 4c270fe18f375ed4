//! The advisor guard: a second model advises an agent whose session is stuck.
//!
//! The runtime asks the advisor and reports its answer as an event. An instruction reaches the
//! agent as feedback and ends the pause, as if a person had cleared the blocker. Every question
//! spends the budget, whether the advisor answered or not.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{FoldInput, Guard, GuardAnswers, GuardInput, ViolationDraft};
use crate::definition::Definition;
use crate::event::{AdvisorAnswered, EventKind, Payload};
use crate::state::{SessionState, text_prefix};
use crate::verdict::{
    Decision, Feedback, GuardName, SafetyAction, SafetyEvent, SafetyKind, Severity, Verdict,
    Violation, ViolationClass, ViolationSubtype, ViolationType,
};

/// The guard name in violations.
const GUARD: GuardName = GuardName::Advisor;

/// The provider name of feedback that comes from an advisor.
const PROVIDER: &str = "advisor";

/// How many bytes of a foreign text the safety log repeats.
pub(super) const DETAIL_BYTES_MAX: usize = 200;

/// How much of the advisor budget a session has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AdvisorUsage {
    used: u32,
}

/// The advisor budget as `jackline status` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AdvisorSummary {
    /// How many questions were asked.
    pub used: u32,
    /// How many questions the definition allows.
    pub budget: u32,
}

impl AdvisorUsage {
    /// Returns the used budget, or `None` if the definition has no advisor.
    pub(crate) fn summary(self, definition: &Definition) -> Option<AdvisorSummary> {
        let advisor = definition.advisor.as_ref()?;
        Some(AdvisorSummary { used: self.used, budget: advisor.budget })
    }
}

pub(crate) struct AdvisorGuard;

impl Guard for AdvisorGuard {
    fn decide(&self, input: GuardInput<'_>, answers: &mut GuardAnswers) {
        let EventKind::AdvisorAnswered(AdvisorAnswered { model, instruction, error }) =
            &input.event.kind
        else {
            return;
        };
        let used = input.state.advised.used;
        let (spent, taken) = if let Some(violation) = check_answer(input) {
            // The violation is about the session, not a policy, so every mode enforces it.
            answers.add_enforced_violation(violation);
            (used, SafetyAction::Refused)
        } else if let Some(advice) =
            instruction.as_ref().and_then(|text| build_feedback(input, text))
        {
            answers.feedback.push(advice);
            (used.saturating_add(1), SafetyAction::InjectedInstruction)
        } else {
            (used.saturating_add(1), SafetyAction::NoAnswer)
        };
        let budget = input.definition.advisor.as_ref().map(|advisor| advisor.budget);
        let shown = |detail: &str| json!(text_prefix(detail, DETAIL_BYTES_MAX));
        let details = [
            ("model", model.as_deref().map(shown)),
            ("budget_used", Some(json!(spent))),
            ("budget", budget.map(|budget| json!(budget))),
            ("error", error.as_ref().map(|error| shown(error.head()))),
        ];
        answers.safety.push(build_safety_event(
            input,
            SafetyKind::OutOfBandAdvisor,
            details,
            taken,
        ));
    }

    fn apply(&self, state: &mut SessionState, fold: FoldInput<'_>) {
        let record = fold.record;
        if matches!(record.event.kind, EventKind::AdvisorAnswered(_))
            && !has_violation_of(record.verdict, &GUARD)
        {
            state.advised.used = state.advised.used.saturating_add(1);
        }
    }
}

/// Returns whether the advisor's instruction reached the agent, which ends a pause.
pub(super) fn has_injected_instruction(verdict: &Verdict) -> bool {
    verdict.safety.iter().any(|event| {
        event.kind == SafetyKind::OutOfBandAdvisor
            && event.action_taken == SafetyAction::InjectedInstruction
    })
}

/// Returns whether `guard` reported a violation, enforced or only observed.
pub(super) fn has_violation_of(verdict: &Verdict, guard: &GuardName) -> bool {
    verdict.violations.iter().any(|violation: &Violation| violation.guard == *guard)
}

/// Builds a safety log event from the details that have a value.
pub(super) fn build_safety_event<const N: usize>(
    input: GuardInput<'_>,
    kind: SafetyKind,
    details: [(&str, Option<Value>); N],
    taken: SafetyAction,
) -> SafetyEvent {
    let present = details.into_iter().filter_map(|(name, value)| Some((name.to_string(), value?)));
    SafetyEvent {
        timestamp: input.clock.now(),
        kind,
        details: present.collect::<BTreeMap<String, Value>>(),
        action_taken: taken,
    }
}

/// Builds the violation for an event that would change nothing.
pub(super) fn no_effect_violation(
    guard: GuardName,
    subtype: ViolationSubtype,
    message: String,
    correction: &str,
) -> ViolationDraft {
    ViolationDraft {
        guard,
        kind: ViolationType::NoEffect,
        subtype,
        class: ViolationClass::Recoverable,
        decision: Decision::Deny,
        message,
        location: None,
        correction: Some(correction.to_string()),
    }
}

/// Returns the reason why an advisor's answer would change nothing.
fn check_answer(input: GuardInput<'_>) -> Option<ViolationDraft> {
    let refuse = |subtype, message, correction: &str| {
        Some(no_effect_violation(GUARD, subtype, message, correction))
    };
    if !input.event.actor.is_main() {
        let message = "an advisor can be asked about the main agent only".to_string();
        return refuse(ViolationSubtype::NotMain, message, "omit `actor`");
    }
    let Some(advisor) = &input.definition.advisor else {
        let message = "the definition configures no advisor".to_string();
        return refuse(
            ViolationSubtype::NoAdvisor,
            message,
            "a person can configure one with the definition key `advisor`",
        );
    };
    if !input.is_stuck() {
        let message = "no advisor is needed: this session is not stuck".to_string();
        return refuse(ViolationSubtype::NotStuck, message, "continue without an advisor");
    }
    let (used, budget) = (input.state.advised.used, advisor.budget);
    if used >= budget {
        let message =
            format!("the advisor budget is used up: {used} of {budget} questions were asked");
        return refuse(
            ViolationSubtype::Budget,
            message,
            "a person must clear the blocker: `jackline clear`",
        );
    }
    None
}

/// Builds the feedback for the agent, cut to the size limit of feedback. Returns `None` for an
/// empty instruction.
fn build_feedback(input: GuardInput<'_>, instruction: &Payload) -> Option<Feedback> {
    let room = input.definition.feedback_bytes_max as usize;
    let text = instruction.head().trim();
    let mut advice = Feedback {
        provider: PROVIDER.to_string(),
        severity: Severity::Warning,
        summary: text.to_string(),
        observations: Vec::new(),
        suggestions: Vec::new(),
        timestamp: input.clock.now(),
        call_index: input.state.invocations.proposed,
        definition: input.definition.name.clone(),
    };
    let is_whole = matches!(instruction, Payload::Inline(_));
    if is_whole && !text.is_empty() && advice.render().len() <= room {
        return Some(advice);
    }
    let text = text_prefix(text, room);
    let cut = |end: usize| format!("{}…", text.get(..end).unwrap_or_default());
    // The rendered size grows with the text, so a binary search finds the longest text that fits.
    let ends: Vec<usize> = text.char_indices().map(|(at, letter)| at + letter.len_utf8()).collect();
    let fitting = ends.partition_point(|end| {
        advice.summary = cut(*end);
        advice.render().len() <= room
    });
    let last = ends.get(fitting.checked_sub(1)?)?;
    advice.summary = cut(*last);
    Some(advice)
}
