//! Decides which changed files count as code.

use alloc::string::String;

use crate::checks::{LocatedCheck, is_piped, runs_command};
use crate::definition::Definition;
use crate::guards::path_patterns::matches_pattern;
use crate::guards::{FoldInput, read_before_write};
use crate::proposal::{FileTouch, Proposal, ProposedRun};
use crate::session_location::PathTarget;
use crate::state::ChangeCertainty;

/// Patterns that are documentation in every project.
const DOCS: [&str; 2] = ["**/*.md", "docs/**"];

/// The category of a changed file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FileCategory {
    Code,
    Docs,
    /// A file of Jackline itself, or one outside of the workspace.
    Neither,
}

/// Returns whether a call surely changes code, and whether it changes documentation.
pub(super) fn surely_changed(
    definition: &Definition,
    proposal: &Proposal<'_>,
    found: &[LocatedCheck],
) -> (bool, bool) {
    if read_before_write::expected_changes(proposal) != ChangeCertainty::Surely {
        return (false, false);
    }
    if proposal.tool.kind.mutates() && !proposal.touches.iter().any(FileTouch::changes) {
        // The call writes, but the target is unknown.
        return (true, false);
    }
    let named = proposal.touches.iter().filter(|touch| {
        read_before_write::changes_workspace(proposal, touch)
            && !is_check_output(proposal, touch, found)
    });
    summarize_categories(named.map(|touch| touch_category(definition, touch)))
}

/// Returns whether the changed files include code, and whether they include documentation.
fn summarize_categories(changed: impl Iterator<Item = FileCategory>) -> (bool, bool) {
    changed.fold((false, false), |(code, docs), is| {
        (code || is == FileCategory::Code, docs || is == FileCategory::Docs)
    })
}

/// Does the same for the files that changed on disk while an opaque call ran.
pub(super) fn observed_changes(fold: FoldInput<'_>) -> (bool, bool) {
    let paths = fold.record.facts.changed.iter().flatten();
    summarize_categories(paths.map(|(path, _)| path_category(fold.definition, path)))
}

/// Does the same for files that the adapter reported as changed.
pub(super) fn reported_changes(fold: FoldInput<'_>, files: &[String]) -> (bool, bool) {
    let category =
        |path: &String| path_category(fold.definition, &fold.place.resolve_path_cow(path, "."));
    summarize_categories(files.iter().map(category))
}

/// Returns whether the checks of a call run after all its changes.
pub(super) fn are_checks_last(proposal: &Proposal<'_>, found: &[LocatedCheck]) -> bool {
    let Some(first) = found.iter().filter_map(|found| found.command).min() else {
        return !found.is_empty();
    };
    let changes = proposal.touches.iter().filter(|touch| {
        read_before_write::changes_workspace(proposal, touch)
            && !is_check_output(proposal, touch, found)
    });
    let named = changes.filter_map(|touch| touch.command).max();
    let hidden = match &proposal.run {
        ProposedRun::Line(line) => line
            .opaque_parts
            .iter()
            .filter_map(|part| part.command)
            .filter(|number| !found.iter().any(|found| found.command == Some(*number)))
            .max(),
        ProposedRun::Nothing | ProposedRun::Unseen => None,
    };
    named.max(hidden).is_none_or(|last| last < first)
}

fn touch_category(definition: &Definition, touch: &FileTouch) -> FileCategory {
    match &touch.target {
        PathTarget::At(path) | PathTarget::Pattern(path) => path_category(definition, path),
        PathTarget::Repository(_) | PathTarget::Unknown(_) => FileCategory::Code,
    }
}

/// Returns the category of a canonical path.
fn path_category(definition: &Definition, path: &str) -> FileCategory {
    let own = path == ".jackline" || path.starts_with(".jackline/");
    if own || path.starts_with('/') || path.starts_with("../") {
        return FileCategory::Neither;
    }
    let mut configured = definition.dirty_bits.docs.iter().map(String::as_str);
    let docs = DOCS.into_iter().any(|pattern| matches_pattern(path, pattern))
        || configured.any(|pattern| matches_pattern(path, pattern));
    if docs { FileCategory::Docs } else { FileCategory::Code }
}

/// Returns whether a file only receives the output of a check: `pytest > log`, `pytest | tee log`.
fn is_check_output(proposal: &Proposal<'_>, touch: &FileTouch, found: &[LocatedCheck]) -> bool {
    let (Some(number), ProposedRun::Line(line)) = (touch.command, &proposal.run) else {
        return false;
    };
    found.iter().filter_map(|found| found.command).any(|check| {
        check == number
            || runs_command(line, number, check)
            || (proposal.program(Some(number)) == "tee" && is_piped(line, check, number))
    })
}
