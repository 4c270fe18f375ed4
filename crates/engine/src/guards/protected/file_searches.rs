//! Patterns of a call that may match protected files that are not known to exist.
//!
//! A definition may protect a pattern, such as `conf/secret*`. If a pattern of a command overlaps
//! with it, such as `conf/*.pem`, a search tells whether a file matches both.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use jackline_shell::Access;

use super::super::GuardInput;
use super::super::path_patterns::{matches_pattern, may_overlap};
use super::protected_write::{ProtectedWrite, WriteCertainty, WriteEffect};
use super::{command_text, git_facts, guard_loss, paths};
use crate::facts::{FileSearch, Queries, Query};
use crate::proposal::{FileTouch, Proposal};
use crate::session_location::PathTarget;

/// The characters that make a text a pattern.
const WILDCARDS: [char; 3] = ['*', '?', '['];

/// Asks for the files that the patterns of a call share with protected patterns.
pub(super) fn ask(input: GuardInput<'_>, proposal: &Proposal<'_>, queries: &mut Queries) {
    for (_, search) in searches(input, proposal) {
        if !input.facts.found_files.contains_key(&search.pattern) {
            queries.ask(Query::FileSearch { search });
        }
    }
}

/// Returns the protected files that searches have found. A search without an answer counts as
/// found.
pub(super) fn writes(input: GuardInput<'_>, proposal: &Proposal<'_>) -> Vec<ProtectedWrite> {
    let mut writes = Vec::new();
    for (touch, search) in searches(input, proposal) {
        let (path, certainty) = match input.facts.found_files.get(&search.pattern) {
            Some(None) => continue,
            Some(Some(path)) => (path.clone(), WriteCertainty::Certain),
            None => (search.pattern, WriteCertainty::Unchecked),
        };
        let is_deleted = touch.access == Access::Delete;
        writes.push(ProtectedWrite {
            removes_guard: certainty == WriteCertainty::Certain
                && guard_loss::is_removed_by(input, proposal, &path),
            shown: Some(proposal.shown_path(&path).to_string()),
            part: touch.command.and_then(|number| command_text(proposal, number)),
            effect: if is_deleted { WriteEffect::Removes } else { WriteEffect::Writes },
            certainty,
            path,
        });
    }
    writes
}

fn searches<'p>(
    input: GuardInput<'_>,
    proposal: &'p Proposal<'_>,
) -> Vec<(&'p FileTouch, FileSearch)> {
    let own =
        || input.definition.protected.iter().filter_map(|entry| protected_pattern(input, entry));
    let mut found: Vec<(&FileTouch, FileSearch)> = Vec::new();
    for touch in proposal.touches.iter().filter(|touch| touch.changes()) {
        if git_facts::is_answered(input, touch.command) {
            continue;
        }
        let includes_contents = touch.recursive && touch.access == Access::Delete;
        let mut add = |pattern: String, entries: Vec<String>| {
            let is_known = found.iter().any(|(_, search)| search.pattern == pattern);
            if !entries.is_empty() && !is_known {
                found.push((touch, FileSearch { pattern, entries }));
            }
        };
        if let PathTarget::Pattern(pattern) = &touch.target {
            let anywhere = paths::anywhere_patterns()
                .filter(|_| !pattern.contains("**"))
                .map(|entry| format!("**/{entry}"));
            let entries = own().chain(anywhere).filter(|entry| may_overlap(pattern, entry));
            add(pattern.clone(), entries.collect());
        }
        // Only protected files that a definition names below the directory: a search of a large
        // directory for names that may be anywhere would fail.
        if let Some(path) = touch.target.path().filter(|_| includes_contents) {
            let pattern = format!("{path}/**");
            let is_below = |entry: &String| {
                let named = !entry.starts_with(WILDCARDS);
                named && may_overlap(&pattern, entry) && !matches_pattern(path, entry)
            };
            let entries = own().filter(is_below).collect();
            add(pattern.clone(), entries);
        }
    }
    found
}

/// Returns the pattern of an entry of a definition that has wildcards, or that is a directory.
fn protected_pattern(input: GuardInput<'_>, entry: &str) -> Option<String> {
    let located = input.place.resolve_path(entry, ".");
    if entry.ends_with('/') {
        Some(located + "/**")
    } else {
        entry.contains(WILDCARDS).then_some(located)
    }
}
