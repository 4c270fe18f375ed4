//! The tools that an attempt generated, until the attempt is committed or rolled back.

use std::collections::BTreeMap;

use jackline_engine::{Digest, Timestamp};

use crate::registry::registry_error::RegistryError;
use crate::registry::stored_tool::{StoredTool, ToolSource};
use crate::registry::{Registry, ToolListing};

/// How many tools one attempt may generate.
const GENERATED_TOOLS_MAX: usize = 32;

/// The registry as one attempt sees it, with its own new tools. If it is dropped or
/// [cleared](RegistryOverlay::clear), the registry does not change.
#[derive(Debug, Clone)]
pub struct RegistryOverlay<'r> {
    registry: &'r Registry,
    /// By name, with the version that was in the registry when the tool was generated.
    generated: BTreeMap<String, (ToolSource, Option<Digest>)>,
}

/// The result of a commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommittedTools {
    /// The tools that are now in the registry.
    pub stored: Vec<String>,
    /// The tools that another attempt has stored in a different version. That version stays.
    pub skipped: Vec<String>,
}

impl<'r> RegistryOverlay<'r> {
    pub(crate) fn new(registry: &'r Registry) -> Self {
        Self { registry, generated: BTreeMap::new() }
    }

    /// Adds a tool.
    pub fn add_tool(&mut self, name: &str, forged: ToolSource) -> Result<(), RegistryError> {
        forged.check(name)?;
        if let Some((known, _)) = self.generated.get_mut(name) {
            *known = forged;
            return Ok(());
        }
        if self.generated.len() >= GENERATED_TOOLS_MAX {
            return Err(RegistryError::TooMany);
        }
        let ToolListing { tools, .. } = self.registry.list()?;
        let seen = tools.iter().find(|tool| tool.name == name).map(|tool| tool.version);
        self.generated.insert(name.to_owned(), (forged, seen));
        Ok(())
    }

    /// A tool, as the attempt sees it.
    pub fn get(&self, name: &str) -> Result<Option<StoredTool>, RegistryError> {
        let there = self.registry.get(name);
        match self.generated.get(name) {
            Some((forged, _)) => {
                let same = there.ok().flatten().filter(|tool| tool.version == forged.version());
                let new = || StoredTool::new(name, forged, Timestamp::from_ms(0));
                Ok(Some(same.map_or_else(new, StoredTool::generated_again)))
            }
            None => there,
        }
    }

    /// All tools, as the attempt sees them, by name.
    pub fn list(&self) -> Result<ToolListing, RegistryError> {
        let ToolListing { mut tools, mut broken } = self.registry.list()?;
        broken.retain(|(name, _)| !self.generated.contains_key(name));
        for (name, (forged, _)) in &self.generated {
            match tools.iter_mut().find(|tool| tool.name == *name) {
                Some(tool) if tool.version == forged.version() => tool.health.start_probation(),
                Some(tool) => *tool = StoredTool::new(name, forged, Timestamp::from_ms(0)),
                None => tools.push(StoredTool::new(name, forged, Timestamp::from_ms(0))),
            }
        }
        tools.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(ToolListing { tools, broken })
    }

    /// Removes all new tools, because the attempt is rolled back.
    pub fn clear(&mut self) {
        self.generated.clear();
    }

    /// Stores all new tools in the registry, or none, because the attempt succeeded. Versions that
    /// other attempts have stored since stay.
    pub fn commit(&mut self, at: Timestamp) -> Result<CommittedTools, RegistryError> {
        let committed = self.registry.store_tools(&self.generated, at)?;
        self.clear();
        Ok(committed)
    }
}
