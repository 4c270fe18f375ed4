//! Loops: an agent that repeats its calls without a new result.
//!
//! A [detector](detector::LoopDetector) looks at every finished call of an actor. The reaction
//! grows with the loop. The profile `graded` warns the agent, then pauses, then stops the session.
//! The profile `strict` puts a typed override in force and stops the session before a call that
//! breaks it. Refused calls are counted separately, with the same levels. Only a message of a
//! person resets the counters; a message of the harness does not.

mod blocked_calls;
mod config;
mod detector;
mod loop_state;
#[cfg(test)]
mod model;
mod overrides;
mod reaction;
mod signature;
mod summary;
#[cfg(test)]
mod tests;

pub use config::{
    ChainLevels, CycleLevels, ErrorLevels, GradedLevels, LOOP_PERIOD_MAX, LoopProfile,
    LoopSettings, LoopToolBudget, PollAllowance, SimilarCallLevels, StrictLevels,
};
pub use detector::LoopLevel;
pub use loop_state::WINDOW_MAX;
pub(crate) use loop_state::{LoopState, OpenCallSignature, RecordedLoops};
pub(crate) use summary::loops_summary as summary;
pub use summary::{LoopAt, LoopReport, LoopSummary, LoopsSummary};

use alloc::vec::Vec;

pub(crate) use detector::CallClass;
use detector::{CompletedCall, DetectorResult};
use loop_state::{DetectedLoop, LoopCause, RecordedLoop, ReportedLoop, shorten_call};

use super::advisor::has_injected_instruction;
use super::fallback::is_other_model;
use super::{FoldInput, Guard, GuardAnswers, GuardInput};
use crate::definition::{Definition, ResolvedTool};
use crate::digest::Digest128;
use crate::event::{
    CallStatus, Control, ControlAction, Event, EventKind, PromptSource, PromptSubmitted,
    StopProposed, ToolFinished,
};
use crate::facts::Facts;
use crate::id::ActorId;
use crate::proposal::Proposal;
use crate::state::{
    Actors, InFlightCall, PauseCause, PauseState, SessionClock, SessionState, short_hash,
};
use crate::tool::ToolKind;
use crate::verdict::{Decision, GuardName, SafetyKind, Verdict, Violation};

/// The guard name in violations.
const GUARD: GuardName = GuardName::Loops;

/// The rule name for calls that are refused again and again.
const BLOCKED_RULE: &str = "blocked";

pub(crate) struct LoopGuard;

impl Guard for LoopGuard {
    fn decide(&self, input: GuardInput<'_>, answers: &mut GuardAnswers) {
        match &input.event.kind {
            EventKind::ToolProposed(_) => {
                let Some(proposal) = input.proposal else { return };
                let loops = &input.definition.loops;
                // Most calls are neither refused nor under an override, so the signature is
                // computed only if needed.
                let call = || signature::call_signature(proposal, loops, input.facts.observed.args);
                if !input.state.overrides.is_empty() {
                    overrides::decide(input, proposal, &call(), answers);
                }
                let unreported = unreported_loop(input.state, loops, input.event, proposal);
                let reason = blocked_calls::refusal_reason(&answers.violations);
                let blocked_loop =
                    reason.and_then(|reason| blocked_loop(input, proposal, &call(), reason));
                if let Some(found) = blocked_loop.or(unreported) {
                    let about =
                        reaction::LoopSubject::from_proposal(&input.event.actor, proposal, call());
                    reaction::react(input, &found, &about, answers);
                }
            }
            EventKind::ToolFinished(_) => {
                let Some(call) = input.state.in_flight.find(input.call_key()) else { return };
                let actor = input.state.actors.get(&call.actor);
                let mut looping = actor.map(|actor| actor.looping.clone()).unwrap_or_default();
                let step = complete_call(call, input.event, input.facts, input.clock);
                let Some(found) = record_call(&mut looping, &step, call, &input.definition.loops)
                else {
                    return;
                };
                if looping.should_report(found.level, found.count) {
                    let about = reaction::LoopSubject::from_open_call(call, &step);
                    reaction::react(input, &found, &about, answers);
                }
            }
            _ => {}
        }
    }

