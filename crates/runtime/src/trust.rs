//! Which repositories' definitions a person lets loosen things and run commands.
//!
//! `trust` in the state home has one grant a line. A grant is for one file with
//! exactly these contents, those of the files it extends included: a changed
//! file needs a new one.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use jackline_engine::{Digest, Timestamp};
use jackline_journal::{FileStore, StoreError, write_private};
use serde::{Deserialize, Serialize};

/// One file that a person trusts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The checksum of the file and of those it extends.
    pub checksum: Digest,
    /// The file, absolute.
    pub file: String,
    /// When it was trusted.
    pub at: Timestamp,
    /// By whom.
    pub by: String,
}

/// The grants of a state home.
#[derive(Debug, Clone)]
pub struct Trust {
    file: PathBuf,
}

impl Trust {
    /// The grants in the state home of a store.
    pub fn of(store: &FileStore) -> Self {
        Self { file: store.home().join("trust") }
    }

    /// Every grant, in the order in which they were given. A line that can't
    /// be read grants nothing.
    pub fn list(&self) -> Vec<Grant> {
        let text = fs::read_to_string(&self.file).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Whether a file with these contents is trusted.
    pub fn holds(&self, file: &Path, checksum: &Digest) -> bool {
        let is_it = |grant: &Grant| grant.checksum == *checksum && Path::new(&grant.file) == file;
        self.list().iter().any(is_it)
    }

    /// Trusts a file, instead of what it was before.
    pub fn grant(&self, grant: Grant) -> Result<(), StoreError> {
        self.change(|grants| {
            grants.retain(|known| known.file != grant.file);
            grants.push(grant);
        })
    }

    /// Trusts a file no longer; says whether it was.
    pub fn revoke(&self, file: &Path) -> Result<bool, StoreError> {
        let mut was = false;
        self.change(|grants| {
            let before = grants.len();
            grants.retain(|known| Path::new(&known.file) != file);
            was = grants.len() < before;
        })?;
        Ok(was)
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Grant>)) -> Result<(), StoreError> {
        // Two people at once must not undo each other. Where there is no
        // directory to lock yet, there is nothing to undo.
        let lock = self.file.parent().and_then(|home| File::open(home).ok());
        if let Some(lock) = &lock {
            let _ = lock.lock();
        }
        let mut grants = self.list();
        let before = grants.clone();
        change(&mut grants);
        if grants == before {
            return Ok(());
        }
        let line = |grant: &Grant| {
            serde_json::to_string(grant).map(|line| format!("{line}\n")).unwrap_or_default()
        };
        write_private(&self.file, grants.iter().map(line).collect::<String>().as_bytes())
    }
}
