//! Which repositories' definitions a person lets loosen things and run commands.
//!
//! `trust` in the state home has one grant a line. A grant is for one file with
//! exactly these contents, those of the files it extends included: a changed
//! file needs a new one.

use std::path::Path;
use std::sync::Arc;

use jackline_engine::{Digest, Timestamp};
use jackline_journal::StoreError;
use serde::{Deserialize, Serialize};

use crate::document_lines::DocumentLines;
use crate::state_home::{Document, StateHome};

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
    lines: DocumentLines,
}

impl Trust {
    /// The grants in a state home.
    pub fn of(home: Arc<dyn StateHome>) -> Self {
        Self { lines: DocumentLines::new(home, Document::Trust) }
    }

    /// Every grant, in the order in which they were given. A line that can't
    /// be read grants nothing.
    pub fn list(&self) -> Vec<Grant> {
        self.lines.list()
    }

    /// Whether a file with these contents is trusted.
    pub fn holds(&self, file: &Path, checksum: &Digest) -> bool {
        let is_it = |grant: &Grant| grant.checksum == *checksum && Path::new(&grant.file) == file;
        self.list().iter().any(is_it)
    }

    /// Trusts a file, instead of what it was before.
    pub fn grant(&self, grant: &Grant) -> Result<(), StoreError> {
        self.lines.change(|grants: &mut Vec<Grant>| {
            grants.retain(|known| known.file != grant.file);
            grants.push(grant.clone());
        })
    }

    /// Trusts a file no longer; says whether it was.
    pub fn revoke(&self, file: &Path) -> Result<bool, StoreError> {
        let mut was = false;
        self.lines.change(|grants: &mut Vec<Grant>| {
            let before = grants.len();
            grants.retain(|known| Path::new(&known.file) != file);
            was = grants.len() < before;
        })?;
        Ok(was)
    }
}
