//! A person's decision about one exact call: approval requested, granted, or refused.
//!
//! A grant is a typed constraint, not a text. The same tool with the same arguments in the same
//! directory is allowed, once or for some time, where a rule would ask. A denied call stays denied.

use alloc::format;
use alloc::string::{String, ToString};

use serde_json::Value;

use super::{FoldInput, Guard, GuardAnswers, GuardInput, ViolationDraft};
use crate::digest::Digest128;
use crate::event::{Control, ControlAction, EventKind, ToolProposed};
use crate::proposal::ProposedRun;
use crate::state::{ApprovalAnswer, ApprovalQuestion, CallSignature, SessionState};
use crate::verdict::{
    ConstraintKind, Decision, GuardName, Violation, ViolationClass, ViolationSubtype, ViolationType,
};

pub(crate) struct GrantGuard;

impl Guard for GrantGuard {
    fn decide(&self, input: GuardInput<'_>, answers: &mut GuardAnswers) {
        if let Some(signature) = input.signature()
            && let Some(refusal) = input.state.approvals.refusal_of(signature, input.clock.now())
        {
            let constraint = refusal.to_constraint();
            answers.add_enforced_violation(ViolationDraft {
                guard: GuardName::Grants,
                kind: ViolationType::Refused,
                subtype: ViolationSubtype::RefusedByPerson,
                class: ViolationClass::Recoverable,
                decision: Decision::Deny,
                message: format!("a person refused this exact call: {}", constraint.reason),
                location: Some(constraint.id),
                correction: Some("do the task in another way, or ask the person".to_string()),
            });
        }
        let EventKind::Control(Control { action, call, ask, constraint, .. }) = &input.event.kind
        else {
            return;
        };
        match action {
            ControlAction::Grant | ControlAction::Refuse => match build_constraint(input) {
                Some(answered) => answers.constraints.push(answered.to_constraint()),
                None => {
                    let message = match (ask, call) {
                        (Some(ask), _) => {
                            format!("the question of record {ask} is not waiting for an answer")
                        }
                        (None, Some(call)) => {
                            format!("no question about call `{call}` is waiting for an answer")
                        }
                        (None, None) => "no question is waiting for an answer".to_string(),
                    };
                    answers.add_enforced_violation(no_effect_control(action.as_str(), message));
                }
            },
            ControlAction::Withdraw => {
                let is_open = call
                    .as_ref()
                    .is_some_and(|call| input.state.in_flight.is_asked_in_client(call));
                if !is_open {
                    let name = call.as_ref().map_or("", |call| call.as_str());
                    let message = format!("no client asks a person about call `{name}`");
                    answers.add_enforced_violation(no_effect_control(action.as_str(), message));
                }
            }
            ControlAction::ExpireConstraint => {
                let id = constraint.as_deref().unwrap_or_default();
                let (now, state) = (input.clock.now(), input.state);
                let is_in_force = state.approvals.is_in_force(id, now)
                    || state.overrides.is_in_force(id, now, state.epoch);
                if !is_in_force {
                    let message = format!("no constraint `{id}` is in force");
                    answers.add_enforced_violation(no_effect_control(action.as_str(), message));
                }
            }
            _ => {}
        }
    }

    fn apply(&self, state: &mut SessionState, fold: FoldInput<'_>) {
        let record = fold.record;
        let now = state.clock.now();
        match &record.event.kind {
            EventKind::ToolProposed(ToolProposed { call, .. }) => {
                let Some(signature) = call_signature(fold.proposal, record.facts) else { return };
                let is_refusal = |v: &Violation| v.kind == ViolationType::Refused && v.enforced;
                let refused = record.verdict.violations.iter().any(is_refusal);
                if record.verdict.is_enforced(Decision::Ask) || refused {
                    let question = build_question(fold);
                    state.approvals.add_question(
                        call.as_ref(),
                        signature,
                        (record.seq, now),
                        question,
                    );
                } else if record.verdict.allows_run() {
                    state.approvals.use_up(signature);
                }
                state.approvals.remove_expired(now);
            }
            EventKind::Control(Control {
                action: ControlAction::Grant | ControlAction::Refuse,
                ..
            }) => {
                let input = GuardInput {
                    definition: fold.definition,
                    state,
                    event: record.event,
                    facts: record.facts,
                    clock: &state.clock,
                    place: fold.place,
                    proposal: None,
                };
                if let Some(answered) = build_constraint(input) {
                    state.approvals.record_answer(answered);
                }
            }
            EventKind::Control(Control {
                action: ControlAction::ExpireConstraint,
                constraint,
                ..
            }) => {
                state.approvals.end_constraint(constraint.as_deref().unwrap_or_default());
            }
            _ => {}
        }
    }
}

