//! The facts: what the runtime observed of the world for one decision.

mod answers;
mod control_files;
mod decoded;
mod file_search;
mod git_change;
mod output;
mod pins;
mod project_file;
mod query;
mod reload;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::digest::{Digest, Digest128};
use crate::observe::Observation;
use crate::time::Timestamp;
use crate::verdict::{FeedbackObservation, Severity};

pub use answers::{Fact, WrongFactError};
pub use control_files::ControlFiles;
pub use decoded::DecodedFact;
pub use file_search::FileSearch;
pub use git_change::{
    ChangedFile, FileChangeFact, GitChange, GitChangeFact, GitFileChange, HookState,
};
pub use output::{OutputFact, PageLines};
pub use pins::PinsFact;
pub use project_file::declares_tests;
pub use query::{CallView, FeedbackView, FileDetails, Queries, Query, TrackedFile};
pub use reload::{DefinitionFile, NewDefinition, ReloadFact};

/// How many rounds of queries one decision may take.
pub const ROUNDS_MAX: usize = 3;

/// How many queries one decision may ask.
pub const QUERIES_MAX: usize = 256;

/// Everything a decision depends on in addition to the event and the state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// The time.
    pub now: Now,
    /// The deadline that was given when the runtime was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// The workspace that an event names, if it is not the workspace of the session.
    #[serde(rename = "elsewhere", default, skip_serializing_if = "Option::is_none")]
    pub other_workspace: Option<String>,
    /// Present if a person has switched the guard off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off: Option<OffFact>,
    /// The control files of a person (`STOP`, `PAUSE`) in the workspace.
    #[serde(rename = "markers", default, skip_serializing_if = "is_default")]
    pub control_files: ControlFiles,
    /// Reports that the runtime wrote or removed together with this record, by path. No decision
    /// depends on them, but later changes are detected by comparing with them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub written: BTreeMap<String, WatchedFact>,
    /// What the runtime observed in the event's payloads.
    #[serde(default, skip_serializing_if = "is_default")]
    pub observed: Observation,
    /// The result of decoding what a model wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decoded: Option<DecodedFact>,
    /// The tools that exist as far as the adapter knows. If the proposed one is not among them, it
    /// does not exist. If it does, the list has only this tool, and is empty under a definition that
    /// allows all tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// What an adapter can show instead of the complete output of a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputFact>,
    /// The files that were queried, by canonical path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, FileFact>,
    /// Answers of custom policies, by the number of the policy instance.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub policies: BTreeMap<u16, PolicyFact>,
    /// Answers of custom completion checkers, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub checkers: BTreeMap<String, CheckFact>,
    /// Whether the session still runs under the content of its definition file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<DefinitionFact>,
    /// The definition that a person asked this session to load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reload: Option<ReloadFact>,
    /// The current state of files that are protected from this record on.
    #[serde(default, skip_serializing_if = "is_none_or_empty")]
    pub protects: Option<BTreeMap<String, WatchedFact>>,
    /// The protected files that changed since they were last checked.
    #[serde(default, skip_serializing_if = "is_none_or_empty")]
    pub watched: Option<BTreeMap<String, WatchedFact>>,
    /// The queried files that changed since the agent last read them.
    #[serde(default, skip_serializing_if = "is_none_or_empty")]
    pub changed: Option<BTreeMap<String, FileFact>>,
    /// The repositories that were queried, by the directory of the query.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub git: BTreeMap<String, GitFact>,
    /// Whether the repository ignores a path, by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ignored: BTreeMap<String, bool>,
    /// What git commands of the call would do to protected files, by the number of the command.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub git_changes: BTreeMap<u32, GitChangeFact>,
    /// Whether settings of a client start the guard, by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hooks: BTreeMap<String, HookState>,
    /// The protected files that patterns of the call match, by pattern.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub found_files: BTreeMap<String, Option<String>>,
    /// How protected files changed during a call, by path.
    #[serde(default, skip_serializing_if = "is_none_or_empty")]
    pub file_changes: Option<BTreeMap<String, FileChangeFact>>,
    /// Which agents a person has approved, if that was queried.
    #[serde(default, skip_serializing_if = "PinsFact::is_none_or_default")]
    pub pins: Option<PinsFact>,
    /// The states of verifications by command, by the number of the run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub verifications: BTreeMap<u64, VerificationFact>,
    /// The answers of custom feedback providers, by the number of the provider.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub feedback: BTreeMap<u16, FeedbackFact>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A query that found nothing is not written to the record.
#[expect(clippy::ref_option, reason = "serde calls it with this")]
fn is_none_or_empty<T>(found: &Option<BTreeMap<String, T>>) -> bool {
    found.as_ref().is_none_or(BTreeMap::is_empty)
}

impl Facts {
    /// Facts that contain only the time.
    pub fn at(now: Now) -> Self {
        Self {
            now,
            deadline: None,
            other_workspace: None,
            off: None,
            control_files: ControlFiles::default(),
            written: BTreeMap::new(),
            observed: Observation::default(),
            decoded: None,
            tools: Vec::new(),
            output: None,
            files: BTreeMap::new(),
            policies: BTreeMap::new(),
            checkers: BTreeMap::new(),
            definition: None,
            reload: None,
            protects: None,
            watched: None,
            changed: None,
            git: BTreeMap::new(),
            ignored: BTreeMap::new(),
            git_changes: BTreeMap::new(),
            hooks: BTreeMap::new(),
            found_files: BTreeMap::new(),
            file_changes: None,
            pins: None,
            verifications: BTreeMap::new(),
            feedback: BTreeMap::new(),
        }
    }
}

