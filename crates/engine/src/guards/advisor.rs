//! The advisor guard: a second model advises an agent whose session is stuck.
//!
//! The runtime asks the models of the advisor one after the other, until one gives an instruction,
//! and reports each answer as an event. An instruction reaches the agent as feedback and ends the
//! pause, as if a person had cleared the blocker. A question spends the budget once, whichever of
//! the models answered it, and also if no answer was of use. A model that could not be reached
//! spends nothing.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{FoldInput, Guard, GuardAnswers, GuardInput, ViolationDraft};
use crate::definition::Definition;
use crate::event::{AdvisorAnswered, EventKind, Payload};
use crate::model_choice::Advisor;
use crate::state::{PauseCause, SessionState, text_prefix};
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
    /// How many models were asked the current question.
    models_asked: u32,
    /// Whether one of them has answered it.
    answered: bool,
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
    /// Returns whether another question may be asked.
    pub(crate) fn has_budget(self, definition: &Definition) -> bool {
        definition.advisor.as_ref().is_some_and(|advisor| self.used < advisor.budget)
    }

    /// Returns the question that the next answer belongs to: the current one, until each model was
    /// asked.
    fn question(self, advisor: &Advisor) -> Self {
        if usize::try_from(self.models_asked).is_ok_and(|asked| asked < advisor.models.len()) {
            return self;
        }
        self.end_question()
    }

    fn end_question(self) -> Self {
        Self { used: self.used, ..Self::default() }
    }

    /// Returns the usage after a model was asked.
    fn after_answer(self, advisor: &Advisor, has_answered: bool) -> Self {
        let question = self.question(advisor);
        let is_first = has_answered && !question.answered;
        Self {
            used: question.used.saturating_add(u32::from(is_first)),
            models_asked: question.models_asked.saturating_add(1),
            answered: question.answered || has_answered,
        }
    }

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
        let usage = input.state.advised;
        let after = input
            .definition
            .advisor
            .as_ref()
            .map_or(usage, |advisor| usage.after_answer(advisor, error.is_none()));
        let (spent, taken) = if let Some(violation) = check_answer(input) {
            // The violation is about the session, not a policy, so every mode enforces it.
            answers.add_enforced_violation(violation);
            (usage.used, SafetyAction::Refused)
        } else if let Some(advice) =
            instruction.as_ref().and_then(|text| build_feedback(input, text))
        {
            answers.feedback.push(advice);
            (after.used, SafetyAction::InjectedInstruction)
        } else {
            (after.used, SafetyAction::NoAnswer)
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
        if let EventKind::AdvisorAnswered(AdvisorAnswered { error, .. }) = &record.event.kind
            && let Some(advisor) = &fold.definition.advisor
            && !has_violation_of(record.verdict, &GUARD)
        {
            state.advised = state.advised.after_answer(advisor, error.is_none());
        }
        if state.paused.is_none() {
            state.advised = state.advised.end_question();
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
    if !input.stuck_cause().is_some_and(PauseCause::takes_advice) {
        let message = "no advisor is needed: this session is not stuck".to_string();
        return refuse(ViolationSubtype::NotStuck, message, "continue without an advisor");
    }
    let question = input.state.advised.question(advisor);
    let (used, budget) = (question.used, advisor.budget);
    if used >= budget && !question.answered {
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
        call_index: input.state.feedback_calls(),
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
