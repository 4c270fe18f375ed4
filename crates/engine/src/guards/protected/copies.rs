//! Recursive copies that may overwrite a protected file.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use jackline_shell::Access;

use super::super::GuardInput;
use super::protected_write::existing_protected_paths;
use crate::facts::FileKind;
use crate::path::is_within;
use crate::proposal::{FileTouch, Proposal};
use crate::session_location::PathTarget;

/// A file in the source tree of a copy, and the protected file that it would overwrite.
struct CopyOverwrite {
    source: String,
    protected: String,
}

/// Returns the source files that would overwrite a protected file, if they exist.
pub(super) fn overwriting_sources(input: GuardInput<'_>, proposal: &Proposal<'_>) -> Vec<String> {
    find_overwrites(input, proposal).into_iter().map(|landing| landing.source).collect()
}

/// Returns the protected file that a copy overwrites. Its source exists, or the same command line
/// creates it.
pub(super) fn overwritten_path(input: GuardInput<'_>, proposal: &Proposal<'_>) -> Option<String> {
    let is_created = |path: &str| {
        let mut touches = proposal.touches.iter();
        touches.any(|touch| touch.changes() && touch.target.path() == Some(path))
    };
    let may_exist =
        |path: &str| input.facts.files.get(path).is_none_or(|fact| fact.kind != FileKind::Missing);
    let mut landings = find_overwrites(input, proposal).into_iter();
    let overwrite =
        landings.find(|landing| may_exist(&landing.source) || is_created(&landing.source));
    overwrite.map(|landing| landing.protected)
}

fn find_overwrites(input: GuardInput<'_>, proposal: &Proposal<'_>) -> Vec<CopyOverwrite> {
    let mut overwrites = Vec::new();
    let mut trees =
        proposal.touches.iter().filter(|touch| is_recursive(touch, Access::Write)).peekable();
    if trees.peek().is_none() {
        return overwrites;
    }
    let existing = existing_protected_paths(input);
    for to in trees {
        let PathTarget::At(target) = &to.target else { continue };
        let same_command = proposal.touches.iter().filter(|touch| touch.command == to.command);
        let trees =
            same_command.filter(|touch| matches!(touch.access, Access::Read(_)) && touch.recursive);
        for source in trees.filter_map(|touch| touch.target.path()) {
            if is_copied_into_directory(input, proposal, to, source) {
                continue;
            }
            for protected in existing.iter().filter(|path| is_within(path, target)) {
                let rest = match target.as_str() {
                    "." => protected.as_str(),
                    target => protected.get(target.len() + 1..).unwrap_or_default(),
                };
                let source = input.place.resolve_path(rest, source);
                if source != *protected && !rest.is_empty() {
                    overwrites.push(CopyOverwrite { source, protected: protected.clone() });
                }
            }
        }
    }
    overwrites
}

fn is_recursive(touch: &FileTouch, access: Access) -> bool {
    touch.access == access && touch.recursive && touch.command.is_some()
}

/// Returns whether the copy goes into an existing directory and does not replace that directory.
fn is_copied_into_directory(
    input: GuardInput<'_>,
    proposal: &Proposal<'_>,
    to: &FileTouch,
    source: &str,
) -> bool {
    let PathTarget::At(target) = &to.target else { return false };
    let name = source.rsplit('/').next().unwrap_or(source);
    let below = if target == "." { name.into() } else { format!("{target}/{name}") };
    let same =
        |touch: &&FileTouch| touch.command == to.command && is_recursive(touch, Access::Write);
    let mut others = proposal.touches.iter().filter(same);
    let fact = input.facts.files.get(target);
    others.any(|touch| touch.target.path() == Some(below.as_str()))
        && fact.is_some_and(|fact| fact.kind == FileKind::Directory)
}
