//! A person's word about exactly one call: asked for, granted, or refused.
//!
//! A grant is a typed constraint, not a text: the same tool with the same
//! arguments in the same directory passes, once or for a while, where a rule
//! would ask. What is denied stays denied.

use alloc::format;
use alloc::string::{String, ToString};

use super::{Answers, Fold, Guard, Look, Objection};
use crate::event::{Action, Control, EventKind, ToolProposed};
use crate::state::{Answered, Question, Signature, State};
use crate::verdict::{
    Class, ConstraintKind, Decision, GuardName, Violation, ViolationSubtype, ViolationType,
};

pub(crate) struct Grants;

impl Guard for Grants {
    fn decide(&self, look: Look<'_>, answers: &mut Answers) {
        if let Some(signature) = look.signature()
            && let Some(said) = look.state.asks.forbids(signature, look.clock.now())
        {
            let constraint = said.show();
            answers.insist(Objection {
                guard: GuardName::Grants,
                kind: ViolationType::Refused,
                subtype: ViolationSubtype::RefusedByPerson,
                class: Class::Recoverable,
                decision: Decision::Deny,
                message: format!("a person refused exactly this call: {}", constraint.reason),
                location: Some(constraint.id),
                correction: Some("find another way, or ask the person".to_string()),
            });
        }
        let EventKind::Control(Control { action, call, ask, constraint, .. }) = &look.event.kind
        else {
            return;
        };
        match action {
            Action::Grant | Action::Refuse => match answer(look) {
                Some(answered) => answers.constraints.push(answered.show()),
                None => {
                    let what = match (ask, call) {
                        (Some(ask), _) => {
                            format!("what was asked in record {ask} does not wait for a person")
                        }
                        (None, Some(call)) => format!("nobody was asked about call `{call}`"),
                        (None, None) => "nothing waits for a person".to_string(),
                    };
                    answers.insist(unknown(action.word(), what));
                }
            },
            Action::ExpireConstraint => {
                let id = constraint.as_deref().unwrap_or_default();
                let (now, state) = (look.clock.now(), look.state);
                let known = state.asks.is_in_force(id, now)
                    || state.overrides.is_in_force(id, now, state.epoch);
                if !known {
                    let what = format!("no constraint `{id}` is in force");
                    answers.insist(unknown(action.word(), what));
                }
            }
            _ => {}
        }
    }

    fn apply(&self, state: &mut State, fold: Fold<'_>) {
        let record = fold.record;
        let now = state.clock.now();
        match &record.event.kind {
            EventKind::ToolProposed(ToolProposed { call, .. }) => {
                let Some(signature) = signature(fold.proposal, record.facts) else { return };
                let refuses = |v: &Violation| v.kind == ViolationType::Refused && v.enforced;
                let refused = record.verdict.violations.iter().any(refuses);
                if record.verdict.is_enforced(Decision::Ask) || refused {
                    let question = question(fold);
                    state.asks.ask(call.as_ref(), signature, (record.seq, now), question);
                } else if record.verdict.lets_run() {
                    state.asks.used(signature);
                }
                state.asks.tidy(now);
            }
            EventKind::Control(Control { action: Action::Grant | Action::Refuse, .. }) => {
                let look = Look {
                    definition: fold.definition,
                    state,
                    event: record.event,
                    facts: record.facts,
                    clock: &state.clock,
                    place: fold.place,
                    proposal: None,
                };
                if let Some(answered) = answer(look) {
                    state.asks.settle(answered);
                }
            }
            EventKind::Control(Control {
                action: Action::ExpireConstraint, constraint, ..
            }) => {
                state.asks.expire(constraint.as_deref().unwrap_or_default());
            }
            _ => {}
        }
    }
}

/// What a person is asked about a call.
fn question(fold: Fold<'_>) -> Question {
    let asks = fold.record.verdict.violations.iter().find(|v| v.decision == Decision::Ask);
    let why = asks.map_or_else(String::new, |v| v.message.clone());
    let Some(proposal) = fold.proposal else { return Question { why, ..Question::default() } };
    Question { tool: proposal.tool.name.to_string(), does: proposal.does().to_string(), why }
}

/// What a person's answer puts in force.
fn answer(look: Look<'_>) -> Option<Answered> {
    let EventKind::Control(Control { action, call, ask, why, seconds, .. }) = &look.event.kind
    else {
        return None;
    };
    let kind = match action {
        Action::Grant => ConstraintKind::PermitSignature,
        _ => ConstraintKind::ForbidSignature,
    };
    let pending = look.state.asks.pending(call.as_ref(), *ask)?;
    let now = look.clock.now();
    let expires_at = seconds.map(|seconds| now.plus_ms(seconds.saturating_mul(1000)));
    Some(look.state.asks.answer(pending, kind, why.as_deref(), expires_at))
}

fn signature(
    proposal: Option<&crate::proposal::Proposal<'_>>,
    facts: &crate::facts::Facts,
) -> Option<Signature> {
    let proposal = proposal?;
    Some(Signature::new(proposal.tool.name, facts.observed.args?, &proposal.cwd))
}

impl Look<'_> {
    /// Exactly this call.
    pub(crate) fn signature(self) -> Option<Signature> {
        signature(self.proposal, self.facts)
    }

    /// Whether a person has said that exactly this call may pass.
    pub(crate) fn is_permitted(self) -> bool {
        let now = self.clock.now();
        self.signature().is_some_and(|signature| self.state.asks.permits(signature, now))
    }
}

fn unknown(word: &str, message: String) -> Objection {
    Objection {
        guard: GuardName::Grants,
        kind: ViolationType::Control,
        subtype: ViolationSubtype::NoEffect,
        class: Class::Recoverable,
        decision: Decision::Deny,
        message,
        location: Some(word.to_string()),
        correction: Some(
            "`jackline pending` shows what waits, `jackline status` what is in force".to_string(),
        ),
    }
}
