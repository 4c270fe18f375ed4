//! Whether a change of a protected file removes the guard itself: the hook entry in the settings of
//! a client, the definition in force, or Jackline's own state.
//!
//! In mode observe, only such a call is refused.

use alloc::string::String;

use serde_json::Value;

use super::super::GuardInput;
use super::super::path_patterns::matches_pattern;
use super::paths::{is_client_settings, lies_within};
use super::protected_write::{ProtectedWrite, WriteCertainty, protected_writes};
use crate::definition::Mode;
use crate::facts::{HookState, Queries, Query};
use crate::proposal::{Proposal, ProposedRun};
use crate::session_location::SessionLocation;

/// The setting that makes a client skip all hooks.
pub(super) const NO_HOOKS_SETTING: &str = "disableAllHooks";

/// Returns whether a path is the definition in force or one of Jackline's own files.
pub(super) fn is_own_file(place: &SessionLocation, path: &str) -> bool {
    own_rank(place, path).is_some()
}

/// The rank of one of Jackline's own files: the definition in force comes first.
fn own_rank(place: &SessionLocation, path: &str) -> Option<u8> {
    let is_in = |own: &String| {
        let own = place.resolve_path(own, ".");
        lies_within(path, &own) || (path.contains(['*', '?']) && matches_pattern(&own, path))
    };
    if place.definition.iter().any(is_in) {
        return Some(0);
    }
    let is_home = place.state_home.iter().chain(&place.own).any(is_in);
    (is_home && !is_client_settings(path)).then_some(1)
}

/// The importance of a protected path: the lowest number is named first.
pub(super) fn rank(place: &SessionLocation, path: &str) -> u8 {
    own_rank(place, path).unwrap_or(if is_client_settings(path) { 2 } else { 3 })
}

/// Returns whether a change of a client's settings concerns the guard.
pub(super) fn is_guarding_change(before: HookState, after: HookState) -> bool {
    before == HookState::Present || before.is_lost(after)
}

/// Asks whether settings that a call would write start the guard. Only mode observe needs it: other
/// modes protect all settings.
pub(super) fn ask(input: GuardInput<'_>, proposal: &Proposal<'_>, queries: &mut Queries) {
    if input.definition.mode != Mode::Observe {
        return;
    }
    let writes = protected_writes(input, proposal);
    for path in writes.iter().filter(|write| needs_hook_state(write)).map(|write| &write.path) {
        if !input.facts.hooks.contains_key(path) {
            queries.ask(Query::Hook { path: path.clone() });
        }
    }
}

fn needs_hook_state(write: &ProtectedWrite) -> bool {
    write.certainty == WriteCertainty::Certain && is_client_settings(&write.path)
}

/// Returns whether a call that writes a protected path by its name would remove the guard.
pub(super) fn is_removed_by(input: GuardInput<'_>, proposal: &Proposal<'_>, path: &str) -> bool {
    if !is_client_settings(path) {
        return is_own_file(input.place, path);
    }
    input.facts.hooks.get(path) == Some(&HookState::Present) || disables_hooks(proposal)
}

/// Returns whether a call writes the setting that switches hooks off.
fn disables_hooks(proposal: &Proposal<'_>) -> bool {
    match &proposal.run {
        ProposedRun::Line(line) => line.text.contains(NO_HOOKS_SETTING),
        ProposedRun::Nothing | ProposedRun::Unseen => {
            proposal.args.is_some_and(names_no_hooks_setting)
        }
    }
}

fn names_no_hooks_setting(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(NO_HOOKS_SETTING),
        Value::Array(items) => items.iter().any(names_no_hooks_setting),
        Value::Object(fields) => fields.values().any(names_no_hooks_setting),
        _ => false,
    }
}
