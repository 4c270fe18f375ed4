//! What is folded into a session that goes on as it went.

use jackline_engine::definition::{Definition, Profile};
use jackline_engine::verdict::{GuardName, SafetyEvent, SafetyKind};
use jackline_engine::{Decision, Event, EventKind, Verdict, Violation};

use super::judge::Judged;

/// Adds to what happened what this definition remembers of it: who is at work, and under
/// the strict profile that a loop puts an override in force. Only with it is the call
/// found that disregards it and would have ended the session.
pub(super) fn remember(
    went: &mut Verdict,
    event: &Event,
    definition: &Definition,
    judged: &Judged,
) {
    let is_call = matches!(event.kind, EventKind::ToolProposed(_) | EventKind::ToolFinished(_));
    let is_strict = is_call && definition.loops.profile == Profile::Strict;
    let is_overridden = is_strict && !judged.constraints.is_empty();
    let safety = judged.safety.iter().filter(|it| is_overridden && is_loop(it) || is_identity(it));
    went.safety.extend(safety.cloned());
    let remembered = |found: &&Violation| {
        found.guard == GuardName::Identity || (is_strict && found.guard == GuardName::Loops)
    };
    went.violations.extend(judged.objections.iter().filter(remembered).cloned());
    if is_overridden {
        went.constraints.clone_from(&judged.constraints);
    }
}

/// What is folded of an event that was recorded. Where the session was held or ended then,
/// and would be now for the same reason, it is as it was: what comes after, until people
/// said something, came to a session that was held.
pub(super) fn went_as(
    event: &Event,
    recorded: &Verdict,
    definition: &Definition,
    judged: &Judged,
) -> Verdict {
    if is_held_alike(recorded, judged) {
        return recorded.clone();
    }
    let mut went = happened(event, recorded);
    remember(&mut went, event, definition, judged);
    went
}

/// Whether a guard held or ended the session then, and the same one would now.
fn is_held_alike(recorded: &Verdict, judged: &Judged) -> bool {
    let holds = |found: &&Violation| found.enforced && found.decision >= Decision::Pause;
    let mut then = recorded.violations.iter().filter(holds).peekable();
    let is_known = |one: &Violation| {
        let same = |now: &&Violation| {
            (now.decision, &now.guard, &now.subtype) == (one.decision, &one.guard, &one.subtype)
        };
        judged.objections.iter().filter(holds).any(|now| same(&now))
    };
    then.peek().is_some() && then.all(is_known)
}

/// What happened, by what was recorded: a call that was not let run did not run, and
/// what was shown was shown. That the definition of then found a loop or a stranger,
/// held the session or ended it is its own affair; what people did is not.
fn happened(event: &Event, recorded: &Verdict) -> Verdict {
    let by_person = matches!(event.kind, EventKind::Control(_));
    let ends = by_person || matches!(event.kind, EventKind::SessionEnded(_));
    let is_kept = |found: &&Violation| {
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
        violations: recorded.violations.iter().filter(is_kept).cloned().collect(),
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
