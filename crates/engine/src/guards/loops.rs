//! Loops: an agent that does the same again, and learns nothing from it.
//!
//! Every call that comes back is a step of its actor, and a [detector](detector::Detector)
//! says what it makes of it. What is done about it rises: `graded` tells the
//! agent, pauses, stops; `strict` puts a typed override in force, and the call
//! that disregards it stops the session before it runs. Calls that are not let
//! run climb the same ladder in a ring of their own. Only a person's message
//! starts anew; what a harness says does not.

mod answer;
mod blocked;
mod config;
mod detector;
mod memory;
#[cfg(test)]
mod model;
mod overrides;
mod step;
mod summary;
#[cfg(test)]
mod tests;

pub use config::{Cycle, Errors, Graded, Loops, Poll, Profile, Strict};
pub use detector::LoopLevel;
pub use memory::WINDOW_MAX;
pub(crate) use memory::{Findings, Looping, Opened};
pub(crate) use summary::of as summary;
pub use summary::{LoopAt, LoopNoticed, LoopSummary, LoopsSummary};

use alloc::vec::Vec;

pub(crate) use detector::Class;
use detector::{Noted, Step};
use memory::{Found, Noticed, Told, What, short_form};

use super::{Answers, Fold, Guard, Look};
use crate::definition::{Definition, Resolved};
use crate::digest::Digest128;
use crate::event::{
    Action, Control, Event, EventKind, PromptSource, PromptSubmitted, Status, StopProposed,
    ToolFinished,
};
use crate::facts::Facts;
use crate::id::ActorId;
use crate::proposal::Proposal;
use crate::state::{Actors, Call, Clock, PauseCause, Paused, State, short};
use crate::tool::Kind;
use crate::verdict::{Decision, GuardName, SafetyKind, Verdict, Violation};

/// The name under which the guard objects.
const GUARD: GuardName = GuardName::Loops;

/// The word for calls that are refused again and again.
const BLOCKED: &str = "blocked";

pub(crate) struct LoopGuard;

impl Guard for LoopGuard {
    fn decide(&self, look: Look<'_>, answers: &mut Answers) {
        match &look.event.kind {
            EventKind::ToolProposed(_) => {
                let Some(proposal) = look.proposal else { return };
                let loops = &look.definition.loops;
                // Nearly every call is neither refused nor under an override, and
                // does not need it.
                let call = || step::call_signature(proposal, loops, look.facts.observed.args);
                if !look.state.overrides.is_empty() {
                    overrides::decide(look, proposal, &call(), answers);
                }
                let unsaid = unsaid(look.state, loops, look.event, proposal);
                let reason = blocked::reason(&answers.violations);
                let refused = reason.and_then(|reason| refused(look, proposal, &call(), reason));
                if let Some(found) = refused.or(unsaid) {
                    let about = answer::About::proposed(&look.event.actor, proposal, call());
                    answer::answer(look, &found, &about, answers);
                }
            }
            EventKind::ToolFinished(_) => {
                let Some(call) = look.state.in_flight.find(look.key()) else { return };
                let known = look.state.actors.get(&call.actor);
                let mut looping = known.map(|actor| actor.looping.clone()).unwrap_or_default();
                let step = step_of(call, look.event, look.facts, look.clock);
                let Some(found) = take(&mut looping, &step, call, &look.definition.loops) else {
                    return;
                };
                if looping.is_news(found.level, found.count) {
                    let about = answer::About::of(call, &step);
                    answer::answer(look, &found, &about, answers);
                }
            }
            _ => {}
        }
    }

    fn apply(&self, state: &mut State, fold: Fold<'_>) {
        let record = fold.record;
        let actor = &record.event.actor;
        match &record.event.kind {
            EventKind::ToolProposed(_) => proposed(state, fold),
            EventKind::ToolFinished(_) => finished(state, fold),
            EventKind::PromptSubmitted(PromptSubmitted { source: PromptSource::Human, .. }) => {
                state.actors.of_person(actor).for_each(|actor| actor.looping.human());
                state.overrides.human(actor);
            }
            // Whatever has not come back by now never will, and that is an
            // outcome, too.
            EventKind::PromptSubmitted(PromptSubmitted {
                source: PromptSource::Harness, ..
            }) => {
                lost(state, fold, |call| call.actor == *actor);
            }
            EventKind::SessionStarted(_)
            | EventKind::StopProposed(StopProposed { background: 0, .. }) => {
                lost(state, fold, |call| actor.is_main() || call.actor == *actor);
            }
            EventKind::Control(Control {
                action: Action::ExpireConstraint, constraint, ..
            }) => {
                state.overrides.expire(constraint.as_deref().unwrap_or_default());
            }
            _ => {}
        }
        // Who clears a blocker has seen the loop, and lets the agent try again.
        if fold.said == Some(Action::ClearBlocker) {
            state.actors.of_person(&ActorId::main()).for_each(|actor| actor.looping.human());
        }
    }
}

