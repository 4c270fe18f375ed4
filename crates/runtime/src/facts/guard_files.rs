//! Facts about the files that guard: what git would do to them, and how they changed in a call.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use jackline_engine::facts::{ChangedFile, FileChangeFact, GitChange, GitChangeFact, HookState};
use serde_json::Value;

use super::FactContext;
use crate::git::{AskedFile, GitQuestion, hook_state_at, hook_state_of};
use crate::restore::can_restore;

impl FactContext<'_> {
    /// What a git command that runs in a directory would do to files.
    pub(super) fn predict(
        &self,
        question: GitQuestion<'_>,
        directory: &str,
        change: &GitChange,
        files: &[String],
    ) -> GitChangeFact {
        let inspector = self.files();
        let Some(directory) = inspector.absolute_path(directory) else {
            return GitChangeFact::Unknown;
        };
        let mut asked = Vec::new();
        for name in files {
            let Some(path) = inspector.absolute_path(name) else { continue };
            // Git may change a link as well as the file to which it leads.
            let real = path.canonicalize().ok().filter(|real| *real != path);
            let paths = real.into_iter().chain([path]);
            asked.extend(paths.map(|path| AskedFile { name: name.clone(), path }));
        }
        question.predict(&directory, change, &asked)
    }

    /// Whether settings of a client start the guard.
    pub(super) fn hook_state(&self, path: &str) -> HookState {
        self.files().absolute_path(path).map_or(HookState::Absent, |path| hook_state_at(&path))
    }

    /// How protected files changed during a call.
    pub(super) fn file_changes(
        &self,
        question: GitQuestion<'_>,
        files: &[ChangedFile],
    ) -> BTreeMap<String, FileChangeFact> {
        let mut changes = BTreeMap::new();
        for file in files {
            let Some(path) = self.files().absolute_path(&file.path) else { continue };
            let path = self.known_target(&path);
            let earlier = file.before.and_then(|digest| self.store.blob(&digest).ok().flatten());
            // The store has no copy of a huge file, so git can't be asked about it.
            let is_known = earlier.is_some() == file.before.is_some();
            let change = FileChangeFact {
                by_git: is_known && question.has_moved(&path, earlier.as_deref()),
                before: earlier.as_deref().map_or(HookState::Absent, hook_state_of),
                after: state_after_change(earlier.as_deref().unwrap_or_default(), &path),
                unrestorable: !is_known || !can_restore(&path),
            };
            changes.insert(file.path.clone(), change);
        }
        changes
    }
}

/// Whether settings start the guard after a call has changed them. A link never counts: a later
/// change of its target would not be noticed. Nor do settings that have lost one of their hooks.
fn state_after_change(before: &[u8], path: &Path) -> HookState {
    match hook_state_at(path) {
        HookState::Present if path.is_symlink() || has_lost_hook(before, path) => HookState::Absent,
        state => state,
    }
}

/// Whether one of the hooks that start the guard is missing or different now. A client ignores a
/// file that is no JSON, so such a file has no hooks.
fn has_lost_hook(before: &[u8], path: &Path) -> bool {
    let Ok(before) = serde_json::from_slice::<Value>(before) else { return false };
    let after = fs::read(path).ok();
    let after: Value =
        after.and_then(|after| serde_json::from_slice(&after).ok()).unwrap_or_default();
    let Some(Value::Object(events)) = before.get("hooks") else { return false };
    events.iter().any(|(event, hooks)| {
        let kept = after.pointer(&format!("/hooks/{event}")).and_then(Value::as_array);
        let mut hooks = hooks.as_array().into_iter().flatten();
        hooks.any(|hook| {
            is_guard_hook(hook) && !kept.is_some_and(|kept| kept.iter().any(|it| it == hook))
        })
    })
}

fn is_guard_hook(hook: &Value) -> bool {
    hook_state_of(hook.to_string().as_bytes()) == HookState::Present
}
