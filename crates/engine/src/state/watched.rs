//! Protected files as they were seen last, so that a change shows.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::facts::{Tracked, WatchedFact};
use crate::time::Timestamp;

/// The protected files, each as it was seen last.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Watched {
    files: Vec<Kept>,
    /// Files that were changed in a call and not seen in order since.
    damaged: Vec<String>,
    /// Whether something that the agent started may still be at work, although
    /// none of its calls is open.
    pub(crate) loose: bool,
    /// When they were looked at last.
    pub(crate) looked_at: Option<Timestamp>,
    /// When the agent was last known to be at work on files.
    pub(crate) at_work_at: Option<Timestamp>,
}

/// A file that is there; what is not listed is not there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Kept {
    path: String,
    look: u64,
    sha256: Digest,
}

impl Watched {
    /// What to compare with the files as they are.
    pub(crate) fn tracked(&self, paths: &[String]) -> Vec<Tracked> {
        let look = |path: &String| self.find(path).map_or(0, |kept| kept.look);
        paths.iter().map(|path| Tracked { path: path.clone(), look: look(path) }).collect()
    }

    /// The contents a file had when it was seen last.
    pub(crate) fn contents(&self, path: &str) -> Option<Digest> {
        self.find(path).map(|kept| kept.sha256)
    }

    /// Every file that is there.
    pub(crate) fn there(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|kept| kept.path.as_str())
    }

    /// Whether a file has other contents than when it was seen last.
    pub(crate) fn differs(&self, path: &str, fact: &WatchedFact) -> bool {
        self.contents(path) != fact.sha256
    }

    /// Whether a file is still to be seen in order after it was changed in a call.
    pub(crate) fn is_damaged(&self, path: &str) -> bool {
        self.damaged.iter().any(|known| known == path)
    }

    /// A file was changed in a call and has to be given back.
    pub(crate) fn damage(&mut self, path: &str) {
        if !self.is_damaged(path) {
            self.damaged.push(path.to_string());
        }
    }

    /// Takes a file as it is for granted from now on.
    pub(crate) fn accept(&mut self, path: &str, fact: &WatchedFact) {
        self.damaged.retain(|known| known != path);
        self.files.retain(|kept| kept.path != path);
        if let Some(sha256) = fact.sha256 {
            self.files.push(Kept { path: path.to_string(), look: fact.look, sha256 });
        }
    }

    /// Forgets all files but these.
    pub(crate) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.files.retain(|kept| keep(&kept.path));
        self.damaged.retain(|path| keep(path));
    }

    fn find(&self, path: &str) -> Option<&Kept> {
        self.files.iter().find(|kept| kept.path == path)
    }
}