/// What becomes of a call that is refused again, if that is worth a word.
fn refused(
    look: Look<'_>,
    proposal: &Proposal<'_>,
    call: &Digest128,
    reason: [u8; 4],
) -> Option<Found> {
    let actor = look.state.actors.get(&look.event.actor);
    let before = actor.map_or(0, |actor| actor.looping.blocked.count(call, reason));
    let count = before.saturating_add(1);
    let level = blocked::level(count, &look.definition.loops)?;
    let shown = short_form(step::shown(proposal));
    Some(Found { level, what: What::Blocked, count, shown })
}

/// A loop that showed in a call that never came back: nobody could be told then.
fn unsaid(state: &State, loops: &Loops, event: &Event, proposal: &Proposal<'_>) -> Option<Found> {
    let looping = &state.actors.get(&event.actor)?.looping;
    let found = looping.found.clone()?;
    // An override is about the call that was repeated, so it waits for that one.
    let same = || found.shown == short_form(step::shown(proposal));
    let fits = loops.profile == Profile::Graded || same();
    (fits && looping.is_news(found.level, found.count)).then_some(found)
}

/// Takes a step of an actor, and says what loop it is part of.
fn take(looping: &mut Looping, step: &Step, call: &Call, loops: &Loops) -> Option<Found> {
    let (taken, finding) = match looping.detector.note(step, loops) {
        Noted::PassedOver => (false, None),
        Noted::Taken(finding) => (true, finding),
    };
    let found = finding.map(|finding| {
        let (level, what) = (finding.level, What::Ran(finding.rule));
        Found { level, what, count: finding.count, shown: call.opened.shown.clone() }
    });
    let strictly = match loops.profile {
        Profile::Strict => looping.window.note(step, loops.strict),
        Profile::Graded => 0,
    };
    let found = match found {
        // What the strict profile counts is already past telling.
        Some(found) if found.level >= LoopLevel::Hard => Some(found),
        _ if strictly > 0 && strictly >= u32::from(loops.strict.threshold) => Some(Found {
            level: LoopLevel::Hard,
            what: What::Ran(detector::LoopRule::Repeat),
            count: strictly,
            shown: call.opened.shown.clone(),
        }),
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

/// The step that a call is, now that it has come back.
fn step_of(call: &Call, event: &Event, facts: &Facts, clock: &Clock) -> Step {
    let seen = facts.observed.result.as_ref();
    let error = seen.and_then(|seen| seen.error);
    let (outcome, failed) = match &event.kind {
        EventKind::ToolFinished(ToolFinished { status, exit_code, background, .. }) => (
            step::outcome_signature(seen, *status, *exit_code, *background),
            error.is_some() || *status != Status::Ok || exit_code.is_some_and(|code| code != 0),
        ),
        // It was lost: nobody knows how it ended, so nobody can say it failed.
        _ => (Digest128::of(b"unresolved"), false),
    };
    Step {
        call: call.opened.call,
        outcome,
        tool: short(&call.tool),
        coarse: call.opened.coarse,
        error,
        failed,
        class: call.opened.class,
        at_ms: clock.elapsed_ms(),
        batch: call.opened.batch,
    }
}

/// What an open call has to remember for the step it will be.
pub(crate) fn opened(
    state: &State,
    definition: &Definition,
    proposal: &Proposal<'_>,
    by: &Event,
    written: Option<Digest128>,
) -> Opened {
    let loops = &definition.loops;
    let actor = state.actors.get(&by.actor);
    Opened {
        call: step::call_signature(proposal, loops, written),
        coarse: step::coarse_signature(proposal),
        class: class(proposal, loops),
        batch: actor.map_or(0, |actor| actor.looping.batch),
        shown: short_form(step::shown(proposal)),
    }
}

/// How the repetition of a call is taken: by the tool that it is, also where a
/// command line calls it by another name.
fn class(proposal: &Proposal<'_>, loops: &Loops) -> Class {
    let named = match proposal.recognised.as_slice() {
        [known] if proposal.commands().len() == 1 => Resolved::declared(known.tool),
        _ => proposal.tool,
    };
    let declared = named.declared;
    if loops.transparent.contains(&named.kind) || declared.is_some_and(|tool| tool.transparent) {
        return Class::Transparent;
    }
    let well_known = || Poll::well_known(named.name);
    if let Some(poll) = declared.and_then(|tool| tool.poll).or_else(well_known) {
        let Poll { until_changed, max_calls, .. } = poll;
        return Class::Poll { until_changed, max_calls, within_ms: poll.within_ms() };
    }
    match named.kind {
        _ if step::only_waits(proposal) => {
            Class::Wait { max_calls: Poll::WAIT.max_calls, within_ms: Poll::WAIT.within_ms() }
        }
        _ if declared.is_some_and(|tool| tool.read_only) => Class::ReadOnly,
        Kind::Read | Kind::Search | Kind::Fetch => Class::ReadOnly,
        _ if proposal.tool.kind == Kind::Exec => Class::Exec,
        _ => Class::Other,
    }
}

/// Folds a proposed call.
fn proposed(state: &mut State, fold: Fold<'_>) {
    let (record, definition) = (fold.record, fold.definition);
    let Some(proposal) = fold.proposal else { return };
    let (actor, verdict) = (&record.event.actor, record.verdict);
    let written = record.facts.observed.args;
    let call = || step::call_signature(proposal, &definition.loops, written);
    if !state.overrides.is_empty() {
        if verdict.lets_run() {
            state.overrides.ran(actor, proposal, &call());
        }
        let disregards = |v: &&Violation| v.guard == GUARD && overrides::is_about(v);
        verdict.violations.iter().filter(disregards).for_each(|v| state.overrides.repeated(v));
    }
    state.overrides.tidy(state.clock.now(), state.epoch);
    let unsaid = unsaid(state, &definition.loops, record.event, proposal);
    let Some(looping) = state.actors.get_mut(actor).map(|actor| &mut actor.looping) else { return };
    if looping.answered {
        looping.answered = false;
        looping.batch = looping.batch.saturating_add(1);
    }
    let mut count = 0;
    if let Some(reason) = blocked::reason(&verdict.violations) {
        let call = call();
        looping.blocked.refused(&call, reason);
        count = looping.blocked.count(&call, reason);
    }
    let found = match said(verdict) {
        Some((level, BLOCKED)) => {
            let shown = short_form(step::shown(proposal));
            Some(Found { level, what: What::Blocked, count, shown })
        }
        Some((level, _)) => {
            // That an override was disregarded says nothing new about the loop.
            if let Some(found) = &unsaid {
                looping.told = Some(Told { level, count: found.count });
            }
            unsaid
        }
        None => None,
    };
    if let Some(found) = found {
        let about = answer::About::proposed(actor, proposal, call());
        carry_out(state, fold, &found, &about, state.epoch);
    }
}

/// Folds a call that came back.
fn finished(state: &mut State, fold: Fold<'_>) {
    let (record, definition) = (fold.record, fold.definition);
    let Some(call) = state.in_flight.find(record.key(definition)) else { return };
    let step = step_of(call, record.event, record.facts, &state.clock);
    let Some(found) = note(&mut state.actors, fold, call, &step) else { return };
    let Some((level, _)) = said(record.verdict) else { return };
    let call = call.clone();
    let found = Found { level, ..found };
    // The call that came back may have changed the workspace itself.
    let epoch = state.epoch.saturating_add(call.mutates().into());
    if let Some(actor) = state.actors.get_mut(&call.actor) {
        actor.looping.told = Some(Told { level, count: found.count });
    }
    carry_out(state, fold, &found, &answer::About::of(&call, &step), epoch);
}

/// Folds open calls that never come back, apart from those that nobody let run.
fn lost(state: &mut State, fold: Fold<'_>, is_lost: impl Fn(&Call) -> bool) {
    let open = state.in_flight.iter().filter(|call| !call.asked && is_lost(call));
    let lost: Vec<Call> = open.cloned().collect();
    lost.iter().for_each(|call| unresolved(state, fold, call));
}

/// Folds a call that nobody expects back any more: the next proposal is told.
pub(crate) fn unresolved(state: &mut State, fold: Fold<'_>, call: &Call) {
    let step = step_of(call, fold.record.event, fold.record.facts, &state.clock);
    note(&mut state.actors, fold, call, &step);
}

fn note(actors: &mut Actors, fold: Fold<'_>, call: &Call, step: &Step) -> Option<Found> {
    let actor = actors.touch(&call.actor, fold.record.seq)?;
    actor.looping.answered = true;
    actor.looping.blocked.ran(&step.call);
    take(&mut actor.looping, step, call, &fold.definition.loops)
}

/// How far the guard said that it has gone, and with what.
fn said(verdict: &Verdict) -> Option<(LoopLevel, &str)> {
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

/// Does what the recorded verdict says about a loop.
fn carry_out(
    state: &mut State,
    fold: Fold<'_>,
    found: &Found,
    about: &answer::About<'_>,
    epoch: u64,
) {
    let verdict = fold.record.verdict;
    let holds = |v: &&Violation| v.guard == GUARD && v.enforced && v.decision == Decision::Pause;
    if let Some(violation) = verdict.violations.iter().find(holds)
        && state.paused.is_none()
    {
        state.paused = Some(Paused::by_guard(PauseCause::Loop, violation.message.clone()));
    }
    let now = state.clock.now();
    let number = state.asks.next_number();
    for holds in [answer::Holds::Yes, answer::Holds::No] {
        let draft = answer::draft(found, about, now, holds);
        if verdict.constraints.contains(&draft.show(number)) {
            state.asks.took_number();
            state.overrides.put(number, about.actor, draft, epoch);
            break;
        }
    }
    state.findings.push(Noticed { at: now, actor: about.actor.clone(), found: found.clone() });
}
