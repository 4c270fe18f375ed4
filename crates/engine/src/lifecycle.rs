//! The life of a session: turns, open calls, epochs, and how the session ends.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::definition::Definition;
use crate::event::{
    AttemptEnded, AttemptResult, AttemptStarted, CallStatus, Control, ControlAction, EventKind,
    PromptSource, PromptSubmitted, SessionEnded, SessionStarted, StopProposed, ToolFinished,
    ToolProposed,
};
use crate::guards::advisor::AdvisorUsage;
use crate::guards::control_files::PresentControlFiles;
use crate::guards::dirty::{CallBits, HiddenChange};
use crate::guards::grants::call_signature;
use crate::guards::limits::{iterations, reached_hard_limit};
use crate::guards::{
    FoldInput, GuardAnswers, GuardInput, control, custom, feedback, loops, protocol,
    read_before_write,
};
use crate::id::ActorId;
use crate::proposal::{Proposal, RecognisedTool};
use crate::session::initial_policies;
use crate::state::{
    ATTEMPTS_MAX, Approvals, AttemptInProgress, AwaitedApproval, ChangeCertainty, CloseReason,
    InFlightCall, Overrides, PauseCause, PauseState, Phase, SessionState, ToolProof, TurnResult,
    UsageTotals,
};
use crate::verdict::{CompletionResult, Decision, SessionStop, StopCode, StopDetail};

/// How many recognised tools of one command line are stored as proofs.
const PROOFS_MAX: usize = 8;

/// Decides the stop code for a person's control, for the end of the agent process, and for an
/// attempt that could be neither committed nor undone.
pub(crate) fn decide(look: GuardInput<'_>, answers: &mut GuardAnswers) {
    match &look.event.kind {
        EventKind::Control(Control { action: ControlAction::Stop, .. })
            if !control::is_refused(&answers.violations) =>
        {
            // A session has one stop code. A session whose agent left keeps its code, and is now
            // closed.
            answers.stop = Some(match &look.state.phase {
                Phase::Ended(ending) => ending.into(),
                _ => SessionStop::with_code(StopCode::HumanRequested),
            });
        }
        EventKind::AttemptEnded(AttemptEnded { attempt, result: AttemptResult::Stuck })
            if look.state.attempts.iter().any(|open| open.id == *attempt) =>
        {
            answers.stop = Some(
                SessionStop::with_code(StopCode::SystemError).with_detail(StopDetail::Rollback),
            );
        }
        EventKind::SessionEnded(SessionEnded { failure }) if look.event.actor.is_main() => {
            answers.stop = Some(match failure {
                Some(failure) => {
                    SessionStop::with_code(StopCode::SystemError).with_detail(*failure)
                }
                None => end_code(look, answers.completion.as_ref()),
            });
        }
        _ => {}
    }
}

/// The stop code of a session whose agent leaves.
fn end_code(look: GuardInput<'_>, last_check: Option<&CompletionResult>) -> SessionStop {
    let code = SessionStop::with_code;
    match look.state.paused.as_ref().map(|paused| paused.cause) {
        Some(PauseCause::Loop) => return code(StopCode::SystemError).with_detail(StopDetail::Loop),
        Some(PauseCause::NoProgress) => {
            return code(StopCode::Capped).with_detail(StopDetail::Progress);
        }
        Some(PauseCause::StopEvents | PauseCause::Verification | PauseCause::BrokenCheck) => {
            return code(StopCode::Capped).with_detail(StopDetail::Completion);
        }
        Some(PauseCause::Context) => {
            return code(StopCode::SystemError).with_detail(StopDetail::Compaction);
        }
        Some(PauseCause::Checkpoint) => {
            return code(StopCode::Capped).with_detail(StopDetail::Iterations);
        }
        Some(PauseCause::Person | PauseCause::Protected) => return code(StopCode::HumanRequested),
        None if look.is_paused() => return code(StopCode::HumanRequested),
        None => {}
    }
    if look.state.identity.is_refused() {
        return code(StopCode::SystemError).with_detail(StopDetail::Identity);
    }
    match look.state.turn.result {
        None => code(StopCode::Interrupted),
        Some(TurnResult::Complete) if last_check == Some(&CompletionResult::Complete) => {
            code(StopCode::ObjectiveAchieved)
        }
        Some(TurnResult::Bypassed(reason)) => reached_hard_limit(look).map_or_else(
            || code(StopCode::BudgetExceeded).with_detail(reason),
            |reached| reached.stop(),
        ),
        Some(TurnResult::Capped) => code(StopCode::Capped).with_detail(StopDetail::Completion),
        Some(TurnResult::Incomplete | TurnResult::Unverified) => {
            code(StopCode::NoEvidence).with_detail(StopDetail::Completion)
        }
        // The files may have changed since the check passed.
        Some(TurnResult::Complete) if last_check.is_some() => {
            code(StopCode::NoEvidence).with_detail(StopDetail::Completion)
        }
        Some(TurnResult::Complete | TurnResult::Unchecked) => code(StopCode::NoEvidence),
    }
}

