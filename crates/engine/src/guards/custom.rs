//! Policies written in Rust: they run in the runtime, and what they said is a
//! recorded fact, so replay does not need them.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::protocol::parse_arguments;
use super::{Answers, Fold, Guard, Look, Objection};
use crate::definition::PolicyRule;
use crate::event::{EventKind, Status, ToolFinished, ToolProposed};
use crate::facts::{CallView, Facts, PolicyFact, Queries, Query};
use crate::state::{PolicyState, State};
use crate::verdict::{Class, Decision, GuardName, ViolationSubtype, ViolationType};

/// The most a custom policy may remember.
pub const POLICY_BYTES_MAX: usize = 2048;

/// How many custom policies a definition may have.
pub const CUSTOM_POLICIES_MAX: usize = 4;

/// The most custom policies may have carried from a call to its result.
pub const CARRY_BYTES_MAX: usize = 256;

/// What a custom policy remembers; opaque to the engine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CustomState(String);

pub(crate) struct Custom;

impl Guard for Custom {
    fn needs(&self, look: Look<'_>, queries: &mut Queries) {
        let (tool, args, finished) = match &look.event.kind {
            EventKind::ToolProposed(ToolProposed { tool, args, .. }) => {
                // Arguments that are none are refused by another guard.
                let Ok(args) = parse_arguments(args) else { return };
                (look.definition.resolve(tool.as_str()), args, None)
            }
            EventKind::ToolFinished(ToolFinished {
                status: Status::Ok, background: false, ..
            }) => {
                let Some(call) = look.state.in_flight.find(look.key()) else { return };
                (look.definition.resolve(&call.tool), Cow::Owned(Value::Null), Some(call))
            }
            _ => return,
        };
        for (number, rule) in look.definition.governing(tool) {
            let PolicyRule::Custom { name } = rule else { continue };
            let Some(PolicyState::Custom(state)) = look.state.policies.get(number) else {
                continue;
            };
            let Ok(number) = u16::try_from(number) else { continue };
            if look.facts.policies.contains_key(&number) {
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

    fn decide(&self, look: Look<'_>, answers: &mut Answers) {
        let EventKind::ToolProposed(ToolProposed { tool, .. }) = &look.event.kind else { return };
        let tool = look.definition.resolve(tool.as_str());
        for (number, rule) in look.definition.governing(tool) {
            let PolicyRule::Custom { name } = rule else { continue };
            let fact = u16::try_from(number).ok().and_then(|n| look.facts.policies.get(&n));
            let objection = match fact {
                Some(PolicyFact::Allowed { .. }) => continue,
                Some(PolicyFact::Denied { reason }) => Objection {
                    guard: GuardName::Custom,
                    kind: ViolationType::ToolPolicyViolation,
                    subtype: ViolationSubtype::CustomPolicy,
                    class: Class::Recoverable,
                    decision: Decision::Deny,
                    message: reason.clone().filter(|reason| !reason.is_empty()).unwrap_or_else(
                        || format!("policy `{name}` does not allow `{}`", tool.name),
                    ),
                    location: Some(name.clone()),
                    correction: None,
                },
                Some(PolicyFact::Broken { reason }) => broken(name, reason),
                Some(PolicyFact::State { .. }) => broken(name, "it answered another question"),
                None => broken(name, "it gave no answer"),
            };
            answers.object(objection);
        }
    }

    fn apply(&self, state: &mut State, fold: Fold<'_>) {
        let record = fold.record;
        for (number, fact) in &record.facts.policies {
            if let PolicyFact::State { text } = fact
                && let Some(PolicyState::Custom(slot)) =
                    state.policies.get_mut(usize::from(*number))
                && text.len() <= POLICY_BYTES_MAX
            {
                slot.0.clone_from(text);
            }
        }
    }
}

/// What the policies want back with the result of a call, by their number.
pub(crate) fn carried(facts: &Facts) -> Vec<(u16, String)> {
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

/// The guard is broken, not the call; and what can't be checked does not run.
fn broken(name: &str, reason: &str) -> Objection {
    Objection {
        guard: GuardName::Custom,
        kind: ViolationType::GuardFault,
        subtype: ViolationSubtype::CustomPolicyBroken,
        class: Class::Terminal,
        decision: Decision::Deny,
        message: format!("the guard is broken, not the call: policy `{name}`: {reason}"),
        location: Some(name.to_string()),
        correction: Some("tell a person; they can mend it, or pass for a while with `jackline off --for 30m --why …`"
                .to_string(),
        ),
    }
}
