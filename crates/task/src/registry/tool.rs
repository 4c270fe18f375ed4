//! One tool: what it is, and how it does.

use jackline_attempt::Health;
use jackline_engine::{Digest, Timestamp};
use serde::{Deserialize, Serialize};

use crate::registry::error::RegistryError;

/// How many tools there may be.
pub const TOOLS_MAX: usize = 256;

/// How long the source of a tool may be.
pub const SOURCE_BYTES_MAX: usize = 64 << 10;

/// How long the description of a tool may be.
pub const DESCRIPTION_BYTES_MAX: usize = 1000;

/// How long the name of a tool may be.
pub const NAME_BYTES_MAX: usize = 64;

/// A tool as it was forged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forged {
    /// What it does, in words.
    pub description: String,
    /// The program.
    pub source: String,
}

impl Forged {
    /// The checksum that tells versions apart.
    pub fn version(&self) -> Digest {
        Digest::of(self.source.as_bytes())
    }

    /// Refuses what has no place in a registry.
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

/// Refuses a name that is none: it becomes the name of a file, and stands on command
/// lines.
pub fn check_name(name: &str) -> Result<(), RegistryError> {
    let plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    let fits = (1..=NAME_BYTES_MAX).contains(&name.len())
        && !name.starts_with('-')
        && name.bytes().all(plain);
    if fits { Ok(()) } else { Err(RegistryError::Name(shown(name))) }
}

/// A name that is none, so that it can be shown.
fn shown(name: &str) -> String {
    name.chars().filter(|letter| !letter.is_control()).take(NAME_BYTES_MAX).collect()
}

/// A tool in the registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// What it is called.
    pub name: String,
    /// What it does, in words.
    pub description: String,
    /// The checksum of its source.
    pub version: Digest,
    /// The program.
    pub source: String,
    /// When an attempt succeeded with it.
    pub forged_at: Timestamp,
    /// When it was used last.
    pub last_used: Option<Timestamp>,
    /// How often this version was used.
    pub uses: u64,
    /// How this version does.
    pub health: Health,
    /// The number of the change that made the entry what it is.
    pub(crate) seq: u64,
}

impl Tool {
    pub(crate) fn new(name: &str, forged: &Forged, at: Timestamp) -> Self {
        Self {
            name: name.to_owned(),
            description: forged.description.clone(),
            version: forged.version(),
            source: forged.source.clone(),
            forged_at: at,
            last_used: None,
            uses: 0,
            health: Health::default(),
            seq: 0,
        }
    }

    /// Reads the entry of a tool, or says what is wrong with it.
    pub(crate) fn parse(name: &str, bytes: &[u8]) -> Result<Self, String> {
        let tool: Self =
            serde_json::from_slice(bytes).map_err(|error| format!("it is no entry: {error}"))?;
        if tool.name != name {
            return Err("it is the entry of another tool".to_owned());
        }
        if Digest::of(tool.source.as_bytes()) != tool.version {
            return Err("its source is not the one that was kept".to_owned());
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
