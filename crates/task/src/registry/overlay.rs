//! What an attempt has forged, before it is known whether that stays.

use std::collections::BTreeMap;

use jackline_engine::{Digest, Timestamp};

use crate::registry::error::RegistryError;
use crate::registry::tool::{Forged, Tool};
use crate::registry::{Listing, Registry};

/// How many tools one attempt may forge.
const FORGED_MAX: usize = 32;

/// The registry as an attempt sees it: with what it has forged, which nobody else sees.
/// Dropped or [cleared](Overlay::clear), it leaves no trace.
#[derive(Debug, Clone)]
pub struct Overlay<'r> {
    registry: &'r Registry,
    /// By name, with the version that was there when it was forged.
    forged: BTreeMap<String, (Forged, Option<Digest>)>,
}

/// What became of what an attempt has forged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Committed {
    /// Tools that are in the registry now.
    pub kept: Vec<String>,
    /// Tools of which somebody else has kept another version meanwhile; that one stays.
    pub others: Vec<String>,
}

impl<'r> Overlay<'r> {
    pub(crate) fn new(registry: &'r Registry) -> Self {
        Self { registry, forged: BTreeMap::new() }
    }

    /// Forges a tool.
    pub fn forge(&mut self, name: &str, forged: Forged) -> Result<(), RegistryError> {
        forged.check(name)?;
        if let Some((known, _)) = self.forged.get_mut(name) {
            *known = forged;
            return Ok(());
        }
        if self.forged.len() >= FORGED_MAX {
            return Err(RegistryError::TooMany);
        }
        let Listing { tools, .. } = self.registry.list()?;
        let seen = tools.iter().find(|tool| tool.name == name).map(|tool| tool.version);
        self.forged.insert(name.to_owned(), (forged, seen));
        Ok(())
    }

    /// A tool as the attempt sees it.
    pub fn get(&self, name: &str) -> Result<Option<Tool>, RegistryError> {
        let there = self.registry.get(name);
        match self.forged.get(name) {
            Some((forged, _)) => {
                let same = there.ok().flatten().filter(|tool| tool.version == forged.version());
                let new = || Tool::new(name, forged, Timestamp::from_ms(0));
                Ok(Some(same.unwrap_or_else(new)))
            }
            None => there,
        }
    }

    /// All tools as the attempt sees them, by name.
    pub fn list(&self) -> Result<Listing, RegistryError> {
        let Listing { mut tools, mut broken } = self.registry.list()?;
        broken.retain(|(name, _)| !self.forged.contains_key(name));
        for (name, (forged, _)) in &self.forged {
            match tools.iter_mut().find(|tool| tool.name == *name) {
                Some(tool) if tool.version == forged.version() => {}
                Some(tool) => *tool = Tool::new(name, forged, Timestamp::from_ms(0)),
                None => tools.push(Tool::new(name, forged, Timestamp::from_ms(0))),
            }
        }
        tools.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(Listing { tools, broken })
    }

    /// Forgets what was forged: the attempt is rolled back.
    pub fn clear(&mut self) {
        self.forged.clear();
    }

    /// Puts what was forged into the registry, all of it or none: the attempt succeeded.
    /// What others have put there meanwhile stays.
    pub fn commit(&mut self, at: Timestamp) -> Result<Committed, RegistryError> {
        let committed = self.registry.keep(&self.forged, at)?;
        self.clear();
        Ok(committed)
    }
}
