//! Tools whose effect must not happen twice, such as sending money or posting a message.
//!
//! The guard refuses an identical second call until a person sends a message. The result of the
//! first call does not matter: a call that timed out, failed or never returned may still have had
//! its effect.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{FoldInput, Guard, GuardAnswers, GuardInput, ViolationDraft};
use crate::digest::Digest128;
use crate::event::{EventKind, PromptSource, PromptSubmitted, ToolProposed};
use crate::state::{SessionState, short_hash};
use crate::verdict::{Decision, GuardName, ViolationClass, ViolationSubtype, ViolationType};

/// How many calls are recorded between two messages of a person. The next call is refused, because
/// a repetition could not be detected.
const EFFECT_CALLS_MAX: usize = 256;

/// The calls that may have had an effect since the last message of a person.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordedEffects(Vec<(u64, Digest128)>);

pub(crate) struct EffectGuard;

impl Guard for EffectGuard {
    fn decide(&self, input: GuardInput<'_>, answers: &mut GuardAnswers) {
        let EventKind::ToolProposed(ToolProposed { tool, .. }) = &input.event.kind else { return };
        let tool = input.definition.resolve_tool(tool.as_str());
        let done = &input.state.effects.0;
        let (subtype, message) = match input.facts.observed.args {
            _ if tool.idempotent => return,
            None => (
                ViolationSubtype::UnknownArguments,
                format!(
                    "the arguments of `{}` are unknown, so a repeated call cannot be detected",
                    tool.name
                ),
            ),
            Some(args) if done.contains(&(short_hash(tool.name), args)) => (
                ViolationSubtype::RepeatedEffect,
                format!("`{}` was already called with exactly these arguments", tool.name),
            ),
            Some(_) if done.len() >= EFFECT_CALLS_MAX => (
                ViolationSubtype::TooManyEffects,
                format!(
                    "there were {EFFECT_CALLS_MAX} calls with an effect since the last message of a \
                     person, which is the limit"
                ),
            ),
            Some(_) => return,
        };
        answers.add_violation(ViolationDraft {
            guard: GuardName::Effects,
            kind: ViolationType::ToolPolicyViolation,
            subtype,
            class: ViolationClass::Recoverable,
            decision: Decision::Deny,
            message,
            location: Some(tool.name.to_string()),
            correction: Some(
                "check whether the first call took effect; the next message of a person allows \
                 the call again"
                    .to_string(),
            ),
        });
    }

    fn apply(&self, state: &mut SessionState, fold: FoldInput<'_>) {
        let (definition, record) = (fold.definition, fold.record);
        match &record.event.kind {
            // The client ran a call after asking a person about it.
            EventKind::ToolFinished(_) => {
                let Some(call) = state.in_flight.find(record.call_key(definition)) else { return };
                let tool = definition.resolve_tool(&call.tool);
                let effect = call.args.map(|args| (short_hash(tool.name), args));
                if call.needs_approval() && !tool.idempotent {
                    record_effect(&mut state.effects, effect);
                }
            }
            EventKind::ToolProposed(ToolProposed { tool, .. }) if record.verdict.allows_run() => {
                let tool = definition.resolve_tool(tool.as_str());
                let effect = record.facts.observed.args.map(|args| (short_hash(tool.name), args));
                if !tool.idempotent {
                    record_effect(&mut state.effects, effect);
                }
            }
            EventKind::PromptSubmitted(PromptSubmitted { source: PromptSource::Human, .. })
                if record.event.actor.is_main() =>
            {
                state.effects = RecordedEffects::default();
            }
            _ => {}
        }
    }
}

fn record_effect(effects: &mut RecordedEffects, effect: Option<(u64, Digest128)>) {
    let is_recorded = effect.is_none_or(|effect| effects.0.contains(&effect));
    if !is_recorded && effects.0.len() < EFFECT_CALLS_MAX {
        effects.0.extend(effect);
    }
}
