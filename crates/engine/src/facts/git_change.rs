//! What a git command would do to protected files, and what happened to them in a call.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Not;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// A change that a git command makes to the work tree. Commits and paths are as the command names
/// them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "git", rename_all = "snake_case", deny_unknown_fields)]
pub enum GitChange {
    /// Another commit is checked out: `switch`, `reset --hard`.
    Move {
        /// The commit.
        to: String,
        /// Whether local changes are discarded too.
        discards: bool,
    },
    /// `checkout`. Only git can tell whether the first operand is a commit or a path.
    Checkout {
        /// The commit, the paths, or both.
        operands: Vec<String>,
        /// Whether local changes are discarded too.
        discards: bool,
    },
    /// Files get their contents from a commit or from the index: `restore`, `checkout --`.
    Restore {
        /// The commit; the index if there is none.
        from: Option<String>,
        /// The paths.
        paths: Vec<String>,
        /// Whether tracked files that the source does not have are removed.
        removes: bool,
    },
    /// `stash`: tracked files get their contents from the commit that is checked out.
    Stash {
        /// The paths; everything if there is none.
        paths: Vec<String>,
        /// Whether untracked files are removed.
        untracked: bool,
        /// Whether ignored files are removed.
        ignored: bool,
    },
    /// `stash pop`, `stash apply`.
    Unstash {
        /// The entry.
        entry: String,
    },
    /// `clean`.
    Clean {
        /// Its options and paths, for a dry run.
        args: Vec<String>,
    },
    /// `merge`, `pull`, `rebase`: what a commit changed since the common ancestor.
    Merge {
        /// The commits.
        with: Vec<String>,
    },
    /// `cherry-pick`, `revert`: what commits changed.
    Pick {
        /// The commits.
        commits: Vec<String>,
        /// Whether the changes are undone.
        reverts: bool,
    },
    /// `apply`, `am`: what patches change.
    Patch {
        /// The files with the patches.
        files: Vec<String>,
    },
}

/// The answer of git: what a command would do to the protected files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case", deny_unknown_fields)]
pub enum GitChangeFact {
    /// Git could not tell.
    #[default]
    Unknown,
    /// The files that would change. All others stay as they are.
    Known {
        /// The changes, by path.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        files: BTreeMap<String, GitFileChange>,
    },
}

/// What a git command would do to one file that exists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GitFileChange {
    /// Whether the file would be removed.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub removed: bool,
    /// Whether git keeps the present contents in a commit, so that checking it out again brings
    /// them back.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub kept: bool,
    /// Whether the file starts the guard now.
    pub before: HookState,
    /// Whether it would start the guard after the command.
    pub after: HookState,
}

/// Whether a file with a client's settings makes the client run the guard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookState {
    /// The text does not name Jackline.
    #[default]
    Absent,
    /// The text names Jackline.
    Present,
    /// The text turns all hooks of the client off.
    Disabled,
}

impl HookState {
    /// Whether a change from one state to the other removes the guard.
    pub fn is_lost(self, after: Self) -> bool {
        match (self, after) {
            (before, Self::Disabled) => before != Self::Disabled,
            (Self::Present, Self::Absent) => true,
            _ => false,
        }
    }
}

/// A protected file that changed, and its contents before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangedFile {
    /// The canonical path.
    pub path: String,
    /// The digest of its contents before; `None` if it did not exist.
    pub before: Option<Digest>,
}

/// How a protected file changed during a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileChangeFact {
    /// Whether git changed it: the file is what the commit that is checked out now says, and git
    /// has the contents before in a commit or a stash.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub by_git: bool,
    /// Whether the file started the guard before.
    pub before: HookState,
    /// Whether it starts the guard now.
    pub after: HookState,
    /// Whether its earlier contents can't be restored: they were not saved, or a link leads to
    /// another file.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub unrestorable: bool,
}
