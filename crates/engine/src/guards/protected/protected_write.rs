//! The protected paths that a call would write, and the violation for the most important one.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use jackline_shell::{Access, ShellWord};

use super::super::path_patterns::{is_hidden_from, matches_pattern};
use super::super::{GuardInput, ViolationDraft};
use super::file_searches;
use super::paths::{self, ProtectedPaths, is_protected_anywhere, lies_within};
use super::write_targets::{self, TargetStatus};
use super::{command_text, copies, git_facts, guard_loss, opaque_names};
use crate::facts::FileKind;
use crate::proposal::{FileTouch, Proposal};
use crate::session_location::{PathTarget, SessionLocation};
use crate::tool::ToolKind;
use crate::verdict::{Decision, GuardName, ViolationClass, ViolationSubtype, ViolationType};

/// A call that would write a protected path.
pub(super) struct ProtectedWrite {
    pub(super) path: String,
    /// The path as texts show it, if that is another one.
    pub(super) shown: Option<String>,
    /// The part of the call that writes it.
    pub(super) part: Option<String>,
    pub(super) effect: WriteEffect,
    pub(super) certainty: WriteCertainty,
    /// Whether the call would remove the guard itself.
    pub(super) removes_guard: bool,
}

/// What a call would do to a protected path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteEffect {
    /// It would write it.
    Writes,
    /// It would remove it.
    Removes,
    /// It would remove the workspace, and the path with it.
    RemovesWorkspace,
    /// Git would give it other contents.
    GitChanges,
    /// Git would remove it.
    GitRemoves,
}

/// How certain it is that a call writes a protected path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteCertainty {
    /// The call names the path and writes it.
    Certain,
    /// A part of the call that can't be read names the path.
    Named,
    /// The path could not be checked.
    Unchecked,
}

impl ProtectedWrite {
    /// Builds the write of an opaque part that names the path.
    fn named(path: String) -> Self {
        Self {
            path,
            shown: None,
            part: None,
            effect: WriteEffect::Writes,
            certainty: WriteCertainty::Named,
            removes_guard: false,
        }
    }

