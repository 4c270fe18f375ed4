//! The protected guard: no tool may write Jackline's own files.
//!
//! A call that names a protected path is denied before it runs, in every mode. Changes by an opaque
//! program are detected at the next gate: files that changed during a call are restored, and the
//! session waits for a person.

mod copies;
mod jackline_program;
mod opaque_names;
pub(crate) mod paths;
mod write_targets;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use jackline_shell::{Access, ShellWord};

use super::{FoldInput, Guard, GuardAnswers, GuardInput, ViolationDraft};
use crate::digest::Digest;
use crate::event::{Event, EventKind, PromptSource, PromptSubmitted, ToolFinished};
use crate::facts::{FileDetails, FileKind, Queries, Query, WatchedFact};
use crate::id::CallId;
use crate::proposal::{FileTouch, Proposal, ProposedRun};
use crate::session_location::{PathTarget, SessionLocation};
use crate::state::{InFlightCall, PauseCause, PauseState, ReportFile, SessionState};
use crate::tool::ToolKind;
use crate::verdict::{
    Decision, GuardName, Violation, ViolationClass, ViolationSubtype, ViolationType,
};

pub(crate) use paths::watch_list;
use paths::{ProtectedPaths, is_protected_anywhere, lies_within, matches_pattern};
use write_targets::{TargetStatus, WriteTarget};

pub(crate) struct ProtectedGuard;

impl Guard for ProtectedGuard {
    fn needs(&self, input: GuardInput<'_>, queries: &mut Queries) {
        if is_comparison_gate(&input.event.kind) && input.facts.watched.is_none() {
            let mut paths = watch_list(input.place, input.definition);
            let out = input.state.reports.written.iter();
            paths.extend(out.map(|report| report.path().to_string()));
            let watched = &input.state.protected_files;
            let (files, since) = (watched.tracked(&paths), watched.checked_at);
            queries.ask(Query::Watched { files, since });
        }
        let Some(proposal) = input.proposal else { return };
        let unchecked = write_targets::write_targets(input, proposal)
            .into_iter()
            .filter_map(WriteTarget::unchecked_path);
        let copy_sources = copies::overwriting_sources(input, proposal);
        for path in unchecked.chain(copy_sources).chain(markers_to_check(input.place, proposal)) {
            if !input.facts.files.contains_key(&path) {
                queries.ask(Query::File { path, wants: FileDetails::default() });
            }
        }
    }

    fn decide(&self, input: GuardInput<'_>, answers: &mut GuardAnswers) {
        let fate = if input.facts.is_off() {
            "the change stays, because the guard is turned off"
        } else {
            "the previous content is restored"
        };
        for (path, _) in files_changed_in_call(input) {
            answers.add_enforced_violation(tampering_violation(input, path, "changed", fate));
        }
        let Some(proposal) = input.proposal else { return };
        if let Some(offence) = find_protected_write(input, proposal) {
            answers.add_enforced_violation(offence.into_violation());
        }
        if let Some(violation) = jackline_program::weakening_violation(proposal) {
            answers.add_enforced_violation(violation);
        }
    }

    fn apply(&self, state: &mut SessionState, fold: FoldInput<'_>) {
        let record = fold.record;
        let (is_off, now) = (record.facts.is_off(), record.facts.now.wall);
        if may_agent_write(state) {
            state.protected_files.worked_at = Some(now);
        }
        if is_comparison_gate(&record.event.kind) {
            state.protected_files.checked_at = Some(now);
        }
        let suspected = may_agent_write(state) && !is_off;
        if let Some(watched) = &record.facts.watched {
            for (path, fact) in watched {
                let differs = state.protected_files.differs(path, fact);
                let damaged = state.protected_files.is_damaged(path) && !is_off;
                if differs && !fact.by_person && (suspected || damaged) {
                    state.protected_files.mark_damaged(path);
                } else {
                    state.protected_files.accept_current(path, fact);
                }
            }
        }
        let damage = |v: &Violation| {
            v.subtype == ViolationSubtype::ChangedDuringCall
                && v.enforced
                && v.decision == Decision::Pause
        };
        // A pause that already waits for a report stays: the report says how to continue.
        let has_report = super::reports::required_report(state).is_some();
        if record.verdict.violations.iter().any(damage) && !has_report {
            let why = "a protected file was changed during a call".to_string();
            state.paused = Some(PauseState::by_guard(PauseCause::Protected, why));
        }
        match &record.event.kind {
            EventKind::ToolFinished(ToolFinished { background: true, .. }) => {
                state.protected_files.may_have_background_work = true;
            }
            // Prompts of the client report some background results. They do not mean that all
            // background work has ended.
            EventKind::PromptSubmitted(PromptSubmitted { source: PromptSource::Human, .. })
            | EventKind::SessionStarted(_) => {
                state.protected_files.may_have_background_work = false;
            }
            _ => {}
        }
    }
}