    fn apply(&self, state: &mut SessionState, fold: FoldInput<'_>) {
        let record = fold.record;
        let actor = &record.event.actor;
        match &record.event.kind {
            EventKind::ToolProposed(_) => apply_proposed(state, fold),
            EventKind::ToolFinished(_) => apply_finished(state, fold),
            EventKind::PromptSubmitted(PromptSubmitted { source: PromptSource::Human, .. }) => {
                state.actors.reached_by_prompt(actor).for_each(|actor| actor.looping.reset());
                state.overrides.remove_for_prompt(actor);
            }
            // A call that has not returned by now never will. A lost call counts as an outcome,
            // too.
            EventKind::PromptSubmitted(PromptSubmitted {
                source: PromptSource::Harness, ..
            }) => {
                resolve_lost_calls(state, fold, |call| call.actor == *actor);
            }
            EventKind::SessionStarted(_)
            | EventKind::StopProposed(StopProposed { background: 0, .. }) => {
                resolve_lost_calls(state, fold, |call| actor.is_main() || call.actor == *actor);
            }
            EventKind::Control(Control {
                action: ControlAction::ExpireConstraint,
                constraint,
                ..
            }) => {
                state.overrides.end_constraint(constraint.as_deref().unwrap_or_default());
            }
            _ => {}
        }
        // A person who clears a blocker has seen the loop and lets the agent try again. Another
        // model has not repeated anything yet. But after an advisor's instruction the same agent
        // continues, so its repetitions still count.
        let is_advice = has_injected_instruction(record.verdict);
        let is_cleared = fold.person_action == Some(ControlAction::ClearBlocker);
        if is_advice || is_cleared || is_other_model(record) {
            for actor in state.actors.reached_by_prompt(&ActorId::main()) {
                if is_advice {
                    actor.looping.continue_after_advice();
                } else {
                    actor.looping.reset();
                }
            }
        }
    }
}

/// Returns the loop that a repeated refusal makes, if it reaches a level.
fn blocked_loop(
    input: GuardInput<'_>,
    proposal: &Proposal<'_>,
    call: &Digest128,
    reason: [u8; 4],
) -> Option<DetectedLoop> {
    let actor = input.state.actors.get(&input.event.actor);
    let before = actor.map_or(0, |actor| actor.looping.blocked.count(call, reason));
    let count = before.saturating_add(1);
    let is_advised = actor.is_some_and(|actor| actor.looping.advised);
    let level = blocked_calls::refusal_level(count, is_advised, &input.definition.loops)?;
    let shown = shorten_call(signature::format_call(proposal));
    Some(DetectedLoop { level, what: LoopCause::Blocked, count, shown })
}

/// Returns a loop that was detected in a call that never returned, so that the agent was not told
/// yet.
fn unreported_loop(
    state: &SessionState,
    loops: &LoopSettings,
    event: &Event,
    proposal: &Proposal<'_>,
) -> Option<DetectedLoop> {
    let looping = &state.actors.get(&event.actor)?.looping;
    let found = looping.found.clone()?;
    // An override refers to the repeated call, so the report waits for that call.
    let is_same_call = || found.shown == shorten_call(signature::format_call(proposal));
    let fits = loops.profile == LoopProfile::Graded || is_same_call();
    (fits && looping.should_report(found.level, found.count)).then_some(found)
}

/// Records a completed call and returns the loop that it is a part of.
fn record_call(
    looping: &mut LoopState,
    step: &CompletedCall,
    call: &InFlightCall,
    loops: &LoopSettings,
) -> Option<DetectedLoop> {
    let (taken, finding) = match looping.detector.record(step, loops) {
        DetectorResult::Ignored => (false, None),
        DetectorResult::Counted(finding) => (true, finding),
    };
    let found = finding.map(|finding| {
        let (level, what) = (finding.level, LoopCause::Ran(finding.rule));
        let subject = call.opened.coarse.as_ref().map(|subject| &subject.shown);
        let shown = subject.filter(|_| finding.rule == detector::LoopRule::Coarse);
        let shown = shown.unwrap_or(&call.opened.shown).clone();
        DetectedLoop { level, what, count: finding.count, shown }
    });
    let strict_count = match loops.profile {
        LoopProfile::Strict => looping.window.record(step, loops.strict),
        LoopProfile::Graded => 0,
    };
    let found = match found {
        // A hard loop takes precedence over the count of the strict profile.
        Some(found) if found.level >= LoopLevel::Hard => Some(found),
        _ if strict_count > 0 && strict_count >= u32::from(loops.strict.threshold) => {
            Some(DetectedLoop {
                level: LoopLevel::Hard,
                what: LoopCause::Ran(detector::LoopRule::Repeat),
                count: strict_count,
                shown: call.opened.shown.clone(),
            })
        }
        found => found,
    };
    if taken || found.is_some() {
        if found.is_none() {
            looping.told = None;
        }
        looping.found.clone_from(&found);
    }
    found
}

