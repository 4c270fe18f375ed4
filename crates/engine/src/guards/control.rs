//! What a person wants of a session: whether it makes sense now, and that they
//! wanted it.

mod reload;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};

use serde_json::Value;

use super::completion::Checker;
use super::dirty::{DirtySummary, clean};
use super::limits::iterations;
use super::{Answers, Guard, Look, Objection, advisor, fallback};
use crate::event::{Action, Control, EventKind};
use crate::facts::{Markers, Queries, ReloadFact};
use crate::session::Record;
use crate::state::{PauseCause, Paused, ReportFile, State};
use crate::verdict::{
    Class, Decision, GuardName, SafetyAction, SafetyEvent, SafetyKind, Violation, ViolationSubtype,
    ViolationType,
};

use super::reports::settled;

pub(crate) struct ControlGuard;

impl Guard for ControlGuard {
    fn needs(&self, look: Look<'_>, queries: &mut Queries) {
        if let EventKind::Control(Control { action: Action::Reload, .. }) = &look.event.kind {
            reload::needs(look, queries);
        }
    }

    fn decide(&self, look: Look<'_>, answers: &mut Answers) {
        let EventKind::Control(Control { action, by, why, constraint, .. }) = &look.event.kind
        else {
            return;
        };
        if let Some(Futile { subtype, message, correction }) = futile(look, *action) {
            // A person is answered in every mode.
            answers.insist(Objection {
                guard: GuardName::Protocol,
                kind: ViolationType::Control,
                subtype,
                class: Class::Recoverable,
                decision: Decision::Deny,
                message,
                location: Some(action.word().to_string()),
                correction: Some(correction),
            });
        }
        let refused = is_refused(&answers.violations);
        let taken = if refused { SafetyAction::Refused } else { taken(look, *action) };
        let definition = match &look.facts.reload {
            Some(ReloadFact::New(new)) if !refused => Some(new.checksum.to_string()),
            _ => None,
        };
        let given =
            [("by", by), ("why", why), ("constraint", constraint), ("definition", &definition)];
        let given = given.into_iter().filter_map(|(name, text)| Some((name, text.as_deref()?)));
        let details = [("action", action.word())].into_iter().chain(given);
        answers.safety.push(safety(look, details, taken));
    }
}

/// Whether a control was refused, so that nothing comes of it.
pub(crate) fn is_refused(violations: &[Violation]) -> bool {
    violations.iter().any(|found| found.kind == ViolationType::Control)
}

/// What a person has done along with a record: a control that was not refused,
/// or the report that it waits with removed; or who goes on in their place where it is stuck.
pub(crate) fn said(state: &State, record: &Record<'_>) -> Option<Action> {
    match &record.event.kind {
        EventKind::Control(Control { action, .. }) => {
            (!is_refused(&record.verdict.violations)).then_some(*action)
        }
        _ if advisor::lifts(record.verdict) || fallback::lifts(record) => {
            Some(Action::ClearBlocker)
        }
        _ => settled(state, record.facts).and_then(ReportFile::settled_by),
    }
}

/// That a marker was put there.
pub(super) fn marker(look: Look<'_>, file: &str, taken: SafetyAction) -> SafetyEvent {
    safety(
        look,
        [("marker", file)],
        if look.facts.is_off() { SafetyAction::Observed } else { taken },
    )
}

/// A line of the safety log about a person's word.
pub(super) fn safety<'a>(
    look: Look<'_>,
    details: impl IntoIterator<Item = (&'a str, &'a str)>,
    taken: SafetyAction,
) -> SafetyEvent {
    let value = |(name, text): (&str, &str)| {
        (name.to_string(), Value::String(text.chars().take(WORDS_CHARS_MAX).collect()))
    };
    SafetyEvent {
        timestamp: look.clock.now(),
        kind: SafetyKind::Control,
        details: details.into_iter().map(value).collect::<BTreeMap<String, Value>>(),
        action_taken: taken,
    }
}

/// How much of what people say is repeated.
const WORDS_CHARS_MAX: usize = 200;

/// What comes of a control.
fn taken(look: Look<'_>, action: Action) -> SafetyAction {
    match action {
        Action::Stop => SafetyAction::Stopped,
        Action::Pause => SafetyAction::Paused,
        // One hold is lifted, and another is left.
        Action::Resume | Action::Acknowledge | Action::ClearBlocker
            if look.state.paused.clone().and_then(|paused| paused.after(action)).is_some() =>
        {
            SafetyAction::StillPaused
        }
        Action::Resume | Action::Acknowledge | Action::ClearBlocker => SafetyAction::Resumed,
        Action::Reset => SafetyAction::Reopened,
        Action::ResetFailures => SafetyAction::FailuresForgotten,
        Action::SkipDirtyBits => SafetyAction::TestsSkipped,
        Action::ExpireConstraint => SafetyAction::ConstraintEnded,
        Action::Grant => SafetyAction::Granted,
        Action::Refuse => SafetyAction::Forbidden,
        Action::Off => SafetyAction::SwitchedOff,
        Action::Reload => SafetyAction::Reloaded,
    }
}

