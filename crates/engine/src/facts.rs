//! What the runtime observed of the world for one decision.

mod answers;
mod decoded;
mod markers;
mod output;
mod pins;
mod query;
mod reload;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::digest::{Digest, Digest128};
use crate::observe::Observation;
use crate::time::Timestamp;
use crate::verdict::{Observed, Severity};

pub use answers::{Fact, WrongFact};
pub use decoded::DecodedFact;
pub use markers::Markers;
pub use output::OutputFact;
pub use pins::PinsFact;
pub use query::{CallView, FeedbackView, Queries, Query, Tracked, Wants};
pub use reload::{DefinitionFile, NewDefinition, ReloadFact};

/// How many rounds of questions one decision may take.
pub const ROUNDS_MAX: usize = 3;

/// How many questions one decision may ask.
pub const QUERIES_MAX: usize = 256;

/// Everything one decision rests on, besides the event and the state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// The time.
    pub now: Now,
    /// The deadline given where the runtime was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// The workspace that an event names, where it is not the session's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<String>,
    /// That a person has switched the guard off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off: Option<OffFact>,
    /// What a person has put into the directory for people.
    #[serde(default, skip_serializing_if = "is_default")]
    pub markers: Markers,
    /// Reports that were written or removed along with this record, by path. No
    /// decision rests on them, but what is found changed later does.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub written: BTreeMap<String, WatchedFact>,
    /// What was seen of the event's payloads.
    #[serde(default, skip_serializing_if = "is_default")]
    pub observed: Observation,
    /// What the decoding layer made of what a model wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decoded: Option<DecodedFact>,
    /// Which tools an adapter has itself: all of them where none has this name, and the one
    /// of this name where the definition denies unknown tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// What an adapter can show instead of what a tool gave back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputFact>,
    /// Files that were asked for, by canonical path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, FileFact>,
    /// Answers of custom policies, by the number of the instance.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub policies: BTreeMap<u16, PolicyFact>,
    /// Answers of custom completion checkers, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub checkers: BTreeMap<String, CheckFact>,
    /// Whether the definition file is still the one this session runs under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<DefinitionFact>,
    /// What a person wants the session to run under from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reload: Option<ReloadFact>,
    /// Files that are protected from now on, as they are.
    #[serde(default, skip_serializing_if = "says_nothing")]
    pub protects: Option<BTreeMap<String, WatchedFact>>,
    /// Which of the protected files are not as they were seen last.
    #[serde(default, skip_serializing_if = "says_nothing")]
    pub watched: Option<BTreeMap<String, WatchedFact>>,
    /// Which of the files that were asked about are not as they were remembered.
    #[serde(default, skip_serializing_if = "says_nothing")]
    pub changed: Option<BTreeMap<String, FileFact>>,
    /// Repositories that were asked about, by the directory they were asked from.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub git: BTreeMap<String, GitFact>,
    /// Whether a repository ignores a path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ignored: BTreeMap<String, bool>,
    /// Which agents a person has approved, where that was asked.
    #[serde(default, skip_serializing_if = "PinsFact::says_nothing")]
    pub pins: Option<PinsFact>,
    /// How verifications by command stand, by the number of the run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub verifications: BTreeMap<u64, VerificationFact>,
    /// What custom feedback providers said, by the number of the provider.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub feedback: BTreeMap<u16, FeedbackFact>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// That a question was asked and nothing was found is nothing to write down.
#[expect(clippy::ref_option, reason = "serde calls it with this")]
fn says_nothing<T>(found: &Option<BTreeMap<String, T>>) -> bool {
    found.as_ref().is_none_or(BTreeMap::is_empty)
}

impl Facts {
    /// Facts that know nothing but the time.
    pub fn at(now: Now) -> Self {
        Self {
            now,
            deadline: None,
            elsewhere: None,
            off: None,
            markers: Markers::default(),
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
            pins: None,
            verifications: BTreeMap::new(),
            feedback: BTreeMap::new(),
        }
    }
}

impl Facts {
    /// Whether a person has switched the guard off, and that holds now. It is a
    /// word about the real world, so the time an adapter gives does not count.
    pub fn is_off(&self) -> bool {
        self.off.as_ref().is_some_and(|off| self.now.wall < off.until)
    }
}

