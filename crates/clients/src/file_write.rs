//! Saves the files that a client's own tools write, so that a person can undo the call.
//!
//! This runs after the verdict, and only for tools that write files. A failure is recorded and
//! changes no answer.

use std::path::{Path, PathBuf};

use jackline_engine::{Decision, Verdict};
use jackline_runtime::AnswerKind;
use jackline_workspace::undo::calls;

/// A call that writes a file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileWrite {
    path: PathBuf,
    /// What the call does to the file; nothing if the call has already run.
    change: Option<FileChange>,
}

/// What a call does to a file, according to its arguments.
#[derive(Debug, Clone, PartialEq)]
pub enum FileChange {
    /// Replaces the content with this text.
    Replaced(String),
    /// Replaces parts of the content.
    Edited(Vec<TextEdit>),
    /// The arguments do not tell.
    Unknown,
}

/// A part of a file that is replaced.
#[derive(Debug, Clone, PartialEq)]
pub struct TextEdit {
    /// The text to replace.
    pub old: String,
    /// The replacement.
    pub new: String,
    /// Whether every occurrence is replaced.
    pub replace_all: bool,
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

    /// Whether the call runs or may still run, for example after a person allows it.
    pub(crate) fn may_write(&self, verdict: &Verdict, outcome: AnswerKind) -> bool {
        let blocking = [Decision::Deny, Decision::Pause, Decision::Stop];
        match outcome {
            _ if self.change.is_none() => true,
            AnswerKind::Decided => !blocking.iter().any(|decision| verdict.is_enforced(*decision)),
            AnswerKind::GuardOff => true,
            AnswerKind::Refused | AnswerKind::Broken => false,
        }
    }

    /// Saves the file in the directory of the session, or compares it with the saved copy. The
    /// error says why that failed.
    pub(crate) fn save_for_undo(self, session: &Path) -> Result<(), String> {
        let path = self.path.display().to_string();
        let directory = session.join("undo").join("calls");
        let saved = match self.change {
            None => calls::record_after_call(&directory, &self.path),
            Some(change) => {
                calls::record_before_call(&directory, &self.path, |now| change.apply(now))
            }
        };
        saved.map_err(|error| format!("the change of `{path}` can't be undone: {error}"))
    }
}

impl FileChange {
    /// The content after the change, if it can be predicted.
    fn apply(self, now: Option<&[u8]>) -> Option<Vec<u8>> {
        match self {
            Self::Replaced(content) => Some(content.into_bytes()),
            Self::Edited(edits) => {
                let mut text = std::str::from_utf8(now.unwrap_or_default()).ok()?.to_owned();
                for TextEdit { old, new, replace_all: everywhere } in edits {
                    text = match (old.is_empty(), everywhere) {
                        // An empty `old` creates a file or fills an empty one.
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
    fn the_result_of_an_edit_is_predicted_before_it_runs() {
        let edit = |old: &str, new: &str, everywhere| TextEdit {
            old: old.to_owned(),
            new: new.to_owned(),
            replace_all: everywhere,
        };
        let result = |change: FileChange, now: &str| {
            change.apply(Some(now.as_bytes())).map(|bytes| String::from_utf8(bytes).unwrap())
        };
        let edited = |edits: Vec<TextEdit>, now| result(FileChange::Edited(edits), now);
        assert_eq!(edited(vec![edit("a", "b", false)], "aa").as_deref(), Some("ba"));
        let all = edit("a", "b", true);
        assert_eq!(edited(vec![all.clone()], "aa").as_deref(), Some("bb"));
        assert_eq!(edited(vec![all, edit("bb", "c", false)], "aa").as_deref(), Some("c"));
        let new = vec![edit("", "made", false)];
        assert_eq!(edited(new.clone(), "").as_deref(), Some("made"));
        assert_eq!(edited(new, "full"), None);
        assert_eq!(result(FileChange::Replaced("x".to_owned()), "").as_deref(), Some("x"));
        assert_eq!(result(FileChange::Unknown, "a"), None);
    }
}
