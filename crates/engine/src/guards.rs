//! The guards: modules with one interface that look at every event.
//!
//! A guard has settings, [requests facts](Guard::needs), [decides](Guard::decide), and
//! [applies](Guard::apply) each record to its part of the state. A new guard is a file here and an
//! entry in [`GUARDS`].

pub(crate) mod advisor;
pub(crate) mod completion;
pub(crate) mod context;
pub(crate) mod control;
pub(crate) mod control_files;
pub(crate) mod custom;
pub(crate) mod dirty;
pub(crate) mod effects;
pub(crate) mod empty_results;
pub(crate) mod fallback;
pub(crate) mod feedback;
pub(crate) mod grants;
pub(crate) mod identity;
pub(crate) mod limits;
pub(crate) mod loops;
pub(crate) mod opaque;
pub(crate) mod output;
pub(crate) mod path_patterns;
pub(crate) mod pause;
pub(crate) mod progress;
pub(crate) mod protected;
pub(crate) mod protocol;
pub(crate) mod read_before_write;
pub(crate) mod reports;
pub(crate) mod rules;
pub(crate) mod schema;
pub(crate) mod sequential_dependency;
pub(crate) mod unknown_tools;

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write as _};

use jackline_shell::{ShellCommand, ShellLine};
use serde_json::Value;

use crate::definition::{Definition, Mode};
use crate::event::{ControlAction, Event};
use crate::facts::{Facts, Queries};
use crate::proposal::Proposal;
use crate::session::Record;
use crate::session_location::SessionLocation;
use crate::state::{SessionClock, SessionState};
use crate::verdict::{
    CompletionResult, Constraint, ContextGate, Decision, Feedback, GuardName, RepairReport,
    SafetyEvent, SchemaMismatch, SessionStop, ShownPage, Violation, ViolationClass,
    ViolationSubtype, ViolationType,
};

/// The input of a guard's decision.
#[derive(Clone, Copy)]
pub(crate) struct GuardInput<'a> {
    pub(crate) definition: &'a Definition,
    pub(crate) state: &'a SessionState,
    pub(crate) event: &'a Event,
    pub(crate) facts: &'a Facts,
    /// The clock after this event.
    pub(crate) clock: &'a SessionClock,
    pub(crate) place: &'a SessionLocation,
    /// The proposed call, parsed.
    pub(crate) proposal: Option<&'a Proposal<'a>>,
}

/// The input for applying a record.
#[derive(Clone, Copy)]
pub(crate) struct FoldInput<'a> {
    pub(crate) definition: &'a Definition,
    pub(crate) place: &'a SessionLocation,
    pub(crate) record: &'a Record<'a>,
    /// The proposed call, parsed.
    pub(crate) proposal: Option<&'a Proposal<'a>>,
    /// The accepted action of a person: a control, or the removal of a report, which means the
    /// same. An advisor or a fallback model that ends a pause counts as a person who clears a
    /// blocker.
    pub(crate) person_action: Option<ControlAction>,
}

