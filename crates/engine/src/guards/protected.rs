//! The protected guard: no tool may write Jackline's own files.
//!
//! A call that writes a protected path is denied before it runs. What a git command would change,
//! git tells. Changes by an opaque program are detected at the next gate: files that changed during a
//! call are restored, and the session waits for a person.
//!
//! In mode observe, only a call that would remove the guard itself is denied. Nothing is restored.

mod changed_files;
mod copies;
mod file_searches;
mod git_commands;
mod git_facts;
mod guard_loss;
mod jackline_program;
mod opaque_names;
pub(crate) mod paths;
mod protected_write;
mod write_targets;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{FoldInput, Guard, GuardAnswers, GuardInput, join_names};
use crate::event::{EventKind, PromptSource, PromptSubmitted, ToolFinished};
use crate::facts::{FileDetails, Queries, Query};
use crate::proposal::{Proposal, ProposedRun};
use crate::state::{PauseCause, PauseState, SessionState};
use crate::verdict::{Decision, Violation, ViolationSubtype};

use changed_files::{ChangeJudge, ChangeResponse};
pub(crate) use changed_files::{
    files_to_restore, is_comparison_gate, may_agent_write, tampering_violation,
};
pub(crate) use paths::watch_list;
use write_targets::WriteTarget;

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
        ChangeJudge::of(input).ask(queries);
        let Some(proposal) = input.proposal else { return };
        git_facts::ask(input, proposal, queries);
        let unchecked = write_targets::write_targets(input, proposal)
            .into_iter()
            .filter_map(WriteTarget::unchecked_path);
        let copy_sources = copies::overwriting_sources(input, proposal);
        let unlisted = protected_write::unlisted_paths_to_check(input.place, proposal);
        for path in unchecked.chain(copy_sources).chain(unlisted) {
            if !input.facts.files.contains_key(&path) {
                queries.ask(Query::File { path, wants: FileDetails::default() });
            }
        }
        file_searches::ask(input, proposal, queries);
        guard_loss::ask(input, proposal, queries);
    }

    fn decide(&self, input: GuardInput<'_>, answers: &mut GuardAnswers) {
        changed_files::report(input, answers);
        let Some(proposal) = input.proposal else { return };
        let writes = protected_write::protected_writes(input, proposal);
        if let Some(write) = protected_write::strongest(writes, input.place) {
            if write.removes_guard {
                answers.add_enforced_violation(write.into_violation());
            } else {
                answers.add_violation(write.into_violation());
            }
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
        let damaged = if is_off { Vec::new() } else { damaged_files(state, fold) };
        for (path, fact) in record.facts.watched.iter().flatten() {
            if damaged.contains(path) {
                state.protected_files.mark_damaged(path);
            } else {
                state.protected_files.accept_current(path, fact);
            }
        }
        let is_damage = |v: &&Violation| {
            v.subtype == ViolationSubtype::ChangedDuringCall
                && v.enforced
                && v.decision == Decision::Pause
        };
        let damage = record.verdict.violations.iter().filter(is_damage);
        let names: Vec<&str> = damage.filter_map(|v| v.location.as_deref()).collect();
        // A pause that already waits for a report stays: the report says how to continue.
        let has_report = super::reports::required_report(state).is_some();
        if !names.is_empty() && !has_report {
            let why = format!("{} changed during a call", join_names(names));
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

/// Returns the changed files that are restored, and compared until they are in order.
fn damaged_files(state: &SessionState, fold: FoldInput<'_>) -> Vec<String> {
    let (definition, place, facts) = (fold.definition, fold.place, fold.record.facts);
    let judge = ChangeJudge { definition, place, state, facts };
    let changed = judge.changed_files();
    let damaged = changed.filter(|(path, _)| judge.response(path) == ChangeResponse::Restore);
    damaged.map(|(path, _)| path.to_string()).collect()
}

/// Returns the text of a simple command.
fn command_text(proposal: &Proposal<'_>, number: u32) -> Option<String> {
    let ProposedRun::Line(line) = &proposal.run else { return None };
    super::command_excerpt(line, line.commands.get(number as usize)?)
}
