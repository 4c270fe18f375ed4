//! What an artifact answers with.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::boundary::InternalOutcome;

/// Where a part of an answer is from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// What was asked.
    pub uri: String,
    /// When.
    pub fetched_at: String,
    /// By which tool.
    pub retrieval_tool: String,
    /// `live`, `cached` or `fixture`.
    pub retrieval_mode: String,
}

impl Source {
    const MODES: [&str; 3] = ["live", "cached", "fixture"];

    /// Whether everything is said that whoever checks it needs.
    pub fn is_complete(&self) -> bool {
        let said = [&self.uri, &self.fetched_at, &self.retrieval_tool];
        said.iter().all(|text| !text.trim().is_empty())
            && Self::MODES.contains(&self.retrieval_mode.as_str())
    }
}

/// What an artifact answers with.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It did what it was asked for.
    Ok {
        /// The answer.
        value: Value,
        /// Where it is from.
        sources: Vec<Value>,
    },
    /// It did not.
    Error(OutcomeError),
    /// It hands on what a delegate ended with, as it is.
    Child(Box<InternalOutcome>),
}

/// Why an artifact did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OutcomeError {
    /// A word for programs.
    pub error_type: String,
    /// What happened.
    pub error_message: String,
    /// Whether another try may help.
    pub retriable: bool,
    /// More about it.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl OutcomeError {
    /// An error without more about it.
    pub fn new(error_type: &str, message: impl Into<String>, retriable: bool) -> Self {
        Self {
            error_type: error_type.to_owned(),
            error_message: message.into(),
            retriable,
            metadata: Map::new(),
        }
    }

    /// The same, with one thing more about it.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.to_owned(), value.into());
        self
    }
}
