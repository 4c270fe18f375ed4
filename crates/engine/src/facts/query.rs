//! The queries: questions that the engine asks before it can decide.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Not;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ChangedFile, Facts, FileFact, FileSearch, GitChange, QUERIES_MAX};
use crate::time::Timestamp;

/// A question that the engine asks before it can decide. Its answer is a [`Fact`](super::Fact).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "query", rename_all = "snake_case", deny_unknown_fields)]
pub enum Query {
    /// What is at this path?
    File {
        /// The canonical path: relative to the workspace, or absolute if it is outside.
        path: String,
        /// Which details the answer must contain.
        wants: FileDetails,
    },
    /// Which of these protected files changed? The runtime must save the contents of the files that
    /// exist, so that it can restore them.
    Watched {
        /// The files; a file that did not exist has the stamp 0.
        files: Vec<TrackedFile>,
        /// When they were last checked.
        since: Option<Timestamp>,
    },
    /// Which of these files changed?
    Changed {
        /// The files.
        files: Vec<TrackedFile>,
    },
    /// What is the state of the repository that contains this directory?
    Git {
        /// The directory: a canonical path as in [`Query::File`].
        dir: String,
    },
    /// Does the repository ignore this path?
    Ignored {
        /// The canonical path.
        path: String,
    },
    /// What would a git command do to these files? The runtime only asks git, and runs nothing that
    /// the repository names.
    GitChange {
        /// The number of the command in the command line.
        command: u32,
        /// The directory in which it runs: a canonical path as in [`Query::File`].
        dir: String,
        /// What the command does.
        change: GitChange,
        /// The canonical paths of the files.
        files: Vec<String>,
    },
    /// Do these settings of a client start the guard?
    Hook {
        /// The canonical path of the file.
        path: String,
    },
    /// Does a file match a pattern of the call and a protected pattern?
    FileSearch {
        /// The patterns.
        search: FileSearch,
    },
    /// How did these protected files change during a call?
    FileChanges {
        /// The files.
        files: Vec<ChangedFile>,
    },
    /// What is the state of a verification by command? If it is not running, the runtime starts it.
    /// It then continues in the background.
    Verification {
        /// The number of the run. It is unique.
        run: u64,
        /// The command line.
        line: String,
        /// The timeout.
        timeout_seconds: u32,
    },
    /// What is the message of a custom feedback provider?
    Feedback {
        /// The number of the provider.
        number: u16,
        /// The name of the provider.
        name: String,
        /// The data that the provider may use.
        view: FeedbackView,
    },
    /// Does a custom policy allow this call?
    PolicyCheck {
        /// The number of the policy instance.
        number: u16,
        /// The name of the policy.
        name: String,
        /// Its state.
        state: String,
        /// The call.
        call: CallView,
    },
    /// What is the state of a custom policy after this result?
    PolicyResult {
        /// The number of the policy instance.
        number: u16,
        /// The name of the policy.
        name: String,
        /// Its state.
        state: String,
        /// The call.
        call: CallView,
    },
    /// Is the task complete according to a custom checker?
    Checker {
        /// The name of the checker.
        name: String,
    },
    /// Does this session still run under the content of its definition file?
    Definition,
    /// Which definition would a session load that starts now?
    Reload,
    /// Which agents has a person approved?
    Pins {
        /// The name of the definition.
        definition: String,
        /// The workflow.
        workflow: Option<String>,
    },
    /// What is the state of these files, which will be protected? The runtime must save the
    /// contents of the files that exist, so that it can restore them.
    Protect {
        /// The files. Each has the stamp 0, as if it did not exist.
        files: Vec<TrackedFile>,
    },
}

/// The details of a file that a query needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileDetails {
    /// Whether it is one JSON document.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub json: bool,
    /// The contents: their fingerprint and the number of lines.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub contents: bool,
    /// Whether it declares tests; see [`FileFact::declares_tests`].
    #[serde(default, skip_serializing_if = "Not::not")]
    pub declares_tests: bool,
}

impl FileDetails {
    /// The details that a fact contains.
    pub fn contained_in(fact: &FileFact) -> Self {
        Self {
            json: fact.json.is_some(),
            contents: fact.digest.is_some(),
            declares_tests: fact.declares_tests.is_some(),
        }
    }

    /// The details of both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self {
            json: self.json || other.json,
            contents: self.contents || other.contents,
            declares_tests: self.declares_tests || other.declares_tests,
        }
    }
}

/// A file and the stamp it had when it was last checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrackedFile {
    /// The canonical path.
    pub path: String,
    /// The stamp; see [`FileFact::stamp`].
    #[serde(rename = "look")]
    pub stamp: u64,
}

/// The data that a custom feedback provider may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeedbackView {
    /// The name of the definition.
    pub definition: String,
    /// When the work must be finished.
    pub deadline: Option<Timestamp>,
    /// The time.
    pub now: Timestamp,
    /// How many calls there were.
    pub tool_call_count: u64,
    /// Calls since the last message of any provider.
    pub calls_since_feedback: u64,
    /// Calls since the last message of this provider.
    pub calls_since_own_feedback: u64,
    /// The latest calls' tools, the most recent first.
    pub recent_tool_calls: Vec<String>,
    /// The last provider that sent a message, and the message.
    pub last_feedback: Option<(String, String)>,
}

/// A call in the form that a custom policy receives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallView {
    /// The declared name of the tool.
    pub tool: String,
    /// The arguments; null when a result is reported.
    pub args: Value,
    /// The data that the policy asked to receive with the result of the call.
    pub carried: Option<String>,
}

/// The queries that are not answered yet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Queries(Vec<Query>);

impl Queries {
    /// Adds a query unless the limit is reached. A query that is not asked stays unanswered, and
    /// what is unanswered is denied.
    pub(crate) fn ask(&mut self, query: Query) {
        if self.merge_with_existing(&query) || self.0.len() >= QUERIES_MAX {
            return;
        }
        self.0.push(query);
    }

    /// Whether the query is already in the list. A query about a file that is in the list is merged
    /// into it.
    fn merge_with_existing(&mut self, query: &Query) -> bool {
        let Query::File { path, wants } = query else { return self.0.contains(query) };
        let same_file = self.0.iter_mut().find_map(|existing| match existing {
            Query::File { path: existing, wants } if existing == path => Some(wants),
            _ => None,
        });
        same_file.map(|existing| *existing = existing.union(*wants)).is_some()
    }

    /// The queries as one batch. A query about a file whose fact exists also asks for the details
    /// of that fact, because an answer replaces the earlier fact.
    pub fn into_batch(self, known: &Facts) -> Vec<Query> {
        let mut batch = self.0;
        for query in &mut batch {
            if let Query::File { path, wants } = query
                && let Some(fact) = known.files.get(path)
            {
                *wants = wants.union(FileDetails::contained_in(fact));
            }
        }
        batch
    }

    /// Whether all queries are answered.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The queries.
    pub fn iter(&self) -> core::slice::Iter<'_, Query> {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a Queries {
    type Item = &'a Query;
    type IntoIter = core::slice::Iter<'a, Query>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
