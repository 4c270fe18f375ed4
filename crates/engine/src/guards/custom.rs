//! Policies written in Rust. The runtime runs them and records their answers as facts, so a replay
//! does not need the policies.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::protocol::parse_arguments;
use super::{FoldInput, Guard, GuardAnswers, GuardInput, ViolationDraft};
use crate::definition::PolicyRule;
use crate::event::{CallStatus, EventKind, ToolFinished, ToolProposed};
use crate::facts::{CallView, Facts, PolicyFact, Queries, Query};
use crate::state::{PolicyState, SessionState};
use crate::verdict::{Decision, GuardName, ViolationClass, ViolationSubtype, ViolationType};

/// How many bytes a custom policy may store.
pub const POLICY_STATE_BYTES_MAX: usize = 2048;

/// How many custom policies a definition may have.
pub const CUSTOM_POLICIES_MAX: usize = 4;

/// How many bytes custom policies may pass from a call to its result.
pub const CARRY_BYTES_MAX: usize = 256;

/// The stored state of a custom policy. The engine does not interpret it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CustomPolicyState(String);

pub(crate) struct CustomPolicyGuard;

impl Guard for CustomPolicyGuard {
    fn needs(&self, input: GuardInput<'_>, queries: &mut Queries) {
        let (tool, args, finished) = match &input.event.kind {
            EventKind::ToolProposed(ToolProposed { tool, args, .. }) => {
                // Another guard refuses invalid arguments.
                let Ok(args) = parse_arguments(args) else { return };
                (input.definition.resolve_tool(tool.as_str()), args, None)
            }
            EventKind::ToolFinished(ToolFinished {
                status: CallStatus::Ok,
                background: false,
                ..
            }) => {
                let Some(call) = input.state.in_flight.find(input.call_key()) else { return };
                (input.definition.resolve_tool(&call.tool), Cow::Owned(Value::Null), Some(call))
            }
            _ => return,
        };
        for (number, rule) in input.definition.policies_for(tool) {
            let PolicyRule::Custom { name } = rule else { continue };
            let Some(PolicyState::Custom(state)) = input.state.policies.get(number) else {
                continue;
            };
            let Ok(number) = u16::try_from(number) else { continue };
            if input.facts.policies.contains_key(&number) {
                continue;
            }
            let (name, state) = (name.clone(), state.0.clone());
            let carried = finished.and_then(|call| {
                let carried = call.carried.iter().find(|(policy, _)| *policy == number);
                carried.map(|(_, text)| text.clone())
            });
            let args = args.clone().into_owned();
            let call = CallView { tool: tool.name.to_string(), args, carried };
            queries.ask(if finished.is_some() {
                Query::PolicyResult { number, name, state, call }
            } else {
                Query::PolicyCheck { number, name, state, call }
            });
        }
    }

    fn decide(&self, input: GuardInput<'_>, answers: &mut GuardAnswers) {
        let EventKind::ToolProposed(ToolProposed { tool, .. }) = &input.event.kind else { return };
        let tool = input.definition.resolve_tool(tool.as_str());
        for (number, rule) in input.definition.policies_for(tool) {
            let PolicyRule::Custom { name } = rule else { continue };
            let fact = u16::try_from(number).ok().and_then(|n| input.facts.policies.get(&n));
            let violation = match fact {
                Some(PolicyFact::Allowed { .. }) => continue,
                Some(PolicyFact::Denied { reason }) => ViolationDraft {
                    guard: GuardName::Custom,
                    kind: ViolationType::ToolPolicyViolation,
                    subtype: ViolationSubtype::CustomPolicy,
                    class: ViolationClass::Recoverable,
                    decision: Decision::Deny,
                    message: reason.clone().filter(|reason| !reason.is_empty()).unwrap_or_else(
                        || format!("policy `{name}` does not allow `{}`", tool.name),
                    ),
                    location: Some(name.clone()),
                    correction: None,
                },
                Some(PolicyFact::Broken { reason }) => broken_policy(name, reason),
                Some(PolicyFact::State { .. }) => {
                    broken_policy(name, "it answered the wrong query")
                }
                None => broken_policy(name, "it gave no answer"),
            };
            answers.add_violation(violation);
        }
    }

    fn apply(&self, state: &mut SessionState, fold: FoldInput<'_>) {
        let record = fold.record;
        for (number, fact) in &record.facts.policies {
            if let PolicyFact::State { text } = fact
                && let Some(PolicyState::Custom(slot)) =
                    state.policies.get_mut(usize::from(*number))
                && text.len() <= POLICY_STATE_BYTES_MAX
            {
                slot.0.clone_from(text);
            }
        }
    }
}

/// Returns the texts that policies want back with the result of a call, by policy number.
pub(crate) fn carried_texts(facts: &Facts) -> Vec<(u16, String)> {
    let mut room = CARRY_BYTES_MAX;
    let mut carried = Vec::new();
    for (number, fact) in &facts.policies {
        if let PolicyFact::Allowed { carry: Some(text) } = fact
            && text.len() <= room
        {
            room -= text.len();
            carried.push((*number, text.clone()));
        }
    }
    carried
}

/// Builds the denial for a broken policy: a call that cannot be checked must not run.
fn broken_policy(name: &str, reason: &str) -> ViolationDraft {
    ViolationDraft {
        guard: GuardName::Custom,
        kind: ViolationType::GuardFault,
        subtype: ViolationSubtype::CustomPolicyBroken,
        class: ViolationClass::Terminal,
        decision: Decision::Deny,
        message: format!("the guard is broken, not the call: policy `{name}`: {reason}"),
        location: Some(name.to_string()),
        correction: Some(
            "tell the person: they can fix it, or turn the guard off for a while \
                          with `jackline off --for 30m --why …`"
                .to_string(),
        ),
    }
}
