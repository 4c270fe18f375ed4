//! The verdicts to apply to a session that keeps its recorded course.

use jackline_engine::definition::{Definition, LoopProfile};
use jackline_engine::verdict::{GuardName, SafetyEvent, SafetyKind};
use jackline_engine::{Decision, Event, EventKind, Verdict, Violation};

use super::judge::BacktestDecision;

/// Adds to a verdict the parts of this definition's result that the session must remember: the
/// identity of the agent and, under the strict profile, the override after a loop. Only with the
/// override can the backtest find the call that violates it and would have ended the session.
pub(super) fn add_remembered_parts(
    went: &mut Verdict,
    event: &Event,
    definition: &Definition,
    judged: &BacktestDecision,
) {
    let is_call = matches!(event.kind, EventKind::ToolProposed(_) | EventKind::ToolFinished(_));
    let is_strict = is_call && definition.loops.profile == LoopProfile::Strict;
    let is_overridden = is_strict && !judged.constraints.is_empty();
    let safety = judged.safety.iter().filter(|it| is_overridden && is_loop(it) || is_identity(it));
    went.safety.extend(safety.cloned());
    let remembered = |found: &&Violation| {
        found.guard == GuardName::Identity || (is_strict && found.guard == GuardName::Loops)
    };
    went.violations.extend(judged.violations.iter().filter(remembered).cloned());
    if is_overridden {
        went.constraints.clone_from(&judged.constraints);
    }
}

/// The verdict to apply for a recorded event. If the session was paused or stopped, and would be
/// now for the same reason, the recorded verdict is applied unchanged. The later events, up to the
/// next control of a person, came to a paused session.
pub(super) fn recorded_course(
    event: &Event,
    recorded: &Verdict,
    definition: &Definition,
    judged: &BacktestDecision,
) -> Verdict {
    if is_blocked_again(recorded, judged) {
        return recorded.clone();
    }
    let mut went = without_recorded_blocks(event, recorded);
    add_remembered_parts(&mut went, event, definition, judged);
    went
}

/// Whether a guard paused or stopped the session, and the same guard would do so now.
fn is_blocked_again(recorded: &Verdict, judged: &BacktestDecision) -> bool {
    let blocks = |found: &&Violation| found.enforced && found.decision >= Decision::Pause;
    let mut recorded_violations = recorded.violations.iter().filter(blocks).peekable();
    let is_repeated = |one: &Violation| {
        let same = |now: &&Violation| {
            (now.decision, &now.guard, &now.subtype) == (one.decision, &one.guard, &one.subtype)
        };
        judged.violations.iter().filter(blocks).any(|now| same(&now))
    };
    recorded_violations.peek().is_some() && recorded_violations.all(is_repeated)
}

/// The recorded events without the pauses and stops of the recorded definition. A refused call did
/// not run, and shown texts were shown. Loops, identity problems, pauses and stops of the recorded
/// definition are left out, but controls of people stay.
fn without_recorded_blocks(event: &Event, recorded: &Verdict) -> Verdict {
    let by_person = matches!(event.kind, EventKind::Control(_));
    let ends = by_person || matches!(event.kind, EventKind::SessionEnded(_));
    let still_applies = |found: &&Violation| {
        found.guard != GuardName::Loops
            && found.guard != GuardName::Identity
            && found.decision < Decision::Pause
    };
    let is_other = |it: &&SafetyEvent| !is_loop(it) && !is_identity(it);
    Verdict {
        decision: match recorded.decision {
            Decision::Pause | Decision::Stop if !by_person => Decision::Deny,
            decision => decision,
        },
        violations: recorded.violations.iter().filter(still_applies).cloned().collect(),
        safety: recorded.safety.iter().filter(is_other).cloned().collect(),
        constraints: Vec::new(),
        stop: recorded.stop.clone().filter(|_| ends),
        ..recorded.clone()
    }
}

fn is_loop(safety: &SafetyEvent) -> bool {
    use SafetyKind::{HardLoop, InfiniteLoop, SoftLoop};
    matches!(safety.kind, SoftLoop | HardLoop | InfiniteLoop)
}

fn is_identity(safety: &SafetyEvent) -> bool {
    safety.kind == SafetyKind::IdentityMismatch
}
