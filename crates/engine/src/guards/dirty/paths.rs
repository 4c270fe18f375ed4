//! Which changes are changes of code.

use crate::checks::{Found, is_piped, runs};
use crate::definition::Definition;
use crate::guards::protected::paths::matches_pattern;
use crate::guards::{Fold, reads};
use crate::place::Target;
use crate::proposal::{Proposal, Run, Touch};
use crate::state::Changes;

/// What is documentation everywhere.
const DOCS: [&str; 2] = ["**/*.md", "docs/**"];

/// What a changed file is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Is {
    Code,
    Docs,
    /// The guard's own, or outside of the workspace.
    Neither,
}

/// Whether a call surely changes code, and whether documentation.
pub(super) fn changed(
    definition: &Definition,
    proposal: &Proposal<'_>,
    found: &[Found],
) -> (bool, bool) {
    if reads::changes(proposal) != Changes::Surely {
        return (false, false);
    }
    if proposal.tool.kind.mutates() && !proposal.touches.iter().any(Touch::changes) {
        // It writes, and nobody knows where.
        return (true, false);
    }
    let named = proposal
        .touches
        .iter()
        .filter(|touch| reads::counts(proposal, touch) && !is_output(proposal, touch, found));
    both(named.map(|touch| touched(definition, touch)))
}

/// Whether code is among what changed, and whether documentation.
fn both(changed: impl Iterator<Item = Is>) -> (bool, bool) {
    changed
        .fold((false, false), |(code, docs), is| (code || is == Is::Code, docs || is == Is::Docs))
}

/// The same for what was seen to have changed under a call that nobody can see into.
pub(super) fn seen(fold: Fold<'_>) -> (bool, bool) {
    let paths = fold.record.facts.changed.iter().flatten();
    both(paths.map(|(path, _)| what_is(fold.definition, path)))
}

/// Whether the checks of a call come after everything that changes something.
pub(super) fn checks_last(proposal: &Proposal<'_>, found: &[Found]) -> bool {
    let Some(first) = found.iter().filter_map(|found| found.command).min() else {
        return !found.is_empty();
    };
    let changes = proposal
        .touches
        .iter()
        .filter(|touch| reads::counts(proposal, touch) && !is_output(proposal, touch, found));
    let named = changes.filter_map(|touch| touch.command).max();
    let hidden = match &proposal.run {
        Run::Line(line) => line
            .opaque
            .iter()
            .filter_map(|part| part.command)
            .filter(|number| !found.iter().any(|found| found.command == Some(*number)))
            .max(),
        Run::Nothing | Run::Unseen => None,
    };
    named.max(hidden).is_none_or(|last| last < first)
}

fn touched(definition: &Definition, touch: &Touch) -> Is {
    match &touch.target {
        Target::At(path) | Target::Pattern(path) => what_is(definition, path),
        Target::Repository(_) | Target::Unknown(_) => Is::Code,
    }
}

/// What a canonical path is.
fn what_is(definition: &Definition, path: &str) -> Is {
    let own = path == ".jackline" || path.starts_with(".jackline/");
    if own || path.starts_with('/') || path.starts_with("../") {
        return Is::Neither;
    }
    let mut told = definition.dirty_bits.docs.iter().map(alloc::string::String::as_str);
    let docs = DOCS.into_iter().any(|pattern| matches_pattern(path, pattern))
        || told.any(|pattern| matches_pattern(path, pattern));
    if docs { Is::Docs } else { Is::Code }
}

/// Whether a file only takes what a check says: `pytest > log`, `pytest | tee log`.
fn is_output(proposal: &Proposal<'_>, touch: &Touch, found: &[Found]) -> bool {
    let (Some(number), Run::Line(line)) = (touch.command, &proposal.run) else { return false };
    found.iter().filter_map(|found| found.command).any(|check| {
        check == number
            || runs(line, number, check)
            || (proposal.program(Some(number)) == "tee" && is_piped(line, check, number))
    })
}
