//! The life of a session: turns, open calls, epochs, and how it ends.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::definition::Definition;
use crate::event::{
    Action, AttemptEnded, AttemptResult, AttemptStarted, Control, EventKind, PromptSource,
    PromptSubmitted, SessionEnded, SessionStarted, Status, StopProposed, ToolFinished,
    ToolProposed,
};
use crate::guards::advisor::Advised;
use crate::guards::dirty::{Bits, Hidden};
use crate::guards::limits::{exhausted_hard, iterations};
use crate::guards::markers::Marked;
use crate::guards::{Answers, Fold, Look, control, custom, feedback, loops, protocol, reads};
use crate::id::ActorId;
use crate::proposal::{Proposal, Recognised};
use crate::session::initial_policies;
use crate::state::{
    ATTEMPTS_MAX, Asks, Attempt, Call, Changes, Overrides, PauseCause, Paused, Phase, Proof, State,
    TurnResult, UsageTotals, Why,
};
use crate::verdict::{Completion, Decision, Stop, StopCode, StopDetail};

/// How many tools one command line can prove.
const PROVES_MAX: usize = 8;

/// What a person's control, the agent's leaving, and an attempt that is neither done nor
/// undone decide by themselves.
pub(crate) fn decide(look: Look<'_>, answers: &mut Answers) {
    match &look.event.kind {
        EventKind::Control(Control { action: Action::Stop, .. })
            if !control::is_refused(&answers.violations) =>
        {
            // A session has one code; one that has ended keeps its own, and is closed now.
            answers.stop = Some(match &look.state.phase {
                Phase::Ended(ending) => ending.into(),
                _ => Stop::of(StopCode::HumanRequested),
            });
        }
        EventKind::AttemptEnded(AttemptEnded { attempt, result: AttemptResult::Stuck })
            if look.state.attempts.iter().any(|open| open.id == *attempt) =>
        {
            answers.stop = Some(Stop::of(StopCode::SystemError).because(StopDetail::Rollback));
        }
        EventKind::SessionEnded(SessionEnded { failure }) if look.event.actor.is_main() => {
            answers.stop = Some(match failure {
                Some(failure) => Stop::of(StopCode::SystemError).because(*failure),
                None => end_code(look, answers.completion.as_ref()),
            });
        }
        _ => {}
    }
}

/// The one code a session ends with when the agent leaves.
fn end_code(look: Look<'_>, last_check: Option<&Completion>) -> Stop {
    let code = Stop::of;
    match look.state.paused.as_ref().map(|paused| paused.cause) {
        Some(PauseCause::Loop) => return code(StopCode::SystemError).because(StopDetail::Loop),
        Some(PauseCause::NoProgress) => {
            return code(StopCode::Capped).because(StopDetail::Progress);
        }
        Some(PauseCause::Checkpoint) => {
            return code(StopCode::Capped).because(StopDetail::Iterations);
        }
        Some(PauseCause::Person | PauseCause::Protected) => return code(StopCode::HumanRequested),
        None if look.is_paused() => return code(StopCode::HumanRequested),
        None => {}
    }
    if look.state.identity.is_refused() {
        return code(StopCode::SystemError).because(StopDetail::Identity);
    }
    match look.state.turn.result {
        None => code(StopCode::Abandoned),
        Some(TurnResult::Complete) if last_check == Some(&Completion::Complete) => {
            code(StopCode::ObjectiveAchieved)
        }
        Some(TurnResult::Bypassed(reason)) => exhausted_hard(look).map_or_else(
            || code(StopCode::BudgetExceeded).because(reason),
            |reached| reached.stop(),
        ),
        Some(TurnResult::Capped) => code(StopCode::Capped).because(StopDetail::Completion),
        Some(
            TurnResult::Complete
            | TurnResult::Free
            | TurnResult::Incomplete
            | TurnResult::Unverified,
        ) => code(StopCode::NoEvidence),
    }
}

/// What an event changes before the guards see it: turns and who acts.
pub(crate) fn begin(state: &mut State, fold: Fold<'_>) {
    let record = fold.record;
    if let Some(action) = fold.said {
        state.paused = state.paused.take().and_then(|paused| paused.after(action));
    }
    let elapsed_ms = state.clock.elapsed_ms();
    let proposed = matches!(record.event.kind, EventKind::ToolProposed(_));
    if let Some(actor) = state.actors.touch(&record.event.actor, record.seq) {
        actor.calls += u64::from(proposed);
    }
    if !record.event.actor.is_main() {
        // A turn is the main agent's; a sub-agent that is still at work, or
        // told something, neither opens nor reopens one.
        return;
    }
    match &record.event.kind {
        EventKind::PromptSubmitted(PromptSubmitted { source: PromptSource::Human, .. }) => {
            state.turn = state.turn.next();
            state.usage.turn = UsageTotals::default();
            state.spent.begin_turn(elapsed_ms, iterations::ended(state));
            state.paused = None;
        }
        kind if kind.is_of_turn() => {
            if state.turn.number == 0 {
                state.turn = state.turn.next();
            }
            state.turn.result = None;
        }
        _ => {}
    }
}