/// Builds the violation for a file that changed during a call. `did` says how it changed, and
/// `fate` what happens now.
pub(super) fn tampering_violation(
    input: GuardInput<'_>,
    path: &str,
    did: &str,
    fate: &str,
) -> ViolationDraft {
    // A person may have removed a report while a call that never returns is still open. The message
    // then names that call and the command that continues the session.
    let command = ReportFile::from_path(path).and_then(ReportFile::clearing_command);
    let call = command.and_then(|_| open_writing_call(input.state));
    let call = call.map_or_else(String::new, |call| format!(" (`{call}`)"));
    // A person who interrupts a call and writes to the agent may have made the change. The person
    // is informed, and nothing is blocked.
    let (decision, correction) = if is_person_speaking(input.event) {
        let correction = "if a person made the change, they can repeat it now";
        (Decision::Allow, correction.to_string())
    } else if let Some(command) = command {
        let correction = format!(
            "end the turn and tell the person; `{command}` continues the session at once, even if \
             a call never returns"
        );
        (Decision::Pause, correction)
    } else {
        let correction = "end the turn and tell the person; they can change the file themselves";
        (Decision::Pause, correction.to_string())
    };
    ViolationDraft {
        guard: GuardName::Protected,
        kind: ViolationType::ProtectedPath,
        subtype: ViolationSubtype::ChangedDuringCall,
        class: ViolationClass::Terminal,
        decision,
        message: format!("`{path}` was {did} while a call was running{call}; {fate}"),
        location: Some(path.to_string()),
        correction: Some(correction),
    }
}

/// Returns the id of a call that may be writing files.
fn open_writing_call(state: &SessionState) -> Option<&str> {
    state.in_flight.iter().find(|call| may_write(call))?.id.as_ref().map(CallId::as_str)
}

/// Returns whether protected files are compared at this event.
pub(super) fn is_comparison_gate(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::SessionStarted(_)
            | EventKind::PromptSubmitted(_)
            | EventKind::ToolProposed(_)
            | EventKind::ToolFinished(_)
            | EventKind::StopProposed(_)
    )
}

/// Returns whether the agent may be writing files now.
pub(crate) fn may_agent_write(state: &SessionState) -> bool {
    state.protected_files.may_have_background_work || state.in_flight.iter().any(may_write)
}

/// Returns whether an open call may be writing files.
fn may_write(call: &InFlightCall) -> bool {
    !call.needs_approval
        && !matches!(
            call.kind,
            ToolKind::Read | ToolKind::Search | ToolKind::Think | ToolKind::Fetch
        )
}

fn is_person_speaking(event: &Event) -> bool {
    matches!(
        event.kind,
        EventKind::PromptSubmitted(PromptSubmitted { source: PromptSource::Human, .. })
    )
}

/// Returns the protected files that changed while a call was running.
fn files_changed_in_call(input: GuardInput<'_>) -> impl Iterator<Item = (&str, &WatchedFact)> {
    let suspected = may_agent_write(input.state);
    let facts = input.facts.watched.iter().flatten();
    let watched = &input.state.protected_files;
    facts
        .filter(move |(path, fact)| {
            (suspected || watched.is_damaged(path))
                && watched.differs(path, fact)
                && !fact.by_person
        })
        .map(|(path, fact)| (path.as_str(), fact))
}

/// Returns the files to restore, with the digest of their content. `None` means that the file did
/// not exist.
pub(crate) fn files_to_restore(input: GuardInput<'_>) -> Vec<(String, Option<Digest>)> {
    files_changed_in_call(input)
        .map(|(path, _)| (path.to_string(), input.state.protected_files.contents(path)))
        .collect()
}

/// A call that would write a protected path.
struct ProtectedWrite {
    path: String,
    /// The part of the call that writes it.
    part: Option<String>,
    /// Whether the write is certain, or only cannot be ruled out.
    is_certain: bool,
}