impl Facts {
    /// Whether a person has switched the guard off and the period has not ended. This concerns the
    /// real world, so the time that an adapter reports does not count.
    pub fn is_off(&self) -> bool {
        self.off.as_ref().is_some_and(|off| self.now.wall < off.until)
    }
}

/// A person has switched the guard off for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OffFact {
    /// When the guard is in force again.
    pub until: Timestamp,
    /// The name of the person.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// The reason the person gave.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// The time, on two clocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Now {
    /// The wall clock; it may jump.
    pub wall: Timestamp,
    /// The boot of the machine from which `boot_ms` counts.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub boot_id: String,
    /// Milliseconds since that boot; never jumps.
    #[serde(default)]
    pub boot_ms: u64,
}

impl Now {
    /// A time on the wall clock alone.
    pub fn wall(wall: Timestamp) -> Self {
        Self { wall, boot_id: String::new(), boot_ms: 0 }
    }
}

/// What the runtime found at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileFact {
    /// The kind of thing at the path.
    pub kind: FileKind,
    /// Its size.
    #[serde(default)]
    pub bytes: u64,
    /// When it last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<Timestamp>,
    /// Whether it is one valid JSON document, if that was queried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<bool>,
    /// Whether it declares tests, if that was queried: a `package.json` with a script `test`, or a
    /// makefile with a target `test`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declares_tests: Option<bool>,
    /// The canonical path to which symbolic links lead, if it is another path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real: Option<String>,
    /// The file stamp: device, inode, size and times as one number. An equal stamp means equal
    /// contents.
    #[serde(rename = "look", default, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<u64>,
    /// The fingerprint of the contents, if that was queried and the file is not too large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest128>,
    /// How many lines the file has, if the contents were queried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<u64>,
}

impl FileFact {
    /// A fact about a path without an existing file.
    pub fn without_details(kind: FileKind) -> Self {
        Self {
            kind,
            bytes: 0,
            modified: None,
            json: None,
            declares_tests: None,
            real: None,
            stamp: None,
            digest: None,
            lines: None,
        }
    }
}

/// The kinds of things at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A regular file.
    File,
    /// Nothing.
    Missing,
    /// A directory.
    Directory,
    /// A device, a pipe, a socket.
    Other,
    /// Something that can't be read or inspected.
    Unreadable,
    /// A symbolic link that leads out of the workspace.
    Escape,
    /// There is no workspace, so there are no files.
    NoFilesystem,
}

/// The current state of a protected file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatchedFact {
    /// Its stamp; see [`FileFact::stamp`].
    #[serde(rename = "look")]
    pub stamp: u64,
    /// The digest of its contents; `None` if the file does not exist.
    pub sha256: Option<Digest>,
    /// Whether a person changed it with a Jackline command.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub by_person: bool,
    /// Why it is not certain that a person removed a report that no longer exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsure: Option<String>,
    /// Whether a person had removed the session's own report before another session wrote its
    /// report to the same path.
    #[serde(rename = "settled", default, skip_serializing_if = "core::ops::Not::not")]
    pub removed_by_person: bool,
}

/// The state of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GitFact {
    /// Whether there is one. If that can't be found out, the fact describes a repository with
    /// uncommitted and untracked files.
    pub repository: bool,
    /// Whether files that it tracks have changes that are not committed.
    #[serde(default)]
    pub dirty: bool,
    /// Whether there are files that it neither tracks nor ignores.
    #[serde(default)]
    pub untracked: bool,
    /// The branch that is checked out; empty if there is none.
    #[serde(default)]
    pub branch: String,
}

/// The state of a verification by command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum VerificationFact {
    /// The command still runs.
    Running,
    /// The command succeeded.
    Passed,
    /// The command failed.
    Failed {
        /// Its exit status, if it has one.
        exit: Option<i32>,
        /// The end of its output.
        tail: String,
    },
    /// It exceeded its timeout and was ended.
    TimedOut {
        /// The end of its output.
        tail: String,
    },
    /// It could not be run.
    Broken {
        /// The reason.
        reason: String,
    },
}

/// The answer of a custom feedback provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum FeedbackFact {
    /// No message.
    Silent,
    /// A message.
    #[serde(rename = "said")]
    Message {
        /// How urgent it is.
        severity: Severity,
        /// The message.
        summary: String,
        /// Details.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        observations: Vec<FeedbackObservation>,
        /// What to do.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        suggestions: Vec<String>,
    },
    /// The provider is broken, so it is ignored.
    Broken {
        /// The error.
        reason: String,
    },
}

/// The answer of a custom policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum PolicyFact {
    /// No violation.
    Allowed {
        /// The data that the policy wants to receive together with the result of this call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        carry: Option<String>,
    },
    /// A violation.
    Denied {
        /// The reason.
        reason: Option<String>,
    },
    /// The policy's state after a result.
    State {
        /// The state; the engine does not interpret it.
        text: String,
    },
    /// The policy is broken.
    Broken {
        /// The error.
        reason: String,
    },
}

/// The answer of a custom completion checker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum CheckFact {
    /// The task is complete.
    Complete,
    /// It is not.
    Incomplete {
        /// What is missing.
        feedback: Option<String>,
    },
    /// The checker is broken.
    Broken {
        /// The error.
        reason: String,
    },
}

/// The state of the definition file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "file")]
pub enum DefinitionFact {
    /// It is unchanged.
    Same,
    /// It was changed. The change applies to the next session, or to this one after a person
    /// reloads it.
    Changed {
        /// Its current checksum.
        checksum: Digest,
    },
    /// It is missing. The definition that was loaded stays in force.
    Missing,
    /// It can't be loaded any more. The last valid definition stays in force.
    Broken {
        /// The error.
        reason: String,
    },
}