/// Returns the question that a person is asked about a call.
fn build_question(fold: FoldInput<'_>) -> ApprovalQuestion {
    let verdict = fold.record.verdict;
    let asks = verdict.violations.iter().find(|v| v.decision == Decision::Ask);
    let why = asks.map_or_else(String::new, |v| v.message.clone());
    let in_client = verdict.is_enforced(Decision::Ask)
        && matches!(
            fold.record.event.kind,
            EventKind::ToolProposed(ToolProposed { asks_person: true, .. })
        );
    let Some(proposal) = fold.proposal else {
        return ApprovalQuestion { why, in_client, ..ApprovalQuestion::default() };
    };
    ApprovalQuestion {
        tool: proposal.tool.name.to_string(),
        does: proposal.does().to_string(),
        why,
        in_client,
    }
}

/// Returns the constraint that a person's answer puts in force.
fn build_constraint(input: GuardInput<'_>) -> Option<ApprovalAnswer> {
    let EventKind::Control(Control { action, call, ask, why, seconds, .. }) = &input.event.kind
    else {
        return None;
    };
    let kind = match action {
        ControlAction::Grant => ConstraintKind::PermitSignature,
        _ => ConstraintKind::ForbidSignature,
    };
    let pending = input.state.approvals.pending(call.as_ref(), *ask)?;
    let now = input.clock.now();
    let expires_at = seconds.map(|seconds| now.plus_ms(seconds.saturating_mul(1000)));
    Some(input.state.approvals.constraint_for(pending, kind, why.as_deref(), expires_at))
}

/// Arguments beside a command line in which a model describes the call in its own words.
const DESCRIBING_ARGUMENTS: [&str; 4] = ["description", "explanation", "justification", "reason"];

/// Returns the identity of a call, if its arguments are known. The words in which a model describes
/// a command line do not count: it describes the same command differently each time.
pub(crate) fn call_signature(
    proposal: Option<&crate::proposal::Proposal<'_>>,
    facts: &crate::facts::Facts,
) -> Option<CallSignature> {
    let proposal = proposal?;
    let args = described_command(proposal).or(facts.observed.args)?;
    Some(CallSignature::new(proposal.tool.name, args, &proposal.cwd))
}

/// Returns the digest of the arguments without the description, for a command line that has one.
fn described_command(proposal: &crate::proposal::Proposal<'_>) -> Option<Digest128> {
    if !matches!(proposal.run, ProposedRun::Line(_)) {
        return None;
    }
    let args = proposal.args?.as_object()?;
    let describes = |key: &str| DESCRIBING_ARGUMENTS.contains(&key);
    if !args.keys().any(|key| describes(key)) {
        return None;
    }
    let rest = args.iter().filter(|(key, _)| !describes(key));
    let rest = rest.map(|(key, value)| (key.clone(), value.clone())).collect();
    Some(crate::json::canonical_digest(&Value::Object(rest)))
}

impl GuardInput<'_> {
    /// Returns the signature of this exact call.
    pub(crate) fn signature(self) -> Option<CallSignature> {
        call_signature(self.proposal, self.facts)
    }

    /// Returns whether a person has allowed this exact call. While the client asks the person about
    /// the same call, that answer counts.
    pub(crate) fn is_permitted(self) -> bool {
        let (now, state) = (self.clock.now(), self.state);
        let id = match &self.event.kind {
            EventKind::ToolProposed(ToolProposed { call, .. }) => call.as_ref(),
            _ => None,
        };
        self.signature().is_some_and(|signature| {
            state.approvals.is_permitted(signature, now)
                && !state.in_flight.is_asked_elsewhere(signature, id)
        })
    }
}

fn no_effect_control(word: &str, message: String) -> ViolationDraft {
    ViolationDraft {
        guard: GuardName::Grants,
        kind: ViolationType::Control,
        subtype: ViolationSubtype::NoEffect,
        class: ViolationClass::Recoverable,
        decision: Decision::Deny,
        message,
        location: Some(word.to_string()),
        correction: Some(
            "`jackline pending` lists the questions that wait for an answer, `jackline status` \
             the constraints in force"
                .to_string(),
        ),
    }
}
