//! What can happen to a registry.

use jackline_attempt::Health;
use jackline_engine::{Digest, Timestamp};
use serde::{Deserialize, Serialize};

use crate::registry::tool::Tool;

/// A change. It says what comes of it, so that it can be made twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Change {
    /// An attempt succeeded with these.
    Kept { tools: Vec<Tool> },
    /// Somebody has removed a tool.
    Removed { name: String },
    /// A version of a tool was used.
    Used { name: String, version: Digest, uses: u64, health: Health },
    /// The journal was begun anew.
    Shortened,
}

impl Change {
    /// The tools it is about.
    pub(crate) fn names(&self) -> Vec<&str> {
        match self {
            Self::Kept { tools } => tools.iter().map(|tool| tool.name.as_str()).collect(),
            Self::Removed { name } | Self::Used { name, .. } => vec![name],
            Self::Shortened => Vec::new(),
        }
    }
}

/// A change with its number, as the journal holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) seq: u64,
    pub(crate) at: Timestamp,
    pub(crate) change: Change,
}

impl Line {
    /// What the change makes of an entry.
    pub(crate) fn applied_to(&self, name: &str, entry: Option<&Result<Tool, String>>) -> Becomes {
        let is_older = |tool: &Tool| tool.seq < self.seq;
        match (&self.change, entry) {
            // A change is whole or not there, so this is somebody else's work.
            (Change::Kept { .. } | Change::Used { .. }, Some(Err(_))) => Becomes::Same,
            (Change::Kept { .. }, Some(Ok(tool))) if !is_older(tool) => Becomes::Same,
            (Change::Kept { tools }, _) => {
                tools.iter().find(|kept| kept.name == name).map_or(Becomes::Same, |kept| {
                    Becomes::Tool(Box::new(Tool { seq: self.seq, ..kept.clone() }))
                })
            }
            (Change::Removed { .. }, Some(_)) => Becomes::Nothing,
            (Change::Used { version, uses, health, .. }, Some(Ok(tool)))
                if is_older(tool) && tool.version == *version =>
            {
                let (health, uses, last_used) = (health.clone(), *uses, Some(self.at));
                let tool = Tool { health, uses, last_used, seq: self.seq, ..tool.clone() };
                Becomes::Tool(Box::new(tool))
            }
            _ => Becomes::Same,
        }
    }
}

/// What a change makes of an entry.
pub(crate) enum Becomes {
    /// What it is: the change is made already, or is not about it.
    Same,
    /// Another one.
    Tool(Box<Tool>),
    /// None.
    Nothing,
}