/// The table of open calls, how calls ended, and the epoch.
pub(crate) fn calls(state: &mut State, fold: Fold<'_>) {
    let Fold { definition, record, .. } = fold;
    match &record.event.kind {
        EventKind::ToolProposed(ToolProposed { call, args, .. }) => {
            state.invocations.proposed += 1;
            let Some(proposal) = fold.proposal else { return };
            let asked = record.verdict.is_enforced(Decision::Ask);
            if record.verdict.lets_run() || asked {
                if let Some(call) = call {
                    state.forget_gone(call);
                    // A call that was asked about is proposed again once a
                    // person has said so.
                    let _ =
                        state.in_flight.take(|open| open.asked && open.id.as_ref() == Some(call));
                }
                let opened = open(proposal, asked, state, fold);
                for oldest in state.in_flight.insert(opened) {
                    loops::unresolved(state, fold, &oldest);
                    unresolved(state, &oldest);
                }
            } else {
                if protocol::parse_arguments(args).is_err() {
                    state.invocations.invalid_arguments += 1;
                } else {
                    state.invocations.denied += 1;
                }
                // A duplicate of an open call must not shadow the open one.
                if let Some(call) = call.as_ref().filter(|call| !state.in_flight.contains(call)) {
                    let mutates = reads::changes(proposal) == Changes::Surely;
                    state.remember_gone(call, Why::Denied, mutates);
                }
            }
        }
        EventKind::ToolFinished(ToolFinished { call, status, exit_code, background, .. }) => {
            let Some(call) = state.in_flight.remove(record.key(definition)) else {
                // One that comes back although nobody expects it has done what
                // it does, unless it was denied and says that it failed.
                if let Some((call, gone)) = call.as_ref().and_then(|c| Some((c, state.gone(c)?))) {
                    let obeyed = gone.why == Why::Denied
                        && matches!(status, Status::Error | Status::Cancelled);
                    if gone.mutates && !obeyed {
                        changed_something(state);
                    }
                    if !background && gone.why == Why::Unresolved {
                        state.forget_gone(call);
                    }
                }
                return;
            };
            if *background {
                unresolved(state, &call);
                return;
            }
            let counter = match status {
                // It came back, and what it ran has failed.
                Status::Ok if exit_code.is_some_and(|code| code != 0) => {
                    &mut state.invocations.failed
                }
                Status::Ok => &mut state.invocations.ok,
                Status::Error => &mut state.invocations.failed,
                Status::Timeout => &mut state.invocations.timed_out,
                Status::Crashed => &mut state.invocations.crashed,
                Status::Cancelled => &mut state.invocations.cancelled,
            };
            *counter += 1;
            touched(state, &call);
        }
        // What has not come back by now may have run, and is never a success. A
        // prompt ends the calls of whom it is given to; when the main agent
        // stops or leaves, everybody's.
        EventKind::PromptSubmitted(_) => {
            let lost = state.in_flight.take(|call| call.actor == record.event.actor);
            lost.iter().for_each(|call| unresolved(state, call));
        }
        EventKind::SessionStarted(_)
        | EventKind::SessionEnded(_)
        | EventKind::StopProposed(StopProposed { background: 0, .. }) => {
            let actor = &record.event.actor;
            let lost = state.in_flight.take(|call| actor.is_main() || call.actor == *actor);
            lost.iter().for_each(|call| unresolved(state, call));
        }
        _ => {}
    }
}

/// A call that may run from now on.
fn open(proposal: &Proposal<'_>, asked: bool, state: &State, fold: Fold<'_>) -> Call {
    let record = fold.record;
    let id = match &record.event.kind {
        EventKind::ToolProposed(ToolProposed { call, .. }) => call.clone(),
        _ => None,
    };
    let last_change = reads::last_change(proposal);
    let number = |known: &Recognised<'_>| {
        let at = fold.definition.tools.iter().position(|tool| core::ptr::eq(tool, known.tool))?;
        let tool = u16::try_from(at).ok().filter(|_| known.proven)?;
        let after = last_change.is_none_or(|change| change < known.command);
        Some(Proof { tool, after })
    };
    let mut proves: Vec<Proof> = proposal.recognised.iter().filter_map(number).collect();
    proves.dedup();
    proves.truncate(PROVES_MAX);
    Call {
        id,
        actor: record.event.actor.clone(),
        tool: proposal.tool.name.to_string(),
        kind: proposal.tool.kind,
        args: record.facts.observed.args,
        asked,
        changes: reads::changes(proposal),
        changed: false,
        files: reads::noted(fold.definition, proposal),
        proves,
        epoch: state.epoch,
        carried: custom::carried(record.facts),
        opened: loops::opened(
            state,
            fold.definition,
            proposal,
            record.event,
            record.facts.observed.args,
        ),
        bits: Bits::of(fold.definition, fold.place, state, proposal),
    }
}