/// Applies an event's effects on turns and actors. This runs before the guards see the event.
pub(crate) fn apply_turn(state: &mut SessionState, fold: FoldInput<'_>) {
    let record = fold.record;
    if let Some(action) = fold.person_action {
        state.paused = state.paused.take().and_then(|paused| paused.after_action(action));
    }
    let elapsed_ms = state.clock.elapsed_ms();
    let proposed = matches!(record.event.kind, EventKind::ToolProposed(_));
    if let Some(actor) = state.actors.get_or_insert(&record.event.actor, record.seq) {
        actor.calls += u64::from(proposed);
    }
    if !record.event.actor.is_main() {
        // A turn belongs to the main agent. A sub-agent that still works or receives a prompt
        // neither opens nor reopens one.
        return;
    }
    match &record.event.kind {
        EventKind::PromptSubmitted(PromptSubmitted { source: PromptSource::Human, .. }) => {
            state.turn = state.turn.next();
            state.usage.turn = UsageTotals::default();
            state.spent.begin_turn(elapsed_ms, iterations::finished_iterations(state));
            state.paused = None;
        }
        kind if kind.belongs_to_turn() => {
            if state.turn.number == 0 {
                state.turn = state.turn.next();
            }
            state.turn.result = None;
        }
        _ => {}
    }
}

/// Updates the table of open calls, the counters of ended calls, and the epoch.
pub(crate) fn apply_call(state: &mut SessionState, fold: FoldInput<'_>) {
    let FoldInput { definition, record, .. } = fold;
    match &record.event.kind {
        EventKind::ToolProposed(ToolProposed { call, args, .. }) => {
            state.invocations.proposed += 1;
            let Some(proposal) = fold.proposal else { return };
            let asked = record.verdict.is_enforced(Decision::Ask);
            if record.verdict.allows_run() || asked {
                if let Some(call) = call {
                    state.forget_closed_call(call);
                    // A call that waited for a person's approval is proposed again after the person
                    // answered.
                    let _ = state.in_flight.remove_lost(|open| {
                        open.needs_approval() && open.id.as_ref() == Some(call)
                    });
                }
                let opened = new_in_flight_call(proposal, asked, state, fold);
                for removed in state.in_flight.insert(opened) {
                    loops::apply_unresolved(state, fold, &removed);
                    close_unresolved(state, &removed);
                }
            } else {
                if protocol::parse_arguments(args).is_err() {
                    state.invocations.invalid_arguments += 1;
                } else {
                    state.invocations.denied += 1;
                }
                // A duplicate of an open call must not replace the open one.
                if let Some(call) = call.as_ref().filter(|call| !state.in_flight.contains(call)) {
                    let mutates =
                        read_before_write::expected_changes(proposal) == ChangeCertainty::Surely;
                    state.remember_closed_call(call, CloseReason::Denied, mutates);
                }
            }
        }
        EventKind::ToolFinished(ToolFinished { call, status, exit_code, background, .. }) => {
            let Some(mut call) = state.in_flight.remove(record.call_key(definition)) else {
                // A result of a call that is not open shows that the call had its effect, unless
                // the call was denied and reports a failure.
                if let Some((call, gone)) = call.as_ref().and_then(|c| Some((c, state.gone(c)?))) {
                    let obeyed = gone.reason == CloseReason::Denied
                        && matches!(status, CallStatus::Error | CallStatus::Cancelled);
                    if gone.mutates && !obeyed {
                        record_unknown_change(state);
                    }
                    if !background && gone.reason == CloseReason::Unresolved {
                        state.forget_closed_call(call);
                    }
                }
                return;
            };
            settle_approval(state, &call, *status);
            call.approval = None;
            if *background {
                close_unresolved(state, &call);
                return;
            }
            let counter = match status {
                // The tool returned a result, but the command it ran has failed.
                CallStatus::Ok if exit_code.is_some_and(|code| code != 0) => {
                    &mut state.invocations.failed
                }
                CallStatus::Ok => &mut state.invocations.ok,
                CallStatus::Error => &mut state.invocations.failed,
                CallStatus::Timeout => &mut state.invocations.timed_out,
                CallStatus::Crashed => &mut state.invocations.crashed,
                CallStatus::Cancelled => &mut state.invocations.cancelled,
            };
            *counter += 1;
            record_effects(state, &call);
        }
        // A call without a result at this point may have run, and never counts as a success. A
        // prompt closes the calls of the actor that receives it. When the main agent stops or
        // leaves, the calls of all actors are closed.
        EventKind::PromptSubmitted(_) => {
            let lost = state.in_flight.remove_lost(|call| call.actor == record.event.actor);
            lost.iter().for_each(|call| close_unresolved(state, call));
        }
        EventKind::SessionStarted(_)
        | EventKind::SessionEnded(_)
        | EventKind::StopProposed(StopProposed { background: 0, .. }) => {
            let actor = &record.event.actor;
            let lost = state.in_flight.remove_lost(|call| actor.is_main() || call.actor == *actor);
            lost.iter().for_each(|call| close_unresolved(state, call));
        }
        // The person answered No to the question of the client, so the call did not run.
        EventKind::Control(Control {
            action: ControlAction::Withdraw, call: Some(call), ..
        }) if fold.person_action.is_some() => {
            let refused = state.in_flight.remove_lost(|open| open.id.as_ref() == Some(call));
            refused.iter().for_each(|call| close_unresolved(state, call));
        }
        _ => {}
    }
}

