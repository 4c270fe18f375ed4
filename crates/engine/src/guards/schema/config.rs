//! The settings for structured output of a model.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// How often a model may write the same data again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairLimits {
    /// For one piece of data.
    pub repair_max_attempts: u32,
    /// For all data of a session.
    pub repairs_per_run: u32,
    /// For calls of a tool that does not exist.
    pub correction_max_attempts: u32,
}

impl Default for RepairLimits {
    fn default() -> Self {
        Self { repair_max_attempts: 2, repairs_per_run: 20, correction_max_attempts: 2 }
    }
}

/// A JSON Schema as text. The engine does not interpret it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaText(pub String);

/// A named output of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedOutput {
    /// The name.
    pub name: String,
    /// The schema.
    pub schema: SchemaText,
}

/// The schemas of a definition, except for those of its tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaSettings {
    /// How often data may be written again.
    pub attempts: RepairLimits,
    /// The schema of plans, if it is not the built-in one.
    pub plan: Option<SchemaText>,
    /// The schemas of outputs.
    pub outputs: Vec<NamedOutput>,
}

impl SchemaSettings {
    /// The output with this name. A client without names for outputs means the only one.
    pub fn output(&self, name: Option<&str>) -> Option<&NamedOutput> {
        match (name, self.outputs.as_slice()) {
            (Some(name), outputs) => outputs.iter().find(|output| output.name == name),
            (None, [only]) => Some(only),
            (None, _) => None,
        }
    }
}