fn unresolved(state: &mut State, call: &Call) {
    let changes = call.mutates() || call.changes_code();
    if call.asked {
        // Nobody said that it may run.
        state.invocations.denied += 1;
        if let Some(id) = &call.id {
            state.remember_gone(id, Why::Unresolved, changes);
        }
        return;
    }
    state.invocations.unresolved += 1;
    if let Some(id) = &call.id {
        state.remember_gone(id, Why::Unresolved, changes);
    }
    touched(state, call);
}

/// A call that changes files makes a new epoch, even one that failed or was
/// broken off: nobody knows how far it came.
fn touched(state: &mut State, call: &Call) {
    state.work += u64::from(call.changes != Changes::Nothing);
    if call.mutates() {
        state.epoch += 1;
        state.saw_change(call.changes_code(), call.bits.docs);
    } else if call.changes_code() {
        state.suspects_change();
    }
    if call.bits.hidden != Hidden::Nothing {
        state.progress.saw_change();
    }
}

/// A change of which nobody knows what it changed.
fn changed_something(state: &mut State) {
    state.epoch += 1;
    state.saw_change(true, false);
}

/// What becomes of the session itself.
pub(crate) fn end(state: &mut State, fold: Fold<'_>) {
    let Fold { definition, record, said, .. } = fold;
    let verdict = record.verdict;
    match &record.event.kind {
        EventKind::SessionStarted(SessionStarted { deadline, .. })
            if record.event.actor.is_main() =>
        {
            if matches!(state.phase, Phase::Ended(_)) {
                state.phase = Phase::Running;
            }
            // The earliest counts: a deadline is an allowance, and only shrinks.
            state.deadline = [state.deadline, *deadline].into_iter().flatten().min();
        }
        EventKind::AttemptStarted(AttemptStarted { attempt }) => {
            // Bounded in every mode, also where the objection is only observed.
            let known = state.attempts.iter().any(|open| open.id == *attempt);
            if verdict.lets_run() && !known && state.attempts.len() < ATTEMPTS_MAX {
                let policies = state.policies.clone();
                let since = record.seq;
                state.attempts.push(Attempt { id: attempt.clone(), policies, since });
            }
        }
        EventKind::AttemptEnded(AttemptEnded { attempt, result }) => {
            let Some(at) = state.attempts.iter().position(|open| open.id == *attempt) else {
                return;
            };
            let open = state.attempts.remove(at);
            if *result != AttemptResult::Commit {
                // Policies forget what a failed attempt earned, and with it end
                // the attempts that began inside. Budgets don't forget: an
                // allowance only ever goes down. Undoing files changes files.
                state.policies = open.policies;
                state.reads.forget_since(open.since);
                state.attempts.truncate(at);
                changed_something(state);
            }
        }
        EventKind::Control(Control { by, why, .. }) => match said {
            Some(Action::Pause) => {
                let (by, why) = (short_text(by.as_deref()), short_text(why.as_deref()));
                let paused = Paused::by_person(by, why);
                state.paused = Some(paused.put_over(state.paused.take()));
            }
            Some(Action::Reset) => reset(definition, state),
            _ => {}
        },
        _ => {}
    }
    let over = verdict.is_enforced(Decision::Stop)
        || said == Some(Action::Stop)
        || matches!(
            record.event.kind,
            EventKind::AttemptEnded(AttemptEnded { result: AttemptResult::Stuck, .. })
        );
    match &verdict.stop {
        Some(stop)
            if matches!(record.event.kind, EventKind::SessionEnded(_))
                && record.event.actor.is_main() =>
        {
            state.phase = Phase::Ended(stop.into());
        }
        Some(stop) if over => state.phase = Phase::Stopped(stop.into()),
        _ => {}
    }
}

/// Opens the session anew: what was used up and earned is forgotten, what was
/// done to the workspace is not.
fn reset(definition: &Definition, state: &mut State) {
    state.phase = Phase::Running;
    state.paused = None;
    state.marked = Marked::default();
    state.deadline = None;
    state.turn = state.turn.next();
    // Iterations are counted anew, so the cap has to begin where they do.
    state.progress.reset(state.epoch);
    state.spent.reset(state.clock.elapsed_ms(), iterations::ended(state));
    state.actors.reset_fills();
    state.usage.reset(state.turn.number);
    state.policies = initial_policies(definition);
    state.reads.clear();
    state.asks = Asks::default();
    state.overrides = Overrides::default();
    state.actors.of_person(&ActorId::main()).for_each(|actor| actor.looping.human());
    state.attempts.clear();
    feedback::reset(&mut state.feedback);
    state.dirty.reset();
    state.advised = Advised::default();
    state.fallback.begin();
}

/// Texts that people give are kept short: the state is bounded.
fn short_text(text: Option<&str>) -> Option<String> {
    text.map(|text| text.chars().take(200).collect())
}