/// Ends the question about a call that has a result. A call that ran was approved, and has used up
/// a grant that was given meanwhile.
fn settle_approval(state: &mut SessionState, call: &InFlightCall, status: CallStatus) {
    let Some(AwaitedApproval { signature: Some(signature), in_client }) = call.approval else {
        return;
    };
    match status {
        CallStatus::Cancelled if in_client => state.approvals.withdraw(signature),
        CallStatus::Cancelled => {}
        _ => state.approvals.settle(signature),
    }
}

/// Creates the entry of a call that may run now.
fn new_in_flight_call(
    proposal: &Proposal<'_>,
    asked: bool,
    state: &SessionState,
    fold: FoldInput<'_>,
) -> InFlightCall {
    let record = fold.record;
    let (id, in_client) = match &record.event.kind {
        EventKind::ToolProposed(ToolProposed { call, asks_person, .. }) => {
            (call.clone(), *asks_person)
        }
        _ => (None, false),
    };
    let last_change = read_before_write::last_change(proposal);
    let number = |recognised: &RecognisedTool<'_>| {
        let at =
            fold.definition.tools.iter().position(|tool| core::ptr::eq(tool, recognised.tool))?;
        let tool = u16::try_from(at).ok().filter(|_| recognised.proven)?;
        let after = last_change.is_none_or(|change| change < recognised.command);
        Some(ToolProof { tool, is_after_changes: after })
    };
    let mut proves: Vec<ToolProof> = proposal.recognised.iter().filter_map(number).collect();
    proves.dedup();
    proves.truncate(PROOFS_MAX);
    InFlightCall {
        id,
        actor: record.event.actor.clone(),
        tool: proposal.tool.name.to_string(),
        kind: proposal.tool.kind,
        args: record.facts.observed.args,
        approval: asked.then(|| AwaitedApproval {
            signature: call_signature(Some(proposal), record.facts),
            in_client,
        }),
        changes: read_before_write::expected_changes(proposal),
        saw_change: false,
        files: read_before_write::files_to_check(fold.definition, proposal),
        proofs: proves,
        epoch: state.epoch,
        carried: custom::carried_texts(record.facts),
        opened: loops::open_call_signature(
            state,
            fold.definition,
            proposal,
            record.event,
            record.facts.observed.args,
        ),
        bits: CallBits::for_call(fold.definition, fold.place, state, proposal),
        first_line: proposal.first_line_read(),
    }
}

fn close_unresolved(state: &mut SessionState, call: &InFlightCall) {
    let changes = call.mutates() || call.changes_code();
    if let Some(approval) = call.approval {
        // No person has approved it. A client that asks the person waits for the answer, so the
        // person has refused it, or can no longer answer.
        if let Some(signature) = approval.signature.filter(|_| approval.in_client) {
            state.approvals.withdraw(signature);
        }
        state.invocations.not_approved += 1;
        if let Some(id) = &call.id {
            state.remember_closed_call(id, CloseReason::Unresolved, changes);
        }
        return;
    }
    state.invocations.unresolved += 1;
    if let Some(id) = &call.id {
        state.remember_closed_call(id, CloseReason::Unresolved, changes);
    }
    record_effects(state, call);
}