/// That a person has switched the guard off for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OffFact {
    /// From when on it holds again.
    pub until: Timestamp,
    /// Who switched it off.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// Why they did.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// The time, on two clocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Now {
    /// What a calendar says; may jump.
    pub wall: Timestamp,
    /// Which start of the machine `boot_ms` counts from.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub boot_id: String,
    /// Milliseconds since then; never jumps.
    #[serde(default)]
    pub boot_ms: u64,
}

impl Now {
    /// A time on the wall clock alone.
    pub fn wall(wall: Timestamp) -> Self {
        Self { wall, boot_id: String::new(), boot_ms: 0 }
    }
}

/// What the runtime saw at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileFact {
    /// What is there.
    pub kind: FileKind,
    /// Its size.
    #[serde(default)]
    pub bytes: u64,
    /// When it last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<Timestamp>,
    /// Whether it is one valid JSON document, where that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<bool>,
    /// Where symbolic links lead, if that is another path: canonical.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real: Option<String>,
    /// How the file looks from outside: device, inode, size and times in one
    /// number. The same look is the same contents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub look: Option<u64>,
    /// The fingerprint of the contents, where that was asked and the file is
    /// not too large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest128>,
    /// How many lines it has, where the contents were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<u64>,
}

impl FileFact {
    /// A fact without a file behind it.
    pub fn of(kind: FileKind) -> Self {
        Self {
            kind,
            bytes: 0,
            modified: None,
            json: None,
            real: None,
            look: None,
            digest: None,
            lines: None,
        }
    }
}

/// What is at a path.
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
    /// Something that can't be looked at.
    Unreadable,
    /// A symbolic link that leads out of the workspace.
    Escape,
    /// There is no workspace to look in.
    NoFilesystem,
}

/// A protected file as it is now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatchedFact {
    /// How it looks; see [`FileFact::look`].
    pub look: u64,
    /// Its contents; nothing where it is not there.
    pub sha256: Option<Digest>,
    /// Whether a person had one of our own commands write it.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub by_person: bool,
    /// Why nobody can tell that a person took a report away that is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsure: Option<String>,
    /// Whether the session's own report was gone, by a person, before another
    /// session put its own there.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub settled: bool,
}

/// The state of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GitFact {
    /// Whether there is one. Where nobody could say, it counts as one in which
    /// everything is unsaved.
    pub repository: bool,
    /// Whether files that it tracks have changes that are not committed.
    #[serde(default)]
    pub dirty: bool,
    /// Whether there are files that it neither tracks nor ignores.
    #[serde(default)]
    pub untracked: bool,
    /// The branch that is checked out; empty where there is none.
    #[serde(default)]
    pub branch: String,
}

/// How a verification by command stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum VerificationFact {
    /// It has not come to an end.
    Running,
    /// The command succeeded.
    Passed,
    /// The command failed.
    Failed {
        /// Its exit status, where it has one.
        exit: Option<i32>,
        /// The end of what it said.
        tail: String,
    },
    /// It took too long and was ended.
    TimedOut {
        /// The end of what it said.
        tail: String,
    },
    /// It could not be run.
    Broken {
        /// Why not.
        reason: String,
    },
}

/// What a custom feedback provider said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum FeedbackFact {
    /// Nothing.
    Silent,
    /// Something.
    Said {
        /// How urgent it is.
        severity: Severity,
        /// What it is.
        summary: String,
        /// Details.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        observations: Vec<Observed>,
        /// What to do.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        suggestions: Vec<String>,
    },
    /// The provider broke; it is passed over.
    Broken {
        /// How.
        reason: String,
    },
}

/// What a custom policy said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum PolicyFact {
    /// No objection.
    Allowed {
        /// What the policy wants back with the result of this call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        carry: Option<String>,
    },
    /// An objection, with its reason.
    Denied {
        /// The reason.
        reason: Option<String>,
    },
    /// The policy's state after a result.
    State {
        /// Opaque to the engine.
        text: String,
    },
    /// The policy broke.
    Broken {
        /// How.
        reason: String,
    },
}

/// What a custom completion checker said.
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
    /// The checker broke.
    Broken {
        /// How.
        reason: String,
    },
}

/// What became of the definition file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "file")]
pub enum DefinitionFact {
    /// It is the same.
    Same,
    /// It was changed; that applies to the next session, or once a person
    /// reloads this one.
    Changed {
        /// Its checksum now.
        checksum: Digest,
    },
    /// It is gone; the one that was loaded stays in force.
    Missing,
    /// It no longer loads; the last good one is in force.
    Broken {
        /// What is wrong with it.
        reason: String,
    },
}