/// Builds the completed call from an open call and its result.
fn complete_call(
    call: &InFlightCall,
    event: &Event,
    facts: &Facts,
    clock: &SessionClock,
) -> CompletedCall {
    let result = facts.observed.result.as_ref();
    let error = result.and_then(|result| result.error);
    let (outcome, failed) = match &event.kind {
        EventKind::ToolFinished(ToolFinished { status, exit_code, background, .. }) => (
            signature::outcome_signature(result, *status, *exit_code, *background),
            error.is_some() || *status != CallStatus::Ok || exit_code.is_some_and(|code| code != 0),
        ),
        // A lost call: its result is unknown, so it does not count as a failure.
        _ => (Digest128::of(b"unresolved"), false),
    };
    CompletedCall {
        call: call.opened.call,
        outcome,
        tool: short_hash(&call.tool),
        coarse: call.opened.coarse.as_ref().map(|subject| subject.hash),
        error,
        failed,
        class: call.opened.class,
        at_ms: clock.elapsed_ms(),
        batch: call.opened.batch,
    }
}

/// Returns what an open call must store to be compared once it is completed.
pub(crate) fn open_call_signature(
    state: &SessionState,
    definition: &Definition,
    proposal: &Proposal<'_>,
    by: &Event,
    written: Option<Digest128>,
) -> OpenCallSignature {
    let loops = &definition.loops;
    let actor = state.actors.get(&by.actor);
    OpenCallSignature {
        call: signature::call_signature(proposal, loops, written),
        coarse: signature::coarse_subject(proposal),
        class: classify_call(proposal, loops),
        batch: actor.map_or(0, |actor| actor.looping.batch),
        shown: shorten_call(signature::format_call(proposal)),
    }
}

/// Classifies a call by its tool. If the command line is one command that counts as a declared
/// tool, that tool decides.
fn classify_call(proposal: &Proposal<'_>, loops: &LoopSettings) -> CallClass {
    let tool = match proposal.recognised.as_slice() {
        [command] if proposal.commands().len() == 1 => ResolvedTool::declared(command.tool),
        _ => proposal.tool,
    };
    let declared = tool.declared;
    if loops.transparent.contains(&tool.kind) || declared.is_some_and(|tool| tool.transparent) {
        return CallClass::Transparent;
    }
    let well_known = || PollAllowance::is_well_known(tool.name).then_some(loops.wait);
    if let Some(poll) = declared.and_then(|tool| tool.poll).or_else(well_known) {
        let PollAllowance { until_changed, max_calls, .. } = poll;
        return CallClass::Poll { until_changed, max_calls, within_ms: poll.within_ms() };
    }
    match tool.kind {
        _ if signature::is_only_waiting(proposal) => {
            CallClass::Wait { max_calls: loops.wait.max_calls, within_ms: loops.wait.within_ms() }
        }
        _ if declared.is_some_and(|tool| tool.read_only) => CallClass::ReadOnly,
        ToolKind::Read | ToolKind::Search | ToolKind::Fetch => CallClass::ReadOnly,
        _ if proposal.tool.kind == ToolKind::Exec => CallClass::Exec,
        _ => CallClass::Other,
    }
}

/// Applies the record of a proposed call.
fn apply_proposed(state: &mut SessionState, fold: FoldInput<'_>) {
    let (record, definition) = (fold.record, fold.definition);
    let Some(proposal) = fold.proposal else { return };
    let (actor, verdict) = (&record.event.actor, record.verdict);
    let written = record.facts.observed.args;
    let call = || signature::call_signature(proposal, &definition.loops, written);
    if !state.overrides.is_empty() {
        if verdict.allows_run() {
            state.overrides.update_after_call(actor, proposal, &call());
        }
        let is_breach = |v: &&Violation| v.guard == GUARD && overrides::is_about_override(v);
        verdict.violations.iter().filter(is_breach).for_each(|v| state.overrides.count_breach(v));
    }
    state.overrides.remove_expired(state.clock.now(), state.epoch);
    let unreported = unreported_loop(state, &definition.loops, record.event, proposal);
    let Some(looping) = state.actors.get_mut(actor).map(|actor| &mut actor.looping) else { return };
    if looping.answered {
        looping.answered = false;
        looping.batch = looping.batch.saturating_add(1);
    }
    let mut count = 0;
    if let Some(reason) = blocked_calls::refusal_reason(&verdict.violations) {
        let call = call();
        looping.blocked.count_refusal(&call, reason);
        count = looping.blocked.count(&call, reason);
    }
    let found = match reported_level(verdict) {
        Some((level, BLOCKED_RULE)) => {
            let shown = shorten_call(signature::format_call(proposal));
            Some(DetectedLoop { level, what: LoopCause::Blocked, count, shown })
        }
        Some((level, _)) => {
            // A broken override is not news about the loop itself.
            if let Some(found) = &unreported {
                looping.told = Some(ReportedLoop { level, count: found.count });
            }
            unreported
        }
        None => None,
    };
    if let Some(found) = found {
        let about = reaction::LoopSubject::from_proposal(actor, proposal, call());
        apply_reaction(state, fold, &found, &about, state.epoch);
    }
}

