//! The changes of a registry.

use jackline_attempt::ToolHealth;
use jackline_engine::{Digest, Timestamp};
use serde::{Deserialize, Serialize};

use crate::registry::stored_tool::StoredTool;

/// A change. It contains the new state, so that it can be applied twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RegistryChange {
    /// A successful attempt stored these tools.
    Kept { tools: Vec<StoredTool> },
    /// A tool was removed.
    Removed { name: String },
    /// A version of a tool was used.
    Used { name: String, version: Digest, uses: u64, health: ToolHealth },
    /// The journal was rotated.
    Shortened,
}

impl RegistryChange {
    /// The names of the tools that change.
    pub(crate) fn names(&self) -> Vec<&str> {
        match self {
            Self::Kept { tools } => tools.iter().map(|tool| tool.name.as_str()).collect(),
            Self::Removed { name } | Self::Used { name, .. } => vec![name],
            Self::Shortened => Vec::new(),
        }
    }
}

/// A change with its number, as one line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChangeRecord {
    pub(crate) seq: u64,
    pub(crate) at: Timestamp,
    pub(crate) change: RegistryChange,
}

impl ChangeRecord {
    /// What the change does to an entry.
    pub(crate) fn apply_to(
        &self,
        name: &str,
        entry: Option<&Result<StoredTool, String>>,
    ) -> EntryUpdate {
        let is_older = |tool: &StoredTool| tool.seq < self.seq;
        match (&self.change, entry) {
            // A change is written completely or not at all, so another program broke this entry.
            (RegistryChange::Kept { .. } | RegistryChange::Used { .. }, Some(Err(_))) => {
                EntryUpdate::Unchanged
            }
            (RegistryChange::Kept { .. }, Some(Ok(tool))) if !is_older(tool) => {
                EntryUpdate::Unchanged
            }
            (RegistryChange::Kept { tools }, _) => {
                tools.iter().find(|kept| kept.name == name).map_or(EntryUpdate::Unchanged, |kept| {
                    EntryUpdate::Replace(Box::new(StoredTool { seq: self.seq, ..kept.clone() }))
                })
            }
            (RegistryChange::Removed { .. }, Some(_)) => EntryUpdate::Remove,
            (RegistryChange::Used { version, uses, health, .. }, Some(Ok(tool)))
                if is_older(tool) && tool.version == *version =>
            {
                let (health, uses, last_used) = (health.clone(), *uses, Some(self.at));
                let tool = StoredTool { health, uses, last_used, seq: self.seq, ..tool.clone() };
                EntryUpdate::Replace(Box::new(tool))
            }
            _ => EntryUpdate::Unchanged,
        }
    }
}

/// What a change does to an entry.
pub(crate) enum EntryUpdate {
    /// Nothing: the change was applied already, or concerns other tools.
    Unchanged,
    /// Replace the entry.
    Replace(Box<StoredTool>),
    /// Remove the entry.
    Remove,
}