impl ProtectedWrite {
    /// Builds the offence of an opaque part that names the path.
    fn named(path: String) -> Self {
        Self { path, part: None, is_certain: true }
    }

    fn into_violation(self) -> ViolationDraft {
        let path = self.path;
        let (message, correction) = match self.part {
            _ if !self.is_certain => (
                format!("`{path}` could not be checked and may lead to a protected path"),
                "change fewer files per call, and use plain paths",
            ),
            Some(part) => (
                format!("`{path}` is protected, and `{part}` would write it"),
                "leave it unchanged; a person can change it outside of the session",
            ),
            None => (
                format!("`{path}` is protected and can't be written by an agent"),
                "leave it unchanged; a person can change it outside of the session",
            ),
        };
        ViolationDraft {
            guard: GuardName::Protected,
            kind: ViolationType::ProtectedPath,
            subtype: ViolationSubtype::ProtectedWrite,
            class: ViolationClass::Recoverable,
            decision: Decision::Deny,
            message,
            location: Some(path),
            correction: Some(correction.to_string()),
        }
    }
}

/// Returns the first protected path that a call would write.
fn find_protected_write(input: GuardInput<'_>, proposal: &Proposal<'_>) -> Option<ProtectedWrite> {
    let guarded = ProtectedPaths { place: input.place, definition: input.definition };
    for way in write_targets::write_targets(input, proposal) {
        let (path, sure) = match &way.status {
            TargetStatus::Resolved(target) => {
                (written_protected_path(input, proposal, way.touch, target, &guarded), true)
            }
            // An unchecked path is denied.
            TargetStatus::Unchecked(path) => (Some(path.clone()), false),
        };
        if let Some(path) = path {
            let part = way.touch.command.and_then(|number| command_text(proposal, number));
            return Some(ProtectedWrite { path, part, is_certain: sure });
        }
    }
    let copied = copies::overwritten_path(input, proposal);
    if let Some(path) = copied.or_else(|| opaque_names::named_path(input, proposal, &guarded)) {
        return Some(ProtectedWrite::named(path));
    }
    let described = proposal
        .tool
        .declared
        .is_some_and(|tool| !(tool.paths.read.is_empty() && tool.paths.write.is_empty()));
    let may_write_arguments = match proposal.tool.kind {
        // A tool without a description may write any path that it is given.
        ToolKind::Other | ToolKind::Effect | ToolKind::Spawn => true,
        // A write tool without known paths still writes something.
        ToolKind::Write | ToolKind::Edit | ToolKind::Delete => proposal.touches.is_empty(),
        _ => false,
    };
    let args = proposal.args.filter(|_| may_write_arguments && !described)?;
    opaque_names::named_argument(args, proposal, &guarded).map(ProtectedWrite::named)
}

/// Returns the protected path that is written if `target` is touched.
fn written_protected_path(
    input: GuardInput<'_>,
    proposal: &Proposal<'_>,
    touch: &FileTouch,
    target: &PathTarget,
    guarded: &ProtectedPaths<'_>,
) -> Option<String> {
    let includes_contents = touch.recursive
        && (touch.access == Access::Delete
            || (touch.access == Access::Write && proposal.program(touch.command) == "git")
            // `cp -l` links every file below the directory.
            || (touch.access == Access::Touch && proposal.program(touch.command) == "cp"));
    match target {
        PathTarget::At(path) => {
            let fact = input.facts.files.get(path);
            let real = fact.and_then(|fact| fact.real.as_deref());
            let mut paths = [Some(path.as_str()), real].into_iter().flatten();
            let below = |directory: &str| {
                existing_protected_paths(input).into_iter().find(|protected| {
                    lies_within(protected, directory)
                        || lies_within(&input.place.absolute(protected), directory)
                })
            };
            let matched = paths.find_map(|path| {
                let itself = guarded.contains(path).then(|| path.to_string());
                itself.or_else(|| includes_contents.then(|| below(path)).flatten())
            });
            matched.filter(|_| !is_parent_no_directory(input, proposal, touch, path))
        }
        PathTarget::Pattern(pattern) => {
            if guarded.contains(pattern) {
                return Some(pattern.clone());
            }
            let matches = |protected: &str| {
                let mut above =
                    protected.match_indices('/').filter_map(|(at, _)| protected.get(..at));
                matches_pattern(protected, pattern)
                    || (includes_contents && above.any(|above| matches_pattern(above, pattern)))
            };
            let hit = |protected: &String| {
                matches(protected) || matches(&input.place.absolute(protected))
            };
            existing_protected_paths(input).into_iter().find(hit)
        }
        PathTarget::Unknown(text) if is_copy_of_itself(proposal, touch, text, guarded) => None,
        PathTarget::Unknown(text) => guarded.may_be(text).then(|| text.clone()),
        PathTarget::Repository(_) => {
            let is_pathspec = |word: &ShellWord<'_>| word.text.starts_with(':');
            let command = touch.command.and_then(|at| proposal.commands().get(at as usize));
            let has_pathspec =
                command.is_some_and(|command| command.arguments().iter().any(is_pathspec));
            let named = opaque_names::argument_path(input, proposal, touch.command, guarded);
            named.or_else(|| existing_protected_paths(input).into_iter().find(|_| has_pathspec))
        }
    }
}

