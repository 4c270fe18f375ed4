//! The registry of tools that attempts generated.
//!
//! It is in the state home, with one file per tool. Every change is first written to a journal and
//! synced, and then applied. So after a crash the registry is in the state before or after a
//! change, and a change of several tools is complete or absent. A writer holds the lock.
//!
//! An attempt adds tools to a [`RegistryOverlay`] that only it sees, so a failed attempt leaves no
//! entry.

mod registry_change;
mod registry_error;
mod registry_files;
mod registry_journal;
mod registry_overlay;
mod stored_tool;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jackline_attempt::{HealthLimits, ToolState};
use jackline_engine::{Digest, Timestamp};

use registry_change::{EntryUpdate, RegistryChange};
pub use registry_error::RegistryError;
use registry_files::RegistryFiles;
use registry_journal::RegistryJournal;
pub use registry_overlay::{CommittedTools, RegistryOverlay};
pub use stored_tool::{
    DESCRIPTION_BYTES_MAX, NAME_BYTES_MAX, SOURCE_BYTES_MAX, StoredTool, TOOLS_MAX, ToolSource,
    check_name,
};

/// The tool registry of a state home.
#[derive(Debug, Clone)]
pub struct Registry {
    directory: PathBuf,
}

/// The contents of a registry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolListing {
    /// The tools, by name.
    pub tools: Vec<StoredTool>,
    /// Entries that can't be used, by name, with the reason.
    pub broken: Vec<(String, String)>,
}

impl Registry {
    /// The registry of a state home. The directory need not exist.
    pub fn of_home(state_home: &Path) -> Self {
        Self { directory: state_home.join("registry") }
    }

    /// All tools and broken entries.
    pub fn list(&self) -> Result<ToolListing, RegistryError> {
        let _lock = registry_files::lock_shared(&self.directory)?;
        let files = self.files();
        let mut found = files.read_all()?;
        // A change in the journal counts, even if no process has applied it yet.
        if let Some(last) = self.journal().last_change()? {
            for name in last.change.names() {
                match last.apply_to(name, found.get(name)) {
                    EntryUpdate::Replace(tool) => drop(found.insert(name.to_owned(), Ok(*tool))),
                    EntryUpdate::Remove => drop(found.remove(name)),
                    EntryUpdate::Unchanged => {}
                }
            }
        }
        let mut listing = ToolListing::default();
        for (name, entry) in found {
            match entry {
                Ok(tool) => listing.tools.push(tool),
                Err(why) => listing.broken.push((name, why)),
            }
        }
        Ok(listing)
    }

    /// The tool with a name; `None` if there is none.
    pub fn get(&self, name: &str) -> Result<Option<StoredTool>, RegistryError> {
        check_name(name)?;
        let ToolListing { tools, broken } = self.list()?;
        if let Some((name, why)) = broken.into_iter().find(|(broken, _)| broken == name) {
            return Err(RegistryError::Broken { name, why });
        }
        Ok(tools.into_iter().find(|tool| tool.name == name))
    }

    /// Starts an overlay. The registry does not change before the overlay is committed.
    pub fn begin(&self) -> RegistryOverlay<'_> {
        RegistryOverlay::new(self)
    }

    /// Removes a tool, even a broken one. Returns whether there was one.
    pub fn remove(&self, name: &str, at: Timestamp) -> Result<bool, RegistryError> {
        check_name(name)?;
        let mut writer = self.writer()?;
        if writer.files.read_entry(name).is_none() {
            return Ok(false);
        }
        writer.change(at, RegistryChange::Removed { name: name.to_owned() })?;
        Ok(true)
    }

    /// Records a use of a tool, with the type of its error if it failed. A use of a version that
    /// was replaced is ignored.
    pub fn record_use(
        &self,
        name: &str,
        version: &Digest,
        error_type: Option<&str>,
        limits: &HealthLimits,
        at: Timestamp,
    ) -> Result<(), RegistryError> {
        check_name(name)?;
        let mut writer = self.writer()?;
        let mut tool = match writer.files.read_entry(name) {
            Some(Ok(tool)) if tool.version == *version => tool,
            Some(Err(why)) => return Err(RegistryError::Broken { name: name.to_owned(), why }),
            Some(Ok(_)) | None => return Ok(()),
        };
        tool.health.record(error_type, limits);
        let StoredTool { name, version, uses, health, .. } = tool;
        writer.change(
            at,
            RegistryChange::Used { name, version, uses: uses.saturating_add(1), health },
        )
    }

    /// Stores tools, all or none. `seen` is the version that was there when the tool was generated.
    /// If another attempt has stored a different version since, that version stays.
    fn store_tools(
        &self,
        forged: &BTreeMap<String, (ToolSource, Option<Digest>)>,
        at: Timestamp,
    ) -> Result<CommittedTools, RegistryError> {
        let mut committed = CommittedTools::default();
        if forged.is_empty() {
            return Ok(committed);
        }
        let mut writer = self.writer()?;
        let mut tools = Vec::new();
        for (name, (forged, seen)) in forged {
            let there = match writer.files.read_entry(name) {
                Some(Ok(tool)) => Some(tool),
                Some(Err(_)) => {
                    // A broken entry can be replaced.
                    writer.change(at, RegistryChange::Removed { name: name.clone() })?;
                    None
                }
                None => None,
            };
            let now = there.as_ref().map(|tool| tool.version);
            if let Some(tool) = there.filter(|tool| tool.version == forged.version()) {
                committed.stored.push(name.clone());
                if tool.health.state() == ToolState::Degraded {
                    tools.push(tool.generated_again());
                }
            } else if now.is_some() && now != *seen {
                committed.skipped.push(name.clone());
            } else {
                committed.stored.push(name.clone());
                tools.push(StoredTool::new(name, forged, at));
            }
        }
        let there = writer.files.names()?;
        let added = tools.iter().filter(|tool| !there.contains(&tool.name)).count();
        if there.len() + added > TOOLS_MAX {
            return Err(RegistryError::TooMany);
        }
        if !tools.is_empty() {
            writer.change(at, RegistryChange::Kept { tools })?;
        }
        Ok(committed)
    }

    /// Locks the registry for writing, and applies a change that was not applied yet.
    fn writer(&self) -> Result<RegistryWriter, RegistryError> {
        let lock = registry_files::lock_exclusive(&self.directory)?;
        let (files, mut journal) = (self.files(), self.journal());
        files.remove_temporary_files();
        journal.remove_torn_line()?;
        if let Some(last) = journal.last_change()? {
            files.apply(&last)?;
        }
        Ok(RegistryWriter { files, journal, _lock: lock })
    }

    fn files(&self) -> RegistryFiles {
        RegistryFiles::new(self.directory.join("tools"))
    }

    fn journal(&self) -> RegistryJournal {
        RegistryJournal::new(&self.directory)
    }
}

/// A registry that is locked for writing.
struct RegistryWriter {
    files: RegistryFiles,
    journal: RegistryJournal,
    _lock: std::fs::File,
}

impl RegistryWriter {
    /// Writes a change to the journal, then applies it.
    fn change(&mut self, at: Timestamp, change: RegistryChange) -> Result<(), RegistryError> {
        let line = self.journal.append(at, change)?;
        self.files.apply(&line)?;
        self.journal.rotate_if_long(&line)
    }
}