/// Applies the record of a finished call.
fn apply_finished(state: &mut SessionState, fold: FoldInput<'_>) {
    let (record, definition) = (fold.record, fold.definition);
    let Some(call) = state.in_flight.find(record.call_key(definition)) else { return };
    let step = complete_call(call, record.event, record.facts, &state.clock);
    let Some(found) = note_call(&mut state.actors, fold, call, &step) else { return };
    let Some((level, _)) = reported_level(record.verdict) else { return };
    let call = call.clone();
    let found = DetectedLoop { level, ..found };
    // The finished call may have changed the workspace itself.
    let epoch = state.epoch.saturating_add(call.mutates().into());
    if let Some(actor) = state.actors.get_mut(&call.actor) {
        actor.looping.told = Some(ReportedLoop { level, count: found.count });
    }
    apply_reaction(
        state,
        fold,
        &found,
        &reaction::LoopSubject::from_open_call(&call, &step),
        epoch,
    );
}

/// Resolves open calls that never return. Calls that wait for a person are excluded: they did not
/// run.
fn resolve_lost_calls(
    state: &mut SessionState,
    fold: FoldInput<'_>,
    is_lost: impl Fn(&InFlightCall) -> bool,
) {
    let open_calls = state.in_flight.iter().filter(|call| !call.needs_approval() && is_lost(call));
    let lost: Vec<InFlightCall> = open_calls.cloned().collect();
    lost.iter().for_each(|call| apply_unresolved(state, fold, call));
}

/// Applies a call that will not return any more. The agent is told at its next proposal.
pub(crate) fn apply_unresolved(state: &mut SessionState, fold: FoldInput<'_>, call: &InFlightCall) {
    let step = complete_call(call, fold.record.event, fold.record.facts, &state.clock);
    note_call(&mut state.actors, fold, call, &step);
}

fn note_call(
    actors: &mut Actors,
    fold: FoldInput<'_>,
    call: &InFlightCall,
    step: &CompletedCall,
) -> Option<DetectedLoop> {
    let actor = actors.get_or_insert(&call.actor, fold.record.seq)?;
    actor.looping.answered = true;
    actor.looping.blocked.forget(&step.call);
    record_call(&mut actor.looping, step, call, &fold.definition.loops)
}

/// Returns the level and the rule that the verdict reported.
fn reported_level(verdict: &Verdict) -> Option<(LoopLevel, &str)> {
    verdict.safety.iter().find_map(|event| {
        let level = match event.kind {
            SafetyKind::SoftLoop => LoopLevel::Soft,
            SafetyKind::HardLoop => LoopLevel::Hard,
            SafetyKind::InfiniteLoop => LoopLevel::Infinite,
            _ => return None,
        };
        Some((level, event.details.get("rule")?.as_str()?))
    })
}

/// Applies the recorded reaction to a loop: the pause, the override, and the status entry.
fn apply_reaction(
    state: &mut SessionState,
    fold: FoldInput<'_>,
    found: &DetectedLoop,
    about: &reaction::LoopSubject<'_>,
    epoch: u64,
) {
    let verdict = fold.record.verdict;
    let is_pause = |v: &&Violation| v.guard == GUARD && v.enforced && v.decision == Decision::Pause;
    if let Some(violation) = verdict.violations.iter().find(is_pause)
        && state.paused.is_none()
    {
        state.paused = Some(PauseState::by_guard(PauseCause::Loop, violation.message.clone()));
    }
    let now = state.clock.now();
    let number = state.approvals.next_number();
    for enforcement in [reaction::Enforcement::Enforced, reaction::Enforcement::Observed] {
        let budget = fold.definition.loops.tool_budget;
        let draft = reaction::override_draft(found, about, budget, (now, enforcement));
        if verdict.constraints.contains(&draft.to_constraint(number)) {
            state.approvals.reserve_number();
            state.overrides.add(number, about.actor, draft, epoch);
            break;
        }
    }
    state.findings.push(RecordedLoop { at: now, actor: about.actor.clone(), found: found.clone() });
}
