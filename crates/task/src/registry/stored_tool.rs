//! One tool of the registry: its source, and how well it works.

use jackline_attempt::ToolHealth;
use jackline_engine::{Digest, Timestamp};
use serde::{Deserialize, Serialize};

use crate::registry::registry_error::RegistryError;

/// How many tools the registry may have.
pub const TOOLS_MAX: usize = 256;

/// How long the source of a tool may be.
pub const SOURCE_BYTES_MAX: usize = 64 << 10;

/// How long the description of a tool may be.
pub const DESCRIPTION_BYTES_MAX: usize = 1000;

/// How long the name of a tool may be.
pub const NAME_BYTES_MAX: usize = 64;

/// The source of a generated tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSource {
    /// The description for models.
    pub description: String,
    /// The program.
    pub source: String,
}

impl ToolSource {
    /// The checksum that identifies the version.
    pub fn version(&self) -> Digest {
        Digest::of(self.source.as_bytes())
    }

    /// Fails if the tool does not fit into the registry.
    pub(crate) fn check(&self, name: &str) -> Result<(), RegistryError> {
        check_name(name)?;
        let name = || name.to_owned();
        let (source, description) = (self.source.len(), self.description.len());
        if source == 0 || source > SOURCE_BYTES_MAX {
            return Err(RegistryError::Source { name: name(), bytes: source });
        }
        if description == 0 || description > DESCRIPTION_BYTES_MAX {
            return Err(RegistryError::Description { name: name(), bytes: description });
        }
        Ok(())
    }
}

/// Fails for an invalid name. The name becomes a file name and an argument on command lines.
pub fn check_name(name: &str) -> Result<(), RegistryError> {
    let plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    let fits = (1..=NAME_BYTES_MAX).contains(&name.len())
        && !name.starts_with('-')
        && name.bytes().all(plain);
    if fits { Ok(()) } else { Err(RegistryError::Name(printable(name))) }
}

/// A printable form of an invalid name.
fn printable(name: &str) -> String {
    name.chars().filter(|letter| !letter.is_control()).take(NAME_BYTES_MAX).collect()
}

/// A tool in the registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredTool {
    /// The name.
    pub name: String,
    /// The description for models.
    pub description: String,
    /// The checksum of the source.
    pub version: Digest,
    /// The program.
    pub source: String,
    /// When the attempt that stored it succeeded.
    pub forged_at: Timestamp,
    /// When it was used last.
    pub last_used: Option<Timestamp>,
    /// How many times this version was used.
    pub uses: u64,
    /// How well this version works.
    pub health: ToolHealth,
    /// The number of the last change of this entry.
    pub(crate) seq: u64,
}

impl StoredTool {
    pub(crate) fn new(name: &str, forged: &ToolSource, at: Timestamp) -> Self {
        Self {
            name: name.to_owned(),
            description: forged.description.clone(),
            version: forged.version(),
            source: forged.source.clone(),
            forged_at: at,
            last_used: None,
            uses: 0,
            health: ToolHealth::default(),
            seq: 0,
        }
    }

    /// The tool after a model has generated the same source again.
    pub(crate) fn generated_again(mut self) -> Self {
        self.health.start_probation();
        self
    }

    /// Parses the entry of a tool, or returns what is wrong with it.
    pub(crate) fn parse(name: &str, bytes: &[u8]) -> Result<Self, String> {
        let tool: Self = serde_json::from_slice(bytes)
            .map_err(|error| format!("it is not a valid entry: {error}"))?;
        if tool.name != name {
            return Err("it is the entry of another tool".to_owned());
        }
        if Digest::of(tool.source.as_bytes()) != tool.version {
            return Err("its source does not match its checksum".to_owned());
        }
        Ok(tool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for name in ["a", "fetch_page", "x-2", "_", "0", &"x".repeat(64)] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        let odd = ["", ".", "..", "../x", "a/b", "/etc", "-rf", "a.json", "A", "ä", "a b", "a\0"];
        for name in odd.into_iter().chain([&*"x".repeat(65)]) {
            assert!(matches!(check_name(name), Err(RegistryError::Name(_))), "{name:?}");
        }
    }
}
