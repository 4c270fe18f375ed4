//! Tools that attempts have forged.
//!
//! They lie in the state home, one file a tool. Every change is a line of a journal
//! first, durably, and is made only then; so after a crash the registry is as before a
//! change or as after it, and a change of several tools is all of them or none. Who
//! changes something holds the lock.
//!
//! An attempt forges into an [`Overlay`], which nobody else sees: what fails leaves no
//! entry.

mod change;
mod error;
mod files;
mod journal;
mod overlay;
mod tool;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jackline_attempt::HealthLimits;
use jackline_engine::{Digest, Timestamp};

use change::{Becomes, Change};
pub use error::RegistryError;
use files::Files;
use journal::Journal;
pub use overlay::{Committed, Overlay};
pub use tool::{
    DESCRIPTION_BYTES_MAX, Forged, NAME_BYTES_MAX, SOURCE_BYTES_MAX, TOOLS_MAX, Tool, check_name,
};

/// The registry of a state home.
#[derive(Debug, Clone)]
pub struct Registry {
    directory: PathBuf,
}

/// What is in a registry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// The tools, by name.
    pub tools: Vec<Tool>,
    /// Entries that nobody can use, by name, and why.
    pub broken: Vec<(String, String)>,
}

impl Registry {
    /// The registry of a state home; it need not be there.
    pub fn of_home(state_home: &Path) -> Self {
        Self { directory: state_home.join("registry") }
    }

    /// Everything that is in it.
    pub fn list(&self) -> Result<Listing, RegistryError> {
        let _lock = files::lock_shared(&self.directory)?;
        let files = self.files();
        let mut found = files.all()?;
        // What is written down is done, even where nobody has come to doing it.
        if let Some(last) = self.journal().last()? {
            for name in last.change.names() {
                match last.applied_to(name, found.get(name)) {
                    Becomes::Tool(tool) => drop(found.insert(name.to_owned(), Ok(*tool))),
                    Becomes::Nothing => drop(found.remove(name)),
                    Becomes::Same => {}
                }
            }
        }
        let mut listing = Listing::default();
        for (name, entry) in found {
            match entry {
                Ok(tool) => listing.tools.push(tool),
                Err(why) => listing.broken.push((name, why)),
            }
        }
        Ok(listing)
    }

    /// One tool; none where there is none of that name.
    pub fn get(&self, name: &str) -> Result<Option<Tool>, RegistryError> {
        check_name(name)?;
        let Listing { tools, broken } = self.list()?;
        if let Some((name, why)) = broken.into_iter().find(|(broken, _)| broken == name) {
            return Err(RegistryError::Broken { name, why });
        }
        Ok(tools.into_iter().find(|tool| tool.name == name))
    }

    /// Begins to forge: nothing is in the registry before it is committed.
    pub fn begin(&self) -> Overlay<'_> {
        Overlay::new(self)
    }

    /// Removes a tool, also one that is broken. Says whether there was one.
    pub fn remove(&self, name: &str, at: Timestamp) -> Result<bool, RegistryError> {
        check_name(name)?;
        let mut writer = self.writer()?;
        if writer.files.one(name).is_none() {
            return Ok(false);
        }
        writer.make(at, Change::Removed { name: name.to_owned() })?;
        Ok(true)
    }

    /// Writes down what came of a use of a tool: the type of its error, or none. A use of
    /// a version that is not there any more says nothing about the one that is.
    pub fn used(
        &self,
        name: &str,
        version: &Digest,
        error_type: Option<&str>,
        limits: &HealthLimits,
        at: Timestamp,
    ) -> Result<(), RegistryError> {
        check_name(name)?;
        let mut writer = self.writer()?;
        let mut tool = match writer.files.one(name) {
            Some(Ok(tool)) if tool.version == *version => tool,
            Some(Err(why)) => return Err(RegistryError::Broken { name: name.to_owned(), why }),
            Some(Ok(_)) | None => return Ok(()),
        };
        tool.health.record(error_type, limits);
        let Tool { name, version, uses, health, .. } = tool;
        writer.make(at, Change::Used { name, version, uses: uses.saturating_add(1), health })
    }

    /// Keeps tools, all or none. `seen` says which version of each its forger knew; where
    /// there is another one now, somebody else has succeeded meanwhile, and that stays.
    fn keep(
        &self,
        forged: &BTreeMap<String, (Forged, Option<Digest>)>,
        at: Timestamp,
    ) -> Result<Committed, RegistryError> {
        let mut committed = Committed::default();
        if forged.is_empty() {
            return Ok(committed);
        }
        let mut writer = self.writer()?;
        let mut tools = Vec::new();
        for (name, (forged, seen)) in forged {
            let now = match writer.files.one(name) {
                Some(Ok(tool)) => Some(tool.version),
                Some(Err(_)) => {
                    // One that is broken is nobody's success.
                    writer.make(at, Change::Removed { name: name.clone() })?;
                    None
                }
                None => None,
            };
            if now == Some(forged.version()) {
                committed.kept.push(name.clone());
            } else if now.is_some() && now != *seen {
                committed.others.push(name.clone());
            } else {
                committed.kept.push(name.clone());
                tools.push(Tool::new(name, forged, at));
            }
        }
        let there = writer.files.names()?;
        let added = tools.iter().filter(|tool| !there.contains(&tool.name)).count();
        if there.len() + added > TOOLS_MAX {
            return Err(RegistryError::TooMany);
        }
        if !tools.is_empty() {
            writer.make(at, Change::Kept { tools })?;
        }
        Ok(committed)
    }

    /// Whoever changes something: alone, and with everything done that is written down.
    fn writer(&self) -> Result<Writer, RegistryError> {
        let lock = files::lock_exclusive(&self.directory)?;
        let (files, mut journal) = (self.files(), self.journal());
        files.tidy();
        journal.repair()?;
        if let Some(last) = journal.last()? {
            files.carry_out(&last)?;
        }
        Ok(Writer { files, journal, _lock: lock })
    }

    fn files(&self) -> Files {
        Files::new(self.directory.join("tools"))
    }

    fn journal(&self) -> Journal {
        Journal::new(&self.directory)
    }
}

/// A registry that is held.
struct Writer {
    files: Files,
    journal: Journal,
    _lock: std::fs::File,
}

impl Writer {
    /// Writes a change down, and then makes it.
    fn make(&mut self, at: Timestamp, change: Change) -> Result<(), RegistryError> {
        let line = self.journal.append(at, change)?;
        self.files.carry_out(&line)?;
        self.journal.shorten(&line)
    }
}