/// One guard.
pub(crate) trait Guard: Sync {
    /// Requests the facts that are still missing.
    fn needs(&self, _look: GuardInput<'_>, _queries: &mut Queries) {}

    /// Decides the event.
    fn decide(&self, input: GuardInput<'_>, answers: &mut GuardAnswers);

    /// Applies a recorded verdict to the guard's part of the state.
    fn apply(&self, _state: &mut SessionState, _fold: FoldInput<'_>) {}
}

/// All guards, in the order in which their violations are listed.
pub(crate) const GUARDS: [&dyn Guard; 27] = [
    &protocol::ProtocolGuard,
    &schema::SchemaGuard,
    &control_files::ControlFileGuard,
    &pause::PauseGuard,
    &identity::IdentityGuard,
    // Before the limits, which count the usage that this guard reads.
    &context::ContextGuard,
    // Before the limits, which may pause and which count iterations.
    &progress::ProgressGuard,
    &limits::LimitGuard,
    &unknown_tools::UnknownToolGuard,
    &reports::ReportGuard,
    &protected::ProtectedGuard,
    &read_before_write::ReadBeforeWriteGuard,
    &sequential_dependency::SequentialGuard,
    &dirty::DirtyGuard,
    &effects::EffectGuard,
    &custom::CustomPolicyGuard,
    &rules::RuleGuard,
    &opaque::OpaqueGuard,
    &grants::GrantGuard,
    &control::ControlGuard,
    &advisor::AdvisorGuard,
    &fallback::FallbackGuard,
    &completion::CompletionGuard,
    // After every guard that can refuse a call.
    &loops::LoopGuard,
    &output::OutputGuard,
    &empty_results::EmptyResultGuard,
    &feedback::FeedbackGuard,
];

/// A violation without its id.
pub(crate) struct ViolationDraft {
    pub(crate) guard: GuardName,
    pub(crate) kind: ViolationType,
    pub(crate) subtype: ViolationSubtype,
    pub(crate) class: ViolationClass,
    pub(crate) decision: Decision,
    pub(crate) message: String,
    pub(crate) location: Option<String>,
    pub(crate) correction: Option<String>,
}

/// What all guards answered to one event.
#[derive(Default)]
pub(crate) struct GuardAnswers {
    mode: Mode,
    /// Whether a person has turned the guard off, so that nothing is enforced.
    is_off: bool,
    seq: u64,
    pub(crate) violations: Vec<Violation>,
    pub(crate) feedback: Vec<Feedback>,
    pub(crate) constraints: Vec<Constraint>,
    pub(crate) args: Option<Value>,
    pub(crate) output: Option<Value>,
    pub(crate) page: Option<ShownPage>,
    pub(crate) repair: Option<RepairReport>,
    pub(crate) invalid_result: Vec<SchemaMismatch>,
    pub(crate) completion: Option<CompletionResult>,
    pub(crate) context_gate: Option<ContextGate>,
    pub(crate) stop: Option<SessionStop>,
    pub(crate) safety: Vec<SafetyEvent>,
}

impl GuardAnswers {
    pub(crate) fn new(mode: Mode, facts: &Facts, seq: u64) -> Self {
        Self { mode, is_off: facts.is_off(), seq, ..Self::default() }
    }

    /// Returns whether violations in the definition's mode are enforced.
    pub(crate) fn is_enforcing(&self) -> bool {
        self.mode == Mode::Enforce && !self.is_off
    }

    /// Adds a violation that is enforced unless the definition only observes.
    pub(crate) fn add_violation(&mut self, objection: ViolationDraft) {
        self.add_violation_in_mode(objection, self.mode);
    }

    /// Adds a violation with a mode of its own.
    pub(crate) fn add_violation_in_mode(&mut self, objection: ViolationDraft, mode: Mode) {
        self.push(objection, mode == Mode::Enforce);
    }

    /// Adds a violation that is enforced in every mode, because it is about the session or a
    /// person's decision and not about a policy. It is not enforced only while the guard is off.
    pub(crate) fn add_enforced_violation(&mut self, objection: ViolationDraft) {
        self.push(objection, true);
    }

    fn push(&mut self, objection: ViolationDraft, enforced: bool) {
        self.violations.push(Violation {
            id: format!("v{}.{}", self.seq, self.violations.len() + 1),
            guard: objection.guard,
            kind: objection.kind,
            subtype: objection.subtype,
            class: objection.class,
            message: objection.message,
            location: objection.location,
            correction: objection.correction,
            decision: objection.decision,
            enforced: enforced && !self.is_off,
        });
    }

    /// Returns the strongest enforced decision, or else the strongest observed one.
    pub(crate) fn decision(&self) -> (Decision, Option<bool>) {
        let strongest = |enforced: bool| {
            let page = self.page.iter().filter(|page| page.enforced == enforced);
            let objections = self.violations.iter().filter(|v| v.enforced == enforced);
            objections.map(|v| v.decision).chain(page.map(|_| Decision::Rewrite)).max()
        };
        match (strongest(true), strongest(false)) {
            (Some(decision), _) => (decision, Some(true)),
            (None, Some(decision)) => (decision, Some(false)),
            (None, None) => (Decision::Allow, None),
        }
    }
}

/// How many characters of a command line a message quotes.
const EXCERPT_CHARS_MAX: usize = 120;

/// Shortens a text for a message.
pub(crate) fn shorten_for_message(text: &str) -> String {
    let text = text.trim();
    // A text has at most as many characters as bytes, and most texts are short.
    if text.len() <= EXCERPT_CHARS_MAX {
        return text.to_owned();
    }
    match text.char_indices().nth(EXCERPT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Formats a value as JSON, shortened for a message. Formatting stops at the limit.
pub(crate) fn shorten_json(value: &Value) -> String {
    let mut start = ExcerptWriter(String::with_capacity(EXCERPT_CHARS_MAX + 8));
    let whole = write!(start, "{value}").is_ok();
    if !whole {
        start.0.push('…');
    }
    start.0
}

/// Collects the beginning of a text, up to the limit for messages.
struct ExcerptWriter(String);

impl fmt::Write for ExcerptWriter {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        // A text has at most as many characters as bytes, and most texts are short.
        if self.0.len() + more.len() <= EXCERPT_CHARS_MAX {
            self.0.push_str(more);
            return Ok(());
        }
        let room = EXCERPT_CHARS_MAX.saturating_sub(self.0.chars().count());
        match more.char_indices().nth(room) {
            Some((end, _)) => {
                self.0.push_str(more.get(..end).unwrap_or_default());
                Err(fmt::Error)
            }
            None => {
                self.0.push_str(more);
                Ok(())
            }
        }
    }
}

/// Returns the text of a simple command, shortened.
pub(crate) fn command_excerpt(line: &ShellLine<'_>, command: &ShellCommand<'_>) -> Option<String> {
    let text = line.text.get(command.span.start as usize..command.span.end as usize)?;
    (!text.trim().is_empty()).then(|| shorten_for_message(text))
}

/// Formats a list for a message: "`a`, `b` and `c`".
pub(crate) fn join_names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString as _;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shortened_json_is_the_beginning_of_the_full_json(
            texts in prop::collection::vec("[a\"\\\\é… \n]{0,90}", 0..4), number in any::<i64>()
        ) {
            for value in [Value::from(texts.clone()), serde_json::json!({ "a": texts, "b": number })] {
                prop_assert_eq!(shorten_json(&value), shorten_for_message(&value.to_string()));
            }
        }
    }
}