/// Returns whether a protected file is copied under its own name to an unknown directory. If that
/// is its own directory, the content does not change.
fn is_copy_of_itself(
    proposal: &Proposal<'_>,
    touch: &FileTouch,
    text: &str,
    guarded: &ProtectedPaths<'_>,
) -> bool {
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_string();
    let is_source = |other: &&FileTouch| other.command == touch.command && !other.changes();
    let read = proposal.touches.iter().filter(is_source).filter_map(|other| other.target.path());
    let mut same = read.filter(|path| name(path) == name(text)).peekable();
    matches!(proposal.program(touch.command), "cp" | "install" | "rsync")
        && !is_protected_anywhere(text)
        && same.peek().is_some()
        && same.all(|path| guarded.contains(path))
}

/// Returns whether the parent of a path is not a directory. A copy has two possible targets, and
/// this one is then impossible.
fn is_parent_no_directory(
    input: GuardInput<'_>,
    proposal: &Proposal<'_>,
    touch: &FileTouch,
    path: &str,
) -> bool {
    let Some((parent, _)) = path.rsplit_once('/') else { return false };
    let is_parent = |other: &&FileTouch| {
        other.changes() && other.target.path().is_some_and(|path| path == parent)
    };
    let mut parents = proposal.touches.iter().filter(is_parent).peekable();
    let alternative = parents.peek().is_some() && parents.all(|one| one.command == touch.command);
    let fact = input.facts.files.get(parent);
    alternative && fact.is_some_and(|fact| matches!(fact.kind, FileKind::File | FileKind::Missing))
}

/// Returns the protected paths that are known to exist.
fn existing_protected_paths(input: GuardInput<'_>) -> Vec<String> {
    let mut existing: Vec<String> =
        input.state.protected_files.existing_paths().map(ToString::to_string).collect();
    if let Some(watched) = &input.facts.watched {
        existing.extend(
            watched.iter().filter(|(_, fact)| fact.sha256.is_some()).map(|(p, _)| p.clone()),
        );
    }
    existing.extend(input.place.definition.iter().map(|path| input.place.resolve_path(path, ".")));
    let homes = input.place.state_home.iter().chain(&input.place.own);
    existing.extend(homes.map(|path| input.place.resolve_path(path, ".")));
    let markers = paths::JACKLINE_DIRECTORY.trim_end_matches('/');
    let exists = input.facts.files.get(markers).is_some_and(|fact| fact.kind != FileKind::Missing);
    if exists {
        existing.push(markers.to_string());
    }
    existing
}

/// Returns the `.jackline/` directory if the call removes a directory above it, so that its
/// existence must be checked.
fn markers_to_check(place: &SessionLocation, proposal: &Proposal<'_>) -> Option<String> {
    let markers = paths::JACKLINE_DIRECTORY.trim_end_matches('/');
    let above = |touch: &FileTouch| {
        touch.recursive
            && touch.changes()
            && touch.target.path().is_some_and(|path| {
                lies_within(markers, path) || matches!(touch.target, PathTarget::Pattern(_))
            })
    };
    (place.workspace.is_some() && proposal.touches.iter().any(above)).then(|| markers.to_string())
}

/// Returns the text of a simple command.
fn command_text(proposal: &Proposal<'_>, number: u32) -> Option<String> {
    let ProposedRun::Line(line) = &proposal.run else { return None };
    super::command_excerpt(line, line.commands.get(number as usize)?)
}
