//! Tools whose effect must not happen twice: sending money, posting a message.
//!
//! An identical second call is refused before it runs, until a person has
//! spoken. It does not matter how the first one ended: a call that timed out,
//! failed or never came back may have done what it does.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{Answers, Fold, Guard, Look, Objection};
use crate::digest::Digest128;
use crate::event::{EventKind, PromptSource, PromptSubmitted, ToolProposed};
use crate::state::{State, short};
use crate::verdict::{Class, Decision, GuardName, ViolationSubtype, ViolationType};

/// How many calls are remembered between two messages of a person. One more is
/// refused: what can't be remembered can't be told from a repetition.
const CALLS_MAX: usize = 256;

/// The calls that may have had their effect since a person last spoke.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Effects(Vec<(u64, Digest128)>);

pub(crate) struct EffectGuard;

impl Guard for EffectGuard {
    fn decide(&self, look: Look<'_>, answers: &mut Answers) {
        let EventKind::ToolProposed(ToolProposed { tool, .. }) = &look.event.kind else { return };
        let tool = look.definition.resolve(tool.as_str());
        let done = &look.state.effects.0;
        let (subtype, message) = match look.facts.observed.args {
            _ if tool.idempotent => return,
            None => (
                ViolationSubtype::UnknownArguments,
                format!("the arguments of `{}` were not seen", tool.name),
            ),
            Some(args) if done.contains(&(short(tool.name), args)) => (
                ViolationSubtype::RepeatedEffect,
                format!("`{}` was called with exactly these arguments before", tool.name),
            ),
            Some(_) if done.len() >= CALLS_MAX => (
                ViolationSubtype::TooManyEffects,
                format!("{CALLS_MAX} calls with an effect since a person last spoke"),
            ),
            Some(_) => return,
        };
        answers.object(Objection {
            guard: GuardName::Effects,
            kind: ViolationType::ToolPolicyViolation,
            subtype,
            class: Class::Recoverable,
            decision: Decision::Deny,
            message,
            location: Some(tool.name.to_string()),
            correction: Some(
                "look whether the first call had its effect; a person's message allows it again"
                    .to_string(),
            ),
        });
    }

    fn apply(&self, state: &mut State, fold: Fold<'_>) {
        let (definition, record) = (fold.definition, fold.record);
        match &record.event.kind {
            // A call that a person let run although it was asked about.
            EventKind::ToolFinished(_) => {
                let Some(call) = state.in_flight.find(record.key(definition)) else { return };
                let tool = definition.resolve(&call.tool);
                let effect = call.args.map(|args| (short(tool.name), args));
                if call.asked && !tool.idempotent {
                    remember(&mut state.effects, effect);
                }
            }
            EventKind::ToolProposed(ToolProposed { tool, .. }) if record.verdict.lets_run() => {
                let tool = definition.resolve(tool.as_str());
                let effect = record.facts.observed.args.map(|args| (short(tool.name), args));
                if !tool.idempotent {
                    remember(&mut state.effects, effect);
                }
            }
            EventKind::PromptSubmitted(PromptSubmitted { source: PromptSource::Human, .. })
                if record.event.actor.is_main() =>
            {
                state.effects = Effects::default();
            }
            _ => {}
        }
    }
}

fn remember(effects: &mut Effects, effect: Option<(u64, Digest128)>) {
    let known = effect.is_none_or(|effect| effects.0.contains(&effect));
    if !known && effects.0.len() < CALLS_MAX {
        effects.0.extend(effect);
    }
}
