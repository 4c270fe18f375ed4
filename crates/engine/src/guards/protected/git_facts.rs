//! Asks git what the git commands of a call would do to protected files, and reads its answers.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::super::GuardInput;
use super::git_commands::git_change;
use super::guard_loss;
use super::paths::{self, ProtectedPaths};
use super::protected_write::{ProtectedWrite, WriteCertainty, WriteEffect};
use crate::facts::{GitChange, GitChangeFact, GitFileChange, Queries, Query};
use crate::proposal::{Proposal, ProposedRun};

/// How many git commands of one call are asked about.
const COMMANDS_MAX: usize = 8;

/// How many directories are searched for files that guard another work tree.
const DIRECTORIES_MAX: usize = 16;

/// A variable with this prefix may lead git to another repository.
const GIT_VARIABLE_PREFIX: &str = "GIT_";

/// Asks what the git commands of a call would do.
pub(super) fn ask(input: GuardInput<'_>, proposal: &Proposal<'_>, queries: &mut Queries) {
    let asked = predictable_commands(input, proposal).into_iter();
    for (command, dir, change) in asked.filter(|it| !input.facts.git_changes.contains_key(&it.0)) {
        let mut files = guard_files(input);
        files.extend(files_of_other_work_tree(input, &dir));
        queries.ask(Query::GitChange { command, dir, change, files });
    }
}

/// Returns the git commands that may change the work tree, if git can tell what they would do. An
/// earlier git command in the line makes the answer wrong, because git is asked before it runs.
fn predictable_commands(
    input: GuardInput<'_>,
    proposal: &Proposal<'_>,
) -> Vec<(u32, String, GitChange)> {
    let mut found = Vec::new();
    let ProposedRun::Line(line) = &proposal.run else { return found };
    if line.text.contains(GIT_VARIABLE_PREFIX) {
        return found;
    }
    for (number, command) in (0..).zip(&line.commands) {
        let dir = input.place.command_directory(&command.dir, &proposal.cwd);
        if let (Some(change), Some(dir)) = (git_change(command), dir) {
            found.push((number, dir, change));
        }
        if command.may_change_repository() || found.len() >= COMMANDS_MAX {
            break;
        }
    }
    found
}

/// Returns whether git has told what a command would do.
pub(super) fn is_answered(input: GuardInput<'_>, command: Option<u32>) -> bool {
    command.is_some_and(|command| answer(input, command).is_some())
}

fn answer(input: GuardInput<'_>, command: u32) -> Option<&BTreeMap<String, GitFileChange>> {
    match input.facts.git_changes.get(&command)? {
        GitChangeFact::Known { files } => Some(files),
        GitChangeFact::Unknown => None,
    }
}

/// Returns the protected files that git commands would change, by the answers of git.
pub(super) fn writes(input: GuardInput<'_>, proposal: &Proposal<'_>) -> Vec<ProtectedWrite> {
    let mut writes = Vec::new();
    for command in input.facts.git_changes.keys().copied() {
        let part = super::command_text(proposal, command);
        for (path, change) in answer(input, command).into_iter().flatten() {
            let is_settings = paths::is_client_settings(path);
            // Settings without the guard do not guard.
            if is_settings && !guard_loss::is_guarding_change(change.before, change.after) {
                continue;
            }
            let is_lost = if is_settings {
                change.before.is_lost(change.after)
            } else {
                change.removed && guard_loss::is_own_file(input.place, path)
            };
            let effect =
                if change.removed { WriteEffect::GitRemoves } else { WriteEffect::GitChanges };
            writes.push(ProtectedWrite {
                path: path.clone(),
                shown: None,
                part: part.clone(),
                effect,
                certainty: WriteCertainty::Certain,
                // A person gets a committed file back by checking it out again.
                removes_guard: is_lost && !change.kept,
            });
        }
    }
    writes
}

/// Returns the files that may guard a work tree outside of the workspace in which a command runs.
/// They may be in the directory or above it.
fn files_of_other_work_tree(input: GuardInput<'_>, dir: &str) -> Vec<String> {
    if !dir.starts_with('/') {
        return Vec::new();
    }
    let above = core::iter::successors(Some(dir), |dir| Some(dir.rsplit_once('/')?.0));
    let above = above.filter(|dir| !dir.is_empty()).take(DIRECTORIES_MAX);
    above
        .flat_map(|dir| paths::compared_files().map(|name| input.place.resolve_path(name, dir)))
        .collect()
}

/// Returns the files about which git is asked: those that guard, or that a definition protects.
fn guard_files(input: GuardInput<'_>) -> Vec<String> {
    let guarded = ProtectedPaths { place: input.place, definition: input.definition };
    let mut files = paths::watch_list(input.place, input.definition);
    files.push(paths::JACKLINE_DIRECTORY.trim_end_matches('/').to_string());
    files.extend(guarded.homes().map(|path| input.place.resolve_path(path, ".")));
    files.sort_unstable();
    files.dedup();
    files
}
