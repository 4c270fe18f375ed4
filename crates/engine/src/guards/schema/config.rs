//! How structured what a model writes has to be.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// How often a model may write something again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempts {
    /// For one payload.
    pub repair_max_attempts: u32,
    /// For all payloads of a session.
    pub repairs_per_run: u32,
    /// For a tool that does not exist.
    pub correction_max_attempts: u32,
}

impl Default for Attempts {
    fn default() -> Self {
        Self { repair_max_attempts: 2, repairs_per_run: 20, correction_max_attempts: 2 }
    }
}

/// A JSON Schema, as text: the engine does not look into it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaText(pub String);

/// An output that an agent hands over, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// What it is called.
    pub name: String,
    /// What it has to look like.
    pub schema: SchemaText,
}

/// The schemas of a definition, besides those of its tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schemas {
    /// How often something may be written again.
    pub attempts: Attempts,
    /// Of plans, where it is not the built-in one.
    pub plan: Option<SchemaText>,
    /// Of outputs.
    pub outputs: Vec<Output>,
}
