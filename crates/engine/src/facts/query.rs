//! What the engine asks before it can decide.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Not;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Facts, FileFact, QUERIES_MAX};
use crate::time::Timestamp;

/// A question that the engine asks before it can decide. Its answer is a [`Fact`](super::Fact).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "query", rename_all = "snake_case", deny_unknown_fields)]
pub enum Query {
    /// What is this file?
    File {
        /// Its canonical path: relative to the workspace, or absolute outside.
        path: String,
        /// What has to be known of it.
        wants: Wants,
    },
    /// Which of these protected files are not as they are remembered? Those
    /// that are there have to be kept, so that they can be given back.
    Watched {
        /// The files; one that was not there looks like 0.
        files: Vec<Tracked>,
        /// When they were looked at last.
        since: Option<Timestamp>,
    },
    /// Which of these files are not as they are remembered?
    Changed {
        /// The files.
        files: Vec<Tracked>,
    },
    /// What is the state of the repository that holds this directory?
    Git {
        /// The directory: canonical, as a path of [`Query::File`].
        dir: String,
    },
    /// Does the repository ignore this path?
    Ignored {
        /// Its canonical path.
        path: String,
    },
    /// How does a verification by command stand? It is started if it is not
    /// there, and goes on by itself.
    Verification {
        /// The number of the run; no two have the same.
        run: u64,
        /// The command line.
        line: String,
        /// How long it may take.
        timeout_seconds: u32,
    },
    /// What does a custom feedback provider say?
    Feedback {
        /// The number of the provider.
        number: u16,
        /// The provider.
        name: String,
        /// What it may look at.
        view: FeedbackView,
    },
    /// May this call run, says a custom policy?
    PolicyCheck {
        /// The number of the instance.
        number: u16,
        /// The policy.
        name: String,
        /// Its state.
        state: String,
        /// The call.
        call: CallView,
    },
    /// What does a custom policy learn from this result?
    PolicyResult {
        /// The number of the instance.
        number: u16,
        /// The policy.
        name: String,
        /// Its state.
        state: String,
        /// The call.
        call: CallView,
    },
    /// Is the task complete, says a custom checker?
    Checker {
        /// The checker.
        name: String,
    },
    /// Is the definition file still the one this session runs under?
    Definition,
    /// Which definition would a session begin with that starts now?
    Reload,
    /// Which agents has a person approved?
    Pins {
        /// For the definition of this name.
        definition: String,
        /// For this workflow.
        workflow: Option<String>,
    },
    /// What are these files that will be protected? Those that are there have
    /// to be kept, so that they can be given back.
    Protect {
        /// The files; each looks like 0, as if it were not there.
        files: Vec<Tracked>,
    },
}

/// What has to be known of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wants {
    /// Whether it is one JSON document.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub json: bool,
    /// Its contents: their fingerprint and the number of their lines.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub contents: bool,
}

impl Wants {
    /// What a fact tells of a file.
    pub fn told_by(fact: &FileFact) -> Self {
        Self { json: fact.json.is_some(), contents: fact.digest.is_some() }
    }

    /// Everything that one of two wants.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { json: self.json || other.json, contents: self.contents || other.contents }
    }
}

/// A file and how it looked when it was remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tracked {
    /// Its canonical path.
    pub path: String,
    /// How it looked; see [`FileFact::look`].
    pub look: u64,
}

/// What a custom feedback provider may look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeedbackView {
    /// The name of the definition.
    pub definition: String,
    /// When the work must be over.
    pub deadline: Option<Timestamp>,
    /// The time.
    pub now: Timestamp,
    /// How many calls there have been.
    pub tool_call_count: u64,
    /// Calls since any provider last spoke.
    pub calls_since_feedback: u64,
    /// Calls since this provider last spoke.
    pub calls_since_own_feedback: u64,
    /// The tools that were called last, the latest first.
    pub recent_tool_calls: Vec<String>,
    /// Who spoke last, and what they said.
    pub last_feedback: Option<(String, String)>,
}

/// A call as a custom policy sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallView {
    /// The tool by its declared name.
    pub tool: String,
    /// Its arguments; null where a result is reported.
    pub args: Value,
    /// Where a result is reported, what the policy wanted back with it.
    pub carried: Option<String>,
}

/// The questions that are still open.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Queries(Vec<Query>);

impl Queries {
    /// Asks, unless the limit is reached; what is not asked stays unknown, and
    /// what is unknown is refused.
    pub(crate) fn ask(&mut self, query: Query) {
        if self.is_asked(&query) || self.0.len() >= QUERIES_MAX {
            return;
        }
        self.0.push(query);
    }

    /// Whether a query is there already. One about the same file takes over what is wanted.
    fn is_asked(&mut self, query: &Query) -> bool {
        let Query::File { path, wants } = query else { return self.0.contains(query) };
        let same_file = self.0.iter_mut().find_map(|asked| match asked {
            Query::File { path: asked, wants } if asked == path => Some(wants),
            _ => None,
        });
        same_file.map(|asked| *asked = asked.and(*wants)).is_some()
    }

    /// The questions as one batch. What is known of a file is asked again with what is
    /// missing, because an answer takes the place of the one before.
    pub fn batch(self, known: &Facts) -> Vec<Query> {
        let mut batch = self.0;
        for query in &mut batch {
            if let Query::File { path, wants } = query
                && let Some(fact) = known.files.get(path)
            {
                *wants = wants.and(Wants::told_by(fact));
            }
        }
        batch
    }

    /// Whether nothing is open.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The questions.
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
