//! An advisor: somebody else is asked where a session is stuck.
//!
//! Who asked tells what came of it. An instruction goes to the agent as feedback and lifts
//! the pause, as a person does who clears a blocker; every question spends the budget,
//! whether it was answered or not.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Answers, Fold, Guard, Look, Objection};
use crate::definition::Definition;
use crate::event::{AdvisorAnswered, EventKind, Payload};
use crate::state::{State, beginning};
use crate::verdict::{
    Class, Decision, Feedback, GuardName, SafetyAction, SafetyEvent, SafetyKind, Severity, Verdict,
    Violation, ViolationSubtype, ViolationType,
};

/// The name under which the guard objects.
const GUARD: GuardName = GuardName::Advisor;

/// The name under which an advisor speaks to the agent.
const PROVIDER: &str = "advisor";

/// How much of what others say the safety log repeats.
pub(super) const DETAIL_BYTES_MAX: usize = 200;

/// How often an advisor was asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Advised {
    used: u32,
}

/// An advisor in the words of `status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AdvisorSummary {
    /// How often it was asked.
    pub used: u32,
    /// How often it may be.
    pub budget: u32,
}

impl Advised {
    /// What was used of the budget, where there is one.
    pub(crate) fn summary(self, definition: &Definition) -> Option<AdvisorSummary> {
        let advisor = definition.advisor.as_ref()?;
        Some(AdvisorSummary { used: self.used, budget: advisor.budget })
    }
}

pub(crate) struct AdvisorGuard;

impl Guard for AdvisorGuard {
    fn decide(&self, look: Look<'_>, answers: &mut Answers) {
        let EventKind::AdvisorAnswered(AdvisorAnswered { model, instruction, error }) =
            &look.event.kind
        else {
            return;
        };
        let used = look.state.advised.used;
        let (spent, taken) = if let Some(objection) = futile(look) {
            // It is about the session itself, so it holds in every mode.
            answers.insist(objection);
            (used, SafetyAction::Refused)
        } else if let Some(told) = instruction.as_ref().and_then(|said| feedback(look, said)) {
            answers.feedback.push(told);
            (used.saturating_add(1), SafetyAction::InjectedInstruction)
        } else {
            (used.saturating_add(1), SafetyAction::NoAnswer)
        };
        let budget = look.definition.advisor.as_ref().map(|advisor| advisor.budget);
        let shown = |text: &str| json!(beginning(text, DETAIL_BYTES_MAX));
        let details = [
            ("model", model.as_deref().map(shown)),
            ("budget_used", Some(json!(spent))),
            ("budget", budget.map(|budget| json!(budget))),
            ("error", error.as_ref().map(|error| shown(error.head()))),
        ];
        answers.safety.push(line(look, SafetyKind::OutOfBandAdvisor, details, taken));
    }

    fn apply(&self, state: &mut State, fold: Fold<'_>) {
        let record = fold.record;
        if matches!(record.event.kind, EventKind::AdvisorAnswered(_))
            && !objects(record.verdict, &GUARD)
        {
            state.advised.used = state.advised.used.saturating_add(1);
        }
    }
}

/// Whether an instruction was given to the agent, so that it may go on.
pub(super) fn lifts(verdict: &Verdict) -> bool {
    verdict.safety.iter().any(|line| {
        line.kind == SafetyKind::OutOfBandAdvisor
            && line.action_taken == SafetyAction::InjectedInstruction
    })
}

/// Whether a guard objects, also where that only is written down.
pub(super) fn objects(verdict: &Verdict, guard: &GuardName) -> bool {
    verdict.violations.iter().any(|found: &Violation| found.guard == *guard)
}

/// A line of the safety log, without what nobody knows.
pub(super) fn line<const N: usize>(
    look: Look<'_>,
    kind: SafetyKind,
    details: [(&str, Option<Value>); N],
    taken: SafetyAction,
) -> SafetyEvent {
    let known = details.into_iter().filter_map(|(name, value)| Some((name.to_string(), value?)));
    SafetyEvent {
        timestamp: look.clock.now(),
        kind,
        details: known.collect::<BTreeMap<String, Value>>(),
        action_taken: taken,
    }
}

/// An objection to what would change nothing.
pub(super) fn no_effect(
    guard: GuardName,
    subtype: ViolationSubtype,
    message: String,
    correction: &str,
) -> Objection {
    Objection {
        guard,
        kind: ViolationType::NoEffect,
        subtype,
        class: Class::Recoverable,
        decision: Decision::Deny,
        message,
        location: None,
        correction: Some(correction.to_string()),
    }
}

/// Why an answer would change nothing.
fn futile(look: Look<'_>) -> Option<Objection> {
    let object =
        |subtype, message, correction: &str| Some(no_effect(GUARD, subtype, message, correction));
    if !look.event.actor.is_main() {
        let message = "an advisor is asked about the main agent, and about no other".to_string();
        return object(ViolationSubtype::NotMain, message, "leave `actor` out");
    }
    let Some(advisor) = &look.definition.advisor else {
        let message = "the definition has no advisor".to_string();
        return object(
            ViolationSubtype::NoAdvisor,
            message,
            "a person can name one, with `advisor`",
        );
    };
    if !look.is_stuck() {
        let message = "no advisor is needed: this session is not stuck".to_string();
        return object(ViolationSubtype::NotStuck, message, "go on without it");
    }
    let (used, budget) = (look.state.advised.used, advisor.budget);
    if used >= budget {
        let message = format!("the advisor was asked {used} of {budget} times");
        return object(
            ViolationSubtype::Budget,
            message,
            "a person has to clear the blocker: `jackline clear`",
        );
    }
    None
}

/// What the agent is told, cut to the room that feedback has; none where nothing is left.
fn feedback(look: Look<'_>, said: &Payload) -> Option<Feedback> {
    let room = look.definition.feedback_bytes_max as usize;
    let text = said.head().trim();
    let mut told = Feedback {
        provider: PROVIDER.to_string(),
        severity: Severity::Warning,
        summary: text.to_string(),
        observations: Vec::new(),
        suggestions: Vec::new(),
        timestamp: look.clock.now(),
        call_index: look.state.invocations.proposed,
        definition: look.definition.name.clone(),
    };
    let is_whole = matches!(said, Payload::Inline(_));
    if is_whole && !text.is_empty() && told.render().len() <= room {
        return Some(told);
    }
    let text = beginning(text, room);
    let cut = |end: usize| format!("{}…", text.get(..end).unwrap_or_default());
    // The more is kept, the more room it takes, so that the last end can be searched for.
    let ends: Vec<usize> = text.char_indices().map(|(at, letter)| at + letter.len_utf8()).collect();
    let fitting = ends.partition_point(|end| {
        told.summary = cut(*end);
        told.render().len() <= room
    });
    let last = ends.get(fitting.checked_sub(1)?)?;
    told.summary = cut(*last);
    Some(told)
}