    pub(super) fn into_violation(self) -> ViolationDraft {
        let path = self.shown.unwrap_or(self.path);
        let leave = "leave it unchanged; a person can change it outside of the session";
        let (message, correction) = match (self.certainty, self.part, self.effect) {
            (WriteCertainty::Unchecked, ..) => (
                format!("`{path}` could not be checked and may lead to a protected path"),
                "change fewer files per call, and use plain paths",
            ),
            (_, Some(part), WriteEffect::RemovesWorkspace) => (
                format!("`{part}` would remove the whole workspace, the protected `{path}` too"),
                "remove only what you made; a person can remove more outside of the session",
            ),
            (_, Some(part), WriteEffect::GitChanges) => (
                format!("`{path}` is protected, and `{part}` would change it"),
                "leave it unchanged; a person can run this command in their own terminal",
            ),
            (_, Some(part), WriteEffect::GitRemoves) => (
                format!("`{path}` is protected, and `{part}` would remove it"),
                "leave it in place; a person can run this command in their own terminal",
            ),
            (_, Some(part), WriteEffect::Removes) => {
                (format!("`{path}` is protected, and `{part}` would remove it"), leave)
            }
            (_, Some(part), WriteEffect::Writes) => {
                (format!("`{path}` is protected, and `{part}` would write it"), leave)
            }
            (_, None, _) => {
                (format!("`{path}` is protected and can't be written by an agent"), leave)
            }
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

/// Returns the write that weighs most: one that removes the guard, then one that is certain, then
/// the most important path.
pub(super) fn strongest(
    writes: Vec<ProtectedWrite>,
    place: &SessionLocation,
) -> Option<ProtectedWrite> {
    writes.into_iter().min_by_key(|write| {
        let is_checked = write.certainty != WriteCertainty::Unchecked;
        (!write.removes_guard, !is_checked, guard_loss::rank(place, &write.path))
    })
}

/// Returns the protected paths that a call would write.
pub(super) fn protected_writes(
    input: GuardInput<'_>,
    proposal: &Proposal<'_>,
) -> Vec<ProtectedWrite> {
    let guarded = ProtectedPaths { place: input.place, definition: input.definition };
    let mut writes = git_facts::writes(input, proposal);
    for way in write_targets::write_targets(input, proposal) {
        // Git has told what its commands do to the work tree. All their own effects are recursive.
        if way.touch.recursive && git_facts::is_answered(input, way.touch.command) {
            continue;
        }
        let (paths, certainty) = match &way.status {
            TargetStatus::Resolved(target) => {
                let paths = written_protected_paths(input, proposal, way.touch, target, &guarded);
                let is_known =
                    !matches!(target, PathTarget::Unknown(_) | PathTarget::Repository(_));
                let certainty =
                    if is_known { WriteCertainty::Certain } else { WriteCertainty::Named };
                (paths, certainty)
            }
            // An unchecked path is denied.
            TargetStatus::Unchecked(path) => (vec![path.clone()], WriteCertainty::Unchecked),
        };
        let by_git = proposal.program(way.touch.command) == "git" && way.touch.recursive;
        for path in paths {
            let removes_guard = certainty == WriteCertainty::Certain
                && !by_git
                && guard_loss::is_removed_by(input, proposal, &path);
            let part = way.touch.command.and_then(|number| command_text(proposal, number));
            let effect = write_effect(input, way.touch, &way.status);
            let shown = Some(shown_target(input, proposal, &way.status, &path));
            writes.push(ProtectedWrite { path, shown, part, effect, certainty, removes_guard });
        }
    }
    writes.extend(file_searches::writes(input, proposal));
    if let Some(path) = copies::overwritten_path(input, proposal) {
        writes.push(ProtectedWrite {
            removes_guard: guard_loss::is_removed_by(input, proposal, &path),
            certainty: WriteCertainty::Certain,
            ..ProtectedWrite::named(path)
        });
    }
    let named = opaque_names::named_path(input, proposal, &guarded)
        .or_else(|| named_in_arguments(proposal, &guarded));
    // What is named without a readable part matters only if nothing else is written.
    if let Some(path) = named.filter(|_| writes.is_empty()) {
        writes.push(ProtectedWrite::named(path));
    }
    writes
}

/// Returns a written path as texts show it. A link that leads out of the workspace is shown itself.
fn shown_target(
    input: GuardInput<'_>,
    proposal: &Proposal<'_>,
    status: &TargetStatus,
    path: &str,
) -> String {
    let linked = match status {
        TargetStatus::Resolved(PathTarget::At(named)) => {
            let fact = input.facts.files.get(named);
            let leads_out =
                fact.and_then(|fact| fact.real.as_deref()) == Some(path) && path.starts_with('/');
            leads_out.then_some(named.as_str())
        }
        _ => None,
    };
    proposal.shown_path(linked.unwrap_or(path)).to_string()
}

/// Returns the protected path that the arguments of a tool name, if the tool may write it.
fn named_in_arguments(proposal: &Proposal<'_>, guarded: &ProtectedPaths<'_>) -> Option<String> {
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
    opaque_names::named_argument(args, proposal, guarded)
}

fn write_effect(input: GuardInput<'_>, touch: &FileTouch, status: &TargetStatus) -> WriteEffect {
    if touch.access != Access::Delete {
        return WriteEffect::Writes;
    }
    let workspace = input.place.workspace.as_deref();
    let is_above = match status {
        TargetStatus::Resolved(PathTarget::At(path)) => {
            let path = input.place.absolute(path);
            workspace.is_some_and(|workspace| lies_within(workspace, &path))
        }
        _ => false,
    };
    if is_above && touch.recursive { WriteEffect::RemovesWorkspace } else { WriteEffect::Removes }
}

/// Returns the protected paths that are written if `target` is touched.
fn written_protected_paths(
    input: GuardInput<'_>,
    proposal: &Proposal<'_>,
    touch: &FileTouch,
    target: &PathTarget,
    guarded: &ProtectedPaths<'_>,
) -> Vec<String> {
    let includes_contents = touch.recursive
        && (touch.access == Access::Delete
            || (touch.access == Access::Write && proposal.program(touch.command) == "git")
            // `cp -l` links every file below the directory.
            || (touch.access == Access::Touch && proposal.program(touch.command) == "cp"));
    match target {
        PathTarget::At(path) => {
            let fact = input.facts.files.get(path);
            let real = fact.and_then(|fact| fact.real.as_deref());
            // The removal of a link to a directory removes every path through it.
            let replaces_link = touch.access == Access::Delete
                || (touch.changes() && proposal.program(touch.command) == "ln");
            let removes_link = replaces_link && real.is_some();
            let below = |directory: &str| {
                let is_below = |protected: &String| {
                    lies_within(protected, directory)
                        || lies_within(&input.place.absolute(protected), directory)
                };
                reached_paths(input, is_below)
            };
            let mut paths = [Some(path.as_str()), real].into_iter().flatten();
            let matched = paths.find_map(|path| {
                let reached = if guarded.contains(path) {
                    vec![path.to_string()]
                } else if includes_contents || removes_link {
                    below(path)
                } else {
                    Vec::new()
                };
                (!reached.is_empty()).then_some(reached)
            });
            matched
                .filter(|_| !is_parent_no_directory(input, proposal, touch, path))
                .unwrap_or_default()
        }
        PathTarget::Pattern(pattern) => {
            if guarded.contains(pattern) {
                return vec![pattern.clone()];
            }
            let matches = |protected: &str| {
                // An absolute path begins with a slash, and nothing is above it.
                let above = protected.match_indices('/').filter(|(at, _)| *at > 0);
                let mut above = above.filter_map(|(at, _)| protected.get(..at));
                matches_pattern(protected, pattern)
                    || (includes_contents && above.any(|above| matches_pattern(above, pattern)))
            };
            let hit = |protected: &String| {
                // A relative pattern matches names in the workspace only.
                let is_outside = protected.starts_with('/') && !pattern.starts_with('/');
                let reached = |path: &str| matches(path) && !is_hidden_from(path, pattern);
                !is_outside && (reached(protected) || reached(&input.place.absolute(protected)))
            };
            reached_paths(input, hit)
        }
        PathTarget::Unknown(text) if is_copy_of_itself(proposal, touch, text, guarded) => {
            Vec::new()
        }
        PathTarget::Unknown(text) => {
            guarded.may_be(text).then(|| text.clone()).into_iter().collect()
        }
        PathTarget::Repository(_) => {
            let is_pathspec = |word: &ShellWord<'_>| word.text.starts_with(':');
            let command = touch.command.and_then(|at| proposal.commands().get(at as usize));
            let has_pathspec =
                command.is_some_and(|command| command.arguments().iter().any(is_pathspec));
            let named = opaque_names::argument_path(input, proposal, touch.command, guarded);
            let first = || existing_protected_paths(input).into_iter().find(|_| has_pathspec);
            named.or_else(first).into_iter().collect()
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

/// Returns the protected paths that exist and are selected, the most important one first.
fn reached_paths(input: GuardInput<'_>, is_selected: impl Fn(&String) -> bool) -> Vec<String> {
    let mut reached = existing_protected_paths(input);
    reached.retain(is_selected);
    reached.sort_by_key(|path| guard_loss::rank(input.place, path));
    reached
}

/// Returns the protected paths that are known to exist.
pub(super) fn existing_protected_paths(input: GuardInput<'_>) -> Vec<String> {
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
    let exists = |path: &&str| {
        input.facts.files.get(*path).is_some_and(|fact| fact.kind != FileKind::Missing)
    };
    existing.extend(unlisted_paths().filter(exists).map(ToString::to_string));
    existing
}

/// Returns protected paths in the workspace that are not compared at gates.
fn unlisted_paths() -> impl Iterator<Item = &'static str> {
    core::iter::once(paths::JACKLINE_DIRECTORY.trim_end_matches('/'))
}

/// Returns those of them whose existence must be checked, because the call changes paths that a
/// pattern matches, or a directory above them.
pub(super) fn unlisted_paths_to_check(
    place: &SessionLocation,
    proposal: &Proposal<'_>,
) -> Vec<String> {
    let may_reach = |touch: &FileTouch, path: &str| match &touch.target {
        PathTarget::Pattern(_) => true,
        PathTarget::At(above) => {
            // A path above may be a link, and its removal removes every path through it.
            (touch.recursive || touch.access == Access::Delete)
                && (lies_within(path, above) || lies_within(&place.absolute(path), above))
        }
        PathTarget::Repository(_) | PathTarget::Unknown(_) => false,
    };
    let is_changed = |path: &&str| {
        proposal.touches.iter().any(|touch| touch.changes() && may_reach(touch, path))
    };
    let paths = unlisted_paths().filter(|_| place.workspace.is_some()).filter(is_changed);
    paths.map(ToString::to_string).collect()
}