/// Why a control would change nothing.
struct Futile {
    subtype: ViolationSubtype,
    message: String,
    correction: String,
}

impl Futile {
    fn now(message: String, correction: &str) -> Self {
        Self { subtype: ViolationSubtype::NoEffect, message, correction: correction.to_string() }
    }
}

fn futile(look: Look<'_>, action: Action) -> Option<Futile> {
    let paused = look.state.paused.as_ref();
    let cause = paused.map(|paused| paused.cause);
    let off = look.facts.is_off();
    let Markers { stop, pause, .. } = look.facts.markers;
    match action {
        Action::Reset if stop && !off => Some(held_by_file(Markers::STOP)),
        Action::ResetFailures if failures(look) == 0 => Some(Futile::now(
            "no iteration has failed since the last one that did not".to_string(),
            "nothing to do",
        )),
        Action::SkipDirtyBits => tests_wanted_not(look),
        Action::Stop
        | Action::Reset
        | Action::ResetFailures
        | Action::Grant
        | Action::Refuse
        | Action::ExpireConstraint => None,
        // Others could lift what is there, an advisor or who acknowledges; a person's own word
        // is lifted by people, and by itself.
        Action::Pause if cause.is_some_and(PauseCause::lies_beneath) => None,
        Action::Pause => paused.map(|paused| {
            Futile::now(
                format!("the session is paused already, by {}", held_by(paused)),
                "nothing to do; `resume` goes on",
            )
        }),
        Action::Resume if pause && !off => Some(held_by_file(Markers::PAUSE)),
        // Lifted without being acknowledged it would hold the next call again.
        Action::Resume if cause == Some(PauseCause::Checkpoint) && iterations::waits(look) => {
            Some(waits_not(look, "a checkpoint has to be acknowledged"))
        }
        Action::Resume if paused.is_some() => None,
        Action::Resume => Some(Futile::now(
            "the session is not paused".to_string(),
            "nothing to do; `pause` holds it, `reset` opens it after a stop",
        )),
        Action::Acknowledge | Action::ClearBlocker
            if paused.is_some_and(|paused| paused.waits_for(action)) =>
        {
            None
        }
        Action::Acknowledge if iterations::waits(look) => None,
        Action::Acknowledge => Some(waits_not(look, "no checkpoint waits to be acknowledged")),
        Action::ClearBlocker => Some(waits_not(look, "nothing blocks this session")),
        // The word is written down here; what switches the guard off is a fact.
        Action::Off if off => None,
        Action::Off => Some(Futile::now(
            "an event can't switch the guard off; nothing was changed".to_string(),
            "a person can, with `jackline off --for 30m --why …`",
        )),
        Action::Reload => reload::futile(look),
    }
}

/// How many iterations failed one after the other.
fn failures(look: Look<'_>) -> u32 {
    look.state.progress.summary(look.definition).consecutive_failures
}

/// Why there are no tests to skip.
fn tests_wanted_not(look: Look<'_>) -> Option<Futile> {
    if !look.definition.completion.as_ref().is_some_and(Checker::wants_clean) {
        return Some(Futile::now(
            "nothing in the definition demands tests".to_string(),
            "nothing to do; `completion: { clean: {} }` would",
        ));
    }
    if clean::check(look).is_some() {
        return None;
    }
    let bits = look.state.dirty.summary();
    let message = match bits {
        DirtySummary { skipped: true, .. } => "the tests of the code as it is are skipped already",
        DirtySummary { code_modified: true, .. } => "the code as it is was tested, and passes",
        _ => "no code was changed, so no tests are missing",
    };
    Some(Futile::now(message.to_string(), "nothing to do"))
}

/// What nobody can lift by a word, because a file says otherwise.
fn held_by_file(file: &str) -> Futile {
    Futile {
        subtype: ViolationSubtype::Marker,
        message: format!("`{file}` is there, and holds this session; nothing was changed"),
        correction: format!("remove it first: `rm -r {file}`"),
    }
}

/// It would be for nothing; what holds the session is said.
fn waits_not(look: Look<'_>, what: &str) -> Futile {
    match &look.state.paused {
        None => Futile::now(format!("{what}: the session is not paused"), "nothing to do"),
        Some(paused) => {
            let way = match paused.cause {
                PauseCause::Person | PauseCause::Protected => "`jackline resume` goes on",
                PauseCause::Loop | PauseCause::NoProgress => "`jackline clear` goes on",
                PauseCause::Checkpoint => "`jackline ack` goes on",
            };
            Futile::now(format!("{what}: the session is paused by {}", held_by(paused)), way)
        }
    }
}

/// Who paused a session, and why.
pub(super) fn held_by(paused: &Paused) -> String {
    let who = paused.by.as_ref().map_or_else(|| "a person".to_string(), |by| format!("`{by}`"));
    match &paused.why {
        Some(why) => format!("{who}: {why}"),
        None => who,
    }
}
