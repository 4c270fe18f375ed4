//! Protected files that changed while a call was running, and what is done about them.
//!
//! In mode enforce they are restored, and the session waits for a person. What git moved is not
//! restored: git would then refuse to move back. In mode observe nothing is restored or paused; a
//! change that removes the guard is reported.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::super::{GuardAnswers, GuardInput, ViolationDraft, reports};
use super::{guard_loss, paths};
use crate::definition::{Definition, Mode};
use crate::digest::Digest;
use crate::event::{Event, EventKind, PromptSource, PromptSubmitted};
use crate::facts::{ChangedFile, Facts, FileChangeFact, Queries, Query, WatchedFact};
use crate::id::CallId;
use crate::session_location::SessionLocation;
use crate::state::{InFlightCall, ReportFile, SessionState};
use crate::tool::ToolKind;
use crate::verdict::{Decision, GuardName, ViolationClass, ViolationSubtype, ViolationType};

/// The parts of a session that decide about a changed file.
#[derive(Clone, Copy)]
pub(super) struct ChangeJudge<'a> {
    pub(super) definition: &'a Definition,
    pub(super) place: &'a SessionLocation,
    pub(super) state: &'a SessionState,
    pub(super) facts: &'a Facts,
}

/// What is done about a protected file that changed during a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeResponse {
    /// It is restored, and the session waits for a person.
    Restore,
    /// It stays as git left it, and the session waits for a person.
    Wait,
    /// It stays, and the agent and the person are told that the guard may be gone.
    Warn,
    /// It stays, and the change is recorded.
    Record,
    /// It stays. It never guarded, or the client wrote a choice of its person into it.
    Accept,
}

impl<'a> ChangeJudge<'a> {
    pub(super) fn of(input: GuardInput<'a>) -> Self {
        let GuardInput { definition, place, state, facts, .. } = input;
        Self { definition, place, state, facts }
    }

    /// The protected files that changed while a call was running.
    pub(super) fn changed_files(self) -> impl Iterator<Item = (&'a str, &'a WatchedFact)> {
        let watched = self.facts.watched.iter().flatten();
        watched.map(|(path, fact)| (path.as_str(), fact)).filter(move |(path, fact)| {
            (may_agent_write(self.state) || self.state.protected_files.is_damaged(path))
                && self.state.protected_files.differs(path, fact)
                && !fact.by_person
        })
    }

    /// Asks how the files changed.
    pub(super) fn ask(self, queries: &mut Queries) {
        if self.facts.file_changes.is_some() {
            return;
        }
        let files = self.changed_files().filter(|(path, _)| ReportFile::from_path(path).is_none());
        let before = |path: &str| self.state.protected_files.contents(path);
        let files: Vec<ChangedFile> = files
            .map(|(path, _)| ChangedFile { path: path.to_string(), before: before(path) })
            .collect();
        if !files.is_empty() {
            queries.ask(Query::FileChanges { files });
        }
    }

    /// What is done about a file that changed during a call.
    pub(super) fn response(self, path: &str) -> ChangeResponse {
        let change = self.change(path);
        let existed = self.state.protected_files.contents(path).is_some();
        let is_settings = paths::is_client_settings(path);
        let guarded = if is_settings {
            guard_loss::is_guarding_change(change.before, change.after)
        } else {
            existed
        };
        match self.definition.mode {
            // A report exists only if something is enforced.
            _ if self.is_required_report(path) => ChangeResponse::Restore,
            _ if paths::is_client_written(path) && !change.before.is_lost(change.after) => {
                ChangeResponse::Accept
            }
            Mode::Observe if is_settings && change.before.is_lost(change.after) => {
                ChangeResponse::Warn
            }
            Mode::Observe if existed && guard_loss::is_own_file(self.place, path) => {
                ChangeResponse::Warn
            }
            Mode::Observe => ChangeResponse::Record,
            Mode::Enforce if change.by_git && guarded => ChangeResponse::Wait,
            Mode::Enforce if change.by_git => ChangeResponse::Accept,
            Mode::Enforce => ChangeResponse::Restore,
        }
    }

    fn is_required_report(self, path: &str) -> bool {
        reports::required_report(self.state).is_some_and(|report| report.path() == path)
    }

    fn change(self, path: &str) -> FileChangeFact {
        let known = self.facts.file_changes.as_ref().and_then(|changes| changes.get(path));
        known.copied().unwrap_or_default()
    }
}

/// Adds a violation for each protected file that changed during a call.
pub(super) fn report(input: GuardInput<'_>, answers: &mut GuardAnswers) {
    let judge = ChangeJudge::of(input);
    for (path, fact) in judge.changed_files() {
        let did = if fact.sha256.is_none() { "removed" } else { "changed" };
        let by_git = judge.change(path).by_git;
        match judge.response(path) {
            ChangeResponse::Accept => {}
            ChangeResponse::Restore => {
                let fate = if input.facts.is_off() {
                    "the change stays, because the guard is turned off"
                } else if judge.change(path).unrestorable {
                    "the previous content can't be restored"
                } else {
                    "the previous content is restored"
                };
                let violation = tampering_violation(input, path, "changed", fate);
                answers.add_enforced_violation(violation);
            }
            ChangeResponse::Wait => {
                let fate = "git moved it, so it is not restored: git could not move back then";
                let mut violation = tampering_violation(input, path, did, fate);
                violation.correction = Some(
                    "end the turn and tell the person; they can check out the earlier branch \
                     again, for example with `git switch -`, and then continue the session"
                        .to_string(),
                );
                answers.add_enforced_violation(violation);
            }
            ChangeResponse::Warn => {
                let fate = "nothing is restored in mode observe, and later sessions may run \
                            without the guard";
                let mut violation = tampering_violation(input, path, did, fate);
                violation.decision = Decision::Allow;
                violation.correction = Some(if by_git {
                    "tell the person; git has the earlier version, for example `git switch -` \
                     brings it back"
                        .to_string()
                } else {
                    format!("tell the person that `{path}` was {did}")
                });
                answers.add_enforced_violation(violation);
            }
            ChangeResponse::Record => {
                let fate = "nothing is restored in mode observe";
                answers.add_violation(tampering_violation(input, path, did, fate));
            }
        }
    }
}

/// Returns the protected files to restore, with the digest of their content. `None` means that the
/// file did not exist.
pub(crate) fn files_to_restore(input: GuardInput<'_>) -> Vec<(String, Option<Digest>)> {
    let judge = ChangeJudge::of(input);
    judge
        .changed_files()
        .filter(|(path, _)| judge.response(path) == ChangeResponse::Restore)
        .map(|(path, _)| (path.to_string(), input.state.protected_files.contents(path)))
        .collect()
}

/// Builds the violation for a file that changed during a call. `did` says how it changed, and
/// `fate` what happens now.
pub(crate) fn tampering_violation(
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
pub(crate) fn is_comparison_gate(kind: &EventKind) -> bool {
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
    !call.needs_approval()
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
