//! The result of an artifact.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::boundary::InternalOutcome;

/// Where a part of an answer comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerSource {
    /// The address that was requested.
    pub uri: String,
    /// The time of the request.
    pub fetched_at: String,
    /// The tool that made the request.
    pub retrieval_tool: String,
    /// `live`, `cached` or `fixture`.
    pub retrieval_mode: String,
}

impl AnswerSource {
    const MODES: [&str; 3] = ["live", "cached", "fixture"];

    /// Whether all fields are filled in, with a valid retrieval mode.
    pub fn is_complete(&self) -> bool {
        let texts = [&self.uri, &self.fetched_at, &self.retrieval_tool];
        texts.iter().all(|text| !text.trim().is_empty())
            && Self::MODES.contains(&self.retrieval_mode.as_str())
    }
}

/// The result of an artifact.
#[derive(Debug, Clone, PartialEq)]
pub enum ArtifactOutcome {
    /// The artifact did what it was asked for.
    Ok {
        /// The answer.
        value: Value,
        /// Where the answer comes from.
        sources: Vec<Value>,
    },
    /// The artifact failed.
    Error(OutcomeError),
    /// The artifact returned the outcome of a delegate unchanged.
    Child(Box<InternalOutcome>),
}

/// Why an artifact failed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OutcomeError {
    /// The error type, for programs.
    pub error_type: String,
    /// What happened.
    pub error_message: String,
    /// Whether another try may help.
    pub retriable: bool,
    /// Further details.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl OutcomeError {
    /// Creates an error without metadata.
    pub fn new(error_type: &str, message: impl Into<String>, retriable: bool) -> Self {
        Self {
            error_type: error_type.to_owned(),
            error_message: message.into(),
            retriable,
            metadata: Map::new(),
        }
    }

    /// Adds one metadata entry.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.to_owned(), value.into());
        self
    }
}
