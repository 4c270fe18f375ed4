//! What a client's own tools are about to write, kept so that a person can undo it.
//!
//! This observes: it happens once the verdict is there, only for tools that write files. A
//! failure is written down and changes no answer.

use std::path::{Path, PathBuf};

use jackline_engine::{Decision, Verdict};
use jackline_runtime::Outcome;
use jackline_workspace::undo::calls;

/// A call that writes a file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileWrite {
    path: PathBuf,
    /// What the call makes of the file; nothing where it has run already.
    change: Option<FileChange>,
}

/// What a call makes of a file, as far as its arguments say.
#[derive(Debug, Clone, PartialEq)]
pub enum FileChange {
    /// These contents.
    Content(String),
    /// The same contents with these parts replaced.
    Edited(Vec<TextEdit>),
    /// The arguments do not say it.
    Unknown,
}

/// A part of a file that is replaced.
#[derive(Debug, Clone, PartialEq)]
pub struct TextEdit {
    /// The text that is there.
    pub old: String,
    /// The text that takes its place.
    pub new: String,
    /// Whether every occurrence is replaced.
    pub everywhere: bool,
}

impl FileWrite {
    /// A call that is about to write to an absolute path.
    pub fn before(path: PathBuf, change: FileChange) -> Self {
        Self { path, change: Some(change) }
    }

    /// A call that has written to an absolute path.
    pub fn after(path: PathBuf) -> Self {
        Self { path, change: None }
    }

    /// Whether a call with this answer writes, or may: a person who is asked may allow it.
    pub(crate) fn may_happen(&self, verdict: &Verdict, outcome: Outcome) -> bool {
        let held = [Decision::Deny, Decision::Pause, Decision::Stop];
        match outcome {
            _ if self.change.is_none() => true,
            Outcome::Decided => !held.iter().any(|decision| verdict.is_enforced(*decision)),
            Outcome::Passed => true,
            Outcome::Refused | Outcome::Broken => false,
        }
    }

    /// Keeps the file in the directory of the session, or compares it with what was kept. Says
    /// why that failed.
    pub(crate) fn note(self, session: &Path) -> Result<(), String> {
        let shown = self.path.display().to_string();
        let directory = session.join("undo").join("calls");
        let noted = match self.change {
            None => calls::after(&directory, &self.path),
            Some(change) => calls::before(&directory, &self.path, |now| change.apply(now)),
        };
        noted.map_err(|error| format!("`{shown}` can't be undone: {error}"))
    }
}

impl FileChange {
    /// What a file becomes that holds this now.
    fn apply(self, now: Option<&[u8]>) -> Option<Vec<u8>> {
        match self {
            Self::Content(content) => Some(content.into_bytes()),
            Self::Edited(edits) => {
                let mut text = std::str::from_utf8(now.unwrap_or_default()).ok()?.to_owned();
                for TextEdit { old, new, everywhere } in edits {
                    text = match (old.is_empty(), everywhere) {
                        // That makes a file, or fills an empty one.
                        (true, _) if text.is_empty() => new,
                        (true, _) => return None,
                        (false, true) => text.replace(&old, &new),
                        (false, false) => text.replacen(&old, &new, 1),
                    };
                }
                Some(text.into_bytes())
            }
            Self::Unknown => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_edit_makes_is_known_before_it_runs() {
        let edit = |old: &str, new: &str, everywhere| TextEdit {
            old: old.to_owned(),
            new: new.to_owned(),
            everywhere,
        };
        let made = |change: FileChange, now: &str| {
            change.apply(Some(now.as_bytes())).map(|bytes| String::from_utf8(bytes).unwrap())
        };
        let edited = |edits: Vec<TextEdit>, now| made(FileChange::Edited(edits), now);
        assert_eq!(edited(vec![edit("a", "b", false)], "aa").as_deref(), Some("ba"));
        let all = edit("a", "b", true);
        assert_eq!(edited(vec![all.clone()], "aa").as_deref(), Some("bb"));
        assert_eq!(edited(vec![all, edit("bb", "c", false)], "aa").as_deref(), Some("c"));
        let new = vec![edit("", "made", false)];
        assert_eq!(edited(new.clone(), "").as_deref(), Some("made"));
        assert_eq!(edited(new, "full"), None);
        assert_eq!(made(FileChange::Content("x".to_owned()), "").as_deref(), Some("x"));
        assert_eq!(made(FileChange::Unknown, "a"), None);
    }
}