/// A call that changes files starts a new epoch, even if it failed or was cancelled, because its
/// progress is unknown.
fn record_effects(state: &mut SessionState, call: &InFlightCall) {
    state.work += u64::from(call.changes != ChangeCertainty::Nothing);
    if call.mutates() {
        state.epoch += 1;
        state.record_change(call.changes_code(), call.bits.docs);
    } else if call.changes_code() {
        state.record_possible_change();
    }
    if call.mutates() || call.changes_code() {
        let docs = call.mutates() && call.bits.docs;
        state.record_change_beside_attempts(&call.actor, call.changes_code(), docs);
    }
    if call.bits.hidden != HiddenChange::Nothing {
        state.progress.record_possible_change();
    }
}

/// Records a change whose extent is unknown.
fn record_unknown_change(state: &mut SessionState) {
    state.epoch += 1;
    state.record_change(true, false);
}

/// Updates the session itself: its phase, deadline, attempts and pauses.
pub(crate) fn apply_session_end(state: &mut SessionState, fold: FoldInput<'_>) {
    let FoldInput { definition, record, person_action: said, .. } = fold;
    let verdict = record.verdict;
    match &record.event.kind {
        EventKind::SessionStarted(SessionStarted { deadline, .. })
            if record.event.actor.is_main() =>
        {
            if matches!(state.phase, Phase::Ended(_)) {
                state.phase = Phase::Running;
            }
            // The earliest deadline counts: a deadline is an allowance and can only shrink.
            state.deadline = [state.deadline, *deadline].into_iter().flatten().min();
        }
        EventKind::AttemptStarted(AttemptStarted { attempt }) => {
            // The number is limited in every mode, even if the violation is only observed.
            let exists = state.attempts.iter().any(|open| open.id == *attempt);
            if verdict.allows_run() && !exists && state.attempts.len() < ATTEMPTS_MAX {
                let policies = state.policies.clone();
                let since = record.seq;
                let (id, actor) = (attempt.clone(), record.event.actor.clone());
                let bits = state.bits_before_attempt();
                state.attempts.push(AttemptInProgress { id, actor, policies, bits, since });
            }
        }
        EventKind::AttemptEnded(AttemptEnded { attempt, result }) => {
            let Some(at) = state.attempts.iter().position(|open| open.id == *attempt) else {
                return;
            };
            let open = state.attempts.remove(at);
            if *result != AttemptResult::Commit {
                // A rollback restores the policies, which removes what the attempt earned. It also
                // ends the attempts that began inside this one. Budgets are not restored, because
                // an allowance only goes down.
                state.policies = open.policies;
                state.reads.forget_since(open.since);
                state.attempts.truncate(at);
                // Undoing files changes files.
                state.epoch += 1;
                if *result == AttemptResult::Stuck {
                    state.record_change(true, false);
                } else {
                    state.end_bits_of_attempt(open.bits, *result);
                }
            }
        }
        EventKind::Control(Control { by, why, .. }) => match said {
            Some(ControlAction::Pause) => {
                let (by, why) = (short_text(by.as_deref()), short_text(why.as_deref()));
                let paused = PauseState::by_person(by, why);
                state.paused = Some(paused.on_top_of(state.paused.take()));
            }
            Some(ControlAction::Reset) => reset_session(definition, state),
            _ => {}
        },
        _ => {}
    }
    let ends = verdict.is_enforced(Decision::Stop)
        || said == Some(ControlAction::Stop)
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
        Some(stop) if ends => state.phase = Phase::Stopped(stop.into()),
        _ => {}
    }
}

/// Reopens the session. Budgets and earned permissions are reset. The record of changes in the
/// workspace is not.
fn reset_session(definition: &Definition, state: &mut SessionState) {
    state.phase = Phase::Running;
    state.paused = None;
    state.control_files = PresentControlFiles::default();
    state.deadline = None;
    state.turn = state.turn.next();
    // Iterations are counted from the start, so the cap has to start with them.
    state.progress.reset(state.epoch);
    state.spent.reset(state.clock.elapsed_ms(), iterations::finished_iterations(state));
    state.actors.reset_fills();
    state.usage.reset(state.turn.number);
    state.policies = initial_policies(definition);
    state.reads.clear();
    state.approvals = Approvals::default();
    state.overrides = Overrides::default();
    state.actors.reached_by_prompt(&ActorId::main()).for_each(|actor| actor.looping.reset());
    state.attempts.clear();
    feedback::reset_cadences(&mut state.feedback);
    state.dirty.reset();
    state.advised = AdvisorUsage::default();
    state.fallback.reset();
}

/// Shortens a text that a person gives, because the state is bounded.
fn short_text(text: Option<&str>) -> Option<String> {
    text.map(|text| text.chars().take(200).collect())
}
