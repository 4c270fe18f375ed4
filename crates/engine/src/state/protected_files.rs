//! Protected files in their last known state, so that changes are detected.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::facts::{TrackedFile, WatchedFact};
use crate::time::Timestamp;

/// The protected files in their last known state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ProtectedFiles {
    files: Vec<ProtectedFile>,
    /// Files that were changed during a call and have not been restored since.
    damaged: Vec<String>,
    /// Whether a process that the agent started may still run although none of its calls is open.
    pub(crate) may_have_background_work: bool,
    /// When they were last checked.
    pub(crate) checked_at: Option<Timestamp>,
    /// When the agent last worked on files.
    pub(crate) worked_at: Option<Timestamp>,
}

/// A file that exists. A file that is not listed does not exist.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct ProtectedFile {
    path: String,
    stamp: u64,
    sha256: Digest,
}

impl ProtectedFiles {
    /// The stamps to compare with the current files.
    pub(crate) fn tracked(&self, paths: &[String]) -> Vec<TrackedFile> {
        let stamp = |path: &String| self.find(path).map_or(0, |file| file.stamp);
        paths.iter().map(|path| TrackedFile { path: path.clone(), stamp: stamp(path) }).collect()
    }

    /// The contents of a file when it was last checked.
    pub(crate) fn contents(&self, path: &str) -> Option<Digest> {
        self.find(path).map(|file| file.sha256)
    }

    /// The paths of all files that exist.
    pub(crate) fn existing_paths(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| file.path.as_str())
    }

    /// Whether a file has other contents than when it was last checked.
    pub(crate) fn differs(&self, path: &str, fact: &WatchedFact) -> bool {
        self.contents(path) != fact.sha256
    }

    /// Whether a file was changed in a call and has not been restored yet.
    pub(crate) fn is_damaged(&self, path: &str) -> bool {
        self.damaged.iter().any(|damaged| damaged == path)
    }

    /// Records that a file was changed in a call and has to be restored.
    pub(crate) fn mark_damaged(&mut self, path: &str) {
        if !self.is_damaged(path) {
            self.damaged.push(path.to_string());
        }
    }

    /// Accepts the current state of a file.
    pub(crate) fn accept_current(&mut self, path: &str, fact: &WatchedFact) {
        self.damaged.retain(|damaged| damaged != path);
        self.files.retain(|file| file.path != path);
        if let Some(sha256) = fact.sha256 {
            self.files.push(ProtectedFile { path: path.to_string(), stamp: fact.stamp, sha256 });
        }
    }

    /// Removes all files except these.
    pub(crate) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.files.retain(|file| keep(&file.path));
        self.damaged.retain(|path| keep(path));
    }

    fn find(&self, path: &str) -> Option<&ProtectedFile> {
        self.files.iter().find(|file| file.path == path)
    }
}
